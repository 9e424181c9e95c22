"""A plan as files and shell lines for people who may run only public tools."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.words import plural
from kelr.model import LOG_TYPES, ElectionType, Method, Plan, PlannedElection

KAFKA_PYTHON_CONNECTION = "{kafka-python}"
"""Stands in a line where the connection flags of kafka-python's command line go."""


@dataclass(frozen=True, slots=True)
class StockStep:
    """One step: a file, where the tool takes one, and the shell lines that use it, in order."""

    title: str
    file: str | None
    """The file's name; None where the step takes none."""
    text: str
    """The file's content: JSON, ending with a newline; empty where there is no file."""
    lines: tuple[str, ...]
    """``{stock}`` and ``{kafka-python}`` stand where the connection flags of each tool go."""


@dataclass(frozen=True, slots=True)
class StockFiles:
    """A plan for Kafka's own tools."""

    steps: tuple[StockStep, ...]
    limits: tuple[str, ...]
    """What these tools cannot do, and what nobody looks after; a sentence each."""


def stock_files(plan: Plan) -> StockFiles:
    """The plan's elections as steps, in order: reorder, elect, restore the order; then preferred elections.

    kafka-reassign-partitions.sh refuses an assignment that names a broker that is not up ("Unknown broker id", seen on
    4.0.0 and 4.3.1), so such partitions are reordered with kafka-python's command line.
    """
    reordered = [one for one in plan.elections if one.method is Method.REORDER]
    unclean = [one for one in plan.elections if one.method in {Method.REORDER, Method.UNCLEAN}]
    preferred = [one for one in plan.elections if one.method is Method.PREFERRED]
    steps = (
        *_reordering("reorder", "Put the wanted replica first", reordered, restore=False),
        *_election("unclean", unclean),
        *_reordering("restore", "Restore the replicas' order", reordered, restore=True),
        *_election("preferred", preferred),
        *_designations([one for one in plan.elections if one.method is Method.NATIVE]),
        *(step for kind in LOG_TYPES for step in _election(kind, _by_log(plan, kind))),
    )
    return StockFiles(steps, tuple(_limits(plan, reordered, unclean)))


def _by_log(plan: Plan, kind: ElectionType) -> list[PlannedElection]:
    return [one for one in plan.elections if one.method is Method.LONGEST_LOG and one.election is kind]


def _reordering(name: str, title: str, elections: Sequence[PlannedElection], *, restore: bool) -> Iterator[StockStep]:
    whole = [one for one in elections if not _names_the_dead(one)]
    if whole:
        file = f"{name}.json"
        tool = f"kafka-reassign-partitions.sh {STOCK_CONNECTION} --reassignment-json-file {file}"
        content = {
            "version": 1,
            "partitions": [
                {
                    "topic": one.topic,
                    "partition": one.partition,
                    "replicas": list(one.restores if restore else one.order),
                }
                for one in whole
            ],
        }
        lines = (f"{tool} --execute &&", f"{tool} --verify")
        yield StockStep(f"{title} ({plural(len(whole), 'partition')})", file, _json(content), lines)
    dead = [one for one in elections if _names_the_dead(one)]
    if dead:
        count = plural(len(dead), "partition")
        yield StockStep(
            f"{title}, where a replica's broker is down ({count})",
            None,
            "",
            tuple(_by_kafka_python(one, restore=restore) for one in dead),
        )


def _by_kafka_python(one: PlannedElection, *, restore: bool) -> str:
    order = ",".join(map(str, one.restores if restore else one.order))
    line = f"kafka-python admin {KAFKA_PYTHON_CONNECTION} partitions alter-reassignments -r {one.address}={order}"
    # It ends with status 0 also where Kafka refuses; without the order the election would take another replica.
    return line if restore else f"{line} | tee /dev/stderr | grep -q ': None}}' || echo 'NOT REORDERED: {one.address}'"


def _names_the_dead(one: PlannedElection) -> bool:
    return not set(one.order) <= set(one.evidence.live)


def _election(kind: str, elections: Sequence[PlannedElection]) -> Iterator[StockStep]:
    if not elections:
        return
    file = f"elect-{kind}.json"
    content = {"partitions": [{"topic": one.topic, "partition": one.partition} for one in elections]}
    line = f"kafka-leader-election.sh {STOCK_CONNECTION} --election-type {kind} --path-to-json-file {file}"
    yield StockStep(f"Elect ({kind}, {plural(len(elections), 'partition')})", file, _json(content), (line,))


def _designations(elections: Sequence[PlannedElection]) -> Iterator[StockStep]:
    """KIP-966's own tool: the file names the leaders."""
    if not elections:
        return
    file = "elect-designation.json"
    content = {
        "partitions": [
            {"topic": one.topic, "partition": one.partition, "desiredLeader": one.elect} for one in elections
        ]
    }
    line = f"kafka-leader-election.sh {STOCK_CONNECTION} --election-type designation --path-to-json-file {file}"
    yield StockStep(f"Elect by name ({plural(len(elections), 'partition')})", file, _json(content), (line,))


def _limits(plan: Plan, reordered: Sequence[PlannedElection], unclean: Sequence[PlannedElection]) -> Iterator[str]:
    yield (
        "These tools look at nothing before they elect: compare leader, ISR, ELR and replica order with the plan first,"
        " and stop where anything differs."
    )
    if any(one.method in {Method.NATIVE, Method.LONGEST_LOG} for one in plan.elections):
        yield (
            "kafka-leader-election.sh knows designation and the longest log where it comes with the whole of KIP-966,"
            " as no release does."
        )
    if unclean:
        yield (
            "kafka-leader-election.sh elects by Kafka's rules, and reports success for any replica: check the leader"
            " afterwards."
        )
    if reordered:
        yield (
            "Take a partition out of elect-unclean.json if its reordering failed: the election would take the first"
            " live replica in the old order. Nothing restores the order by itself if the last step is left out."
        )
    if any(_names_the_dead(one) for one in reordered):
        yield (
            'kafka-reassign-partitions.sh refuses an order that names a broker that is down ("Unknown broker id"):'
            " for those partitions the lines use kafka-python's command line (pip install kafka-python), which sends"
            " the same request."
        )
    for broker in sorted({broker for one in reordered for broker in one.uncordons}):
        line = f"kafka-configs.sh {STOCK_CONNECTION} {broker_config_change(broker, 'cordoned.log.dirs', '')}"
        yield (
            f"Kafka takes no order that names broker {broker} while it is cordoned. First: {line}; at the end give it"
            " the value that it had."
        )
    if any(one.restores != one.evidence.replicas for one in reordered):
        yield "Replicas on brokers that are not registered leave the assignment, and are not put back by the last step."


def broker_config_change(broker: int, name: str, value: str | None) -> str:
    """What follows kafka-configs.sh and its connection to give a broker's config this own value; None removes it.
    Brackets keep commas together (ConfigCommand.parseConfigsToBeAdded), and a shell would take them for a pattern."""
    change = f"--delete-config {name}" if value is None else f"--add-config {shlex.quote(f'{name}=[{value}]')}"
    return f"--alter --entity-type brokers --entity-name {broker} {change}"


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
