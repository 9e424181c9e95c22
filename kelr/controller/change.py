"""What one run of the controller makes of a partition: complete a reassignment, recompute the ELR, elect, write.

`change_partition` is a function of its arguments and returns a new state; nothing is changed in place.

Source: PartitionChangeBuilder.build and PartitionReassignmentReplicas of Apache Kafka 4.0.0 to 4.3.1;
PartitionRegistration.merge for the epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kelr.controller.election import NO_LEADER, Elected, Election, ElectionInput, elect
from kelr.controller.rules import RuleSet
from kelr.model import PartitionState

# The order in which the controller writes an ELR: that of a Java HashSet.
#
# The order elects nobody (elections go by assignment order), but the controller compares the ELR it computes with the
# one it stored as lists: a stored ELR in another order makes it write a record where nothing else changes, and
# ElectLeaders then answers NONE instead of ELIGIBLE_LEADERS_NOT_AVAILABLE.
#
# Source: PartitionChangeBuilder.maybePopulateTargetElr; java.util.HashMap (hash, tableSizeFor, resize).

_LEAST_CAPACITY = 16
_LOAD_FACTOR = 0.75


def hash_set_order(first: Sequence[int], more: Iterable[int]) -> tuple[int, ...]:
    """The distinct ids as a Java HashSet yields them that was made of `first` and given `more` afterwards."""
    ids = tuple(dict.fromkeys((*first, *more)))
    if len(ids) < 2:
        return ids
    capacity = _LEAST_CAPACITY
    while capacity < int(len(first) / _LOAD_FACTOR) + 1 or capacity * _LOAD_FACTOR < len(ids):
        capacity *= 2
    return tuple(sorted(ids, key=lambda broker: (broker ^ broker >> 16) & (capacity - 1)))


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What surrounds a partition when an event reaches it."""

    electable: frozenset[int]
    min_isr: int
    """The one that the controller keeps the ELR by (`controller_min_isr`)."""
    rules: RuleSet
    unclean_leader_election: bool = False
    """The topic's effective unclean.leader.election.enable."""
    min_isr_known: bool = True
    """False where min.insync.replicas could not be read: `min_isr` is a guess, and an ELR that hangs on it unknown."""

    @property
    def normal_election(self) -> Election:
        """The election that most events run (ReplicationControlManager.generateLeaderAndIsrUpdates).

        With the whole of KIP-966 unclean.leader.election.enable only stands for a recovery strategy.
        """
        unclean = self.unclean_leader_election and not self.rules.recovers
        return Election.UNCLEAN if unclean else Election.ONLINE


@dataclass(frozen=True, slots=True)
class Change:
    """The state after a run, and what the election in it said."""

    before: PartitionState
    after: PartitionState
    elected: Elected
    ballot: ElectionInput

    @property
    def written(self) -> bool:
        """Whether the run wrote a record at all."""
        return self.after != self.before


def change_partition(
    state: PartitionState,
    around: Circumstances,
    *,
    election: Election,
    target_isr: tuple[int, ...] | None = None,
    target_replicas: tuple[int, ...] | None = None,
    target_adding: tuple[int, ...] | None = None,
    target_removing: tuple[int, ...] | None = None,
    target_recovering: bool | None = None,
    unclean_shutdown: frozenset[int] = frozenset(),
    recovered: int | None = None,
) -> Change:
    """One run of the controller on one partition.

    Args:
        target_isr: the ISR that the event asks for; None leaves it as it is.
        target_replicas: the assignment that the event asks for; None leaves it as it is.
        target_adding: the replicas that a reassignment adds from now on; None leaves them as they are.
        target_removing: the replicas that a reassignment removes from now on; None leaves them as they are.
        target_recovering: the recovery state that the event asks for; None leaves it as it is.
        unclean_shutdown: brokers that came back from an unclean shutdown: they may not stay in the ELR.
        recovered: the replica that the Unclean Recovery Manager chose (`ElectionInput.recovered`).
    """
    isr = state.isr if target_isr is None else target_isr
    replicas = state.replicas if target_replicas is None else target_replicas
    adding = state.adding if target_adding is None else target_adding
    removing = state.removing if target_removing is None else target_removing
    completed = _complete_reassignment(replicas, isr, adding or (), removing or (), around)
    if completed is not None:
        replicas, isr = completed
        adding, removing = (), ()
    sets = _target_sets(state, replicas, isr, around, unclean_shutdown)
    ballot = ElectionInput(
        replicas=replicas,
        isr=isr,
        elr=sets.elr,
        leader=state.leader,
        last_known=state.last_known_elr or (),
        electable=around.electable,
        election=election,
        rules=around.rules,
        recovered=recovered,
    )
    elected = elect(ballot)
    reassignment = (adding, removing)
    after = _write(state, reassignment, ballot, elected, sets, around=around, target_recovering=target_recovering)
    return Change(state, after, elected, ballot)


