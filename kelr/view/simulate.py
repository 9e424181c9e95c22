"""A scenario as it unfolds: each directive with the state and decision after it, or as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kelr.simulation.language import SEPARATOR
from kelr.simulation.logs import SimulatedLog
from kelr.simulation.story import Reached, StoryStep
from kelr.simulation.words import verdict_line
from kelr.view.columns import Column, Json, RowT, View
from kelr.view.output import Output
from kelr.view.schema import document_schema, item_schema
from kelr.view.styled import Style, Text, plain, styled

KIND = "kelr/simulate"


def simulate_view() -> View[StoryStep]:
    """One item for each directive."""
    return View(KIND, _STEP_COLUMNS, block=_Telling())


def simulate_schema() -> Mapping[str, Json]:
    """The schema of the document, down to the logs."""
    step, partition = dict(item_schema(_STEP_COLUMNS)), dict(item_schema(_PARTITION_COLUMNS))
    _set_items(partition, "logs", item_schema(_LOG_COLUMNS))
    _set_items(step, "partitions", partition)
    return document_schema(simulate_view(), step)


def _set_items(schema: dict[str, Json], key: str, items: Mapping[str, Json]) -> None:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties[key] = {**properties[key], "items": items}


class _Telling:
    """Tells one step after the other; what the engine says of a partition is not repeated while it stays the same."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def __call__(self, step: StoryStep) -> Iterator[Text]:
        """The story, the directive, what it printed, and what the engine says of the partitions that it changed."""
        if step.story:
            yield plain("")
        for line in step.story:
            yield styled(f"# {line}".rstrip(), Style.QUIET)
        yield styled(f"> {step.directive.text}", Style.HEADING)
        for line in step.printed:
            yield plain(f"  {line}")
        for reached in step.reached:
            name, verdict = f"{step.scenario} {reached.state.address}", verdict_line(reached.decision)
            if reached.recorded or self._said.get(name) != verdict:
                yield styled(f"  = {verdict}", Style.NOTICE)
            self._said[name] = verdict


def show_difference(output: Output, name: str, expected: str, actual: str) -> None:
    """Where a scenario prints something else than its file says, as a unified diff."""
    from difflib import unified_diff  # noqa: PLC0415 - only where they differ

    lines = unified_diff(
        expected.splitlines(), actual.splitlines(), f"{name} (expected)", f"{name} (printed)", lineterm=""
    )
    styles = {"+": Style.GOOD, "-": Style.BAD, "@": Style.QUIET}
    for line in lines:
        style = Style.PLAIN if line == f" {SEPARATOR}" else styles.get(line[:1], Style.PLAIN)
        output.line(styled(line, style))


@dataclass(frozen=True, slots=True)
class Shipped:
    """A scenario that comes with kelr."""

    name: str
    about: str


def shipped_view() -> View[Shipped]:
    """The scenarios that come with kelr."""
    return View(
        "kelr/scenarios",
        (
            Column("name", "NAME", lambda row: row.name, type="string", about="What `kelr simulate` takes."),
            Column("about", "ABOUT", lambda row: row.about, type="string", about="The story in a sentence or two."),
        ),
    )


def _values(columns: tuple[Column[RowT], ...], row: RowT) -> dict[str, Json]:
    return {column.key: column.value(row) for column in columns if column.value is not None}


def _replica_logs(reached: Reached) -> list[tuple[int, SimulatedLog]]:
    return sorted(reached.replication.logs.items()) if reached.replication.written else []


def _lost(reached: Reached) -> int | None:
    leadership = reached.replication.leadership
    return None if leadership is None else len(reached.replication.lost_by(leadership.leader))


