"""The checks of partitions: what is found of each kind, and the command that puts it right."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine.checkup.catalogue import BY_ID, CHECKS, chosen
from kelr.engine.checkup.incidents import Calm, for_cluster
from kelr.engine.checkup.tally import Tallies, ranges
from kelr.engine.checkup.topics import TopicChecks
from kelr.model import ELR_FEATURE, BrokerStatus, Cluster, ConfigSource, Features, TopicConfig
from kelr.model.checkup import Finding, NotChecked, Result, Severity
from kelr.model.described import Described
from kelr.model.rows import Kind, Run, described_rows
from tests.engine.checkups import CLUSTER, KNOWN, found, row, unchecked


def look(rows: Sequence[Described], cluster: Cluster = CLUSTER) -> list[Finding | NotChecked]:
    checks = TopicChecks(cluster, wanted=frozenset(BY_ID))
    return [*checks.add(rows), *checks.finish()]


def test_a_healthy_topic_has_nothing() -> None:
    assert look([row("orders", number) for number in range(5)]) == []


def test_partitions_without_a_leader() -> None:
    rows = [row("orders", 0), row("orders", 1, leader=None, isr=(), elr=(1,)), row("orders", 2)]
    finding = found(look(rows))["leaderless"]
    assert finding.severity is Severity.CRITICAL
    assert finding.partitions == (1,)
    assert finding.commands == (("explain", "orders:1"),)


def test_a_leader_that_is_not_live_is_none() -> None:
    brokers = tuple(replace(one, status=BrokerStatus.FENCED) if one.id == 1 else one for one in CLUSTER.brokers)
    cluster = replace(CLUSTER, brokers=brokers)
    assert found(look([row("orders", 0, cluster=cluster)], cluster))["leaderless"].partitions == (0,)


def test_under_min_isr() -> None:
    finding = found(look([row("orders", 0, isr=(1,), elr=(2,))]))["under-min-isr"]
    assert finding.severity is Severity.CRITICAL
    assert finding.commands == (("explain", "orders"),)


def test_replicas_that_are_out_of_sync() -> None:
    """Nothing else tells of those on an unregistered broker, nor of an offline replica that an answer names."""
    offline, away, enough = (
        replace(row("orders", 0, isr=(1, 2)), min_isr=2),
        row("orders", 1, isr=(1, 2)),
        row("orders", 2),
    )
    offline = replace(offline, state=replace(offline.state, offline_replicas=(3,)))
    brokers = tuple(one for one in CLUSTER.brokers if one.id != 6)
    away = replace(away, min_isr=1, state=replace(away.state, replicas=(1, 2, 6)))
    told = found(look([offline, away, enough], replace(CLUSTER, brokers=brokers)))["under-replicated"]
    assert (told.severity, told.partitions, told.brokers) == (Severity.WARNING, (0, 1), (3, 6))
    assert told.what == (
        "2 partitions of orders have replicas out of sync, on brokers 3 (log directory failed) and 6 (unregistered),"
        " 1 of them at min ISR: one failure more, and acks=all is refused"
    )
    assert found(look([away], replace(CLUSTER, brokers=brokers)))["under-replicated"].what == (
        "1 partition of orders has replicas out of sync, on broker 6 (unregistered)"
    )
    alone = row("orders", 0, isr=(1,), config=replace(KNOWN, min_insync_replicas=1))
    assert found(look([alone]))["under-replicated"].what == (
        "1 partition of orders has replicas out of sync, on brokers 2 (live) and 3 (live): one failure more, and no"
        " leader is left"
    )
    assert "under-replicated" not in found(look([row("orders", 0, isr=(1,), elr=(2,))]))  # under min ISR is worse


def test_topics_that_are_written_without_acks_all_are_spared_a_min_isr() -> None:
    """KIP-966, "Public-Facing Changes"; the write empties the ELR, so that it waits for the end of the incident."""
    told = found(look([row("orders", 0, isr=(1,), elr=(2,))]))["under-min-isr"]
    assert told.caution is not None
    assert "acks=0 or 1 alone is better off with min.insync.replicas=1" in told.caution
    assert told.caution.endswith("write that when all is led and in sync again: with ELR on the write empties the ELR")
    config = TopicConfig(1, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)
    told = found(look([replace(row("orders", 0), config=config, min_isr=1)]))["min-isr-one"]
    assert told.caution is not None
    assert "acks=0 or 1 alone is better off with min.insync.replicas=1" in told.caution


def test_under_min_isr_without_a_leader() -> None:
    """ "nothing found by under-min-isr" would not be true of them."""
    told = found(look([row("orders", 0), row("orders", 1, leader=None, isr=(), elr=(1,))]))
    assert told["under-min-isr"].partitions == told["leaderless"].partitions == (1,)


def test_commands_that_do_harm_in_an_incident_are_not_printed() -> None:
    """Min ISR of a topic whose partition waits for its ELR, which the write empties; a replica that is moved away."""
    waits = row("orders", 1, leader=None, isr=(), elr=(2,), config=replace(KNOWN, min_insync_replicas=9))
    rows = [row("orders", 0, config=replace(KNOWN, min_insync_replicas=9)), waits]
    finding = found(look(rows))["min-isr-is-rf"]
    assert finding.commands == ()
    assert finding.caution == (
        "not while partitions of the topic are in trouble (the write would empty an ELR that they wait for):"
        " kelr doctor prints the command after"
    )
    alone = TopicChecks(CLUSTER, wanted=frozenset({"min-isr-is-rf"}))
    (told,) = [*alone.add(rows), *alone.finish()]
    assert isinstance(told, Finding)
    assert told.commands == ()
    one_rack = found(look([row("pay", 0, (1, 4), leader=None, isr=(), elr=(4,))]))["one-rack"]
    assert one_rack.commands == ()
    assert "take the replica out that holds the most" in str(one_rack.caution)


LOW_DEFAULT = replace(KNOWN, min_insync_replicas=1, min_insync_replicas_source=ConfigSource.CLUSTER_DEFAULT)


def of_cluster(rows: Sequence[Described], cluster: Cluster = CLUSTER, *, everything: bool = True) -> list[Finding]:
    """What is said of the cluster's defaults once all partitions were looked at."""
    checks = TopicChecks(cluster, wanted=frozenset(BY_ID))
    told = [*checks.add(rows), *checks.finish()]
    for one in told:
        assert not (isinstance(one, Finding) and any("--entity-default" in str(line) for line in one.commands)), one
    return list(for_cluster(checks.of_defaults(), Calm(checks.troubled, everything)))


