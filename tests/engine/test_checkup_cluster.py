"""The checks of brokers, features and controllers: broken one by one in a cluster that is well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kelr.engine.checkup import cluster_checks
from kelr.engine.checkup.abilities import LogInfo, abilities
from kelr.engine.checkup.catalogue import CHECKS, Looks
from kelr.engine.checkup.flushing import flush_checks
from kelr.engine.checkup.metadata_versions import release_of, version_name
from kelr.engine.checkup.nodes import THROTTLED, controller_addresses, throttle_checks
from kelr.engine.checkup.rights import Allowed, all_rights, named_topics, rights_of
from kelr.engine.checkup.topics import FAILS, TELLS
from kelr.model import (
    ELR_FEATURE,
    LOG_INFO_FEATURE,
    METADATA_FEATURE,
    RECOVERY_FEATURE,
    BrokerStatus,
    ConfigSource,
    Features,
    TopicPartition,
)
from kelr.model.acls import COMMAND_ACLS
from kelr.model.checkup import (
    AddressState,
    Announced,
    CheckupFacts,
    ConfigRead,
    LeftBehind,
    LogDirectory,
    NotRead,
    RestartHistory,
    Restarts,
    Severity,
)
from tests.engine.checkups import (
    LEVELS,
    NOW_MS,
    QUORUM,
    WELL,
    brokers_of,
    found,
    node,
    unchecked,
    with_broker,
    with_config,
    with_features,
)

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def test_a_cluster_that_is_well_has_nothing() -> None:
    assert list(cluster_checks(WELL)) == []
    assert list(throttle_checks(WELL, {}, moving=False)) == []
    assert list(flush_checks(WELL, {})) == []


def test_what_nobody_told_is_never_passed_over_in_silence() -> None:
    why = NotRead("nobody tells")
    cluster = replace(WELL.cluster, features=Features(), controller=None)
    facts = CheckupFacts(cluster, why, why, why, why, why, unsaved=why)
    told = [
        *cluster_checks(facts),
        *throttle_checks(facts, {"t": {THROTTLED[0]: "*"}}, moving=None),
        *flush_checks(facts, {}),
    ]
    silent = set(unchecked(told)) | set(found(told))
    # Who is fenced, the list of brokers told.
    assert silent == {check.id for check in CHECKS if check.looks is not Looks.PARTITIONS} - {"broker-fenced"}


OPEN, REFUSED, SILENT = AddressState.OPEN, AddressState.REFUSED, AddressState.SILENT


STATIC, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"


def silent(config: str = STATIC, **controllers: AddressState) -> CheckupFacts:
    """Nobody leads, and this answers at the controllers' addresses, which brokers' files name."""
    facts = with_config(WELL, config, ConfigRead(",".join(controllers), ConfigSource.STATIC, None), 1)
    cluster = replace(WELL.cluster, controller=None, controller_silence="no answer in time")
    return replace(facts, cluster=cluster, controllers=controllers)


def test_who_follows_is_told_by_the_clock_of_the_controller_that_leads() -> None:
    behind = replace(QUORUM, voters=(node(100, 0), node(101, 11_000), node(102, None)))
    assert behind.following == {100: True, 101: False, 102: False}
    assert replace(QUORUM, leader=7).following == {}


def test_a_quorum_is_lost_where_fewer_than_a_majority_accept_connections() -> None:
    finding = found(cluster_checks(silent(a=REFUSED, b=SILENT, c=OPEN)))["quorum-lost"]
    assert finding.what == (
        "1 of 3 controllers accepts connections from here, and a majority takes 2: a (connection refused), b (no"
        " response) and c (accepts connections)"
    )
    assert finding.severity is Severity.CRITICAL
    assert finding.commands == ("kelr quorum collect HOST.kelr-quorum --node-dir PATH",)


@pytest.mark.parametrize(
    ("controllers", "why"),
    [
        ({}, "no broker says where controllers are"),
        ({"a": SILENT, "b": SILENT}, "no response from a and b: hosts that are down, or a firewall"),
    ],
)
def test_whether_a_quorum_is_lost_is_not_known_where_no_address_tells(
    controllers: Mapping[str, AddressState], why: str
) -> None:
    told = list(cluster_checks(silent(**controllers)))
    assert unchecked(told)["quorum-lost"] == why
    assert "no-controller" in found(told)


def test_a_majority_that_runs_and_elects_nobody_is_not_lost() -> None:
    told = list(cluster_checks(silent(a=OPEN, b=OPEN, c=REFUSED)))
    assert "quorum-lost" not in {**found(told), **unchecked(told)}
    assert "2 of 3 controllers accept connections from here" in str(found(told)["no-controller"].caution)
    assert not [one for one in cluster_checks(WELL) if one.id == "quorum-lost"]


def test_addresses_to_bootstrap_from_are_not_taken_for_the_voters() -> None:
    """One may be a load balancer's, which accepts connections though no controller runs behind it."""
    told = list(cluster_checks(silent(BOOTSTRAP, balancer=OPEN)))
    assert "quorum-lost" not in found(told)
    assert unchecked(told)["quorum-lost"] == (
        "1 of 1 controller endpoint accepts connections; controller.quorum.bootstrap.servers may name some of the"
        " controllers, or a load balancer: how many run is not known"
    )
    assert str(found(told)["no-controller"].caution).startswith("1 of 1 controller endpoint accepts connections")
    finding = found(cluster_checks(silent(BOOTSTRAP, a=REFUSED, b=SILENT, c=OPEN)))["quorum-lost"]
    assert finding.what == (
        "1 of 3 controller endpoints accepts connections from here: a (connection refused), b (no response) and c"
        " (accepts connections)"
    )


