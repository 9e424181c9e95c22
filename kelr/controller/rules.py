"""The election rule sets: what differs between Kafka's versions, the whole of KIP-966, and which set a cluster runs.

Four classes of behaviour with ELR were measured on the released jars (`docs/election-rules.md`), one without. The
kip966-* sets are what the KIP describes and no release has: a set of last known ELR members, and unclean recovery by
inspection of logs in place of an election that does not look at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kelr.model import METADATA_FEATURE, RECOVERY_FEATURE, Features


class RecoveryStrategy(StrEnum):
    """unclean.recovery.strategy of KIP-966: what the Unclean Recovery Manager does for a partition without leader."""

    NONE = "none"
    """Nothing: the partition waits for an ELR member, or for an operator."""
    BALANCED = "balanced"
    """Once ISR and ELR are empty and all last known ELR members are back and have told their logs: the best log."""
    AGGRESSIVE = "aggressive"
    """As soon as no live replica may lead cleanly: the best log of those that answer within a short time."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """How one class of Kafka versions elects leaders."""

    name: str
    title: str
    elr: bool
    """Whether the controller keeps ELR: eligible.leader.replicas.version is 1."""
    last_known_leader_must_be_live: bool = True
    """False before KAFKA-19522: the last known leader is elected although its broker is dead or fenced."""
    last_known_leader_set_once: bool = True
    """False before apache/kafka PR 20629: it is overwritten when the ISR empties again, also with "no leader"."""
    reassignment_needs_every_target: bool = False
    """True before KAFKA-19975: a reassignment completes only when every target replica is in the ISR."""
    directory_assignment_ignores_elr: bool = False
    """True before 4.3.0: where a replica tells its log directory (AssignReplicasToDirs), its partition is handled as if
    ELR were off, which empties the ELR."""
    recovery: RecoveryStrategy | None = None
    """The KIP's unclean.recovery.strategy; None on released Kafka, which elects uncleanly without looking at logs."""
    keeps_last_known_elr: bool = False
    """Whether LastKnownELR is the KIP's set although nothing recovers by it: the last leader is its first member."""
    strategy_by_topic: bool = False
    """Whether each topic's unclean.leader.election.enable stands for its strategy, in place of `recovery`."""

    @property
    def kip966(self) -> bool:
        """Whether the sets are the KIP's: LastKnownELR is one, and an ISR of min ISR members ends it and the ELR."""
        return self.recovers or self.keeps_last_known_elr

    @property
    def recovers(self) -> bool:
        """Whether this is the whole KIP, with unclean recovery in place of unclean election
        (unclean.recovery.manager.enabled)."""
        return self.recovery is not None

    def of_topic(self, unclean_leader_election: bool | None, strategy: str | None = None) -> RuleSet:
        """The rules of a topic with this unclean.leader.election.enable; where it is not known, as for false.

        Args:
            strategy: its unclean.recovery.strategy, which stands above that; None where it is not known.
        """
        if not self.strategy_by_topic:
            return self
        named = strategy_named(strategy)
        return self.with_strategy(named or kip966_strategy(bool(unclean_leader_election)))

    def with_strategy(self, strategy: RecoveryStrategy) -> RuleSet:
        """The rules of a topic whose configs name this strategy; the same rules where there is no such config."""
        rules = RULE_SETS[f"kip966-{strategy}"] if self.recovers else self
        return rules if rules.elr is self.elr else replace(rules, elr=self.elr)


KRAFT = RuleSet("kraft", "KRaft with ELR off", elr=False)
ELR_4_0 = RuleSet(
    "elr-4.0",
    "Kafka 4.0.0 and 4.0.1 with ELR on (has KAFKA-19522: elects a dead last known leader)",
    elr=True,
    last_known_leader_must_be_live=False,
    last_known_leader_set_once=False,
    reassignment_needs_every_target=True,
    directory_assignment_ignores_elr=True,
)
ELR_4_1_0 = RuleSet(
    "elr-4.1.0",
    "Kafka 4.1.0 with ELR on",
    elr=True,
    last_known_leader_set_once=False,
    reassignment_needs_every_target=True,
    directory_assignment_ignores_elr=True,
)
ELR_4_1 = RuleSet(
    "elr-4.1",
    "Kafka 4.1.1 to 4.2 with ELR on",
    elr=True,
    reassignment_needs_every_target=True,
    directory_assignment_ignores_elr=True,
)
ELR_4_3 = RuleSet("elr-4.3", "Kafka 4.3 and 4.4 with ELR on", elr=True)

