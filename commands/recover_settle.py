"""What ``kelr recover status``, ``resume``, ``undo``, ``hold`` and ``log`` do once their options are read."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from kelr.commands.changing import hand_of, require_live, who_changes
from kelr.commands.recovering import read_duration_ms, reporter
from kelr.commands.session import Session, now_ms
from kelr.errors import BadInputError, PartlyDoneError, RefusedError, UsageError
from kelr.model import Plan, TopicPartition
from kelr.recovery import audit
from kelr.recovery.hold import Held, HoldPrice, hold_topic, price_of_hold
from kelr.recovery.mending import PutRight
from kelr.recovery.places import audit_file, state_directory
from kelr.recovery.plan_file import read_plan
from kelr.recovery.resume import resume
from kelr.recovery.shelf import find_journal
from kelr.recovery.status import PartitionStatus, RecoveryStatus, status
from kelr.recovery.times import from_iso
from kelr.recovery.undo import undo, undo_plan
from kelr.view.audit import audit_view
from kelr.view.hold import Loses, Price, hold_view, price_head, price_lines
from kelr.view.output import Output
from kelr.view.recovery_status import OpenJournal, Put, Standing, Status, show_put_right, show_status

_LINES_AT_ONCE = 1000
"""As many lines of the audit log decide how wide its columns are."""
_RESTORED, _CHANGED, _NOT_RESTORED = "restored", "changed by somebody else", "not restored"


# Status.


def show_what_is_left(session: Session, plan_file: Path | None) -> bool:
    """Show what earlier runs left behind; whether nothing is."""
    plan = None if plan_file is None else read_plan(plan_file).plan
    found = status(session.source(), state_directory(), plan=plan)
    show_status(session.output, _status(found), following=_following(found, plan_file))
    return found.clean


def _status(found: RecoveryStatus) -> Status:
    standings = [_standing(None, one) for one in found.plan_partitions]
    for journal in found.journals:
        standings += [_standing(journal.name, one) for one in journal.partitions]
        standings += [
            Standing(journal.name, one.topic, None, f"{one.name}={one.now or 'not set'}: {one.text}", one.left)
            for one in journal.configs
        ]
    journals = tuple(
        OpenJournal(one.name, one.command, f"{one.user}@{one.host}", one.begun_ms, one.last_ms, one.plan_id, one.text)
        for one in found.journals
    )
    return Status(found.cluster_id, found.at_work, journals, tuple(standings), found.garbled, found.clean)


def _standing(journal: str | None, one: PartitionStatus) -> Standing:
    return Standing(
        journal,
        one.topic,
        one.partition,
        one.text,
        one.reordered,
        one.wanted,
        one.leader,
        one.order,
        one.restores,
        one.ended,
    )


def _following(found: RecoveryStatus, plan_file: Path | None) -> tuple[str, ...] | None:
    if found.at_work:
        return ("recover", "status")
    if found.journals:
        return tuple(found.journals[-1].next_step.split())
    if found.reordered and plan_file is not None:
        return ("recover", "undo", str(plan_file))
    return None


# Resume and undo.


def go_on(session: Session, name: str | None) -> None:
    """Finish what a run began that was cut short. Raises KelrError where something is left."""
    require_live(session)
    path = find_journal(state_directory(), session.source().cluster().cluster_id, name)
    done = resume(
        path,
        source=session.source(),
        hand=hand_of(session),
        state_directory=state_directory(),
        clock_ms=now_ms,
        who=who_changes(session),
        report=reporter(session),
    )
    _show_put_right(session, done, undone=False)


def take_back(session: Session, name: str | None) -> None:
    """Put orders and configs of a journal, or of a plan whose journal is lost, back. Raises KelrError where something
    is left."""
    require_live(session)
    state = state_directory()
    plan = _plan_named(name)
    if plan is not None:
        done = undo_plan(
            plan,
            source=session.source(),
            hand=hand_of(session),
            state_directory=state,
            clock_ms=now_ms,
            who=who_changes(session),
            report=reporter(session),
        )
    else:
        done = undo(
            find_journal(state, session.source().cluster().cluster_id, name),
            source=session.source(),
            hand=hand_of(session),
            state_directory=state,
            clock_ms=now_ms,
            who=who_changes(session),
            report=reporter(session),
        )
    _show_put_right(session, done, undone=True)


def _plan_named(name: str | None) -> Plan | None:
    """The plan of a file, where the name is one of a plan file; None where it names a journal."""
    if name is None or not Path(name).is_file():
        return None
    try:
        return read_plan(Path(name)).plan
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
        Put("config", one.topic, None, _how(restored=one.restored, settled=one.settled), one.restored, one.now, one.old)
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


# Hold.


def hold(session: Session, topic: str, *, yes_clear: str | None, force: str | None, dry_run: bool) -> None:
    """Show the price, ask for the topic's name, and clear its ELR and LastKnownELR.

    Raises:
        RefusedError: it cannot be held, nobody agreed, or it takes a reason.
    """
    require_live(session)
    if yes_clear is not None and yes_clear != topic:
        raise UsageError(
            f"--yes-clear-elr-of names topic {yes_clear}, and --topic {topic}", next_step="name the same topic twice"
        )
    price = price_of_hold(topic, source=session.source(), clock_ms=now_ms)
    output = session.output
    if output.format.for_people:
        for line in price_lines(output, _price(price), _loses(price, None)):
            output.line(line)
    try:
        _agree(output, price, yes_clear=yes_clear, force=force, dry_run=dry_run)
    except RefusedError as error:
        _show_hold(output, price, None, error.message, following=_hold_again(price))
        raise
    if dry_run:
        _show_hold(output, price, None, "nothing was changed", following=_hold_again(price))
        return
    held = hold_topic(
        price,
        source=session.source(),
        hand=hand_of(session),
        state_directory=state_directory(),
        clock_ms=now_ms,
        who=who_changes(session),
        force_reason=force,
        report=reporter(session),
    )
    output.end_progress()
    _show_hold(output, price, held, _held_in_words(held), following=_after_hold(held))
    if not held.good:
        raise PartlyDoneError(
            f"topic {topic} is not held as it should be: {_held_in_words(held)}", next_step="kelr recover status"
        )


def _agree(output: Output, price: HoldPrice, *, yes_clear: str | None, force: str | None, dry_run: bool) -> None:
    if price.refusal is not None:
        raise RefusedError(f"nothing was changed: {price.refusal}")
    if price.needs_force is not None and not (force or "").strip() and not dry_run:
        raise RefusedError(
            f"nothing was changed: {price.needs_force}",
            next_step="bring that broker back instead, or add --force 'why it has to be'",
        )
    if dry_run or yes_clear is not None:
        return
    if not sys.stdin.isatty():
        raise RefusedError(
            "nothing was changed: there is no terminal to ask on", next_step=f"add --yes-clear-elr-of {price.topic}"
        )
    output.stdout.flush()
    output.stderr.write(f"Type the topic's name to clear its ELR and LastKnownELR ({price.topic}): ")
    output.stderr.flush()
    answer = sys.stdin.readline().strip()
    if answer != price.topic:
        raise RefusedError(
            f"nothing was changed: the answer was {answer!r}, not {price.topic}", next_step="type the topic's name"
        )


def _show_hold(
    output: Output, price: HoldPrice, held: Held | None, text: str, *, following: Sequence[str] | None
) -> None:
    if output.format.for_people:
        if held is not None:
            output.line(text)
        elif not price.refusal:
            output.note(text)
        if following is not None:
            output.next(following)
        return
    with output.listing(hold_view(), price_head(_price(price))) as listing:
        listing.add(_loses(price, held))
        listing.finish(
            {
                "done": held is not None and held.good,
                "restored": None if held is None else held.config.restored,
                "text": text,
                "next": None if following is None else output.next_command(following),
            }
        )


def _held_in_words(held: Held) -> str:
    if held.error is not None:
        return f"min.insync.replicas could not be written: {held.error}"
    cleared = f"ELR and LastKnownELR of {len(held.cleared)} partitions are empty"
    left = f"; those of {', '.join(map(str, held.left))} are not" if held.left else ""
    restored = "has its old value" if held.config.restored else f"was not restored ({held.config.text})"
    start = "" if held.left else "; brokers may be started now, none of them is elected by itself"
    return f"{cleared}{left}; min.insync.replicas {restored}{start}"


def _hold_again(price: HoldPrice) -> tuple[str, ...] | None:
    if price.refusal is not None:
        return None
    force = ("--force", "REASON") if price.needs_force else ()
    return ("recover", "hold", "--topic", price.topic, "--yes-clear-elr-of", price.topic, *force)


def _after_hold(held: Held) -> tuple[str, ...]:
    return ("recover", "plan", held.topic, "--out", "plan.json") if held.good else ("recover", "status")


def _price(price: HoldPrice) -> Price:
    return Price(
        price.topic,
        price.cluster_id,
        price.own_value,
        price.writes,
        price.leaderless,
        price.producers,
        price.defect,
        price.refusal,
        price.needs_force,
    )


def _loses(price: HoldPrice, held: Held | None) -> list[Loses]:
    cleared: set[TopicPartition] = set() if held is None else set(held.cleared)
    return [
        Loses(
            one.topic,
            one.partition,
            one.leader,
            one.elr,
            one.last_known_elr,
            one.clean,
            None if held is None else one.address in cleared,
        )
        for one in price.cleared
    ]


# The audit log.


def show_log(output: Output, *, since: str | None, topics: Sequence[str]) -> None:
    """Show the audit log, oldest first.

    Raises:
        UsageError: `since` is no moment.
        BadInputError: a line is garbled.
    """
    state = state_directory()
    since_ms = None if since is None else _moment_ms(since)
    with output.listing(audit_view(), {"file": str(audit_file(state))}) as listing:
        records = audit.read(state, since_ms=since_ms, topics=topics or None)
        while batch := list(itertools.islice(records, _LINES_AT_ONCE)):
            listing.add(batch)
    if output.format.for_people and not listing.rows:
        output.note(f"nothing in {audit_file(state)}" + (" since then" if since_ms is not None else ""))


def _moment_ms(text: str) -> int:
    """``2h`` ago, or a moment in ISO 8601."""
    try:
        return now_ms() - read_duration_ms(text, "--since")
    except UsageError:
        pass
    try:
        return from_iso(text)
    except ValueError as error:
        raise UsageError(f"--since: {text!r} {error}", next_step="write 2h, or 2026-08-20T03:12:00Z") from error
