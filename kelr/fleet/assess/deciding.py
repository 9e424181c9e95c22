"""What Spark's workers do: decide each pattern under each of its scenarios, once, with the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kelr.controller import ControllerState, RuleSet, snapshot_of
from kelr.engine.case import case_of
from kelr.engine.decide import decide
from kelr.engine.loss import loss_of_electing
from kelr.engine.outages.case import OutageCase, Placed, case_of_first, case_of_pattern
from kelr.engine.outages.fate import KnownCase
from kelr.engine.outages.reading import Seen
from kelr.engine.outages.scenario import Outage
from kelr.engine.outages.standing import Standing
from kelr.engine.outages.told import PartitionFate, PossibleEnd, partition_fate
from kelr.engine.patterns import Pattern
from kelr.engine.verdict import Verdict, verdict_of
from kelr.engine.what_if.assumptions import Assumption, AssumptionError
from kelr.engine.what_if.imagine import imagine
from kelr.fleet.assess.shapes import blow_of
from kelr.fleet.assess.tables import column_of
from kelr.model import (
    Broker,
    BrokerStatus,
    ConfigSource,
    ElectedBy,
    ElectionType,
    EpochEnd,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    LossCertainty,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicConfig,
    TopicPartition,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch


# Keys as Spark's rows have them, as the engine's values: patterns, cases, and what happens to them.


@dataclass(frozen=True, slots=True)
class Hit:
    """What happens to the brokers of a pattern, by their places; nothing in the scenario ``now``."""

    blows: tuple[Assumption, ...]
    at_once: bool
    parts: tuple[tuple[Assumption, ...], ...] = ()
    """Of a scenario of two parts: what each of them is alone."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Partitions to which every outage does the same."""

    pattern: Pattern
    case: OutageCase


def kind_of_key(key: Mapping[str, Any], rules: Sequence[RuleSet]) -> Kind:
    """What a key (`kelr.fleet.assess.shapes.KEY`) says of the partition.

    Args:
        rules: the rule sets that keys name by their places.
    """
    statuses = tuple(map(BrokerStatus, key["statuses"]))
    pattern = Pattern(
        state=_state(key["state"], key["topic"]),
        statuses=statuses[: key["own"]],
        config=_config(key["config"]),
        first_partition_replicas=key["first_replicas"],
        logs=tuple(map(_log, key["logs"] or ())),
        elr_enabled=key["elr_enabled"],
        rules=rules[key["rules"]],
    )
    if key["is_first"]:
        return Kind(pattern, case_of_first(pattern))
    case = case_of_pattern(pattern)
    if key["first"] is not None:
        # As `beside_first` has it: the brokers that partition 0 alone names come behind the partition's own.
        case = replace(case, statuses=statuses, first=_state(key["first"], key["topic"]))
    return Kind(pattern, case)


def hit_of(row: Mapping[str, Any]) -> Hit:
    """What a hit of a key says."""
    parts = () if row["first"] is None else (_blows(row["first"]), _blows(row["second"]))
    return Hit(_blows(row["blows"]), bool(row["at_once"]), parts)


def _blows(codes: Iterable[int]) -> tuple[Assumption, ...]:
    return tuple(map(blow_of, codes))


def _state(row: Mapping[str, Any], topic: str) -> PartitionState:
    def known(group: Sequence[int] | None) -> tuple[int, ...] | None:
        return None if group is None else tuple(group)

    return PartitionState(
        topic=topic,
        partition=0,
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        replicas=tuple(row["replicas"]),
        isr=tuple(row["isr"]),
        elr=known(row["elr"]),
        last_known_elr=known(row["last_known_elr"]),
        offline_replicas=known(row["offline_replicas"]),
        adding=known(row["adding"]),
        removing=known(row["removing"]),
        recovering=row["recovering"],
    )


