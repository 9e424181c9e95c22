"""DescribeConfigs and IncrementalAlterConfigs, in the words of Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kelr.controller import RULE_SETS, Configs
from kelr.lab.simulated.api import REQUEST_TIMEOUT_MS
from kelr.lab.simulated.world import Denied, World
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import TopicPartition
from kelr.protocol.messages import (
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from tests.lab.simulated.asking import answered, ask, encoded_again, later, name, world

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER = 2, 4, 8
MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
STRATEGY, TIMEOUT = "unclean.recovery.strategy", "unclean.recovery.timeout.ms"
MANAGER = "unclean.recovery.manager.enabled"
OWN, OF_BROKER, OF_CLUSTER, OF_FILE, DEFAULT = 1, 2, 3, 4, 5


def describe(*resources: tuple[int, str], keys: Sequence[str] | None = None, version: int = 4) -> Any:
    made = DescribeConfigsRequest.DescribeConfigsResource
    asked = [
        made(resource_type=kind, resource_name=one, configuration_keys=None if keys is None else list(keys))
        for kind, one in resources
    ]
    return DescribeConfigsRequest(version=version, resources=asked, include_synonyms=True)


def alter(
    *resources: tuple[int, str, Sequence[tuple[str, int, str | None]]], validate_only: bool = False, version: int = 1
) -> Any:
    made = IncrementalAlterConfigsRequest.AlterConfigsResource
    asked = [
        made(
            resource_type=kind,
            resource_name=one,
            configs=[
                made.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in changes
            ],
        )
        for kind, one, changes in resources
    ]
    return IncrementalAlterConfigsRequest(version=version, resources=asked, validate_only=validate_only)


def shown(cluster: World, kind: int, of: str, key: str, *, node: int = 1) -> tuple[Any, ...]:
    """The value, its source, and the synonyms of one config."""
    [result] = ask(cluster, describe((kind, of), keys=[key]), node=node).results
    assert name(result.error_code) == "NONE"
    [found] = result.configs
    return (found.value, found.config_source, [(one.name, one.value, one.source) for one in found.synonyms])


def changed(cluster: World, *resources: Any, node: int = 1, **options: Any) -> list[tuple[str, str | None]]:
    answer = ask(cluster, alter(*resources, **options), node=node)
    return [(name(one.error_code), one.error_message) for one in answer.responses]


# DescribeConfigs.


def test_where_a_topics_values_come_from() -> None:
    cluster = world((1, 2, 3))
    assert shown(cluster, TOPIC, "orders", MIN_ISR) == ("2", OF_CLUSTER, [(MIN_ISR, "2", 3), (MIN_ISR, "1", 5)])
    assert shown(cluster, TOPIC, "orders", UNCLEAN) == ("false", DEFAULT, [(UNCLEAN, "false", 5)])
    assert shown(cluster, TOPIC, "orders", "cleanup.policy") == (
        "delete",
        DEFAULT,
        [("log.cleanup.policy", "delete", 5)],
    )
    assert shown(cluster, TOPIC, "orders", "retention.ms") == ("604800000", DEFAULT, [])
    changed(cluster, (TOPIC, "orders", [(MIN_ISR, SET, "1"), ("retention.ms", SET, "9")]))
    changed(cluster, (BROKER, "1", [("log.cleanup.policy", SET, "compact"), ("log.retention.ms", SET, "7")]))
    assert shown(cluster, TOPIC, "orders", MIN_ISR)[:2] == ("1", OWN)
    assert shown(cluster, TOPIC, "orders", "retention.ms") == (
        "9",
        OWN,
        [("retention.ms", "9", 1), ("log.retention.ms", "7", 2)],
    )
    assert shown(cluster, TOPIC, "orders", "cleanup.policy")[:2] == ("compact", OF_BROKER)
    assert shown(cluster, TOPIC, "orders", "cleanup.policy", node=2)[:2] == ("delete", DEFAULT)


def test_all_configs_of_a_topic_and_of_a_broker() -> None:
    cluster = world((1, 2, 3))
    topic, broker = ask(cluster, describe((TOPIC, "orders"), (BROKER, "1"))).results
    assert (len(topic.configs), len(broker.configs)) == (33, 52)
    found = {one.name: one for one in broker.configs}
    rack, key, threads = found["broker.rack"], found["ssl.keystore.key"], found["num.io.threads"]
    assert (rack.value, rack.config_source, rack.read_only) == ("az1", OF_FILE, True)
    assert (key.value, key.is_sensitive, key.config_type) == (None, True, 9)
    assert (threads.value, threads.read_only, threads.config_type) == ("8", False, 3)
    assert found["node.id"].value == "1"


def test_the_cluster_wide_configs_are_those_that_are_set() -> None:
    cluster = world((1, 2, 3))
    changed(cluster, (BROKER, "", [("own.of.somebody", SET, "secret")]))
    [result] = ask(cluster, describe((BROKER, ""))).results
    found = [(one.name, one.value, one.config_source, one.is_sensitive) for one in result.configs]
    # What Kafka does not know it does not show.
    assert found == [(MIN_ISR, "2", OF_CLUSTER, False), ("own.of.somebody", None, OF_CLUSTER, True)]
    assert result.configs[1].synonyms[0].value is None


@pytest.mark.parametrize(
    ("kind", "of", "error", "message"),
    [
        (TOPIC, "nope", "UNKNOWN_TOPIC_OR_PARTITION", ""),
        (
            TOPIC,
            "n o",
            "INVALID_TOPIC_EXCEPTION",
            "Topic name is invalid: 'n o' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'",
        ),
        (BROKER, "2", "INVALID_REQUEST", "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x", "INVALID_REQUEST", "Broker id must be an integer, but it is: x"),
        (LOGGER, "", "INVALID_REQUEST", "Broker id must not be empty"),
        (LOGGER, "2", "INVALID_REQUEST", "Unexpected broker id, expected 1 but received 2"),
    ],
)
def test_what_cannot_be_described(kind: int, of: str, error: str, message: str) -> None:
    [result] = ask(world((1, 2, 3)), describe((kind, of))).results
    assert (name(result.error_code), result.error_message, result.configs) == (error, message, [])


def test_an_unknown_kind_fails_the_whole_request() -> None:
    answer = ask(world((1, 2, 3)), describe((3, "orders"), (TOPIC, "orders")))
    assert [name(one.error_code) for one in answer.results] == ["INVALID_REQUEST", "INVALID_REQUEST"]


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_value_and_source(version: int) -> None:
    [result] = ask(world((1, 2, 3)), describe((TOPIC, "orders"), keys=[MIN_ISR, "nonsense"], version=version)).results
    assert [(one.name, one.value, one.config_source) for one in result.configs] == [(MIN_ISR, "2", OF_CLUSTER)]


@pytest.mark.parametrize("keys", [None, [MIN_ISR], [MIN_ISR, "cleanup.policy"]])
@pytest.mark.parametrize("version", range(1, 5))
def test_topics_asked_for_together_have_the_configs_that_each_of_them_has_alone(
    version: int, keys: Sequence[str] | None
) -> None:
    """What topics that set the same have behind their names is encoded once, and is kafka-python's encoding."""
    cluster = world((1, 2, 3), topics=3, partitions=2)
    own = (TOPIC, "topic-000001", [("retention.ms", SET, "5"), (MIN_ISR, SET, "1")])
    brokers = (BROKER, "1", [("log.retention.ms", SET, "7")])
    assert changed(cluster, own, brokers) == [("NONE", None), ("NONE", None)]
    asked = [(TOPIC, "topic-000000"), (TOPIC, "topic-000001"), (BROKER, "1"), (TOPIC, "orders"), (TOPIC, "nope")]
    asked += [(TOPIC, "topic-000002"), (TOPIC, "x" * 249), (TOPIC, "topic-000001")]
    for node in (1, 2):
        together = [resource for resource in asked if resource != (BROKER, "1") or node == 1]
        question = describe(*together, keys=keys, version=version)
        encoded = answered(cluster, question, node=node)
        answer = ask(cluster, question, node=node)
        assert encoded_again(answer, version) == encoded
        alone = [ask(cluster, describe(one, keys=keys, version=version), node=node).results for one in together]
        assert list(answer.results) == [result for [result] in alone]
        values = {one.resource_name: {entry.name: entry.value for entry in one.configs} for one in answer.results}
        assert values["topic-000001"][MIN_ISR] == "1"
        assert values["topic-000002"][MIN_ISR] == "2"