def test_the_cluster_s_default_is_written_once_for_all_its_topics() -> None:
    rows = [row("calm", 0, config=LOW_DEFAULT), row("calm", 1, config=LOW_DEFAULT), row("pay", 0, config=LOW_DEFAULT)]
    (told,) = of_cluster(rows)
    assert (told.id, told.topic) == ("min-isr-one", None)
    assert told.what == "min.insync.replicas is 1 where a topic has no value of its own: 2 topics"
    assert told.commands == (
        "kafka-configs.sh {stock} --alter --entity-type brokers --entity-default --add-config min.insync.replicas=2",
    )
    assert "empties ELR and LastKnownElr of all partitions of all topics" in str(told.caution)


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([row("pay", 0, leader=None, isr=(), elr=(1,))], "1 partition of those that were looked at is in trouble"),
        (
            [row("pay", 0, isr=(1,)), row("pay", 1, isr=(1,))],
            "2 partitions of those that were looked at are in trouble",
        ),
        ([row("secret", 0, isr=(1,), config=TopicConfig())], "or may be"),
    ],
)
def test_it_is_not_written_while_any_topic_is_in_trouble(rows: list[Described], count: str) -> None:
    """A write of the cluster's default empties the ELR of all topics."""
    (told,) = of_cluster([row("calm", 0, config=LOW_DEFAULT), *rows])
    assert told.commands == ()
    assert count in str(told.caution)
    assert "the write would empty an ELR that they wait for" in str(told.caution)


