"""What every command that changes a cluster needs beside its session; loaded only when one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kelr.commands.session import CONTROLLERS_FIRST, Session
from kelr.commands.topic_errors import topics_failed
from kelr.durable import make_directory
from kelr.engine.planning import plan_id
from kelr.errors import (
    ConnectError,
    KelrError,
    NotAuthorizedError,
    NotRecordedError,
    PartlyDoneError,
    RefusedError,
    UsageError,
)
from kelr.model import TopicError
from kelr.model.plan import Applied, ElectionResult, Plan, Unplanned
from kelr.recovery.actor import Actor, whoever_runs_this
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.apply_context import Timeouts
from kelr.recovery.journal_store import refuse_open_journals, refuse_restored_orders
from kelr.recovery.places import cluster_directory, state_directory
from kelr.recovery.plan_file import write_plan
from kelr.sources.base import Source, silence_of
from kelr.sources.ground import MACHINE
from kelr.view.plan_words import named, partitions_in_words


def refuse_without_controller(source: Source, plan: Plan) -> None:
    """Raises ConnectError where nothing seems to be needed and no controller answered: that is no all-clear."""
    silence = silence_of(source)
    idle = not plan.elections and all(one.why is Unplanned.NOT_NEEDED for one in plan.not_planned)
    if silence is not None and idle:
        answers = "answers" if source.taken_at_ms is None else "answered when this was taken"
        raise ConnectError(
            f"no controller {answers} ({silence}): whether an election is needed is not known; nothing was changed",
            next_step=CONTROLLERS_FIRST,
            code="no-controller",
        )


def require_live(session: Session, *, dry_run_helps: bool = False, dry_run: bool = False) -> None:
    """Refuse a saved snapshot, or a metadata log, before anything is read. Raises UsageError; RefusedError
    where the context is read-only.

    Args:
        dry_run_helps: whether the command's dry run would take it.
        dry_run: whether nothing is going to be changed, so that a read-only context may be looked at.
    """
    saved = session.settings.saved
    if saved is not None:
        otherwise = ", or add --dry-run to see the plan for the saved state" if dry_run_helps else ""
        raise UsageError(
            f"{saved}: a cluster is changed only on what it says just now",
            next_step=f"give --bootstrap-server or --context in place of --{_given(session)}{otherwise}",
            code="saved-not-live",
        )
    if not dry_run:
        refuse_read_only(session)


def refuse_read_only(session: Session) -> None:
    """Refuse to change a cluster whose context says that it is only looked at. Raises RefusedError."""
    settings = session.settings
    if settings.read_only is not None:
        raise RefusedError(
            f"nothing was changed: context {settings.context!r} is read_only ({settings.read_only})",
            next_step=f"look with --dry-run, or take read_only out of [contexts.{settings.context}] in that file",
            code="context-read-only",
        )


def _given(session: Session) -> str:
    return "metadata-log" if session.settings.log_answers else "snapshot"


def hand_of(session: Session) -> AdminClient:
    """The client that changes the session's cluster."""
    from kelr.sources.live.changes import LiveAdminClient  # noqa: PLC0415 - brings the client libraries along

    return LiveAdminClient.of(session.source())


def who_changes(session: Session) -> Actor:
    """The person, for journal and audit log."""
    connection = session.settings.connection()
    return whoever_runs_this(None if connection.credentials is None else connection.credentials.username)


def kept_plan(plan: Plan, state: Path) -> Path | None:
    """The plan as it is carried out, in a file beside its journal, so that ``kelr recover verify`` can look at what
    came of it; None where that cannot be: it is too large, or the directory cannot be written, of which the journal
    will have more to say."""
    path = cluster_directory(state, plan.cluster_id) / "plans" / f"{plan_id(plan)}.json"
    try:
        make_directory(path.parent)
        write_plan(plan, path, overwrite=True)
    except (UsageError, OSError):
        return None
    return path


def refuse_open(session: Session, plan: Plan) -> None:
    """Raises RefusedError where an earlier run was cut short that concerns partitions of this plan that want an
    election: what it left behind, an order or a config, would be taken for the state of the cluster; or where one is
    over, and a broker still shows what it has taken back."""
    wanted = [one.address for one in plan.elections]
    wanted += [one.address for one in plan.not_planned if one.why is Unplanned.REFUSED]
    cluster_id = session.source().cluster().cluster_id
    refuse_open_journals(state_directory(), cluster_id, wanted, brokers=plan.uncordons)
    refuse_restored_orders(plan, state_directory(), cluster_id, for_s=Timeouts().rival_s, ground=MACHINE)


def carried_out(
    apply: Callable[[], tuple[Applied, ...]],
) -> tuple[tuple[Applied, ...], NotRecordedError | None]:
    """The results, also where they could not be written down; then with the error that says so."""
    try:
        return apply(), None
    except NotRecordedError as error:
        return error.results, error


def applied_failed(applied: Sequence[Applied]) -> KelrError | None:
    """The error that ends a command whose elections did not all come out well; None where all did."""
    bad = [one for one in applied if not one.good]
    if not bad:
        return None
    unauthorized = [one for one in bad if "AUTHORIZATION" in (one.error or "")]
    some_worked = len(bad) < len(applied)
    what = f"{partitions_in_words(len(bad))} did not get the planned leader: {named(one.address for one in bad)}"
    if len(unauthorized) == len(applied):
        on_topic = all("TOPIC" in (one.error or "") for one in unauthorized)
        needs = "DESCRIBE and READ on the topic" if on_topic else "ALTER on the cluster"
        return NotAuthorizedError(what, next_step=f"the principal needs {needs}")
    if not some_worked and all(one.ended is ElectionResult.REFUSED for one in bad):
        return RefusedError(what, next_step="read what has changed, then plan again")
    if any(one.ended is ElectionResult.OTHER_LEADER for one in bad):
        step = "save what only brokers that are down hold before they start, since they follow the present leader"
        return PartlyDoneError(what, next_step=step)
    return PartlyDoneError(what, next_step="kelr recover status says what is left to do")


def ended(plan: Plan, applied: Sequence[Applied], errors: Sequence[TopicError] = ()) -> KelrError | None:
    """The error that ends a command which carried a plan out, or showed what it would do; None where every partition
    has, or would have, the leader that was asked for. What was shown before it has the reasons, and ends with the next
    command.

    Args:
        applied: what became of its elections; none in a dry run.
        errors: topics that were asked for and could not be described.
    """
    refused = [one for one in plan.not_planned if one.why is Unplanned.REFUSED]
    if not refused and not errors:
        return applied_failed(applied)
    if not refused and not applied:
        return topics_failed(errors, some_worked=bool(plan.not_planned or plan.elections))
    dry_run = plan.elections and not applied
    said = [applied_failed(applied), topics_failed(errors, some_worked=True) if errors else None]
    what = "; and ".join(one.message for one in said if one is not None)
    if refused:
        no = f"election refused for {partitions_in_words(len(refused))}: {named(one.address for one in refused)}"
        what = f"{no}; and {what}" if what else no
    some = dry_run or any(one.ended not in {ElectionResult.REFUSED, ElectionResult.NOT_TRIED} for one in applied)
    return PartlyDoneError(what) if some else RefusedError(what)


@contextmanager
def nothing_changed_yet(what: str = "nothing was changed") -> Iterator[None]:
    """Around, or as the decorator of, what only reads and asks: an interruption says so."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        raise KeyboardInterrupt(what) from interruption
