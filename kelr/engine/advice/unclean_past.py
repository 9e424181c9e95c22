"""What to say of a partition that is led, while another log may hold what its leader's lacks.

An unclean election gives up what the new leader's log lacks; a clean one, what was never committed. If a replica with
such records was down then, its disk has the only copy, until its broker starts: then it truncates to the leader's log.
One that is up keeps them until it reaches the leader.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from kelr.engine.advice.commands import save_first
from kelr.engine.advice.returns import cuts_in_words, saved_already, unsaved
from kelr.engine.case import Case
from kelr.engine.logs import saved_whole
from kelr.engine.situation import has_one_copy
from kelr.engine.words import agree, brokers, ids, joined
from kelr.model import (
    Advice,
    AdviceAction,
    PartitionState,
    RecordedElection,
    RecoveryQuorum,
    ReplicaLog,
    Truncation,
    Unsaved,
)


@dataclass(frozen=True, slots=True)
class UncleanPast:
    """What is known, or feared, to lie elsewhere alone."""

    leader: int
    cuts: tuple[Truncation, ...]
    """What each replica that is down and whose disk was read truncates on its return."""
    live: tuple[Truncation, ...]
    """What each live one truncates when it reaches the leader."""
    perhaps: tuple[int, ...]
    """Replicas that are down and may hold the only copy: nobody read their disks, or they cannot be compared."""
    why: str
    """What tells of an unclean election, or what is not known; empty where `perhaps` is."""
    unsaved: Unsaved | None
    """None where rescue files hold all of it."""
    saved: tuple[int, ...] = ()
    """Replicas of whose logs `files` hold all that the leader's lacks."""
    files: tuple[str, ...] = ()

    @property
    def away(self) -> tuple[int, ...]:
        """Replicas that are down."""
        return (*(cut.replica for cut in self.cuts), *self.perhaps)

    @property
    def up(self) -> tuple[int, ...]:
        """Live replicas."""
        return tuple(cut.replica for cut in self.live)

    @property
    def holders(self) -> str:
        """``the disk of broker 2``, ``the disks of brokers 2 and 4 and the log of broker 3``."""
        logs = f"{agree(len(self.up), 'the log', 'the logs')} of {brokers(self.up)}" if self.up else ""
        return joined([*([_the_disks(self.away)] if self.away else []), *([logs] if logs else [])], "and")


def unclean_past(case: Case) -> UncleanPast | None:
    """Whether other logs hold, or disks of brokers that are down may hold, what the live leader's log lacks; None: no
    sign."""
    past = _unclean_past(case)
    if past is None:
        return _saved_past(case)
    if not case.saved:
        return past
    cuts, of_cuts = unsaved(case, past.cuts, past.leader)
    live, of_live = unsaved(case, past.live, past.leader)
    whole = {one: file for one in past.perhaps if (file := _saved_whole(case, one, past.leader))}
    left = replace(
        past,
        cuts=tuple(cuts),
        live=tuple(live),
        perhaps=tuple(one for one in past.perhaps if one not in whole),
        files=tuple(sorted({*of_cuts, *of_live, *whole.values()})),
    )
    still = {*left.away, *left.up}
    saved = tuple(one for one in (*past.away, *past.up) if one not in still)
    return replace(left, saved=saved, unsaved=left.unsaved if still else None)


def _saved_past(case: Case) -> UncleanPast | None:
    """What an election on record gave up of logs that nobody had read, where rescue files hold it and the brokers are
    still down."""
    election, leader = case.election, case.state.leader
    if election is None or leader is None or leader not in case.electable:
        return None
    placed = {*case.state.isr, *case.elr}
    saved = {one: file for one, file in election.saved if one in case.absent and one not in placed}
    if not saved or case.state.leader_epoch < election.leader_epoch:
        return None
    return UncleanPast(leader, (), (), (), "", None, tuple(saved), tuple(sorted(set(saved.values()))))


