"""What ``kelr explain`` prints: decisions as they come, and what the reader has to know besides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kelr.engine.what_if.imagine import Happened
from kelr.engine.words import agree, brokers, plural
from kelr.model import Cluster, Decision, TopicError, TopicPartition
from kelr.page.words import count, sentence
from kelr.view.broker_order import Contested
from kelr.view.describe import NOTHING_READ, cluster_head, error_items, note_errors
from kelr.view.explain import (
    NOT_KNOWN_TO_BE_WELL,
    NOTHING_IMAGINED,
    Explanation,
)
from kelr.view.explain_columns import Explained
from kelr.view.explain_if import happened_document, happened_lines
from kelr.view.explain_summary import Summary
from kelr.view.formats import OutputFormat
from kelr.view.layout import PIPE_WIDTH, Layout
from kelr.view.output import Listing, Output
from kelr.view.plan_words import named


@dataclass(frozen=True, slots=True)
class Looked:
    """How many partitions were looked at: all of them; of those that have a live leader and min ISR, those with one of
    several replicas in sync, others that lack a replica in sync, and those of these that have just min ISR; and those
    whose logs were asked for."""

    partitions: int = 0
    one_copy: int = 0
    under_replicated: int = 0
    at_min_isr: int = 0
    asked: int = 0

    def __add__(self, other: Looked) -> Looked:
        return Looked(
            self.partitions + other.partitions,
            self.one_copy + other.one_copy,
            self.under_replicated + other.under_replicated,
            self.at_min_isr + other.at_min_isr,
            self.asked + other.asked,
        )

    def in_words(self, *, well: bool) -> Iterator[str]:
        """That none needs action; without `well`, or with a single copy, no more than that they are led and have min
        ISR."""
        every = f"all {count(self.partitions, 'partition')} have" if self.partitions > 1 else "the partition has"
        led = f"{every} a live leader and {agree(self.partitions, 'meets', 'meet')} min ISR."
        yield f"No action needed: {led}" if well and not self.one_copy else sentence(led)
        if self.one_copy:
            number = f"{count(self.one_copy, 'partition')} {agree(self.one_copy, 'has', 'have')}"
            yield f"{number} one of several replicas in sync: one failure from no leader."
        if self.under_replicated:
            last = "one failure from refusing acks=all"
            of_them = "" if self.at_min_isr == self.under_replicated else f"{self.at_min_isr:,} of them "
            last = f": {of_them}{last}" if self.at_min_isr else ""
            number = count(self.under_replicated, "partition")
            yield f"{number} {agree(self.under_replicated, 'is', 'are')} under-replicated{last}."
        logs = f"Replica logs read: {count(self.asked, 'partition')}." if self.asked else "Replica logs not read."
        yield f"Source: cluster metadata. {logs}"


class DecisionReport:
    """Streams decisions to the output.

    Use as a context manager: `add` them, then `finish`. People get whole explanations, a summary or, with neither
    `full` nor `summed`, a line for each.

    Args:
        beginning: the first decisions, or all of them; `add` begins with these.
        happened: what is imagined to have happened; then `beginning` has all decisions.
        otherwise: the same, had brokers stopped uncleanly of which nothing tells how.
    """

    def __init__(
        self,
        output: Output,
        explanation: Explanation,
        beginning: Sequence[Explained],
        *,
        cluster: Cluster,
        source: str,
        full: bool,
        summed: bool = False,
        happened: Sequence[Happened] = (),
        otherwise: Sequence[Happened] = (),
    ) -> None:
        self._output, self._explanation, self._cluster = output, explanation, cluster
        self._summary = Summary() if summed and output.format.for_people else None
        self._full, self._happened = full, happened
        self._telling, self._contested = _more_telling(None, beginning), Contested()
        shown = frozenset(TopicPartition(row.decision.topic, row.decision.partition) for row in beginning)
        head = {
            **cluster_head(cluster, source),
            "assumptions": happened_document(happened, shown),
            "otherwise": happened_document(otherwise, shown),
        }
        if output.format.for_people and not full and not summed:
            for line in explanation.other_rules(self._telling):
                output.line(line)
            for line in happened_lines(Layout(output.width), happened, otherwise, shown):
                output.line(line)
        whole = full and output.format is not OutputFormat.CSV
        self._warned = False
        self._listing: Listing[Explained] = output.listing(explanation.full() if whole else explanation.short(), head)

    def __enter__(self) -> Self:
        self._listing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self._summary is not None and not isinstance(error, BrokenPipeError):
            self._output.line("Incomplete, since the reading broke off:")
            self._show(self._summary, whole=False)
        self._listing.__exit__(kind, error, traceback)

    def _show(self, summary: Summary, *, of: int = 0, whole: bool = True, not_known: Sequence[Decision] = ()) -> None:
        self._output.end_progress()
        if summary.count:
            plan = self._output.next_command(("recover", "plan"))
            doubt = not_known_in_words(not_known) if not_known else ""
            self._warned = bool(not_known)
            lines = summary.lines(self._output.width, of=of, plan=plan, doubt=doubt, whole=whole)
            for line in (*self._explanation.other_rules(self._telling), *lines):
                self._output.line(line)

    def _warn(self, not_known: Sequence[Decision]) -> None:
        """What a start may end of partitions that are not shown, before the advice to start brokers for others."""
        if not_known:
            for line in Layout(self._output.width, PIPE_WIDTH).paragraph("First  ", not_known_in_words(not_known)):
                self._output.line(line)
            self._output.line("")
            self._warned = True

    def add(self, rows: Sequence[Explained], *, not_known: Sequence[Decision] = ()) -> None:
        """Show some decisions.

        Args:
            not_known: as for `finish`, where that is known before the first of them.
        """
        if self._full and rows and self._output.format.for_people:
            self._warn(not_known)
        self._telling = _more_telling(self._telling, rows)
        for row in rows:
            self._contested.add(row.decision)
        if self._summary is not None:
            self._summary.add(rows)
        else:
            self._listing.add(rows)

    def finish(
        self,
        errors: Sequence[TopicError],
        *,
        seen: bool = True,
        looked: Looked = Looked(),
        not_known: Sequence[Decision] = (),
    ) -> None:
        """End the report with the topics that could not be described.

        Args:
            not_known: partitions that are not shown since they are well, while it is not known whether disks of brokers
                that are down hold what an unclean election gave up.
            seen: whether there was any partition at all: where brokers show none, nothing is known to be well.
            looked: how many partitions were looked at, those that are well too.
        """
        if self._summary is not None:
            self._show(self._summary, of=looked.partitions, not_known=not_known)
        following, output = self._following(), self._output
        if following is None and not self._shown and not_known:
            following = self._explanation.following(["explain", _name(not_known[0])])
        elif following is None and not self._shown and looked.one_copy:
            following = ("describe", "--under-replicated")
        command = None if following is None else output.next_command(following)
        names = [_name(one) for one in not_known]
        self._listing.finish({"not_known": names, "errors": error_items(errors), "next": command})
        if not seen:
            output.note(NOTHING_READ)
        if not output.format.for_people:
            return
        if seen and not self._shown and not errors:
            for said in self._nothing(looked, well=not not_known):
                output.note(said)
        if not_known and not self._warned:
            output.note(not_known_in_words(not_known))
        for assumed in self._rules_assumed():
            output.note(assumed)
        # A summary says which brokers stay down, and whose disks are read first; this says when to start them.
        for disagreement in self._contested if self._summary is None else ():
            order = "" if self._happened else f" The whole order: {output.next_command(('recover', 'plan'))}"
            output.note(f"{disagreement}{order}")
        if following is not None:
            output.next(following)
        note_errors(output, errors)

    def _rules_assumed(self) -> Iterator[str]:
        """Why the rules are not certain; an explanation in full has it among its notes."""
        if not self._full and self._telling is not None:
            decision = self._telling.decision
            about = f"rules {decision.rules}: "
            yield from (f"{note[:1].upper()}{note[1:]}." for note in decision.notes if note.startswith(about))

    @property
    def _shown(self) -> int:
        return self._listing.rows if self._summary is None else self._summary.count

    def _nothing(self, looked: Looked, *, well: bool) -> Iterator[str]:
        silence = self._cluster.controller_silence
        if silence is not None:
            yield NOT_KNOWN_TO_BE_WELL.format(silence=silence)
        elif self._happened:
            yield NOTHING_IMAGINED
        else:
            yield from looked.in_words(well=well)

    def _following(self) -> tuple[str, ...] | None:
        if self._full or self._telling is None:
            return None
        decision = self._telling.decision
        return self._explanation.following(["explain", f"{decision.topic}:{decision.partition}"])


def _name(decision: Decision) -> str:
    return f"{decision.topic}:{decision.partition}"


def not_known_in_words(found: Sequence[Decision]) -> str:
    """One sentence about all of them: they may be many where little is written, and each has its own explanation."""
    names = named(TopicPartition(one.topic, one.partition) for one in found)
    away = sorted({c.replica for one in found for c in one.candidates if not c.live and c.replica not in one.isr})
    were, disks = agree(len(found), "was", "were"), agree(len(away), "the disk", "the disks")
    return (
        f"Not known: whether {plural(len(found), 'partition')} ({names}) {were} elected cleanly; if not, {disks}"
        f" of {brokers(away)} may hold the only copy of records: kelr explain on one says how to save them first. A"
        " metadata log tells (--bootstrap-controller HOST:PORT)."
    )


def _more_telling(so_far: Explained | None, rows: Sequence[Explained]) -> Explained | None:
    """The first that nobody leads, else the first."""
    if so_far is not None and so_far.decision.leader is None:
        return so_far
    leaderless = next((row for row in rows if row.decision.leader is None), None)
    return leaderless or so_far or next(iter(rows), None)


def show_decisions(
    output: Output,
    explanation: Explanation,
    rows: Sequence[Explained],
    *,
    cluster: Cluster,
    source: str,
    errors: Sequence[TopicError],
    full: bool,
    happened: Sequence[Happened] = (),
    otherwise: Sequence[Happened] = (),
    seen: bool = True,
) -> None:
    """Print decisions that are all there, in the output's format; `seen` as for `DecisionReport.finish`."""
    report = DecisionReport(
        output, explanation, rows, cluster=cluster, source=source, full=full, happened=happened, otherwise=otherwise
    )
    with report:
        report.add(rows)
        report.finish(errors, seen=seen)
