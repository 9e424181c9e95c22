"""What brokers' answers become for ``kelr doctor``: facts, or why there are none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kelr.model import ConfigSource
from kelr.model.checkup import ConfigRead, LogDirectory, NotRead, Quorum, QuorumNode
from kelr.sources.live.checkup_answers import (
    announced_by,
    configs_of,
    defaults_of,
    directories_of,
    own_configs,
)
from kelr.sources.live.describe import quorum_of
from kelr.sources.live.transport import Failure, FailureKind

SILENT = Failure(FailureKind.TIMED_OUT, "no answer in time")
CLUSTER_UNAUTHORIZED, TOPIC_UNAUTHORIZED = 31, 29


def made(**fields: Any) -> Any:
    return SimpleNamespace(**fields)


def synonym(value: str, source: int) -> Any:
    return made(value=value, source=source)


def test_a_broker_that_is_silent_is_so_for_everything() -> None:
    why = NotRead("no answer in time")
    assert announced_by(SILENT) == configs_of(SILENT) == defaults_of(SILENT) == directories_of(SILENT) == why
    assert quorum_of(SILENT, asked_ms=0, answered_ms=1) == NotRead("the controller: no answer in time")


def test_a_value_of_the_file_is_seen_behind_a_dynamic_one() -> None:
    dynamic = made(name="min.insync.replicas", value="2", config_source=3, synonyms=[synonym("2", 3), synonym("3", 4)])
    static = made(name="x", value="true", config_source=4, synonyms=[])
    answer = made(results=[made(error_code=0, configs=[dynamic, static])])
    assert configs_of(answer) == {
        "min.insync.replicas": ConfigRead("2", ConfigSource.CLUSTER_DEFAULT, "3"),
        "x": ConfigRead("true", ConfigSource.STATIC, "true"),
    }


def test_configs_that_may_not_be_seen_name_the_acl() -> None:
    answer = made(results=[made(error_code=CLUSTER_UNAUTHORIZED, configs=[])])
    assert configs_of(answer) == NotRead("CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the cluster")
    assert configs_of(made(results=[])) == NotRead("the answer is empty")


def test_defaults_leave_out_what_is_hidden() -> None:
    configs = [made(name="a", value="1"), made(name="secret", value=None)]
    assert defaults_of(made(results=[made(error_code=0, configs=configs)])) == {"a": "1"}


def test_directories() -> None:
    results = [made(error_code=0, log_dir="/d1"), made(error_code=56, log_dir="/d2")]
    assert directories_of(made(version=4, error_code=0, results=results)) == (
        LogDirectory("/d1"),
        LogDirectory("/d2", "KAFKA_STORAGE_ERROR"),
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            made(version=3, error_code=CLUSTER_UNAUTHORIZED, results=[]),
            "CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE on the cluster",
        ),
        (made(version=2, results=[]), "the answer is empty, as it is without DESCRIBE on the cluster"),
    ],
)
def test_directories_that_may_not_be_seen_are_not_none(answer: Any, why: str) -> None:
    assert directories_of(answer) == NotRead(why)


def quorum(version: int, **partition: Any) -> Any:
    voter = made(replica_id=100, log_end_offset=9, last_fetch_timestamp=5, last_caught_up_timestamp=-1)
    fields = {"error_code": 0, "leader_id": 100, "leader_epoch": 2, "current_voters": [voter], "observers": []}
    listener = made(host="c", port=9093)
    return made(
        version=version,
        error_code=0,
        topics=[made(partitions=[made(**{**fields, **partition})])],
        nodes=[made(node_id=100, listeners=[listener, listener])],
    )


def test_a_quorum() -> None:
    found = quorum_of(quorum(2), asked_ms=1, answered_ms=3)
    assert found == Quorum(100, 2, (QuorumNode(100, 9, 5, None),), (), ("c:9093",), 1, 3)
    assert found.now_ms == 5


def test_old_brokers_tell_neither_times_nor_listeners() -> None:
    found = quorum_of(quorum(0), asked_ms=1, answered_ms=3)
    assert isinstance(found, Quorum)
    assert (found.now_ms, found.listeners) == (None, ())


@pytest.mark.parametrize(
    ("partition", "why"),
    [
        ({"leader_id": -1}, "no controller is active"),
        ({"error_code": CLUSTER_UNAUTHORIZED}, "CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE on the cluster"),
    ],
)
def test_a_quorum_that_is_not_told(partition: Any, why: str) -> None:
    assert quorum_of(quorum(2, **partition), asked_ms=1, answered_ms=3) == NotRead(why)


def test_what_is_set_on_topics_themselves() -> None:
    """Of a config with a default, such as flush.ms, the source tells whether it is the topic's own."""
    configs = [made(name="x", value="*", config_source=1), made(name="y", value="", config_source=1)]
    throttled = made(resource_name="a", error_code=0, configs=configs)
    fine = made(resource_name="b", error_code=0, configs=[made(name="flush.ms", value="5", config_source=5)])
    hidden = made(resource_name="c", error_code=TOPIC_UNAUTHORIZED, configs=[])
    found, unknown = own_configs(made(results=[throttled, fine, hidden]), ["a", "b", "c"])
    assert found == {"a": {"x": "*"}}
    assert [(one.topics, one.why) for one in unknown] == [
        (("c",), "TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the topic")
    ]
    assert own_configs(SILENT, ["a"])[1][0].topics == ("a",)
