"""Who is elected: the order in which the rules are asked, and whom each of them names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import ELR_4_0, ELR_4_3, KIP966_BALANCED, KRAFT, Election, ElectionInput, RuleSet, elect, walk

NOBODY = ElectionInput(
    replicas=(1, 2, 3),
    isr=(),
    elr=(),
    leader=None,
    last_known=(),
    electable=frozenset({1, 2, 3}),
    election=Election.ONLINE,
    rules=ELR_4_3,
)
"""Nobody may lead cleanly, and everybody is live."""


def named(ballot: ElectionInput) -> tuple[int | None, str | None]:
    elected = elect(ballot)
    return elected.leader, None if elected.rule is None else elected.rule.id


@pytest.mark.parametrize(
    ("ballot", "expected"),
    [
        (replace(NOBODY, isr=(3, 2)), (2, "live-isr-member")),
        (replace(NOBODY, isr=(3, 2), leader=3), (3, "leader-stays")),
        (replace(NOBODY, isr=(3, 2), leader=1), (2, "live-isr-member")),
        (replace(NOBODY, isr=(3,), leader=3, electable=frozenset({1})), (None, None)),
        (replace(NOBODY, elr=(3, 2)), (2, "live-elr-member")),
        (replace(NOBODY, elr=(3,), leader=3), (3, "leader-stays")),
        (replace(NOBODY, isr=(1,), elr=(2,), electable=frozenset({2})), (None, None)),
        (replace(NOBODY, last_known=(3,)), (3, "last-known-leader")),
        (replace(NOBODY, last_known=(2, 3)), (None, None)),
        (replace(NOBODY, last_known=(3,), electable=frozenset({1, 2})), (None, None)),
        (replace(NOBODY, last_known=(3,), electable=frozenset({1, 2}), rules=ELR_4_0), (3, "last-known-leader")),
        (replace(NOBODY, last_known=(-1,), rules=ELR_4_0), (None, "last-known-leader")),
        (replace(NOBODY, last_known=(3,), isr=(1,), electable=frozenset({3})), (None, None)),
        (replace(NOBODY, last_known=(3,), elr=(1,), electable=frozenset({3})), (None, None)),
        (replace(NOBODY, last_known=(3,), rules=KRAFT), (None, None)),
        (NOBODY, (None, None)),
    ],
)
def test_an_online_election(ballot: ElectionInput, expected: tuple[int | None, str | None]) -> None:
    assert named(ballot) == expected


@pytest.mark.parametrize(
    ("ballot", "expected"),
    [
        (replace(NOBODY, isr=(3,)), (3, "live-isr-member")),
        (replace(NOBODY, elr=(3,)), (3, "live-elr-member")),
        (replace(NOBODY, last_known=(3,)), (3, "last-known-leader")),
        (replace(NOBODY, elr=(3,), electable=frozenset({2})), (2, "unclean-election")),
        (replace(NOBODY, last_known=(1,), electable=frozenset({2, 3})), (2, "unclean-election")),
        (replace(NOBODY, rules=KRAFT), (1, "unclean-election")),
        (replace(NOBODY, electable=frozenset()), (None, None)),
    ],
)
def test_an_unclean_election(ballot: ElectionInput, expected: tuple[int | None, str | None]) -> None:
    assert named(replace(ballot, election=Election.UNCLEAN)) == expected


@pytest.mark.parametrize(
    ("ballot", "expected"),
    [
        (replace(NOBODY, isr=(1, 2), leader=2), (1, "preferred-replica")),
        (replace(NOBODY, elr=(1, 2)), (1, "preferred-replica")),
        (replace(NOBODY, isr=(2, 3), leader=3), (3, "leader-stays")),
        (replace(NOBODY, isr=(2, 3)), (2, "live-isr-member")),
        (replace(NOBODY, isr=(1, 3), electable=frozenset({3})), (3, "live-isr-member")),
        (replace(NOBODY, last_known=(1,)), (1, "last-known-leader")),
        (NOBODY, (None, None)),
        (replace(NOBODY, replicas=()), (None, None)),
    ],
)
def test_a_preferred_election(ballot: ElectionInput, expected: tuple[int | None, str | None]) -> None:
    assert named(replace(ballot, election=Election.PREFERRED)) == expected


@pytest.mark.parametrize("election", [Election.ONLINE, Election.UNCLEAN])
def test_the_whole_kip_elects_by_logs_in_place_of_leader_and_order(election: Election) -> None:
    ballot = replace(NOBODY, rules=KIP966_BALANCED, election=election, last_known=(1,))
    assert named(ballot) == (None, None)
    assert named(replace(ballot, recovered=3)) == (3, "unclean-recovery")
    assert named(replace(ballot, recovered=3, electable=frozenset({1}))) == (None, None)
    assert named(replace(ballot, recovered=3, elr=(2,))) == (2, "live-elr-member")


@pytest.mark.parametrize("rules", [KRAFT, ELR_4_3])
def test_released_kafka_elects_by_no_log(rules: RuleSet) -> None:
    assert named(replace(NOBODY, recovered=3, rules=rules)) == (None, None)


def test_a_preferred_election_recovers_nobody() -> None:
    ballot = replace(NOBODY, rules=KIP966_BALANCED, election=Election.PREFERRED, recovered=3)
    assert named(ballot) == (None, None)


@pytest.mark.parametrize("election", Election)
def test_every_rule_that_was_asked_is_told_up_to_the_one_that_decides(election: Election) -> None:
    ballot = replace(NOBODY, last_known=(3,), election=election)
    asked = [(rule.id, choice) for rule, choice in walk(ballot)]
    assert asked[-1] == ("last-known-leader", 3)
    assert all(choice is None for _, choice in asked[:-1])
    assert [rule for rule, _ in asked[-4:-1]] == ["leader-stays", "live-isr-member", "live-elr-member"]
