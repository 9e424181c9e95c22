"""``kelr fleet assess`` as a function: the keys of all partitions, each decided once, joined, written and summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kelr.controller import RuleSet
from kelr.errors import BadInputError
from kelr.fleet.assess.asof import FEW_ROWS, logs, states, topics
from kelr.fleet.assess.contexts import contexts, known_clusters
from kelr.fleet.assess.deciding import decide_batches
from kelr.fleet.assess.patterns import BROKERS, REFS, keyed
from kelr.fleet.assess.scenarios import Family, Wanted, joint_name
from kelr.fleet.assess.shapes import DECIDED, KEY, OUTCOME
from kelr.fleet.assess.spreading import Spread, spread
from kelr.fleet.assess.sums import Sums, count, sums
from kelr.fleet.assess.tables import ASSESSMENT_SUMS, ASSESSMENTS, NOW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kelr.fleet.lake import Lake

_FEW_KEYS = 100_000
"""So many decided keys are sent to every worker."""
_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"
"""A task that writes to so many folders at the same time needs not sort its rows by folder."""
_FOLDERS_AT_ONCE, _NO_FOLDERS = "64", "0"
_BROKERS = ("waits_for", "waits_safely")
_ONE_BROKER = ("leader", "elected", "advised_replica", "unclean_elected")


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be assessed."""

    wanted: Wanted = field(default_factory=Wanted)
    rules: tuple[RuleSet | None, ...] = (None,)
    """None stands for the rules that a cluster was found to run."""
    at_us: int | None = None
    """The moment, in microseconds since 1970 UTC; None: the newest."""
    clusters: tuple[str, ...] = ()
    """Ids or names; none: all."""
    topic: str | None = None
    """A name with ``*`` and ``?``."""


@dataclass(frozen=True, slots=True)
class Assessed:
    """What came of it."""

    sums: tuple[Sums, ...]
    """In the order of clusters, rules and scenarios."""
    patterns: int
    """So many different cases there were to decide."""
    unknown: tuple[str, ...]
    """Clusters of whose brokers nothing was known then: they were left out."""

    @property
    def lost_directories(self) -> dict[str, tuple[int, ...]]:
        """By cluster: brokers that have lost a log directory; which replicas were in it is not known."""
        found = {one.context.name: one.context.lost_directories for one in self.sums}
        return {cluster: brokers for cluster, brokers in found.items() if brokers}


def assess(lake: Lake, question: Question) -> Assessed:
    """Assess partitions, and write assessments and assessment_sums in place of those of the same clusters.

    Raises:
        BadInputError: there is no such cluster, no partition then, or a scenario fits no cluster.
        RefusedError: another run is changing the lake.
    """
    wanted = _clusters(lake, question.clusters)
    found = contexts(lake, wanted, question.at_us)
    unknown = tuple(sorted(set(wanted) - {one.id for one in found}))
    if not found:
        raise BadInputError(
            f"of {len(unknown)} clusters none is known at that time" if unknown else f"{lake.place} has no partition",
            next_step="ingest their metadata logs or snapshots; --at is a time in UTC",
        )
    plan = spread(found, question.wanted, question.rules)
    with lake.changing() as changes:
        frame = keys_of(lake, plan, question.at_us, question.topic)
        decided = decided_keys(frame, plan.rules).persist()
        patterns = decided.count()
        try:
            folders = [{"cluster": one.id} for one in plan.contexts]
            rows = assessments(frame, decided, plan, few=patterns <= _FEW_KEYS)
            before = lake.spark.conf.get(_WRITERS) or _NO_FOLDERS
            lake.spark.conf.set(_WRITERS, _FOLDERS_AT_ONCE)
            try:
                changes.replace(ASSESSMENTS, rows, folders)
            finally:
                lake.spark.conf.set(_WRITERS, before)
        finally:
            decided.unpersist()
        written = changes.read(ASSESSMENTS).where(fn.col("cluster").isin([one.id for one in plan.contexts]))
        summed = tuple(sums(plan, count(written)))
        table = lake.spark.createDataFrame([one.row() for one in summed], ASSESSMENT_SUMS.schema)
        changes.replace(ASSESSMENT_SUMS, table.coalesce(1), folders)
    return Assessed(summed, patterns, unknown)


