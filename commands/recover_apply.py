"""What ``kelr recover apply`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kelr.commands.changing import (
    carried_out,
    ended,
    hand_of,
    kept_plan,
    nothing_changed_yet,
    refuse_open,
    require_live,
    who_changes,
)
from kelr.commands.consent import ask_consent, can_ask, shown_before_asking
from kelr.commands.elections_on_record import on_record
from kelr.commands.recover_verify import plan_of_topics
from kelr.commands.recovering import (
    Rescue,
    change_tools,
    disks_of,
    plan_again,
    plan_for_this_cluster,
    reporter,
    rescue_commands,
    rescue_first,
    saved_before,
    saved_in_words,
    say_disks,
    source_with,
)
from kelr.commands.session import Session
from kelr.commands.stock_tools import stock_connection
from kelr.engine.planning import only_partitions
from kelr.engine.words import length_of_time
from kelr.errors import KelrError, NotRecordedError, RefusedError, UsageError
from kelr.model.plan import Applied, Consent, ElectionResult, Plan, Unplanned
from kelr.recovery.acls import require_authorization
from kelr.recovery.apply import DEFAULT_BATCH, apply_plan, check_plan, record_refused
from kelr.recovery.consent import Confirmation, accepts_loss, missing_code, missing_consent
from kelr.recovery.fences import result_of
from kelr.recovery.places import state_directory
from kelr.sources.base import Source
from kelr.sources.ground import MACHINE
from kelr.view.applied import Checked, show_applied, show_recheck
from kelr.view.output import Output
from kelr.view.plan import show_plan
from kelr.view.plan_document import PlanContext
from kelr.view.plan_words import partitions_in_words


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """The options of ``kelr recover apply``. Raises UsageError where one of them makes no sense."""

    path: Path
    given: Confirmation = field(default_factory=Confirmation)
    topics: Sequence[str] = ()
    logs: Sequence[Path] = ()
    batch: int | None = None
    pause_s: float | None = None
    keep_order: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise UsageError(f"--batch is {self.batch}, less than 1", next_step="give 1 or more")
        if self.pause_s is not None and not 0 <= self.pause_s <= 86_400:
            raise UsageError(
                f"--pause is {self.pause_s:g}, not a number of seconds", next_step="give something like 10"
            )


def carry_out(session: Session, wanted: ApplyOptions) -> None:
    """Show the plan, check it against the cluster, ask, and carry out what still holds.

    Raises:
        KelrError: with the exit code that says how it ended.
    """
    require_live(session, dry_run=wanted.dry_run)
    plan = plan_for_this_cluster(session, wanted.path)
    source = source_with(session, wanted.logs)
    if wanted.topics:
        plan = plan_of_topics(plan, wanted.topics, wanted.path)
    _require_in_time(session, plan, wanted)
    refuse_open(session, plan)
    if plan.elections:
        # Before the plan is checked: without READ its logs would seem to have changed.
        require_authorization(hand_of(session), plan)
    disks = disks_of(session, source)
    files = on_record(session.source(), session.output.note).saved
    saved = saved_before(plan, wanted.path, files)
    saving = _words(rescue_commands(plan, wanted.path, disks))
    context = PlanContext(
        stock_connection=stock_connection(session),
        rescue_commands=saving,
        saved=saved_in_words(plan, files),
        gone=frozenset(plan.gone),
    )
    say_disks(session.output, plan, MACHINE.now_ms())
    if not plan.elections:
        if session.output.format.for_people:
            show_plan(session.output, plan, context=context)
        _show_results(session, plan, (), context, None)
        _raise_if_nothing_is_left(plan, wanted.path)
        return
    checked = Checked(plan, _checked(session, source, plan, wanted))
    left = rescue_commands(plan, wanted.path, disks, saved)
    _show_before(session, wanted, checked, replace(context, rescue_commands=_words(left), all_saved=not left))
    all_done = len(checked.done) == len(checked.results) and session.output.format.for_people
    rescue = None if all_done else rescue_first(only_partitions(plan, checked.ready), wanted.path, disks, saved)
    if wanted.dry_run and not all_done:
        _end_dry_run(session, wanted, checked, context, rescue)
        return
    context = replace(context, disks_left=_words([one for one in left if one.disks]))
    _apply(session, wanted, source, checked, context, rescue=rescue)


def _show_before(session: Session, wanted: ApplyOptions, checked: Checked, context: PlanContext) -> None:
    """Where nothing is carried out yet, or somebody is asked first: what can run now, and what it costs. The plan
    itself was read where it was made."""
    output, part = session.output, only_partitions(checked.plan, checked.ready)
    settled = wanted.given.yes and missing_consent(part, wanted.given) is None and not wanted.dry_run
    if not part.elections and not checked.refused:
        return
    reader = output if output.format.for_people or wanted.dry_run else shown_before_asking(output)
    if reader is None or not reader.format.for_people or settled:
        return
    show_recheck(reader, checked, context)


# What is carried out.


def _require_in_time(session: Session, plan: Plan, wanted: ApplyOptions) -> None:
    """Raises RefusedError."""
    late_s = (MACHINE.now_ms() - plan.expires_at_ms) // 1000
    if late_s < 0:
        return
    again = plan_again(plan, [one.address for one in plan.elections], wanted.path)
    error = RefusedError(
        f"plan expired {length_of_time(late_s * 1000)} ago; nothing changed",
        why="the cluster may have changed since",
        next_step=session.output.next_command(again),
        code="plan-expired",
    )
    if not (wanted.dry_run or _nobody_to_ask(session.output, wanted.given)):
        _record_all_refused(session, plan, [*_refused_with(error, plan)], wanted.given)
    raise error


def _refused_with(error: KelrError, plan: Plan) -> Iterator[Applied]:
    text = ": ".join(filter(None, (error.message.removesuffix("; nothing changed"), error.why)))
    return (result_of(one, ElectionResult.REFUSED, text=text) for one in plan.elections)


def _record_all_refused(session: Session, plan: Plan, refused: Sequence[Applied], given: Confirmation) -> None:
    """The audit lines of a run that elects nobody. Where they cannot be written that is said beside why it was refused,
    as nothing was changed."""
    try:
        record_refused(
            plan,
            refused,
            state_directory=state_directory(),
            ground=MACHINE,
            who=who_changes(session),
            consented=given,
        )
    except (UsageError, RefusedError) as error:
        session.output.note(f"this refusal is not in the audit log: {error.message}")


@nothing_changed_yet()
def _checked(session: Session, source: Source, plan: Plan, wanted: ApplyOptions) -> tuple[Applied, ...]:
    if not plan.elections:
        return ()
    # Reading many at once is quick whatever the batch that is elected: a broker that hangs costs its timeout once.
    batch = max(wanted.batch or 0, DEFAULT_BATCH)
    checked = check_plan(plan, source=source, ground=MACHINE, batch=batch, report=reporter(session))
    session.output.end_progress()
    return checked


def _apply(
    session: Session,
    wanted: ApplyOptions,
    source: Source,
    checked: Checked,
    context: PlanContext,
    *,
    rescue: tuple[str, ...] | None,
) -> None:
    """Ask, and carry out what still holds.

    Args:
        rescue: the command that saves first what the elections give up.
    """
    part = only_partitions(checked.plan, checked.ready)
    done: tuple[Applied, ...] = ()
    unrecorded: NotRecordedError | None = None
    state, who, consented = state_directory(), who_changes(session), wanted.given
    if part.elections:
        try:
            consented = ask_consent(session.output, part, wanted.given)
        except RefusedError as not_confirmed:
            unasked = _nobody_to_ask(session.output, wanted.given)
            refused = [*checked.refused, *_refused_with(not_confirmed, part)]
            if not unasked:
                _record_all_refused(session, checked.plan, refused, wanted.given)
            forced = any(one.consent is Consent.FORCE for one in part.elections)
            following = None if forced else rescue or _flags(wanted, part)
            if not session.output.format.for_people:
                _show_results(session, checked.plan, checked.results, context, following)
            elif following is not None and unasked:
                session.output.next(following)
            raise
    record_refused(checked.plan, checked.refused, state_directory=state, ground=MACHINE, who=who, consented=consented)
    if part.elections:
        kept_plan(checked.plan, state)
        carrying_out = functools.partial(
            apply_plan,
            part,
            **change_tools(session, source),
            consented=consented,
            batch=wanted.batch or DEFAULT_BATCH,
            pause_s=wanted.pause_s or 0,
            keep_order=wanted.keep_order,
        )
        done, unrecorded = carried_out(carrying_out)
        session.output.end_progress()
    applied = _together(checked, done)
    following = _after(wanted, checked.plan, applied) if unrecorded is None else ("recover", "resume")
    error = unrecorded or ended(checked.plan, applied)
    _show_results(
        session,
        checked.plan,
        applied,
        context,
        following,
        again=_fix(wanted, checked.plan, applied),
        error=error,
    )
    if error is not None:
        raise error


def _together(checked: Checked, done: Sequence[Applied]) -> list[Applied]:
    """One result for each election of the plan, in its order."""
    results = {one.address: one for one in (*checked.results, *done)}
    return [results[one.address] for one in checked.plan.elections]


# The end.


def _nobody_to_ask(output: Output, given: Confirmation) -> bool:
    """Whether nobody said, or can say, yes: such a run tries nothing, and leaves no line in the audit log."""
    return not (given.yes or can_ask(output))


def _end_dry_run(
    session: Session, wanted: ApplyOptions, checked: Checked, context: PlanContext, rescue: tuple[str, ...] | None
) -> None:
    """Say what would be done. Raises RefusedError where it would not.

    Args:
        rescue: the command that saves first what the elections give up.
    """
    part = only_partitions(checked.plan, checked.ready)
    lacks = missing_consent(part, Confirmation(wanted.given.accept_loss, wanted.given.force_reason, yes=True))
    flags = _flags(wanted, part)
    refused = checked.refused
    rescue = None if flags is None else rescue
    following = _again(checked.plan, refused, wanted) if refused else rescue or flags
    people = session.output.format.for_people
    if people:
        if flags is not None and following == rescue:
            session.output.note(f"then: {session.output.next_command(flags)}")
        if following is not None:
            session.output.next(following)
    else:
        _show_results(session, checked.plan, checked.results, context, following)
    if refused:
        raise RefusedError(
            f"{partitions_in_words(len(refused))} would be refused: what the plan stood on has changed",
            next_step=None if people else session.output.next_command(_again(checked.plan, refused, wanted)),
            code="plan-stale",
        )
    if part.elections and lacks is not None:
        # The next command has the accepted loss already; a reason is for somebody to give.
        is_told = people and Consent.FORCE not in {one.consent for one in part.elections}
        raise RefusedError(
            f"{'not confirmed' if accepts_loss(part, wanted.given) else 'loss not accepted'}; nothing changed",
            why=f"missing: {lacks}",
            next_step=None if is_told else f"add {lacks}",
            code=missing_code(part, wanted.given),
        )
    error = ended(checked.plan, ())
    if error is not None:
        raise error


def _flags(wanted: ApplyOptions, part: Plan) -> tuple[str, ...] | None:
    """The command that carries it out: the options that were given, and an accepted loss where one is needed."""
    if not part.elections:
        return None
    arguments = ["recover", "apply", str(wanted.path)]
    arguments += [text for topic in wanted.topics for text in ("--topic", topic)]
    arguments += [text for path in wanted.logs for text in ("--logs", str(path))]
    arguments += ["--keep-order"] if wanted.keep_order else []
    arguments += ["--yes"]
    if missing_consent(part, Confirmation(None, "any", yes=True)) is not None:
        arguments += ["--accept-loss", str(part.loss_to_accept)]
    return tuple(arguments)


def _show_results(
    session: Session,
    plan: Plan,
    applied: Sequence[Applied],
    context: PlanContext,
    following: Sequence[str] | None,
    *,
    again: Sequence[str] | None = None,
    error: KelrError | None = None,
) -> None:
    if applied or not session.output.format.for_people:
        code = 0 if error is None else error.exit_code
        show_applied(session.output, plan, applied, context=context, following=following, again=again, exit_code=code)


def _words(rescues: Iterable[Rescue]) -> tuple[tuple[str, ...], ...]:
    return tuple(one.words for one in rescues)


def _fix(wanted: ApplyOptions, plan: Plan, applied: Sequence[Applied]) -> tuple[str, ...] | None:
    """The command that plans the refused again; None where there are none, or something is left to be settled first."""
    refused = [one for one in applied if one.ended is ElectionResult.REFUSED]
    settling = {one.ended for one in applied} & {ElectionResult.UNKNOWN, ElectionResult.NOT_RESTORED}
    return _again(plan, refused, wanted) if refused and not settling else None


def _after(wanted: ApplyOptions, plan: Plan, applied: Sequence[Applied]) -> tuple[str, ...] | None:
    """The next command: what settles it, what verifies it, or what plans the refused ones again."""
    ends = {one.ended for one in applied}
    if ends & {ElectionResult.UNKNOWN, ElectionResult.NOT_RESTORED}:
        return ("recover", "status")
    refused = [one for one in applied if one.ended is ElectionResult.REFUSED]
    if ends & {ElectionResult.DONE, ElectionResult.NOT_NEEDED, ElectionResult.OTHER_LEADER}:
        topics = tuple(text for topic in wanted.topics for text in ("--topic", topic))
        return ("recover", "verify", str(wanted.path), *topics, "--wait")
    return _again(plan, refused, wanted) if refused else None


def _again(plan: Plan, refused: Sequence[Applied], wanted: ApplyOptions) -> tuple[str, ...]:
    leaderless = (one for one in refused if not any(difference.field == "leader" for difference in one.differences))
    better = any(difference.came_back for one in leaderless for difference in one.differences)
    logs = tuple(text for path in wanted.logs for text in ("--logs", str(path)))
    return (*plan_again(plan, [one.address for one in refused], wanted.path, alike=not better), *logs)


def _raise_if_nothing_is_left(plan: Plan, path: Path) -> None:
    """A plan that elects nobody is done; one whose every choice was refused is not. Raises KelrError."""
    refused = [one for one in plan.not_planned if one.why is Unplanned.REFUSED]
    if refused:
        error: KelrError = RefusedError(
            f"{path} has no election: each was refused when it was made",
            next_step="the reasons stand above",
            code="every-choice-refused",
        )
        raise error
