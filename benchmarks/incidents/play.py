"""Makes a script of `benchmarks.incidents.chaos` happen on a lab."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from benchmarks.incidents.chaos import MIN_ISR, Chaos, ChaosStep, Deed
from benchmarks.incidents.ledger import Ledger
from kelr.lab import Lab
from kelr.lab.disk import read_batches
from kelr.lab.nodes import NodePaths
from kelr.lab.produce import Acks
from kelr.lab.spec import CONTROLLER_ID
from kelr.lab.story import Story, create_topic
from kelr.model import PartitionState

Report = Callable[[str], None]
TOPIC_CONFIG = {"min.insync.replicas": str(MIN_ISR), "segment.index.bytes": "65536"}
"""The index files are made at their full size, and every disk is copied several times."""


class Player:
    """Carries out a script, step by step, and writes down what is acknowledged."""

    def __init__(self, lab: Lab, topic: str, chaos: Chaos, report: Report) -> None:
        self.ledger = Ledger(lab.bootstrap_servers, topic)
        self._lab = lab
        self._topic = topic
        self._chaos = chaos
        self._report = report
        self._story = Story(lab, topic, report)

    @property
    def needed(self) -> int:
        """In-sync replicas without which acks=all is refused."""
        return MIN_ISR

    @property
    def topic_config(self) -> Mapping[str, str]:
        return TOPIC_CONFIG

    def play(self) -> None:
        """From a healthy lab to one whose brokers are all down, and fenced."""
        create_topic(self._lab, self._topic, self._chaos.layouts, self.topic_config)
        self._story.wait("all replicas are in sync", lambda state: len(state.isr) == len(state.replicas))
        for step in self._chaos.steps:
            self._do(step)

    def _do(self, step: ChaosStep) -> None:
        if step.deed is Deed.PRODUCE:
            self._produce(step, but_not=())
        elif step.deed is Deed.KILL:
            self._kill(step.brokers)
        elif step.deed is Deed.STOP:
            self._stop(step.brokers[0])
        elif step.deed is Deed.START:
            self._story.start(*step.brokers)
            wait_settled(self._lab, self._topic)
        elif step.deed is Deed.CUT:
            self._cut(step)
        elif step.deed is Deed.FAIL_TO_START:
            self._story.fail_to_start(step.brokers[0])
        else:
            self._lag(step)

    def _produce(self, step: ChaosStep, *, but_not: Sequence[int]) -> None:
        assert step.acks is not None
        states = [
            state
            for state in self._states()
            if state.partition in step.partitions
            and state.leader is not None
            and state.leader not in but_not
            and (step.acks is Acks.LEADER or len(state.isr) >= self.needed)
        ]
        number = self._ledger_of(states, step.batches, step.acks)
        self._report(f"produced with acks={step.acks.value} to {len(states)} partitions: {number} records acknowledged")

    def _ledger_of(self, states: Sequence[PartitionState], batches: int, acks: Acks) -> int:
        return self.ledger.produce(states, batches, acks) if states else 0

    def _kill(self, brokers: Sequence[int]) -> None:
        """Several at one time: the controller learns of all of them when their sessions end."""
        fenced = Fencings(self._lab)
        for broker in brokers:
            self._lab.kill(broker)
        self._wait_out(fenced, brokers)
        self._report(f"killed brokers {_named(brokers)} (SIGKILL)")

    def _stop(self, broker: int) -> None:
        self._lab.stop(broker)
        self._wait_left((broker,))
        self._report(f"stopped broker {broker} cleanly (SIGTERM)")

    def _wait_out(self, fenced: Fencings, brokers: Sequence[int]) -> None:
        """Until the controller has fenced them, and every broker that is left has learnt of it."""
        self._lab.wait_until(f"brokers {_named(brokers)} are fenced", lambda: fenced.has_seen(brokers))
        self._wait_left(brokers)

    def _wait_left(self, brokers: Sequence[int]) -> None:
        if any(map(self._lab.is_running, self._lab.brokers)):
            self._story.wait("they left the ISR", lambda state: has_left(state, set(brokers)))

    def _lag(self, step: ChaosStep) -> None:
        slow, victim = step.brokers
        fenced = Fencings(self._lab)
        self._lab.pause(slow)
        try:
            self._produce(step, but_not=(slow,))
            self._lab.kill(victim)
        finally:
            self._lab.go_on(slow)
        self._wait_out(fenced, (victim,))
        self._lab.wait_unfenced(slow)
        wait_settled(self._lab, self._topic)
        self._report(f"held broker {slow} up meanwhile, and killed broker {victim}")

    def _cut(self, step: ChaosStep) -> None:
        (broker,) = step.brokers
        offsets = 0
        for partition in step.partitions:
            directory = self._lab.data_directory(broker) / f"{self._topic}-{partition}"
            have = sum(len(list(read_batches(segment))) for segment in directory.glob("*.log"))
            # A log that was just created has nothing to lose.
            if have:
                batches = min(step.batches, have)
                offsets += self._lab.cut_tail(broker, self._topic, partition, batches=batches).offsets
        self._report(f"cut {offsets} records off the ends of broker {broker}'s logs")

    def _states(self) -> Sequence[PartitionState]:
        return tuple(self._lab.partitions(self._topic).values())


def has_left(state: PartitionState, brokers: set[int]) -> bool:
    """Whether a partition has taken note that these brokers are gone: the last one stays in the ISR with ELR off."""
    return state.leader not in brokers and (state.leader is None or not brokers & set(state.isr))


def is_settled(state: PartitionState, up: set[int]) -> bool:
    """Whether a partition stands still: nobody leads it, or all its live replicas are in sync."""
    if state.leader is None:
        return not set(state.isr) & up
    return state.leader in up and set(state.isr) == set(state.replicas) & up


def wait_settled(lab: Lab, topic: str) -> None:
    """Wait until every partition stands still."""
    up = {broker for broker in lab.brokers if lab.is_running(broker)}
    lab.wait_partitions(topic, "live replicas are in sync", lambda state: is_settled(state, up), timeout_s=60)


def come_back(lab: Lab, topic: str, brokers: Sequence[int], report: Report) -> Mapping[int, PartitionState]:
    """Start brokers one after the other, each when the one before is in sync everywhere; return the partitions."""
    for broker in brokers:
        lab.start(broker)
        wait_settled(lab, topic)
    report(f"started brokers {_named(brokers)}")
    return {address.partition: state for address, state in lab.partitions(topic).items()}


class Fencings:
    """What the controller's own log says since this was made: the only witness where every broker is down."""

    def __init__(self, lab: Lab) -> None:
        self._file = NodePaths.of(lab.directory, CONTROLLER_ID).output
        self._start = self._file.stat().st_size

    def has_seen(self, brokers: Sequence[int]) -> bool:
        with self._file.open("rb") as stream:
            stream.seek(self._start)
            text = stream.read().decode(errors="replace")
        found = set(map(int, re.findall(r"Fencing broker (\d+) at epoch \d+ because its session has timed out", text)))
        return set(brokers) <= found


def _named(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"
