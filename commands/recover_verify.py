"""What ``kelr recover verify`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kelr.commands.recovering import (
    Disks,
    all_rescued,
    disks_of,
    plan_again,
    plan_for_this_cluster,
    rescue_commands,
    rescue_first,
    rescued_in,
    saved_before,
    saved_files,
    say_other_rescues,
)
from kelr.commands.session import Session
from kelr.commands.stock_tools import stock_connection
from kelr.engine.advice.commands import save_first
from kelr.engine.planning import only_topics
from kelr.engine.planning.verification import is_unapplied
from kelr.errors import BadInputError, UsageError
from kelr.model.audit import AuditRecord
from kelr.model.plan import Check, Passed, Plan
from kelr.recovery import audit
from kelr.recovery.fences import CHANGED
from kelr.recovery.places import cluster_directory, state_directory
from kelr.recovery.verify import Afterwards, Verification, Waiting, verify, verify_until_good
from kelr.rescue.journal import is_replayed
from kelr.sources.base import Progress
from kelr.sources.ground import MACHINE
from kelr.view.output import Output
from kelr.view.plan_left import short_targets
from kelr.view.plan_words import targets_of
from kelr.view.verification import Verified, show_verification, waited_for_in_short, waited_for_in_words

WAIT_S = 120.0
"""How long is waited where nobody says how long."""
_KELR = "kelr "


def verify_and_show(session: Session, path: Path, topics: Sequence[str], wait_s: float | None) -> bool:
    """Look at the plan's partitions, wait where that is asked for, and show what was seen; whether all is well.

    Args:
        wait_s: how long to wait for what is not yet; None looks once.

    Raises:
        BadInputError: the file is no plan.
        RefusedError: it is of another cluster.
        KelrError: the cluster cannot be reached.
    """
    plan = plan_for_this_cluster(session, path, reads=True)
    if topics:
        plan = plan_of_topics(plan, topics, path)
    afterwards, recorded = _afterwards(session), _recorded(session, plan)
    files = saved_files(session.output, recorded, plan, path, cluster_id=plan.cluster_id)

    def look(progress: Progress | None = None) -> Verification:
        source = session.source()
        return verify(plan, source, afterwards, ground=MACHINE, recorded=recorded, saved=files, progress=progress)

    if wait_s is None:
        with session.progress("replicas' logs read") as progress:
            found = look(progress)
    else:
        found = verify_until_good(look, Waiting(wait_s, MACHINE), report=_Live(session.output, plan).show)
        session.output.end_progress()
    saved = _to_replay(plan, path)
    disks = disks_of(session, session.source())
    following = _following(path, topics, plan, found, disks, saved=next(iter(saved), None), waited=wait_s is not None)
    if following is not None and following[:2] == ("rescue", "replay"):
        for other in saved[1:]:
            session.output.note(f"replay, too: {session.output.next_command(_replay(other))}")
    begun = {one.address for one in found.findings} - {one.address for one in found.findings if is_unapplied(one)}
    if following is not None and following[:2] != ("recover", "plan") and not begun:
        say_other_rescues(
            session.output, rescue_commands(plan, path, disks, saved_before(plan, path)), said=[following]
        )
    show_verification(
        session.output, _verified(plan, found), stock_connection=stock_connection(session), following=following
    )
    return found.good


def plan_of_topics(plan: Plan, topics: Sequence[str], path: Path) -> Plan:
    """The part of the plan that is about these topics. Raises UsageError where one of them is not in it."""
    unknown = sorted(set(topics) - {one.topic for one in plan.elections})
    if unknown:
        known = ", ".join(sorted({one.topic for one in plan.elections})) or "none"
        raise UsageError(
            f"{path} elects no leader of topic {', '.join(unknown)}", next_step=f"--topic takes its topics: {known}"
        )
    return only_topics(plan, topics)


def _recorded(session: Session, plan: Plan) -> list[AuditRecord]:
    """What this machine's audit log tells of the plan's topics; nothing, with a note, where it cannot be read."""
    topics = sorted({one.topic for one in plan.elections})
    try:
        return list(audit.read(state_directory(), topics=topics, cluster_id=plan.cluster_id))
    except BadInputError as error:
        session.output.note(f"what was accepted for these elections is not told: {error.message}")
        return []


def _afterwards(session: Session) -> Afterwards | None:
    from kelr.sources.live import LiveSource  # noqa: PLC0415 - brings the client libraries along
    from kelr.sources.live.afterwards import LiveAfterwards  # noqa: PLC0415
    from kelr.sources.quorum_source import without_log  # noqa: PLC0415

    source = without_log(session.source())
    return LiveAfterwards(source) if isinstance(source, LiveSource) else None


def _following(
    path: Path,
    topics: Sequence[str],
    plan: Plan,
    found: Verification,
    disks: Disks,
    *,
    saved: Path | None,
    waited: bool,
) -> tuple[str, ...] | None:
    """The next command: what carries the plan out, or plans again where it has expired or was refused; what waits for
    what may come; what shows more of what is not well; or, where all is, what saves what disks that are away may hold
    alone, and then what produces again what was saved.

    Args:
        saved: the file that this was saved in; None where there is none, or none of it is left to be produced.
    """
    replay = None if saved is None else _replay(saved)
    away = None if all_rescued(plan, path) else _save_what_is_away(plan, path, found, disks)
    if found.good:
        return replay or away
    named = tuple(part for topic in topics for part in ("--topic", topic))
    unapplied = {one.address for one in found.findings if is_unapplied(one)}
    if unapplied and unapplied == {one.address for one in found.findings}:
        stale = any(CHANGED in one.text for one in found.findings if is_unapplied(one))
        if stale or plan.expires_at_ms <= found.looked_at_ms:
            return plan_again(plan, unapplied, path)
        return rescue_first(plan, path, disks, saved_before(plan, path)) or ("recover", "apply", str(path), *named)
    if found.may_come and away is not None:
        # What is waited for is the return that truncates it.
        return away
    if found.may_come and not waited:
        return ("recover", "verify", str(path), *named, "--wait")
    bad = [one for one in found.findings if one.passed is Passed.NO]
    told = [one.command for one in bad or found.findings if one.command.startswith(_KELR)]
    if found.may_come and not bad:
        # What did not come while it was waited for needs something else first, such as a broker that is down; a replay
        # would be refused below min ISR.
        return ("explain", *short_targets(one for one in found.findings if one.passed is Passed.NOT_YET))
    return tuple(told[0].removeprefix(_KELR).split()) if told else None if bad else replay


def _save_what_is_away(plan: Plan, path: Path, found: Verification, disks: Disks) -> tuple[str, ...] | None:
    """The command that saves what disks of brokers that are down may hold alone: that of the plan, whose file counts as
    what it lost; else of the partitions that follow the first of the leaders. None where no such disk is known of."""
    away = {one.address for one in found.findings if one.check is Check.TRUNCATED and one.remark}
    lost = [one for one in found.lost if one.address in away and one.leader is not None]
    unread = {replica for one in lost for replica in one.unread if replica not in one.truncated}
    of_plan = [one.words for one in rescue_commands(plan, path, disks) if not unread.isdisjoint(one.disks)]
    saved = {replica for one in lost for replica in one.read_for_files}
    if of_plan or (saved and not unread):
        return next(iter(of_plan), None)
    first = next((one.leader for one in lost), None)
    if first is None:
        return None
    return save_first(targets_of(one.address for one in lost if one.leader == first), first, on_disks=True)


def _replay(saved: Path) -> tuple[str, ...]:
    return ("rescue", "replay", str(saved), "--dry-run")


def _to_replay(plan: Plan, path: Path) -> list[Path]:
    """The rescue files of this plan that no replay here has come to an end with."""
    here = cluster_directory(state_directory(), plan.cluster_id)
    return [saved for saved in rescued_in(path) if not is_replayed(saved, here)]


def _verified(plan: Plan, found: Verification) -> Verified:
    return Verified(plan, found.findings, found.looked_at_ms, found.lost, found.silence, found.instead)


class _Live:
    """Says what is waited for: on the terminal a line that counts, in a pipe a line whenever that changes."""

    def __init__(self, output: Output, plan: Plan) -> None:
        self._output, self._plan = output, plan
        self._said = ""

    def show(self, found: Verification, left_s: float) -> None:
        verified = _verified(self._plan, found)
        if self._output.stderr.isatty():
            what = f"waiting {round(left_s)} s for {waited_for_in_short(verified)}; well"
            self._output.progress(found.count(Passed.YES), len(found.findings), what=what)
            return
        words = waited_for_in_words(verified)
        if words != self._said:
            self._said = words
            self._output.note(f"waiting for {words}")
