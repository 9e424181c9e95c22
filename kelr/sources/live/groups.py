"""What consumer groups have committed for some partitions.

Of every live broker, over one connection and in this order:

1. OffsetFetch of a made-up group in each partition of __consumer_offsets that the broker leads
   (`kelr.sources.live.coordinators`), with require_stable;
2. ListGroups, which names the groups that it coordinates, and OffsetFetch of those, for many groups at once;
3. the first request again: what was loaded before and after was so in between.

Without the first and the third, silence looks like "no group". A broker that has not loaded a partition lists none of
its groups, without an error. And one that has loaded it lists groups, and tells offsets, only up to the partition's
high watermark (GroupCoordinatorService.listGroups and fetchOffsets read at the last committed offset): right after a
leader change, and for as long as the ISR is below min ISR, the newest commits are missing, again without an error. With
require_stable OffsetFetch waits until all that the partition holds is committed, for offsets.commit.timeout.ms (5 s),
and is then answered NOT_COORDINATOR.

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
from kelr.sources.live.coordinators import Coordinators
from kelr.sources.live.failures import NONE, RETRIABLE
from kelr.sources.live.requests import authorized, describe_cluster_operations
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, Message, NodeId, Request, Transport

GROUPS_A_REQUEST = 200
OFFSETS_A_REQUEST = 20_000
"""Groups times partitions in one request: an answer of a MiB or so."""
_PAUSE_S = 0.2
_PATIENCE_S = 5.0
"""How long coordinators are asked again that have moved or are loading; `verify --wait` looks again in any case."""
_DESCRIBE = 8
"""AclOperation.DESCRIBE."""
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
_MOVING = Found(unread=Unread("two brokers list it: its coordinator has moved", passing=True))
"""The one that was its coordinator may tell what was committed some time ago."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What the groups that one broker coordinates have committed, and why there may be others, or newer commits."""

    groups: Mapping[str, Found] = field(default_factory=dict)
    incomplete: Unread | None = None
    answered: bool = True
    """Whether the broker listed its groups, be they all or not."""