def _saved_whole(case: Case, replica: int, leader: int) -> str | None:
    """The rescue file that has all that an unread disk can hold and this leader's log lacks; None: none is known to.

    Where the replica was read while nobody led, or under this very leader, no other election has come since: what its
    disk has got beside that, it has got from the leader.
    """
    own = case.logs.ranked.get(leader)
    for one in case.saved:
        since = case.state.leader_epoch - (one.leader is None)
        is_since = one.leader_epoch == since and one.leader in {None, leader}
        if one.replica == replica and is_since and saved_whole(one, own):
            return one.file
    return None


def _unclean_past(case: Case) -> UncleanPast | None:
    leader = case.state.leader
    if leader is None or leader not in case.electable:
        return None
    found, unread = _cuts(case, leader), _unread(case)
    cuts = tuple(cut for cut in found if cut.replica not in case.electable)
    live = tuple(cut for cut in found if cut.replica in case.electable)
    why, left = _unclean_election(case, unread)
    if why or found:
        return UncleanPast(leader, cuts, live, left, why, Unsaved.KNOWN if found else Unsaved.LIKELY)
    why = _perhaps_unclean(case, leader) if unread else ""
    if why:
        return UncleanPast(leader, (), (), unread, why, Unsaved.NOT_KNOWN)
    perhaps = _perhaps_never_held(case, leader)
    if not perhaps:
        return None
    disks = _the_disks(perhaps)
    why = f"Whether the leader's log ever held all that is on {disks} is not known, since deletion left no trace"
    return UncleanPast(leader, (), (), perhaps, why, Unsaved.NOT_KNOWN)


def save_what_was_given_up(case: Case, otherwise: Advice) -> Advice:
    """The advice to save first what other logs hold, where they hold it or may; else `otherwise`."""
    past = unclean_past(case)
    if past is None:
        return _with_what_returns_truncate(case, otherwise)
    cuts, perhaps, away = past.cuts, past.perhaps, past.away
    said = ""
    if past.saved:
        said = saved_already(past.files, f"what {brokers(past.saved)} held and the leader's log lacked")
    if past.unsaved is None:
        replayed = {one.file for one in case.saved if one.replayed}
        left = [file for file in past.files if file not in replayed]
        if not left:
            return otherwise
        back = joined([f"kelr rescue replay {file}" for file in left], "and")
        return replace(otherwise, text=f"{otherwise.text} {said} To produce it again: {back}.")
    parts = [said] if said else []
    if past.live:
        they = agree(len(past.live), "it truncates", "they truncate")
        parts.append(
            f"Save at once what {brokers(past.up)} {agree(len(past.live), 'holds', 'hold')} and the leader's log lacks:"
            f" {cuts_in_words(past.live)}. As soon as {agree(len(past.live), 'it reaches', 'they reach')} the leader,"
            f" {past.leader}, {they} to its log."
        )
    if cuts:
        parts.append(
            f"Save what is on {_the_disks([cut.replica for cut in cuts])} and not in the leader's log before"
            f" {agree(len(cuts), 'its broker starts', 'their brokers start')}: {cuts_in_words(cuts)}."
        )
    if perhaps:
        starts = agree(len(perhaps), "it starts", "they start")
        then = agree(len(perhaps), "it is replaced", "they are replaced") if _are_up(case, perhaps) else starts
        parts.append(
            f"{past.why}: save what {_the_disks(perhaps)} {agree(len(perhaps), 'holds', 'hold')} before {then}, since"
            " it may be the only copy."
        )
    if away:
        they = agree(len(away), "it truncates", "they truncate")
        parts.append(
            f"When {agree(len(away), 'it returns', 'they return')}, {they} to the log of the leader, {past.leader}."
        )
    rescue = save_first((case.name,), past.leader, on_disks=bool(away))
    again = "produce again what was saved (kelr rescue replay)"
    if otherwise.action is AdviceAction.NOTHING:
        # It has min ISR: nothing else presses, and that is not to be read as that nothing does.
        parts.append(f"Start {brokers(away)} only then, and {again}." if away else f"Then {again}.")
    else:
        parts.append(otherwise.text)
        if has_one_copy(case.state) and otherwise.action is AdviceAction.RESTORE_REPLICATION:
            parts.append(f"Once that is done, {again}.")
    return Advice(
        AdviceAction.RESCUE,
        " ".join(parts),
        (*away, *past.up)[0],
        command=otherwise.command or ("describe", case.name, "--watch"),
        rescue=rescue,
    )


