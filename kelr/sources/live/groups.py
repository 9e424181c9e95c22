"""What consumer groups have committed for some partitions, through librdkafka's admin client.

ListGroups names only the groups that the principal may DESCRIBE, unless it may DESCRIBE the cluster, and does not say
that it left some out; so DescribeCluster is asked what the principal may do. Share groups keep their place elsewhere
(KIP-932) and are not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kelr.model import TopicPartition
from kelr.model.afterwards import CommittedOffset, CommittedOffsets, Unread
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.failures import RETRIABLE, error_name

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

GROUPS_AT_ONCE = 32
_LOCAL = {"_TIMED_OUT": "no answer in time", "_ALL_BROKERS_DOWN": "no broker answers", "_TRANSPORT": "connection lost"}
_ACLS = {
    "GROUP_AUTHORIZATION_FAILED": "DESCRIBE on the group",
    "TOPIC_AUTHORIZATION_FAILED": "DESCRIBE on topic {topic}",
    "CLUSTER_AUTHORIZATION_FAILED": "DESCRIBE on the cluster",
}


def read_committed_offsets(
    settings: ConnectionSettings, partitions: Collection[TopicPartition]
) -> CommittedOffsets | Unread:
    """What every group has committed for these partitions; Unread where not even the groups could be listed."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - not for what asks no group
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    if not partitions:
        return CommittedOffsets()
    config: dict[str, Any] = {**settings.confluent(), "error_cb": lambda _error: None}
    admin = AdminClient(config)
    deadline = _Deadline(settings.timeout_s)
    try:
        listing = admin.list_consumer_groups(request_timeout=deadline.left_s()).result(deadline.left_s())
        not_listed = _not_listed(admin, listing.errors, deadline)
    except KafkaException as error:
        return _unread(error.args[0])
    except TimeoutError:
        return Unread(_LOCAL["_TIMED_OUT"], passing=True)
    groups = sorted(group.group_id for group in listing.valid)
    return _committed(admin, groups, sorted(partitions), not_listed, settings.timeout_s)


def _committed(
    admin: Any, groups: Sequence[str], partitions: Sequence[TopicPartition], not_listed: Unread | None, timeout_s: float
) -> CommittedOffsets:
    from confluent_kafka import KafkaException  # noqa: PLC0415

    offsets: dict[TopicPartition, list[CommittedOffset]] = {}
    unread: dict[str, Unread] = {}
    for at in range(0, len(groups), GROUPS_AT_ONCE):
        names = groups[at : at + GROUPS_AT_ONCE]
        deadline = _Deadline(timeout_s)
        for group, future in [(group, _ask(admin, group, partitions, timeout_s)) for group in names]:
            try:
                answered = future.result(deadline.left_s())
            except KafkaException as error:
                unread[group] = _unread(error.args[0])
                continue
            except TimeoutError:
                unread[group] = Unread(_LOCAL["_TIMED_OUT"], passing=True)
                continue
            for one in answered.topic_partitions:
                if one.error is not None:
                    unread.setdefault(group, _unread(one.error, topic=one.topic))
                elif one.offset >= 0:
                    found = CommittedOffset(group, one.offset, one.leader_epoch)
                    offsets.setdefault(TopicPartition(one.topic, one.partition), []).append(found)
    return CommittedOffsets(
        {address: tuple(found) for address, found in sorted(offsets.items())}, len(groups), unread, not_listed
    )


def _ask(admin: Any, group: str, partitions: Sequence[TopicPartition], timeout_s: float) -> Future[Any]:
    # librdkafka takes one group a request.
    from confluent_kafka import ConsumerGroupTopicPartitions  # noqa: PLC0415
    from confluent_kafka import TopicPartition as Wire  # noqa: PLC0415

    wanted = ConsumerGroupTopicPartitions(group, [Wire(one.topic, one.partition) for one in partitions])
    asked: Mapping[str, Future[Any]] = admin.list_consumer_group_offsets([wanted], request_timeout=timeout_s)
    return asked[group]


def _not_listed(admin: Any, errors: Sequence[KafkaError], deadline: _Deadline) -> Unread | None:
    """Why there may be groups that the listing leaves out."""
    from confluent_kafka import KafkaException  # noqa: PLC0415
    from confluent_kafka.admin import AclOperation  # noqa: PLC0415

    for raised in errors:
        # A broker that was asked and failed: its groups are missing.
        return _unread(raised.args[0] if isinstance(raised, KafkaException) else raised)
    with suppress(KafkaException, TimeoutError):
        described = admin.describe_cluster(
            include_authorized_operations=True, request_timeout=deadline.left_s()
        ).result(deadline.left_s())
        operations = described.authorized_operations
        if operations is not None and AclOperation.DESCRIBE in operations:
            return None
    return Unread("ListGroups names only the groups that may be seen", "DESCRIBE on the cluster")


def _unread(error: KafkaError, *, topic: str = "") -> Unread:
    code = error.code()
    name = _LOCAL.get(error.name(), error.str()) if code < 0 else error_name(code)
    acl = _ACLS.get(name, "").format(topic=topic)
    return Unread(name, acl, passing=code < 0 or name in RETRIABLE or name == "NOT_COORDINATOR")


class _Deadline:
    """A time that several waits share."""

    def __init__(self, seconds: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._end_s = now_s() + seconds

    def left_s(self) -> float:
        return max(0.1, self._end_s - self._now_s())