def test_who_may_see_configs() -> None:
    cluster = world((1, 2, 3))
    cluster.denied |= {Denied("topic", "DESCRIBE_CONFIGS", "orders"), Denied("cluster", "DESCRIBE_CONFIGS")}
    answer = ask(cluster, describe((TOPIC, "orders"), (BROKER, "1"), (TOPIC, "nope")))
    assert [(one.resource_name, name(one.error_code), one.error_message) for one in answer.results] == [
        ("nope", "UNKNOWN_TOPIC_OR_PARTITION", ""),
        ("orders", "TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed."),
        ("1", "CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed."),
    ]


@pytest.mark.parametrize("rules", list(RULE_SETS))
def test_the_recovery_strategy_is_told_where_the_rules_have_one(rules: str) -> None:
    [result] = ask(world((1, 2, 3), rules=rules), describe((BROKER, "1"), keys=["unclean.recovery.strategy"])).results
    strategies = {
        "kip966": [("balanced", DEFAULT)],
        "kip966-none": [("none", OF_FILE)],
        "kip966-balanced": [("balanced", OF_FILE)],
        "kip966-aggressive": [("aggressive", OF_FILE)],
    }
    assert [(one.value, one.config_source) for one in result.configs] == strategies.get(rules, [])


def test_the_recovery_strategy_of_a_topic_and_of_the_cluster_are_obeyed() -> None:
    """KIP-966, "Unclean recovery" (004): "will be a topic-level config"; what is behind it is the cluster's."""
    cluster = world((1, 2, 3), rules="kip966-balanced")

    def in_force() -> str:
        return str(cluster.running.cluster.controller.rules_of("orders").recovery)

    assert (in_force(), shown(cluster, TOPIC, "orders", STRATEGY)[:2]) == ("balanced", ("balanced", OF_FILE))
    assert changed(cluster, (BROKER, "", [(STRATEGY, SET, "Aggressive")])) == [("NONE", None)]
    assert (in_force(), shown(cluster, TOPIC, "orders", STRATEGY)[:2]) == ("aggressive", ("aggressive", OF_CLUSTER))
    assert shown(cluster, BROKER, "1", STRATEGY)[:2] == ("aggressive", OF_CLUSTER)
    assert changed(cluster, (TOPIC, "orders", [(STRATEGY, SET, "Manual")])) == [("NONE", None)]
    assert in_force() == "none"
    assert shown(cluster, TOPIC, "orders", STRATEGY, node=2) == (
        "none",
        OWN,
        [(STRATEGY, "none", 1), (STRATEGY, "aggressive", 3), (STRATEGY, "balanced", 4), (STRATEGY, "balanced", 5)],
    )
    assert changed(cluster, (TOPIC, "orders", [(STRATEGY, DELETE, None)])) == [("NONE", None)]
    assert changed(cluster, (BROKER, "", [(STRATEGY, DELETE, None)])) == [("NONE", None)]
    assert in_force() == "balanced"


