"""What ``kelr elect`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kelr import __version__
from kelr.commands.changing import (
    carried_out,
    ended,
    kept_plan,
    nothing_changed_yet,
    refuse_open,
    refuse_without_controller,
    require_live,
)
from kelr.commands.consent import ask_consent, can_ask, read_consent, shown_before_asking
from kelr.commands.elections_on_record import on_record
from kelr.commands.recovering import PLAN_FILE, change_tools, disks_of, rescue_commands, source_with
from kelr.commands.session import Session
from kelr.commands.stock_tools import stock_connection
from kelr.commands.topic_errors import fail_unseen, sees_any
from kelr.controller import choose_rules
from kelr.engine import situation_of
from kelr.engine.planning import plan_of
from kelr.engine.words import brokers
from kelr.errors import NotRecordedError, RefusedError, UsageError
from kelr.model import (
    Cluster,
    ElectionType,
    PartitionState,
    Selection,
    TopicConfig,
    TopicError,
    TopicPartition,
    leader_min_isr,
    parse_election_type,
)
from kelr.model.plan import (
    Applied,
    Consent,
    ElectionRequest,
    ElectionResult,
    Method,
    NotPlanned,
    Plan,
    PlannedElection,
    Unplanned,
)
from kelr.model.waiting import Waiting
from kelr.recovery.apply import DEFAULT_BATCH, MOST_IN_A_BATCH, apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.gather import (
    WINDOW_S,
    Gathered,
    LeaveOut,
    Owing,
    PollInterval,
    gather,
    gather_until,
    is_led,
    quorum_owing,
    selection_of,
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

_LONGEST_LOG = frozenset({ElectionType.LONGEST_LOG_BALANCED, ElectionType.LONGEST_LOG_AGGRESSIVE})
_TYPES = ", ".join(kind.value for kind in ElectionType)
_NAME_THEM = "name them in one way: TOPIC:3, --topic with --partition, --all-topic-partitions or --path-to-json-file"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of ``kelr elect``, read."""

    election: ElectionType
    selection: Selection
    named_one_by_one: bool
    """Whether every partition was named; of a pattern or of everything, those that have a leader are no failure."""
    wishes: Mapping[TopicPartition, ElectionRequest]
    """What the JSON file says of its partitions."""
    wish: ElectionRequest
    """What the flags say of all others."""
    window_s: float
    batch: int | None
    keep_order: bool
    dry_run: bool
    given: Confirmation
    repeat: tuple[str, ...]
    """The command without ``--dry-run`` and without consent, as arguments after ``kelr``."""

    @property
    def wish_for(self) -> Callable[[TopicPartition], ElectionRequest]:
        return lambda at: self.wishes.get(at, self.wish)

    @property
    def minimal_replicas(self) -> Callable[[TopicPartition], int | None]:
        return lambda at: self.wish_for(at).minimal_replicas


