"""Which copy of the metadata log is best, what is proved of it, and what choosing each copy would do; pure.

Source: Raft's leader completeness (KIP-595) and voter changes (KIP-853); docs/quorum.md has the experiments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kelr.engine.logs import agreement, count_distinct, missing
from kelr.model import PartitionState, ReplicaLog
from kelr.quorum.copies import BrokerDisk, DiskReplica, MetadataCopy
from kelr.replay.records import Voter


class Verdict(StrEnum):
    """What is known of a copy's completeness."""

    PROVED = "proved"
    """It holds every committed record: enough voters were read after they had stopped, and nothing contradicts it."""
    LOWER_BOUND = "lower-bound"
    """It holds all that the nodes that were read hold; those that were not read may hold more."""
    STALE = "stale"
    """It lacks records: another copy, or a broker's data, shows it."""


class VoterState(StrEnum):
    """What was found of a voter."""

    WHOLE = "whole"
    NOT_READ = "not-read"
    OTHER_DIRECTORY = "other-directory"
    """A directory of this node was read, and has another directory id: its disk was replaced or formatted anew."""
    EMPTY = "empty"
    """Its log holds nothing: it was formatted and never caught up."""
    BROKEN = "broken"


class Matter(StrEnum):
    """What is the matter with the quorum."""

    LOST = "lost"
    """Fewer voters than a majority have a whole log: nobody can be elected."""
    STOPPED = "stopped"
    """Not lost: a majority has whole logs, and not enough of them run."""
    UNREACHED = "unreached"
    """Not lost: a majority runs with whole logs; if nobody leads, they do not reach each other at these addresses."""
    DISK = "disk"
    """Not lost: a majority has whole logs, and the disk of another voter is lost."""
    BEHIND = "behind"
    """A majority has whole logs that all lack what was committed, as when they were put back from an older copy: they
    would elect a leader that lacks it. Those that ran may have been read before it was written."""
    UNKNOWN = "unknown"
    """No copy says who votes."""


class Fate(StrEnum):
    """What becomes of a topic if a copy is chosen."""

    STRAY = "stray"
    """Unknown to the copy: brokers set its directories aside when they start next."""
    DELETED = "deleted"
    """Unknown to the copy, which begins with a checkpoint: live brokers load that, and delete the topic's files."""
    RESURRECTED = "resurrected"
    """Removed since: it comes back."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Something that shows that a copy lacks records, or may."""

    text: str
    place: str
    """The directory that shows it."""
    certain: bool
    """False: a topic that was removed, or a replica that moved, before the copy begins would look the same, and so
    would records that were never committed."""


@dataclass(frozen=True, slots=True)
class TopicFate:
    """A topic that is not as it was if a copy is chosen."""

    topic: str
    topic_id: str
    fate: Fate


@dataclass(frozen=True, slots=True)
class OlderPartition:
    """A partition whose leader or ISR in a copy is older than what is known of it."""

    topic: str
    partition: int
    leader: int | None
    """By the copy; None: nobody leads."""
    leader_epoch: int
    newest_epoch: int
    """The newest leader epoch that a broker's data, or the best copy, has."""
    truncated: int
    """Records that followers of that leader truncate, as far as logs were read."""
    exact: bool
    """Whether all replicas' logs were read, so that no more than that are truncated."""


@dataclass(frozen=True, slots=True)
class AssessedCopy:
    """A copy, and what is known of it."""

    copy: MetadataCopy
    verdict: Verdict
    agrees_to: int | None
    """It and the best copy hold the same records before this offset; None: they have none in common to compare."""
    parts: bool
    """Whether its records from there on are other ones than the best copy's."""
    contradictions: tuple[Contradiction, ...]
    fates: tuple[TopicFate, ...]
    older: tuple[OlderPartition, ...]
    truncating: tuple[int, ...]
    """Nodes whose metadata log it makes shorter: a live broker among them exits."""