def test_the_recovery_timeout_is_the_clusters_and_obeyed() -> None:
    """KIP-966, "Config changes": 5 minutes is the default."""
    cluster = world((1, 2, 3), rules="kip966-balanced")
    assert shown(cluster, BROKER, "1", TIMEOUT)[:2] == ("300000", DEFAULT)
    assert changed(cluster, (BROKER, "", [(TIMEOUT, SET, "20000")])) == [("NONE", None)]
    assert shown(cluster, BROKER, "1", TIMEOUT)[:2] == ("20000", OF_CLUSTER)
    assert cluster.running.cluster.manager.limits.timeout_ms == 20_000
    assert changed(cluster, (BROKER, "", [(TIMEOUT, DELETE, None)])) == [("NONE", None)]
    assert cluster.running.cluster.manager.limits.timeout_ms == 300_000


@pytest.mark.parametrize(
    ("resource", "key", "value", "refusal"),
    [
        (
            (TOPIC, "orders"),
            STRATEGY,
            "fast",
            "INVALID_CONFIG: String must be one of (case insensitive): none, balanced",
        ),
        ((BROKER, ""), TIMEOUT, "-1", "INVALID_REQUEST: Value must be at least 0"),
        ((TOPIC, "orders"), TIMEOUT, "1", f"INVALID_CONFIG: Unknown topic config name: {TIMEOUT}"),
        ((BROKER, "1"), STRATEGY, "none", f"INVALID_CONFIG: Broker-level {STRATEGY} cannot be altered"),
        ((BROKER, "1"), TIMEOUT, "1", f"INVALID_CONFIG: Broker-level {TIMEOUT} cannot be altered"),
    ],
)
def test_recovery_configs_that_would_not_be_obeyed_are_refused(
    resource: tuple[int, str], key: str, value: str, refusal: str
) -> None:
    [(error, message)] = changed(world((1, 2, 3), rules="kip966-balanced"), (*resource, [(key, SET, value)]))
    expected, words = refusal.split(": ", 1)
    assert error == expected
    assert words in str(message)