def _with_what_returns_truncate(case: Case, advice: Advice) -> Advice:
    """The advice, and that returns beside a leader end what only unread disks hold: acks=1 records of a former leader
    at least, of which nothing else tells."""
    unread = _unread(case)
    # In epoch 0 nobody else has led: nobody has records that are not the leader's.
    if not unread or case.state.leader not in case.electable or not case.state.leader_epoch:
        return advice
    logs, they = agree(len(unread), "log", "logs"), agree(len(unread), "it truncates", "they truncate")
    said = f" The {logs} of {brokers(unread)} {agree(len(unread), 'was', 'were')} not read: on return {they} what the"
    return replace(advice, text=f"{advice.text}{said} leader's log lacks, such as acks=1 records.")


def left_by(
    election: RecordedElection, state: PartitionState, down: Collection[int], quorum: RecoveryQuorum | None = None
) -> tuple[int, ...]:
    """Replicas that are down and out of sync, and whose disks may hold what this recorded election gave up.

    Whether such a replica was in sync in between is on record nowhere but in a metadata log (`quorum`).
    """
    if election.clean or state.leader is None or state.leader_epoch < election.leader_epoch:
        return ()
    if _followed(quorum, state, election.leader_epoch):
        return ()
    placed = {*state.isr, *(state.elr or ())}
    return tuple(one for one in state.replicas if one in down and one in election.unread and one not in placed)


def may_have_left(state: PartitionState, down: Collection[int]) -> bool:
    """Whether a led partition lacks a replica that is down and that neither ISR nor ELR vouches for: of others there is
    nothing to be asked."""
    placed = {*state.isr, *(state.elr or ())}
    return state.leader is not None and any(one in down and one not in placed for one in state.replicas)


def _cuts(case: Case, leader: int) -> tuple[Truncation, ...]:
    """What each other replica is known to truncate when it follows this leader."""
    found, logs = [], case.logs
    for replica in case.state.replicas:
        log = logs.ranked.get(replica)
        if log is None or replica == leader or leader not in logs.ranked:
            continue
        if replica in case.electable and not _is_of_before(logs.ranked[leader], log, case.state.leader_epoch):
            continue
        agreed = logs.agreement(replica, leader)
        if agreed is not None and agreed < log.log_end:
            found.append(Truncation(replica, agreed, log.log_end - max(agreed, log.log_start or 0)))
    return tuple(found)


def _is_of_before(leader: ReplicaLog, log: ReplicaLog, epoch: int) -> bool:
    """Whether a live replica's log is of before this leader's epoch, and the leader was read in it: then the leader
    gets no more of what the other holds. Else that is read while it follows, and only seems to hold more."""
    return leader.current_leader_epoch == epoch and log.last_epoch is not None and log.last_epoch < epoch


def _perhaps_never_held(case: Case, leader: int) -> tuple[int, ...]:
    """Replicas that are down and hold records of which deletion has left no trace in the leader's log: whether it held
    the same ones, or others at their offsets, cannot be told (`KnownLogs.perhaps_missing`)."""
    if leader not in case.logs.ranked:
        return ()
    read = (one for one in case.absent if one in case.logs.ranked)
    return tuple(one for one in read if case.logs.perhaps_missing(one, leader))


def _unread(case: Case) -> tuple[int, ...]:
    """Replicas that are down, whose logs nobody read, and of which neither ISR nor ELR says that they were in sync."""
    placed = {*case.state.isr, *case.elr}
    return tuple(one for one in case.absent if one not in case.logs.ranked and one not in placed)


