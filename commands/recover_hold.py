"""What ``kelr recover hold`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from kelr.commands.changing import hand_of, require_live, who_changes
from kelr.commands.interrupts import nothing_changed_yet
from kelr.commands.reasons import EXAMPLE, read_reason
from kelr.commands.recovering import reporter
from kelr.commands.session import Session
from kelr.errors import PartlyDoneError, RefusedError, UsageError
from kelr.recovery.hold import Held, HoldPrice, hold_topic, price_of_hold
from kelr.recovery.journal_store import refuse_open_journals
from kelr.recovery.places import state_directory
from kelr.sources.ground import MACHINE
from kelr.sources.live.failures import error_in_words
from kelr.view.hold import hold_view, price_head, price_lines
from kelr.view.output import Output


def hold(session: Session, topic: str, *, yes_clear: str | None, force: str | None, dry_run: bool) -> None:
    """Show the price, ask for the topic's name, and clear its ELR and LastKnownELR.

    Raises:
        RefusedError: it cannot be held, nobody agreed, or it takes a reason.
    """
    require_live(session, dry_run=dry_run)
    force = read_reason(force)
    if yes_clear is not None and yes_clear != topic:
        raise UsageError(
            f"--yes-clear-elr-of names topic {yes_clear}, and --topic {topic}", next_step="name the same topic twice"
        )
    refuse_open_journals(state_directory(), session.source().cluster().cluster_id, (), topics=(topic,))
    price = price_of_hold(topic, source=session.source(), clock_ms=MACHINE.now_ms)
    output = session.output
    if output.format.for_people:
        for line in price_lines(output, price):
            output.line(line)
    try:
        _agree(output, price, yes_clear=yes_clear, force=force, dry_run=dry_run)
    except RefusedError as error:
        _show_hold(output, price, None, error.message, following=_hold_again(price, force))
        raise
    if dry_run:
        _show_hold(output, price, None, "nothing was changed", following=_hold_again(price, force))
        return
    held = hold_topic(
        price,
        source=session.source(),
        hand=hand_of(session),
        state_directory=state_directory(),
        ground=MACHINE,
        who=who_changes(session),
        force_reason=force,
        report=reporter(session),
    )
    output.end_progress()
    _show_hold(output, price, held, _held_in_words(held), following=_after_hold(held))
    if not held.good:
        raise PartlyDoneError(
            f"topic {topic} is not held as it should be: {_held_in_words(held)}",
            next_step="free space, then kelr recover resume" if held.unrecorded else "kelr recover status",
        )


@nothing_changed_yet()
def _agree(output: Output, price: HoldPrice, *, yes_clear: str | None, force: str | None, dry_run: bool) -> None:
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
    with output.listing(hold_view(), price_head(price)) as listing:
        done = set() if held is None else set(held.cleared)
        listing.add(one if held is None else replace(one, cleared=one.address in done) for one in price.cleared)
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
        return f"min.insync.replicas could not be written: {error_in_words(held.error)}"
    cleared = f"ELR and LastKnownELR of {len(held.cleared)} partitions are empty"
    left = f"; those of {', '.join(map(str, held.left))} are not" if held.left else ""
    restored = "has its old value" if held.config.restored else f"was not restored ({held.config.text})"
    start = "" if held.left else "; brokers may be started now, none of them is elected by itself"
    missing = f"; this could not be written down: {held.unrecorded}" if held.unrecorded else ""
    return f"{cleared}{left}; min.insync.replicas {restored}{start}{missing}"


def _hold_again(price: HoldPrice, force: str | None) -> tuple[str, ...] | None:
    if price.refusal is not None:
        return None
    if price.needs_force is not None and force is None:
        # A reason is for somebody to give, and the better way stands in the explanation.
        return ("explain", price.topic)
    reason = () if force is None else ("--force", force)
    return ("recover", "hold", "--topic", price.topic, *reason, "--yes-clear-elr-of", price.topic)


def _after_hold(held: Held) -> tuple[str, ...]:
    if held.unrecorded:
        return ("recover", "resume")
    return ("recover", "plan", held.topic, "--out", "plan.json") if held.good else ("recover", "status")