@pytest.mark.parametrize(("rules", "enabled"), [("kip966-balanced", "true"), ("kip966-manager-off", "false")])
def test_the_recovery_manager_is_switched_in_the_file(rules: str, enabled: str) -> None:
    """KIP-966, "Compatibility": "Unclean Recovery is guarded by the feature flag unclean.recovery.manager.enabled"."""
    cluster = world((1, 2, 3), rules=rules)
    assert shown(cluster, BROKER, "1", MANAGER)[:2] == (enabled, OF_FILE)
    [(error, why)] = changed(cluster, (BROKER, "", [(MANAGER, SET, "true")]))
    assert (error, why) == ("INVALID_REQUEST", f"Cannot update these configs dynamically: [{MANAGER}]")


@pytest.mark.parametrize("resource", [(TOPIC, "orders"), (BROKER, "")])
def test_without_the_recovery_manager_its_configs_are_refused(resource: tuple[int, str]) -> None:
    cluster = world((1, 2, 3), rules="kip966-manager-off")
    [(error, why)] = changed(cluster, (*resource, [(STRATEGY, SET, "none")]))
    assert (error, why) == ("INVALID_CONFIG", f"{STRATEGY} needs {MANAGER}=true")


def test_released_kafka_has_no_recovery_configs() -> None:
    [(refused, why)] = changed(world((1, 2, 3)), (TOPIC, "orders", [(STRATEGY, SET, "none")]))
    assert (refused, why) == ("INVALID_CONFIG", f"Unknown topic config name: {STRATEGY}")


# IncrementalAlterConfigs.


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            [(MIN_ISR, SET, "0")],
            "INVALID_CONFIG",
            f"Invalid value 0 for configuration {MIN_ISR}: Value must be at least 1",
        ),
        (
            [(MIN_ISR, SET, "x")],
            "INVALID_CONFIG",
            f"Invalid value x for configuration {MIN_ISR}: Not a number of type INT",
        ),
        (
            [(MIN_ISR, SET, "99999999999")],
            "INVALID_CONFIG",
            f"Invalid value 99999999999 for configuration {MIN_ISR}: Not a number of type INT",
        ),
        (
            [(UNCLEAN, SET, "yes")],
            "INVALID_CONFIG",
            f"Invalid value yes for configuration {UNCLEAN}: Expected value to be either true or false",
        ),
        ([("nonsense", SET, "0")], "INVALID_CONFIG", "Unknown topic config name: nonsense"),
        ([("nonsense", DELETE, None)], "NONE", None),
        ([(MIN_ISR, SET, None)], "INVALID_REQUEST", f"Null value not supported for : {MIN_ISR}"),
        ([(MIN_ISR, SET, "1"), (MIN_ISR, SET, "2")], "INVALID_REQUEST", "Error due to duplicate config keys"),
        (
            [(MIN_ISR, APPEND, "2")],
            "INVALID_CONFIG",
            f"Can't APPEND to key {MIN_ISR} because its type is not LIST.",
        ),
        ([(MIN_ISR, 7, "2")], "UNKNOWN_SERVER_ERROR", None),
        ([(UNCLEAN, SET, "TRUE"), ("retention.ms", SET, "x")], "INVALID_CONFIG", None),
    ],
)
def test_values_that_a_topic_can_have_and_those_that_it_cannot(changes: Any, error: str, message: str | None) -> None:
    cluster = world((1, 2, 3))
    [(found, words)] = changed(cluster, (TOPIC, "orders", changes))
    assert found == error
    if message is not None:
        assert words == message
    # A resource gets all of its changes or none.
    assert cluster.running.cluster.controller.topics.get("orders", Configs()) == Configs()
    assert not cluster.topic_configs.get("orders")


