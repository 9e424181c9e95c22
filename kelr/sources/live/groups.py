"""What consumer groups have committed for some partitions.

ListGroups to every live broker, which names the groups that it coordinates; OffsetFetch to each of them, for many
groups at once; where a coordinator has moved or is not ready, FindCoordinator, and OffsetFetch again until the time is
up.

ListGroups names only the groups that the principal may DESCRIBE, unless it may DESCRIBE the cluster, and does not say
that it left some out; so DescribeCluster is asked what the principal may do. Share groups keep their place elsewhere
(KIP-932) and are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kelr.model import TopicPartition
from kelr.model.afterwards import CommittedOffset, CommittedOffsets, Unread
from kelr.protocol.error_codes import error_name
from kelr.sources.live.failures import NONE, RETRIABLE
from kelr.sources.live.requests import authorized, describe_cluster_operations
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, Message, NodeId, Pause, Request, Transport

GROUPS_A_REQUEST = 200
OFFSETS_A_REQUEST = 20_000
"""Groups times partitions in one request: an answer of a MiB or so."""
_PAUSE_S = 0.2
_DESCRIBE = 8
"""AclOperation.DESCRIBE."""
_GROUP = 0
"""FindCoordinator's key type of groups."""
_SHARE = "share"
_GONE = "GROUP_ID_NOT_FOUND"
_MOVED = frozenset({"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"})
"""Another broker may answer, or the same one a little later."""
_PASSING = RETRIABLE | _MOVED
_ACLS = {
    "GROUP_AUTHORIZATION_FAILED": "DESCRIBE on the group",
    "TOPIC_AUTHORIZATION_FAILED": "DESCRIBE on topic {topic}",
    "CLUSTER_AUTHORIZATION_FAILED": "DESCRIBE on the cluster",
}


@dataclass(frozen=True, slots=True)
class Found:
    """What one group has committed, and why there may be more."""

    offsets: Mapping[TopicPartition, CommittedOffset] = field(default_factory=dict)
    unread: Unread | None = None


_LEFT_OUT = Found(unread=Unread("the coordinator's answer leaves it out"))


@dataclass(frozen=True, slots=True)
class Listed:
    """The groups that a broker coordinates, and why there may be others."""

    groups: tuple[str, ...] = ()
    incomplete: Unread | None = None