@dataclass(frozen=True, slots=True)
class FoundVoter:
    """A voter, and what was found of it."""

    node: int
    state: VoterState
    voter: Voter | None = None
    """With its directory id and addresses; None with kraft.version 0."""
    running: bool | None = None

    @property
    def final(self) -> bool:
        """Whether its log was read whole, and it had stopped: one that runs may have helped to commit more since."""
        return self.state is VoterState.WHOLE and self.running is False


@dataclass(frozen=True, slots=True)
class Assessment:
    """All copies, assessed; the best one first."""

    cluster_id: str | None
    kraft_version: int
    voters: tuple[FoundVoter, ...]
    matter: Matter
    copies: tuple[AssessedCopy, ...]
    newest_epoch: int
    """The newest epoch that any directory names."""
    missing_voters: tuple[int, ...]
    """Voters that may hold more: of which no whole log was read, or that ran meanwhile and are enough to have committed
    more without those."""
    missing_brokers: tuple[int, ...]
    """Registered brokers of which no metadata log, or no data directory, was read."""

    @property
    def best(self) -> AssessedCopy:
        return self.copies[0]


def assess(copies: Sequence[MetadataCopy], disks: Sequence[BrokerDisk] = ()) -> Assessment:
    """Compare copies of one cluster's metadata log, and what brokers' data directories say of them.

    Raises:
        ValueError: there is none.
    """
    if not copies:
        raise ValueError("no copy of a metadata log")
    # Of equals that of a voter comes first, and that without a checkpoint, so that it tells most of its history.
    ordered = sorted(copies, key=lambda one: (one.broken is not None, one.history.begins_at, one.key))
    best = max(ordered, key=lambda one: one.position)
    voters = _voters(best, copies)
    proof = enough_voters(len(voters), sum(one.final for one in voters), dynamic=best.image.kraft_version > 0)
    own = {one.node: one for one in reversed(ordered)}
    # Voters that lost what was committed prove nothing of what others hold.
    behind = _are_behind(best, voters, copies, disks, own)
    proof = proof and not behind
    rest = sorted((one for one in ordered if one is not best), key=lambda one: one.position, reverse=True)
    assessed = tuple(_assessed(one, best, copies, disks, own, proof=proof) for one in (best, *rest))
    read, held = {one.node for one in copies}, {one.broker for one in disks if not one.unread}
    return Assessment(
        cluster_id=best.cluster_id,
        kraft_version=best.image.kraft_version,
        voters=voters,
        matter=_matter(voters, behind=behind),
        copies=assessed,
        newest_epoch=max(one.newest_epoch for one in copies),
        missing_voters=tuple(_missing(voters)),
        missing_brokers=tuple(sorted(one for one in best.image.brokers if one not in read or one not in held)),
    )


def enough_voters(voters: int, read: int, *, dynamic: bool) -> bool:
    """Whether every committed record is in the most complete log of so many voters.

    The voters that were not read must not have been able to commit alone. Those of a dynamic quorum may, for all that
    the others know, have added or removed a voter since; that change itself must not have been theirs alone either. So
    two of four are enough for a static quorum and not for a dynamic one, which three of five could have become.
    """
    unread = voters - read
    if not read or unread >= _majority(voters):
        return False
    return not dynamic or (unread + 1 < _majority(voters + 1) and unread < max(1, _majority(voters - 1)))


def _missing(voters: Sequence[FoundVoter]) -> Iterator[int]:
    whole = sum(one.state is VoterState.WHOLE for one in voters)
    for one in voters:
        if one.state is not VoterState.WHOLE or (whole >= _majority(len(voters)) and not one.final):
            yield one.node


def _majority(voters: int) -> int:
    return voters // 2 + 1


# Voters.


def _voters(best: MetadataCopy, copies: Sequence[MetadataCopy]) -> tuple[FoundVoter, ...]:
    if best.image.kraft_version > 0:
        return tuple(_found(voter.node, copies, voter) for voter in best.image.voter_set)
    return tuple(_found(node, copies, None) for node in sorted(best.image.voters))