def test_brokers_files_name_the_controllers() -> None:
    servers, static = BOOTSTRAP, STATIC
    assert controller_addresses(brokers_of(WELL)) == ()
    dynamic = with_config(WELL, servers, ConfigRead("c2:9093, c1:9093", ConfigSource.STATIC, None), *range(1, 7))
    assert controller_addresses(brokers_of(dynamic)) == ("c1:9093", "c2:9093")
    both = with_config(dynamic, static, ConfigRead("100@[::1]:9093,101@c1:9093", ConfigSource.STATIC, None), 3)
    assert controller_addresses(brokers_of(both)) == ("[::1]:9093", "c1:9093")


def test_fenced_brokers() -> None:
    brokers = tuple(
        replace(one, status=BrokerStatus.FENCED) if one.id in {2, 3} else one for one in WELL.cluster.brokers
    )
    finding = found(cluster_checks(replace(WELL, cluster=replace(WELL.cluster, brokers=brokers))))["broker-fenced"]
    assert finding.what == "brokers 2 and 3 are fenced"
    assert finding.commands == (("explain",),), "what to start, and in which order"
    assert finding.caution == "read their server logs before you start them"


def test_an_old_request_does_not_list_fenced_brokers() -> None:
    facts = replace(WELL, cluster=replace(WELL.cluster, brokers_source="DescribeCluster v1"))
    assert unchecked(cluster_checks(facts)) == {"broker-fenced": "DescribeCluster v1 lists live brokers alone"}


# ELR and features.


def test_elr_that_could_be_on() -> None:
    facts = with_features(WELL, {**LEVELS, ELR_FEATURE: 0}, LEVELS)
    finding = found(cluster_checks(facts))["elr-off"]
    assert finding.severity is Severity.WARNING
    assert finding.commands == ("kafka-features.sh {stock} upgrade --feature eligible.leader.replicas.version=1",)
    assert "all brokers have it" in finding.what


def test_the_kips_own_features_are_no_unknown_ones() -> None:
    levels = {**LEVELS, RECOVERY_FEATURE: 1, "some.other": 1}
    facts = with_features(WELL, levels, {**levels, LOG_INFO_FEATURE: 70})
    told = {one.name: one for one in abilities(facts, LogInfo())}
    assert told["other features"].value == "some.other (level 1, up to 1)"