KIP966_NONE = RuleSet(
    "kip966-none",
    "The whole of KIP-966, unclean.recovery.strategy none (no release has it)",
    elr=True,
    recovery=RecoveryStrategy.NONE,
)
KIP966_BALANCED = RuleSet(
    "kip966-balanced",
    "The whole of KIP-966, unclean.recovery.strategy balanced (no release has it)",
    elr=True,
    recovery=RecoveryStrategy.BALANCED,
)
KIP966_AGGRESSIVE = RuleSet(
    "kip966-aggressive",
    "The whole of KIP-966, unclean.recovery.strategy aggressive (no release has it)",
    elr=True,
    recovery=RecoveryStrategy.AGGRESSIVE,
)
KIP966 = RuleSet(
    "kip966",
    "The whole of KIP-966, the strategy by each topic's unclean.leader.election.enable (no release has it)",
    elr=True,
    recovery=RecoveryStrategy.BALANCED,
    strategy_by_topic=True,
)

KIP966_MANAGER_OFF = RuleSet(
    "kip966-manager-off",
    "KIP-966 with unclean.recovery.manager.enabled=false: LastKnownELR is kept, no logs are looked at (no release has"
    " it)",
    elr=True,
    keeps_last_known_elr=True,
)
"""KIP-966, "Delivery plan": what holds while the Unclean Recovery "has not shipped or it is disabled", with the last
leader "at the front of the LastKnownELR list" (004)."""

NEWEST = ELR_4_3
RULE_SETS: Mapping[str, RuleSet] = {
    rules.name: rules
    for rules in (
        KRAFT,
        ELR_4_0,
        ELR_4_1_0,
        ELR_4_1,
        ELR_4_3,
        KIP966,
        KIP966_NONE,
        KIP966_BALANCED,
        KIP966_AGGRESSIVE,
        KIP966_MANAGER_OFF,
    )
}
_ALIASES = {
    "elr": NEWEST.name,
    # The names of the KIP's older texts.
    "kip966-manual": KIP966_NONE.name,
    "kip966-proactive": KIP966_AGGRESSIVE.name,
}

# The highest metadata.version that each release's software supports (MetadataVersion.LATEST_PRODUCTION), oldest first.
_SOFTWARE_BY_METADATA_VERSION = ((25, ELR_4_0), (27, ELR_4_1), (29, ELR_4_1))
_KAFKA_4_1 = 27
_NEWEST_CHECKED = 33
"""4.4-IV2, of Kafka 4.4.0: the newest release with whose own classes and brokers these rules were compared."""
NEEDED_FOR_ELR = 23
"""metadata.version 4.0-IV1: below it eligible.leader.replicas.version cannot be raised
(EligibleLeaderReplicasVersion.ELRV_1)."""


@dataclass(frozen=True, slots=True)
class ChosenRules:
    """The rule set that a cluster was found to run, and what that rests on."""

    rules: RuleSet
    reason: str
    certain: bool
    """False where another rule set fits what is known as well."""


def rule_set(name: str) -> RuleSet:
    """The rule set of this name; ``elr`` is the newest.

    Raises:
        ValueError: listing the names there are.
    """
    key = name.strip().lower().replace("_", "-")
    try:
        return RULE_SETS[_ALIASES.get(key, key)]
    except KeyError:
        aliases = ", ".join(f"{alias} is {meant}" for alias, meant in _ALIASES.items())
        raise ValueError(f"there is no rule set {name!r}; there are {', '.join(RULE_SETS)} ({aliases})") from None


def kip966_strategy(unclean_leader_election: bool) -> RecoveryStrategy:
    """The KIP's strategy for a topic that still has only unclean.leader.election.enable, which the KIP deprecates.

    Source: KIP-966, "Compatibility, Deprecation, and Migration Plan": true is set to aggressive, false to balanced.
    """
    return RecoveryStrategy.AGGRESSIVE if unclean_leader_election else RecoveryStrategy.BALANCED


