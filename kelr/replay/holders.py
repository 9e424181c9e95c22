"""Who holds everything committed of one partition, from one record of the metadata log to the next.

With ELR on, a leader advances the high watermark only while its ISR has min ISR members, and only to what every member
of the ISR has. So at any moment of that kind the whole ISR holds everything that was committed; when the ISR falls
below min ISR nothing more is committed, and those replicas go on holding it all, whatever happens to their places in
ISR and ELR, until they lose data. That is the recovery quorum. Kafka's own sets are a view of it that Kafka forgets
at times; the metadata log forgets nothing.

Source: KIP-966, "Additional High Watermark advancement requirement" and "LastKnownELR"; maybeIncrementLeaderHW and
effectiveMinIsr of Partition in Apache Kafka 4.0 to 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kelr.model import PartitionState
from kelr.replay.changes import At

SETTLES_MS = 60_000
"""A leader is taken to know a raised min ISR after so long. The log does not tell when it learnt of it."""

ELR_WAS_OFF = (
    "eligible.leader.replicas.version was 0: then Kafka records no unclean restart, and a leader may go by a min ISR"
    " that is not on record"
)
BEGAN_BELOW = "the checkpoint that the log begins with was made below min ISR, and names too few in ISR and ELR"
DIFFERENT_SIZES = (
    "the checkpoint that the log begins with was made below min ISR, and its topic's partition 0 has more replicas: the"
    " ELR there proves nothing"
)
NOT_ON_RECORD = "min.insync.replicas was not on record when the ISR was last this small"


@dataclass(slots=True)
class Holders:
    """One partition, and who holds everything committed of it."""

    state: PartitionState
    at: At
    """The last moment that mattered: see `RecoveryQuorum.since_offset`."""
    members: tuple[int, ...]
    min_isr: int | None = None
    """The effective min ISR, as the leader counts it, of the last moment when the high watermark could advance."""
    advancing: bool = False
    """Whether the high watermark can advance."""
    restarted: frozenset[int] = frozenset()
    known: tuple[int, ...] = ()
    """Who has been in ISR or ELR since the ISR was last at min ISR, as the controller counts it (KIP-966)."""
    lost: frozenset[int] = frozenset()
    """Those of them that have lost their place in the ELR."""
    doubt: str | None = None
    gathering: bool = False
    """Whether the doubt ends when min ISR replicas were in sync, one after the other."""
    raised: tuple[int, int] | None = None
    """The min ISR before it was raised, and when that was (ms)."""
    left_behind: frozenset[int] = frozenset()
    """Replicas that have not been in sync since the last unclean election: they may hold what it gave up."""
    unclean_at: int | None = None
    """The offset of the record of that election."""
    followed_since: int = 0
    """The leader epoch with which it was met first."""

    @property
    def stalled(self) -> bool:
        """Whether what happens to members outside of the ISR matters."""
        return not self.advancing or self.known != self.state.isr or bool(self.lost)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a partition is judged by: two ways of counting the effective min ISR, and whether ELR is kept."""

    wanted: int | None
    """min.insync.replicas; None where it is not on record."""
    first_replicas: int
    """Replica count of the topic's partition 0, from which the controller derives its effective min ISR."""
    elr: bool

    def of_leader(self, state: PartitionState) -> int | None:
        """The effective min ISR by which the leader advances the high watermark (Partition.effectiveMinIsr)."""
        return None if self.wanted is None else min(self.wanted, len(state.replicas))

    @property
    def of_controller(self) -> int | None:
        """The one by which the controller keeps the ELR (getTopicEffectiveMinIsr)."""
        return None if self.wanted is None else min(self.wanted, self.first_replicas)

    def advances(self, state: PartitionState) -> bool:
        """Whether the high watermark can advance."""
        least = self.of_leader(state)
        return state.leader is not None and least is not None and len(state.isr) >= least