def _found(node: int, copies: Sequence[MetadataCopy], voter: Voter | None) -> FoundVoter:
    own = [one for one in copies if one.node == node and one.read_at_ms is None]
    same = [one for one in own if voter is None or one.directory_id == voter.directory_id]
    if not same:
        state = VoterState.OTHER_DIRECTORY if own else VoterState.NOT_READ
        return FoundVoter(node, state, voter, own[0].running if own else None)
    states = [_state(one) for one in same]
    # Two readings of one voter that differ in what they are prove nothing: the worse one counts.
    worst = next((state for state in states if state is not VoterState.WHOLE), VoterState.WHOLE)
    return FoundVoter(node, worst, voter, same[0].running)


def _state(copy: MetadataCopy) -> VoterState:
    if copy.broken is not None:
        return VoterState.BROKEN
    # A disk that was formatted anew has no quorum-state: what it voted for is forgotten with what it held.
    return VoterState.EMPTY if not copy.end or copy.quorum_state is None else VoterState.WHOLE


def _are_behind(
    most: MetadataCopy,
    voters: Sequence[FoundVoter],
    copies: Sequence[MetadataCopy],
    disks: Sequence[BrokerDisk],
    own: Mapping[int, MetadataCopy],
) -> bool:
    """Whether the most complete of the voters' whole logs lacks committed records that another copy has: brokers' data
    shows it, or an epoch that none of the voters knows, though a majority of them elected its leader."""
    whole = {one.node for one in voters if one.state is VoterState.WHOLE}
    logs = [one for one in copies if one.node in whole and one.read_at_ms is None]
    best = max(logs, key=lambda one: one.position, default=None)
    if best is None or best.position >= most.position:
        return False
    unknown = most.last_epoch > max(one.newest_epoch for one in logs)
    return unknown or any(one.certain for one in _by_disks(best, disks, own))


def _matter(voters: Sequence[FoundVoter], *, behind: bool) -> Matter:
    if not voters:
        return Matter.UNKNOWN
    whole = [one for one in voters if one.state is VoterState.WHOLE]
    if len(whole) < _majority(len(voters)):
        return Matter.LOST
    if behind:
        return Matter.BEHIND
    if sum(one.running is True for one in whole) >= _majority(len(voters)):
        lost = any(one.state in {VoterState.OTHER_DIRECTORY, VoterState.EMPTY, VoterState.BROKEN} for one in voters)
        return Matter.DISK if lost else Matter.UNREACHED
    return Matter.STOPPED


# Copies side by side.

_CHUNK = 4096
"""Batches that are compared at a time."""


def parting(one: MetadataCopy, other: MetadataCopy) -> tuple[int | None, bool, bool]:
    """Where two copies part: (they agree before this offset, both hold other records from there on, both do so in one
    epoch, which Raft rules out). The offset is None where no record is in both."""
    first, second = one.batches, other.batches
    if not first.end or not second.end:
        return 0, False, False
    at, end = max(first.start, second.start), min(first.end, second.end)
    if at >= end:
        return None, False, False  # one begins with a checkpoint at or behind the other's end
    here, there = first.index(at), second.index(at)
    for size in (_CHUNK, 1):
        while first.same(here, second, there, size):
            here, there = here + size, there + size
    if here >= len(first.offsets) or there >= len(second.offsets):
        return end, False, False
    offset = min(first.offsets[here], second.offsets[there])
    return offset, True, first.epochs[here] == second.epochs[there]


def _assessed(
    copy: MetadataCopy,
    best: MetadataCopy,
    copies: Sequence[MetadataCopy],
    disks: Sequence[BrokerDisk],
    own: Mapping[int, MetadataCopy],
    *,
    proof: bool,
) -> AssessedCopy:
    agrees_to, parts, _ = parting(copy, best)
    contradictions = (*_by_copies(copy, best, copies), *_by_disks(copy, disks, own))
    if any(one.certain for one in contradictions):
        verdict = Verdict.STALE
    elif proof and not contradictions and copy.broken is None:
        verdict = Verdict.PROVED
    else:
        verdict = Verdict.LOWER_BOUND
    return AssessedCopy(
        copy=copy,
        verdict=verdict,
        agrees_to=agrees_to,
        parts=parts,
        contradictions=contradictions,
        fates=tuple(_fates(copy, best, disks)),
        older=tuple(_older(copy, best, disks)),
        truncating=tuple(sorted({one.node for one in copies if one.read_at_ms is None and _loses(one, copy)})),
    )


