"""What a watch sends elsewhere: one document for each change, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kelr.engine.watching import BrokerChange, Change, Counts, PartitionChange, Watched
from kelr.model import AdviceAction, Situation, TopicPartition
from kelr.view.columns import Column, Json, datum, item_of
from kelr.view.document_schema import DIALECT, item_schema
from kelr.view.explain import Explanation
from kelr.view.explain_columns import Explained
from kelr.view.explain_summary import what_to_do
from kelr.view.machine import plain_values
from kelr.view.plan_words import targets_of
from kelr.view.watch.lines import WatchLine
from kelr.view.watch.model import Detail, alike_changes
from kelr.view.watch.words import plain_words

KIND = "kelr/alert"
VERSION = 1
RUNBOOK = "docs/runbooks/{situation}.md"
"""Where a situation's page is, in this repository and in the documents of a release."""
MOST_TARGETS = 1000
"""A document names partitions of so many topics; how many more there are it says."""
_MOST_TO_EXPLAIN = 20


class State(StrEnum):
    """How the watched partitions stand at a change."""

    TROUBLE = "trouble"
    """Some are leaderless or unsafe, or a disk that is down may hold the only copy of records."""
    HEALTHY = "healthy"
    """All were read, a controller answered, and neither is so."""
    UNKNOWN = "unknown"
    """Not everything could be read, or no controller answers."""


@dataclass(frozen=True, slots=True)
class News:
    """What is new at one moment of a watch."""

    at_ms: int
    state: State
    cluster_id: str | None
    counts: Counts | None
    """None: not known."""
    before: Sequence[WatchLine] = ()
    """Lines that stand before the changes: that nothing could be read for a while."""
    changes: Sequence[Change] = ()
    after: Sequence[WatchLine] = ()

    @property
    def addresses(self) -> list[TopicPartition]:
        """Partitions that changed and are there still."""
        return [one.address for one in self.changes if isinstance(one, PartitionChange) and one.after is not None]


@dataclass(frozen=True, slots=True)
class Alert:
    """One change, as somebody is told of it who does not look at the screen."""

    id: str
    at_ms: int
    what: str
    state: State
    cluster_id: str | None
    watched: str
    text: str
    counts: Counts | None
    addresses: Sequence[TopicPartition] = ()
    brokers: Sequence[int] = ()
    situation: Situation | None = None
    was: Situation | None = None
    do: str | None = None
    advice: Mapping[str, Json] | None = None
    advice_of: str | None = None
    advice_unknown: str | None = None
    explain: str | None = None
    runbook: str | None = None


def alerts_of(
    news: News,
    details: Mapping[TopicPartition, Detail],
    explanation: Explanation,
    *,
    watched: str,
    runbook: str = RUNBOOK,
    no_advice: str = "",
) -> Iterator[Alert]:
    """The documents of one look, in the order in which things happened.

    Args:
        details: decisions about partitions that changed, by logs that were read since.
        watched: which cluster that is, for people.
        runbook: the link to a situation's page, with ``{situation}`` where its name goes.
        no_advice: why there are no decisions; empty: there are.
    """
    told = _told(news, details, explanation, runbook, no_advice)
    for number, (what, text, about) in enumerate(told, 1):
        yield Alert(
            id=f"{news.cluster_id or '?'}/{news.at_ms}/{number}",
            at_ms=news.at_ms,
            what=what,
            state=news.state,
            cluster_id=news.cluster_id,
            watched=watched,
            text=text,
            counts=news.counts,
            **about,
        )