def test_it_is_written_with_a_warning_where_not_all_was_looked_at() -> None:
    (told,) = of_cluster([row("calm", 0, config=LOW_DEFAULT)], everything=False)
    assert len(told.commands) == 1
    assert str(told.caution).startswith(
        "not while partitions are in trouble (the write would empty an ELR that they wait for), and not all of them"
        " were looked at; it holds for every topic"
    )


def test_where_elr_is_off_nothing_is_emptied_and_nothing_left_out() -> None:
    cluster = replace(CLUSTER, features=Features({}, {}))
    led = row("pay", 0, isr=(1,), cluster=cluster)
    (told,) = of_cluster([row("calm", 0, config=LOW_DEFAULT, cluster=cluster), led], cluster)
    assert len(told.commands) == 1
    assert "ELR" not in f"{told.caution} {told.why}"
    own = replace(KNOWN, min_insync_replicas=3, min_insync_replicas_source=ConfigSource.TOPIC)
    finding = found(look([row("pay", 0, isr=(1, 2), config=own, cluster=cluster)], cluster))["min-isr-is-rf"]
    assert len(finding.commands) == 1, "lowering it is what lets producers go on"
    assert finding.caution is None


def test_min_isr_where_nobody_tells_of_elr() -> None:
    cluster = replace(CLUSTER, features=Features())
    config = replace(KNOWN, min_insync_replicas=1, min_insync_replicas_source=ConfigSource.TOPIC)
    finding = found(look([row("orders", 0, config=config)], cluster))["min-isr-one"]
    assert "with ELR on this write empties ELR" in str(finding.caution)


def test_min_isr_of_one_that_the_topic_sets() -> None:
    config = replace(KNOWN, min_insync_replicas=1, min_insync_replicas_source=ConfigSource.TOPIC)
    finding = found(look([row("orders", 0, config=config)]))["min-isr-one"]
    assert finding.commands == (
        "kafka-configs.sh {stock} --alter --entity-type topics --entity-name orders --add-config min.insync.replicas=2",
    )
    assert finding.caution is not None
    assert "empties ELR" in finding.caution


def test_min_isr_of_one_with_two_replicas_has_no_command() -> None:
    config = replace(KNOWN, min_insync_replicas=1)
    told = found(look([row("orders", 0, (1, 2), config=config)]))
    assert told["min-isr-one"].commands == ()
    assert set(told) == {"min-isr-one", "rf-two"}


def test_no_elr_because_partition_0_has_one_replica() -> None:
    rows = [row("orders", 0, (1,)), row("orders", 1), row("orders", 2)]
    told = found(look(rows))
    assert told["min-isr-one"].partitions == (1, 2)
    assert told["min-isr-one"].commands == ()
    assert told["min-isr-one"].what == "the controller goes by min ISR 1 for orders: partition 0 has one replica"
    without = replace(CLUSTER, features=replace(CLUSTER.features, finalized={ELR_FEATURE: 0}))
    assert "min-isr-one" not in found(look(rows, without))
    assert "min-isr-one" not in found(look([row("orders", 0), row("orders", 1, (1,))]))


def test_producers_are_refused_by_the_partitions_own_replica_count() -> None:
    """Seen on Kafka 4.4.0: `a` has one replica of partition 0 and three of partition 1, `b` the contrary."""
    a = [row("a", 0, (1,)), row("a", 1, isr=(1,))]
    b = [row("b", 0), row("b", 1, (1,), elr=(2, 3))]
    assert found(look(a))["under-min-isr"].partitions == (1,)
    assert "under-min-isr" not in found(look(b))


@pytest.mark.parametrize(("replicas", "value"), [((1, 2, 3), 2), ((1, 2, 3, 4), 3)])
def test_min_isr_of_all_replicas(replicas: tuple[int, ...], value: int) -> None:
    config = replace(KNOWN, min_insync_replicas=9)
    (command,) = found(look([row("orders", 0, replicas, config=config)]))["min-isr-is-rf"].commands
    assert isinstance(command, str)
    assert command.endswith(f"--entity-name orders --add-config min.insync.replicas={value}")


