"""Clusters that take ElectLeaders v3: the whole of KIP-966 rules them, and an election names its leader."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import KIP966, RecoveryStrategy, choose_rules, rule_set
from kelr.engine import decide
from kelr.engine.patterns import pattern_of
from kelr.engine.planning import differences, plan_of
from kelr.engine.verdict import verdict_of
from kelr.model import (
    ELR_FEATURE,
    METADATA_FEATURE,
    AdviceAction,
    ElectionRequest,
    ElectionType,
    Features,
    HoldReason,
    Method,
    NotPlanned,
    PlannedElection,
    Snapshot,
)
from tests.engine.cases import leaderless, silent
from tests.engine.planned import all_heard, asked, designated, incident

RELEASED = {METADATA_FEATURE: 29, ELR_FEATURE: 1}


def native(snapshot: Snapshot | None = None, *, strategy: str | None = "none", version: int = 3) -> Snapshot:
    """The incident on a cluster with ElectLeaders v3."""
    made = incident() if snapshot is None else snapshot
    configs = {topic: replace(config, recovery_strategy=strategy) for topic, config in made.configs.items()}
    features = Features(RELEASED, RELEASED, elect_leaders=version)
    return replace(made, cluster=replace(made.cluster, features=features), configs=configs)


def planned(snapshot: Snapshot, wish: ElectionRequest, rules: str | None = None) -> PlannedElection | NotPlanned:
    decision = decide(snapshot, snapshot.partitions[0], None if rules is None else rule_set(rules))
    made = plan_of(snapshot, [decision], lambda _at: wish, now_ms=0, made_by="kelr/test")
    return (*made.elections, *made.not_planned)[0]


@pytest.mark.parametrize("version", [None, 0, 2])
def test_a_released_cluster_does_not_run_the_whole_kip(version: int | None) -> None:
    chosen = choose_rules(Features(RELEASED, RELEASED, elect_leaders=version))
    assert not chosen.rules.kip966


@pytest.mark.parametrize("version", [3, 4])
def test_elect_leaders_v3_is_the_whole_kips(version: int) -> None:
    chosen = choose_rules(Features(RELEASED, RELEASED, elect_leaders=version))
    assert (chosen.rules, chosen.certain) == (KIP966, True)
    assert chosen.reason == f"brokers take ElectLeaders v{version}, which is KIP-966's"


def test_with_elr_off_the_whole_kip_keeps_none() -> None:
    chosen = choose_rules(Features({ELR_FEATURE: 0}, RELEASED, elect_leaders=3))
    assert chosen.rules == replace(KIP966, elr=False)


@pytest.mark.parametrize(
    ("strategy", "unclean", "expected"),
    [
        ("none", True, RecoveryStrategy.NONE),
        ("balanced", True, RecoveryStrategy.BALANCED),
        ("aggressive", False, RecoveryStrategy.AGGRESSIVE),
        ("Proactive", False, RecoveryStrategy.AGGRESSIVE),
        (None, False, RecoveryStrategy.BALANCED),
        (None, True, RecoveryStrategy.AGGRESSIVE),
        ("something new", True, RecoveryStrategy.AGGRESSIVE),
    ],
)
def test_the_strategy_of_a_topic(strategy: str | None, unclean: bool, expected: RecoveryStrategy) -> None:
    """Its own config stands above the older one, which KIP-966 maps to a strategy."""
    assert KIP966.of_topic(unclean, strategy).recovery is expected
    decision = decide(native(incident(unclean=unclean), strategy=strategy), incident().partitions[0])
    assert decision.rules == f"kip966-{expected}"
    assert decision.cluster_rules is None
    unknown = [note for note in decision.notes if "unclean.recovery.strategy of topic" in note]
    assert bool(unknown) is (strategy is None)


@pytest.mark.parametrize(
    ("strategy", "named", "expected"),
    [
        ("none", "kip966-aggressive", "kip966-none"),
        ("none", "kip966-none", None),
        ("balanced", "kip966-none", "kip966-balanced"),
        ("Proactive", "kip966-aggressive", None),
        ("none", "elr-4.3", KIP966.name),
        (None, "kip966-aggressive", None),
        ("something new", "kip966-aggressive", None),
    ],
)
def test_a_strategy_that_somebody_names_is_told_from_the_topics_own(
    strategy: str | None, named: str, expected: str | None
) -> None:
    """Else an explanation says that Kafka elects by itself within seconds, where it waits for an operator for ever."""
    snapshot = native(strategy=strategy)
    assert decide(snapshot, snapshot.partitions[0], rule_set(named)).cluster_rules == expected


def test_no_note_says_that_the_cluster_lacks_what_it_has() -> None:
    notes = " ".join(decide(native(), native().partitions[0]).notes)
    assert "no release has these rules" not in notes
    assert "keeps the last known leader there" not in notes


@pytest.mark.parametrize(
    ("wish", "method"),
    [
        (designated(2), Method.NATIVE),
        (asked(ElectionType.LONGEST_LOG_AGGRESSIVE), Method.LONGEST_LOG),
        (replace(asked(ElectionType.LONGEST_LOG_AGGRESSIVE), minimal_replicas=2), Method.NATIVE),
    ],
    ids=["designation", "aggressive", "with so many logs"],
)
def test_the_election_names_its_leader_or_is_left_to_the_controller(wish: ElectionRequest, method: Method) -> None:
    made = planned(native(), wish)
    assert isinstance(made, PlannedElection)
    assert (made.method, made.elect, made.order, made.restores) == (method, 2, (3, 1, 2), (3, 1, 2))


def test_an_unclean_election_is_left_to_the_controller() -> None:
    made = planned(native(), asked(ElectionType.UNCLEAN))
    assert isinstance(made, PlannedElection)
    assert made.method is Method.UNCLEAN


def test_a_replica_that_has_to_be_unregistered_does_not_leave_the_assignment() -> None:
    """No order is given, so none has to leave out what Kafka does not know."""
    made = planned(native(incident(fenced=())), designated(2))
    assert isinstance(made, PlannedElection)
    assert made.order == (3, 1, 2)
    assert not [warning for warning in made.warnings if "leaves the assignment" in warning]


def test_an_unknown_reassignment_forbids_nothing_where_no_order_changes() -> None:
    snapshot = native()
    (state,) = snapshot.partitions
    unsure = replace(snapshot, partitions=(replace(state, adding=None, removing=None),))
    assert isinstance(planned(unsure, designated(2)), PlannedElection)


@pytest.mark.parametrize("rules", ["kip966-none", "kip966-balanced", "kip966-aggressive"])
def test_the_kips_rules_may_be_named_for_such_a_cluster(rules: str) -> None:
    """Each topic's strategy may be another one than kelr can read."""
    made = planned(native(strategy=None), designated(2), rules)
    assert isinstance(made, PlannedElection)
    assert made.method is Method.NATIVE


