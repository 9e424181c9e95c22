"""What ``kelr recover plan`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.commands.changing import refuse_without_controller
from kelr.commands.elections_on_record import on_record
from kelr.commands.recovering import (
    PLAN_FILE,
    Files,
    disks_of,
    read_duration_ms,
    rescue_commands,
    saved_before,
    saved_in_words,
    source_with,
)
from kelr.commands.session import Session, now_ms
from kelr.commands.stock_tools import stock_connection
from kelr.commands.topic_errors import fail_unseen, sees_any, topics_failed
from kelr.durable import make_directory, whole_file
from kelr.engine.advice.commands import STOCK_CONNECTION, read_the_disk
from kelr.engine.planning import DEFAULT_LIFETIME_MS, stock_files
from kelr.engine.planning.stock import KAFKA_PYTHON_CONNECTION, StockFiles
from kelr.engine.words import agree, brokers
from kelr.errors import RefusedError, UsageError
from kelr.model import AdviceAction, Cluster, ElectionType, Selection, parse_election_type
from kelr.model.numbers import MAX_INT32, whole_number
from kelr.model.plan import Consent, ElectionRequest, Plan, Unplanned
from kelr.recovery.plan_file import write_plan
from kelr.recovery.plan_making import Made, make_plan
from kelr.sources.base import Source, silence_of
from kelr.view.broker_order import broker_order
from kelr.view.describe import NOTHING_READ
from kelr.view.explain_report import not_known_in_words
from kelr.view.plan import show_plan
from kelr.view.plan_document import PlanContext
from kelr.view.plan_left import next_of
from kelr.view.plan_markdown import plan_markdown
from kelr.view.streams import write_utf8
from kelr.view.styled import cleaned

STEPS_FILE = "steps.txt"
_LONGEST_LIFETIME_MS = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options of ``kelr recover plan``, read."""

    selection: Selection
    wish: ElectionRequest
    lifetime_ms: int = DEFAULT_LIFETIME_MS
    only_unsafe: bool = False
    logs: Sequence[Path] = ()
    out: Path | None = None
    export: Path | None = None
    overwrite: bool = False
    markdown: bool = False
    full: bool = False

    @property
    def repeat(self) -> tuple[str, ...]:
        """The arguments that make the same plan again, without ``--out``."""
        election, designate = self.wish.election, self.wish.desired_leader
        kind = () if election is None else ("--election-type", election.value)
        whom = () if designate is None else ("--designate", str(designate))
        return ("recover", "plan", *map(str, self.selection.targets), *kind, *whom, *gone_flags(self.wish.gone))


def read_wish(election_type: str | None, designate: int | None, gone: Sequence[str]) -> ElectionRequest:
    """Which election is to be planned. Raises UsageError where the options contradict each other."""
    election, lost = _election(election_type, designate), read_gone(gone)
    if lost and election is not None:
        raise UsageError(
            "--gone asks what kelr recommends for the brokers that are left, and --election-type for one election",
            next_step="leave one of them out",
        )
    return ElectionRequest(election, desired_leader=designate, gone=lost)


def read_lifetime_ms(expires_in: str | None) -> int:
    """How long the plan may be applied. Raises UsageError."""
    lifetime_ms = DEFAULT_LIFETIME_MS if expires_in is None else read_duration_ms(expires_in, "--expires-in")
    if lifetime_ms > _LONGEST_LIFETIME_MS:
        raise UsageError("--expires-in is longer than 7 days", next_step="plan again on the day that it is carried out")
    return lifetime_ms


def plan_and_show(session: Session, wanted: PlanOptions) -> None:
    """Make the plan, save it where that is asked for, and show it.

    Raises:
        RefusedError: a broker that was said to be gone is live.
        KelrError: topics could not be described, after the rest was shown; or nothing could be read at all.
    """
    if wanted.markdown and not session.output.format.for_people:
        raise UsageError(
            f"--markdown is a format of its own; it does not go with -o {session.output.format}",
            next_step="leave one of them out",
        )
    if wanted.out is not None and wanted.out.exists() and not wanted.overwrite:
        # Before minutes are spent on reading logs.
        raise UsageError(
            f"{wanted.out} exists already",
            next_step="give another name, or --overwrite to replace it",
            code="file-exists",
        )
    source, record = source_with(session, wanted.logs), on_record(session.source(), session.output.note)
    refuse_the_live(wanted.wish.gone, source.cluster())
    with session.progress("partitions whose logs were asked for") as progress:
        made = make_plan(
            source,
            wanted.selection,
            lambda _at: wanted.wish,
            clock_ms=now_ms,
            lifetime_ms=wanted.lifetime_ms,
            only_unsafe=wanted.only_unsafe,
            elections=record.elections,
            cleared=record.cleared,
            saved=record.saved,
            progress=progress,
        )
    _check_designated(wanted, made)
    check_they_hold_replicas(session, wanted.wish.gone, source.cluster(), made.replicas)
    if wanted.out is not None:
        write_plan(made.plan, wanted.out, overwrite=wanted.overwrite)
    if wanted.export is not None:
        _export(session, made.plan, wanted.export, overwrite=wanted.overwrite)
    seen = bool(made.decided or made.not_known or made.errors) or sees_any(source, wanted.selection)
    _show(session, wanted, made, source, record.saved, seen=seen)
    if made.errors:
        raise topics_failed(made.errors, some_worked=made.decided > 0)
    refuse_without_controller(source, made.plan)
    fail_unseen(seen=seen)


