"""What ``kelr explain`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from kelr.commands.elections_on_record import on_record
from kelr.commands.recovering import source_with
from kelr.commands.session import Session, now_ms
from kelr.commands.stock_tools import stock_connection
from kelr.commands.targets import read_rules
from kelr.commands.topic_errors import fail_unseen, sees_any
from kelr.controller import RuleSet
from kelr.engine.rule_docs import RULES, rule_named
from kelr.engine.what_if.assumptions import Assumption, AssumptionError, parse_assumptions
from kelr.errors import UsageError
from kelr.model import (
    Decision,
    ElectionType,
    LogAnswer,
    Selection,
    Snapshot,
    TopicError,
    TopicPartition,
    parse_election_type,
)
from kelr.sources.decisions import decide_partitions
from kelr.sources.side_by_side import Decided, SideBySide, decide_side_by_side
from kelr.view.explain import Explanation
from kelr.view.explain_columns import Explained, same_outcome
from kelr.view.explain_if import assumed_of
from kelr.view.explain_report import DecisionReport, Looked, show_decisions
from kelr.view.explain_why import show_rules
from kelr.view.formats import OutputFormat
from kelr.view.log_picture import ink_for

MOST_IN_FULL = 3
"""With more partitions than this, people get a summary unless they ask for --full, --short or -o wide."""
MOST_HELD = 1000
"""So many decisions are held back until all are there: they say how wide the columns are, and whether there are few."""
_LIST = "list"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of ``kelr explain``, read."""

    election: ElectionType | None
    rules: RuleSet | None
    """None stands for what the cluster runs."""
    assumptions: tuple[Assumption, ...]
    logs: tuple[Path, ...]
    """Collections of what dead brokers' disks hold."""
    full: bool | None
    picture: bool
    keep: tuple[str, ...]
    """The flags that a next ``kelr explain`` has to repeat."""


def read_options(
    *,
    election: str | None,
    rules: str,
    assume: Sequence[str],
    logs: Sequence[Path],
    full: bool | None,
    picture: bool = False,
) -> Wanted:
    """Read the options. Raises UsageError where one says nothing that there is."""
    if picture and full is False:
        raise UsageError(
            "--picture is part of whole explanations; it does not go with --short",
            next_step="leave that out, or --picture",
        )
    keep = [part for text in assume for part in ("--if", text)]
    keep += ["--rules", rules] if rules.lower() != "auto" else []
    return Wanted(
        election=_election(election),
        rules=read_rules(rules),
        assumptions=tuple(one for text in assume for one in _assumptions(text)),
        logs=tuple(logs),
        full=True if picture else full,
        picture=picture,
        keep=tuple(keep),
    )


def explain_partitions(
    session: Session, selection: Selection, wanted: Wanted, *, only_unsafe: bool
) -> tuple[int, Sequence[TopicError]]:
    """Explain the partitions, as they are or as they are imagined; how many there were, and what failed."""
    if not wanted.assumptions:
        return _explain_as_they_are(session, selection, wanted, only_unsafe=only_unsafe)
    found = _side_by_side(session, selection, wanted, only_unsafe=only_unsafe)
    (decided,), unclean = found.decided, next(iter(found.if_unclean), None)
    rows = _rows(decided) if unclean is None else _either_way(_rows(decided), _rows(unclean))
    seen = bool(rows or found.topic_errors) or sees_any(session.source(), selection)
    show_decisions(
        session.output,
        _explanation(session, wanted, either_way=unclean is not None),
        rows,
        cluster=session.source().cluster(),
        source=session.source().name,
        errors=found.topic_errors,
        full=_in_full(wanted, len(decided.decisions)),
        happened=decided.happened,
        otherwise=() if unclean is None else unclean.happened,
        seen=seen,
    )
    fail_unseen(seen=seen)
    return len(decided.decisions), found.topic_errors


def explain_rule(session: Session, name: str) -> None:
    """Print what is behind a rule, or the list of all.

    Args:
        name: its id, or its question as explanations print it.

    Raises:
        UsageError: there is no such rule.
    """
    wanted = name.strip().lower()
    if wanted == _LIST:
        show_rules(session.output, RULES.values(), in_full=False)
        if session.output.format.for_people:
            session.output.note("  next: kelr explain --why RULE")
        return
    rule = rule_named(name)
    if rule is None:
        raise UsageError(
            f"--why: there is no rule {name!r}; there are {', '.join(RULES)}", next_step="kelr explain --why list"
        )
    show_rules(session.output, [rule], in_full=True)


# Deciding.


