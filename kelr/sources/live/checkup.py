"""What ``kelr doctor`` asks a live cluster beside partitions: each broker about itself, and the controllers.

A broker that does not answer, or does not tell this principal, is a value (`NotRead`) and ends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.checkup.flushing import FLUSH_CONFIGS, TOPIC_FLUSH_CONFIGS
from kelr.engine.checkup.nodes import QUORUM_CONFIGS, THROTTLED, controller_addresses
from kelr.errors import ConnectError
from kelr.model import Broker, BrokerStatus
from kelr.model.checkup import AddressState, BrokerFacts, NotChecked, NotRead, Quorum
from kelr.sources.live import requests
from kelr.sources.live.any_broker import CONTROLLER_TIMEOUT_S, AnyBroker
from kelr.sources.live.checkup_answers import (
    announced_by,
    configs_of,
    defaults_of,
    directories_of,
    own_configs,
    unanswered,
)
from kelr.sources.live.describe import quorum_of
from kelr.sources.live.diagnose import probe_addresses
from kelr.sources.live.logs import FENCED_PATIENCE_S
from kelr.sources.live.reassignments import reassignments_of
from kelr.sources.live.source import LiveSource
from kelr.sources.live.topic_configs import TOPICS_A_REQUEST
from kelr.sources.live.transport import Ask, Dialogue, Failure, Message, NodeId, Request
from kelr.sources.log_info_key import LogInfoKey

BROKER_CONFIGS = (
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "auto.leader.rebalance.enable",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    *FLUSH_CONFIGS,
    *QUORUM_CONFIGS,
)
TOPIC_CONFIGS = (*THROTTLED, *TOPIC_FLUSH_CONFIGS)
_BROKER_RESOURCE = 4
_TOPIC_RESOURCE = 2
_ID_OF_ALL = ""
"""The name under which the dynamic defaults of all brokers are kept."""


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """What a live cluster told."""

    brokers: tuple[BrokerFacts, ...]
    defaults: Mapping[str, str] | NotRead
    quorum: Quorum | NotRead
    moving: bool | None
    """Whether a reassignment is under way anywhere; None: not known."""
    log_info: str | None
    """GetReplicaLogInfo, where a broker announces it."""
    controllers: Mapping[str, AddressState]
    """As `CheckupFacts.controllers`."""


def read_live_facts(source: LiveSource, *, clock_ms: Callable[[], int]) -> LiveFacts:
    """Ask every broker, and the controllers.

    Args:
        clock_ms: this machine's clock, milliseconds since 1970 UTC.

    Raises:
        ConnectError, AuthenticationError: the cluster cannot be reached at all.
    """
    cluster = source.cluster()
    settings, transport, brokers = source.reached()
    dialogues: dict[NodeId, Callable[[], Dialogue[_Told]]] = {
        broker.id: _Dialogue(broker, settings.timeout_s).hold for broker in cluster.brokers if broker.host is not None
    }
    told = transport.run(dialogues)
    asked_ms = clock_ms()
    quorum, moves = brokers.ask_controller(
        requests.describe_quorum(), requests.list_reassignments(timeout_s=CONTROLLER_TIMEOUT_S)
    )
    answered_ms = clock_ms()
    reassignments = reassignments_of(moves)
    facts = tuple(_facts(broker, told.get(broker.id)) for broker in cluster.brokers)
    silent = cluster.controller_silence is not None
    return LiveFacts(
        brokers=facts,
        defaults=defaults_of(_any(brokers, _describe_broker(_ID_OF_ALL, None))),
        quorum=quorum_of(quorum, asked_ms=asked_ms, answered_ms=answered_ms),
        moving=None if reassignments.error is not None else bool(reassignments.under_way),
        log_info=next((one.log_info for one in told.values() if one.log_info is not None), None),
        controllers=probe_addresses(controller_addresses(facts)) if silent else {},
    )


@dataclass(frozen=True, slots=True)
class _Told:
    versions: Message | Failure
    configs: Message | Failure
    directories: Message | Failure

    @property
    def log_info(self) -> str | None:
        key = None if isinstance(self.versions, Failure) else LogInfoKey.announced(self.versions)
        return None if key is None else str(key)


@dataclass(frozen=True, slots=True)
class _Dialogue:
    """Three questions to one broker; one that does not answer the first is not asked the others."""

    broker: Broker
    timeout_s: float

    def hold(self) -> Dialogue[_Told]:
        patience_s = self.timeout_s
        if self.broker.status is not BrokerStatus.LIVE:
            patience_s = min(FENCED_PATIENCE_S, self.timeout_s)
        versions = yield Ask(requests.api_versions(), patience_s)
        if isinstance(versions, Failure):
            return _Told(versions, versions, versions)
        configs = yield Ask(_describe_broker(str(self.broker.id), BROKER_CONFIGS), patience_s)
        directories = yield Ask(requests.describe_log_dirs(), patience_s)
        return _Told(versions, configs, directories)


def _facts(broker: Broker, told: _Told | None) -> BrokerFacts:
    if told is None:
        unknown = NotRead("the cluster does not tell where it is")
        return BrokerFacts(broker.id, unknown, unknown, unknown)
    return BrokerFacts(
        broker.id, announced_by(told.versions), configs_of(told.configs), directories_of(told.directories)
    )


def _describe_broker(name: str, configs: Sequence[str] | None) -> Request:
    """Configs of a broker, which only that one answers; without a name the defaults of all, which any does."""
    resource = {"resource_type": _BROKER_RESOURCE, "resource_name": name, "configuration_keys": configs}
    fields = {"resources": [resource], "include_synonyms": True, "include_documentation": False}
    return Request("DescribeConfigs", fields, min_version=1)


def _any(brokers: AnyBroker, question: Request) -> Message | Failure:
    return brokers.ask(lambda: question)


def read_own_configs(
    source: LiveSource, topics: Collection[str]
) -> Iterator[tuple[Mapping[str, Mapping[str, str]], tuple[NotChecked, ...]]]:
    """What is set on topics of throttled replicas and of flushing; and those that could not be looked at. A piece for
    each request.

    Raises:
        AuthenticationError: the brokers refuse the credentials.
    """
    _, _, brokers = source.reached()
    wanted = sorted(set(topics))
    for at in range(0, len(wanted), TOPICS_A_REQUEST):
        names = wanted[at : at + TOPICS_A_REQUEST]
        resources = [
            {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configuration_keys": TOPIC_CONFIGS}
            for name in names
        ]
        fields = {"resources": resources, "include_synonyms": False, "include_documentation": False}
        try:
            answer = _any(brokers, Request("DescribeConfigs", fields, min_version=1))
        except ConnectError as error:
            yield {}, (unanswered(str(error), names),)
            continue
        yield own_configs(answer, names)