def test_elr_pins_what_holds_now_where_only_files_say_it() -> None:
    facts = with_features(replace(WELL, defaults={}), {**LEVELS, ELR_FEATURE: 0}, LEVELS)
    facts = with_config(facts, "min.insync.replicas", ConfigRead("2", ConfigSource.STATIC, "2"), 1, 2, 3, 4, 5, 6)
    commands = found(cluster_checks(facts))["elr-off"].commands
    assert commands == (
        "kafka-configs.sh {stock} --alter --entity-type brokers --entity-default --add-config min.insync.replicas=2",
        "kafka-features.sh {stock} upgrade --feature eligible.leader.replicas.version=1",
    )


def test_elr_takes_a_newer_metadata_version_along() -> None:
    facts = with_features(WELL, {METADATA_FEATURE: 20}, LEVELS)
    assert found(cluster_checks(facts))["elr-off"].commands == (
        "kafka-features.sh {stock} upgrade --feature eligible.leader.replicas.version=1 --feature metadata.version=23",
    )


def test_a_broker_without_elr_keeps_it_off() -> None:
    facts = with_features(WELL, {**LEVELS, ELR_FEATURE: 0}, LEVELS)
    facts = with_broker(facts, 4, announced=Announced(LEVELS, {METADATA_FEATURE: 21}, {1: 18}))
    told = found(cluster_checks(facts))
    assert "elr-off" not in told
    assert set(told) == {"versions-differ"}


def test_a_snapshot_knows_one_broker_alone() -> None:
    facts = replace(with_features(WELL, {**LEVELS, ELR_FEATURE: 0}, LEVELS), brokers=NotRead("a snapshot"))
    assert "the brokers that told have it" in found(cluster_checks(facts))["elr-off"].what


def test_elr_on_4_0() -> None:
    levels = {ELR_FEATURE: 1, METADATA_FEATURE: 25}
    finding = found(cluster_checks(with_features(WELL, levels, levels)))["elr-bug-19522"]
    assert finding.commands == ("kafka-features.sh {stock} downgrade --feature eligible.leader.replicas.version=0",)
    off = found(cluster_checks(with_features(WELL, {METADATA_FEATURE: 25}, levels)))["elr-off"]
    assert (off.severity, off.commands) == (Severity.NOTE, ())


def test_features_behind_leave_elr_and_kraft_alone() -> None:
    supported = {**LEVELS, "kraft.version": 1, "share.version": 1}
    facts = with_features(WELL, {**LEVELS, METADATA_FEATURE: 28}, supported)
    finding = found(cluster_checks(facts))["features-behind"]
    assert finding.what == "metadata.version is 4.2-IV0 of 4.3-IV0 and share.version is 0 of 1"
    assert finding.commands == (
        "kafka-features.sh {stock} upgrade --feature metadata.version=30 --feature share.version=1",
    )


def test_levels_are_raised_no_further_than_the_oldest_broker_goes() -> None:
    facts = with_features(WELL, {**LEVELS, METADATA_FEATURE: 28}, LEVELS)
    facts = with_broker(facts, 4, announced=Announced(LEVELS, {**LEVELS, METADATA_FEATURE: 29}, {1: 18}))
    told = found(cluster_checks(facts))
    assert told["features-behind"].commands == ("kafka-features.sh {stock} upgrade --feature metadata.version=29",)
    assert told["versions-differ"].what == (
        "not all brokers announce the same: brokers 1, 2, 3, 5 and 6 (Kafka 4.3, 1 request); broker 4 (Kafka 4.2,"
        " 1 request)"
    )


def test_a_silent_broker_is_named() -> None:
    silent = NotRead("connection refused")
    facts = with_broker(WELL, 2, announced=silent, configs=silent, directories=silent)
    told = list(cluster_checks(facts))
    assert found(told) == {}
    checks = ("log-dir-offline", "broker-cordoned", "auto-rebalance", "versions-differ", "static-min-isr")
    assert unchecked(told) == dict.fromkeys(checks, "broker 2: connection refused")