def _explain_as_they_are(
    session: Session, selection: Selection, wanted: Wanted, *, only_unsafe: bool
) -> tuple[int, Sequence[TopicError]]:
    """Decide and show; where there are many, the first are shown while the others are not yet read."""
    held: list[Explained] = []
    looked = Looked()
    errors: list[TopicError] = []
    not_known: list[Decision] = []
    record = on_record(session.source(), session.output.note)
    with ExitStack() as showing, session.progress("partitions whose logs were asked for") as progress:
        shown, report = 0, None
        for page in decide_partitions(
            source_with(session, wanted.logs),
            selection,
            clock_ms=now_ms,
            rules=wanted.rules,
            only_unsafe=only_unsafe,
            elections=record.elections,
            cleared=record.cleared,
            saved=record.saved,
            progress=progress,
        ):
            not_known.extend(page.not_known)
            looked += Looked(page.seen, page.one_copy, page.under_replicated, page.at_min_isr, page.asked)
            held.extend(
                Explained(decision, page.snapshot.taken_at_ms, logs=_logs(page.snapshot, decision))
                for decision in page.decisions
            )
            errors.extend(page.snapshot.topic_errors)
            if report is None and len(held) <= MOST_HELD:
                continue
            report = report or showing.enter_context(_report(session, wanted, held))
            report.add(held)
            shown, held = shown + len(held), []
        first = report is None
        report = report or showing.enter_context(_report(session, wanted, held))
        report.add(held, not_known=not_known if first else ())
        shown += len(held)
        seen = bool(shown or not_known or errors) or sees_any(session.source(), selection)
        report.finish(errors, seen=seen, looked=looked, not_known=not_known)
    fail_unseen(seen=seen)
    return shown, errors


def _report(session: Session, wanted: Wanted, beginning: Sequence[Explained]) -> DecisionReport:
    source = session.source()
    return DecisionReport(
        session.output,
        _explanation(session, wanted),
        beginning,
        cluster=source.cluster(),
        source=source.name,
        full=_in_full(wanted, len(beginning)),
        summed=wanted.full is None and len(beginning) > MOST_IN_FULL and session.output.format is OutputFormat.TABLE,
    )


def _in_full(wanted: Wanted, rows: int) -> bool:
    return rows <= MOST_IN_FULL if wanted.full is None else wanted.full


def _side_by_side(session: Session, selection: Selection, wanted: Wanted, *, only_unsafe: bool) -> SideBySide:
    source, record = source_with(session, wanted.logs), on_record(session.source(), session.output.note)
    with session.progress("partitions whose logs were asked for") as progress:
        try:
            return decide_side_by_side(
                source,
                selection,
                (wanted.rules,),
                wanted.assumptions,
                clock_ms=now_ms,
                only_unsafe=only_unsafe,
                elections=record.elections,
                cleared=record.cleared,
                saved=record.saved,
                progress=progress,
            )
        except AssumptionError as error:
            raise UsageError(f"--if: {error}", next_step="kelr describe -o wide shows brokers and racks") from error


def _rows(decided: Decided) -> list[Explained]:
    return [
        Explained(
            decision,
            decided.snapshot.taken_at_ms,
            assumed_of(decided.happened, decision),
            _logs(decided.snapshot, decision),
        )
        for decision in decided.decisions
    ]


def _logs(snapshot: Snapshot, decision: Decision) -> tuple[LogAnswer, ...]:
    return tuple(snapshot.logs.get(TopicPartition(decision.topic, decision.partition), ()))


def _either_way(clean: Sequence[Explained], unclean: Sequence[Explained]) -> list[Explained]:
    """The rows of each partition beside each other; one where both ways to stop come to the same."""
    return [
        row
        for one, other in zip(clean, unclean, strict=True)
        for row in (
            [replace(one, way="either")]
            if same_outcome(one, other)
            else [
                replace(one, way="clean", otherwise=other.assumed),
                replace(other, way="unclean", otherwise=one.assumed),
            ]
        )
    ]


# Showing.


def _explanation(session: Session, wanted: Wanted, *, either_way: bool = False) -> Explanation:
    return Explanation(
        next_command=session.output.next_command,
        stock_connection=stock_connection(session),
        width=session.output.width,
        election=wanted.election,
        details=session.output.format is OutputFormat.WIDE or session.settings.verbose,
        imagined=bool(wanted.assumptions),
        either_way=either_way,
        keep=wanted.keep,
        ink=ink_for(session.output.stdout) if wanted.picture else None,
    )


# Options.


def _assumptions(text: str) -> tuple[Assumption, ...]:
    try:
        return parse_assumptions(text)
    except AssumptionError as error:
        raise UsageError(f"--if: {error}", next_step='write, for example, --if "3 returns unclean"') from error


def _election(name: str | None) -> ElectionType | None:
    if name is None:
        return None
    try:
        return parse_election_type(name)
    except ValueError as error:
        raise UsageError(f"--election: {error}", next_step="kelr explain --help lists the types") from error