def _complete_reassignment(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    around: Circumstances,
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The (replicas, ISR) after a reassignment that this run completes, or None (maybeCompleteReassignment)."""
    rules = around.rules
    if not adding and not removing:
        return None
    new_isr = tuple(replica for replica in isr if replica not in removing)
    new_replicas = tuple(replica for replica in replicas if replica not in removing)
    if removing and (not new_isr or not new_replicas):
        return None
    if (rules.reassignment_needs_every_target or len(adding) < len(removing)) and not set(new_replicas) <= set(new_isr):
        return None
    if not rules.reassignment_needs_every_target and not set(adding) <= set(new_isr):
        return None
    if rules.kip966 and len(new_isr) < min(around.min_isr, len(new_replicas)):
        # KIP-966: removing replicas may not stay in the ELR, so that fewer in sync would be left than min ISR asks for,
        # which is never more than there are replicas then.
        return None
    return new_replicas, new_isr


@dataclass(frozen=True, slots=True)
class _Sets:
    """ELR and LastKnownELR as an event leaves them, before anybody is elected."""

    elr: tuple[int, ...]
    last_known: tuple[int, ...]
    """The KIP's set of members that may still be complete; released Kafka keeps the last known leader instead, and
    writes that after the election (`_last_known_leader`)."""


def _target_sets(
    state: PartitionState,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    around: Circumstances,
    unclean_shutdown: frozenset[int],
) -> _Sets:
    """KIP-966 "ELR update" (PartitionChangeBuilder.maybePopulateTargetElr).

    Whoever was in sync when the ISR fell below min ISR is in the ISR, in the ELR or, since it restarted uncleanly, in
    LastKnownELR, until min ISR is met again.
    """
    elr, last_known = state.elr or (), state.last_known_elr or ()
    if not around.rules.elr:
        # KIP-966, "MV downgrade": the controller ignores the fields, and the partition's next record removes them.
        return _Sets((), ()) if around.rules.kip966 else _Sets(elr, last_known)
    if len(isr) >= around.min_isr:
        return _Sets((), ())
    candidates = hash_set_order(elr, state.isr)
    target = tuple(broker for broker in candidates if broker not in isr and broker not in unclean_shutdown)
    known = hash_set_order(elr, (*state.isr, *last_known))
    rest = tuple(broker for broker in known if broker not in isr and broker not in target)
    if around.rules.kip966:
        # A completed reassignment leaves only replicas of the final assignment behind.
        return _Sets(_within(target, replicas), _within(rest, replicas))
    return _Sets(target, rest)


def _within(brokers: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers if broker in replicas)


def _write(
    state: PartitionState,
    reassignment: tuple[tuple[int, ...] | None, tuple[int, ...] | None],
    ballot: ElectionInput,
    elected: Elected,
    sets: _Sets,
    *,
    around: Circumstances,
    target_recovering: bool | None,
) -> PartitionState:
    """The state that the run's record leaves behind (PartitionChangeBuilder.build).

    Args:
        reassignment: the replicas that are being added and removed from now on.
    """
    leader_moves = elected.leader != state.leader
    # A record that drops replicas carries the leader even where it stays, so that its epoch rises.
    leader_written = leader_moves or not set(state.replicas) <= set(ballot.replicas)
    unclean = leader_moves and elected.unclean
    isr, elr = _sets_after_election(ballot, elected) if leader_moves else (ballot.isr, ballot.elr)
    if not ballot.rules.elr:
        # Without ELR the ISR never becomes empty: its last member stays, and the partition waits for it.
        isr, elr = isr or state.isr, ()
    # Kafka's builder recomputes the ELR from the ISR that an event asks for and elects behind it. For the KIP the ISR
    # with the elected leader in it is the proposed one: where it has min ISR members, commits go on without the ELR.
    proposed = isr if ballot.rules.kip966 else ballot.isr
    if ballot.rules.kip966:
        members = _left_behind(ballot, sets, isr) if unclean else sets.last_known
        if not ballot.rules.elr or len(isr) >= around.min_isr:
            elr, members = (), ()
        elif ballot.rules.keeps_last_known_elr and elected.leader is None:
            members = _last_leader_first(state, ballot, members)
        last_known = _as_far_as_known(state, state.last_known_elr, members, proposed, around)
    else:
        last_known = _last_known_leader(state, elected.leader, leader_written, isr, ballot.rules)
    known_elr = () if unclean else _as_far_as_known(state, state.elr, elr, proposed, around)
    adding, removing = reassignment
    # Who tells the one tells the other; half of it would be taken for the whole.
    known_last = None if known_elr is None else last_known
    recovering = _recovering(state.recovering, unclean, target_recovering)
    is_now = (adding, removing, elected.leader, ballot.replicas, isr, known_elr, known_last, recovering)
    if not leader_written and is_now == _what_a_record_writes(state):
        return state
    return PartitionState(
        topic=state.topic,
        partition=state.partition,
        leader=elected.leader,
        leader_epoch=state.leader_epoch + leader_written,
        replicas=ballot.replicas,
        isr=isr,
        elr=known_elr,
        last_known_elr=known_last,
        offline_replicas=state.offline_replicas,
        partition_epoch=None if state.partition_epoch is None else state.partition_epoch + 1,
        adding=adding,
        removing=removing,
        recovering=recovering,
        topic_id=state.topic_id,
    )


def _what_a_record_writes(state: PartitionState) -> tuple[object, ...]:
    """What a run may change, but for epochs."""
    return (
        state.adding,
        state.removing,
        state.leader,
        state.replicas,
        state.isr,
        state.elr,
        state.last_known_elr,
        state.recovering,
    )


def _as_far_as_known(
    state: PartitionState,
    before: tuple[int, ...] | None,
    after: tuple[int, ...],
    proposed: tuple[int, ...],
    around: Circumstances,
) -> tuple[int, ...] | None:
    """ELR or LastKnownELR after a run that goes by the proposed ISR, for all that is known; None where that is not all.

    A set that was not known becomes so when an ISR of min ISR members empties it. With an unknown min ISR it is not
    known after a change of the ISR, unless all replicas are in sync, or none is: those do not hang on it.
    """
    isr_changes = proposed != state.isr
    if around.rules.elr and not around.min_isr_known and 0 < len(proposed) < len(state.replicas):
        return None if isr_changes else before
    emptied = around.rules.elr and isr_changes and len(proposed) >= around.min_isr
    return after if before is not None or emptied else None


def _sets_after_election(ballot: ElectionInput, elected: Elected) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """ISR and ELR once the leadership has moved (tryElection, maybeUpdateRecordElr)."""
    # Kafka 4.0 seats even a stored "no leader", so that -1 gets into the sets.
    seated = NO_LEADER if elected.leader is None else elected.leader
    if elected.unclean:
        return (seated,), ()
    if seated in ballot.elr:
        return (seated,), tuple(replica for replica in ballot.elr if replica != seated)
    return ballot.isr, ballot.elr


def _left_behind(ballot: ElectionInput, sets: _Sets, isr: tuple[int, ...]) -> tuple[int, ...]:
    """LastKnownELR after a recovery: whoever was in one of the sets and does not lead may still be complete.

    KIP-966 cleans LastKnownELR when the ISR reaches min ISR, and not before; Kafka's own code for the set
    (PartitionChangeBuilder.maybeUpdateRecordElr) would forget it with the election.
    """
    known = hash_set_order(ballot.isr, (*sets.elr, *sets.last_known))
    return tuple(broker for broker in known if broker not in isr)


def _last_leader_first(state: PartitionState, ballot: ElectionInput, members: tuple[int, ...]) -> tuple[int, ...]:
    """LastKnownELR of a partition without a leader, where the last known leader may be elected.

    KIP-966, "Delivery plan" (004): "The last leader will be put at the front of the LastKnownELR list."
    """
    last = (state.last_known_elr or ())[:1] if state.leader is None else (state.leader,)
    last = _within(last, ballot.replicas)
    return (*last, *(broker for broker in members if broker not in last))


def _recovering(before: bool | None, unclean: bool, target: bool | None) -> bool | None:
    if target is not None and target != bool(before):
        return target
    return True if unclean else before


def _last_known_leader(
    state: PartitionState, leader: int | None, leader_written: bool, isr: tuple[int, ...], rules: RuleSet
) -> tuple[int, ...] | None:
    """LastKnownElr after the run; Kafka 4.x keeps the last known leader in it (maybeUpdateLastKnownLeader)."""
    known = state.last_known_elr
    if not rules.elr:
        return known
    old_leader = NO_LEADER if state.leader is None else state.leader
    if rules.last_known_leader_set_once:
        if leader_written and leader is None:
            return known or (old_leader,)
        return () if leader_written and known else known
    if isr == () != state.isr and known != (old_leader,):
        return (old_leader,)
    has_leader = leader is not None
    return () if has_leader and known else known
