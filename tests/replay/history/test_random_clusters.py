"""What is told of random clusters, against the events that really happened."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kelr.controller import Election
from kelr.controller import events as ev
from kelr.model import ELR_FEATURE, ElectedBy, TopicPartition
from kelr.replay.history import (
    BrokerEntry,
    BrokerEvent,
    CauseKind,
    Certainty,
    ClusterEntry,
    ElectedAs,
    Entry,
    Interest,
    PartitionEntry,
    Restart,
    Window,
)
from tests.replay.history.observed import Observed, Truth, merged, random_cluster
from tests.replay.history.told import tell

GOES = {CauseKind.BROKER_FENCED, CauseKind.CONTROLLED_SHUTDOWN}
EXPECTED: dict[type, set[CauseKind]] = {
    ev.BrokerFenced: {CauseKind.BROKER_FENCED},
    ev.ControlledShutdown: GOES,
    ev.BrokerUnfenced: {CauseKind.BROKER_UNFENCED, *GOES},
    ev.BrokerRegistered: {CauseKind.BROKER_REGISTERED},
    ev.BrokerUnregistered: {CauseKind.BROKER_UNREGISTERED},
    ev.PartitionAltered: {CauseKind.ALTER_PARTITION},
    type(None): {CauseKind.ALTER_PARTITION},
    ev.Reassigned: {CauseKind.REASSIGNMENT},
    ev.ConfigWritten: {CauseKind.MIN_ISR_WRITTEN},
    ev.ConfigDeleted: {CauseKind.MIN_ISR_WRITTEN},
    ev.TopicCreated: {CauseKind.TOPIC_CREATED},
    ev.TopicDeleted: {CauseKind.TOPIC_DELETED},
    ev.UncleanElectionTask: {CauseKind.ELECTION},
    ev.PreferredElectionTask: {CauseKind.PREFERRED_ELECTION},
}
BY = {
    ElectedAs.PREFERRED: ElectedBy.ISR,
    ElectedAs.ISR: ElectedBy.ISR,
    ElectedAs.ELR: ElectedBy.ELR,
    ElectedAs.LAST_KNOWN_LEADER: ElectedBy.LAST_KNOWN_LEADER,
    ElectedAs.UNCLEAN: ElectedBy.UNCLEAN,
}


def expected(event: object) -> set[CauseKind]:
    if isinstance(event, ev.LeadersElected):
        return {CauseKind.PREFERRED_ELECTION if event.election is Election.PREFERRED else CauseKind.ELECTION}
    return EXPECTED[type(event)]


def entries(observed: Observed, *, several: bool, seed: int) -> Iterator[tuple[Entry, Truth]]:
    batches = observed.batches()
    told = tell(merged(batches, random.Random(seed)) if several else batches, Interest(), Window())
    return ((entry, observed.truths[entry.at.offset]) for entry in told if entry.at.offset in observed.truths)


def looks_like_the_fencing(entry: PartitionEntry, truth: Truth) -> bool:
    """The one thing that cannot be told apart: see `kelr.replay.history.attribution`."""
    return entry.cause.kind in GOES and truth.event is None and entry.election is None


@pytest.mark.parametrize("several", [False, True], ids=["an event a batch", "several"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rules", ["kraft", "elr-4.0", "elr-4.1", "elr-4.3"])
def test_what_is_certain_is_true(rules: str, seed: int, several: bool) -> None:
    causes = certain = 0
    elr = rules != "kraft"
    restarts: dict[int, int] = {}
    """By broker: the offset of its last registration with ELR off."""
    leaderless: dict[TopicPartition, int] = {}
    for entry, truth in entries(random_cluster(rules, seed), several=several, seed=seed):
        if isinstance(entry, ClusterEntry) and entry.name == ELR_FEATURE:
            elr = entry.after != "0"
        if isinstance(truth.event, ev.BrokerRegistered) and not elr:
            restarts[truth.event.broker] = entry.at.offset
        if isinstance(entry, BrokerEntry) and entry.event is BrokerEvent.REGISTERED:
            assert isinstance(truth.event, ev.BrokerRegistered)
            assert entry.restart is not (Restart.UNCLEAN if truth.event.clean else Restart.CLEAN), entry
        if not isinstance(entry, PartitionEntry):
            continue
        causes += 1
        if entry.cause.certainty is Certainty.CERTAIN:
            certain += 1
            if not (several and looks_like_the_fencing(entry, truth)):
                assert entry.cause.kind in expected(truth.event), (entry, truth.event)
        by = truth.elected.get(entry.address)
        if entry.election is not None and by is not None:
            since = leaderless.get(entry.address)
            untold = since is not None and restarts.get(entry.election.leader, -1) >= since
            if by is ElectedBy.ISR and untold:
                assert entry.election.elected_as is ElectedAs.UNKNOWN, (entry, truth.event)
            else:
                assert BY[entry.election.elected_as] is by, (entry, truth.event)
        if entry.after is None or entry.after.leader is not None:
            leaderless.pop(entry.address, None)
        else:
            leaderless.setdefault(entry.address, entry.at.offset)
    assert causes > 10
    assert certain > 0.8 * causes
