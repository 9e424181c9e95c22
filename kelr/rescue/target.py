"""The cluster that gets replayed records: which partition, who leads it, and what its log holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.logs import agreement
from kelr.errors import RefusedError, UsageError
from kelr.model import (
    LogUnavailable,
    PartitionState,
    ReplicaLog,
    Selection,
    Target,
    TopicConfig,
    TopicPartition,
    leader_min_isr,
)
from kelr.rescue.manifest import SavedTail
from kelr.sources.base import Source

_ELECT_FIRST = "elect a leader first: kelr explain says which; the dump keeps the records meanwhile"

INTERNAL_TOPICS: Mapping[str, str] = {
    "__consumer_offsets": "an old committed offset would send a group back, or beyond records that it has not read",
    "__transaction_state": "an old state of a transaction would make its coordinator complete or abort another one",
    "__share_group_state": "an old state would deliver records again, or never",
    "__cluster_metadata": "the controllers alone write it",
    "__remote_log_metadata": "an old state would point to segments that are gone",
}


@dataclass(frozen=True, slots=True)
class Led:
    """A partition that has a leader, with the leader's log."""

    state: PartitionState
    leader: int
    log: ReplicaLog

    @property
    def where(self) -> str:
        return str(self.state.address)


def refuse_internal(topic: str) -> None:
    """Raises RefusedError for a topic that Kafka keeps for itself."""
    if topic.startswith("__"):
        why = INTERNAL_TOPICS.get(topic, "Kafka, or a tool beside it, keeps its own state there")
        raise RefusedError(
            f"{topic} is an internal topic, and nothing is replayed into one: {why}",
            next_step="let Kafka rebuild it; kelr rescue show --records shows what the file holds",
            code="internal-topic",
        )


def read_partitions(source: Source, addresses: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
    """The state of those of these partitions that exist."""
    selection = Selection(tuple(Target(topic=at.topic, partitions=(at.partition,)) for at in addresses))
    return {state.address: state for page in source.pages(selection) for state in page.partitions}


@dataclass(frozen=True, slots=True)
class NotNow:
    """A partition that takes no records as it stands."""

    address: TopicPartition
    why: str
    """What goes on from its name, with the space or the colon between them."""
    next_step: str

    def error(self) -> RefusedError:
        return RefusedError(f"{self.address}{self.why}", next_step=self.next_step)


def look_at(source: Source, addresses: Sequence[TopicPartition]) -> Mapping[TopicPartition, Led | NotNow]:
    """Each of these partitions with its leader's log, or why it cannot be told what that holds.

    Raises:
        UsageError: one of them does not exist.
    """
    states = read_partitions(source, addresses)
    live = source.cluster().live
    found: dict[TopicPartition, Led | NotNow] = {}
    led: list[PartitionState] = []
    for address in addresses:
        state = states.get(address)
        if state is None:
            raise UsageError(
                f"{address} does not exist on this cluster, or may not be seen",
                next_step="create the topic with as many partitions as the one that the records come from",
            )
        if state.leader is None or state.leader not in live:
            found[address] = NotNow(address, " has no live leader", _ELECT_FIRST)
        else:
            led.append(state)
    logs = source.replica_logs(led, lineage=True) if led else {}
    return {**found, **{state.address: _led(state, logs[state.address]) for state in led}}


def require_led(source: Source, addresses: Sequence[TopicPartition]) -> Mapping[TopicPartition, Led]:
    """Each of these partitions with its leader's log.

    Raises:
        UsageError: one of them does not exist.
        RefusedError: one has no live leader, or its leader's log was not heard.
    """
    led: dict[TopicPartition, Led] = {}
    for address, found in look_at(source, addresses).items():
        if isinstance(found, NotNow):
            raise found.error()
        led[address] = found
    return led


def too_few_in_sync(state: PartitionState, config: TopicConfig) -> NotNow | None:
    """Why the leader refuses what is produced with acks=all; None where it takes it, or min ISR is not known.

    Source: Partition.appendRecordsToLeader and effectiveMinIsr: of this partition's own replicas.
    """
    min_isr = leader_min_isr(config.min_insync_replicas, len(state.replicas))
    if min_isr is None or len(state.isr) >= min_isr:
        return None
    isr = ", ".join(map(str, state.isr))
    return NotNow(
        state.address,
        f": nothing is taken with acks=all, as the ISR [{isr}] is below min ISR {min_isr}",
        "bring its other replicas back first (kelr explain says which), then run the same command again",
    )


def _led(state: PartitionState, answers: Sequence[ReplicaLog | LogUnavailable]) -> Led | NotNow:
    leader = state.leader
    assert leader is not None
    log = next((answer for answer in answers if answer.replica == leader), None)
    if not isinstance(log, ReplicaLog):
        why = log.detail if isinstance(log, LogUnavailable) else "no answer"
        return NotNow(
            state.address,
            f": the log of its leader {leader} was not read ({why})",
            "try again when its leader answers",
        )
    if log.current_leader_epoch is not None and log.current_leader_epoch != state.leader_epoch:
        return NotNow(
            state.address,
            f" is changing hands: leader epoch {state.leader_epoch}, and {log.current_leader_epoch} as replica {leader}"
            " has it",
            "run it again when it has settled",
        )
    return Led(state, leader, log)


def lost_from(tails: Sequence[SavedTail], log: ReplicaLog) -> int:
    """The offset behind which the leader's log and the tails' parted: what was replayed or overwritten since lies
    there. The log's start where that cannot be told."""
    start = log.log_start or 0
    found = []
    for tail in tails:
        if not tail.lineage or tail.log_end is None:
            return start
        source = ReplicaLog(
            tail.replica,
            tail.log_end,
            tail.lineage[-1].epoch,
            log_start=tail.log_start,
            lineage=tail.lineage,
        )
        parted = agreement(source, log)
        if parted is None:
            return start
        found.append(max(start, parted))
    return min(found, default=start)