class GroupReader:
    """Reads committed offsets.

    Args:
        live: brokers that are registered and not fenced: each may be a coordinator.
        coordinators: says anew who leads the partitions of __consumer_offsets.
        timeout_s: for one answer.
    """

    def __init__(
        self,
        transport: Transport,
        live: Iterable[int],
        coordinators: Callable[[], Coordinators],
        *,
        timeout_s: float,
    ) -> None:
        self._transport = transport
        self._live = sorted(live)
        self._coordinators = coordinators
        self._timeout_s = timeout_s

    def read(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | Unread:
        """What every group has committed for these partitions; Unread where not even the groups could be listed."""
        if not partitions:
            return CommittedOffsets()
        ground = self._transport.ground
        deadline = ground.steady_s() + min(self._timeout_s, _PATIENCE_S)
        while True:
            coordinators, wanted = self._coordinators(), sorted(partitions)
            probes = coordinators.probes()
            listed = self._transport.run(
                {
                    broker: _reading(coordinators, probes.get(broker, {}), wanted, self._timeout_s)
                    for broker in self._live
                }
            )
            found = self._together(coordinators, listed)
            if not _may_come(found, coordinators.missing) or ground.steady_s() + _PAUSE_S >= deadline:
                return found
            ground.sleep(_PAUSE_S)

    def _together(self, coordinators: Coordinators, listed: Mapping[NodeId, Listed]) -> CommittedOffsets | Unread:
        incomplete = {broker: one.incomplete for broker, one in listed.items() if one.incomplete is not None}
        if not any(one.answered for one in listed.values()):
            return next(iter(incomplete.values()), Unread("no broker is live", passing=True))
        found: dict[str, Found] = {}
        for answer in listed.values():
            found.update((group, _MOVING if group in found else one) for group, one in answer.groups.items())
        not_listed = coordinators.missing
        for broker, why in incomplete.items():
            not_listed = not_listed or replace(why, error=f"broker {broker}: {why.error}")
        return _together(found, not_listed or self._hidden())

    def _hidden(self) -> Unread | None:
        """Why there may be groups that the lists hide from the principal; None where it sees all."""
        for broker in self._live:
            answer = self._transport.exchange(broker, describe_cluster_operations(), timeout_s=self._timeout_s)
            if not isinstance(answer, Failure):
                if error_name(answer.error_code) == NONE and _DESCRIBE in (
                    authorized(answer.cluster_authorized_operations) or ()
                ):
                    return None
                break
        return Unread("ListGroups names only the groups that may be seen", "DESCRIBE on the cluster")


# Dialogues, one with each broker.


def _reading(
    coordinators: Coordinators,
    probes: Mapping[str, int],
    partitions: Sequence[TopicPartition],
    timeout_s: float,
) -> Callable[[], Dialogue[Listed]]:
    def ready() -> Dialogue[Unread | None]:
        found = yield from _fetching(sorted(probes), partitions[:1], timeout_s, stable=True)
        unread = {probes[name]: one.unread for name, one in found.items() if one.unread is not None}
        return coordinators.not_ready(unread)

    def hold() -> Dialogue[Listed]:
        incomplete = yield from ready()
        answer = yield Ask(_list_groups(), timeout_s)
        if isinstance(answer, Failure):
            return Listed(incomplete=_failed(answer), answered=False)
        error = error_name(answer.error_code)
        if error != NONE:
            incomplete = _unread(error)
        groups = sorted(one.group_id for one in answer.groups if not _is_share(one))
        found = yield from _fetching(groups, partitions, timeout_s)
        if incomplete is None:
            incomplete = yield from ready()
        return Listed(found, incomplete, answered=error == NONE)

    return hold


def _fetching(
    groups: Sequence[str], partitions: Sequence[TopicPartition], timeout_s: float, *, stable: bool = False
) -> Dialogue[Mapping[str, Found]]:
    at_once = max(1, min(GROUPS_A_REQUEST, OFFSETS_A_REQUEST // len(partitions)))
    found: dict[str, Found] = {}
    waiting, many = list(groups), True
    while waiting:
        batch = waiting[: at_once if many else 1]
        answer = yield Ask(_offset_fetch(batch, partitions, many=many, stable=stable), timeout_s)
        if isinstance(answer, Failure) and answer.kind is FailureKind.UNSUPPORTED and many:
            many = False  # before version 8 (Kafka 3.0) there was one group in a request
        elif isinstance(answer, Failure):
            # Who does not answer one request is not waited for again and again.
            return {**found, **dict.fromkeys(waiting, Found(unread=_failed(answer)))}
        else:
            found.update(_fetched(answer, batch, partitions, many=many))
            del waiting[: len(batch)]
    return found


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


def _may_come(found: CommittedOffsets | Unread, missing: Unread | None) -> bool:
    """Whether it is worth asking again soon; a partition of __consumer_offsets without a leader has none soon."""
    if isinstance(found, Unread):
        return found.passing
    unread = {found.not_listed, *found.unread.values()} - {missing}
    return any(one is not None and one.passing for one in unread)


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


def _offset_fetch(groups: Sequence[str], partitions: Sequence[TopicPartition], *, many: bool, stable: bool) -> Request:
    """Version 10 wants topic ids in place of names, and tells nothing more; before version 5 there were no epochs, and
    before version 7 (Kafka 2.5) no waiting for what is not committed."""
    by_topic: dict[str, list[int]] = {}
    for address in partitions:
        by_topic.setdefault(address.topic, []).append(address.partition)
    topics = [{"name": name, "partition_indexes": at} for name, at in by_topic.items()]
    if not many:
        fields = {"group_id": groups[0], "topics": topics, "require_stable": stable}
        return Request("OffsetFetch", fields, min_version=7 if stable else 5, max_version=7)
    of_each = [{"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics} for group in groups]
    return Request("OffsetFetch", {"groups": of_each, "require_stable": stable}, min_version=8, max_version=9)