def _config(row: Mapping[str, Any]) -> TopicConfig:
    return TopicConfig(
        min_insync_replicas=row["min_isr"],
        min_insync_replicas_source=ConfigSource(row["min_isr_source"]),
        unclean_leader_election=row["unclean"],
        unclean_leader_election_source=ConfigSource(row["unclean_source"]),
        cleanup_policy=None if row["cleanup"] is None else tuple(row["cleanup"]),
        recovery_strategy=row["strategy"],
    )


def _log(row: Mapping[str, Any]) -> LogAnswer:
    unclean_shutdown = None if row["clean_shutdown"] is None else not row["clean_shutdown"]
    if row["unheard"] is not None:
        return LogUnavailable(row["replica"], LogUnavailableReason(row["unheard"]), unclean_shutdown=unclean_shutdown)
    lineage = row["lineage"]
    return ReplicaLog(
        replica=row["replica"],
        log_end=row["log_end"],
        last_epoch=row["last_epoch"],
        current_leader_epoch=row["current_leader_epoch"],
        high_watermark=row["high_watermark"],
        log_start=row["log_start"],
        lineage=None if lineage is None else tuple(EpochEnd(one["epoch"], one["end_offset"]) for one in lineage),
        source=row["how"],
        last_stable_offset=row["last_stable_offset"],
        unclean_shutdown=unclean_shutdown,
        saved_high_watermark=row["saved_high_watermark"],
        saved_epoch=row["saved_epoch"],
        may_have_held_more=bool(row["may_have_held_more"]),
    )


# Deciding.


_GRADES = (
    LossCertainty.PROVEN_NONE,
    LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR,
    LossCertainty.BOUNDED,
    LossCertainty.UNKNOWN,
)
"""From certain to nothing known."""
_REMEMBERED = 10_000
"""So many kinds of partitions a worker remembers; all are forgotten when there are more, and decided again."""

Outcome = dict[str, Any]
"""The fields of `kelr.fleet.assess.shapes.OUTCOME`."""


def decide_batches(batches: Iterable[RecordBatch], rules: Sequence[RuleSet]) -> Iterator[RecordBatch]:
    """For mapInArrow: keys in, keys with their outcomes out (`DECIDED`).

    Args:
        rules: the rule sets that the keys name by their places.
    """
    import pyarrow as pa  # noqa: PLC0415 - for workers, and for the tests of what they do
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    from kelr.fleet.assess.shapes import DECIDED  # noqa: PLC0415

    outcomes_type = to_arrow_type(DECIDED["outcomes"].dataType)
    deciding = Deciding(rules)
    for batch in batches:
        keys = batch.column("key")
        outcomes = pa.array([deciding.outcomes(key) for key in keys.to_pylist()], outcomes_type)
        yield pa.RecordBatch.from_arrays([keys, outcomes], names=["key", "outcomes"])


class Deciding:
    """Decides keys; what it has decided once it remembers."""

    def __init__(self, rules: Sequence[RuleSet]) -> None:
        self._rules = rules
        self._known: dict[Kind, _Known] = {}

    def outcomes(self, key: Mapping[str, Any]) -> list[Outcome]:
        """What comes of each hit of a key (`KEY`), in their order."""
        kind = kind_of_key(key, self._rules)
        known = self._known.get(kind)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[kind] = _Known(kind)
        return [known.outcome(hit_of(hit)) for hit in key["hits"]]