def _told(
    news: News,
    details: Mapping[TopicPartition, Detail],
    explanation: Explanation,
    runbook: str,
    no_advice: str,
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What happened, its words, and what else is known of it."""
    for line in news.before:
        yield line.what, line.text, {}
    for words, same in _alike(news.changes):
        partitions = [one for one in same if isinstance(one, PartitionChange)]
        if not partitions:
            yield "broker", words, {"brokers": [one.broker for one in same if isinstance(one, BrokerChange)]}
        for advised in _by_advice(partitions, details, no_advice):
            yield "partition", words, _about(advised, explanation, runbook)
    for line in news.after:
        yield line.what, line.text, {}


def _alike(changes: Sequence[Change]) -> Iterator[tuple[str, Sequence[Change]]]:
    """Changes that are told in the same words, and lead from one situation to one other."""
    grouped: dict[tuple[str, *tuple[Situation | None, ...]], list[Change]] = {}
    for text, same in alike_changes(changes):
        sides = (same[0].before, same[0].after)
        situations = [side.situation if isinstance(side, Watched) else None for side in sides]
        grouped.setdefault((plain_words(text), *situations), []).extend(same)
    for key, alike in grouped.items():
        yield key[0], alike


@dataclass(slots=True)
class _Advised:
    """Partitions that changed in the same way, and for which the same is to be done."""

    changes: list[PartitionChange]
    row: Explained | None
    """Of the first of them."""
    do: str | None
    why_not: str | None


def _by_advice(
    changes: Sequence[PartitionChange], details: Mapping[TopicPartition, Detail], no_advice: str
) -> list[_Advised]:
    found: dict[tuple[str | None, str | None], _Advised] = {}
    for change in changes:
        row, why_not = _decided(change, details.get(change.address), no_advice)
        do = None if row is None else what_to_do(row)
        found.setdefault((do, why_not), _Advised([], row, do, why_not)).changes.append(change)
    return list(found.values())


def _decided(change: PartitionChange, detail: Detail | None, no_advice: str) -> tuple[Explained | None, str | None]:
    """The decision, where there is something to do; else why there is no advice, which is None where none is needed."""
    if change.after is None:
        return None, None
    if detail is None:
        needed = change.after.in_trouble
        return None, (no_advice or "its replicas' logs were not read") if needed else None
    if detail.decision.situation is not change.after.situation:
        return None, f"it is {detail.decision.situation} by now"
    idle = detail.decision.advice.action is AdviceAction.NOTHING
    return (None if idle else Explained(detail.decision, detail.taken_at_ms, logs=detail.logs)), None


def _about(advised: _Advised, explanation: Explanation, runbook: str) -> dict[str, Any]:
    first, addresses = advised.changes[0], [one.address for one in advised.changes]
    targets = targets_of(addresses)
    after = first.after
    explain = ("explain", *targets) if len(targets) <= _MOST_TO_EXPLAIN else ("explain",)
    return {
        "addresses": addresses,
        "situation": None if after is None else after.situation,
        "was": None if first.before is None else first.before.situation,
        "do": advised.do,
        "advice": None if advised.row is None else explanation.advice(advised.row),
        "advice_of": None if advised.row is None else str(first.address),
        "advice_unknown": advised.why_not,
        "explain": None if after is None else explanation.next_command(explain),
        "runbook": None if after is None else runbook.replace("{situation}", after.situation),
    }


# The document.


def _count(name: str) -> Column[Alert]:
    about = {
        "leaderless": "Watched partitions without a live leader; null: not known.",
        "unsafe": "Those that are led and under min ISR; null: not known.",
        "under_min_isr": "Those under min ISR, led or not; null: not known.",
        "read": "Partitions that were looked at; null: not known.",
    }

    def value(alert: Alert) -> Json:
        if alert.counts is None:
            return None
        return alert.counts.read if name == "read" else alert.counts.known(name)

    return datum(name, "integer?", about[name], value)


_COLUMNS: tuple[Column[Alert], ...] = (
    datum("id", "string", "Names this document: it is the same at each try to deliver it, and of no other."),
    datum("at_ms", "integer", "When it was seen, in milliseconds since 1970 UTC; it happened after the look before."),
    datum(
        "what",
        "string",
        "partition, broker, recovery, topic-deleted, not-read (the cluster, or some topics), read-again, no-controller"
        " (until controller-again everything may be out of date), controller-again, unsaved, or healthy.",
    ),
    datum(
        "state",
        "string",
        "How all that is watched stands: trouble; healthy, which is said only where everything was read and a"
        " controller answered; else unknown.",
    ),
    datum("cluster_id", "string?", "The cluster's id; null: not known."),
    datum("watched", "string", "The context or the first bootstrap server, and the targets."),
    datum("text", "string", "What happened, in words."),
    datum(
        "partitions",
        "string[]",
        f"Partitions to which this happened, as targets of a command line: orders:0-5; of {MOST_TARGETS:,} topics at"
        " most.",
        lambda alert: list(targets_of(alert.addresses)[:MOST_TARGETS]),
    ),
    datum(
        "partition_count",
        "integer",
        "How many partitions these are, with those that `partitions` has no room for.",
        lambda alert: len(alert.addresses),
    ),
    datum("brokers", "integer[]", "Brokers to which this happened.", lambda alert: list(alert.brokers)),
    datum("situation", "string?", "The partitions' situation now; null: it is not about partitions, or they are gone."),
    datum("was", "string?", "Their situation before; null: they were in no trouble."),
    datum("do", "string?", "What to do about these partitions, in a few words; null: nothing, or not known."),
    datum(
        "advice",
        "object?",
        "The advice about `advice_of`, as in kelr explain -o json; for the others the same is to be done, at a loss of"
        " their own. null: nothing is to be done, or `advice_unknown` says why it is not known.",
    ),
    datum("advice_of", "string?", "The first of the partitions; null: there is no advice."),
    datum("advice_unknown", "string?", "Why the advice is not known; null: it is known, or none is needed."),
    datum("explain", "string?", "The command that explains these partitions; null: it is about none that is there."),
    datum("runbook", "string?", "The link to the page of the situation; null: there is no situation."),
    _count("leaderless"),
    _count("unsafe"),
    _count("under_min_isr"),
    _count("read"),
)


def alert_document(alert: Alert) -> Mapping[str, Json]:
    """The document, without ``not_delivered``, which is known when it is sent."""
    values = {key: plain_values(value) for key, value in item_of(_COLUMNS, alert).items()}
    return {"kind": KIND, "version": VERSION, **values}


def alert_schema() -> Mapping[str, Json]:
    """The JSON Schema of the document as it is delivered."""
    missed: Column[Alert] = datum(
        "not_delivered", "integer", "How many documents before this one were given up since the last that came through."
    )
    schema = dict(item_schema([*_COLUMNS, missed]))
    properties, required = schema["properties"], schema["required"]
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    return {
        "$schema": DIALECT,
        "title": KIND,
        "type": "object",
        "properties": {"kind": {"const": KIND}, "version": {"const": VERSION}, **properties},
        "required": ["kind", "version", *required],
        "additionalProperties": False,
    }
