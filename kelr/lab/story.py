"""The hand that carries out an incident on a lab and writes down each step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kelr.errors import LabError, UsageError
from kelr.lab.disk import CutTail
from kelr.lab.observed import AnyLab, Report
from kelr.lab.produce import Acks, Produced, produce
from kelr.model import PartitionState, TopicPartition

if TYPE_CHECKING:
    from kelr.lab.cluster import Lab

RECORDS_IN_A_BATCH = 5


class Action(StrEnum):
    """What a step of an incident did."""

    CREATE_TOPIC = "create-topic"
    PRODUCE = "produce"
    KILL = "kill"
    STOP = "stop"
    START = "start"
    CUT_TAIL = "cut-tail"
    FAIL_TO_START = "fail-to-start"
    """The broker was started, registered, and ended before it was unfenced."""
    LOSE_DISK = "lose-disk"
    REPLACE_DISK = "replace-disk"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step of an incident: a sentence for people, and what happened for machines."""

    action: Action
    text: str
    brokers: tuple[int, ...] = ()
    produced: tuple[Produced, ...] = ()
    cuts: tuple[CutTail, ...] = ()


class Story:
    """Carries out steps on a lab, waits until the cluster has taken note of each, and keeps the record.

    Every step raises LabError where the cluster does not do what the story needs.
    """

    def __init__(self, lab: AnyLab, topic: str, report: Report) -> None:
        self.lab = lab
        self.topic = topic
        self.steps: list[StepDone] = []
        self._report = report
        self._ends: dict[int, int] = {}

    @property
    def partitions(self) -> tuple[int, ...]:
        return tuple(self._ends)

    def create_topic(self, layouts: Sequence[Sequence[int]]) -> None:
        """Create the topic with these replicas for partitions 0, 1, ..., and wait until all replicas are in sync."""
        config = {} if self.lab.spec.min_isr == 2 else {"min.insync.replicas": "2"}
        create_topic(self.lab, self.topic, layouts, config)
        self._ends = dict.fromkeys(range(len(layouts)), 0)
        self.wait("all replicas are in sync", lambda state: len(state.isr) == len(state.replicas))
        text = f"created topic {self.topic}: {len(layouts)} partitions, {len(layouts[0])} replicas, min ISR 2"
        self._done(StepDone(Action.CREATE_TOPIC, text, tuple(sorted(set(layouts[0])))))

    def produce(self, batches: int, acks: Acks) -> None:
        """Produce batches to every partition; acks=all returns when every in-sync replica has also saved the new high
        watermark, so that a kill right after it always leaves the same behind."""
        produced = self._produce(batches, acks)
        for result in produced:
            self._ends[result.partition] = result.end_offset or self._ends[result.partition]
        if acks is Acks.ALL:
            self._wait_high_watermarks()
        records = batches * RECORDS_IN_A_BATCH
        text = f"produced {records} records to each partition with acks={acks.value}: all confirmed"
        if acks is Acks.LEADER:
            text += " by the leader, on no other replica"
        self._done(StepDone(Action.PRODUCE, text, produced=produced))

    def produce_in_vain(self) -> None:
        """Produce a batch to every partition with acks=all, which the leader has to refuse, and so does not append."""
        addresses = [TopicPartition(self.topic, partition) for partition in self.partitions]
        self.lab.wait_until("the leaders refuse acks=all", lambda: all(map(self.lab.refuses_acks_all, addresses)))
        produced = self._produce(1, Acks.ALL, expect_refusal=True)
        text = f"tried to produce with acks=all: refused ({produced[0].error}), the ISR is smaller than min ISR"
        self._done(StepDone(Action.PRODUCE, text, produced=produced))

    def kill(self, *brokers: int, why: str = "") -> None:
        """SIGKILL, then wait until the controller has fenced the brokers, if any broker is left to tell."""
        for broker in brokers:
            self.lab.kill(broker)
        self._wait_out(brokers)
        self._done(StepDone(Action.KILL, f"killed {_brokers(brokers)} (SIGKILL){why}", brokers))

    def stop(self, broker: int, *, why: str = "") -> None:
        """Shut a broker down cleanly."""
        self.lab.stop(broker)
        self._wait_out((broker,))
        self._done(StepDone(Action.STOP, f"stopped broker {broker} cleanly (SIGTERM){why}", (broker,)))

    def start(self, *brokers: int, why: str = "") -> None:
        """Start brokers together and wait until each is unfenced."""
        for broker in brokers:
            self.lab.start(broker, wait=False)
        self.lab.wait_unfenced(*brokers)
        self._done(StepDone(Action.START, f"started {_brokers(brokers)}{why}", brokers))

    def kill_controllers(self, *nodes: int, why: str = "") -> None:
        """SIGKILL controllers."""
        for node in nodes:
            self.real.kill_controller(node)
        self._done(StepDone(Action.KILL, f"killed {_controllers(nodes)} (SIGKILL){why}"))

    def start_controllers(self, *nodes: int, why: str = "") -> None:
        """Start controllers, and wait until they accept connections."""
        self.real.start_controller(*nodes)
        self._done(StepDone(Action.START, f"started {_controllers(nodes)}{why}"))

    def lose_disks(self, *nodes: int, why: str = "") -> None:
        """Controllers die with their disks."""
        for node in nodes:
            self.real.lose_disk(node)
        self._done(StepDone(Action.LOSE_DISK, f"{_controllers(nodes)} died, and the disks with them{why}"))

    def replace_disk(self, node: int, *, why: str = "") -> None:
        """A controller that lost its disk gets a new one, formatted and empty."""
        self.real.format_controller(node)
        self._done(StepDone(Action.REPLACE_DISK, f"formatted a new disk for controller {node}{why}"))

    def move_controllers(self, *, why: str = "") -> None:
        """Controllers that are down get other addresses."""
        self.real.move_controllers()
        self._done(StepDone(Action.MOVE, f"controllers now have {self.real.bootstrap_controllers}{why}"))

    @property
    def real(self) -> Lab:
        """The lab of an incident that needs several real controllers."""
        from kelr.lab.cluster import Lab  # noqa: PLC0415 - only these incidents need it

        if not isinstance(self.lab, Lab):
            raise LabError("a simulated lab has no disks of controllers", next_step="kelr lab up --controllers 3")
        return self.lab

    def fail_to_start(self, broker: int) -> None:
        """Start a broker that registers and dies while it loads its logs."""
        self.lab.fail_to_start(broker)
        text = f"started broker {broker}: it registered, then died while loading its logs"
        self._done(StepDone(Action.FAIL_TO_START, text, (broker,)))

    def cut(self, broker: int, partitions: Collection[int], batches: int) -> None:
        """Cut the tail of a dead broker's logs of these partitions."""
        cuts = tuple(
            self.lab.cut_tail(broker, self.topic, partition, batches=batches) for partition in sorted(partitions)
        )
        names = ", ".join(str(cut.partition) for cut in cuts)
        text = (
            f"cut the last {cuts[0].offsets} records off broker {broker}'s logs of partitions {names} (never flushed)"
        )
        self._done(StepDone(Action.CUT_TAIL, text, (broker,), cuts=cuts))

    def wait(self, what: str, holds: Callable[[PartitionState], bool]) -> None:
        """Wait until something holds for every partition of the topic."""
        self.lab.wait_partitions(self.topic, what, holds)

    def _produce(self, batches: int, acks: Acks, *, expect_refusal: bool = False) -> tuple[Produced, ...]:
        return produce(
            self.lab.bootstrap_servers,
            self.topic,
            self.partitions,
            batches=batches,
            records=RECORDS_IN_A_BATCH,
            acks=acks,
            label=f"step {len(self.steps)} acks={acks.value}",
            expect_refusal=expect_refusal,
        )

    def _wait_out(self, brokers: Collection[int]) -> None:
        self.lab.notice(*brokers)
        if any(map(self.lab.is_running, self.lab.brokers)):
            out = set(brokers)
            self.wait(f"{_brokers(brokers)} left the ISR", lambda state: not out & {*state.isr, state.leader})

    def _wait_high_watermarks(self) -> None:
        in_sync = {address.partition: state.isr for address, state in self.lab.partitions(self.topic).items()}
        wanted = {(broker, partition) for partition, isr in in_sync.items() for broker in isr}

        def saved() -> bool:
            known = {broker: self.lab.saved_high_watermarks(broker, self.topic) for broker, _ in wanted}
            return all(known[broker].get(partition) == self._ends[partition] for broker, partition in wanted)

        self.lab.wait_until("the high watermarks are saved on disk", saved)

    def _done(self, step: StepDone) -> None:
        self.steps.append(step)
        self._report(step.text)