@pytest.mark.parametrize(
    ("of", "error", "message"),
    [
        ("nope", "UNKNOWN_TOPIC_OR_PARTITION", "The topic 'nope' does not exist."),
        (
            "n o",
            "INVALID_TOPIC_EXCEPTION",
            "Topic name is invalid: 'n o' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'",
        ),
        ("", "INVALID_REQUEST", "Default topic resources are not allowed."),
    ],
)
def test_topics_that_have_no_configs(of: str, error: str, message: str) -> None:
    assert changed(world((1, 2, 3)), (TOPIC, of, [(MIN_ISR, SET, "2")])) == [(error, message)]


@pytest.mark.parametrize(
    ("of", "changes", "error", "message"),
    [
        (
            "",
            [(MIN_ISR, SET, "0")],
            "INVALID_REQUEST",
            f"Invalid value 0 for configuration {MIN_ISR}: Value must be at least 1",
        ),
        (
            "",
            [(MIN_ISR, DELETE, None)],
            "INVALID_CONFIG",
            f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.",
        ),
        (
            "1",
            [(MIN_ISR, SET, "2")],
            "INVALID_CONFIG",
            f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.",
        ),
        ("2", [("num.io.threads", SET, "2")], "INVALID_REQUEST", "Unexpected broker id, expected 1, but received 2"),
        ("x", [("num.io.threads", SET, "2")], "INVALID_REQUEST", "Node id must be an integer, but it is: x"),
        (
            "1",
            [("num.io.threads", SET, "xx")],
            "INVALID_REQUEST",
            "Invalid value xx for configuration num.io.threads: Not a number of type INT",
        ),
        (
            "",
            [("process.roles", SET, "2")],
            "INVALID_REQUEST",
            "Cannot update these configs dynamically: [process.roles]",
        ),
        ("1", [("num.io.threads", SET, "9")], "NONE", None),
        ("1", [(UNCLEAN, SET, "true")], "NONE", None),
        ("", [("nonsense", SET, "2")], "NONE", None),
    ],
)
def test_what_can_be_changed_of_a_broker(of: str, changes: Any, error: str, message: str | None) -> None:
    assert changed(world((1, 2, 3)), (BROKER, of, changes)) == [(error, message)]


def test_a_controller_changes_what_is_a_brokers() -> None:
    cluster = world((1, 2, 3))
    wanted = [("num.io.threads", SET, "9")]
    assert changed(cluster, (BROKER, "9", wanted), node=CONTROLLER_ID) == [
        ("BROKER_ID_NOT_REGISTERED", "No node with id 9 found.")
    ]
    assert changed(cluster, (BROKER, "2", wanted), node=CONTROLLER_ID) == [("NONE", None)]
    assert shown(cluster, BROKER, "2", "num.io.threads", node=2)[:2] == ("9", OF_BROKER)
    assert shown(cluster, BROKER, "1", "num.io.threads")[:2] == ("8", DEFAULT)
    twice = (TOPIC, "orders", [(MIN_ISR, SET, "2")])
    assert changed(cluster, twice, twice, node=CONTROLLER_ID) == [("INVALID_REQUEST", "Duplicate resource.")]
    assert changed(cluster, twice, twice) == [("INVALID_REQUEST", "Each resource must appear at most once.")] * 2


def test_lists_grow_and_shrink() -> None:
    cluster = world((1, 2, 3))
    for operation, value, after in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (DELETE, None, "delete"),
    ):
        assert changed(cluster, (TOPIC, "orders", [("cleanup.policy", operation, value)])) == [("NONE", None)]
        assert shown(cluster, TOPIC, "orders", "cleanup.policy")[0] == after


def _waiting() -> World:
    """orders:0 and a topic that is alike others have no leader, and an ELR."""
    cluster = world((1, 2, 3), topics=2)
    for broker in (3, 2, 1):
        cluster.running.kill(broker)
        cluster.running.advance(cluster.running.now_ms + 5000)
    return cluster