class GroupReader:
    """Reads committed offsets.

    Args:
        live: brokers that are registered and not fenced: each may be a coordinator.
        timeout_s: for one answer, and for all repetitions of a question.
    """

    def __init__(
        self,
        transport: Transport,
        live: Iterable[int],
        *,
        timeout_s: float,
    ) -> None:
        self._transport = transport
        self._live = sorted(live)
        self._timeout_s = timeout_s

    def read(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | Unread:
        """What every group has committed for these partitions; Unread where not even the groups could be listed."""
        if not partitions:
            return CommittedOffsets()
        deadline = self._transport.ground.steady_s() + self._timeout_s
        listed = self._transport.run({broker: self._listing(deadline) for broker in self._live})
        silent = [(broker, one.incomplete) for broker, one in listed.items() if one.incomplete is not None]
        if len(silent) == len(self._live):
            return silent[0][1] if silent and silent[0][1] else Unread("no broker is live", passing=True)
        where = {group: broker for broker, one in listed.items() for group in one.groups}
        found = self._committed(where, sorted(partitions))
        return _together(found, self._not_listed(silent))

    def _not_listed(self, silent: Sequence[tuple[NodeId, Unread | None]]) -> Unread | None:
        """Why there may be groups that nobody listed; None where all are known."""
        for broker, why in silent:
            if why is not None:
                return replace(why, error=f"broker {broker}: {why.error}")
        for broker in self._live:
            answer = self._transport.exchange(broker, describe_cluster_operations(), timeout_s=self._timeout_s)
            if not isinstance(answer, Failure):
                if error_name(answer.error_code) == NONE and _DESCRIBE in (
                    authorized(answer.cluster_authorized_operations) or ()
                ):
                    return None
                break
        return Unread("ListGroups names only the groups that may be seen", "DESCRIBE on the cluster")

    def _listing(self, deadline: float) -> Callable[[], Dialogue[Listed]]:
        def hold() -> Dialogue[Listed]:
            while True:
                answer = yield Ask(_list_groups(), self._timeout_s)
                if isinstance(answer, Failure):
                    return Listed((), _failed(answer))
                error = error_name(answer.error_code)
                groups = tuple(one.group_id for one in answer.groups if not _is_share(one))
                if error == NONE:
                    return Listed(groups)
                if error not in _PASSING or self._transport.ground.steady_s() + _PAUSE_S >= deadline:
                    return Listed(groups, _unread(error))
                yield Pause(_PAUSE_S)

        return hold

    def _committed(self, where: Mapping[str, NodeId], partitions: Sequence[TopicPartition]) -> Mapping[str, Found]:
        """Each group's offsets, asked of its coordinator, wherever that is by now."""
        deadline = self._transport.ground.steady_s() + self._timeout_s
        found: dict[str, Found] = {}
        while where:
            by_broker: dict[NodeId, list[str]] = {}
            for group, broker in sorted(where.items()):
                by_broker.setdefault(broker, []).append(group)
            asked = {broker: _fetching(groups, partitions, self._timeout_s) for broker, groups in by_broker.items()}
            for answers in self._transport.run(asked).values():
                found.update(answers)
            again = sorted(group for group in where if _may_answer_later(found[group]))
            if not again or self._transport.ground.steady_s() + _PAUSE_S >= deadline:
                break
            self._transport.ground.sleep(_PAUSE_S)
            where = {**{group: where[group] for group in again}, **self._coordinators(again)}
        return found

    def _coordinators(self, groups: Sequence[str]) -> Mapping[str, NodeId]:
        """Where the coordinators of these groups are now, of those that have a live one."""
        for broker in self._live:
            found = self._transport.run({broker: _finding(groups, self._timeout_s)})[broker]
            if found is not None:
                return {group: node for group, node in found.items() if node in self._live}
        return {}


# Dialogues, one with each broker.


def _fetching(
    groups: Sequence[str], partitions: Sequence[TopicPartition], timeout_s: float
) -> Callable[[], Dialogue[Mapping[str, Found]]]:
    at_once = max(1, min(GROUPS_A_REQUEST, OFFSETS_A_REQUEST // len(partitions)))

    def hold() -> Dialogue[Mapping[str, Found]]:
        found: dict[str, Found] = {}
        waiting, many = list(groups), True
        while waiting:
            batch = waiting[: at_once if many else 1]
            answer = yield Ask(_offset_fetch(batch, partitions, many=many), timeout_s)
            if isinstance(answer, Failure) and answer.kind is FailureKind.UNSUPPORTED and many:
                many = False  # before version 8 (Kafka 3.0) there was one group in a request
            elif isinstance(answer, Failure):
                # Who does not answer one request is not waited for again and again.
                return {**found, **dict.fromkeys(waiting, Found(unread=_failed(answer)))}
            else:
                found.update(_fetched(answer, batch, partitions, many=many))
                del waiting[: len(batch)]
        return found

    return hold


def _finding(groups: Sequence[str], timeout_s: float) -> Callable[[], Dialogue[Mapping[str, NodeId] | None]]:
    """Group to broker, of the groups that have a coordinator; None where the broker does not answer."""

    def hold() -> Dialogue[Mapping[str, NodeId] | None]:
        answer = yield Ask(_find_coordinators(groups), timeout_s)
        if not isinstance(answer, Failure):
            return {one.key: one.node_id for one in answer.coordinators if error_name(one.error_code) == NONE}
        if answer.kind is not FailureKind.UNSUPPORTED:
            return None
        found: dict[str, NodeId] = {}
        for group in groups:
            answer = yield Ask(_find_coordinator(group), timeout_s)
            if isinstance(answer, Failure):
                return found or None
            if error_name(answer.error_code) == NONE:
                found[group] = answer.node_id
        return found

    return hold


# What the answers mean.


def _fetched(
    answer: Message, groups: Sequence[str], partitions: Sequence[TopicPartition], *, many: bool
) -> Mapping[str, Found]:
    """What an answer tells of each group that was asked for; what it leaves out is not known."""
    told = {one.group_id: one for one in answer.groups} if many else {groups[0]: answer}
    return {group: _of_group(group, told[group], partitions) if group in told else _LEFT_OUT for group in groups}


def _of_group(group: str, told: Any, partitions: Sequence[TopicPartition]) -> Found:
    error = error_name(told.error_code)
    if error == _GONE:
        return Found()  # with all that it had committed
    if error != NONE:
        return Found(unread=_unread(error))
    offsets: dict[TopicPartition, CommittedOffset] = {}
    missing, unread = set(partitions), None
    for topic in told.topics:
        for one in topic.partitions:
            address = TopicPartition(topic.name, one.partition_index)
            missing.discard(address)
            error = error_name(one.error_code)
            if error != NONE:
                unread = unread or _unread(error, topic=topic.name)
            elif one.committed_offset >= 0:
                epoch = one.committed_leader_epoch
                offsets[address] = CommittedOffset(group, one.committed_offset, None if epoch < 0 else epoch)
    if missing:
        unread = unread or _LEFT_OUT.unread
    return Found({address: offsets[address] for address in partitions if address in offsets}, unread)


def _together(found: Mapping[str, Found], not_listed: Unread | None) -> CommittedOffsets:
    offsets: dict[TopicPartition, list[CommittedOffset]] = {}
    for _, one in sorted(found.items()):
        for address, offset in one.offsets.items():
            offsets.setdefault(address, []).append(offset)
    by_address = {address: tuple(offsets[address]) for address in sorted(offsets)}
    unread = {group: one.unread for group, one in sorted(found.items()) if one.unread is not None}
    return CommittedOffsets(by_address, len(found), unread, not_listed)


def _may_answer_later(found: Found) -> bool:
    return found.unread is not None and found.unread.passing


def _is_share(group: Any) -> bool:
    """From version 5 on the type tells; a share group has a protocol type of its own in every version."""
    return _SHARE in {group.protocol_type, (getattr(group, "group_type", None) or "").lower()}


def _unread(error: str, *, topic: str = "") -> Unread:
    return Unread(error, _ACLS.get(error, "").format(topic=topic), passing=error in _PASSING)


def _failed(failure: Failure) -> Unread:
    return Unread(failure.detail, passing=failure.kind in {FailureKind.TIMED_OUT, FailureKind.UNREACHABLE})


# Requests, each in the newest version that the broker knows too.


def _list_groups() -> Request:
    return Request("ListGroups", {"states_filter": [], "types_filter": []})


def _offset_fetch(groups: Sequence[str], partitions: Sequence[TopicPartition], *, many: bool) -> Request:
    """Version 10 wants topic ids in place of names, and tells nothing more; before version 5 there were no epochs."""
    by_topic: dict[str, list[int]] = {}
    for address in partitions:
        by_topic.setdefault(address.topic, []).append(address.partition)
    topics = [{"name": name, "partition_indexes": at} for name, at in by_topic.items()]
    if not many:
        fields = {"group_id": groups[0], "topics": topics, "require_stable": False}
        return Request("OffsetFetch", fields, min_version=5, max_version=7)
    of_each = [{"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics} for group in groups]
    return Request("OffsetFetch", {"groups": of_each, "require_stable": False}, min_version=8, max_version=9)


def _find_coordinators(groups: Sequence[str]) -> Request:
    return Request("FindCoordinator", {"key_type": _GROUP, "coordinator_keys": list(groups)}, min_version=4)


def _find_coordinator(group: str) -> Request:
    return Request("FindCoordinator", {"key": group, "key_type": _GROUP}, max_version=3)