def test_a_single_replica_is_no_min_isr_of_all() -> None:
    assert set(found(look([row("orders", 0, (1,))]))) == {"rf-one"}


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (ConfigSource.TOPIC, "--entity-type topics --entity-name orders"),
        (ConfigSource.CLUSTER_DEFAULT, "--entity-type brokers --entity-default"),
        (ConfigSource.STATIC, "--entity-type brokers --entity-default"),
    ],
)
def test_unclean_election(source: ConfigSource, place: str) -> None:
    config = replace(KNOWN, unclean_leader_election=True, unclean_leader_election_source=source)
    finding = found(look([row("orders", 0, config=config)]))["unclean-election"]
    assert finding.commands == (
        f"kafka-configs.sh {{stock}} --alter {place} --add-config unclean.leader.election.enable=false",
    )
    assert "thrown away" in finding.why


WHOLE_KIP = replace(CLUSTER, features=replace(CLUSTER.features, elect_leaders=3))


@pytest.mark.parametrize(
    ("config", "what", "command"),
    [
        (
            TopicConfig(unclean_leader_election=True, unclean_leader_election_source=ConfigSource.TOPIC),
            "unclean.leader.election.enable is true for orders (set on the topic), which means",
            "--entity-type topics --entity-name orders",
        ),
        (
            TopicConfig(unclean_leader_election=True, unclean_leader_election_source=ConfigSource.CLUSTER_DEFAULT),
            "unclean.leader.election.enable is true for orders (the cluster's dynamic default), which means",
            "--entity-type brokers --entity-default",
        ),
        (
            TopicConfig(unclean_leader_election=False, recovery_strategy="aggressive"),
            "unclean.recovery.strategy is aggressive for orders",
            "--entity-type topics --entity-name orders",
        ),
    ],
)
def test_where_the_kip_recovers_an_unclean_election_is_an_aggressive_recovery(
    config: TopicConfig, what: str, command: str
) -> None:
    """KIP-966, "Compatibility": true is set to Aggressive, and the config "will be marked as deprecated"."""
    config = replace(config, min_insync_replicas=2, min_insync_replicas_source=ConfigSource.TOPIC)
    finding = found(look([row("orders", 0, config=config)], WHOLE_KIP))["unclean-election"]
    assert finding.what.startswith(what)
    assert "=aggressive" in finding.what or config.recovery_strategy is not None
    assert "any live one" not in finding.why
    assert "the best log of those that answer" in finding.why
    assert finding.commands == (
        f"kafka-configs.sh {{stock}} --alter {command} --add-config unclean.recovery.strategy=balanced",
    )
    assert ("deprecates unclean.leader.election.enable" in (finding.caution or "")) is (
        config.recovery_strategy is None
    )


@pytest.mark.parametrize("strategy", ["none", "balanced"])
def test_a_strategy_that_is_named_stands_above_the_deprecated_config(strategy: str) -> None:
    config = replace(KNOWN, unclean_leader_election=True, recovery_strategy=strategy)
    assert look([row("orders", 0, config=config)], WHOLE_KIP) == []


def test_with_the_recovery_manager_off_it_is_a_random_election_still() -> None:
    """The newest text of kafka-leader-election.sh: "unclean" is "for a random unclean leader election"."""
    supported = {**(CLUSTER.features.supported or {}), "unclean.recovery.manager.enabled": 1}
    cluster = replace(CLUSTER, features=replace(CLUSTER.features, supported=supported))
    config = replace(KNOWN, unclean_leader_election=True, unclean_leader_election_source=ConfigSource.TOPIC)
    finding = found(look([row("orders", 0, config=config)], cluster))["unclean-election"]
    assert "any live one is elected" in finding.why
    assert "KIP-966 deprecates it: once unclean.recovery.manager.enabled is true" in (finding.caution or "")


