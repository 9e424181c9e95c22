"""What ``kelr elect`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kelr import __version__
from kelr.commands.changing import (
    carried_out,
    ended,
    hand_of,
    kept_plan,
    refuse_open,
    refuse_without_controller,
    require_live,
    who_changes,
)
from kelr.commands.consent import ask_consent, can_ask, shown_before_asking
from kelr.commands.election_options import Wanted, read_options
from kelr.commands.elections_on_record import on_record
from kelr.commands.interrupts import nothing_changed_yet
from kelr.commands.recovering import PLAN_FILE, disks_of, reporter, rescue_commands, source_with
from kelr.commands.seen import fail_unseen, sees_any
from kelr.commands.session import Session
from kelr.commands.stock_tools import stock_connection
from kelr.controller import choose_rules
from kelr.engine.planning import plan_of
from kelr.engine.words import brokers
from kelr.errors import NotRecordedError, RefusedError, UsageError
from kelr.model import Cluster, ElectionType, PartitionState, Situation, TopicError, TopicPartition
from kelr.model.plan import (
    Applied,
    Consent,
    ElectionResult,
    Method,
    NotPlanned,
    Plan,
    PlannedElection,
    Unplanned,
)
from kelr.model.waiting import Waiting
from kelr.recovery.apply import DEFAULT_BATCH, apply_plan
from kelr.recovery.gather import (
    Gathered,
    LeaveOut,
    Owing,
    PollInterval,
    gather,
    gather_until,
    is_led,
    quorum_owing,
    waiting_of,
    window_owing,
)
from kelr.recovery.places import state_directory
from kelr.recovery.plan_making import notes_on
from kelr.sources.base import Source, silence_of
from kelr.sources.ground import MACHINE
from kelr.view.applied import show_applied
from kelr.view.describe import NOTHING_READ
from kelr.view.explain_report import not_known_in_words
from kelr.view.plan import show_plan, show_question
from kelr.view.plan_document import PlanContext
from kelr.view.plan_left import next_of
from kelr.view.plan_words import targets_of
from kelr.view.waiting import WaitingDisplay

# Whether what ``kelr elect`` was asked for can be at all, held against the partitions before anybody is waited for.


def check_possible(wanted: Wanted, found: Gathered) -> None:
    """Refuse numbers that fit none of the partitions; where they fit some, the others are refused one by one.

    Raises:
        UsageError: no partition has as many replicas as there are to be heard, or the one that is to lead.
    """
    states = [*found.snapshot.partitions, *found.left_out]
    if not states:
        return
    wishes = [(state, wanted.wish_for(state.address)) for state in states]
    most = max(len(state.replicas) for state in states)
    asked = [wish.minimal_replicas for _, wish in wishes if wish.minimal_replicas is not None]
    if len(asked) == len(wishes) and all(number > most for number in asked):
        raise UsageError(
            f"as many as {min(asked)} replicas have to answer, and no partition that was named has more than {most}",
            next_step=f"give --minimal-replicas (minimalReplicas in a file) {most} or less",
        )
    designated = [wish.desired_leader for _, wish in wishes if wish.desired_leader is not None]
    if len(designated) == len(wishes) and not any(wish.desired_leader in state.replicas for state, wish in wishes):
        first, wish = wishes[0]
        more = f", nor has any of the {len(wishes) - 1} others the one named for it" if len(wishes) > 1 else ""
        raise UsageError(
            f"{first.address} has no replica on broker {wish.desired_leader}: its replicas are"
            f" {', '.join(map(str, first.replicas))}{more}",
            next_step="name one of its replicas",
        )


__all__ = ["carry_out", "read_options"]

_MOST_TARGETS = 20
_LONGEST_TARGET = 80
"""A next command names so many topics, each in so many characters."""


def carry_out(session: Session, wanted: Wanted, logs: Sequence[Path]) -> None:
    """Read, plan, show, ask, elect, show what came of it.

    Raises:
        KelrError: with the exit code that says how it ended.
    """
    if not wanted.dry_run:
        require_live(session, dry_run_helps=True)
    source = source_with(session, logs)
    found = _gathered(session, source, wanted)
    plan = _plan(source, wanted, found)
    errors = found.snapshot.topic_errors
    context = PlanContext(
        stock_connection=stock_connection(session),
        controller_silence=silence_of(source),
        not_known=not_known_in_words(found.not_known) if found.not_known else "",
        notes=notes_on(found.decisions),
    )
    if context.not_known and not session.output.format.for_people:
        session.output.note(context.not_known)
    if wanted.dry_run:
        _show_dry_run(session, wanted, plan, context, errors)
        applied: tuple[Applied, ...] = ()
    else:
        refuse_open(session, plan)
        applied = _apply(session, source, wanted, plan, errors=errors, context=context)
    seen = bool(found.decisions or found.left_out or errors) or sees_any(source, wanted.selection)
    if not seen:
        session.output.note(NOTHING_READ)
    refuse_without_controller(source, plan)
    error = ended(plan, applied, errors)
    if error is not None:
        raise error
    fail_unseen(seen=seen)


# Reading.


@nothing_changed_yet()
def _gathered(session: Session, source: Source, wanted: Wanted) -> Gathered:
    # A preferred election moves the leadership among those in sync: what disks of others hold stands as before.
    asks_record = wanted.election is not ElectionType.PREFERRED
    elections = on_record(source, session.output.note).elections if asks_record else None
    with session.progress("partitions whose logs were asked for") as progress:
        first = gather(
            source,
            wanted.selection,
            clock_ms=MACHINE.now_ms,
            leave_out=_leave_out(wanted),
            elections=elections,
            progress=progress,
        )
    check_possible(wanted, first)
    owing = _owing(wanted)
    if owing is None:
        return first
    if wanted.dry_run:
        _say_what_is_not_waited_for(session, waiting_of(first, owing, 0, session.timeout_s))
        return first
    what = "the recovery quorum" if wanted.election is ElectionType.LONGEST_LOG_BALANCED else "the live replicas"
    with WaitingDisplay(session.output, what) as display:
        return gather_until(
            source,
            first,
            owing,
            rhythm=PollInterval(session.timeout_s, MACHINE),
            clock_ms=MACHINE.now_ms,
            elections=elections,
            report=display.show,
        )


def _say_what_is_not_waited_for(session: Session, waiting: Waiting) -> None:
    if waiting.open:
        missing = brokers(tuple(waiting.missing))
        session.output.note(
            f"A dry run does not wait; the election would wait up to {waiting.limit_s:g} s for {missing}."
        )


def _owing(wanted: Wanted) -> Owing | None:
    if wanted.election is ElectionType.LONGEST_LOG_BALANCED:
        return quorum_owing(wanted.minimal_replicas)
    if wanted.election is ElectionType.LONGEST_LOG_AGGRESSIVE:
        return window_owing(wanted.window_s, wanted.minimal_replicas)
    return None


def _leave_out(wanted: Wanted) -> LeaveOut:
    """Partitions that have what was asked for: of thousands, only those that need an election are decided."""

    def preferred_leads(cluster: Cluster, state: PartitionState) -> bool:
        return is_led(cluster, state) and state.leader == state.replicas[0]

    def led(cluster: Cluster, state: PartitionState) -> bool:
        # A designation that was asked for by name, of a partition that has a leader, is refused and not passed over.
        designated = wanted.election is ElectionType.DESIGNATION and wanted.named_one_by_one
        return is_led(cluster, state) and not designated

    return preferred_leads if wanted.election is ElectionType.PREFERRED else led


# Planning.


def _plan(source: Source, wanted: Wanted, found: Gathered) -> Plan:
    made = plan_of(
        found.snapshot,
        found.decisions,
        wanted.wish_for,
        now_ms=found.snapshot.taken_at_ms,
        made_by=f"kelr/{__version__}",
    )
    if not made.rules:
        made = replace(made, rules=choose_rules(source.cluster().features).rules.name)
    led = tuple(_led(state, wanted.election) for state in found.left_out)
    left = sorted((*made.not_planned, *led), key=lambda one: one.address)
    return replace(made, not_planned=tuple(left))


def _led(state: PartitionState, election: ElectionType) -> NotPlanned:
    leads = "the preferred replica leads" if election is ElectionType.PREFERRED else "it has a leader"
    return NotPlanned(
        state.topic, state.partition, Unplanned.NOT_NEEDED, Situation.HEALTHY, reason=leads, leader=state.leader
    )


# Changing.


def _apply(
    session: Session,
    source: Source,
    wanted: Wanted,
    plan: Plan,
    *,
    errors: Sequence[TopicError],
    context: PlanContext,
) -> tuple[Applied, ...]:
    output = session.output
    failed = tuple(one for one in plan.not_planned if one.why is not Unplanned.NOT_NEEDED)
    reader = shown_before_asking(output)
    if reader is not None and (plan.elections or failed or context.not_known):
        # The partitions that need no election are named once, with the results.
        show_question(reader, replace(plan, not_planned=failed), context, asked=not wanted.given.yes)
    try:
        consented = ask_consent(output, plan, wanted.given)
    except RefusedError:
        if not output.format.for_people:
            _show_dry_run(session, wanted, plan, context, errors)
            raise
        for command in _plans_with_rescue(wanted, plan):
            output.note(f"to save first what would be lost: {output.next_command(command)}")
        raise
    applied: tuple[Applied, ...] = ()
    saved: Path | None = None
    unrecorded: NotRecordedError | None = None
    if plan.elections:
        state = state_directory()
        saved = kept_plan(plan, state) if any(one.method is not Method.PREFERRED for one in plan.elections) else None
        carrying_out = functools.partial(
            apply_plan,
            plan,
            source=source,
            hand=hand_of(session),
            state_directory=state,
            ground=MACHINE,
            who=who_changes(session),
            consented=consented,
            batch=wanted.batch or DEFAULT_BATCH,
            keep_order=wanted.keep_order,
            report=reporter(session),
            command="elect",
        )
        applied, unrecorded = carried_out(carrying_out)
        output.end_progress()
    following = _after(plan, applied, saved) if unrecorded is None else ("recover", "resume")
    error = unrecorded or ended(plan, applied, errors)
    if saved is not None:
        left = rescue_commands(plan, saved, disks_of(session, source))
        context = replace(context, disks_left=tuple(one.words for one in left if one.disks))
    show_applied(
        output,
        plan,
        applied,
        context=context,
        errors=errors,
        following=following,
        exit_code=0 if error is None else error.exit_code,
        as_stock=True,
    )
    if unrecorded is not None:
        raise unrecorded
    return applied


# The end.


def _after(plan: Plan, applied: Sequence[Applied], saved: Path | None) -> tuple[str, ...] | None:
    """The next command: what settles it, what verifies it, or what shows the partitions."""
    ends = {one.ended for one in applied}
    if ends & {ElectionResult.UNKNOWN, ElectionResult.NOT_RESTORED}:
        return ("recover", "status")
    if saved is not None and ends & {ElectionResult.DONE, ElectionResult.OTHER_LEADER}:
        return ("recover", "verify", str(saved))
    left = _of_those_left(plan)
    if not applied and left is not None:
        return left
    return ("describe", *_targets([one.address for one in plan.elections])) if plan.elections else None


def _of_those_left(plan: Plan) -> tuple[str, ...] | None:
    """The command that saves what partitions without an election are about to lose, or explains those that are refused
    one; None where there are none."""
    refused = [one.address for one in plan.not_planned if one.why is Unplanned.REFUSED]
    return next_of(plan.not_planned) or (("explain", *_targets(refused)) if refused else None)


def _show_dry_run(
    session: Session, wanted: Wanted, plan: Plan, context: PlanContext, errors: Sequence[TopicError]
) -> None:
    """Show the plan, and what is to be typed next: before the elections, what saves the records that they give up."""
    output, elect = session.output, _after_dry_run(session, wanted, plan)
    plans = _plans_with_rescue(wanted, plan)
    following = next(iter(plans), elect)
    if output.format.for_people and plan.elections:
        # What saves first, and the election, are steps of the plan.
        by_itself = elect if elect is not None and elect[0] == "elect" else ()
        context = replace(context, first=tuple(plans), carry_out=by_itself)
        following = None if plans or by_itself else following
    show_plan(output, plan, context=context, errors=errors, following=following)


def _plans_with_rescue(wanted: Wanted, plan: Plan) -> list[tuple[str, ...]]:
    """The commands that write these elections down in plans, which lead to the rescue of what they give up; none where
    there is nothing to save, or somebody has accepted the loss. A plan has one leader to designate."""
    if wanted.given.accept_loss is not None or not rescue_commands(plan, Path(PLAN_FILE)):
        return []
    kinds: dict[tuple[str, ...], list[PlannedElection]] = {}
    for one in plan.elections:
        whom = ("--designate", str(one.elect)) if one.election is ElectionType.DESIGNATION else ()
        kinds.setdefault(("--election-type", one.election.value, *whom), []).append(one)
    return [
        (
            *("recover", "plan"),
            *(() if wanted.selection.is_everything else targets_of(one.address for one in elections)),
            *kind,
            *("--out", PLAN_FILE if len(kinds) == 1 else f"plan-{elections[0].elect}.json"),
        )
        for kind, elections in kinds.items()
    ]


def _after_dry_run(session: Session, wanted: Wanted, plan: Plan) -> tuple[str, ...] | None:
    """The command that carries it out; where that cannot be written down, the one that explains."""
    if not plan.elections:
        return _of_those_left(plan)
    kinds = {one.consent for one in plan.elections}
    if Consent.FORCE in kinds or session.settings.saved is not None:
        # A reason is for somebody to give, and what was saved cannot be changed.
        return ("explain", *_targets([one.address for one in plan.elections]))
    accepted = ("--accept-loss", str(plan.loss_to_accept)) if Consent.LOSS in kinds else ()
    return (*wanted.repeat, *accepted, *(() if can_ask(session.output) else ("--yes",)))


def _targets(addresses: Sequence[TopicPartition]) -> tuple[str, ...]:
    """These partitions as targets of a next command that only looks: of a topic with very many of them the whole topic,
    of very many topics all that there is."""
    targets = tuple(
        target if len(target) <= _LONGEST_TARGET else target.rpartition(":")[0] for target in targets_of(addresses)
    )
    return targets if len(targets) <= _MOST_TARGETS else ()