def _elr(cluster: World, topic: str) -> tuple[int, ...]:
    state = cluster.state(TopicPartition(topic, 0))
    assert state is not None
    assert state.elr is not None
    return tuple(sorted(state.elr))


def test_min_isr_of_a_topic_clears_the_elr_of_that_topic() -> None:
    cluster = _waiting()
    topics = ("orders", "topic-000000", "topic-000001")
    assert [_elr(cluster, topic) for topic in topics] == [(1, 2)] * 3
    changed(cluster, (TOPIC, "topic-000001", [(MIN_ISR, SET, "1")]), validate_only=True)
    assert [_elr(cluster, topic) for topic in topics] == [(1, 2)] * 3
    assert changed(cluster, (TOPIC, "topic-000001", [(MIN_ISR, SET, "1")])) == [("NONE", None)]
    assert [_elr(cluster, topic) for topic in topics] == [(1, 2), (1, 2), ()]
    assert changed(cluster, (TOPIC, "orders", [("retention.ms", SET, "1")])) == [("NONE", None)]
    assert [_elr(cluster, topic) for topic in topics] == [(1, 2), (1, 2), ()]
    assert changed(cluster, (BROKER, "", [(MIN_ISR, SET, "2")])) == [("NONE", None)]
    assert [_elr(cluster, topic) for topic in topics] == [(), (), ()]
    assert cluster.running.cluster.controller.topics == {"topic-000001": Configs(min_isr=1)}


def test_both_levels_of_the_configs_that_rule_elections() -> None:
    cluster = world((1, 2, 3))
    controller = lambda: cluster.running.cluster.controller  # noqa: E731 - it is another one with each change
    changed(cluster, (BROKER, "", [(UNCLEAN, SET, "true"), (MIN_ISR, SET, "3")]))
    changed(cluster, (TOPIC, "orders", [(UNCLEAN, SET, "False"), (MIN_ISR, SET, "1")]))
    assert controller().cluster == Configs(3, unclean_leader_election=True)
    assert controller().config("orders") == Configs(1, unclean_leader_election=False)
    assert shown(cluster, TOPIC, "orders", UNCLEAN)[0] == "false"
    changed(cluster, (TOPIC, "orders", [(UNCLEAN, DELETE, None), (MIN_ISR, DELETE, None)]))
    changed(cluster, (BROKER, "", [(UNCLEAN, DELETE, None)]))
    assert controller().config("orders") == Configs(3, unclean_leader_election=False)


def test_without_elr_min_isr_can_be_taken_back_everywhere() -> None:
    cluster = world((1, 2, 3), rules="kraft")
    assert changed(cluster, (BROKER, "", [(MIN_ISR, DELETE, None)])) == [("NONE", None)]
    assert changed(cluster, (BROKER, "1", [(MIN_ISR, SET, "2")])) == [("NONE", None)]
    assert cluster.running.cluster.controller.config("orders").min_isr == 1


def test_who_may_change_configs() -> None:
    cluster = world((1, 2, 3))
    cluster.denied |= {Denied("topic", "ALTER_CONFIGS", "orders"), Denied("cluster", "ALTER_CONFIGS")}
    wanted = [(UNCLEAN, SET, "true")]
    assert changed(cluster, (TOPIC, "orders", wanted), (BROKER, "", wanted)) == [
        ("TOPIC_AUTHORIZATION_FAILED", None),
        ("CLUSTER_AUTHORIZATION_FAILED", None),
    ]
    assert cluster.running.cluster.controller.config("orders").unclean_leader_election is False


def test_a_broker_that_is_cut_off_writes_once_it_reaches_the_controller() -> None:
    cluster = world((1, 2, 3))
    cluster.running.sever(2, CONTROLLER_ID)
    waiting = later(cluster, alter((TOPIC, "orders", [(MIN_ISR, SET, "1")])), node=2)
    assert waiting.until_ms == cluster.running.now_ms + REQUEST_TIMEOUT_MS
    assert waiting.poll() is None
    assert [name(one.error_code) for one in waiting.expired().responses] == ["REQUEST_TIMED_OUT"]
    assert cluster.running.cluster.controller.config("orders").min_isr == 2
    cluster.running.heal()
    assert waiting.poll() is not None
    assert cluster.running.cluster.controller.config("orders").min_isr == 1