# min.insync.replicas of brokers.


def test_a_file_that_elr_ignores() -> None:
    facts = with_config(WELL, "min.insync.replicas", ConfigRead("2", ConfigSource.CLUSTER_DEFAULT, "3"), 1, 2)
    finding = found(cluster_checks(facts))["static-min-isr"]
    assert finding.what == "min.insync.replicas is 3 in the file of brokers 1 and 2, and 2 holds for the cluster"
    assert finding.commands == (
        "kafka-configs.sh {stock} --alter --entity-type brokers --entity-default --add-config min.insync.replicas=3",
    )


def test_files_that_contradict_each_other_have_no_command() -> None:
    facts = with_config(WELL, "min.insync.replicas", ConfigRead("2", ConfigSource.CLUSTER_DEFAULT, "3"), 1)
    facts = with_config(facts, "min.insync.replicas", ConfigRead("2", ConfigSource.CLUSTER_DEFAULT, "1"), 2)
    assert found(cluster_checks(facts))["static-min-isr"].commands == ()


def test_uneven_brokers_without_elr() -> None:
    facts = with_features(replace(WELL, defaults={}), {**LEVELS, ELR_FEATURE: 0}, {METADATA_FEATURE: 30})
    facts = with_config(facts, "min.insync.replicas", ConfigRead("1", ConfigSource.BROKER, "2"), 3)
    finding = found(cluster_checks(facts))["min-isr-uneven"]
    assert finding.what == "min.insync.replicas is 1 on broker 3; 2 on brokers 1, 2, 4, 5 and 6"
    assert finding.commands == (
        "kafka-configs.sh {stock} --alter --entity-type brokers --entity-default --add-config min.insync.replicas=2",
        "kafka-configs.sh {stock} --alter --entity-type brokers --entity-name 3 --delete-config min.insync.replicas",
    )


# Controllers.


def test_a_dead_controller_of_three_is_critical() -> None:
    quorum = replace(QUORUM, voters=(node(100, 0), node(101), node(102, 60_000)))
    finding = found(cluster_checks(replace(WELL, quorum=quorum)))["controller-behind"]
    assert finding.severity is Severity.CRITICAL
    assert finding.what == (
        "controller 102 has not fetched for 60 seconds; 2 of 3 follow, and a majority takes 2: none may go any more"
    )


def test_a_dead_controller_of_five_is_a_warning() -> None:
    voters = (node(100, 0), node(101), node(102, None), node(103), node(104))
    finding = found(cluster_checks(replace(WELL, quorum=replace(QUORUM, voters=voters))))["controller-behind"]
    assert finding.severity is Severity.WARNING
    assert finding.what == (
        "controller 102 has not fetched since the active controller took over; 4 of 5 follow, and a majority takes 3:"
        " 1 more may go"
    )


def test_one_controller() -> None:
    finding = found(cluster_checks(replace(WELL, quorum=replace(QUORUM, voters=(node(100, 0),)))))["controllers-few"]
    assert finding.what == "1 controller (100): no failover"


def test_a_live_broker_that_does_not_follow() -> None:
    quorum = replace(QUORUM, observers=(node(1, 30_000), node(2), node(99, 30_000)))
    finding = found(cluster_checks(replace(WELL, quorum=quorum)))["metadata-behind"]
    assert finding.brokers == (1,)  # 99 is no broker of the cluster


@pytest.mark.parametrize(("off_ms", "words"), [(-60_000, "ahead of"), (60_000, "behind")])
def test_clocks(off_ms: int, words: str) -> None:
    quorum = replace(QUORUM, asked_ms=NOW_MS + off_ms, answered_ms=NOW_MS + off_ms + 10)
    finding = found(cluster_checks(replace(WELL, quorum=quorum)))["clock-off"]
    assert words in finding.what
    assert finding.severity is Severity.NOTE