def _by_copies(copy: MetadataCopy, best: MetadataCopy, copies: Sequence[MetadataCopy]) -> Iterator[Contradiction]:
    if copy.position < best.position:
        more = f"node {best.node} holds offset {best.end - 1} of epoch {best.last_epoch}"
        ends = "this copy holds nothing"
        if copy.end:
            ends = f"this copy ends at {copy.end - 1} of epoch {copy.last_epoch}"
        yield Contradiction(f"{more}; {ends}", best.place, certain=True)
    for other in copies:
        if other is copy:
            continue
        offset, parts, impossible = parting(copy, other)
        committed = max((end for end, _ in other.checkpoints), default=0)
        if committed > copy.end or (parts and committed > (offset or 0)):
            text = f"node {other.node} has a checkpoint of the records before {committed}, which were committed"
            yield Contradiction(text, other.place, certain=True)
        if impossible:
            epoch = copy.batches.epochs[min(copy.batches.index(offset or 0), len(copy.batches.epochs) - 1)]
            text = f"node {other.node} holds another record at offset {offset} of the same epoch {epoch}"
            yield Contradiction(f"{text}: two controllers led at once", other.place, certain=True)
        elif other.cluster_id != copy.cluster_id and None not in {other.cluster_id, copy.cluster_id}:
            yield Contradiction(f"node {other.node} is of cluster {other.cluster_id}", other.place, certain=True)
        elif parts:
            text = f"node {other.node} holds other records from offset {offset} on: were they committed?"
            yield Contradiction(text, other.place, certain=False)


def _loses(other: MetadataCopy, copy: MetadataCopy) -> bool:
    """Whether a node has to truncate its metadata log to follow this copy."""
    return parting(other, copy)[1] or other.end > copy.end


# What brokers' data directories say.


def _by_disks(
    copy: MetadataCopy, disks: Sequence[BrokerDisk], own: Mapping[int, MetadataCopy]
) -> Iterator[Contradiction]:
    for disk in disks:
        for replica in disk.replicas:
            found = _contradicted(copy, disk.broker, replica, own.get(disk.broker))
            if found is not None:
                yield found


def _contradicted(
    copy: MetadataCopy, broker: int, replica: DiskReplica, own: MetadataCopy | None
) -> Contradiction | None:
    name = f"{replica.topic}-{replica.partition}"
    if replica.topic_id is None:
        text = f"broker {broker} has {name} without a topic id: which topic it was cannot be told"
        return Contradiction(text, replica.directory, certain=False)
    topic = copy.image.topics.get(replica.topic_id)
    if topic is None:
        if replica.topic_id in copy.history.topics:
            return None  # removed since, and the copy says so
        text = f"broker {broker} has {name} of topic id {replica.topic_id}, which this copy never knew"
        return Contradiction(text, replica.directory, certain=_knew(copy, own, replica, broker))
    state = topic.partitions.get(replica.partition)
    if state is None:
        text = f"broker {broker} has {name}, and this copy knows no such partition"
        return Contradiction(text, replica.directory, certain=True)
    if replica.newest_epoch is not None and replica.newest_epoch > state.leader_epoch:
        text = f"broker {broker} has {name} in leader epoch {replica.newest_epoch}; here it is {state.leader_epoch}"
        return Contradiction(text, replica.directory, certain=True)
    held = copy.history.held.get((replica.topic_id, replica.partition), frozenset(state.replicas))
    if broker not in held:
        text = f"broker {broker} has {name}, and this copy never placed a replica there"
        return Contradiction(text, replica.directory, certain=_knew(copy, own, replica, broker))
    return None


