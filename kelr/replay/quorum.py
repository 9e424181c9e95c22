"""Who holds everything committed of every partition, by the metadata log (`RecoveryQuorum`).

`QuorumTracker` follows a `MetadataImage`: each batch is applied to the image, and what it did is given here::

    image = MetadataImage()
    tracker = QuorumTracker(image)
    for batch in log.batches():
        tracker.take(batch, image.apply(batch))
    quorum = tracker.quorum(TopicPartition("orders", 0))

What it stands on, and what the log cannot tell, is written down in docs/recovery-quorum.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kelr.model import (
    ELR_FEATURE,
    PartitionState,
    RecoveryQuorum,
    TopicPartition,
    controller_min_isr,
    leader_min_isr,
)
from kelr.replay.image import BROKER, MIN_ISR, TOPIC, MetadataImage
from kelr.replay.records import (
    At,
    BrokerMoved,
    Change,
    ConfigMoved,
    FeatureMoved,
    PartitionMoved,
    RecordBatch,
    Restarted,
)

# Who holds everything committed of one partition, from one record of the metadata log to the next.
#
# With ELR on, a leader advances the high watermark only while its ISR has min ISR members, and only to what every
# member of the ISR has. So at any moment of that kind the whole ISR holds everything that was committed; when the ISR
# falls below min ISR nothing more is committed, and those replicas go on holding it all, whatever happens to their
# places in ISR and ELR, until they lose data. That is the recovery quorum. Kafka's own sets are a view of it that
# Kafka forgets at times; the metadata log forgets nothing.
#
# Source: KIP-966, "Additional High Watermark advancement requirement" and "LastKnownELR"; maybeIncrementLeaderHW and
# effectiveMinIsr of Partition in Apache Kafka 4.0 to 4.3.

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
    """Replica count of the topic's partition 0, from which the controller derives its min ISR."""
    elr: bool

    def of_leader(self, state: PartitionState) -> int | None:
        """The one by which the leader advances the high watermark."""
        return leader_min_isr(self.wanted, len(state.replicas))

    @property
    def of_controller(self) -> int | None:
        """The one by which the controller keeps the ELR."""
        return controller_min_isr(self.wanted, self.first_replicas)

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
        f"broker {who} was elected uncleanly, by the record at offset {at.offset}: its followers truncated what its"
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


NO_MIN_ISR = "min.insync.replicas is not in the metadata log"


def _named(brokers: Sequence[int]) -> str:
    listed = ", ".join(map(str, brokers))
    return f"broker {listed} has" if len(brokers) == 1 else f"brokers {listed} have"


