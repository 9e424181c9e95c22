"""The two topic configs that elections depend on, through confluent-kafka's DescribeConfigs."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from kelr.model import ConfigSource, TopicConfig
from kelr.sources.connection import ConnectionSettings

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
TOPICS_A_CALL = 100
_SOURCES = {
    1: ConfigSource.TOPIC,
    2: ConfigSource.BROKER,
    3: ConfigSource.CLUSTER_DEFAULT,
    4: ConfigSource.STATIC,
    5: ConfigSource.DEFAULT,
}
"""DescribeConfigsResponse ConfigSource: 1 topic, 2 dynamic broker, 3 dynamic cluster default, 4 static, 5 default."""


def read_topic_configs(settings: ConnectionSettings, topics: Collection[str]) -> Mapping[str, TopicConfig]:
    """One `TopicConfig` for each topic; where it could not be read, with `error` set to Kafka's name of the reason."""
    if not topics:
        return {}
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # noqa: PLC0415

    client = AdminClient(settings.confluent())
    deadline = time.monotonic() + settings.timeout_s
    wanted, found = sorted(set(topics)), dict[str, TopicConfig]()
    for at in range(0, len(wanted), TOPICS_A_CALL):
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in wanted[at : at + TOPICS_A_CALL]]
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            found.update({resource.name: TopicConfig(error="REQUEST_TIMED_OUT") for resource in resources})
            continue
        futures = client.describe_configs(resources, request_timeout=left_s)
        found.update({resource.name: _outcome(future, deadline) for resource, future in futures.items()})
    return found


def _outcome(future: Future[Any], deadline: float) -> TopicConfig:
    from confluent_kafka import KafkaException  # noqa: PLC0415

    try:
        # librdkafka keeps its own time; the second is for it to say so itself.
        return _config(future.result(timeout=max(0.0, deadline - time.monotonic()) + 1.0))
    except FutureTimeout:
        return TopicConfig(error="REQUEST_TIMED_OUT")
    except KafkaException as error:
        return TopicConfig(error=_name(error))


def _config(entries: Mapping[str, Any]) -> TopicConfig:
    """Each value is text on the wire; a missing one (hidden, or a broker that has no such config) stays unknown."""
    min_isr, unclean = entries.get(MIN_ISR), entries.get(UNCLEAN)
    return TopicConfig(
        min_insync_replicas=int(min_isr.value) if min_isr is not None and min_isr.value else None,
        min_insync_replicas_source=_source(min_isr),
        unclean_leader_election=unclean.value == "true" if unclean is not None and unclean.value else None,
        unclean_leader_election_source=_source(unclean),
    )


def _source(entry: Any) -> ConfigSource:
    return ConfigSource.UNKNOWN if entry is None else _SOURCES.get(int(entry.source), ConfigSource.UNKNOWN)


def _name(error: Any) -> str:
    """Kafka's name of an error; librdkafka's own (a leading underscore) say what happened on this side."""
    name = str(error.args[0].name()) if error.args else "UNKNOWN_SERVER_ERROR"
    return {"_TIMED_OUT": "REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION"}.get(
        name, name.lstrip("_")
    )