def _unclean_election(case: Case, unread: Sequence[int]) -> tuple[str, tuple[int, ...]]:
    """How it is known, or likely, that an unclean election has given something up, and whose unread disks may hold it;
    an empty sentence and none where it is not."""
    if not unread:
        return "", ()
    if case.state.recovering:
        return "The leader was elected uncleanly (the controller records it as RECOVERING)", tuple(unread)
    behind = () if case.quorum is None else tuple(one for one in unread if one in case.quorum.left_behind)
    if behind:
        return "By the metadata log an unclean election has given records up", behind
    in_place = {*case.state.isr, *case.elr}
    met = case.controller_min_isr is None or len(in_place) >= case.controller_min_isr
    if case.rules.elr and case.state.elr is not None and not met and len(in_place) < (case.min_isr or 0):
        # Whoever leaves an ISR below the controller's min ISR goes to the ELR
        # (PartitionChangeBuilder.maybePopulateTargetElr). Besides an unclean election only an unclean restart of a
        # member, and a write of min.insync.replicas, take it out.
        why = (
            f"ISR {ids(case.state.isr)} and ELR {ids(case.elr)} have together fewer members than min ISR"
            f" ({case.min_isr}), as after an unclean election"
        )
        return why, tuple(unread)
    election = case.election
    left = () if election is None else left_by(election, case.state, unread, case.quorum)
    if election is None or not left:
        return "", ()
    at = datetime.fromtimestamp(election.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    was = agree(len(left), "it was", "they were")
    what = f"the election of {election.leader} at {at} (leader epoch {election.leader_epoch})"
    if election.leader is None:
        what = f"an election at {at} (leader epoch {election.leader_epoch} or later), whose outcome it did not see,"
    hold = agree(len(left), "holds", "hold")
    why = (
        f"By kelr's own record {what} may have given up records that {brokers(left)} {hold}, and whether {was} in sync"
        " since is not on record"
    )
    return why, left


def _perhaps_unclean(case: Case, leader: int) -> str:
    """Why an election may have given up what an unread disk holds; empty where none can have.

    No request of released Kafka tells clean from unclean once min ISR is met again: that empties the ELR either way.
    But a partition has no leader for an epoch before an unclean election, unless its topic allows these. So none has
    come where the leader's log has records of every epoch up to the present one.
    """
    now = case.state.leader_epoch
    # Of an election on record it is known who was left behind, and that was said.
    on_record = case.election is not None and case.election.leader_epoch == now
    if not now or on_record or _followed(case.quorum, case.state, now):
        return ""
    lacking = _epochs_without_record(case.logs.ranked.get(leader), now)
    if lacking is None:
        if case.min_isr is None or len(case.state.isr) < case.min_isr:
            return ""  # Other things press, and what was not read is said with them.
        why = "The epochs of the leader's log were not read"
    elif lacking:
        first, last = lacking[0], lacking[-1]
        why = f"The leader's log has no record of {f'epochs {first}-{last}' if last > first else f'epoch {first}'}"
    elif case.unclean_election:
        why = "The topic allows unclean elections"
    else:
        return ""
    return (
        f"{why}, so whether every election was clean is not known (a metadata log tells: --bootstrap-controller"
        " HOST:PORT). If one was not"
    )


def _epochs_without_record(log: ReplicaLog | None, now: int) -> range | None:
    """The newest epochs before `now` that had no leader, or whose leader wrote nothing that this log still has; None:
    not known.

    A partition begins in epoch 0, with a leader. What retention has deleted is not looked for.
    """
    if log is None or log.lineage is None:
        return None
    whole = {0} if not log.log_start or not log.lineage else set()
    held = sorted({*whole, *(entry.epoch for entry in log.lineage), now})
    gaps = [range(one + 1, other) for one, other in pairwise(held) if other - one > 1]
    return gaps[-1] if gaps else range(0)


def _followed(quorum: RecoveryQuorum | None, state: PartitionState, epoch: int) -> bool:
    """Whether a metadata log tells how the leader of this epoch was elected, and that nobody is left behind since."""
    return (
        quorum is not None
        and quorum.doubt is None
        and quorum.followed_since is not None
        and quorum.followed_since < epoch
        and quorum.leader_epoch >= state.leader_epoch
    )


def _are_up(case: Case, replicas: Sequence[int]) -> bool:
    """Whether these replicas are away for their log directories alone: their brokers run."""
    return set(replicas) <= set(case.without_directory)


def _the_disks(replicas: Sequence[int]) -> str:
    return f"{agree(len(replicas), 'the disk', 'the disks')} of {brokers(replicas)}"
