"""What consumer groups have committed for some partitions.

ListGroups to every live broker, which names the groups that it coordinates; OffsetFetch to each of them, for many groups
at once; where a coordinator has moved or is not ready, FindCoordinator, and OffsetFetch again until the time is up.

ListGroups names only the groups that the principal may DESCRIBE, unless it may DESCRIBE the cluster, and does not say
that it left some out; so DescribeCluster is asked what the principal may do. Share groups keep their place elsewhere
(KIP-932) and are not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kelr.model import TopicPartition
from kelr.model.afterwards import CommittedOffset, CommittedOffsets, Unread
from kelr.sources.live.failures import NONE, RETRIABLE, error_name
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, Message, NodeId, Pause, Transport

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
_LEFT_OUT = Unread("the coordinator's answer leaves it out")
_ACLS = {
    "GROUP_AUTHORIZATION_FAILED": "DESCRIBE on the group",
    "TOPIC_AUTHORIZATION_FAILED": "DESCRIBE on topic {topic}",
    "CLUSTER_AUTHORIZATION_FAILED": "DESCRIBE on the cluster",
}

Found = Mapping[TopicPartition, CommittedOffset] | Unread
"""What one group has committed, or why that could not be read."""


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
        now_s: a clock that never goes back, in seconds.
    """

    def __init__(
        self,
        transport: Transport,
        live: Iterable[int],
        *,
        timeout_s: float,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._live = sorted(live)
        self._timeout_s = timeout_s
        self._now_s = now_s

    def read(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | Unread:
        """What every group has committed for these partitions; Unread where not even the groups could be listed."""
        if not partitions:
            return CommittedOffsets()
        deadline = self._now_s() + self._timeout_s
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
            answer = self._transport.exchange(broker, _describe_cluster(), timeout_s=self._timeout_s)
            if not isinstance(answer, Failure):
                if error_name(answer.error_code) == NONE and _DESCRIBE in (answer.authorized_operations or ()):
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
                if error not in _PASSING or self._now_s() + _PAUSE_S >= deadline:
                    return Listed(groups, _unread(error))
                yield Pause(_PAUSE_S)

        return hold

    def _committed(
        self, where: Mapping[str, NodeId], partitions: Sequence[TopicPartition]
    ) -> Mapping[str, Found]:
        """Each group's offsets, asked of its coordinator, wherever that is by now."""
        deadline = self._now_s() + self._timeout_s
        found: dict[str, Found] = {}
        while where:
            by_broker: dict[NodeId, list[str]] = {}
            for group, broker in sorted(where.items()):
                by_broker.setdefault(broker, []).append(group)
            asked = {broker: _fetching(groups, partitions, self._timeout_s) for broker, groups in by_broker.items()}
            for answers in self._transport.run(asked).values():
                found.update(answers)
            again = [group for group in where if _may_have_moved(found[group])]
            if not again or self._now_s() + _PAUSE_S >= deadline:
                break
            self._transport.pause(_PAUSE_S)
            where = self._coordinators(again)
        return found

    def _coordinators(self, groups: Sequence[str]) -> Mapping[str, NodeId]:
        """Where the coordinators of these groups are now, of those that have one."""
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
        found: dict[str, Found] = dict.fromkeys(groups, _LEFT_OUT)
        size = at_once
        waiting = list(groups)
        while waiting:
            batch = waiting[:size]
            # Before version 8 there was one group in a request.
            many = size > 1 or len(groups) == 1 and at_once == size and not isinstance(found.get(""), int)
            answer = yield Ask(_offset_fetch(batch, partitions, many=many), timeout_s)
            if isinstance(answer, Failure) and answer.kind is FailureKind.UNSUPPORTED and many:
                size = 1
                continue
            del waiting[:size]
            if isinstance(answer, Failure):
                found.update(dict.fromkeys(batch, _failed(answer)))
            else:
                found.update(_fetched(answer, batch, partitions))
        return found

    return hold
