"""Decisions with a metadata log at hand: whose logs have to be heard, what that guarantees, and when it counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import ELR_4_3, RULE_SETS
from kelr.engine import decide
from kelr.engine.batch import PatternReader
from kelr.engine.verdict import verdict_of
from kelr.model import (
    AdviceAction,
    Decision,
    ElectionType,
    LossCertainty,
    Outcome,
    PartitionState,
    RecoveryQuorum,
    Snapshot,
)
from tests.engine.cases import cluster_of, log_of, silent, snapshot_of

STATE = PartitionState("orders", 0, None, 5, (1, 2, 3), (), (), ())
QUORUM = RecoveryQuorum(
    members=(1, 2),
    last_known_elr=(1, 2),
    restarted=(2,),
    min_isr=2,
    since_offset=210,
    since_ms=0,
    leader_epoch=5,
    partition_epoch=9,
    as_of_offset=300,
    as_of_ms=1_000,
)
LOGS = (log_of(1, (0, 50), hw=40), log_of(2, (0, 40), hw=40), silent(3))


def snapshot(quorum: RecoveryQuorum | None, logs: object = LOGS) -> Snapshot:
    base = snapshot_of(STATE, cluster_of(live=(1, 2), fenced=(3,)), logs)  # type: ignore[arg-type]
    return replace(base, quorums={} if quorum is None else {STATE.address: quorum})


def decision(quorum: RecoveryQuorum | None, logs: object = LOGS, rules: str = ELR_4_3.name) -> Decision:
    return decide(snapshot(quorum, logs), STATE, RULE_SETS[rules])


def balanced(made: Decision) -> Outcome:
    return next(one for one in made.elections if one.election is ElectionType.LONGEST_LOG_BALANCED)


def test_without_a_log_every_replica_has_to_be_heard() -> None:
    made = decision(None)
    assert (balanced(made).elected, balanced(made).waits_for, made.recovery_quorum) == (None, (3,), None)
    assert made.advice.action is AdviceAction.GET_MORE_INFORMATION


def test_beside_a_disk_that_was_not_read_the_best_log_is_that_of_those_heard() -> None:
    """Before the periodic task elects 1 the advice was to designate 2, "it has the best log"; 3 may have a better."""
    logs = (log_of(1, (0, 40), hw=40), log_of(2, (0, 50), hw=40), silent(3))
    base = snapshot_of(STATE, cluster_of(live=(1, 2), fenced=(3,)), logs, unclean=True)
    due = decide(replace(base, quorums={STATE.address: QUORUM}), STATE, ELR_4_3)
    assert (due.elected, due.advice.action, due.advice.designate) == (1, AdviceAction.DESIGNATE, 2)
    assert due.advice.text.endswith("Designate 2 before that: it has the most complete log that was read.")


def test_with_it_the_quorum_alone() -> None:
    made = decision(QUORUM)
    outcome = balanced(made)
    assert (outcome.elected, outcome.waits_for) == (1, ())
    assert outcome.loss is not None
    assert outcome.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    assert outcome.loss.reason == (
        "the metadata log says that 1 and 2 held everything committed: nothing was committed without them up to its"
        " offset 210 (00:00:00 UTC), and nothing since; all of their logs were read and 1 has the most complete one:"
        " nothing committed is lost if fewer than 2 of them lost data; of them 2 alone may have, by an unclean restart"
        " up to the log's offset 300 (00:00:01 UTC)"
    )
    assert (made.advice.action, made.advice.replica) == (AdviceAction.DESIGNATE, 1)
    assert made.recovery_quorum == QUORUM
    assert made.notes[0].startswith("the true LastKnownELR (KIP-966) is [1, 2], by the metadata log; Kafka keeps []")


def test_where_min_isr_members_restarted_the_condition_is_not_on_record() -> None:
    outcome = balanced(decision(replace(QUORUM, restarted=(1, 2))))
    assert outcome.loss is not None
    assert outcome.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    assert outcome.loss.reason.endswith("that fewer than 2 lost it is not on record")


def test_that_nobody_restarted_is_said_of_the_log_alone() -> None:
    outcome = balanced(decision(replace(QUORUM, restarted=())))
    assert outcome.loss is not None
    assert outcome.loss.reason.endswith("none of them restarted uncleanly up to the log's offset 300 (00:00:01 UTC)")


def test_a_member_that_was_not_heard_is_waited_for() -> None:
    made = decision(QUORUM, (log_of(1, (0, 50), hw=40), silent(2), log_of(3, (0, 20), hw=20)))
    assert balanced(made).waits_for == (2,)
    promised = LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    assert all(one.loss is None or one.loss.grade is not promised for one in made.elections)


@pytest.mark.parametrize(
    "quorum",
    [
        replace(QUORUM, doubt="a gap"),
        replace(QUORUM, leader_epoch=4),
        replace(QUORUM, members=(1, 4)),
        replace(QUORUM, members=(1,)),
    ],
    ids=["doubt", "epoch", "no replica", "too few"],
)
def test_what_is_doubtful_counts_for_nothing(quorum: RecoveryQuorum) -> None:
    made, without = decision(quorum), decision(None)
    assert (made.elections, made.advice) == (without.elections, without.advice)
    assert len(made.notes) == len(without.notes) + 1


def test_under_the_rules_of_the_whole_kip_its_own_set_counts() -> None:
    rules = "kip966-balanced"
    assert balanced(decision(QUORUM, rules=rules)).elected == balanced(decision(None, rules=rules)).elected


@pytest.mark.parametrize("quorum", [None, QUORUM, replace(QUORUM, doubt="a gap"), replace(QUORUM, members=(1, 2, 3))])
def test_a_pattern_knows_the_quorum(quorum: RecoveryQuorum | None) -> None:
    one = snapshot(quorum)
    assert PatternReader(one).verdict(STATE) == verdict_of(decide(one, STATE))


def test_each_replica_is_said_to_be_a_member_or_none() -> None:
    assert [one.reason for one in decision(QUORUM).candidates] == [
        "held everything committed, by the metadata log",
        "held everything committed, by the metadata log, restarted uncleanly since",
        "in neither ISR nor ELR: no guarantee",
    ]
    assert {one.reason for one in decision(None).candidates} == {"in neither ISR nor ELR: no guarantee"}
