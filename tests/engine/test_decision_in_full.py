"""What a decision carries besides who is elected: the state it is about, its notes, and what requests are answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import ELR_4_0, ELR_4_3, KIP966_BALANCED, KRAFT, RuleSet
from kelr.engine import decide, is_leaderless_or_unsafe
from kelr.model import (
    Cluster,
    Decision,
    ElectedBy,
    ElectionType,
    Outcome,
    PartitionState,
    ReplicaLog,
    Situation,
    TopicConfig,
)
from tests.engine.cases import cluster_of, decision, leaderless, log_of, snapshot_of

LED = PartitionState(
    "orders", 0, 2, 7, (1, 2, 3), (2, 3), elr=(), last_known_elr=(), offline_replicas=(), adding=(), removing=()
)


def outcome(found: Decision, kind: ElectionType) -> Outcome:
    return next(one for one in found.elections if one.election is kind)


def test_a_decision_tells_the_state_that_it_is_about() -> None:
    state = leaderless(isr=(), elr=(2, 3), last_known=(1,))
    found = decision(state, cluster_of(live=(), fenced=(1, 2, 3)), unclean=False)
    assert (found.topic, found.partition, found.leader, found.leader_epoch) == ("orders", 0, None, 5)
    assert (found.replicas, found.isr, found.elr, found.last_known_elr) == ((1, 2, 3), (), (2, 3), (1,))
    assert (found.min_isr, found.unclean_leader_election) == (2, False)
    led = decision(LED, cluster_of(live=(1, 2, 3)), unclean=True)
    assert (led.leader, led.leader_epoch, led.isr, led.unclean_leader_election) == (2, 7, (2, 3), True)


def test_the_one_that_is_elected_by_itself_is_eligible_and_no_other() -> None:
    found = decision(leaderless(isr=(3,)), cluster_of(live=(1, 3), fenced=(2,)))
    assert found.elected == 3
    assert [candidate.replica for candidate in found.candidates if candidate.eligible] == [3]


def test_all_but_healthy_partitions_are_to_be_looked_at() -> None:
    assert [one for one in Situation if not is_leaderless_or_unsafe(one)] == [Situation.HEALTHY]


# Notes


def test_nothing_weakens_a_decision_about_which_all_is_known() -> None:
    logs = [log_of(replica, (0, 50)) for replica in (1, 2, 3)]
    assert decision(leaderless(), cluster_of(live=(1, 2, 3)), logs).notes == ()


@pytest.mark.parametrize("rules", [ELR_4_3, KRAFT])
def test_an_unknown_elr_is_noted_where_it_counts(rules: RuleSet) -> None:
    notes = decision(leaderless(elr=None, last_known=None), cluster_of(live=(1,), fenced=(2, 3)), rules=rules).notes
    assert any("ELR and LastKnownELR are not known" in note for note in notes) is (rules is ELR_4_3)


@pytest.mark.parametrize(
    ("adding", "removing", "note"),
    [
        ((), (), None),
        ((3,), (), "it adds broker 3, and may complete"),
        ((), (1,), "it removes broker 1, and may complete"),
        ((3,), (1,), "it adds broker 3 and removes broker 1, and may complete"),
        (None, None, "is not known (NOT_ALLOWED)"),
        ((3,), None, "is not known (NOT_ALLOWED)"),
    ],
)
def test_a_reassignment_is_noted(
    adding: tuple[int, ...] | None, removing: tuple[int, ...] | None, note: str | None
) -> None:
    cluster = replace(cluster_of(live=(1, 2, 3)), reassignments_error="NOT_ALLOWED")
    notes = decision(replace(LED, adding=adding, removing=removing), cluster).notes
    assert [note in text for text in notes if note and "reassignment" in text] == ([True] if note else [])


def _noted(config: TopicConfig, cluster: Cluster) -> tuple[str, ...]:
    snapshot = replace(snapshot_of(LED, cluster), configs={"orders": config})
    return decide(snapshot, LED, ELR_4_3).notes


def test_configs_that_are_not_known_are_noted_once_with_the_reason() -> None:
    cluster = cluster_of(live=(1, 2, 3))
    assert _noted(TopicConfig(2, unclean_leader_election=False), cluster) == ()
    assert _noted(TopicConfig(error="NO_RIGHT"), cluster) == (
        "configs of topic orders could not be read (NO_RIGHT): unclean.leader.election.enable is taken as false",
    )
    for half in (TopicConfig(2), TopicConfig(unclean_leader_election=False)):
        (note,) = _noted(half, cluster)
        assert note.startswith("configs of topic orders are not known")


def test_a_longest_log_that_is_not_the_newest_is_noted() -> None:
    newest, longest = log_of(1, (0, 10), (1, 20)), log_of(2, (0, 30))
    cluster = cluster_of(live=(1, 2), fenced=(3,))
    assert any(
        "2 has the longest log" in note and "1 the newest" in note
        for note in decision(leaderless(elr=(3,)), cluster, [newest, longest]).notes
    )
    as_long = decision(leaderless(elr=(3,)), cluster, [newest, log_of(2, (0, 20))])
    assert not any("longest log" in note for note in as_long.notes)


def test_a_source_that_lists_no_fenced_brokers_is_noted_where_one_is_away() -> None:
    cluster = replace(cluster_of(live=(1, 2)), brokers_source="Metadata v12")
    words = "lists no fenced brokers"
    assert any(words in note for note in decision(LED, cluster).notes)
    assert not any(words in note for note in decision(LED, cluster, rules=KRAFT).notes)
    whole = replace(cluster_of(live=(1, 2, 3)), brokers_source="Metadata v12")
    assert not any(words in note for note in decision(LED, whole).notes)


def test_rules_that_are_guessed_are_noted_and_named_ones_are_not() -> None:
    cluster = cluster_of(live=(1, 2, 3), elr=None)
    assert any(note.startswith("rules elr-4.3: ") for note in decision(LED, cluster, rules=None).notes)
    assert not any(note.startswith("rules ") for note in decision(LED, cluster, rules=ELR_4_3).notes)


# Summaries


@pytest.mark.parametrize(
    ("isr", "elr", "words"),
    [((2,), (), "waits for broker 2"), ((), (2, 3), "waits for broker 2 or 3")],
)
def test_a_summary_names_whom_the_partition_waits_for(isr: tuple[int, ...], elr: tuple[int, ...], words: str) -> None:
    assert words in decision(leaderless(isr=isr, elr=elr), cluster_of(live=(1,), fenced=(2, 3))).summary


def test_a_summary_says_whether_min_isr_is_met() -> None:
    cluster = cluster_of(live=(1, 2, 3))
    assert decision(LED, cluster).summary.endswith("min ISR is met; 1 is not in sync.")
    assert decision(LED, cluster, min_isr=None).summary.endswith(
        "whether min ISR is met is not known; 1 is not in sync."
    )


# What requests are answered


def test_an_election_that_is_not_needed_names_the_leader() -> None:
    found = decision(LED, cluster_of(live=(1, 2, 3)))
    for kind in ElectionType:
        if kind is not ElectionType.PREFERRED:
            assert outcome(found, kind).note == "not needed: broker 2 leads"
            assert (outcome(found, kind).elected, outcome(found, kind).elected_by) == (2, ElectedBy.LEADER_STAYS)


def test_an_election_that_is_asked_for_says_so_in_its_steps() -> None:
    found = decision(leaderless(), cluster_of(live=(1, 2), fenced=(3,)))
    unclean = outcome(found, ElectionType.UNCLEAN)
    assert [step.rule for step in unclean.steps if step.holds] == ["unclean-election"]
    assert unclean.steps[-1].evidence.startswith("asked for")
    preferred = outcome(found, ElectionType.PREFERRED)
    assert (preferred.elected, preferred.elected_by) == (None, None)
    assert preferred.note == "Kafka refuses: PREFERRED_LEADER_NOT_AVAILABLE"
    assert [step.rule for step in preferred.steps] == [
        "preferred-replica",
        "leader-stays",
        "live-isr-member",
        "live-elr-member",
        "last-known-leader",
    ]


@pytest.mark.parametrize(
    ("isr", "note"), [((1, 2), ""), ((2,), "the preferred replica, 1, cannot lead now")], ids=["itself", "another"]
)
def test_a_preferred_election_that_gives_another_leader_says_so(isr: tuple[int, ...], note: str) -> None:
    found = decision(leaderless(isr=isr), cluster_of(live=(1, 2, 3)))
    assert outcome(found, ElectionType.PREFERRED).note == note
    assert outcome(found, ElectionType.UNCLEAN).note == ""


def test_a_designation_asks_first_whether_its_replica_is_live() -> None:
    found = decision(leaderless(), cluster_of(live=(1, 2), fenced=(3,)), [log_of(1, (0, 5)), log_of(2, (0, 5))])
    designations = [one for one in found.elections if one.election is ElectionType.DESIGNATION]
    assert [one.designate for one in designations] == [1, 2]
    for one in designations:
        first = one.steps[0]
        assert (first.rule, first.holds, first.evidence) == (
            "designated-is-live",
            True,
            f"broker {one.designate} is live",
        )
        assert [step.rule for step in one.steps[1:] if step.holds] == ["unclean-election"]


def test_nobody_can_be_designated_where_no_replica_is_live() -> None:
    found = decision(leaderless(), cluster_of(live=(), fenced=(1, 2, 3)))
    (one,) = [each for each in found.elections if each.election is ElectionType.DESIGNATION]
    assert (one.elected, one.designate, one.note) == (None, None, "no replica is live")
    (step,) = one.steps
    assert (step.rule, step.holds) == ("designated-is-live", False)
    assert "replicas are [1, 2, 3]" in step.evidence


def test_released_rules_wait_for_no_logs() -> None:
    state = leaderless(last_known=(2, 3))
    assert decision(state, cluster_of(live=(1, 2, 3)), rules=ELR_4_3).waits_for == ()
    assert decision(state, cluster_of(live=(1, 2, 3)), rules=KIP966_BALANCED).waits_for != ()


# The longest logs: each case with the whole of what both kinds say

ALL_COUNT = "Kafka names {} of the recovery quorum's members, so all replicas [1, 2, 3] count; {}"
BEST = ("best-log", True, "2: last epoch 0, log end 9")
BLIND = "the logs cannot be ranked: their leader epochs are not known"


def _log(replica: int, end: int) -> ReplicaLog:
    return log_of(replica, (0, end))


def _without_epochs(replica: int) -> ReplicaLog:
    return ReplicaLog(replica, 5, None, None, source="test")


@pytest.mark.parametrize(
    ("elr", "logs", "balanced", "aggressive"),
    [
        (
            (3,),
            (_log(1, 5), _log(2, 9)),
            (
                (None, (3,), "needs log of 3"),
                [("recovery-quorum-heard", False, ALL_COUNT.format(1, "the log of broker 3 was not read"))],
            ),
            ((2, (), ""), [("any-replica-heard", True, "live, and log read: [1, 2]"), BEST]),
        ),
        (
            (2, 3),
            (_log(1, 5), _log(2, 9)),
            (
                (None, (3,), "needs log of 3"),
                [("recovery-quorum-heard", False, "recovery quorum [2, 3]; the log of broker 3 was not read")],
            ),
            ((2, (), ""), [("any-replica-heard", True, "live, and log read: [1, 2]"), BEST]),
        ),
        (
            (),
            (_log(1, 5), _log(2, 9), _log(3, 2)),
            ((2, (), ""), [("recovery-quorum-heard", True, ALL_COUNT.format(0, "all logs read")), BEST]),
            ((2, (), ""), [("any-replica-heard", True, "live, and log read: [1, 2]"), BEST]),
        ),
        (
            (),
            (_log(1, 5), _log(2, 9), _log(3, 11)),
            (
                (None, (3,), "needs broker 3 live"),
                [
                    ("recovery-quorum-heard", True, ALL_COUNT.format(0, "all logs read")),
                    ("best-log-is-live", False, "3 has the best log and is fenced"),
                ],
            ),
            ((2, (), ""), [("any-replica-heard", True, "live, and log read: [1, 2]"), BEST]),
        ),
        (
            (),
            (_without_epochs(1), _without_epochs(2)),
            (
                (None, (1, 2, 3), "needs logs of 1, 2 and 3"),
                [("recovery-quorum-heard", False, ALL_COUNT.format(0, "the logs of brokers 1, 2 and 3 were not read"))],
            ),
            (
                (None, (), BLIND),
                [("any-replica-heard", True, "live, and log read: [1, 2]"), ("logs-can-be-ranked", False, BLIND)],
            ),
        ),
        (
            (),
            (),
            (
                (None, (1, 2, 3), "needs logs of 1, 2 and 3"),
                [("recovery-quorum-heard", False, ALL_COUNT.format(0, "the logs of brokers 1, 2 and 3 were not read"))],
            ),
            (
                (None, (), "no live log was read"),
                [("any-replica-heard", False, "no live log was read")],
            ),
        ),
    ],
    ids=["missing", "named-quorum", "heard", "best-is-away", "no-epochs", "nothing-heard"],
)
def test_the_longest_log_is_told_in_full(
    elr: tuple[int, ...],
    logs: tuple[ReplicaLog, ...],
    balanced: tuple[object, list[tuple[str, bool, str]]],
    aggressive: tuple[object, list[tuple[str, bool, str]]],
) -> None:
    found = decision(leaderless(elr=elr), cluster_of(live=(1, 2), fenced=(3,)), logs)
    for kind, expected in (
        (ElectionType.LONGEST_LOG_BALANCED, balanced),
        (ElectionType.LONGEST_LOG_AGGRESSIVE, aggressive),
    ):
        told = outcome(found, kind)
        steps = [(step.rule, step.holds, step.evidence) for step in told.steps]
        assert ((told.elected, told.waits_for, told.note), steps) == expected
        assert told.elected_by is (None if told.elected is None else ElectedBy.LONGEST_LOG)


def test_an_empty_log_has_no_epoch() -> None:
    found = decision(leaderless(elr=(3,)), cluster_of(live=(1, 2), fenced=(3,)), [log_of(1), log_of(2)])
    assert outcome(found, ElectionType.LONGEST_LOG_AGGRESSIVE).steps[-1].evidence == "1: no epoch, log end 0"


def test_a_designation_is_asked_for_and_leaves_out_whom_no_order_may_name() -> None:
    """Broker 3 is not registered: an order that names it is refused, so it is removed while 2 is put first."""
    found = decision(leaderless(), cluster_of(live=(1, 2)), [log_of(1, (0, 5)), log_of(2, (0, 9))])
    first, second = (one for one in found.elections if one.election is ElectionType.DESIGNATION)
    assert (first.elected, second.elected) == (1, 2)
    assert first.steps[-1].evidence.startswith("asked for: broker 1 is the first live replica of [1, 2, 3]")
    assert second.steps[-1].evidence.startswith("asked for: broker 2 is the first live replica of [2, 1, 3]")


def test_a_designation_that_kafka_does_not_follow_says_whom_it_elects() -> None:
    found = decision(leaderless(isr=(1,)), cluster_of(live=(1, 2), fenced=(3,)))
    designations = {one.designate: one for one in found.elections if one.election is ElectionType.DESIGNATION}
    assert (designations[2].elected, designations[2].elected_by) == (1, ElectedBy.ISR)
    assert designations[2].note == "Kafka would elect 1 instead"


def test_where_kafka_4_0_recorded_no_leader_every_election_is_told_as_nobodys() -> None:
    found = decision(leaderless(last_known=(-1,)), cluster_of(live=(1, 2, 3)), rules=ELR_4_0)
    assert (found.elected, found.elected_by) == (None, None)
    for one in found.elections:
        assert (one.elected, one.elected_by) == (None, None)
    designations = [one for one in found.elections if one.election is ElectionType.DESIGNATION]
    assert {one.note for one in designations} == {"Kafka would elect no leader"}
