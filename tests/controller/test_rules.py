"""Which rule set a cluster runs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from kelr.controller import ELR_4_0, ELR_4_1, ELR_4_3, NEWEST, RULE_SETS, RuleSet, choose_rules, rule_set
from kelr.model import ELR_FEATURE, METADATA_FEATURE, RECOVERY_FEATURE, Features


def features(elr: int, newest: int | None) -> Features:
    supported = None if newest is None else {METADATA_FEATURE: newest}
    return Features(finalized={ELR_FEATURE: elr}, supported=supported)


@pytest.mark.parametrize(
    ("newest", "rules", "certain"),
    [
        (25, ELR_4_0, True),  # 4.0: metadata.version 4.0-IV3
        (27, ELR_4_1, False),  # 4.1: 4.1.0 is not told from 4.1.1
        (29, ELR_4_1, True),  # 4.2
        (30, ELR_4_3, True),
        (33, ELR_4_3, True),  # 4.4
        (34, ELR_4_3, False),
        (None, NEWEST, False),
    ],
)
def test_elr_rules_go_by_the_newest_metadata_version_of_the_software(
    newest: int | None, rules: RuleSet, certain: bool
) -> None:
    chosen = choose_rules(features(1, newest))
    assert (chosen.rules, chosen.certain) == (rules, certain)


@pytest.mark.parametrize(("newest", "every_target"), [(25, True), (29, True), (30, False), (None, False)])
def test_with_elr_off_only_the_end_of_a_reassignment_goes_by_the_software(
    newest: int | None, every_target: bool
) -> None:
    """KAFKA-19975 changed it for all, whether ELR is on or not."""
    chosen = choose_rules(features(0, newest))
    assert (chosen.rules.name, chosen.rules.elr, chosen.certain) == ("kraft", False, True)
    assert chosen.rules.reassignment_needs_every_target is every_target


@pytest.mark.parametrize(
    ("finalized", "newest", "rules", "older"),
    [
        (25, 30, ELR_4_3, "elr-4.0"),
        (29, 30, ELR_4_3, "elr-4.1"),
        (27, 29, ELR_4_1, "elr-4.1"),  # controllers may be of 4.1.0, which is not told from 4.1.1
        (25, 27, ELR_4_1, "elr-4.0"),
        (30, 30, ELR_4_3, None),
        (30, 31, ELR_4_3, None),
        (24, 25, ELR_4_0, None),
    ],
)
def test_while_metadata_version_is_not_raised_controllers_may_be_older(
    finalized: int, newest: int, rules: RuleSet, older: str | None
) -> None:
    """A broker tells of its own software; in a rolling upgrade the controllers may be yet to come."""
    chosen = choose_rules(Features({ELR_FEATURE: 1, METADATA_FEATURE: finalized}, {METADATA_FEATURE: newest}))
    assert (chosen.rules, chosen.certain) == (rules, older is None)
    says = f", but it is {finalized}: controllers may still run older software ({older})"
    assert chosen.reason.endswith(says) is (older is not None)


@pytest.mark.parametrize(
    "known",
    [
        Features({ELR_FEATURE: 1, METADATA_FEATURE: 33}, {METADATA_FEATURE: 34}),
        Features({ELR_FEATURE: 0, METADATA_FEATURE: 34}, {METADATA_FEATURE: 34}),
        Features({ELR_FEATURE: 1, METADATA_FEATURE: 34}),  # a metadata log tells what is finalized, and no more
        Features({METADATA_FEATURE: 34}),
    ],
)
def test_of_a_version_newer_than_any_that_was_checked_nothing_is_certain(known: Features) -> None:
    chosen = choose_rules(known)
    assert not chosen.certain
    assert chosen.reason == (
        "metadata.version 34 is newer than Kafka 4.4.0, the newest that kelr was checked against; the rules of 4.4 are"
        " taken"
    )


def test_unknown_features_mean_the_newest_rules_and_say_so() -> None:
    chosen = choose_rules(Features())
    assert (chosen.rules, chosen.certain) == (NEWEST, False)
    assert "not known" in chosen.reason


def test_rule_sets_by_name() -> None:
    assert {name: rule_set(name).name for name in RULE_SETS} == {name: name for name in RULE_SETS}
    assert rule_set(" ELR-4.0 ") is ELR_4_0
    assert rule_set("elr") is NEWEST
    assert rule_set("kip966_balanced") is rule_set("kip966-balanced")
    with pytest.raises(ValueError, match=r"no rule set 'zab'; there are kraft, elr-4\.0"):
        rule_set("zab")


def test_an_unknown_name_is_told_what_other_names_stand_for() -> None:
    meant = f"(elr is {NEWEST.name}, kip966-manual is kip966-none, kip966-proactive is kip966-aggressive)"
    with pytest.raises(ValueError, match=re.escape(meant) + "$"):
        rule_set("auto")


@pytest.mark.parametrize(("unclean", "strategy"), [(True, "aggressive"), (False, "balanced"), (None, "balanced")])
@pytest.mark.parametrize("elr", [True, False])
def test_kip966_maps_unclean_leader_election_enable_to_a_strategy(
    unclean: bool | None, strategy: str, elr: bool
) -> None:
    """KIP-966, compatibility; with ELR switched off the strategy still holds."""
    rules = replace(rule_set("kip966"), elr=elr).of_topic(unclean)
    assert (rules.recovery, rules.elr, rules.name) == (strategy, elr, f"kip966-{strategy}")


@pytest.mark.parametrize(
    ("finalized", "supported", "elect_leaders", "expected"),
    [
        ({}, {RECOVERY_FEATURE: 1}, 2, "kip966-manager-off"),
        ({RECOVERY_FEATURE: 1}, {RECOVERY_FEATURE: 1}, 3, "kip966"),
        ({RECOVERY_FEATURE: 1}, None, None, "kip966"),  # a metadata log tells what is finalized, and no more
        ({}, {}, 3, "kip966"),
        ({}, {}, 2, "elr-4.3"),
    ],
)
def test_the_feature_flag_tells_whether_the_recovery_manager_elects(
    finalized: dict[str, int], supported: dict[str, int] | None, elect_leaders: int | None, expected: str
) -> None:
    """KIP-966, "Compatibility": "guarded by the feature flag unclean.recovery.manager.enabled"."""
    levels = {ELR_FEATURE: 1, "metadata.version": 30}
    known = None if supported is None else {**levels, **supported}
    assert choose_rules(Features({**levels, **finalized}, known, elect_leaders)).rules.name == expected


def test_a_strategy_that_is_named_holds_for_every_topic() -> None:
    for name in ("kip966-none", "kip966-balanced", "kip966-aggressive", "elr-4.3"):
        assert rule_set(name).of_topic(unclean_leader_election=True).name == name


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (Features(), "feature levels are not known; the newest rules are assumed"),
        (features(0, 30), "eligible.leader.replicas.version is 0: ELR is off"),
        (features(1, None), "ELR is on; the software's version is not known"),
        (features(1, 30), "ELR is on; the brokers' software supports metadata.version up to 30"),
        (
            Features({ELR_FEATURE: 1, METADATA_FEATURE: 27}, {METADATA_FEATURE: 27}),
            "ELR is on; the brokers' software supports metadata.version up to 27: 4.1.0 cannot be told from 4.1.1 by"
            " that, and 4.1.0 keeps LastKnownELR otherwise",
        ),
    ],
)
def test_the_choice_says_what_it_rests_on(known: Features, reason: str) -> None:
    assert choose_rules(known).reason == reason
