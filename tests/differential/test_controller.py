"""kelr's controller against Apache Kafka's own managers, on whole histories of a cluster."""

from __future__ import annotations

from random import Random

import pytest

from kelr.controller import ELR_4_1, ELR_4_1_0, ELR_4_3, RuleSet
from kelr.controller import events as ev
from tests.differential.controller_driver import History, disagreements, shrunk
from tests.differential.found import FOUND
from tests.differential.intents import AssignDirectory, FailDirectory, Register
from tests.differential.sequences import random_history
from tests.differential.versions import rules_of

EVENTS = 30
"""Random events after a cluster came up with its topics."""
BATCH = 500
SAMPLE = 966
"""The seed of the tests about the histories themselves: a small sample reaches rare things with some seeds only."""


def test_every_history_goes_as_it_goes_in_kafka(kafka: str, sequences: int, seed: int) -> None:
    rules = rules_of(kafka)
    for start in range(0, sequences, BATCH):
        numbers = range(start, min(start + BATCH, sequences))
        histories = [_history(rules, f"{seed} {kafka} {number}") for number in numbers]
        for number, found in zip(numbers, disagreements(kafka, rules, histories), strict=True):
            if found is not None:
                shortest = shrunk(kafka, rules, found)
                pytest.fail(f"Kafka {kafka}, seed {seed}, history {number}: {shortest}", pytrace=False)


def test_what_once_differed_does_so_no_more(kafka: str) -> None:
    found = disagreements(kafka, rules_of(kafka), FOUND.values())
    assert {name: str(parting) for name, parting in zip(FOUND, found, strict=True) if parting is not None} == {}


@pytest.mark.parametrize(
    ("kafka", "other"), [("4.0.0", ELR_4_1_0), ("4.1.0", ELR_4_1), ("4.1.1", ELR_4_3), ("4.3.1", ELR_4_1)]
)
def test_the_histories_tell_versions_apart(kafka: str, other: RuleSet) -> None:
    """A comparison that no neighbour's rules would fail would prove nothing."""
    histories = [_history(other, f"{SAMPLE} {kafka} {number}") for number in range(40)]
    assert any(disagreements(kafka, other, histories))


def test_the_histories_reach_every_kind_of_event_and_answer() -> None:
    """What no history meets is not compared."""
    histories = [_history(ELR_4_3, f"{SAMPLE} 4.3.1 {number}") for number in range(200)]
    events = {type(intent) for history in histories for intent in history.intents}
    assert events == _EVENTS
    steps = [step for history in histories for step in history.told(ELR_4_3)]
    refused = {step.handled.error for step in steps}
    answered = {error for step in steps for error in step.handled.answers.values()}
    assert refused == _REFUSALS
    assert answered == _ANSWERS


def _history(rules: RuleSet, seed: str) -> History:
    return random_history(rules, Random(seed), EVENTS)


_EVENTS = {
    AssignDirectory,
    FailDirectory,
    Register,
    ev.BrokerFenced,
    ev.BrokerUnfenced,
    ev.BrokerUnregistered,
    ev.ConfigDeleted,
    ev.ConfigWritten,
    ev.ControlledShutdown,
    ev.ElrFeature,
    ev.LeadersElected,
    ev.PartitionAltered,
    ev.PreferredElectionTask,
    ev.Reassigned,
    ev.TopicCreated,
    ev.TopicDeleted,
    ev.UncleanElectionTask,
}
_REFUSALS = {
    "NONE",
    "BROKER_ID_NOT_REGISTERED",
    "INVALID_CONFIG",
    "INVALID_REPLICA_ASSIGNMENT",
    "STALE_BROKER_EPOCH",
    "TOPIC_ALREADY_EXISTS",
    "UNKNOWN_SERVER_ERROR",
    "UNKNOWN_TOPIC_OR_PARTITION",
}
_ANSWERS = {
    "NONE",
    "ELECTION_NOT_NEEDED",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE",
    "FENCED_LEADER_EPOCH",
    "INELIGIBLE_REPLICA",
    "INVALID_REPLICA_ASSIGNMENT",
    "INVALID_REQUEST",
    "INVALID_UPDATE_VERSION",
    "NEW_LEADER_ELECTED",
    "NOT_CONTROLLER",
    "NOT_LEADER_OR_FOLLOWER",
    "NO_REASSIGNMENT_IN_PROGRESS",
    "PREFERRED_LEADER_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_ID",
    "UNKNOWN_TOPIC_OR_PARTITION",
}
