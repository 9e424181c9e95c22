"""Thousands of random sets of copies: what is called proved holds every committed record, what a broker's data
contradicts is called stale, and the most complete copy is chosen."""

from __future__ import annotations

from random import Random

import pytest

from kelr.quorum.assess import Assessment, Matter, Verdict, VoterState, assess
from kelr.quorum.copies import BrokerDisk, MetadataCopy
from tests.quorum.raft import Quorum

HISTORIES = 1500


def collected(quorum: Quorum, random: Random) -> tuple[list[MetadataCopy], list[BrokerDisk]]:
    copies = [one for one in quorum.copies() if random.random() < 0.6]
    disks = [quorum.disk(number) for number in quorum.brokers if random.random() < 0.5]
    return copies, disks


def holds_committed(copy: MetadataCopy, quorum: Quorum) -> bool:
    """Whether every committed record that the copy could hold is in it."""
    if copy.end < len(quorum.committed):
        return False
    serials = dict(zip(copy.batches.offsets, copy.batches.checksums, strict=True))
    return all(serials.get(offset, entry.serial) == entry.serial for offset, entry in enumerate(quorum.committed))


def lacks_data(copy: MetadataCopy, disks: list[BrokerDisk]) -> bool:
    """Whether a broker's data names a leader epoch, or a topic, beyond what the copy says."""
    for disk in disks:
        for replica in disk.replicas:
            topic = copy.image.topics.get(replica.topic_id or "")
            if topic is None:
                if replica.topic_id not in copy.history.topics and not copy.history.begins_at:
                    return True
            elif 0 not in topic.partitions or (replica.newest_epoch or 0) > topic.partitions[0].leader_epoch:
                return True
    return False


def check(found: Assessment, quorum: Quorum, disks: list[BrokerDisk], *, lawful: bool) -> tuple[int, int, int]:
    proved = stale = behind = 0
    assert found.best.copy.position == max(one.copy.position for one in found.copies)
    at_rest = all(one.final for one in found.voters if one.state is VoterState.WHOLE)
    assert not (lawful and at_rest) or found.matter is not Matter.BEHIND
    whole = {one.node for one in found.voters if one.state is VoterState.WHOLE}
    rolled_back = [one.copy for one in found.copies if one.copy.node in whole and lacks_data(one.copy, disks)]
    if whole and len(rolled_back) == len(whole):
        assert all(one.verdict is not Verdict.PROVED for one in found.copies)
        behind += 1
    for one in found.copies:
        contradicted = lacks_data(one.copy, disks)
        if contradicted or one.copy.position < found.best.copy.position:
            assert one.verdict is Verdict.STALE
            stale += 1
        if one.verdict is Verdict.PROVED:
            assert not one.contradictions
            assert not lawful or holds_committed(one.copy, quorum)
            proved += 1
    return proved, stale, behind


@pytest.mark.parametrize("voters", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dynamic", [False, True])
def test_what_is_proved_holds_every_committed_record(voters: int, dynamic: bool) -> None:
    proved = stale = 0
    for seed in range(HISTORIES // 5):
        random = Random(seed * 10 + voters)
        quorum = Quorum(random, dynamic=dynamic, voters=voters)
        quorum.play(random.randint(5, 60))
        copies, disks = collected(quorum, random)
        if copies:
            more = check(assess(copies, disks), quorum, disks, lawful=True)
            proved, stale = proved + more[0], stale + more[1]
    assert proved > 20
    assert stale > 20 or voters == 1


@pytest.mark.parametrize("voters", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dynamic", [False, True])
def test_voters_that_go_on_after_they_were_read_prove_nothing(voters: int, dynamic: bool) -> None:
    """They are read one after the other, some of them while they run; what is committed meanwhile counts, too."""
    proved = overtaken = 0
    for seed in range(HISTORIES // 5):
        random = Random(seed * 10 + voters)
        quorum = Quorum(random, dynamic=dynamic, voters=voters)
        quorum.play(random.randint(5, 60))
        copies = []
        for node in random.sample((*quorum.voters, *quorum.brokers), len(quorum.voters) + len(quorum.brokers)):
            if random.random() < 0.7:
                quorum.stopped |= {node} if node in quorum.voters and random.random() < 0.6 else set()
                copies.append(quorum.copy_of(node))
                quorum.play(random.randint(0, 10))
        disks = [quorum.disk(number) for number in quorum.brokers if random.random() < 0.5]
        if copies:
            found = assess(copies, disks)
            proved += check(found, quorum, disks, lawful=True)[0]
            overtaken += not holds_committed(found.best.copy, quorum)
    assert proved > 20
    assert overtaken > 20 or voters == 1


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_a_brokers_data_contradicts_is_never_proved_whatever_was_done_to_the_voters(dynamic: bool) -> None:
    """Voters are wiped and come back: they elect each other, and commit other records in place of committed ones."""
    stale = behind = 0
    for seed in range(HISTORIES):
        random = Random(seed)
        quorum = Quorum(random, dynamic=dynamic, voters=3, wipes=True)
        quorum.play(random.randint(5, 60))
        copies, disks = collected(quorum, random)
        if copies:
            more = check(assess(copies, disks), quorum, disks, lawful=False)
            stale, behind = stale + more[1], behind + more[2]
    assert stale > 100
    assert behind > 5