def read_options(
    session: Session,
    targets: Sequence[str],
    *,
    election_type: str | None,
    topics: Sequence[str],
    partition: str | None,
    everything: bool,
    json_file: Path | None,
    designate: int | None,
    minimal_replicas: int | None,
    window_s: float | None,
    batch: int | None,
    keep_order: bool,
    dry_run: bool,
    yes: bool,
    accept_loss: str | None,
    force: str | None,
) -> Wanted:
    """Read the options.

    Raises:
        UsageError: they contradict each other, or kafka-leader-election.sh would refuse them.
        BadInputError: the JSON file is not what it should be.
    """
    election = _election(election_type)
    _check_numbers(minimal_replicas=minimal_replicas, window_s=window_s, batch=batch)
    _check_flags(election, designate=designate, minimal_replicas=minimal_replicas, window_s=window_s)
    if keep_order and election in {ElectionType.PREFERRED, ElectionType.UNCLEAN}:
        raise UsageError(
            f"--keep-order is about the new order of a designation; {election.value} changes no order",
            next_step="leave it out",
        )
    _check_naming(targets, topics, partition, json_file, everything=everything)
    wish = ElectionRequest(election, desired_leader=designate, minimal_replicas=minimal_replicas)
    wishes: Mapping[TopicPartition, ElectionRequest] = {}
    if json_file is not None:
        wishes = _wishes_of(session, json_file, election, wish)
        selection = selection_of(list(wishes))
    else:
        if election is ElectionType.DESIGNATION and designate is None:
            raise UsageError("a designation needs to know whom", next_step="add --designate BROKER")
        selection = session.selection(targets, topics=topics, partitions=partition, everything=everything)
    return Wanted(
        election=election,
        selection=selection,
        named_one_by_one=not selection.is_everything and all(one.partitions is not None for one in selection.targets),
        wishes=wishes,
        wish=wish,
        window_s=WINDOW_S if window_s is None else window_s,
        batch=batch,
        keep_order=keep_order,
        dry_run=dry_run,
        given=read_consent(yes=yes, accept_loss=accept_loss, force=force),
        repeat=(
            *("elect", "--election-type", election.value),
            *(("--all-topic-partitions",) if everything else ()),
            *(text for topic in topics for text in ("--topic", topic)),
            *_flags(
                ("--partition", partition),
                ("--path-to-json-file", json_file),
                ("--designate", designate),
                ("--minimal-replicas", minimal_replicas),
                ("--window", None if window_s is None else f"{window_s:g}"),
                ("--batch", batch),
            ),
            *(("--keep-order",) if keep_order else ()),
            *targets,
        ),
    )


def _flags(*flags: tuple[str, object]) -> tuple[str, ...]:
    """Those that were given."""
    return tuple(text for flag, value in flags if value is not None for text in (flag, str(value)))


def _election(name: str | None) -> ElectionType:
    if name is None:
        raise UsageError("no election type was given", next_step=f"add --election-type with one of {_TYPES}")
    try:
        return parse_election_type(name)
    except ValueError as error:
        raise UsageError(f"--election-type: {error}", next_step="kelr elect --help tells them apart") from error


def _check_numbers(*, minimal_replicas: int | None, window_s: float | None, batch: int | None) -> None:
    for flag, value, least in (
        ("--minimal-replicas", minimal_replicas, 1),
        ("--batch", batch, 1),
    ):
        if value is not None and value < least:
            raise UsageError(f"{flag} is {value}, less than {least}", next_step=f"give {least} or more")
    if batch is not None and batch > MOST_IN_A_BATCH:
        raise UsageError(f"--batch is {batch:,}, more than {MOST_IN_A_BATCH:,}", next_step="give less")
    # Not a number compares as false.
    if window_s is not None and not 0 <= window_s <= 86_400:
        raise UsageError(f"--window is {window_s:g}, not a number of seconds", next_step="give something like 5")


def _check_flags(
    election: ElectionType,
    *,
    designate: int | None,
    minimal_replicas: int | None,
    window_s: float | None,
) -> None:
    if designate is not None and election is not ElectionType.DESIGNATION:
        raise UsageError(
            f"--designate names the leader of a designation; {election.value} finds its own",
            next_step="leave it out, or give --election-type designation",
        )
    if minimal_replicas is not None and election not in _LONGEST_LOG:
        raise UsageError(
            f"--minimal-replicas is for the longest log; {election.value} asks no replica for its log",
            next_step="leave it out, or give --election-type longest_log_balanced or longest_log_aggressive",
        )
    if window_s is not None and election is not ElectionType.LONGEST_LOG_AGGRESSIVE:
        raise UsageError(
            f"--window is for longest_log_aggressive; {election.value} has none",
            next_step="leave it out; longest_log_balanced waits as long as --timeout says",
        )


