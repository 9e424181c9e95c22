"""A scenario as it unfolds: each directive with the state and decision after it, or as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.simulation.language import SEPARATOR
from kelr.simulation.logs import SimulatedLog
from kelr.simulation.session import Reached, StoryStep
from kelr.simulation.words import verdict_line
from kelr.view.columns import Column, Json, View, column, item_of
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
            column("scenario", "SCENARIO", "string", "The scenario's name.", lambda row: row.name),
            column("same", "SAME", "boolean", "Whether it prints what it expects."),
            column(
                "difference",
                "DIFFERENCE",
                "string[]",
                "A unified diff from what is expected to what is printed; empty where they are the same.",
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
            column("name", "NAME", "string", "What `kelr simulate` takes."),
            column("about", "ABOUT", "string", "The story in a sentence or two.", prose=True),
        ),
    )


def _replica_logs(reached: Reached) -> list[tuple[int, SimulatedLog]]:
    return sorted(reached.replication.logs.items()) if reached.replication.written else []


def _lost(reached: Reached) -> int | None:
    leadership = reached.replication.leadership
    return None if leadership is None else len(reached.replication.lost_by(leadership.leader))


_LOG_COLUMNS: tuple[Column[tuple[int, SimulatedLog]], ...] = (
    column("replica", "REPLICA", "integer", "The broker that holds it.", lambda row: row[0]),
    column("log_start", "START", "integer", "Log start offset.", lambda row: row[1].start),
    column("log_end", "END", "integer", "Log end offset.", lambda row: row[1].end),
    column(
        "high_watermark",
        "HW",
        "integer",
        "The high watermark as this replica knows it.",
        lambda row: row[1].high_watermark,
    ),
    column(
        "last_epoch",
        "EPOCH",
        "integer?",
        "Last written leader epoch; null: nothing was ever written.",
        lambda row: row[1].last_epoch,
    ),
    column("flushed", "FLUSHED", "integer", "What a power loss leaves.", lambda row: row[1].flushed),
)

_PARTITION_COLUMNS: tuple[Column[Reached], ...] = (
    column("topic", "TOPIC", "string", "Its topic.", lambda row: row.state.topic),
    column("partition", "PARTITION", "integer", "Its number.", lambda row: row.state.partition),
    column("leader", "LEADER", "integer?", "Who leads; null: no leader.", lambda row: row.state.leader),
    column("leader_epoch", "EPOCH", "integer", "The leader epoch.", lambda row: row.state.leader_epoch),
    column("replicas", "REPLICAS", "integer[]", "In assignment order.", lambda row: row.state.replicas),
    column("isr", "ISR", "integer[]", "In-sync replicas.", lambda row: row.state.isr),
    column("elr", "ELR", "integer[]", "Eligible leader replicas.", lambda row: row.state.elr or ()),
    column(
        "last_known_elr",
        "LAST KNOWN",
        "integer[]",
        "LastKnownELR: the last known leader on released Kafka, a set of replicas in the whole KIP.",
        lambda row: row.state.last_known_elr or (),
    ),
    column("min_isr", "MIN ISR", "integer?", "Effective min ISR.", lambda row: row.decision.min_isr),
    column("situation", "SITUATION", "string", "Where the partition stands.", lambda row: row.decision.situation),
    column(
        "elected",
        "ELECTED",
        "integer?",
        "Who is elected by itself, or goes on leading; null: none.",
        lambda row: row.decision.elected,
    ),
    column("elected_by", "BY", "string?", "By which rule; null: none is.", lambda row: row.decision.elected_by),
    column(
        "waits_for",
        "WAITS FOR",
        "integer[]",
        "Replicas whose return brings a leader by itself.",
        lambda row: row.decision.waits_for,
    ),
    column("advice", "ADVICE", "string", "What kelr would recommend.", lambda row: row.decision.advice.action),
    column(
        "logs",
        "LOGS",
        "object[]",
        "The replicas' logs; none where the scenario produced nothing.",
        lambda row: [item_of(_LOG_COLUMNS, log) for log in _replica_logs(row)],
    ),
    column(
        "committed",
        "COMMITTED",
        "integer",
        "Records acknowledged with acks=all so far.",
        lambda row: len(row.replication.ledger.committed),
    ),
    column("lost", "LOST", "integer?", "Those that the leader's log lacks; null: no leader.", _lost),
    column("gone", "GONE", "integer", "Those that no log holds any more.", lambda row: len(row.replication.gone)),
)

_STEP_COLUMNS: tuple[Column[StoryStep], ...] = (
    column("scenario", "SCENARIO", "string", "The scenario's name."),
    column("line", "LINE", "integer", "The directive's line, from 1.", lambda step: step.directive.line),
    column("directive", "DIRECTIVE", "string", "The line as written.", lambda step: step.directive.text),
    column("story", "STORY", "string[]", "The comments above it."),
    column("output", "OUTPUT", "string[]", "What the directive prints.", lambda step: step.printed),
    column(
        "partitions",
        "PARTITIONS",
        "object[]",
        "The partitions whose record or logs it changed, as it left them.",
        lambda step: [item_of(_PARTITION_COLUMNS, reached) for reached in step.reached],
    ),
)
