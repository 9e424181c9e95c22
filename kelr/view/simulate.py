"""A scenario as it unfolds: each directive with the state and decision after it, or as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.simulation.language import SEPARATOR
from kelr.simulation.logs import SimulatedLog
from kelr.simulation.session import Reached, StoryStep
from kelr.simulation.words import verdict_line
from kelr.view.columns import Column, Json, RowT, View
from kelr.view.document_schema import document_schema, item_schema
from kelr.view.layout import wrapped
from kelr.view.styled import Style, Text, cleaned, plain, styled, width_of

KIND = "kelr/simulate"


def simulate_view(width: int | None = None) -> View[StoryStep]:
    """One item for each directive.

    Args:
        width: columns of the terminal; None for a pipe, where no line is broken.
    """
    return View(KIND, _STEP_COLUMNS, block=_Telling(width))


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

    def __init__(self, width: int | None) -> None:
        self._width = width
        self._begun = False
        self._said: dict[str, str] = {}

    def __call__(self, step: StoryStep) -> Iterator[Text]:
        """The story, the directive, what it printed, and what the engine says of the partitions that it changed."""
        if step.story and self._begun:
            yield plain("")
        self._begun = True
        for line in self._filled(step.story):
            yield from self._broken("# ", line, "# ", Style.QUIET)
        yield from self._broken("> ", step.directive.text, "    ", Style.HEADING)
        for line in step.printed:
            indent = line[: len(line) - len(line.lstrip())]
            yield from self._broken(f"  {indent}", line.lstrip(), f"      {indent}", Style.PLAIN)
        for reached in step.reached:
            name, verdict = f"{step.scenario} {reached.state.address}", verdict_line(reached.decision)
            if reached.recorded or self._said.get(name) != verdict:
                yield from self._broken("  = ", verdict, "      ", Style.NOTICE)
            self._said[name] = verdict

    def _filled(self, story: Sequence[str]) -> Sequence[str]:
        """The comments as they are; where one is too long for the terminal, their sentences run on from line to line.

        An empty line, or one that is indented or begins a list, stays apart.
        """
        if all(self._fits(f"# {line}") for line in story):
            return story
        filled: list[str] = []
        for line in story:
            apart = not line or line[:1] in " -*" or not filled or not filled[-1]
            filled[-1:] = [*filled[-1:], line] if apart else [f"{filled[-1]} {line}"]
        return filled

    def _broken(self, head: str, text: str, further: str, style: Style) -> Iterator[Text]:
        """The text behind a head, in lines that fit between words, its further lines behind another one."""
        if self._width is None or self._fits(head + text):
            yield styled(f"{head}{text}".rstrip(), style)
            return
        for number, line in enumerate(wrapped(plain(text), self._width - width_of(further))):
            yield styled((further if number else head) + "".join(span.text for span in line), style)

    def _fits(self, line: str) -> bool:
        return self._width is None or width_of(cleaned(line)) <= self._width


@dataclass(frozen=True, slots=True)
class Checked:
    """A scenario that was run and compared with what its file expects."""

    name: str
    expected: str
    actual: str

    @property
    def same(self) -> bool:
        return self.actual == self.expected

    @property
    def difference(self) -> Sequence[str]:
        """A unified diff from what is expected to what is printed; nothing where they are the same."""
        from difflib import unified_diff  # noqa: PLC0415 - only where they differ

        names = f"{self.name} (expected)", f"{self.name} (printed)"
        return list(unified_diff(self.expected.splitlines(), self.actual.splitlines(), *names, lineterm=""))


def checked_view() -> View[Checked]:
    """What `kelr simulate --check` found; people see only differences."""
    return View(
        "kelr/scenario-checks",
        (
            Column("scenario", "SCENARIO", lambda row: row.name, type="string", about="The scenario's name."),
            Column("same", "SAME", lambda row: row.same, type="boolean", about="Whether it prints what it expects."),
            Column(
                "difference",
                "DIFFERENCE",
                lambda row: row.difference,
                type="string[]",
                about="A unified diff from what is expected to what is printed; empty where they are the same.",
            ),
        ),
        block=_difference,
    )


def _difference(checked: Checked) -> Iterator[Text]:
    styles = {"+": Style.GOOD, "-": Style.BAD, "@": Style.QUIET}
    for line in checked.difference:
        yield styled(line, Style.PLAIN if line == f" {SEPARATOR}" else styles.get(line[:1], Style.PLAIN))


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
            Column(
                "about",
                "ABOUT",
                lambda row: row.about,
                prose=True,
                type="string",
                about="The story in a sentence or two.",
            ),
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
    Column("leader", "LEADER", lambda row: row.state.leader, type="integer?", about="Who leads; null: no leader."),
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
        about="Who is elected by itself, or goes on leading; null: none.",
    ),
    Column(
        "elected_by", "BY", lambda row: row.decision.elected_by, type="string?", about="By which rule; null: none is."
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
    Column("lost", "LOST", _lost, type="integer?", about="Those that the leader's log lacks; null: no leader."),
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