_LOG_COLUMNS: tuple[Column[tuple[int, SimulatedLog]], ...] = (
    Column("replica", "REPLICA", lambda row: row[0], type="integer", about="The broker that holds it."),
    Column("log_start", "START", lambda row: row[1].start, type="integer", about="Log start offset."),
    Column("log_end", "END", lambda row: row[1].end, type="integer", about="Log end offset."),
    Column(
        "high_watermark",
        "HW",
        lambda row: row[1].high_watermark,
        type="integer",
        about="The high watermark as this replica knows it.",
    ),
    Column(
        "last_epoch",
        "EPOCH",
        lambda row: row[1].last_epoch,
        type="integer?",
        about="Last written leader epoch; null: nothing was ever written.",
    ),
    Column("flushed", "FLUSHED", lambda row: row[1].flushed, type="integer", about="What a power loss leaves."),
)

_PARTITION_COLUMNS: tuple[Column[Reached], ...] = (
    Column("topic", "TOPIC", lambda row: row.state.topic, type="string", about="Its topic."),
    Column("partition", "PARTITION", lambda row: row.state.partition, type="integer", about="Its number."),
    Column("leader", "LEADER", lambda row: row.state.leader, type="integer?", about="Who leads; null: nobody."),
    Column("leader_epoch", "EPOCH", lambda row: row.state.leader_epoch, type="integer", about="The leader epoch."),
    Column("replicas", "REPLICAS", lambda row: row.state.replicas, type="integer[]", about="In assignment order."),
    Column("isr", "ISR", lambda row: row.state.isr, type="integer[]", about="In-sync replicas."),
    Column("elr", "ELR", lambda row: row.state.elr or (), type="integer[]", about="Eligible leader replicas."),
    Column(
        "last_known_elr",
        "LAST KNOWN",
        lambda row: row.state.last_known_elr or (),
        type="integer[]",
        about="LastKnownELR: the last known leader on released Kafka, a set of replicas in the whole KIP.",
    ),
    Column("min_isr", "MIN ISR", lambda row: row.decision.min_isr, type="integer?", about="Effective min ISR."),
    Column(
        "situation", "SITUATION", lambda row: row.decision.situation, type="string", about="Where the partition stands."
    ),
    Column(
        "elected",
        "ELECTED",
        lambda row: row.decision.elected,
        type="integer?",
        about="Who is elected by itself, or goes on leading; null: nobody.",
    ),
    Column(
        "elected_by", "BY", lambda row: row.decision.elected_by, type="string?", about="By which rule; null: nobody is."
    ),
    Column(
        "waits_for",
        "WAITS FOR",
        lambda row: row.decision.waits_for,
        type="integer[]",
        about="Replicas whose return brings a leader by itself.",
    ),
    Column(
        "advice", "ADVICE", lambda row: row.decision.advice.action, type="string", about="What kelr would recommend."
    ),
    Column(
        "logs",
        "LOGS",
        lambda row: [
            {column.key: column.value(log) for column in _LOG_COLUMNS if column.value} for log in _replica_logs(row)
        ],
        type="object[]",
        about="The replicas' logs; none where the scenario produced nothing.",
    ),
    Column(
        "committed",
        "COMMITTED",
        lambda row: len(row.replication.ledger.committed),
        type="integer",
        about="Records acknowledged with acks=all so far.",
    ),
    Column("lost", "LOST", _lost, type="integer?", about="Those that the leader's log lacks; null: nobody leads."),
    Column(
        "gone", "GONE", lambda row: len(row.replication.gone), type="integer", about="Those that no log holds any more."
    ),
)

_STEP_COLUMNS: tuple[Column[StoryStep], ...] = (
    Column("scenario", "SCENARIO", lambda step: step.scenario, type="string", about="The scenario's name."),
    Column("line", "LINE", lambda step: step.directive.line, type="integer", about="The directive's line, from 1."),
    Column("directive", "DIRECTIVE", lambda step: step.directive.text, type="string", about="The line as written."),
    Column("story", "STORY", lambda step: step.story, type="string[]", about="The comments above it."),
    Column("output", "OUTPUT", lambda step: step.printed, type="string[]", about="What the directive prints."),
    Column(
        "partitions",
        "PARTITIONS",
        lambda step: [_values(_PARTITION_COLUMNS, reached) for reached in step.reached],
        type="object[]",
        about="The partitions whose record or logs it changed, as it left them.",
    ),
)
