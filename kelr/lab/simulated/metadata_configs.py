"""The configs that a metadata log has told of: by comparing what the world has with what was written last.

Source: ConfigurationControlManager of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, TypeAlias

from kelr.controller import Configs, ControllerState, RecoveryEvent, events
from kelr.controller.state import ELECTION_CONFIGS
from kelr.lab.simulated import metadata_records as made
from kelr.lab.simulated.metadata_records import BROKER, TOPIC, Record

if TYPE_CHECKING:
    from kelr.lab.simulated.world import World

MIN_ISR = ELECTION_CONFIGS[0]

Key: TypeAlias = tuple[int, str, str]
"""Kind of resource, its name, the config's name."""


class WrittenConfigs:
    """What the log has said of configs."""

    def __init__(self) -> None:
        self._told: dict[Key, str] = {}

    def cleared_elr(self, event: events.Event | RecoveryEvent | None, before: ControllerState) -> list[Record]:
        """A record of min.insync.replicas brings the end of ELRs with it (createClearElrRecordsAsNeeded); KIP-966
        clears partition by partition, where min ISR is met."""
        if before.rules.kip966 or not before.rules.elr or not _writes_min_isr(event, before):
            return []
        assert isinstance(event, events.ConfigWritten | events.ConfigDeleted)
        return [made.elr_cleared(event.topic)]

    def changed(
        self,
        before: ControllerState,
        after: ControllerState,
        event: events.Event | RecoveryEvent | None,
        topics: Container[str],
    ) -> Iterator[Record]:
        """The configs that the state machine knows; one that is written again cluster-wide is told again.

        Args:
            topics: those that the log has told of.
        """
        again = isinstance(event, events.ConfigWritten) and event.topic is None and event.min_isr is not None
        if again or after.cluster is not before.cluster:
            yield from self._level(BROKER, "", after.cluster, again=again)
        if after.topics is before.topics:
            return
        deleted = event.topic if isinstance(event, events.TopicDeleted) else None
        for topic in sorted({*before.topics, *after.topics} - {deleted}):
            if topic in topics and before.topics.get(topic) != after.topics.get(topic):
                yield from self._level(TOPIC, topic, after.topics.get(topic, Configs()))

    def differ(self, world: World) -> bool:
        """Whether a config that the state machine does not know has another value than the log says."""
        return self._others_told() != _others(world)

    def others(self, world: World) -> Iterator[Record]:
        """Those that have."""
        told, now = self._others_told(), _others(world)
        for key in sorted({*told, *now}):
            yield from self._one(key, now.get(key))

    def forget_topic(self, topic: str) -> None:
        """A topic's configs go with it, without records of their own (replay(RemoveTopicRecord))."""
        self._told = {key: value for key, value in self._told.items() if key[:2] != (TOPIC, topic)}

    def _level(self, kind: int, resource: str, configs: Configs, *, again: bool = False) -> Iterator[Record]:
        for name in ELECTION_CONFIGS:
            yield from self._one((kind, resource, name), configs.named.get(name), again=again and name == MIN_ISR)

    def _one(self, key: Key, value: str | None, *, again: bool = False) -> Iterator[Record]:
        if self._told.get(key) == value and not again:
            return
        if value is None:
            del self._told[key]
        else:
            self._told[key] = value
        yield made.config(*key, value)

    def _others_told(self) -> dict[Key, str]:
        return {key: value for key, value in self._told.items() if key[2] not in ELECTION_CONFIGS}


def _others(world: World) -> dict[Key, str]:
    levels = ((TOPIC, world.topic_configs), (BROKER, world.broker_configs))
    return {
        (kind, resource, name): value
        for kind, resources in levels
        for resource, configs in resources.items()
        for name, value in configs.items()
        if name not in ELECTION_CONFIGS
    }


def _writes_min_isr(event: events.Event | RecoveryEvent | None, before: ControllerState) -> bool:
    """Whether a record of min.insync.replicas is written: a value that a topic has already is not written again."""
    if isinstance(event, events.ConfigWritten):
        level = before.topics.get(event.topic or "", Configs())
        return event.min_isr is not None and (event.topic is None or event.min_isr != level.min_isr)
    if isinstance(event, events.ConfigDeleted):
        return event.min_isr and (event.topic is None or before.topics.get(event.topic, Configs()).min_isr is not None)
    return False