def keys_of(lake: Lake, plan: Spread, at_us: int | None, topic: str | None = None) -> DataFrame:
    """The key of every partition that is assessed, once for each rule set, with its brokers and scenarios."""
    partitions = states(lake, plan.contexts, at_us, topic)
    of_topics = topics(lake, plan.contexts, at_us, partitions)
    # Files are packed into tasks by their bytes, and a few MiB are millions of partitions, each of them many rows of
    # the answer: without this a task has a whole large cluster, and the others wait for it.
    frame = partitions.hint("rebalance").join(_small(of_topics), ["cluster", "topic"], "left")
    heard = logs(lake, plan.contexts, at_us)
    if heard is None:
        frame = frame.withColumn("logs", fn.lit(None).cast(KEY["logs"].dataType))
    else:
        frame = frame.join(_small(heard), ["cluster", "topic", "partition", "leader_epoch"], "left")
    frame = frame.join(fn.broadcast(plan.context_rows(lake.spark)), "cluster")
    frame = frame.withColumn("rules", fn.explode("rule_sets"))
    return keyed(frame, plan.families).select(
        "cluster", "topic", "partition", "rules", "key", BROKERS, REFS, "at_us", "day"
    )


def assessments(frame: DataFrame, decided: DataFrame, plan: Spread, *, few: bool) -> DataFrame:
    """The rows of the table.

    Args:
        frame: `keys_of`.
        few: whether the decided keys are few enough to be sent to every worker.
    """
    spark = frame.sparkSession
    joined = frame.join(fn.broadcast(decided) if few else decided, "key")
    each = joined.select(
        "cluster", "topic", "partition", "rules", "at_us", "day", BROKERS, fn.inline(fn.arrays_zip(REFS, "outcomes"))
    )
    names = plan.scenario_rows(spark)
    first = names.select(fn.col("number").alias("n1"), fn.col("name").alias("name1"), fn.col("kind").alias("kind1"))
    second = names.select(fn.col("number").alias("n2"), fn.col("name").alias("name2"), fn.col("kind").alias("kind2"))
    each = each.join(fn.broadcast(first), fn.col(f"{REFS}.first") == fn.col("n1"), "left")
    if plan.families:
        each = each.join(fn.broadcast(second), fn.col(f"{REFS}.second") == fn.col("n2"), "left")
    else:
        each = each.withColumns({"name2": fn.lit(None).cast("string"), "kind2": fn.lit(None).cast("string")})
    joint = fn.concat(fn.col("name1"), fn.lit(joint_name("", "")), fn.col("name2"))
    values = {name: fn.col(f"outcomes.{name}") for name in OUTCOME.fieldNames()}
    values |= {name: _id(values[name]) for name in _ONE_BROKER}
    values |= {name: fn.transform(values[name], _id) for name in _BROKERS}
    values |= {
        "scenario": fn.coalesce(joint, fn.col("name1"), fn.lit(NOW)),
        "kind": _kind(plan.families),
        "rules": fn.get(fn.array(*(fn.lit(one.name) for one in plan.rules)), fn.col("rules")),
        "at": fn.timestamp_micros("at_us"),
        "date": fn.col("day"),
    }
    return each.select(*(values.get(name, fn.col(name)).alias(name) for name in ASSESSMENTS.columns))


def _clusters(lake: Lake, asked: Sequence[str]) -> tuple[str, ...]:
    known = known_clusters(lake)
    if not asked:
        return known
    names = {lake.version.clusters.get(one, one): one for one in known} | {one: one for one in known}
    missing = [one for one in asked if one not in names]
    if missing:
        there_are = ", ".join(sorted(lake.version.clusters.get(one, one) for one in known)) or "none"
        raise BadInputError(
            f"{lake.place} has no cluster {missing[0]!r}; there are: {there_are}", next_step="leave --cluster out"
        )
    return tuple(dict.fromkeys(names[one] for one in asked))


def decided_keys(frame: DataFrame, rules: Sequence[RuleSet]) -> DataFrame:
    """Every key once, decided. Keys of one pattern go to one worker, which decides what they have in common once."""
    tasks = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    distinct = frame.select("key").distinct().repartition(tasks, "key.state", "key.statuses", "key.config")
    return distinct.mapInArrow(partial(decide_batches, rules=tuple(rules)), DECIDED)


def _small(frame: DataFrame) -> DataFrame:
    """A table that is sent to every worker where it is small enough, and else left to Spark."""
    return fn.broadcast(frame) if frame.limit(FEW_ROWS + 1).count() <= FEW_ROWS else frame


def _id(place: Column) -> Column:
    """The id of the broker at a place; what names nobody stays."""
    return fn.when(place < 0, place).otherwise(fn.get(BROKERS, place))


def _kind(families: Sequence[Family]) -> Column:
    """Two brokers are a pair; a broker and a rack are what a rolling restart makes of them."""
    found = fn.coalesce("kind1", fn.lit(NOW))
    for family in families:
        second = "broker" if family.first is family.second else "rack"
        found = fn.when(fn.col("kind2") == second, family.kind).otherwise(found)
    return found