def create_topic(lab: AnyLab, topic: str, layouts: Sequence[Sequence[int]], config: Mapping[str, str]) -> None:
    """Create a topic with a given assignment, and wait until every broker that answers knows it: the controller answers
    when it has written it down, and a broker that is asked next may not have read that yet.

    Raises:
        UsageError: there is one of that name.
        LabError: the cluster refuses, or a broker does not get to know it.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    quiet: dict[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "client.id": "kelr-lab", **quiet})
    wanted = NewTopic(topic, len(layouts), replica_assignment=[list(layout) for layout in layouts], config=dict(config))
    try:
        admin.create_topics([wanted])[topic].result(30)
    except KafkaException as error:
        reason = error.args[0]
        if reason.name() == "TOPIC_ALREADY_EXISTS":
            raise UsageError(f"topic {topic} exists already", next_step="name another one with --topic") from error
        raise LabError(f"cannot create topic {topic}: {reason.str()}") from error
    lab.wait_partitions(topic, "every broker knows the topic", lambda _state: True)


def _controllers(nodes: Sequence[int]) -> str:
    return f"controller{'s' if nodes[1:] else ''} {', '.join(map(str, nodes))}"


def _brokers(brokers: Collection[int]) -> str:
    numbers = ", ".join(map(str, brokers))
    return f"broker {numbers}" if len(brokers) == 1 else f"brokers {numbers}"