def test_a_slow_answer_is_no_clock_that_is_off() -> None:
    quorum = replace(QUORUM, asked_ms=NOW_MS - 20_000, answered_ms=NOW_MS + 20_000)
    assert list(cluster_checks(replace(WELL, quorum=quorum))) == []


def test_a_controller_that_tells_no_times() -> None:
    untimed = tuple(replace(one, last_fetch_ms=None, last_caught_up_ms=None) for one in QUORUM.voters)
    told = list(cluster_checks(replace(WELL, quorum=replace(QUORUM, voters=untimed))))
    assert set(unchecked(told)) == {"controller-behind", "metadata-behind", "clock-off"}


# Directories, restarts, journals, rebalancing, throttles.


def test_a_failed_directory() -> None:
    facts = with_broker(WELL, 5, directories=(LogDirectory("/d1"), LogDirectory("/d2", "KAFKA_STORAGE_ERROR")))
    finding = found(cluster_checks(facts))["log-dir-offline"]
    assert (finding.severity, finding.brokers) == (Severity.CRITICAL, (5,))
    assert finding.what == "broker 5: /d2 (KAFKA_STORAGE_ERROR)"


def test_a_cordoned_broker() -> None:
    """All directories that are online are cordoned; one that has failed counts for nothing."""
    one = (LogDirectory("/d1", cordoned=True), LogDirectory("/d2", cordoned=False))
    both = (LogDirectory("/d1", cordoned=True), LogDirectory("/d2", "KAFKA_STORAGE_ERROR", cordoned=False))
    assert "broker-cordoned" not in found(cluster_checks(with_broker(WELL, 5, directories=one)))
    finding = found(cluster_checks(with_broker(WELL, 5, directories=both)))["broker-cordoned"]
    assert (finding.severity, finding.brokers) == (Severity.NOTE, (5,))
    assert finding.what == "broker 5: all log directories are cordoned (cordoned.log.dirs)"


def test_unclean_restarts_again_and_again() -> None:
    history = RestartHistory(NOW_MS - 7_200_000, NOW_MS, (Restarts(1, (1,), 0, 0), Restarts(2, (1, 2, 3), 1, 2)))
    finding = found(cluster_checks(replace(WELL, restarts=history)))["unclean-restarts"]
    assert finding.brokers == (2,)
    assert finding.what == (
        "broker 2 came back from 3 unclean shutdowns within 2 hours of the metadata log; of 2 more restarts it does not"
        " show what was before"
    )
    assert finding.commands == (("history", "--broker", "2"),)


def test_an_open_journal() -> None:
    left = LeftBehind(
        "20260101-1", "recover apply", (TopicPartition("orders", 1),), ("recover", "resume", "20260101-1")
    )
    finding = found(cluster_checks(replace(WELL, left_behind=(left,))))["journal-open"]
    assert finding.what == "journal 20260101-1 is open: recover apply; reordered: orders:1"
    assert finding.commands == (("recover", "resume", "20260101-1"),)


def test_leaders_that_move_by_themselves_are_a_note() -> None:
    config = ConfigRead("true", ConfigSource.DEFAULT)
    facts = with_config(WELL, "auto.leader.rebalance.enable", config, 1, 2)
    finding = found(cluster_checks(facts))["auto-rebalance"]
    assert (finding.severity, finding.brokers, finding.commands) == (Severity.NOTE, (1, 2), ())


def test_throttles_that_nothing_needs() -> None:
    facts = with_config(WELL, RATES[0], ConfigRead("1000", ConfigSource.BROKER), 2)
    told = list(throttle_checks(facts, {"orders": {THROTTLED[0]: "*"}}, moving=False))
    assert [getattr(one, "commands", None) for one in told] == [
        ("kafka-configs.sh {stock} --alter --entity-type brokers --entity-name 2 --delete-config " + RATES[0],),
        ("kafka-configs.sh {stock} --alter --entity-type topics --entity-name orders --delete-config " + THROTTLED[0],),
    ]


