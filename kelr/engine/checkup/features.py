"""The checks of features and software: ELR, metadata.version, and brokers that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kelr.controller import NEEDED_FOR_ELR, choose_rules
from kelr.engine.checkup import catalogue as of
from kelr.engine.checkup import fixes
from kelr.engine.checkup.incidents import EMPTIES_ELR, OTHER_RULES
from kelr.engine.checkup.metadata_versions import NEWEST_4_0, release_of, version_name
from kelr.engine.words import brokers as broker_words
from kelr.engine.words import joined, plural
from kelr.model import ELR_FEATURE, METADATA_FEATURE, ConfigSource
from kelr.model.checkup import Announced, BrokerFacts, CheckupFacts, Command, Finding, NotChecked, NotRead, Severity
from kelr.model.numbers import MAX_INT32, whole_number

_MIN_ISR = "min.insync.replicas"
KRAFT_VERSION = "kraft.version"
KNOWN_FEATURES = frozenset(
    {
        METADATA_FEATURE,
        ELR_FEATURE,
        KRAFT_VERSION,
        "group.version",
        "transaction.version",
        "share.version",
        "streams.version",
    }
)
"""Features of released Kafka (org.apache.kafka.server.common.Feature of 4.3.1)."""


def feature_checks(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    """ELR, feature levels, and whether all brokers run the same."""
    features = facts.cluster.features
    if features.finalized is None:
        yield of.ELR_UNKNOWN.finding(
            "the brokers tell no feature levels", caution="brokers before Kafka 2.7 and some proxies leave them out"
        )
        for check in (of.ELR_BUG, of.ELR_OFF, of.FEATURES_BEHIND):
            yield check.not_checked("feature levels are not known")
    elif features.elr_enabled:
        yield from _elr_on(facts)
        yield from _behind(facts)
    else:
        yield from _elr_off(facts)
        yield from _behind(facts)
    yield from _differing(facts)


def _elr_on(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    chosen = choose_rules(facts.cluster.features)
    if not chosen.rules.last_known_leader_must_be_live:
        yield of.ELR_BUG.finding(
            "ELR is on, and the software is Kafka 4.0",
            commands=[fixes.lower_feature(ELR_FEATURE, 0)],
            caution="upgrade to Kafka 4.1.1 or newer, and switch ELR on again there; until then it is safer off",
            harm=OTHER_RULES,
        )
    elif (facts.cluster.features.supported or {}).get(METADATA_FEATURE) is None:
        yield of.ELR_BUG.not_checked("the software's version is not known")


def _elr_off(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    features = facts.cluster.features
    supported, level = supported_by_all(facts), features.metadata_version
    if supported is None:
        yield of.ELR_OFF.not_checked("what the brokers' software supports is not known")
        return
    if supported.get(ELR_FEATURE, 0) < 1:
        # Nothing that anybody could switch on; the upgrade that it takes is not for doctor to press.
        return
    newest = supported.get(METADATA_FEATURE)
    if newest is not None and newest <= NEWEST_4_0:
        yield of.ELR_OFF.finding(
            "ELR is off, and the software is Kafka 4.0, where it elects dead leaders (KAFKA-19522)",
            severity=Severity.NOTE,
            caution="leave it off until all nodes run Kafka 4.1.1 or newer",
        )
        return
    commands: list[Command] = list(_pinned_min_isr(facts))
    wanted = {ELR_FEATURE: 1}
    if level is not None and level < NEEDED_FOR_ELR:
        wanted[METADATA_FEATURE] = NEEDED_FOR_ELR
    commands.append(fixes.raise_features(wanted))
    who = "all brokers have it" if _asked_all(facts) else "the brokers that told have it"
    yield of.ELR_OFF.finding(
        f"ELR is off (eligible.leader.replicas.version 0), and {who}",
        commands=commands,
        caution=_PINS,
        harm=OTHER_RULES,
    )


_PINS = (
    "switching it on writes min.insync.replicas as the cluster's default where none is set, with the value of the"
    " active controller's own file (Kafka's default of 1 where that has none), and takes those of single brokers away"
)


def _pinned_min_isr(facts: CheckupFacts) -> Iterator[str]:
    """The default that holds now, where nothing but the nodes' files says it: the controller's file may say less."""
    if isinstance(facts.brokers, NotRead) or isinstance(facts.defaults, NotRead) or _MIN_ISR in facts.defaults:
        return
    values = {
        one.configs[_MIN_ISR].value
        for one in facts.brokers
        if not isinstance(one.configs, NotRead) and _MIN_ISR in one.configs
    }
    if len(values) == 1:
        (value,) = values
        if value is not None and whole_number(value, MAX_INT32) is not None:
            yield fixes.default_config(_MIN_ISR, value)


def announcements(facts: CheckupFacts) -> Mapping[int, Announced]:
    """What each broker announced, of those that did."""
    if isinstance(facts.brokers, NotRead):
        return {}
    return {one.broker: one.announced for one in facts.brokers if isinstance(one.announced, Announced)}


def supported_by_all(facts: CheckupFacts) -> Mapping[str, int] | None:
    """The highest level of each feature that the software of all brokers knows that could be asked; None where nobody
    tells."""
    told = [one.supported for one in announcements(facts).values() if one.supported is not None]
    if not told:
        return facts.cluster.features.supported
    names = set.intersection(*(set(one) for one in told))
    return {name: min(one[name] for one in told) for name in sorted(names)}


def _behind(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    supported, finalized = supported_by_all(facts), facts.cluster.features.finalized or {}
    if not supported:
        yield of.FEATURES_BEHIND.not_checked("what the brokers' software supports is not known")
        return
    # ELR has a check of its own; kraft.version cannot be lowered again, and what kelr does not know of is not advised.
    behind = {
        name: level
        for name, level in supported.items()
        if name in KNOWN_FEATURES - {ELR_FEATURE, KRAFT_VERSION} and finalized.get(name, 0) < level
    }
    if behind:
        shown = joined(
            f"{name} is {_level(name, finalized.get(name, 0))} of {_level(name, behind[name])}" for name in behind
        )
        caution = "after that no broker can go back to older software"
        if not _asked_all(facts):
            caution += "; not every broker could be asked what its software supports"
        yield of.FEATURES_BEHIND.finding(
            shown, commands=[fixes.raise_features(behind)], caution=caution, harm=OTHER_RULES
        )


def _level(name: str, level: int) -> str:
    return version_name(level) if name == METADATA_FEATURE and level else str(level)


def _asked_all(facts: CheckupFacts) -> bool:
    return not isinstance(facts.brokers, NotRead) and len(announcements(facts)) == len(facts.cluster.brokers)


def _differing(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    if isinstance(facts.brokers, NotRead):
        yield of.VERSIONS_DIFFER.not_checked(facts.brokers.why)
        return
    told = announcements(facts)
    groups: dict[tuple[object, ...], list[int]] = {}
    for broker, announced in told.items():
        groups.setdefault(_software(announced), []).append(broker)
    if len(groups) > 1:
        parts = [f"{broker_words(ids)} {_release(told[ids[0]])}" for ids in groups.values()]
        yield of.VERSIONS_DIFFER.finding(
            f"not all brokers announce the same: {'; '.join(parts)}",
            brokers=sorted(told),
            caution="finish the upgrade before feature levels are raised",
        )
    silent = [one for one in facts.brokers if isinstance(one.announced, NotRead)]
    if silent:
        yield of.VERSIONS_DIFFER.not_checked(silent_words(silent, [_why(one.announced) for one in silent]))


def _why(fact: object) -> str:
    return fact.why if isinstance(fact, NotRead) else ""


def silent_words(silent: Sequence[BrokerFacts], whys: Sequence[str]) -> str:
    """``brokers 2 and 3: connection refused``: whom nobody could ask, and why."""
    by_reason: dict[str, list[int]] = {}
    for one, why in zip(silent, whys, strict=True):
        by_reason.setdefault(why, []).append(one.broker)
    return "; ".join(f"{broker_words(brokers)}: {why}" for why, brokers in by_reason.items())


def _software(announced: Announced) -> tuple[object, ...]:
    """What tells one software from another: the features that it knows, and its requests."""
    return tuple(sorted((announced.supported or {}).items())), tuple(sorted(announced.requests.items()))


def _release(announced: Announced) -> str:
    newest = (announced.supported or {}).get(METADATA_FEATURE)
    release = release_of(newest)
    return f"({'Kafka ' + release if release else 'unknown software'}, {plural(len(announced.requests), 'request')})"


def static_min_isr_checks(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    """min.insync.replicas in brokers' files and for single brokers."""
    elr = facts.cluster.features.elr_enabled
    if isinstance(facts.brokers, NotRead):
        for check in (of.STATIC_MIN_ISR, of.MIN_ISR_UNEVEN):
            yield check.not_checked(facts.brokers.why)
        return
    configs = {one.broker: one.configs for one in facts.brokers if not isinstance(one.configs, NotRead)}
    silent = [one for one in facts.brokers if isinstance(one.configs, NotRead)]
    check = of.STATIC_MIN_ISR if elr else of.MIN_ISR_UNEVEN
    if silent:
        yield check.not_checked(silent_words(silent, [_why(one.configs) for one in silent]))
    if elr is None:
        yield of.STATIC_MIN_ISR.not_checked("feature levels are not known")
    told = {broker: known[_MIN_ISR] for broker, known in configs.items() if _MIN_ISR in known}
    if elr:
        ignored = {
            broker: one
            for broker, one in told.items()
            if one.static is not None and one.source is ConfigSource.CLUSTER_DEFAULT and one.static != one.value
        }
        if ignored:
            yield _ignored({broker: (one.static or "", one.value or "") for broker, one in ignored.items()})
        return
    values: dict[str, list[int]] = {}
    for broker, one in told.items():
        values.setdefault(one.value or "unknown", []).append(broker)
    if len(values) > 1:
        shown = "; ".join(f"{value} on {broker_words(ids)}" for value, ids in sorted(values.items()))
        highest = max((value for value in values if whole_number(value, MAX_INT32) is not None), key=int, default=None)
        commands: list[Command] = [
            fixes.broker_configs_gone(broker, _MIN_ISR)
            for broker, one in sorted(told.items())
            if one.source is ConfigSource.BROKER
        ]
        if highest is not None:
            commands.insert(0, fixes.default_config(_MIN_ISR, highest))
        yield of.MIN_ISR_UNEVEN.finding(
            f"min.insync.replicas is {shown}",
            brokers=sorted(told),
            commands=commands,
            caution="the cluster's default goes before the brokers' files; kelr takes the highest value as meant",
            harm=None if elr is False else EMPTIES_ELR,
        )


def _ignored(ignored: Mapping[int, tuple[str, str]]) -> Finding:
    by_value: dict[tuple[str, str], list[int]] = {}
    for broker, pair in ignored.items():
        by_value.setdefault(pair, []).append(broker)
    parts = [f"{static} in the file of {broker_words(ids)}" for (static, _), ids in sorted(by_value.items())]
    holds = joined(dict.fromkeys(value for _, value in by_value))
    meant = {static for static, _ in by_value}
    commands = [fixes.default_config(_MIN_ISR, next(iter(meant)))] if len(meant) == 1 else []
    return of.STATIC_MIN_ISR.finding(
        f"min.insync.replicas is {'; '.join(parts)}, and {holds} holds for the cluster",
        brokers=sorted(ignored),
        commands=commands,
        caution="where the cluster's value is the one that is meant, take the line out of the files instead; with ELR"
        " on the write empties ELR and LastKnownElr of all partitions of all topics: do it while all are led and in"
        " sync",
        harm=EMPTIES_ELR,
    )