def _check_designated(wanted: PlanOptions, made: Made) -> None:
    whom = wanted.wish.desired_leader
    if whom is not None and made.decided and whom not in made.replicas:
        held = ", ".join(map(str, sorted(made.replicas)))
        raise UsageError(
            f"--designate {whom}: no partition that was looked at has a replica there, only on brokers {held}",
            next_step="name one of their replicas",
        )


def _show(session: Session, wanted: PlanOptions, made: Made, source: Source, files: Files, *, seen: bool) -> None:
    output, plan = session.output, made.plan
    disks, saved = disks_of(session, source), saved_before(plan, wanted.out, files)
    left = rescue_commands(plan, wanted.out or Path(PLAN_FILE), disks, saved)
    rescues = [] if wanted.out is None else left
    following = _following(wanted, made)
    not_known = not_known_in_words(made.not_known) if made.not_known else "" if seen else NOTHING_READ
    if wanted.markdown:
        write_utf8(output.stdout)
        commands = [output.next_command(one) for one in (*(one.words for one in rescues), following) if one]
        output.stdout.write(plan_markdown(plan, not_known=not_known, commands=commands))
        return
    # What the elections give up is saved first; what saves it leads to the plan's application.
    saving = tuple(one.words for one in rescues)
    context = PlanContext(
        stock_connection=stock_connection(session),
        rescue_commands=saving,
        controller_silence=silence_of(session.source()),
        not_known=not_known,
        gone=wanted.wish.gone,
        notes=made.notes,
        saved=saved_in_words(plan, files),
        all_saved=not left,
        carry_out=_carried_out_by(wanted, made),
        collect=tuple(_collecting(wanted, made, session.source().cluster().live)),
    )
    if not output.format.for_people:
        show_plan(output, plan, context=context, errors=made.errors, following=next(iter(saving), following))
        if not_known:
            output.note(not_known)
        return
    nothing_seen = not seen or (bool(made.errors) and not made.decided)
    # Where there are elections, the next command is a step of the plan.
    following = None if plan.elections else following
    if wanted.out is not None and not plan.elections:
        output.note(f"saved in {wanted.out}; nothing was changed")
    show_plan(
        output,
        plan,
        context=context,
        errors=made.errors,
        following=following,
        full=wanted.full,
        nothing_seen=nothing_seen,
    )
    idle = not plan.elections and not plan.not_planned and not not_known
    if idle and not nothing_seen and context.controller_silence is None:
        output.note("every partition that was looked at has its leader, and min ISR is met")
    if not seen:
        output.note(NOTHING_READ)


def _carried_out_by(wanted: PlanOptions, made: Made) -> tuple[str, ...]:
    """The command that carries the plan out, or saves it; empty where it elects nobody."""
    plan = made.plan
    if not plan.elections:
        return ()
    if wanted.out is None:
        return (*wanted.repeat, "--out", PLAN_FILE)
    lossy = any(one.consent is Consent.LOSS for one in plan.elections)
    accepted = ("--accept-loss", str(plan.loss_to_accept)) if lossy else ()
    return ("recover", "apply", str(wanted.out), *accepted)


def _following(wanted: PlanOptions, made: Made) -> tuple[str, ...] | None:
    plan = made.plan
    if plan.elections:
        if wanted.out is None:
            return (*wanted.repeat, "--out", PLAN_FILE)
        return ("recover", "apply", str(wanted.out))
    following = next_of([one for one in plan.not_planned if one.why is not Unplanned.NOT_NEEDED])
    if following is None and made.not_known:
        return ("explain", f"{made.not_known[0].topic}:{made.not_known[0].partition}")
    return following


def _collecting(wanted: PlanOptions, made: Made, live: Collection[int]) -> list[tuple[str, ...]]:
    """For each broker whose log was not read because it is down: the command that reads its disk.

    What it holds decides whether its return, or its absence, loses anything; where it may be elected by itself, it has
    to be read before it starts.
    """
    if wanted.logs:
        return []
    plan = made.plan
    unheard = {replica for one in plan.elections for replica in one.loss.unheard if replica not in one.evidence.live}
    order = broker_order(plan)
    asked_for = {step.broker for step in order.bring_back}
    for one in plan.not_planned:
        if one.action is AdviceAction.GET_MORE_INFORMATION:
            asked_for.update(one.brokers, one.keep_down)
    # Those that are read before they start are steps of the plan.
    asked_for.difference_update(step.broker for step in order.read_first)
    return [read_the_disk(broker) for broker in sorted(unheard | (asked_for & made.not_read).difference(live))]