def strategy_named(text: str | None) -> RecoveryStrategy | None:
    """The unclean.recovery.strategy of this name, in letters of either case; None where the KIP has none such.

    Source: KIP-966, "Unclean recovery"; its older texts (the difference 003) call two of them Proactive and Manual.
    """
    name = "" if text is None else text.strip().lower()
    older = {"proactive": RecoveryStrategy.AGGRESSIVE, "manual": RecoveryStrategy.NONE}
    return older.get(name) or next((one for one in RecoveryStrategy if one == name), None)


def choose_rules(features: Features) -> ChosenRules:
    """Which rule set a cluster runs, from its finalized features and its software's newest metadata.version.

    Kafka does not tell its version, but the highest metadata.version that its software supports changes with each
    minor release. Patch releases share it: 4.1.0 cannot be told from 4.1.1. That is the software of the broker that
    answered; the controllers, which elect, may run an older one as long as metadata.version is not raised to it.

    A cluster whose brokers take ElectLeaders v3, or whose recovery manager is on by its feature flag, has the whole of
    KIP-966; one that knows that flag, and has it off, all but its unclean recovery.
    """
    if features.recovery_manager is False:
        reason = f"brokers know {RECOVERY_FEATURE}, and it is off"
        return _as_switched(KIP966_MANAGER_OFF, reason, features)
    if features.elects_natively or features.recovery_manager:
        flag, request = f"{RECOVERY_FEATURE} is on", f"brokers take ElectLeaders v{features.elect_leaders}"
        reason = f"{request if features.elects_natively else flag}, which is KIP-966's"
        return _as_switched(KIP966, reason, features)  # each topic's strategy by its configs
    newest, finalized = (features.supported or {}).get(METADATA_FEATURE), features.metadata_version
    chosen = _by_software(features)
    highest = max(newest or 0, finalized or 0)
    if highest > _NEWEST_CHECKED:
        unchecked = f"metadata.version {highest} is newer than Kafka 4.4.0, the newest that kelr was checked against"
        return ChosenRules(chosen.rules, f"{unchecked}; the rules of 4.4 are taken", certain=False)
    if newest is None or finalized is None or finalized >= newest or not chosen.rules.elr:
        return chosen
    older = _by_software(replace(features, supported={METADATA_FEATURE: finalized}))
    if older.certain and older.rules == chosen.rules:
        return chosen
    reason = f"{chosen.reason}, but it is {finalized}: controllers may still run older software ({older.rules.name})"
    return ChosenRules(chosen.rules, reason, certain=False)


def _as_switched(rules: RuleSet, reason: str, features: Features) -> ChosenRules:
    """Rules of the KIP with ELR on or off."""
    if features.elr_enabled is False:
        return ChosenRules(replace(rules, elr=False), f"{reason}; ELR is off", certain=True)
    return ChosenRules(rules, reason, certain=True)


def _by_software(features: Features) -> ChosenRules:
    """The rules if controllers and brokers run what the answering broker runs."""
    if features.elr_enabled is None:
        return ChosenRules(NEWEST, "feature levels are not known; the newest rules are assumed", certain=False)
    newest = (features.supported or {}).get(METADATA_FEATURE)
    if not features.elr_enabled:
        return ChosenRules(_kraft(newest), "eligible.leader.replicas.version is 0: ELR is off", certain=True)
    if newest is None:
        return ChosenRules(NEWEST, "ELR is on; the software's version is not known", certain=False)
    reason = f"ELR is on; the brokers' software supports metadata.version up to {newest}"
    for last, rules in _SOFTWARE_BY_METADATA_VERSION:
        if newest <= last == _KAFKA_4_1:
            unsure = f"{reason}: 4.1.0 cannot be told from 4.1.1 by that, and 4.1.0 keeps LastKnownELR otherwise"
            return ChosenRules(rules, unsure, certain=False)
        if newest <= last:
            return ChosenRules(rules, reason, certain=True)
    return ChosenRules(ELR_4_3, reason, certain=True)


def _kraft(newest_metadata_version: int | None) -> RuleSet:
    """ELR off, with the way in which that software completes reassignments (the one thing that differs then)."""
    older = newest_metadata_version is not None and newest_metadata_version <= _SOFTWARE_BY_METADATA_VERSION[-1][0]
    return replace(KRAFT, reassignment_needs_every_target=older)