def test_too_few_replicas_get_more_in_other_racks() -> None:
    finding = found(look([row("orders", 0, (1,)), row("orders", 1, (4,))]))["rf-one"]
    (command,) = finding.commands
    assert isinstance(command, str)
    moved = json.loads(shlex.split(command)[1])["partitions"]
    assert [(one["partition"], one["replicas"][0], len(set(one["replicas"]))) for one in moved] == [
        (0, 1, 3),
        (1, 4, 3),
    ]
    for one in moved:
        assert len({number % 3 for number in one["replicas"]}) == 3, "each in a rack of its own"


def test_too_few_brokers_for_three_replicas() -> None:
    cluster = replace(CLUSTER, brokers=CLUSTER.brokers[:2])
    finding = found(look([row("orders", 0, (1,), cluster=cluster)], cluster))["rf-one"]
    assert finding.commands == ()
    assert finding.caution == "there are not enough live brokers for three"


def test_too_many_partitions_for_a_line() -> None:
    finding = found(look([row("orders", number, (1,)) for number in range(60)]))["rf-one"]
    assert finding.commands == ()
    assert "60 partitions are too many" in str(finding.caution)


def test_replicas_in_one_rack() -> None:
    finding = found(look([row("orders", 0, (1, 4)), row("orders", 1, (1, 2))]))["one-rack"]
    assert finding.partitions == (0,)
    assert finding.what == "all replicas of 1 partition of orders are in rack az1"
    (command,) = finding.commands
    (moved,) = json.loads(shlex.split(str(command))[1])["partitions"]
    assert moved["replicas"][0] == 1
    assert moved["replicas"][1] % 3 != 1


def test_racks_that_nobody_knows_are_no_single_rack() -> None:
    brokers = tuple(replace(one, rack=None) if one.id == 4 else one for one in CLUSTER.brokers)
    cluster = replace(CLUSTER, brokers=brokers)
    told = look([row("orders", 0, (1, 4), cluster=cluster), row("well", 0, (1, 4, 2), cluster=cluster)], cluster)
    assert "one-rack" not in found(told)
    assert [one.topics for one in told if isinstance(one, NotChecked)] == [("orders",)]


def test_a_cluster_without_racks_has_nothing_to_spread_over() -> None:
    cluster = replace(CLUSTER, brokers=tuple(replace(one, rack=None) for one in CLUSTER.brokers))
    assert look([row("orders", 0, cluster=cluster)], cluster) == []


def test_reassignments_that_nobody_tells_of() -> None:
    cluster = replace(CLUSTER, reassignments_error="CLUSTER_AUTHORIZATION_FAILED")
    told = look([row("orders", 0, adding=None, removing=None)], cluster)
    assert unchecked(told) == {"reassignment": "CLUSTER_AUTHORIZATION_FAILED"}


@pytest.mark.parametrize(
    ("replicas", "adding", "removing", "expected"),
    [
        ((1, 2, 3), (), (2, 3), set()),  # until it ends, it has three
        ((3, 1, 2), (3,), (1, 2), {"rf-two"}),
        ((2, 1), (2,), (1,), {"rf-one"}),
    ],
)
def test_how_few_replicas_there_are_while_they_are_reassigned(
    replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...], expected: set[str]
) -> None:
    told = found(look([row("orders", 0, replicas, adding=adding, removing=removing)]))
    assert {"rf-one", "rf-two"} & set(told) == expected
    assert "reassignment" in told


def test_configs_that_could_not_be_read() -> None:
    told = look([row("orders", 0, config=TopicConfig(error="TOPIC_AUTHORIZATION_FAILED"))])
    assert unchecked(told) == dict.fromkeys(
        ("min-isr-one", "min-isr-is-rf", "under-min-isr", "unclean-election", "records-elsewhere", "remote-storage"),
        "TOPIC_AUTHORIZATION_FAILED",
    )


