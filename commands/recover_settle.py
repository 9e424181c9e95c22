"""What ``kelr recover status``, ``resume``, ``undo``, ``clear-elr`` and ``log`` do once their options are read."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kelr.commands.changing import nothing_changed_yet, require_live
from kelr.commands.consent import EXAMPLE, confirm, read_reason
from kelr.commands.recovering import change_tools, plan_for_this_cluster, read_duration_ms, saved_files
from kelr.commands.session import Session
from kelr.engine.planning.saved import NO_FILES
from kelr.errors import BadInputError, ConnectError, PartlyDoneError, RefusedError, UsageError
from kelr.model import Plan, SavedLog, TopicPartition
from kelr.recovery import audit
from kelr.recovery.admin_client import NOT_REGISTERED
from kelr.recovery.clear_elr import Clearing, ElrPrice, clear_elr, price_of_clearing
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.journal_store import find_journal, open_elsewhere, open_journals, refuse_open_journals
from kelr.recovery.mending import PutRight
from kelr.recovery.places import audit_file, state_directory
from kelr.recovery.plan_file import read_plan
from kelr.recovery.resume import resume
from kelr.recovery.status import RecoveryStatus, status
from kelr.recovery.times import from_iso
from kelr.recovery.undo import undo, undo_plan
from kelr.sources.ground import MACHINE
from kelr.sources.live.failures import error_in_words
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from kelr.view.recovery_status import (
    Put,
    as_people_read,
    audit_view,
    cleared_view,
    price_head,
    price_lines,
    show_put_right,
    show_status,
)

_NAME_A_CLUSTER = frozenset({"-b", "--command-config", "--context", "--snapshot"})
_LINES_AT_ONCE = 1000
"""As many lines of the audit log decide how wide its columns are."""
_RESTORED, _CHANGED, _NOT_RESTORED = "restored", "changed by somebody else", "not restored"


# Status.


def show_what_is_left(session: Session, plan_file: Path | None) -> bool:
    """Show what earlier runs left behind; whether nothing is."""
    plan = None if plan_file is None else read_plan(plan_file)
    saved = NO_FILES if plan is None else _saved(session, plan, plan_file)
    found = status(session.source(), state_directory(), plan=plan, saved=saved)
    show_status(session.output, found, following=_following(found, plan_file))
    return found.clean


def _saved(session: Session, plan: Plan, path: Path | None) -> Mapping[TopicPartition, Sequence[SavedLog]]:
    try:
        rows = list(audit.read(state_directory(), cluster_id=plan.cluster_id))
    except BadInputError:  # the status says so
        rows = []
    return saved_files(session.output, rows, plan, path, cluster_id=plan.cluster_id)


def _following(found: RecoveryStatus, plan_file: Path | None) -> tuple[str, ...] | None:
    if found.at_work:
        return ("recover", "status")
    if found.journals:
        return tuple(found.journals[-1].next_step.split())
    if found.reordered and plan_file is not None:
        return ("recover", "undo", str(plan_file))
    if plan_file is not None and any(one.leader != one.wanted for one in found.plan_partitions):
        return ("recover", "verify", str(plan_file))
    return None


# Resume and undo.


def go_on(session: Session, name: str | None, *, yes: bool) -> None:
    """Finish what a run began that was cut short: where none was, all is well. Raises KelrError where something is
    left, or nobody agreed."""
    require_live(session)
    cluster_id = session.source().cluster().cluster_id
    if name is None and not open_journals(state_directory(), cluster_id):
        _show_nothing_left(session)
        return
    path = find_journal(state_directory(), cluster_id, name)
    confirm(session.output, f"Go on with {_in_words(path)}?", yes=yes)
    _show_put_right(session, resume(path, **change_tools(session, session.source())), undone=False)


def take_back(session: Session, name: str | None, *, yes: bool) -> None:
    """Put orders and configs of a journal back, or of a plan: by its open journal, or, where that is lost, by the order
    that each of its partitions has now. Where nothing is open, all is well. Raises KelrError where something is left,
    or nobody agreed."""
    require_live(session)
    state, cluster_id = state_directory(), session.source().cluster().cluster_id
    tools = change_tools(session, session.source())
    plan = _plan_named(session, name)
    if plan is None:
        if name is None and not open_journals(state, cluster_id):
            _show_nothing_left(session)
            session.output.note("to undo a run that ended, name its journal or plan; kelr recover log lists them")
            return
        path = find_journal(state, cluster_id, name)
        confirm(session.output, f"Put the orders and configs of {_in_words(path)} back?", yes=yes)
        _show_put_right(session, undo(path, **tools), undone=True)
        return
    wanted = {one.address for one in plan.elections}
    paths = [journal.path for journal in open_journals(state, cluster_id) if wanted & set(journal.planned)]
    if len(paths) > 1:
        raise UsageError(
            f"{len(paths)} open journals are about partitions of {name}: {', '.join(path.stem for path in paths)}",
            next_step="undo them one by one, the newest first",
        )
    if not paths:
        found = status(session.source(), state, plan=plan)
        if not any(one.reordered or one.unread for one in found.plan_partitions):
            if found.silence is not None:
                raise RefusedError(
                    f"nothing changed: whether an order of {name} is left is not known: no controller answers"
                    f" ({found.silence}), and brokers may show orders of before",
                    next_step="try again when a controller answers",
                    code="orders-not-known",
                )
            _show_nothing_left(session)
            return
    confirm(session.output, f"Put the orders of {_in_words(paths[0]) if paths else name} back?", yes=yes)
    done = undo(paths[0], **tools) if paths else undo_plan(plan, **tools)
    _show_put_right(session, done, undone=True)


def _in_words(path: Path) -> str:
    """A journal as a question names it."""
    journal = read_journal(path)
    return f"journal {path.stem} ({journal.command} by {journal.who.user}@{journal.who.host})"


def _show_nothing_left(session: Session) -> None:
    show_put_right(session.output, (), journal=None, plan_id=None, closed=True, following=None)
    for journal in open_elsewhere(state_directory(), session.source().cluster().cluster_id):
        session.output.note(f"journal {journal.path.stem} is open, and is of another cluster: {journal.cluster_id}")


def _plan_named(session: Session, name: str | None) -> Plan | None:
    """The plan of a file, where the name is one of a plan file; None where it names a journal."""
    if name is None or not Path(name).is_file():
        return None
    try:
        return plan_for_this_cluster(session, Path(name))
    except BadInputError:
        if Path(name).suffix == ".jsonl":
            return None
        raise


def _show_put_right(session: Session, done: PutRight, *, undone: bool) -> None:
    session.output.end_progress()
    puts = list(_puts(done, undone=undone))
    show_put_right(
        session.output,
        puts,
        journal=done.journal,
        plan_id=done.plan_id,
        closed=done.closed,
        following=None if done.closed else ("recover", "status"),
    )
    bad = [one for one in puts if not one.good]
    if not done.closed or bad:
        left = ", ".join(dict.fromkeys(one.name for one in bad)) or "the journal is open"
        if done.unrecorded:
            raise PartlyDoneError(
                f"what was done is told here, and could not be written down: {done.unrecorded}",
                next_step="free space, then kelr recover resume",
            )
        raise PartlyDoneError(f"not everything is as it should be: {left}", next_step="kelr recover status tells more")


def _puts(done: PutRight, *, undone: bool) -> list[Put]:
    puts = [
        Put(
            "order",
            one.topic,
            one.partition,
            _how(restored=one.restored, settled=one.settled),
            one.restored,
            None if one.order is None else ",".join(map(str, one.order)),
            ",".join(map(str, one.restores)),
            one.text,
            one.error,
        )
        for one in done.orders
    ]
    puts += [
        Put(
            "config",
            one.whose,
            None,
            _how(restored=one.restored, settled=one.settled and one.error != NOT_REGISTERED),
            one.restored,
            one.now,
            one.old,
            one.text,
            one.error,
        )
        for one in done.configs
    ]
    puts += [
        Put(
            "election",
            one.topic,
            one.partition,
            one.ended.value,
            # An election that was done is no failure of undo: it cannot be taken back, and is told.
            undone or one.good,
            None if one.leader is None else str(one.leader),
            str(one.wanted),
            "cannot be undone" if undone and one.good else one.text,
            one.error,
        )
        for one in done.applied
    ]
    return puts


def _how(*, restored: bool, settled: bool) -> str:
    return _RESTORED if restored else _CHANGED if settled else _NOT_RESTORED


# The audit log.


def show_log(session: Session, *, since: str | None, topics: Sequence[str]) -> None:
    """Show the audit log, oldest first; with the connection flags of a cluster, what concerns that one.

    Raises:
        UsageError: `since` is no moment.
        BadInputError: a line is garbled.
        ConnectError: the cluster was named by its address and cannot be asked for its id.
    """
    output, state = session.output, state_directory()
    cluster_id = _cluster_named(session)
    since_ms = None if since is None else _moment_ms(since)
    with output.listing(audit_view(), {"file": str(audit_file(state))}) as listing:
        records = audit.read(state, since_ms=since_ms, topics=topics or None, cluster_id=cluster_id)
        if output.format is OutputFormat.TABLE:
            records = as_people_read(records)
        while batch := list(itertools.islice(records, _LINES_AT_ONCE)):
            listing.add(batch)
    if output.format.for_people and not listing.rows:
        where = "" if cluster_id is None else f" of cluster {cluster_id}"
        output.note(f"nothing{where} in {audit_file(state)}" + (" since then" if since_ms is not None else ""))


def _cluster_named(session: Session) -> str | None:
    """The id of the cluster that flags name; None where none do. A context may know it without asking.

    An address in the environment names none: who looks up what was done may have no cluster to ask.
    """
    if not _NAME_A_CLUSTER & set(session.connection_flags):
        return None
    try:
        return session.settings.cluster_id or session.source().cluster().cluster_id
    except ConnectError as error:
        raise type(error)(
            f"which cluster's records to show is not known: {error.message}",
            next_step="leave the connection flags out, to see the records of all clusters",
        ) from error


def _moment_ms(text: str) -> int:
    """``2h`` ago, or a moment in ISO 8601."""
    try:
        return MACHINE.now_ms() - read_duration_ms(text, "--since")
    except UsageError:
        pass
    try:
        return from_iso(text)
    except ValueError as error:
        raise UsageError(f"--since: {text!r} {error}", next_step="write 2h, or 2026-08-20T03:12:00Z") from error


def clear_the_elr(session: Session, topic: str, *, yes_clear: str | None, force: str | None, dry_run: bool) -> None:
    """Show the price, ask for the topic's name, and clear its ELR and LastKnownELR.

    Raises:
        RefusedError: it cannot be cleared, nobody agreed, or it takes a reason.
    """
    require_live(session, dry_run=dry_run)
    force = read_reason(force)
    if yes_clear is not None and yes_clear != topic:
        raise UsageError(
            f"--yes-clear-elr-of names topic {yes_clear}, and --topic {topic}", next_step="name the same topic twice"
        )
    refuse_open_journals(state_directory(), session.source().cluster().cluster_id, (), topics=(topic,))
    price = price_of_clearing(topic, source=session.source(), clock_ms=MACHINE.now_ms)
    output = session.output
    if output.format.for_people:
        for line in price_lines(output, price):
            output.line(line)
    try:
        _agree(output, price, yes_clear=yes_clear, force=force, dry_run=dry_run)
    except RefusedError as error:
        _show_clearing(output, price, None, error.message, following=_clear_again(price, force))
        raise
    if dry_run:
        _show_clearing(output, price, None, "nothing was changed", following=_clear_again(price, force))
        return
    clearing = clear_elr(price, force_reason=force, **change_tools(session, session.source()))
    output.end_progress()
    _show_clearing(output, price, clearing, _clearing_in_words(clearing), following=_after_clearing(clearing))
    if not clearing.good:
        raise PartlyDoneError(
            f"topic {topic} is not cleared as it should be: {_clearing_in_words(clearing)}",
            next_step="free space, then kelr recover resume" if clearing.unrecorded else "kelr recover status",
        )


@nothing_changed_yet()
def _agree(output: Output, price: ElrPrice, *, yes_clear: str | None, force: str | None, dry_run: bool) -> None:
    if price.refusal is not None:
        raise RefusedError(
            f"nothing was changed: {price.refusal}", next_step=f"kelr explain {price.topic} tells how it stands"
        )
    if price.needs_force is not None and force is None and not dry_run:
        raise RefusedError(
            f"nothing was changed: {price.needs_force}",
            next_step=f"start that broker instead, or add --force '{EXAMPLE}'",
        )
    if dry_run or yes_clear is not None:
        return
    # A process that was started without a stdin has none at all.
    if sys.stdin is None or not sys.stdin.isatty():
        raise RefusedError(
            "not confirmed; nothing changed",
            why="there is no terminal to ask on",
            next_step=f"add --yes-clear-elr-of {price.topic}",
            code="no-terminal",
        )
    output.stdout.flush()
    output.stderr.write(f"Type the topic's name to clear its ELR and LastKnownELR ({price.topic}): ")
    output.stderr.flush()
    answer = sys.stdin.readline().strip()
    if answer != price.topic:
        raise RefusedError(
            "not confirmed; nothing changed",
            why=f"the answer was {answer!r}, not {price.topic}",
            next_step="type the topic's name",
            code="answer-was-no",
        )


def _show_clearing(
    output: Output, price: ElrPrice, clearing: Clearing | None, text: str, *, following: Sequence[str] | None
) -> None:
    if output.format.for_people:
        if clearing is not None:
            output.line(text)
        elif not price.refusal:
            output.note(text)
        if following is not None:
            output.next(following)
        return
    with output.listing(cleared_view(), price_head(price)) as listing:
        done = set() if clearing is None else set(clearing.cleared)
        listing.add(one if clearing is None else replace(one, cleared=one.address in done) for one in price.cleared)
        listing.finish(
            {
                "done": clearing is not None and clearing.good,
                "restored": None if clearing is None else clearing.config.restored,
                "text": text,
                "next": None if following is None else output.next_command(following),
            }
        )


def _clearing_in_words(clearing: Clearing) -> str:
    if clearing.error is not None:
        return f"min.insync.replicas could not be written: {error_in_words(clearing.error)}"
    cleared = f"ELR and LastKnownELR of {len(clearing.cleared)} partitions are empty"
    left = f"; those of {', '.join(map(str, clearing.left))} are not" if clearing.left else ""
    restored = "has its old value" if clearing.config.restored else f"was not restored ({clearing.config.text})"
    start = "" if clearing.left else "; brokers may be started now, none of them is elected by itself"
    missing = f"; this could not be written down: {clearing.unrecorded}" if clearing.unrecorded else ""
    return f"{cleared}{left}; min.insync.replicas {restored}{start}{missing}"


def _clear_again(price: ElrPrice, force: str | None) -> tuple[str, ...] | None:
    if price.refusal is not None:
        return None
    if price.needs_force is not None and force is None:
        # A reason is for somebody to give, and the better way stands in the explanation.
        return ("explain", price.topic)
    reason = () if force is None else ("--force", force)
    return ("recover", "clear-elr", "--topic", price.topic, *reason, "--yes-clear-elr-of", price.topic)


def _after_clearing(clearing: Clearing) -> tuple[str, ...]:
    if clearing.unrecorded:
        return ("recover", "resume")
    return ("recover", "plan", clearing.topic, "--out", "plan.json") if clearing.good else ("recover", "status")