def _election(name: str | None, designate: int | None) -> ElectionType | None:
    try:
        election = None if name is None else parse_election_type(name)
    except ValueError as error:
        raise UsageError(f"--election-type: {error}", next_step="kelr elect --help tells them apart") from error
    if election is ElectionType.DESIGNATION and designate is None:
        raise UsageError("a designation needs to know whom", next_step="add --designate BROKER")
    if designate is not None and election is not ElectionType.DESIGNATION:
        raise UsageError(
            "--designate names the leader of a designation",
            next_step="add --election-type designation, or leave it out",
        )
    return election


# Files for those who may run Kafka's own tools alone.


def _export(session: Session, plan: Plan, directory: Path, *, overwrite: bool) -> None:
    files = stock_files(plan)
    try:
        make_directory(directory)
    except OSError as error:
        raise UsageError(f"cannot make the directory {directory}: {error.strerror or error}") from error
    for step in files.steps:
        if step.file is not None:
            _write(directory / step.file, step.text, overwrite=overwrite)
    _write(directory / STEPS_FILE, _steps(session, files), overwrite=overwrite)
    session.output.note(
        f"wrote {STEPS_FILE} and {sum(one.file is not None for one in files.steps)} files to {directory}"
    )


def _steps(session: Session, files: StockFiles) -> str:
    stock, kafka_python = stock_connection(session), _kafka_python_connection(session)
    lines = ["Run these in this directory, in this order, and stop where one fails.", ""]
    lines += [f"- {limit}" for limit in files.limits]
    for number, step in enumerate(files.steps, start=1):
        lines += ["", f"{number}. {step.title}", ""]
        lines += [
            f"   {line.replace(STOCK_CONNECTION, stock).replace(KAFKA_PYTHON_CONNECTION, kafka_python)}"
            for line in step.lines
        ]
    return "".join(f"{cleaned(line)}\n" for line in lines)


def _write(path: Path, text: str, *, overwrite: bool) -> None:
    with whole_file(path, "export", overwrite=overwrite) as file:
        file.write(text.encode())


def _kafka_python_connection(session: Session) -> str:
    """The connection as kafka-python's command line takes it, which reads no properties file: what it cannot take from
    one is left to be filled in."""
    settings = session.settings
    if settings.snapshot is not None or not (settings.bootstrap_server or settings.command_config):
        return "-b HOST:PORT"
    connection = settings.connection()
    flags = ["-b", connection.servers_text]
    if connection.security_protocol != "PLAINTEXT":
        flags += ["-S", connection.security_protocol]
    if connection.uses_sasl:
        flags += ["-M", str(connection.sasl_mechanism), "-U", "USER", "-P", "PASSWORD"]
    if connection.uses_tls:
        flags += ["-C", "ssl_cafile=CA_FILE"]
    return shlex.join(flags)


def read_gone(given: Sequence[str]) -> frozenset[int]:
    """The brokers of ``--gone 1 --gone 2,3``. Raises UsageError."""
    numbers = [number.strip() for text in given for number in text.split(",")]
    wrong = [number for number in numbers if whole_number(number, MAX_INT32) is None]
    if wrong:
        raise UsageError(
            f"--gone names {wrong[0][:40]!r}, not a broker", next_step="give ids of brokers, such as --gone 1,2"
        )
    return frozenset(map(int, numbers))


def gone_flags(gone: Collection[int]) -> tuple[str, ...]:
    """The same as arguments."""
    return ("--gone", ",".join(map(str, sorted(gone)))) if gone else ()


def refuse_the_live(gone: frozenset[int], cluster: Cluster) -> None:
    """Raises RefusedError where one of these brokers is live."""
    live = sorted(gone & cluster.live)
    if live:
        are, them = agree(len(live), "is", "are"), agree(len(live), "it", "them")
        raise RefusedError(
            f"--gone says that {brokers(live)} will not come back, and {agree(len(live), 'it', 'they')} {are} live:"
            " nothing was planned",
            next_step=f"leave {them} out; name only brokers that are down for good",
            code="broker-not-gone",
        )


def check_they_hold_replicas(
    session: Session, gone: frozenset[int], cluster: Cluster, replicas: Collection[int]
) -> None:
    """Say which of these brokers hold no replica of what was looked at.

    Args:
        replicas: the brokers that hold one.

    Raises:
        UsageError: one of them is not even a broker of this cluster.
    """
    others = sorted(gone.difference(replicas))
    unknown = [broker for broker in others if cluster.broker(broker) is None]
    if unknown:
        raise UsageError(
            f"--gone names {brokers(unknown)}: the cluster knows no such broker, and no partition that was looked at"
            " has a replica there",
            next_step="kelr describe shows which brokers hold replicas",
        )
    if others:
        session.output.note(f"no partition that was looked at has a replica on {brokers(others)} (--gone)")