class QuorumTracker:
    """Follows an image, batch by batch, from its beginning on.

    Args:
        image: the one that the batches are applied to, each before it is given here.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._topics: dict[str, dict[int, Holders]] = {}
        self._ids: dict[str, str] = {}
        self._stalled: dict[tuple[str, int], Holders] = {}
        self._min_isr: dict[str, str] = {}
        self._cluster_wide: str | None = None
        self._of_single_brokers: set[str] = set()
        self._elr = False
        self._broken: str | None = None
        self._next: int | None = None
        self._in_checkpoint = False

    def take(self, batch: RecordBatch, changes: Iterable[Change]) -> None:
        """What a batch did to the image."""
        self._follow(batch)
        brokers: list[BrokerMoved] = []
        for change in changes:
            if type(change) is PartitionMoved:
                self._partition_moved(change)
            elif type(change) is BrokerMoved:
                brokers.append(change)
            elif type(change) is ConfigMoved:
                self._config_moved(change)
            elif type(change) is FeatureMoved:
                self._feature_moved(change)
            elif type(change) is Restarted:
                self._begin_anew()
        # A registration comes after the records of what it did to partitions, and is judged by them.
        for moved in brokers:
            self._broker_moved(moved)

    def quorum(self, address: TopicPartition) -> RecoveryQuorum | None:
        """The partition's recovery quorum; None where it is not on record."""
        self._settle()
        topic_id = self._image.names.get(address.topic)
        held = None if topic_id is None else self._topics.get(topic_id, {}).get(address.partition)
        return None if held is None else self._told(held)

    # The log.

    def _follow(self, batch: RecordBatch) -> None:
        if batch.of_checkpoint:
            self._in_checkpoint = True
            self._next = batch.checkpoint_end
            return
        self._settle()
        if self._broken is None and batch.base_offset > (self._next or 0):
            self._broken = (
                f"the log at hand begins at offset {batch.base_offset}, without a checkpoint of what was before"
                if self._next is None
                else f"the records at offsets {self._next} to {batch.base_offset - 1} are missing from the log at hand"
            )
        self._next = batch.next_offset

    def _begin_anew(self) -> None:
        for known in (self._topics, self._ids, self._stalled, self._min_isr, self._of_single_brokers):
            known.clear()
        self._cluster_wide, self._elr, self._broken = None, False, None

    def _settle(self) -> None:
        """A checkpoint tells configs after partitions, so that these are judged when it has ended."""
        if not self._in_checkpoint:
            return
        self._in_checkpoint = False
        for topic_id, found in self._topics.items():
            for number, held in found.items():
                found[number] = met = met_in_checkpoint(held.state, held.at, self._rule(held.state))
                self._keep(topic_id, met)

    # What moved.

    def _partition_moved(self, change: PartitionMoved) -> None:
        before, after = change.before, change.after
        state = after or before
        assert state is not None  # one of the two is there
        topic_id = state.topic_id or ""
        if after is None:
            self._gone(topic_id, state)
            return
        known = self._topics.setdefault(topic_id, {})
        self._ids[after.topic] = topic_id
        held = known.get(after.partition)
        if self._in_checkpoint:
            known[after.partition] = Holders(after, change.at, after.isr)
            return
        if held is None:
            held = known[after.partition] = made(after, change.at, self._rule(after))
        else:
            moved(held, after, change.at, self._rule(after))
        self._keep(topic_id, held)

    def _gone(self, topic_id: str, state: PartitionState) -> None:
        known = self._topics.get(topic_id, {})
        known.pop(state.partition, None)
        self._stalled.pop((topic_id, state.partition), None)
        if not known:
            self._topics.pop(topic_id, None)
            if self._ids.get(state.topic) == topic_id:
                del self._ids[state.topic]
                self._min_isr.pop(state.topic, None)

    def _config_moved(self, change: ConfigMoved) -> None:
        if change.key != MIN_ISR or change.resource_type not in {TOPIC, BROKER}:
            return
        topics = [change.resource] if change.resource_type == TOPIC else sorted(self._ids)
        affected = [
            held
            for topic in topics
            if not self._in_checkpoint
            for held in self._topics.get(self._ids.get(topic, ""), {}).values()
        ]
        before = [self._rule(held.state) for held in affected]
        if change.resource_type == BROKER and change.resource:
            (self._of_single_brokers.discard if change.after is None else self._of_single_brokers.add)(change.resource)
        elif change.resource_type == BROKER:
            self._cluster_wide = change.after
        elif change.after is None:
            self._min_isr.pop(change.resource, None)
        else:
            self._min_isr[change.resource] = change.after
        for held, rule in zip(affected, before, strict=True):
            min_isr_moved(held, change.at, rule, self._rule(held.state))
            self._keep(held.state.topic_id or "", held)

    def _feature_moved(self, change: FeatureMoved) -> None:
        if change.name != ELR_FEATURE or self._elr is (change.after >= 1):
            return
        self._elr = change.after >= 1
        if self._in_checkpoint:
            return
        for topic_id, found in self._topics.items():
            for held in found.values():
                elr_switched(held, change.at, self._rule(held.state))
                self._keep(topic_id, held)

    def _broker_moved(self, change: BrokerMoved) -> None:
        before, after = change.before, change.after
        if after is None or self._in_checkpoint or not self._elr:
            return
        if before is None or before.registration.incarnation != after.registration.incarnation:
            for held in self._stalled.values():
                registered_anew(held, change.broker)
        gone = frozenset(before.directories) - frozenset(after.directories) if before is not None else frozenset()
        if gone:
            for (topic_id, number), held in self._stalled.items():
                if self._directory(topic_id, number, held.state, change.broker) in gone:
                    lost_directory(held, change.broker)

    def _directory(self, topic_id: str, partition: int, state: PartitionState, broker: int) -> str | None:
        topic = self._image.topics.get(topic_id)
        directories: Sequence[str] = () if topic is None else topic.directories.get(partition, ())
        places = dict(zip(state.replicas, directories, strict=False))
        return places.get(broker)

    # What it is judged by, and what is told.

    def _keep(self, topic_id: str, held: Holders) -> None:
        key = topic_id, held.state.partition
        if held.stalled:
            self._stalled[key] = held
        else:
            self._stalled.pop(key, None)

    def _rule(self, state: PartitionState) -> Rule:
        first = self._topics.get(state.topic_id or "", {}).get(0)
        count = len(state.replicas) if first is None or state.partition == 0 else len(first.state.replicas)
        return Rule(self._wanted(state.topic), count, self._elr)

    def _wanted(self, topic: str) -> int | None:
        written = self._min_isr.get(topic)
        if written is None and not self._of_single_brokers:
            written = self._cluster_wide
        try:
            return None if written is None else int(written)
        except ValueError:
            return None

    def _told(self, held: Holders) -> RecoveryQuorum:
        state = held.state
        last: At | None = self._image.at
        members = tuple(broker for broker in state.replicas if broker in held.members)
        least = held.min_isr or self._rule(state).of_leader(state) or 1
        return RecoveryQuorum(
            members=members,
            last_known_elr=tuple(broker for broker in state.replicas if broker in held.lost),
            restarted=tuple(broker for broker in members if broker in held.restarted),
            min_isr=least,
            since_offset=held.at.offset,
            since_ms=held.at.timestamp_ms,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch or 0,
            as_of_offset=self._next or 0,
            as_of_ms=held.at.timestamp_ms if last is None else last.timestamp_ms,
            doubt=self._doubt(held, members, least),
            isr=state.isr,
            elr=state.elr or (),
            left_behind=tuple(broker for broker in state.replicas if broker in held.left_behind),
            followed_since=held.followed_since,
        )

    def _doubt(self, held: Holders, members: tuple[int, ...], least: int) -> str | None:
        image = self._image
        if self._broken is not None:
            return self._broken
        if image.not_understood:
            return f"the log holds {sum(image.not_understood.values())} records that kelr does not understand"
        if image.misfits:
            return f"{image.misfits} records of the log do not fit what it says before"
        if held.doubt is not None:
            return held.doubt
        if held.left_behind:
            behind = [broker for broker in held.state.replicas if broker in held.left_behind]
            return (
                f"an unclean election, by the record at offset {held.unclean_at}, gave up what the new leader's log"
                f" lacked; {_named(behind)} not been in sync since and may hold committed records of before"
            )
        if self._wanted(held.state.topic) is None:
            return NO_MIN_ISR
        if len(members) < least:
            return f"of the {least} replicas that held everything committed {len(members)} are replicas still"
        return None