def made(state: PartitionState, at: At, rule: Rule) -> Holders:
    """A new partition: every replica holds all of nothing."""
    held = Holders(state, at, state.replicas, known=state.isr, followed_since=state.leader_epoch)
    if not rule.elr:
        _without_elr(held, at)
    elif rule.advances(state):
        _advances(held, at, rule)
    else:
        held.min_isr = rule.of_leader(state)
    return held


def met_in_checkpoint(state: PartitionState, at: At, rule: Rule) -> Holders:
    """A partition as a checkpoint has it: of what was before, ISR and ELR are left."""
    places = _union(state.isr, state.elr or ())
    lost = frozenset(state.last_known_elr or ()) - {*places}
    known = _union(places, sorted(lost))
    held = Holders(state, at, places, rule.of_leader(state), known=known, lost=lost, followed_since=state.leader_epoch)
    if not rule.elr:
        _without_elr(held, at)
        return held
    if rule.advances(state):
        _advances(held, at, rule)
    elif held.min_isr is not None and rule.of_controller != held.min_isr and state.elr:
        held.doubt = DIFFERENT_SIZES
    elif held.min_isr is not None and len(places) < held.min_isr:
        held.doubt, held.gathering = BEGAN_BELOW, True
    _by_the_kip(held, state, state, rule, unclean=False)
    return held


def moved(held: Holders, after: PartitionState, at: At, rule: Rule) -> None:
    """A record changed the partition."""
    before, held.state = held.state, after
    unclean = _unclean(before, after)
    if unclean:
        held.left_behind, held.unclean_at = frozenset(after.replicas), at.offset
    held.left_behind = (held.left_behind & {*after.replicas}) - {*after.isr}
    if not rule.elr:
        _without_elr(held, at)
        return
    least, least_before = rule.of_leader(after), rule.of_leader(before)
    if least is not None and least_before is not None and least > least_before:
        _raised(held, least_before, at)
    if rule.advances(after):
        _advances(held, at, rule)
    elif unclean:
        _elected_uncleanly(held, at, least)
    else:
        _no_longer(held, before, at, least)
    _by_the_kip(held, before, after, rule, unclean=unclean)


def min_isr_moved(held: Holders, at: At, before: Rule, rule: Rule) -> None:
    """min.insync.replicas has another value, or has one for the first time."""
    state = held.state
    if not rule.elr:
        return
    least, least_before = rule.of_leader(state), before.of_leader(state)
    if least is not None and least_before is not None and least > least_before:
        _raised(held, least_before, at)
    if rule.advances(state):
        _advances(held, held.at if held.advancing else at, rule)
    elif held.advancing:
        held.advancing, held.at = False, at
    elif least_before is None and least is not None:
        held.doubt, held.gathering = held.doubt or NOT_ON_RECORD, False
    controllers = rule.of_controller
    if controllers is not None and len(state.isr) >= controllers:
        held.known, held.lost = state.isr, frozenset()


def elr_switched(held: Holders, at: At, rule: Rule) -> None:
    """Kafka keeps ELR from now on, or does no more."""
    if not rule.elr:
        _without_elr(held, at)
        return
    # Leaders may have gone by smaller numbers, and learn of the new one as of a raised one.
    _raised(held, 1, at)
    held.advancing = False
    if rule.advances(held.state):
        _advances(held, at, rule)
    held.known, held.lost = held.state.isr, frozenset()


def registered_anew(held: Holders, broker: int) -> None:
    """A broker registered, and Kafka left it no place in ISR or ELR: it was shut down uncleanly, or nobody knows."""
    if broker in held.state.isr or broker in (held.state.elr or ()):
        return
    if broker in held.members:
        held.restarted |= {broker}
    if broker in held.known:
        held.lost |= {broker}


def lost_directory(held: Holders, broker: int) -> None:
    """The log directory of a replica is gone, and with it perhaps its log; its place in the ELR stays."""
    if broker in held.members and broker not in held.state.isr:
        held.restarted |= {broker}


