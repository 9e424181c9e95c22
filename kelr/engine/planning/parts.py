"""Parts of a plan: some of its elections, to be carried out by themselves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kelr.model import Plan, TopicPartition


def only_topics(plan: Plan, topics: Collection[str]) -> Plan:
    """The plan with the elections of these topics alone; of a name that it does not have nothing is left."""
    return replace(
        plan,
        elections=tuple(one for one in plan.elections if one.topic in topics),
        not_planned=tuple(one for one in plan.not_planned if one.topic in topics),
    )


def only_partitions(plan: Plan, addresses: Collection[TopicPartition]) -> Plan:
    """The plan with the elections of these partitions alone."""
    return replace(
        plan,
        elections=tuple(one for one in plan.elections if one.address in addresses),
        not_planned=tuple(one for one in plan.not_planned if one.address in addresses),
    )


def first(plan: Plan, count: int) -> Plan:
    """The plan with its first `count` elections, in the order of their addresses."""
    return replace(plan, elections=plan.elections[: max(count, 0)])