def test_throttles_of_a_reassignment_that_runs_are_fine() -> None:
    facts = with_config(WELL, RATES[0], ConfigRead("1000", ConfigSource.BROKER), 2)
    assert list(throttle_checks(facts, {}, moving=True)) == []
    assert "whether a reassignment is under way" in unchecked(throttle_checks(facts, {}, moving=None))["throttle-left"]


def test_a_throttle_for_all_brokers() -> None:
    facts = replace(WELL, defaults={RATES[1]: "5"})
    finding = found(throttle_checks(facts, {}, moving=False))["throttle-left"]
    assert finding.commands == (
        f"kafka-configs.sh {{stock}} --alter --entity-type brokers --entity-default --delete-config {RATES[1]}",
    )


# Rights.


def test_rights_with_everything() -> None:
    everything = frozenset(
        {"READ", "WRITE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    )
    rights = {one.command: one for one in all_rights(Allowed(everything, {"orders": everything}))}
    assert set(rights) == set(COMMAND_ACLS)
    assert rights["recover apply"].has is True
    assert rights["recover verify"].has is None  # nobody tells of all groups


def test_rights_of_who_may_only_look() -> None:
    look = frozenset({"DESCRIBE"})
    allowed = Allowed(look, {"orders": frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS"}), "secret": frozenset()})
    elect = rights_of("elect", allowed)
    assert elect.has is False
    assert [(str(right.acl), right.has, right.refused_on) for right in elect.rights] == [
        ("ALTER on the cluster", False, ()),
        ("READ on topic *", False, ("secret",)),
        ("DESCRIBE_CONFIGS on topic *", None, ()),
    ]


def test_a_topic_that_a_command_needs_by_name_stands_for_no_other() -> None:
    everything = frozenset({"READ", "DESCRIBE", "DESCRIBE_CONFIGS"})
    (name,) = named_topics()
    allowed = Allowed(everything, {"orders": everything}, {name: frozenset()})
    told = {(str(one.acl), one.acl.name): one.has for one in rights_of("recover verify", allowed).rights}
    assert told["READ on topic *", None] is True
    assert told[f"DESCRIBE on topic {name}", name] is False


def test_an_answer_without_describe_says_nothing_of_the_rest() -> None:
    rights = {str(one.acl): one.has for one in rights_of("history", Allowed(frozenset())).rights}
    assert rights == {"CLUSTER_ACTION on the cluster": None, "DESCRIBE on the cluster": False}


# What it supports.


def test_abilities() -> None:
    told = {one.name: (one.value, one.why) for one in abilities(WELL, LogInfo())}
    assert told["brokers"] == (
        "6 live; racks az0, az1, az2",
        "DescribeCluster v2: fenced ones are listed",
    )
    of_old = "(eligible.leader.replicas.enabled in KIP-966's texts)"
    assert told["ELR"] == ("on", f"eligible.leader.replicas.version 1 {of_old}")
    assert told["metadata.version"] == ("4.3-IV0", "level 30")
    assert told["rules"][0] == "elr-4.3"
    assert told["logs"][0] == "ListOffsets and Fetch"
    assert told["metadata log"][0] == "Fetch from c:9093"
    assert told["controller"] == ("100", "voters 100, 101, 102; epoch 3")


def test_abilities_that_nobody_tells() -> None:
    cluster = replace(WELL.cluster, features=Features(), reassignments_error="CLUSTER_AUTHORIZATION_FAILED")
    why = NotRead("CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE on the cluster")
    told = {one.name: one.value for one in abilities(replace(WELL, cluster=cluster, quorum=why), LogInfo())}
    for name in ("ELR", "metadata.version", "unclean recovery", "reassignments", "metadata log"):
        assert told[name] == "unknown", name
    assert told["rules"] == "elr-4.3 (assumed)"


def test_abilities_of_a_rolling_upgrade() -> None:
    facts = with_broker(WELL, 4, announced=Announced(LEVELS, {METADATA_FEATURE: 27}, {}))
    told = [(one.value, one.why) for one in abilities(facts, LogInfo()) if one.name == "software"]
    assert told == [
        ("Kafka 4.3", "supports metadata.version up to 4.3-IV0; patch releases cannot be told apart"),
        ("Kafka 4.1", "broker 4: metadata.version up to 4.1-IV1"),
    ]


def test_metadata_versions_in_words() -> None:
    assert [version_name(level) for level in (23, 25, 27, 29, 30, 99, None)] == [
        "4.0-IV1",
        "4.0-IV3",
        "4.1-IV1",
        "4.2-IV1",
        "4.3-IV0",
        "level 99",
        "unknown",
    ]
    assert release_of(30) == "4.3"
    assert release_of(99) is None


def test_every_check_of_partitions_is_made() -> None:
    of_partitions = {check for check in CHECKS if check.looks is Looks.PARTITIONS}
    assert set(FAILS) == set(TELLS) == of_partitions


NTH, BY_TIME, LOOKS = "log.flush.interval.messages", "log.flush.interval.ms", "log.flush.scheduler.interval.ms"
EVERY_BROKER = range(1, 7)


def _flushing(**values: str) -> CheckupFacts:
    facts = WELL
    for name, value in values.items():
        key = {"nth": NTH, "by_time": BY_TIME, "looks": LOOKS}[name]
        facts = with_config(facts, key, ConfigRead(value, ConfigSource.STATIC, value), *EVERY_BROKER)
    return facts


@pytest.mark.parametrize(
    ("values", "check", "words"),
    [
        ({"nth": "1"}, "flush", "takes nothing that was acknowledged, unless a topic has its own flush.messages"),
        ({"nth": "500"}, "flush", "takes up to 499 acknowledged records of a log"),
        (
            {"by_time": "1000", "looks": "200"},
            "flush",
            "what came within some 1200 ms, unless a topic has its own flush.ms",
        ),
        ({"by_time": "200", "looks": "60000"}, "flush", "what came within some 60200 ms"),
        ({"looks": "60000"}, "flush", "what came within some 120000 ms"),
        ({"by_time": "1000"}, "flush-unwatched", "do not look at it"),
    ],
)
def test_flush_settings_and_what_elr_gives_beyond(values: dict[str, str], check: str, words: str) -> None:
    (finding,) = found(flush_checks(_flushing(**values), {})).values()
    assert (finding.id, finding.brokers) == (check, tuple(EVERY_BROKER))
    assert words in finding.what
    beyond = "ELR gives more replicas to elect" if check == "flush" else "once, 30 s after its start, and never again"
    assert beyond in finding.why


def test_kafkas_defaults_flush_nothing() -> None:
    assert list(flush_checks(_flushing(nth=str(2**63 - 1), looks=str(2**63 - 1)), {"t": {THROTTLED[0]: "*"}})) == []


def test_brokers_that_flush_beside_some_that_do_not() -> None:
    facts = with_config(WELL, NTH, ConfigRead("1", ConfigSource.BROKER), 2)
    assert found(flush_checks(facts, {}))["flush"].what == (
        f"{NTH} is 1 on broker 2, and not on the others: a power loss there takes nothing that was acknowledged, unless"
        " a topic has its own flush.messages"
    )


def test_a_topic_that_flushes_by_time_where_no_broker_looks() -> None:
    told = found(flush_checks(WELL, {"orders": {"flush.messages": "1", "flush.ms": "50"}}))
    assert {one.id: (one.topic, one.severity) for one in told.values()} == {
        "flush": ("orders", Severity.NOTE),
        "flush-unwatched": ("orders", Severity.WARNING),
    }


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({**LEVELS, ELR_FEATURE: 0}, "with ELR off the last replica in sync alone can lead again"),
        ({**LEVELS, ELR_FEATURE: 1}, "where ISR and ELR are both empty, it elects the last known leader"),
    ],
)
def test_what_is_said_to_those_who_flush_hangs_on_elr(levels: dict[str, int], words: str) -> None:
    facts = with_features(_flushing(nth="1"), levels, LEVELS)
    assert words in found(flush_checks(facts, {}))["flush"].why