def _advances(held: Holders, at: At, rule: Rule) -> None:
    held.at, held.members, held.min_isr = at, held.state.isr, rule.of_leader(held.state)
    held.advancing, held.restarted, held.doubt, held.gathering = True, frozenset(), None, False


def _without_elr(held: Holders, at: At) -> None:
    held.at, held.members, held.min_isr = at, held.state.isr, None
    held.advancing, held.restarted = held.state.leader is not None, frozenset()
    held.doubt, held.gathering, held.known, held.lost = ELR_WAS_OFF, False, held.state.isr, frozenset()


def _elected_uncleanly(held: Holders, at: At, least: int | None) -> None:
    """Whoever follows the new leader gives up what its log lacks: a new history begins with its log."""
    who = held.state.isr[0] if held.state.leader is None and held.state.isr else held.state.leader
    held.at, held.members, held.min_isr, held.advancing = at, held.state.isr, least, False
    held.restarted, held.gathering = frozenset(), True
    held.doubt = (
        f"broker {who} was elected uncleanly, by the record at offset {at.offset}: whoever followed it gave up what its"
        " log lacked"
    )


def _no_longer(held: Holders, before: PartitionState, at: At, least: int | None) -> None:
    """The high watermark cannot advance (any more): who holds all that was committed goes on holding it."""
    after = held.state
    if held.advancing:
        held.at, held.advancing = at, False
    # Whoever comes into the ISR meanwhile has fetched all of it from a leader that has it.
    held.members = tuple(broker for broker in _union(held.members, after.isr) if broker in after.replicas)
    held.restarted = (held.restarted - {*after.isr}) & {*after.replicas}
    if held.gathering and least is not None and len(held.members) >= least:
        held.doubt, held.gathering, held.min_isr = None, False, least
    if held.raised is not None and set(after.isr) != set(before.isr) and after.leader is not None:
        smaller, when_ms = held.raised
        if at.timestamp_ms - when_ms <= SETTLES_MS and len(after.isr) >= smaller:
            held.doubt, held.gathering = (
                f"min ISR was raised from {smaller} less than a minute before the ISR fell to {len(after.isr)}: whether"
                " the leader knew of it is not on record",
                False,
            )


def _raised(held: Holders, smaller: int, at: At) -> None:
    if held.raised is not None and at.timestamp_ms - held.raised[1] <= SETTLES_MS:
        smaller = min(smaller, held.raised[0])
    held.raised = smaller, at.timestamp_ms


def _unclean(before: PartitionState, after: PartitionState) -> bool:
    """Whether the ISR got a member that no leader asked for and no ELR vouched for.

    An ISR grows by a leader's AlterPartition. Besides, an election may put a member of the ELR there (clean), or any
    other replica (unclean; the partition is RECOVERING then), and a cancelled reassignment may put the first replica
    there when nobody else is left.
    """
    joined = {*after.isr} - {*before.isr} - {*(before.elr or ())}
    if not joined:
        return False
    dropped = {*before.replicas} - {*after.replicas}
    if before.leader is None or after.recovering or dropped & {*(before.adding or ())}:
        return True
    # A reassignment that completes may hand the leadership on with the same record that lets a replica in.
    return after.leader != before.leader and not dropped and not before.adding


def _by_the_kip(held: Holders, before: PartitionState, after: PartitionState, rule: Rule, *, unclean: bool) -> None:
    """The KIP's LastKnownELR, by the controller's own count (`kelr.controller.change`)."""
    least = rule.of_controller
    if least is not None and len(after.isr) >= least:
        held.known, held.lost = after.isr, frozenset()
        return
    known = _union(held.known, (*before.isr, *after.isr))
    held.known = tuple(broker for broker in known if broker in after.replicas)
    lost = frozenset(held.known) if unclean else held.lost
    held.lost = (lost & {*held.known}) - {*after.isr}


def _union(some: Iterable[int], others: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*some, *others)))