def test_topics_whose_records_are_not_all_in_their_replicas_logs_are_named() -> None:
    remote, diskless = replace(KNOWN, remote_storage=True), replace(KNOWN, foreign="diskless.enable=true")
    told = look([row("clicks", 0, config=remote), row("clicks", 1, config=remote), row("views", 0, config=diskless)])
    assert {(one.id, one.topic, one.partitions, one.what) for one in told if isinstance(one, Finding)} >= {
        ("remote-storage", "clicks", (0, 1), "topic clicks has remote storage (remote.storage.enable)"),
        (
            "records-elsewhere",
            "views",
            (0,),
            "the records of views are not in its replicas' logs (diskless.enable=true)",
        ),
    }


def test_a_hostile_name_is_quoted() -> None:
    config = replace(KNOWN, min_insync_replicas=1, min_insync_replicas_source=ConfigSource.TOPIC)
    (command,) = found(look([row("a; rm -rf x", 0, config=config)]))["min-isr-one"].commands
    assert "'a; rm -rf x'" in str(command)


@st.composite
def topics(draw: st.DrawFn) -> list[Described]:
    rows = []
    for name in sorted(draw(st.sets(st.sampled_from("abcd"), min_size=1))):
        config = draw(st.sampled_from([KNOWN, TopicConfig(), replace(KNOWN, min_insync_replicas=1)]))
        for number in range(draw(st.integers(1, 4))):
            replicas = tuple(draw(st.permutations(range(1, 7)))[: draw(st.integers(1, 4))])
            leader = draw(st.sampled_from([replicas[0], None]))
            isr = replicas[: draw(st.integers(0, len(replicas)))]
            rows.append(row(name, number, replicas, config=config, leader=leader, isr=isr))
    return rows


@given(topics(), st.integers(1, 5))
def test_pages_and_shared_kinds_change_nothing(rows: list[Described], page: int) -> None:
    whole = look(rows)
    checks = TopicChecks(CLUSTER, wanted=frozenset(BY_ID))
    paged = [one for at in range(0, len(rows), page) for one in checks.add(rows[at : at + page])]
    assert [*paged, *checks.finish()] == whole
    kinds: dict[object, Kind[Described]] = {}
    runs = [Run(one.state.topic, None, (one.state.partition,), (1,), (_kind(one, kinds),)) for one in rows]
    assert look(described_rows(runs)) == whole


def _kind(one: Described, kinds: dict[object, Kind[Described]]) -> Kind[Described]:
    state = replace(one.state, topic="", partition=0, leader_epoch=0)
    key = (state, one.config)
    return kinds.setdefault(key, Kind(replace(one, state=state)))


@given(topics())
def test_tallies_count_every_partition_and_every_check_has_a_result(rows: list[Described]) -> None:
    tallies = Tallies(frozenset(BY_ID))
    findings = tallies.take(look(rows))
    assert sum(one.partitions for one in tallies.found) == sum(len(one.partitions) for one in findings)
    assert set(tallies.results) == {check.id for check in CHECKS}
    order = list(Severity)
    assert [order.index(one.severity) for one in tallies.found] == sorted(
        order.index(one.severity) for one in tallies.found
    )


def test_results_tell_found_clear_partly_and_not_at_all() -> None:
    tallies = Tallies(chosen(skip=["rf-two"]))
    tallies.take([BY_ID["rf-one"].finding("x", topic="t", partitions=(0,)), BY_ID["rf-two"].finding("y")])
    tallies.take([BY_ID["one-rack"].not_checked("hidden", "t"), BY_ID["elr-off"].not_checked("nobody tells")])
    results = tallies.results
    assert results["rf-one"] is Result.FOUND
    assert results["rf-two"] is Result.SKIPPED
    assert results["one-rack"] is Result.PARTLY
    assert results["elr-off"] is Result.NOT_CHECKED
    assert results["min-isr-one"] is Result.CLEAR
    assert tallies.worth_an_exit


def test_an_unknown_check_is_named_with_all_there_are() -> None:
    with pytest.raises(ValueError, match=r"no check 'nope'; there are auto-rebalance, .*, versions-differ"):
        chosen(only=["nope"])


def test_ranges() -> None:
    assert ranges([3, 0, 1, 7]) == "0-1,3,7"
    assert ranges(range(0, 40, 2)) == "0,2,4,6,8,10,..."