class _Known:
    """A kind of partitions, and what was decided of it."""

    def __init__(self, kind: Kind) -> None:
        self._pattern = kind.pattern
        self._case = kind.case
        self._seen = Seen(KnownCase(kind.case), Placed(kind.case, tuple(range(len(kind.case.statuses)))))
        self._snapshot = kind.pattern.snapshot()
        self._verdict = verdict_of(decide(self._snapshot, kind.pattern.state, kind.pattern.rules))
        self._still = self._seen.known.fates((), at_once=False)
        self._told: dict[Hit, Outcome] = {}
        self._ends: dict[tuple[tuple[Assumption, ...], bool], tuple[Counter[str], Outcome]] = {}

    def outcome(self, hit: Hit) -> Outcome:
        told = self._told.get(hit)
        if told is None:
            told = self._told[hit] = self._outcome(hit) if hit.blows else self._now()
        return told

    def _outcome(self, hit: Hit) -> Outcome:
        counts, told = self._after(hit.blows, hit.at_once)
        adds = Counter(counts)
        for part in hit.parts:
            adds.subtract(self._after(part, hit.at_once)[0])
        if hit.parts:
            adds.update(self._counts_now())
        else:
            adds.subtract(self._counts_now())
        return {**told, "adds": _written(adds)}

    # Nothing happens.

    def _now(self) -> Outcome:
        verdict, still = self._verdict, self._still
        unclean = next((one for one in verdict.elections if one.election is ElectionType.UNCLEAN), None)
        grade = self._grade_by_itself()
        adds = self._counts_now()
        adds.update(["partitions", *(f"new.{name}" for name in _names(self._seen.known.now))])
        adds.update([] if grade is None else [f"grade.{grade}"])
        return {
            "situation": str(verdict.situation),
            "leader": self._pattern.state.leader,
            "elected": verdict.elected,
            "elected_by": _text(verdict.elected_by),
            "waits_for": list(verdict.waits_for),
            "waits_safely": _waits_safely(verdict),
            "standing": _names(still.then),
            "worse": [],
            "grade": _text(grade),
            "depends": False,
            "doubts": list(still.worst.doubts),
            "advice": str(verdict.advice),
            "advised_replica": verdict.advised_replica,
            "unclean_elected": None if unclean is None else unclean.elected,
            "unclean_grade": None if unclean is None else _text(unclean.grade),
            "adds": _written(adds),
        }

    def _counts_now(self) -> Counter[str]:
        """What a partition counts for in a scenario that does not touch it. What is doubtful of it counts as new: of
        what holds now nothing is doubted."""
        new = [f"new.{name}" for name in _names(self._still.new)]
        return Counter([f"situation.{self._verdict.situation}", *_then(self._still.then), *new])

    def _grade_by_itself(self) -> LossCertainty | None:
        elected, by = self._verdict.elected, self._verdict.elected_by
        if elected is None or elected == self._pattern.state.leader or by is ElectedBy.LEADER_STAYS:
            return None
        return loss_of_electing(case_of(self._snapshot, self._pattern.state, self._pattern.rules), elected).grade

    # Something happens.

    def _after(self, blows: tuple[Assumption, ...], at_once: bool) -> tuple[Counter[str], Outcome]:
        known = self._ends.get((blows, at_once))
        if known is None:
            known = self._ends[blows, at_once] = self._imagined(Outage(blows, at_once))
        return known

    def _imagined(self, outage: Outage) -> tuple[Counter[str], Outcome]:
        """What an outage comes to, and what that counts for; the sums of its scenario add that to what holds now."""
        fate = partition_fate(self._case.state, self._seen, outage)
        end = fate.worst
        after = self._seen.known.fates(outage.blows, at_once=outage.at_once).worst.state
        situation = self._verdict_after(after).situation
        grade = self._grade(fate, outage)
        counts = Counter(["touched", f"situation.{situation}", *_then(fate.then)])
        counts.update(f"new.{name}" for name in _names(fate.new))
        counts.update(["depends"] if fate.depends else [])
        counts.update([] if grade is None else [f"grade.{grade}"])
        return counts, {
            "situation": str(situation),
            "leader": end.after.leader,
            "elected": None if end.elected_by is None else end.after.leader,
            "elected_by": _text(end.elected_by),
            "waits_for": sorted({back.broker for back in end.comebacks if back.elected is not None}),
            "waits_safely": _safely(end),
            "standing": _names(fate.then),
            "worse": _names(fate.new),
            "grade": _text(grade),
            "depends": fate.depends,
            "doubts": list(dict.fromkeys(doubt for one in fate.ends for doubt in one.doubts)),
            "advice": None,
            "advised_replica": None,
            "unclean_elected": None,
            "unclean_grade": None,
        }

    def _verdict_after(self, after: ControllerState) -> Verdict:
        """The verdict about the partition as it is then. Of logs nothing is known: what was read is older."""
        case = self._case
        first = after.partitions.get(TopicPartition(case.state.topic, 0))
        count = case.first_partition_replicas if first is None else len(first.replicas)
        before = Snapshot(
            0,
            replace(case.cluster, features=self._snapshot.cluster.features),
            (case.state,),
            {case.state.topic: case.config},
            first_partition_replicas={case.state.topic: count},
        )
        snapshot = snapshot_of(after, before)
        return verdict_of(decide(snapshot, snapshot.partitions[0], case.rules))

    def _grade(self, fate: PartitionFate, outage: Outage) -> LossCertainty | None:
        """How sure the loss is of the elections that are held on the way to the worst end; None where none is."""
        may_lose = bool(fate.worst.then & Standing.MAY_LOSE)
        if fate.worst.elected_by is None and not may_lose:
            return None
        if self._pattern.logs and self._case.first is None:
            found = self._grade_by_logs(fate.worst, outage)
            if found is not None:
                return found
        return LossCertainty.UNKNOWN if may_lose else LossCertainty.PROVEN_NONE

    def _grade_by_logs(self, end: PossibleEnd, outage: Outage) -> LossCertainty | None:
        """The same by the logs that were heard, as `kelr explain --if` counts; the worst of several elections."""
        state = self._case.state
        blows = list(outage.blows)
        if outage.at_once:
            blows.sort(key=lambda blow: -1 if blow.broker not in end.order else end.order.index(blow.broker))
        stranger = len(self._case.statuses)
        cluster = self._case.cluster
        if any(blow.broker == stranger for blow in blows):
            cluster = replace(cluster, brokers=(*cluster.brokers, Broker(stranger, BrokerStatus.LIVE)))
        snapshot = replace(
            self._snapshot,
            cluster=replace(cluster, features=self._snapshot.cluster.features),
            partitions=(state,),
            logs={state.address: self._pattern.logs},
        )
        try:
            imagined = imagine(snapshot, blows, self._case.rules)
        except AssumptionError:
            return None
        changes = (one.changes.get(state.address) for one in imagined.happened)
        grades = [change.loss.grade for change in changes if change is not None and change.loss is not None]
        return max(grades, key=_GRADES.index, default=None)


