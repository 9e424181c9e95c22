"""The topic configs that elections, and what they cost, depend on, through DescribeConfigs.

librdkafka's DescribeConfigs has no way to name configs and fetches all of them, some forty a topic, over a connection
of its own. Asked for by name on the connection that is there, they are a small answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kelr.errors import ConnectError
from kelr.model import ConfigSource, TopicConfig
from kelr.model.cluster import DISKLESS, MIRROR, REMOTE_STORAGE, foreign_by
from kelr.protocol.codec import MalformedError, decoded, element_decoder, message_class, skipped_tags, uvarint
from kelr.protocol.error_codes import error_name
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.failures import NONE, with_acl
from kelr.sources.live.requests import describe_configs
from kelr.sources.live.transport import Failure

# DescribeConfigs answers as bytes: topics whose configs are the same to the byte share one value.
#
# An answer tells of one topic after the other, each time its name and what is set, and nearly all topics of a cluster
# have the same set: what follows a name is then compared, and decoded once.


_RESPONSE = "DescribeConfigsResponse"
_LEAST_FLEXIBLE = 4
"""The first version whose lengths are varints."""
_GOOD = (b"\x00\x00\x00\x02", b"\x00\x00\x01\x02")
"""No error, no words about it (null or empty), and a topic."""
_HEAD_BYTES = 4
_MOST_KNOWN = 16


class ConfigReader:
    """Reads answers, and remembers what they held.

    Args:
        meaning: makes the configs of one result of the answer.
    """

    def __init__(self, meaning: Callable[[Any], TopicConfig]) -> None:
        self._meaning = meaning
        self._known: dict[tuple[int, bytes], TopicConfig] = {}

    def __call__(self, body: bytes, version: int) -> Mapping[str, TopicConfig]:
        """Topic to configs.

        Raises:
            MalformedError: the bytes are no such answer.
        """
        if version < _LEAST_FLEXIBLE:
            results = message_class(_RESPONSE).decode(body, version).results
            return {result.resource_name: self._meaning(result) for result in results}
        found: dict[str, TopicConfig]
        found, end = decoded(lambda data, at: self._results(data, at, version), body, 4)
        if end != len(body):
            raise MalformedError("the answer has another length than it says")
        return found

    def _results(self, data: bytes, at: int, version: int) -> tuple[dict[str, TopicConfig], int]:
        count, at = uvarint(data, at)
        if not 0 < count <= len(data):
            raise MalformedError("the answer is shorter than it says")
        found: dict[str, TopicConfig] = {}
        for _ in range(count - 1):
            behind_name = self._behind_name(data, at)
            known = None if behind_name is None else self._same_as_before(data, behind_name, version)
            if known is not None:
                found[data[at + _HEAD_BYTES + 1 : behind_name].decode("utf-8")], at = known
                continue
            result, end = element_decoder(_RESPONSE, version, "results")(data, at)
            config = found[result.resource_name] = self._meaning(result)
            if behind_name is not None and len(self._known) < _MOST_KNOWN:
                self._known[version, data[behind_name:end]] = config
            at = end
        return found, skipped_tags(data, at)

    def _behind_name(self, data: bytes, at: int) -> int | None:
        """Where a topic's configs begin; None where they could not be read, or its name is very long."""
        if not data.startswith(_GOOD, at):
            return None
        length = data[at + _HEAD_BYTES] - 1
        end = at + _HEAD_BYTES + 1 + length
        return end if 0 < length < 0x7F and end < len(data) else None

    def _same_as_before(self, data: bytes, at: int, version: int) -> tuple[TopicConfig, int] | None:
        # No encoded result is the beginning of another: where its bytes stand, it stands.
        for (of_version, encoded), config in self._known.items():
            if of_version == version and data.startswith(encoded, at):
                return config, at + len(encoded)
        return None


MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
CLEANUP = "cleanup.policy"
STRATEGY = "unclean.recovery.strategy"
"""KIP-966's; asked for only where the whole of the KIP is there."""
TOPICS_A_REQUEST = 500
CONFIG_SOURCES = {
    1: ConfigSource.TOPIC,
    2: ConfigSource.BROKER,
    3: ConfigSource.CLUSTER_DEFAULT,
    4: ConfigSource.STATIC,
    5: ConfigSource.DEFAULT,
}
"""DescribeConfigsResponse ConfigSource: 1 topic, 2 dynamic broker, 3 dynamic cluster default, 4 static, 5 default."""


