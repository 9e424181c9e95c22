"""A controller quorum on paper: elections, replication, voters that are added and removed, disks that are wiped; and
brokers that follow it and keep replicas as it tells them. What was committed is known, so that every claim about its
copies can be judged.

Source: Raft (KIP-595), voter changes (KIP-853): a voter goes by the newest VotersRecord in its log, committed or not; a
leader begins no change before the one before, and a record of its own epoch, is committed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from kelr.model import EpochEnd, ReplicaLog
from kelr.quorum.copies import NO_EPOCH, Batches, BrokerDisk, DiskReplica, History, MetadataCopy, QuorumState
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage

CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Entry:
    epoch: int
    serial: int
    """No two entries that were appended have the same."""
    record: rec.MetadataRecord


@dataclass(slots=True)
class Voter:
    directory: str
    log: list[Entry] = field(default_factory=list)
    epoch: int = 0
    started: bool = True


@dataclass(slots=True)
class Broker:
    log: list[Entry] = field(default_factory=list)
    epoch: int = 0
    applied: int = 0
    replicas: dict[tuple[str, int], int] = field(default_factory=dict)
    """(topic id, partition) to the newest leader epoch that it knew."""


def id_of(number: int) -> str:
    return f"{number:021d}A"


class Quorum:
    """Plays itself, step by step."""

    def __init__(self, random: Random, *, dynamic: bool, voters: int, wipes: bool = False) -> None:
        self.random = random
        self.dynamic = dynamic
        self.wipes = wipes
        self._serial = 0
        self.first = frozenset(range(100, 100 + voters))
        self.voters = {node: Voter(id_of(node)) for node in sorted(self.first)}
        self.brokers = {broker: Broker() for broker in (1, 2, 3)}
        self.leader: int | None = None
        self.committed: list[Entry] = []
        self.removed: set[int] = set()
        self.stopped: set[int] = set()
        """Voters that take part in nothing any more."""

    def play(self, steps: int) -> None:
        choices = [self._elect, self._append, self._append, self._replicate, self._replicate, self._fetch, self._apply]
        choices += [self._replicate] if not self.dynamic else [self._replicate, self._change_voters]
        choices += [self._wipe] if self.wipes else []
        for _ in range(steps):
            self.random.choice(choices)()

    def voting(self, log: list[Entry]) -> frozenset[int]:
        sets = (one.record for one in reversed(log) if isinstance(one.record, rec.Voters))
        newest = next(sets, None)
        return self.first if newest is None else frozenset(voter.node for voter in newest.voters)

    def _entry(self, epoch: int, record: rec.MetadataRecord) -> Entry:
        self._serial += 1
        return Entry(epoch, self._serial, record)

    def _elect(self) -> None:
        node = self.random.choice(list(self.voters))
        candidate = self.voters[node]
        voting = self.voting(candidate.log)
        if node not in voting or node in self.stopped:
            return
        epoch = max(one.epoch for one in self.voters.values()) + 1
        asked = [one for one in self.voters if one not in self.stopped and (self.random.random() < 0.7 or one == node)]
        granted = [
            one for one in asked if one in voting and _position(self.voters[one].log) <= _position(candidate.log)
        ]
        if len(granted) <= len(voting) // 2:
            return
        for one in granted:
            self.voters[one].epoch = epoch
        self.leader = node
        told: list[rec.MetadataRecord] = [rec.LeaderChanged(node, tuple(sorted(voting)))]
        if not candidate.log and self.dynamic:
            told += [rec.KRaftVersion(1), self._voters_record(voting)]
        candidate.log += [self._entry(epoch, record) for record in told]

    def _voters_record(self, nodes: frozenset[int]) -> rec.Voters:
        return rec.Voters(tuple(rec.Voter(node, self.voters[node].directory, ()) for node in sorted(nodes)))

    def _append(self) -> None:
        leads = self._leading()
        if leads is None:
            return
        image = image_of(leads.log)
        topics = sorted(image.topics)
        what = self.random.random()
        record: rec.MetadataRecord = rec.Irrelevant("NoOpRecord")
        if what < 0.3 or not topics:
            topic = id_of(1000 + self._serial)
            made = tuple(self.random.sample((1, 2, 3), 2))
            leads.log.append(self._entry(leads.epoch, rec.TopicMade(f"t{self._serial}", topic)))
            record = rec.PartitionMade(topic, 0, made[0], 0, 0, made, made)
        elif what < 0.6:
            topic = self.random.choice(topics)
            state = image.topics[topic].partitions.get(0)
            if state is not None:
                record = rec.PartitionChanged(topic, 0, leader=self.random.choice(state.replicas))
        elif what < 0.7:
            record = rec.TopicRemoved(self.random.choice(topics))
        elif what < 0.8:
            topic = self.random.choice(topics)
            if 0 in image.topics[topic].partitions:
                placed = tuple(self.random.sample((1, 2, 3), 2))
                record = rec.PartitionChanged(topic, 0, leader=placed[0], replicas=placed, isr=placed)
        leads.log.append(self._entry(leads.epoch, record))

    def _leading(self) -> Voter | None:
        """The leader, if nobody was elected since."""
        if self.leader is None or self.leader not in self.voters or self.leader in self.stopped:
            return None
        leads = self.voters[self.leader]
        return leads if leads.log and leads.log[-1].epoch == leads.epoch else None

    def _change_voters(self) -> None:
        leads = self._leading()
        if leads is None or len(self.committed) < len(leads.log) or leads.log[: len(self.committed)] != self.committed:
            return
        voting = self.voting(leads.log)
        fresh = max(self.voters) + 1
        if len(voting) > 1 and self.random.random() < 0.5:
            goes = self.random.choice([one for one in sorted(voting) if one != self.leader])
            leads.log.append(self._entry(leads.epoch, self._voters_record(voting - {goes})))
        elif len(voting) < 6:
            self.voters[fresh] = Voter(id_of(fresh))
            leads.log.append(self._entry(leads.epoch, self._voters_record(voting | {fresh})))

    def _replicate(self) -> None:
        leads = self._leading()
        if leads is None:
            return
        for node, voter in self.voters.items():
            if (
                voter is not leads
                and node not in self.stopped
                and voter.epoch <= leads.epoch
                and self.random.random() < 0.6
            ):
                voter.epoch = leads.epoch
                voter.log = _followed(voter.log, leads.log, self.random)
        self._commit(leads)

    def _commit(self, leads: Voter) -> None:
        voting = self.voting(leads.log)
        for end in range(len(leads.log), len(self.committed), -1):
            holders = [one for one in voting if self.voters[one].log[:end] == leads.log[:end]]
            if leads.log[end - 1].epoch == leads.epoch and len(holders) > len(voting) // 2:
                self.committed = leads.log[:end]
                return

    def _fetch(self) -> None:
        leads = self._leading()
        for broker in self.brokers.values():
            if leads is not None and broker.epoch <= leads.epoch and self.random.random() < 0.7:
                broker.epoch = leads.epoch
                broker.log = _followed(broker.log, leads.log, self.random)

    def _apply(self) -> None:
        """Brokers do what they hold and know to be committed."""
        for number, broker in self.brokers.items():
            held = 0
            while held < min(len(broker.log), len(self.committed)) and broker.log[held] == self.committed[held]:
                held += 1
            if held <= broker.applied or self.random.random() < 0.3:
                continue
            broker.applied = held
            image = image_of(broker.log[:held])
            for topic in image.topics.values():
                for state in topic.partitions.values():
                    if number in state.replicas:
                        broker.replicas[topic.topic_id, state.partition] = state.leader_epoch
            # One that is gone keeps its files for a while, as a broker does that is down.
            gone = [key for key in broker.replicas if key[0] not in image.topics]
            for key in gone:
                if self.random.random() < 0.5:
                    del broker.replicas[key]

    def _wipe(self) -> None:
        if self.random.random() < 0.3:
            node = self.random.choice(list(self.voters))
            self.voters[node] = Voter(id_of(5000 + self._serial) if self.dynamic else self.voters[node].directory)
            if node == self.leader:
                self.leader = None

    # What is collected of it.

    def copies(self) -> Iterator[MetadataCopy]:
        """All of one moment, after which nobody writes."""
        for node in (*self.voters, *self.brokers):
            yield replace(self.copy_of(node), running=False)

    def copy_of(self, node: int) -> MetadataCopy:
        if node in self.brokers:
            return self.copy(node, id_of(node), self.brokers[node].log, self.brokers[node].epoch)
        voter = self.voters[node]
        return replace(self.copy(node, voter.directory, voter.log, voter.epoch), running=node not in self.stopped)

    def copy(self, node: int, directory: str, log: list[Entry], epoch: int) -> MetadataCopy:
        begins_at = self.random.randrange(len(log)) if len(log) > 3 and self.random.random() < 0.2 else 0
        begins_at = min(begins_at, len(self.committed)) if log[: len(self.committed)] == self.committed else 0
        kept = log[begins_at:]
        image = image_of(log)
        return MetadataCopy(
            node=node,
            directory_id=directory,
            place=f"host-{node}:/data",
            cluster_id=CLUSTER,
            batches=Batches(
                array("q", range(begins_at, len(log))),
                array("i", [one.epoch for one in kept]),
                array("I", [one.serial for one in kept]),
                len(log),
            ),
            last_epoch=log[-1].epoch if log else NO_EPOCH,
            image=image,
            history=history_of(log, begins_at),
            checkpoints=((begins_at, log[begins_at - 1].epoch),) if begins_at else (),
            quorum_state=QuorumState(epoch) if epoch else None,
        )

    def disk(self, number: int) -> BrokerDisk:
        names = {
            one.record.topic_id: one.record.name
            for log in (*(voter.log for voter in self.voters.values()), self.committed, self.brokers[number].log)
            for one in log
            if isinstance(one.record, rec.TopicMade)
        }
        log = ReplicaLog(number, 10, last_epoch=0, log_start=0, lineage=(EpochEnd(0, 10),))
        replicas = self.brokers[number].replicas
        return BrokerDisk(
            number,
            tuple(
                DiskReplica(names[topic], partition, topic, epoch, log, f"/data/{names[topic]}-{partition}")
                for (topic, partition), epoch in sorted(replicas.items())
                if topic in names
            ),
        )


def _position(log: list[Entry]) -> tuple[int, int]:
    return (log[-1].epoch if log else NO_EPOCH, len(log))


def _followed(log: list[Entry], leader: list[Entry], random: Random) -> list[Entry]:
    """What a follower holds after some fetches: what it has in common with the leader, and some of what follows."""
    same = 0
    while same < min(len(log), len(leader)) and log[same] == leader[same]:
        same += 1
    if same < len(log) and _position(log) > _position(leader):
        return log
    return leader[: random.choice((len(leader), random.randint(same, len(leader))))]


def image_of(log: list[Entry]) -> MetadataImage:
    image = MetadataImage()
    for offset, entry in enumerate(log):
        image.apply(rec.RecordBatch(offset, entry.epoch, offset, (entry.record,)))
    return image


def history_of(log: list[Entry], begins_at: int) -> History:
    image = image_of(log[:begins_at])
    topics, held = set(image.topics), {}
    for topic in image.topics.values():
        for state in topic.partitions.values():
            held[topic.topic_id, state.partition] = set(state.replicas)
    for offset, entry in enumerate(log[begins_at:], begins_at):
        for change in image.apply(rec.RecordBatch(offset, entry.epoch, offset, (entry.record,))):
            if isinstance(change, rec.PartitionMoved):
                moved = change.after or change.before
                assert moved is not None
                held.setdefault((moved.topic_id or "", moved.partition), set()).update(moved.replicas)
        topics |= set(image.topics)
    return History(begins_at, frozenset(topics), {key: frozenset(one) for key, one in held.items()})