def _waits_safely(verdict: Verdict) -> list[int]:
    """Those that the partition waits for whose election loses nothing, however they went."""
    risky = {
        one.replica for one in verdict.forecasts if one.elected is None or one.grade is not LossCertainty.PROVEN_NONE
    }
    return [replica for replica in verdict.waits_for if replica not in risky]


def _safely(end: PossibleEnd) -> list[int]:
    risky = {back.broker for back in end.comebacks if not back.loses_nothing}
    return sorted({back.broker for back in end.comebacks} - risky)


def _flags(standing: Standing) -> list[Standing]:
    """The worst first."""
    return [flag for flag in sorted(Standing, reverse=True) if standing & flag]


def _names(standing: Standing) -> list[str]:
    return [column_of(flag) for flag in _flags(standing)]


def _then(standing: Standing) -> list[str]:
    return [f"then.{name}" for name in _names(standing)]


def _text(value: str | None) -> str | None:
    return None if value is None else str(value)


def _written(counts: Counter[str]) -> str:
    """Counts as the column ``adds`` has them."""
    return " ".join(f"{name}={count}" for name, count in sorted(counts.items()) if count)


def counts_written(text: str) -> Counter[str]:
    """What the column ``adds`` says."""
    pairs = (one.rpartition("=") for one in text.split())
    return Counter({name: int(count) for name, _, count in pairs})