def read_topic_configs(
    brokers: AnyBroker, topics: Collection[str], reader: ConfigReader, *, whole_kip: bool = False
) -> Mapping[str, TopicConfig]:
    """One `TopicConfig` for each topic; where it could not be read, with `error` set to Kafka's name of the reason, and
    the ACL that was missing.

    Args:
        reader: from `config_reader`.
        whole_kip: the cluster has the whole of KIP-966, and with it a recovery strategy for each topic.
    """
    configs = (MIN_ISR, UNCLEAN, CLEANUP, REMOTE_STORAGE, DISKLESS, MIRROR, *((STRATEGY,) if whole_kip else ()))
    wanted, found = sorted(set(topics)), dict[str, TopicConfig]()
    for at in range(0, len(wanted), TOPICS_A_REQUEST):
        names = wanted[at : at + TOPICS_A_REQUEST]
        answered = _answered(brokers, names, configs, reader)
        found.update({name: answered.get(name, TopicConfig(error="UNKNOWN_SERVER_ERROR")) for name in names})
    return found


def config_reader() -> ConfigReader:
    """What remembers configs from one call of `read_topic_configs` to the next."""
    return ConfigReader(_outcome)


def _answered(
    brokers: AnyBroker, topics: list[str], configs: tuple[str, ...], reader: ConfigReader
) -> Mapping[str, TopicConfig]:
    try:
        answer = brokers.ask(lambda: describe_configs(topics, configs, reader))
    except ConnectError:
        # The partitions are known by now, and worth showing.
        return dict.fromkeys(topics, TopicConfig(error="REQUEST_TIMED_OUT"))
    if isinstance(answer, Failure):
        return dict.fromkeys(topics, TopicConfig(error="UNSUPPORTED_VERSION"))
    found: Mapping[str, TopicConfig] = answer
    return found


def _outcome(result: Any) -> TopicConfig:
    error = error_name(result.error_code)
    return _config(result.configs) if error == NONE else TopicConfig(error=with_acl(error, "DESCRIBE_CONFIGS"))


def _config(configs: Iterable[Any]) -> TopicConfig:
    """Each value is text on the wire; a missing one (hidden, or a broker that has no such config) stays unknown."""
    by_name = {config.name: config for config in configs}
    strategy, remote = by_name.get(STRATEGY), by_name.get(REMOTE_STORAGE)
    diskless, mirror = by_name.get(DISKLESS), by_name.get(MIRROR)
    min_isr, unclean, cleanup = by_name.get(MIN_ISR), by_name.get(UNCLEAN), by_name.get(CLEANUP)
    return TopicConfig(
        min_insync_replicas=int(min_isr.value) if min_isr is not None and min_isr.value else None,
        min_insync_replicas_source=_source(min_isr),
        unclean_leader_election=unclean.value == "true" if unclean is not None and unclean.value else None,
        unclean_leader_election_source=_source(unclean),
        cleanup_policy=None if cleanup is None else _policies(cleanup.value),
        recovery_strategy=_strategy(strategy, unclean),
        remote_storage=remote.value == "true" if remote is not None and remote.value else None,
        foreign=foreign_by(diskless and diskless.value, mirror and mirror.value),
    )


def _strategy(strategy: Any, unclean: Any) -> str | None:
    """The strategy that the controller goes by; None where that is not told.

    A broker's own dynamic value is no controller's. And KIP-966's default of balanced is not what holds where
    unclean.leader.election.enable is true: that "will be set to Aggressive" ("Compatibility").
    """
    if strategy is None or not strategy.value or _source(strategy) is ConfigSource.BROKER:
        return None
    replaced = unclean is not None and unclean.value == "true" and _source(strategy) is ConfigSource.DEFAULT
    return None if replaced else str(strategy.value).lower()


def _policies(value: str | None) -> tuple[str, ...] | None:
    """A list as Kafka writes it; unlike other values, an empty one says something."""
    return None if value is None else tuple(part.strip() for part in value.split(",") if part.strip())


def _source(config: Any) -> ConfigSource:
    return ConfigSource.UNKNOWN if config is None else CONFIG_SOURCES.get(config.config_source, ConfigSource.UNKNOWN)
