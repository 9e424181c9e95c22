"""Unclean recoveries of KIP-966 in a metadata log, which tells of the manager no more than that it is there."""

from __future__ import annotations

import pytest

from kelr.model import RECOVERY_FEATURE
from kelr.replay import records as rec
from kelr.replay.history import CauseKind, ClusterEntry, ElectedAs, PartitionEntry
from kelr.replay.image import BROKER, TOPIC
from kelr.view.history_words import cause_words
from tests.replay.history.told import Log, changed, fenced, unfenced


def recovered(
    strategy: str | None,
    *,
    elr: tuple[int, ...] = (),
    known: tuple[int, ...] = (1,),
    down: tuple[int, ...] = (),
    unclean: str | None = None,
    manager: bool = True,
) -> PartitionEntry:
    """A partition with these sets, of which replica 1 is then elected alone."""
    log = Log(unclean=unclean)
    if manager:
        log.write(rec.FeatureLevel(RECOVERY_FEATURE, 1))
    if strategy is not None:
        log.write(rec.ConfigSet(BROKER, "", "unclean.recovery.strategy", strategy))
    log.topic(1, 2, 3, leader=None, isr=(), elr=elr, last_known_elr=known)
    for broker in (1, 2, 3):
        log.write((fenced if broker in down else unfenced)(broker))
    left = tuple(one for one in known if one != 1)
    log.write(changed(leader=1, isr=(1,), elr=(), last_known_elr=left, recovering=True), later_ms=60_000)
    return log.last()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            recovered("balanced", known=(1, 2)),
            "unclean.recovery.strategy is balanced; brokers 1, 2 had answered; whether by itself or by ElectLeaders is"
            " not on record",
        ),
        # Also where there is one member, which on released Kafka is the last known leader.
        (recovered("Balanced"), "unclean.recovery.strategy is balanced; broker 1 had answered; whether by itself"),
        (
            recovered("aggressive", down=(3,)),
            "is aggressive; whose logs answered is not on record (live: 1, 2); whether by itself or by ElectLeaders",
        ),
        (recovered("none"), "is none; ElectLeaders asked for it; whose logs answered is not on record"),
        (
            recovered("balanced", elr=(3,), down=(3,)),
            "is balanced; ElectLeaders asked for it, since balanced waits for broker 3; whose logs answered is not",
        ),
        (
            recovered("balanced", known=(1, 3), down=(3,)),
            "is balanced; ElectLeaders asked for it, since balanced waits for broker 3; whose logs answered is not",
        ),
        # KIP-966, "Compatibility": the older config stands for a strategy.
        (recovered(None, unclean="true"), "is aggressive; whose logs answered is not on record (live: 1, 2, 3)"),
        (
            recovered(None, elr=(3,), down=(3,)),
            "is not on record (balanced, unless a controller's file has another); whose logs answered is not on record"
            " (live: 1, 2); balanced would have waited for broker 3; whether by itself",
        ),
    ],
)
def test_a_recovery_names_strategy_answers_and_who_asked(entry: PartitionEntry, words: str) -> None:
    assert entry.election is not None
    assert entry.election.elected_as is ElectedAs.UNCLEAN_RECOVERY
    assert entry.election.elected_as.clean is False
    assert entry.cause.kind is CauseKind.ELECTION
    told = cause_words(entry.cause, entry)
    assert told.startswith("unclean recovery; ")
    assert words in told
    assert "UNCLEAN" not in told


def test_without_the_manager_it_is_the_last_known_leader_the_first_of_the_set() -> None:
    """KIP-966, "Delivery plan" (004): "The last leader will be put at the front of the LastKnownELR list"."""
    found = recovered(None, known=(1, 3), manager=False).election
    assert found is not None
    assert found.elected_as is ElectedAs.LAST_KNOWN_LEADER


def test_another_strategy_is_told_of() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(rec.ConfigSet(TOPIC, "orders", "unclean.recovery.strategy", "none"))
    last = log.told()[-1]
    assert isinstance(last, ClusterEntry)
    assert (last.name, last.topic, last.before, last.after) == ("unclean.recovery.strategy", "orders", None, "none")
