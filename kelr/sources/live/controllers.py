"""Where the controllers of a cluster are, as its brokers tell; and the metadata log that is read from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kelr.errors import ConnectError, NotAuthorizedError, RefusedError, UnsupportedError
from kelr.protocol.error_codes import error_name
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import requests
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.bootstrap import reach
from kelr.sources.live.client import Client
from kelr.sources.live.failures import CLUSTER_UNAUTHORIZED, NONE
from kelr.sources.live.metadata_log import LiveMetadataLog
from kelr.sources.live.transport import Failure, Message, Transport

_GIVE_THEM = "give a controller's listener with --bootstrap-controller HOST:PORT"
_LISTENERS_TOLD = 2
"""The version of DescribeQuorum that tells the voters' listeners (KIP-853)."""


def live_metadata_log(
    *,
    controllers: ConnectionSettings | None = None,
    brokers: ConnectionSettings | None = None,
    cluster_id: str | None = None,
    connect: Callable[[ConnectionSettings], Transport] = Client,
) -> LiveMetadataLog:
    """The metadata log of a live cluster.

    Args:
        controllers: settings whose bootstrap servers are controllers.
        brokers: settings whose bootstrap servers are brokers. With `controllers` too, these tell which cluster is
            meant; alone, they tell where its controllers are.
        cluster_id: the cluster that is meant, where somebody said so.

    Raises:
        ConnectError, AuthenticationError: the brokers cannot be reached, or know of no controller.
        NotAuthorizedError: brokers tell of controllers only with DESCRIBE on the cluster.
        RefusedError: the brokers are of another cluster than the one that is meant.
        UnsupportedError: brokers before Kafka 3.9 do not tell where controllers are.
    """
    if brokers is None:
        if controllers is None:
            raise ValueError("neither brokers nor controllers")
        return LiveMetadataLog(controllers, cluster_id=cluster_id, connect=connect)
    transport = connect(brokers)
    try:
        first, _ = reach(transport, brokers)
        others = [node for node in transport.bootstrap_nodes() if node != first]
        asked = AnyBroker(transport, [first, *others], timeout_s=brokers.timeout_s)
        cluster = asked.ask(partial(requests.describe_cluster, fenced=False))
        if not isinstance(cluster, Failure) and error_name(cluster.error_code) == NONE:
            if cluster_id not in {None, cluster.cluster_id}:
                raise RefusedError(
                    f"cluster {cluster_id} is meant, and these brokers are of cluster {cluster.cluster_id}",
                    next_step="check --bootstrap-server, or correct cluster_id in contexts.toml",
                    code="wrong-cluster",
                )
            cluster_id = cluster.cluster_id
        if controllers is None:
            quorum = asked.ask(requests.describe_quorum, again=_may_be_told_by_another)
            controllers = replace(brokers, bootstrap_servers=_listeners(quorum))
    finally:
        transport.close()
    return LiveMetadataLog(controllers, cluster_id=cluster_id, connect=connect)


def _may_be_told_by_another(quorum: Message) -> bool:
    return error_name(quorum.error_code) not in {NONE, CLUSTER_UNAUTHORIZED}


def _listeners(quorum: Message | Failure) -> tuple[tuple[str, int], ...]:
    """Host and port of each voter's listeners, the leader's first."""
    if isinstance(quorum, Failure):
        raise ConnectError(f"the brokers do not tell where the controllers are: {quorum.detail}", next_step=_GIVE_THEM)
    error = error_name(quorum.error_code)
    if error == CLUSTER_UNAUTHORIZED:
        raise NotAuthorizedError(
            f"the brokers may not tell where the controllers are ({error}): it needs DESCRIBE on the cluster",
            next_step="kafka-acls.sh --add --allow-principal User:NAME --operation Describe --cluster,"
            f" or {_GIVE_THEM}",
        )
    if error != NONE:
        raise ConnectError(f"the brokers answered {error}, asked where the controllers are", next_step=_GIVE_THEM)
    if quorum.version < _LISTENERS_TOLD:
        raise UnsupportedError(
            "brokers before Kafka 3.9 do not tell where the controllers are",
            next_step=_GIVE_THEM,
            code="brokers-too-old",
        )
    leader = next((one.leader_id for topic in quorum.topics for one in topic.partitions), None)
    found = [
        (one.host, one.port)
        for node in sorted(quorum.nodes or (), key=lambda node: (node.node_id != leader, node.node_id))
        for one in node.listeners
    ]
    if not found:
        raise ConnectError("the brokers know of no controller's listener", next_step=_GIVE_THEM)
    return tuple(dict.fromkeys(found))
