"""Looks past the elections of a plan: reads what the cluster shows now, and has it judged, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from kelr.engine.planning.identity import plan_id
from kelr.engine.planning.lost import Lost
from kelr.engine.planning.saved import NO_FILES
from kelr.engine.planning.verification import Seen, findings
from kelr.model import (
    Finding,
    LogAnswer,
    PartitionState,
    Passed,
    Plan,
    PlannedElection,
    ReplicaLog,
    SavedLog,
    Selection,
    Target,
    TopicConfig,
    TopicPartition,
    leader_min_isr,
)
from kelr.model.afterwards import CommittedOffsets, Transactions, Unread
from kelr.model.audit import AuditRecord
from kelr.recovery.audited import Recorded, lost_with_audit
from kelr.sources.base import Progress, Source, silence_of
from kelr.sources.ground import Ground, Instant

PAUSE_S = 1.0
"""Between two looks while it is waited for what is not yet."""
_NO_CLUSTER = Unread("only a live cluster tells")


class Afterwards(Protocol):
    """What verification asks besides what every source tells."""

    def open_transactions(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, Transactions]:
        """The open transactions of each partition that has a live leader."""

    def committed_offsets(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | Unread:
        """What every consumer group has committed for these partitions."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What one look at a plan's partitions gave."""

    findings: tuple[Finding, ...]
    """By partition, and within one in the order of `kelr.model.plan.Check`."""
    looked_at_ms: int
    """When the look began, in milliseconds since 1970 UTC."""
    partitions: int
    """How many partitions the plan elects leaders for."""
    lost: tuple[Lost, ...] = ()
    """What each of its elections lost that was carried out: a loss is no check, and none that passes mends it."""
    silence: str | None = None
    """Why no controller answered: brokers tell then who led when they heard one last. None: one did."""
    instead: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Who leads where the planned election is known not to have come about, as another one was first."""

    def count(self, passed: Passed) -> int:
        return sum(one.passed is passed for one in self.findings)

    @property
    def good(self) -> bool:
        """Whether there were checks, every one was looked at and came out well, and a controller stands behind them."""
        well = all(one.passed is Passed.YES for one in self.findings)
        return bool(self.findings) and well and self.silence is None

    @property
    def may_come(self) -> bool:
        """Whether waiting may change something."""
        return self.count(Passed.NOT_YET) > 0


def verify(
    plan: Plan,
    source: Source,
    afterwards: Afterwards | None,
    *,
    ground: Ground,
    recorded: Iterable[AuditRecord] = (),
    saved: Mapping[TopicPartition, Sequence[SavedLog]] = NO_FILES,
    progress: Progress | None = None,
) -> Verification:
    """Look at every partition of the plan once.

    Args:
        recorded: what the audit log tells of the plan's elections: what was shown and accepted for them stands beside
            what the plan says.
        saved: what rescue files hold.
        afterwards: reads transactions and groups; None where the source cannot (a snapshot).

    Raises:
        KelrError: the cluster cannot be reached at all; everything less is a finding.
    """
    source.forget()
    now = ground.now() if source.taken_at_ms is None else Instant(source.taken_at_ms)
    looked_at_ms = now.ms
    round_ = _Round(source, afterwards, looked_at_ms)
    known = Recorded.of(recorded)
    name = plan_id(plan)
    refusals = {one.address: known.refusal(one, name) for one in plan.elections}
    of_loss = {one.address: known.saved(one, saved.get(one.address, ())) for one in plan.elections}
    seen = {
        at: replace(one, late_until_ms=known.late_until_ms(at, now), refusal=refusals[at], saved=of_loss[at])
        for at, one in round_.look([one.address for one in plan.elections], progress).items()
    }
    found = [finding for one in plan.elections for finding in findings(one, seen[one.address])]
    lost = {one.address: lost_with_audit(one, seen[one.address], known) for one in plan.elections}
    carried_out = tuple(one for one in lost.values() if one is not None)
    instead = {
        one.address: leader
        for one in plan.elections
        if lost[one.address] is None and (leader := _led_since(one, seen[one.address])) is not None
    }
    return Verification(tuple(found), looked_at_ms, len(plan.elections), carried_out, silence_of(source), instead)


def _led_since(planned: PlannedElection, seen: Seen) -> int | None:
    """Who leads in a leader epoch after the plan's; None: nobody does."""
    state = seen.state
    return None if state is None or state.leader_epoch <= planned.evidence.leader_epoch else state.leader


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long to wait for what is not yet."""

    seconds: float
    ground: Ground
    pause_s: float = PAUSE_S


def verify_until_good(
    look: Callable[[], Verification], waiting: Waiting, *, report: Callable[[Verification, float], None]
) -> Verification:
    """Look again until nothing is left to wait for, or the time is up.

    Args:
        look: one look, such as `verify` with its arguments.
        report: told of each look and of the seconds that are left; must not raise.
    """
    end_s = waiting.ground.steady_s() + waiting.seconds
    while True:
        found = look()
        left_s = end_s - waiting.ground.steady_s()
        if not found.may_come or left_s <= 0:
            return found
        report(found, left_s)
        waiting.ground.sleep(min(waiting.pause_s, left_s))


def plan_selection(addresses: Iterable[TopicPartition]) -> Selection:
    """These partitions, each named outright."""
    by_topic: dict[str, list[int]] = {}
    for address in sorted(set(addresses)):
        by_topic.setdefault(address.topic, []).append(address.partition)
    return Selection(tuple(Target(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()))


class _Round:
    """Everything that one look reads."""

    def __init__(self, source: Source, afterwards: Afterwards | None, now_ms: int) -> None:
        self._source, self._afterwards, self._now_ms = source, afterwards, now_ms
        self._states: dict[TopicPartition, PartitionState] = {}
        self._errors: dict[str, str] = {}

    def look(self, addresses: Sequence[TopicPartition], progress: Progress | None) -> Mapping[TopicPartition, Seen]:
        if not addresses:
            return {}
        self._describe(addresses)
        states = list(self._states.values())
        configs = self._source.topic_configs(sorted({state.topic for state in states}))
        # A replica in sync holds what is below the leader's high watermark of an earlier moment.
        before = self._high_watermarks(states)
        logs = self._source.replica_logs(states, lineage=True, progress=progress) if states else {}
        transactions = self._transactions(states, logs)
        committed = _NO_CLUSTER if self._afterwards is None else self._afterwards.committed_offsets(list(self._states))
        live = self._source.cluster().live
        return {
            address: Seen(
                state=state,
                live=live,
                min_isr=None if state is None else leader_min_isr(config.min_insync_replicas, len(state.replicas)),
                config_error=config.error,
                logs=logs.get(address, ()),
                earlier_high_watermark=before.get(address),
                transactions=transactions.get(address, _NO_CLUSTER if self._afterwards is None else _NOBODY_LEADS),
                committed=committed,
                now_ms=self._now_ms,
                error=self._errors.get(address.topic, "the cluster does not name it"),
            )
            for address in addresses
            for state, config in ((self._states.get(address), configs.get(address.topic, TopicConfig())),)
        }

    def _describe(self, addresses: Sequence[TopicPartition]) -> None:
        for page in self._source.pages(plan_selection(addresses)):
            self._states.update((state.address, state) for state in page.partitions)
            self._errors.update((error.topic, error.error) for error in page.topic_errors)

    def _high_watermarks(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, int]:
        replicated = [state for state in states if state.leader is not None and len(state.isr) > 1]
        logs = self._source.replica_logs(replicated) if replicated else {}
        found = {state.address: _leader_log(state, logs.get(state.address, ())) for state in replicated}
        return {
            address: log.high_watermark
            for address, log in found.items()
            if log is not None and log.high_watermark is not None
        }

    def _transactions(
        self, states: Sequence[PartitionState], logs: Mapping[TopicPartition, tuple[LogAnswer, ...]]
    ) -> Mapping[TopicPartition, Transactions]:
        """Asked for only where the last stable offset leaves room for an open transaction."""
        if self._afterwards is None:
            return {}
        found: dict[TopicPartition, Transactions] = {}
        asked = []
        for state in states:
            log = _leader_log(state, logs.get(state.address, ()))
            if log is not None and log.last_stable_offset is not None and log.last_stable_offset >= log.log_end:
                found[state.address] = ()
            elif state.leader is not None:
                asked.append(state)
        return found | dict(self._afterwards.open_transactions(asked)) if asked else found


_NOBODY_LEADS = Unread("no leader", passing=True)


def _leader_log(state: PartitionState, answers: Sequence[LogAnswer]) -> ReplicaLog | None:
    return next((one for one in answers if isinstance(one, ReplicaLog) and one.replica == state.leader), None)