def _knew(copy: MetadataCopy, own: MetadataCopy | None, replica: DiskReplica, broker: int) -> bool:
    """Whether a replica that a copy never knew shows that it lacks records: it tells all from the first record on, or
    the broker's own copy knows the replica at or after the place where this copy begins."""
    if copy.history.begins_at == 0:
        return True
    if own is None or own.end < copy.history.begins_at:
        return False
    topic = own.image.topics.get(replica.topic_id or "")
    state = None if topic is None else topic.partitions.get(replica.partition)
    return state is not None and broker in state.replicas


# What choosing a copy would do.


def _fates(copy: MetadataCopy, best: MetadataCopy, disks: Sequence[BrokerDisk]) -> Iterator[TopicFate]:
    known, seen = copy.image.topics, copy.history.topics
    unknown = {topic_id: topic.name for topic_id, topic in best.image.topics.items() if topic_id not in known}
    for disk in disks:
        for replica in disk.replicas:
            topic_id = replica.topic_id
            if topic_id is not None and topic_id not in known and topic_id not in seen:
                unknown.setdefault(topic_id, replica.topic)
    # A live broker that has to truncate below the start of the leader's log loads the leader's checkpoint instead.
    fate = Fate.DELETED if copy.batches.start > 0 else Fate.STRAY
    for topic_id, name in sorted(unknown.items(), key=lambda one: (one[1], one[0])):
        yield TopicFate(name, topic_id, fate)
    for topic_id, topic in sorted(known.items(), key=lambda one: one[1].name):
        if topic_id not in best.image.topics and copy is not best:
            yield TopicFate(topic.name, topic_id, Fate.RESURRECTED)


def _older(copy: MetadataCopy, best: MetadataCopy, disks: Sequence[BrokerDisk]) -> Iterator[OlderPartition]:
    logs, newest = _logs(disks), _newest_epochs(disks)
    for topic in sorted(copy.image.topics.values(), key=lambda one: one.name):
        better = best.image.topics.get(topic.topic_id)
        for number in sorted(topic.partitions):
            state = topic.partitions[number]
            now = None if better is None else better.partitions.get(number)
            key = topic.topic_id, number
            epoch = max(newest.get(key, state.leader_epoch), state.leader_epoch if now is None else now.leader_epoch)
            if epoch > state.leader_epoch or (now is not None and now.isr != state.isr):
                yield _older_one(state, epoch, logs.get(key, {}))


def _older_one(state: PartitionState, newest_epoch: int, logs: Mapping[int, ReplicaLog]) -> OlderPartition:
    leader = None if state.leader is None else logs.get(state.leader)
    followers = [logs[one] for one in state.replicas if one in logs and one != state.leader]
    compared = [one for one in followers if leader is not None and agreement(one, leader) is not None]
    lost = frozenset[tuple[int, int, int]]().union(*(missing(one, leader) for one in compared if leader is not None))
    return OlderPartition(
        topic=state.topic,
        partition=state.partition,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        newest_epoch=newest_epoch,
        truncated=count_distinct(lost),
        exact=leader is not None and len(compared) == len(state.replicas) - 1,
    )


def _logs(disks: Sequence[BrokerDisk]) -> Mapping[tuple[str, int], Mapping[int, ReplicaLog]]:
    found: dict[tuple[str, int], dict[int, ReplicaLog]] = {}
    for disk in disks:
        for replica in disk.replicas:
            if replica.topic_id is not None and isinstance(replica.log, ReplicaLog):
                found.setdefault((replica.topic_id, replica.partition), {})[disk.broker] = replica.log
    return found


def _newest_epochs(disks: Sequence[BrokerDisk]) -> Mapping[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for disk in disks:
        for replica in disk.replicas:
            if replica.topic_id is not None and replica.newest_epoch is not None:
                key = replica.topic_id, replica.partition
                found[key] = max(found.get(key, 0), replica.newest_epoch)
    return found
