"""What every worker has to know of the clusters: their brokers, rules and scenarios, in one small table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from kelr.controller import ChosenRules, RuleSet, choose_rules
from kelr.engine.outages.worst import MOST_SETS
from kelr.errors import BadInputError
from kelr.fleet.assess.asof import COLUMN_OF
from kelr.fleet.assess.contexts import Context, day_of
from kelr.fleet.assess.scenarios import Family, Scenario, Wanted, together
from kelr.fleet.assess.shapes import blow_code
from kelr.model import BrokerStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TEXT, _INT, _LONG, _FLAG = StringType(), IntegerType(), LongType(), BooleanType()
_NUMBERS = ArrayType(_INT, False)
_CONTEXT = StructType(
    [
        StructField("cluster", _TEXT),
        StructField("source", _TEXT),
        StructField("statuses", MapType(_INT, _TEXT)),
        StructField("unlisted", _TEXT),
        StructField("epochs", MapType(_INT, _LONG)),
        StructField("elr_enabled", _FLAG),
        StructField("rule_sets", _NUMBERS),
        StructField("at_us", _LONG),
        StructField("day", DateType()),
        StructField("offset", _INT),
        StructField("blows", ArrayType(ArrayType(_LONG, False), False)),
        StructField("at_once", ArrayType(_FLAG, False)),
        StructField("groups", _NUMBERS),
        StructField("scenarios_of", MapType(_INT, _NUMBERS)),
        StructField("returning", _NUMBERS),
        *(StructField(f"default_{name}", _TEXT) for name in COLUMN_OF.values()),
    ]
)
_NAMES = StructType([StructField("number", _INT), StructField("name", _TEXT), StructField("kind", _TEXT)])


@dataclass(frozen=True, slots=True)
class Spread:
    """The clusters that are assessed, and all that is assessed of each."""

    contexts: tuple[Context, ...]
    rules: tuple[RuleSet, ...]
    """Every rule set that any cluster is assessed by; keys name them by their places."""
    chosen: Mapping[str, tuple[ChosenRules, ...]]
    """By cluster: by which rules, and why."""
    scenarios: Mapping[str, tuple[Scenario, ...]]
    """By cluster: those that are one of `Wanted.of`; their numbers go on from one cluster to the next."""
    families: tuple[Family, ...]

    def joint(self, cluster: str) -> Iterator[tuple[Scenario, Scenario, Scenario]]:
        """The scenarios of two parts, each with its parts."""
        for family in self.families:
            yield from _joint(self.scenarios[cluster], family)

    def scenario_rows(self, spark: SparkSession) -> DataFrame:
        """Number, name and kind of each scenario of one part."""
        every = [one for context in self.contexts for one in self.scenarios[context.id]]
        return spark.createDataFrame([(number, one.name, one.kind) for number, one in enumerate(every)], _NAMES)

    def context_rows(self, spark: SparkSession) -> DataFrame:
        """One row for each cluster; arrays by the numbers of its scenarios."""
        offset, rows = 0, []
        for context in self.contexts:
            scenarios = self.scenarios[context.id]
            rows.append(self._context_row(context, scenarios, offset))
            offset += len(scenarios)
        return spark.createDataFrame(rows, _CONTEXT)

    def _context_row(self, context: Context, scenarios: Sequence[Scenario], offset: int) -> tuple[object, ...]:
        cluster = context.cluster
        of_broker: dict[int, list[int]] = {}
        for number, scenario in enumerate(scenarios):
            for broker in scenario.outage.brokers:
                of_broker.setdefault(broker, []).append(number)
        unlisted = BrokerStatus.UNREGISTERED if cluster.lists_fenced_brokers else BrokerStatus.OFFLINE
        return (
            context.id,
            context.source,
            {broker.id: str(broker.status) for broker in cluster.brokers},
            str(unlisted),
            {broker.id: broker.broker_epoch for broker in cluster.brokers if broker.broker_epoch is not None},
            cluster.features.elr_enabled,
            [self.rules.index(one.rules) for one in self.chosen[context.id]],
            context.at_us,
            day_of(context.at_us),
            offset,
            [[blow_code(blow) for blow in one.outage.blows] for one in scenarios],
            [one.outage.at_once for one in scenarios],
            [int(one.group) for one in scenarios],
            of_broker,
            [number for number, one in enumerate(scenarios) if one.comes_back],
            *(context.defaults.get(key) for key in COLUMN_OF),
        )


def spread(contexts: Sequence[Context], wanted: Wanted, rules: Sequence[RuleSet | None]) -> Spread:
    """What is to be assessed.

    Args:
        rules: None stands for the rules that a cluster was found to run.

    Raises:
        BadInputError: a scenario of a file fits no cluster, or two scenarios of a cluster have one name; or there are
            more scenarios than anybody can look at.
    """
    scenarios = {context.id: wanted.of(context.cluster, context.name) for context in contexts}
    _check(scenarios, wanted)
    chosen = {context.id: _chosen(context, rules) for context in contexts}
    every = tuple(dict.fromkeys(one.rules for found in chosen.values() for one in found))
    return Spread(tuple(contexts), every, chosen, scenarios, wanted.families)


def _chosen(context: Context, rules: Sequence[RuleSet | None]) -> tuple[ChosenRules, ...]:
    own = choose_rules(context.cluster.features)
    found: dict[str, ChosenRules] = {}
    for one in rules or (None,):
        # A set that is named and that the cluster runs anyway is assessed once, as the cluster runs it.
        if one is None or one.name == own.rules.name:
            found[own.rules.name] = replace(own, certain=True) if one is not None else own
        else:
            found[one.name] = ChosenRules(one, "as asked for", certain=True)
    return tuple(found.values())


def _check(scenarios: Mapping[str, Sequence[Scenario]], wanted: Wanted) -> None:
    for written in wanted.written:
        if not any(one.name == written.name for found in scenarios.values() for one in found):
            raise BadInputError(
                f"{written.where}: no cluster has the brokers and racks of {written.name!r}",
                next_step="kelr fleet assess without --scenarios names the brokers and racks that there are",
            )
    count = 0
    for cluster, found in scenarios.items():
        names = [one.name for one in found]
        twice = next((name for name in set(names) if names.count(name) > 1), None)
        if twice is not None:
            raise BadInputError(f"cluster {cluster} has two scenarios that are called {twice!r}")
        groups = [sum(one.group is group for one in found) for group in range(4)]
        count += len(found) + sum(groups[one.first] * groups[one.second] for one in wanted.families)
    if count > MOST_SETS:
        raise BadInputError(
            f"these are up to {count:,} scenarios, and at most {MOST_SETS:,} are looked at",
            next_step="choose clusters with --cluster, or name the brokers in a scenario file",
        )


def _joint(scenarios: Sequence[Scenario], family: Family) -> Iterator[tuple[Scenario, Scenario, Scenario]]:
    first = [one for one in scenarios if one.group is family.first]
    second = [one for one in scenarios if one.group is family.second]
    pairs = combinations(first, 2) if family.first is family.second else ((one, two) for one in first for two in second)
    for one, other in pairs:
        found = together(one, other, family)
        if found is not None:
            yield found, one, other
