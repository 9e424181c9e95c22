"""What the counts of rows come to: how many partitions each scenario leaves how."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as fn

from kelr.controller import ChosenRules
from kelr.engine.outages.standing import Standing
from kelr.fleet.assess.contexts import Context, day_of
from kelr.fleet.assess.scenarios import Scenario
from kelr.fleet.assess.spreading import Spread
from kelr.fleet.assess.tables import NOW, STANDINGS, column_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RANKED = tuple(
    column_of(flag) for flag in (Standing.MAY_LOSE, Standing.UNPROVEN, Standing.LEADERLESS, Standing.UNDER_MIN_ISR)
)
"""What makes a topic one of the worst, the worst first."""
_FEW = 5
_LASTING = ("partitions", "then.", "situation.", f"new.{column_of(Standing.DOUBTFUL)}")
"""What partitions that a scenario does not touch count for in it."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Counted:
    """What the rows of assessments add up to, by cluster, rules and scenario."""

    adds: Mapping[tuple[str, str, str], Counts]
    worst_topics: Mapping[tuple[str, str, str], tuple[str, ...]]


def count(rows: DataFrame) -> Counted:
    """Add up rows of assessments; what comes to the driver grows with clusters and scenarios alone."""
    where = ("cluster", "rules", "scenario")
    alike = rows.groupBy(*where, "adds").agg(fn.count("*").alias("rows"))
    each = alike.select(*where, "rows", fn.explode(fn.split("adds", " ")).alias("add")).where("add != ''")
    parts = fn.split("add", "=")
    added = (
        each.select(*where, parts[0].alias("name"), (parts[1].cast("long") * fn.col("rows")).alias("value"))
        .groupBy(*where, "name")
        .agg(fn.sum("value").alias("value"))
        .groupBy(*where)
        .agg(fn.map_from_entries(fn.collect_list(fn.struct("name", "value"))).alias("adds"))
    )
    found = {(row["cluster"], row["rules"], row["scenario"]): row["adds"] for row in added.collect()}
    return Counted(found, _worst_topics(rows))


def _worst_topics(rows: DataFrame) -> dict[tuple[str, str, str], tuple[str, ...]]:
    where = ("cluster", "rules", "scenario")
    worse = fn.when(fn.col("scenario") == NOW, fn.col("standing")).otherwise(fn.col("worse"))
    ranked = fn.array(*map(fn.lit, _RANKED))
    bad = rows.withColumn("bad", worse).where(fn.arrays_overlap("bad", ranked))
    counts = [fn.count_if(fn.array_contains("bad", name)).alias(name) for name in _RANKED]
    order = Window.partitionBy(*where).orderBy(*(fn.desc(name) for name in _RANKED), "topic")
    few = (
        bad.groupBy(*where, "topic")
        .agg(*counts)
        .withColumn("place", fn.row_number().over(order))
        .where(fn.col("place") <= _FEW)
        .select(*where, "topic", "place")
    )
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in sorted(few.collect(), key=lambda one: int(one["place"])):
        found[row["cluster"], row["rules"], row["scenario"]].append(row["topic"])
    return {key: tuple(topics) for key, topics in found.items()}


@dataclass(frozen=True, slots=True)
class Sums:
    """A row of assessment_sums."""

    context: Context
    chosen: ChosenRules
    scenario: Scenario | None
    """None: nothing happens."""
    counts: Counts
    """`partitions`, `touched`, `depends`, and by prefix `new.`, `then.`, `situation.`, `grade.`"""
    worst_topics: tuple[str, ...]

    def row(self) -> tuple[Any, ...]:
        """As the table has it."""
        scenario, counts = self.scenario, self.counts
        return (
            NOW if scenario is None else scenario.name,
            NOW if scenario is None else scenario.kind,
            self.chosen.rules.name,
            datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.context.at_us),
            None if scenario is None else scenario.how,
            [] if scenario is None else list(scenario.outage.brokers),
            list(self.racks),
            "nothing happens" if scenario is None else str(scenario.outage),
            self.chosen.reason,
            self.chosen.certain,
            self.context.newest,
            counts.get("partitions", 0),
            counts.get("touched", 0),
            *(counts.get(f"new.{name}", 0) for name in STANDINGS),
            counts.get("depends", 0),
            {name: counts.get(f"then.{name}", 0) for name in STANDINGS},
            _by_prefix(counts, "situation."),
            _by_prefix(counts, "grade."),
            list(self.worst_topics),
            self.context.id,
            day_of(self.context.at_us),
        )

    @property
    def racks(self) -> tuple[str, ...]:
        """Of the brokers to which something happens, as far as they are known."""
        racks = () if self.scenario is None else map(self._rack, self.scenario.outage.brokers)
        return tuple(dict.fromkeys(rack for rack in racks if rack is not None))

    def _rack(self, broker: int) -> str | None:
        known = self.context.cluster.broker(broker)
        return None if known is None else known.rack


def _by_prefix(counts: Counts, prefix: str) -> dict[str, int]:
    return {
        name.removeprefix(prefix): value for name, value in sorted(counts.items()) if name.startswith(prefix) and value
    }


def sums(spread: Spread, counted: Counted) -> Iterator[Sums]:
    """The sums of every scenario: those of nothing, and what the rows of it and of its parts add to them."""
    for context in spread.contexts:
        for chosen in spread.chosen[context.id]:
            yield from _of_cluster(context, chosen, spread, counted)


def _of_cluster(context: Context, chosen: ChosenRules, spread: Spread, counted: Counted) -> Iterator[Sums]:
    def of(name: str) -> Counts:
        return counted.adds.get((context.id, chosen.rules.name, name), {})

    def topics(names: Sequence[str]) -> tuple[str, ...]:
        found = (counted.worst_topics.get((context.id, chosen.rules.name, name), ()) for name in names)
        return tuple(dict.fromkeys(topic for some in found for topic in some))[:_FEW]

    now = of(NOW)
    yield Sums(context, chosen, None, now, topics([NOW]))
    start = Counter({name: value for name, value in now.items() if name.startswith(_LASTING)})
    for scenario in spread.scenarios[context.id]:
        yield Sums(context, chosen, scenario, _added(start, of(scenario.name)), topics([scenario.name]))
    for scenario, first, second in spread.joint(context.id):
        counts = _added(start, of(first.name), of(second.name), of(scenario.name))
        yield Sums(context, chosen, scenario, counts, topics([scenario.name, first.name, second.name]))


def _added(start: Counter[str], *adds: Counts) -> Counts:
    found = Counter(start)
    for one in adds:
        found.update(one)
    return found