def _check_naming(
    targets: Sequence[str], topics: Sequence[str], partition: str | None, json_file: Path | None, *, everything: bool
) -> None:
    """Exactly one way of naming partitions (LeaderElectionCommand.LeaderElectionCommandOptions.validate)."""
    ways = sum((bool(targets), bool(topics), everything, json_file is not None))
    if ways == 0 and partition is None:
        raise UsageError("no partition was named", next_step=_NAME_THEM)
    if ways > 1:
        raise UsageError("partitions were named in more than one way", next_step=_NAME_THEM)
    if partition is not None and not topics:
        raise UsageError("--partition is only allowed together with --topic", next_step=_NAME_THEM)
    if topics and partition is None:
        raise UsageError(
            "--topic needs --partition, as in Kafka's own tool",
            next_step=f"add --partition N, or write the topic alone for all its partitions: kelr elect ... {topics[0]}",
        )


def _wishes_of(
    session: Session, json_file: Path, election: ElectionType, wish: ElectionRequest
) -> Mapping[TopicPartition, ElectionRequest]:
    """What the file asks for, partition by partition, with what the flags add.

    One file serves every type, as in the KIP's example: what this type does not need is named, and left alone.

    Raises:
        BadInputError: the file is garbled.
        UsageError: a designation finds no leader in it.
    """
    from kelr.recovery.election_file import read_election_file  # noqa: PLC0415 - brings pydantic along

    entries = read_election_file(json_file)
    takes_leader, takes_least = election is ElectionType.DESIGNATION, election in _LONGEST_LOG
    for field, taken, given in (
        ("desiredLeader", takes_leader, [entry.desired_leader for entry in entries.values()]),
        ("minimalReplicas", takes_least, [entry.minimal_replicas for entry in entries.values()]),
    ):
        if not taken and any(value is not None for value in given):
            session.output.note(f"{json_file}: {field} is not used by {election.value}")
    wishes = {}
    for at, entry in entries.items():
        desired = wish.desired_leader if entry.desired_leader is None else entry.desired_leader
        least = wish.minimal_replicas if entry.minimal_replicas is None else entry.minimal_replicas
        if takes_leader and desired is None:
            raise UsageError(
                f"{json_file}: {at} has no desiredLeader, and a designation needs to know whom",
                next_step="give each partition its desiredLeader, or add --designate BROKER for those without",
            )
        wishes[at] = ElectionRequest(election, desired if takes_leader else None, least if takes_least else None)
    return wishes


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
    record = on_record(source, session.output.note) if asks_record else None
    elections, cleared = (None, None) if record is None else (record.elections, record.cleared)
    with session.progress("partitions whose logs were asked for") as progress:
        first = gather(
            source,
            wanted.selection,
            clock_ms=MACHINE.now_ms,
            leave_out=_leave_out(wanted),
            elections=elections,
            cleared=cleared,
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
            cleared=cleared,
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
    led = _led(source, found, wanted.election)
    left = sorted((*made.not_planned, *led), key=lambda one: one.address)
    return replace(made, not_planned=tuple(left))


def _led(source: Source, found: Gathered, election: ElectionType) -> Iterator[NotPlanned]:
    """The partitions that have what was asked for. Where all are in sync, min ISR is met whatever it is."""
    leads = "the preferred replica leads" if election is ElectionType.PREFERRED else "it has a leader"
    behind = {state.topic for state in found.left_out if not {*state.replicas} <= {*state.isr}}
    unread = sorted(behind - found.snapshot.configs.keys())
    configs = {**found.snapshot.configs, **(source.topic_configs(unread) if unread else {})}
    for state in found.left_out:
        config = configs.get(state.topic, TopicConfig())
        min_isr = leader_min_isr(config.min_insync_replicas, len(state.replicas))
        situation = situation_of(state, found.snapshot.cluster, min_isr)
        yield NotPlanned(
            state.topic, state.partition, Unplanned.NOT_NEEDED, situation, reason=leads, leader=state.leader
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
            **change_tools(session, source),
            consented=consented,
            batch=wanted.batch or DEFAULT_BATCH,
            keep_order=wanted.keep_order,
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