def test_released_rules_may_not() -> None:
    made = planned(native(), designated(2), "elr-4.3")
    assert isinstance(made, NotPlanned)
    assert "the cluster runs kip966" in made.reason


def test_the_fences_look_at_the_designation() -> None:
    made = planned(native(), designated(2))
    assert isinstance(made, PlannedElection)
    same = native()
    assert differences(made, same, decide(same, same.partitions[0])) == ()
    gone = native(incident(live=(3,), fenced=(1, 2)))
    fields = {one.field for one in differences(made, gone, decide(gone, gone.partitions[0]))}
    assert {"live", "elects"} <= fields


def test_an_advised_election_comes_with_its_command() -> None:
    """Where no cluster has the request, there is none to give."""
    snapshot = native(all_heard(live=(1, 2, 3), fenced=()))
    advice = decide(snapshot, snapshot.partitions[0]).advice
    assert advice.action is AdviceAction.LONGEST_LOG_BALANCED
    assert advice.command == ("elect", "--election-type", "longest_log_balanced", "orders:0")
    released = replace(snapshot, cluster=replace(snapshot.cluster, features=Features(RELEASED, RELEASED)))
    assert decide(released, released.partitions[0], rule_set("kip966-none")).advice.command == (
        "describe",
        "orders:0",
        "--watch",
    )


def test_the_pattern_of_such_a_partition_is_decided_alike() -> None:
    snapshot = native()
    (state,) = snapshot.partitions
    found = pattern_of(snapshot, state)
    assert found.tell(found.pattern.decide()) == verdict_of(decide(snapshot, state))


def test_whose_return_has_the_manager_compare_logs_stays_down_until_the_designation_is_done() -> None:
    """Once 1 is back the whole quorum is live, and the manager elects by logs before anybody is designated (seed 30011
    of make hindsight by the rules kip966-balanced)."""
    for strategy, held in (("balanced", [1]), ("none", [])):
        snapshot = native(incident(leaderless((3, 1, 2), last_known=(1, 2))), strategy=strategy)
        found = planned(snapshot, designated(3))
        assert isinstance(found, PlannedElection)
        assert [one.broker for one in found.hold] == held
        assert all(one.reason is HoldReason.RECOVERY for one in found.hold)


def test_whoever_is_down_stays_down_where_the_elr_is_not_known() -> None:
    """1 may be in the ELR, and be elected by its return (seed 50026 by the rules kip966-balanced)."""
    snapshot = native(incident(leaderless((3, 1, 2), elr=None, last_known=None)))
    found = planned(snapshot, designated(3))
    assert isinstance(found, PlannedElection)
    assert [(one.broker, one.reason) for one in found.hold] == [(1, HoldReason.ISR_OR_ELR)]


def test_nobody_is_said_to_be_elected_uncleanly_where_a_live_replica_may_answer_the_manager() -> None:
    """2 and 3 are live, and answered the manager and not kelr (seed 30001 by the rules kip966-balanced)."""
    silence = [silent(broker) for broker in (3, 1, 2)]
    for live, said in (((2, 3), "Whom an unclean election elects is not known here"), ((), "elects no leader")):
        fenced = tuple({1, 2, 3} - {*live})
        found = planned(native(incident(live=live, fenced=fenced, logs=silence)), asked(ElectionType.UNCLEAN))
        assert isinstance(found, NotPlanned)
        assert said in found.reason
