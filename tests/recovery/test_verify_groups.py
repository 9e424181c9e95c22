"""Reading what consumer groups committed: whatever could not be read is said, and never taken for "none"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace as Answer
from typing import Any

import pytest

from kelr.model import TopicPartition
from kelr.model.afterwards import CommittedOffset, CommittedOffsets, Unread
from kelr.sources.live.coordinators import Coordinators, names_in
from kelr.sources.live.groups import GROUPS_A_REQUEST, GroupReader
from kelr.sources.live.transport import Dialogue, Failure, FailureKind, Pause
from tests.still_ground import StillGround

AT, OTHER = TopicPartition("orders", 1), TopicPartition("payments", 0)
NOT_COORDINATOR, LOADING, NOT_AVAILABLE = 16, 14, 15
SILENT = Failure(FailureKind.TIMED_OUT, "no answer in time")
DEAD = Failure(FailureKind.UNREACHABLE, "connection refused")
TOO_OLD = Failure(FailureKind.UNSUPPORTED, "no version in common")
PARTITIONS_OF_OFFSETS = 3
PROBES = {name: partition for partition, name in names_in(PARTITIONS_OF_OFFSETS).items()}
"""The groups that are asked for to learn whether a coordinator is ready: to the partition of __consumer_offsets."""


@dataclass
class Brokers:
    """Brokers 1 and 2 as far as groups go."""

    groups: dict[str, Any] = field(default_factory=dict)
    """What each group has committed for orders:1: (offset, epoch), an error code, or None for an answer without it."""
    where: dict[str, int] = field(default_factory=dict)
    """Which broker coordinates a group; 1 unless told."""
    lists: Mapping[int, Any] = field(default_factory=dict)
    """What a broker answers to ListGroups in place of a list: an error code, or a Failure."""
    fetches: Mapping[int, Failure] = field(default_factory=dict)
    """What a broker answers to OffsetFetch in place of offsets."""
    listed_by: Mapping[str, int] = field(default_factory=dict)
    """Which broker lists a group that another one coordinates by now."""
    types: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    partition_errors: Mapping[TopicPartition, int] = field(default_factory=dict)
    led: dict[int, int] = field(default_factory=lambda: {0: 1, 1: 2, 2: 1})
    """Who leads the partitions of __consumer_offsets."""
    missing: Unread | None = None
    """Why some of them have no leader."""
    not_ready: list[Mapping[int, int]] = field(default_factory=list)
    """What partitions of __consumer_offsets answer in place of offsets, each time that 1 is asked; the last goes on."""
    probed: int = 0
    """How often 1 was asked whether it is ready."""
    operations: int = 1 << 8
    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest version of a request that these brokers know."""
    asked: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    ground: StillGround = field(default_factory=StillGround)

    def exchange(self, node: Any, request: Any, **_timeout: float | None) -> Any:
        name = request.name
        probes = _is_probe(request)
        if not probes:
            self.asked.append(f"{name} {node}")
        newest = self.newest.get(name, 99)
        low = request.min_version or 0
        if low > newest:
            return TOO_OLD
        answers: dict[str, Callable[[Any, Any], Any]] = {
            "ListGroups": self._list,
            "OffsetFetch": self._probe if probes else self._fetch,
            "DescribeCluster": lambda _node, _request: Answer(
                error_code=0, cluster_authorized_operations=self.operations
            ),
        }
        return answers[name](node, request)

    def run(self, dialogues: Mapping[Any, Callable[[], Dialogue[Any]]]) -> Mapping[Any, Any]:
        return {node: self._hold(node, start()) for node, start in dialogues.items()}

    def _hold(self, node: Any, dialogue: Dialogue[Any]) -> Any:
        answer: Any = None
        while True:
            try:
                wanted = dialogue.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(wanted, Pause):
                self.ground.sleep(wanted.seconds)
                answer = None
            else:
                answer = self.exchange(node, wanted.request)

    def _list(self, node: int, _request: Any) -> Any:
        told = self.lists.get(node, 0)
        if isinstance(told, Failure):
            return told
        here = [group for group in self.groups if self.listed_by.get(group, self.where.get(group, 1)) == node]
        found = [self._listed(group) for group in here]
        return Answer(error_code=told, groups=found)

    def _listed(self, group: str) -> Answer:
        protocol, kind = self.types.get(group, ("consumer", "classic"))
        return Answer(group_id=group, protocol_type=protocol, group_state="Empty", group_type=kind)

    def _fetch(self, node: int, request: Any) -> Any:
        if node in self.fetches:
            return self.fetches[node]
        asked = request.message
        if request.max_version == 7:
            return self._of(node, asked.group_id, asked.topics)
        self.sizes.append(len(asked.groups))
        found = [self._of(node, one.group_id, one.topics) for one in asked.groups]
        return Answer(groups=[one for one in found if one is not None])

    def _of(self, node: int, group: str, topics: Any) -> Any:
        told = self.groups[group]
        if self.where.get(group, 1) != node:
            told = NOT_COORDINATOR
        if told is None:
            return None
        if isinstance(told, int):
            return Answer(group_id=group, error_code=told, topics=[])
        return Answer(group_id=group, error_code=0, topics=[self._topic(one, told) for one in topics])

    def _topic(self, topic: Any, told: tuple[int, int]) -> Answer:
        partitions = []
        for number in topic.partition_indexes:
            address = TopicPartition(topic.name, number)
            offset, epoch = told if address == AT else (-1, -1)
            error = self.partition_errors.get(address, 0)
            partitions.append(
                Answer(partition_index=number, committed_offset=offset, committed_leader_epoch=epoch, error_code=error)
            )
        return Answer(name=topic.name, partitions=partitions)

    def _probe(self, node: int, request: Any) -> Any:
        """Of a group that nobody has: an answer without offsets once its partition is ready."""
        if node in self.fetches:
            return self.fetches[node]
        if node == 1:
            self.probed += 1
        at = min(self.probed, len(self.not_ready)) - 1
        errors = self.not_ready[at] if at >= 0 else {}
        many = request.max_version != 7
        assert request.message.require_stable
        found = []
        for one in request.message.groups if many else [request.message]:
            partition = PROBES[one.group_id]
            error = errors.get(partition, 0) if self.led[partition] == node else NOT_COORDINATOR
            topics = [] if error else [self._topic(topic, (-1, -1)) for topic in one.topics]
            found.append(Answer(group_id=one.group_id, error_code=error, topics=topics))
        return Answer(groups=found) if many else found[0]

    def coordinators(self) -> Coordinators:
        return Coordinators("__consumer_offsets", PARTITIONS_OF_OFFSETS, dict(self.led), self.missing)


def _is_probe(request: Any) -> bool:
    if request.name != "OffsetFetch":
        return False
    asked = request.message
    return (asked.group_id if request.max_version == 7 else asked.groups[0].group_id) in PROBES


def read(brokers: Brokers, *partitions: TopicPartition) -> CommittedOffsets | Unread:
    reader = GroupReader(brokers, (2, 1), brokers.coordinators, timeout_s=1)  # type: ignore[arg-type]
    return reader.read(partitions or (AT,))


def read_all(brokers: Brokers, *partitions: TopicPartition) -> CommittedOffsets:
    found = read(brokers, *partitions)
    assert isinstance(found, CommittedOffsets)
    return found


def test_offsets_come_with_their_epochs_from_every_broker() -> None:
    brokers = Brokers({"b": (140, 5), "a": (7, -1), "nothing-here": (-1, -1)}, where={"b": 2})
    assert read(brokers) == CommittedOffsets({AT: (CommittedOffset("a", 7, None), CommittedOffset("b", 140, 5))}, 3)
    assert sorted(brokers.asked) == [
        "DescribeCluster 1",
        "ListGroups 1",
        "ListGroups 2",
        "OffsetFetch 1",
        "OffsetFetch 2",
    ]


def test_more_groups_than_go_into_a_request_are_all_asked() -> None:
    brokers = Brokers({f"g{number:03}": (number, -1) for number in range(2 * GROUPS_A_REQUEST + 1)})
    found = read_all(brokers)
    assert (found.groups, len(found.offsets[AT])) == (401, 401)
    assert brokers.sizes == [GROUPS_A_REQUEST, GROUPS_A_REQUEST, 1]


def test_brokers_that_take_one_group_a_request_are_asked_so() -> None:
    brokers = Brokers({"a": (7, 1), "b": (8, 1)}, newest={"OffsetFetch": 7})
    assert [one.group for one in read_all(brokers).offsets[AT]] == ["a", "b"]
    assert brokers.asked.count("OffsetFetch 1") == 3


def test_brokers_that_know_no_version_are_said() -> None:
    brokers = Brokers({"a": (7, 1)}, newest={"OffsetFetch": 4})
    assert read_all(brokers).unread == {"a": Unread("no version in common")}


def test_a_group_that_may_not_be_read_is_said_beside_the_others() -> None:
    found = read_all(Brokers({"open": (7, -1), "secret": 30}))
    assert found.unread == {"secret": Unread("GROUP_AUTHORIZATION_FAILED", "DESCRIBE on the group")}
    assert [one.group for one in found.offsets[AT]] == ["open"]


def test_a_topic_that_may_not_be_read_is_said_beside_its_groups_other_offsets() -> None:
    found = read_all(Brokers({"a": (7, -1)}, partition_errors={OTHER: 29}), AT, OTHER)
    assert found.unread == {"a": Unread("TOPIC_AUTHORIZATION_FAILED", "DESCRIBE on topic payments")}
    assert found.offsets == {AT: (CommittedOffset("a", 7, None),)}


def moved(brokers: Brokers) -> Brokers:
    """The same brokers, whose lists tell who coordinates by the time that they are asked again."""

    def move(seconds: float) -> None:
        StillGround.sleep(brokers.ground, seconds)
        brokers.listed_by = {}

    brokers.ground.sleep = move  # type: ignore[method-assign]
    return brokers


def test_a_coordinator_that_moved_is_found() -> None:
    brokers = moved(Brokers({"a": (7, 1), "b": (8, 1)}, where={"a": 2}, listed_by={"a": 1}))
    found = read_all(brokers)
    assert (found.unread, found.not_listed, [one.group for one in found.offsets[AT]]) == ({}, None, ["a", "b"])


def test_of_two_brokers_that_list_a_group_neither_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers({"a": (7, 1)})
    monkeypatch.setattr(brokers, "_list", lambda *_asked: Answer(error_code=0, groups=[brokers._listed("a")]))
    moving = Unread("two brokers list it: its coordinator has moved", passing=True)
    assert read_all(brokers).unread == {"a": moving}


LOADS = {0: LOADING, 2: LOADING}


@pytest.mark.parametrize(
    ("not_ready", "why"),
    [
        # A broker that leads a partition and has not begun to load it, or whose newest commits wait for min ISR.
        ([{2: NOT_COORDINATOR}], "NOT_COORDINATOR for partition 2"),
        ([LOADS], "COORDINATOR_LOAD_IN_PROGRESS for partitions 0, 2"),
        ([{0: 30, 2: 30}], "GROUP_AUTHORIZATION_FAILED for partitions 0, 2"),
    ],
)
def test_a_coordinator_that_may_not_know_all_its_groups_is_not_taken_to_have_none(
    not_ready: list[Mapping[int, int]], why: str
) -> None:
    acl, passing = ("DESCRIBE on the group", False) if "AUTHOR" in why else ("", True)
    found = read_all(Brokers({"a": (7, 1)}, not_ready=not_ready))
    assert found.not_listed == Unread(f"broker 1: {why} of __consumer_offsets", acl, passing)
    assert found.offsets == {AT: (CommittedOffset("a", 7, 1),)}  # a lower bound, which may be misplaced already


@pytest.mark.parametrize("not_ready", [[LOADS, {}], [{}, LOADS, {}]])
def test_a_coordinator_is_asked_again_until_it_was_ready_before_and_after(not_ready: list[Mapping[int, int]]) -> None:
    brokers = Brokers({"a": (7, 1)}, not_ready=not_ready)
    assert read_all(brokers) == CommittedOffsets({AT: (CommittedOffset("a", 7, 1),)}, 1)
    assert brokers.asked.count("ListGroups 1") == 2


def test_a_partition_of_the_groups_without_a_leader_is_said_at_once() -> None:
    missing = Unread("partitions 1 of __consumer_offsets have no leader", passing=True)
    brokers = Brokers({"a": (7, 1)}, led={0: 1, 2: 1}, missing=missing)
    assert (read_all(brokers).not_listed, brokers.ground.slept) == (missing, [])


def test_a_coordinator_that_stays_away_is_asked_until_the_time_is_up() -> None:
    brokers = Brokers({"loading": LOADING, "none": NOT_AVAILABLE, "dead": (1, 1)}, where={"dead": 2}, fetches={2: DEAD})
    found = read_all(brokers)
    assert found.unread == {
        "dead": Unread("connection refused", passing=True),
        "loading": Unread("COORDINATOR_LOAD_IN_PROGRESS", passing=True),
        "none": Unread("COORDINATOR_NOT_AVAILABLE", passing=True),
    }
    assert 0.5 <= sum(brokers.ground.slept) <= 1


def test_a_coordinator_that_hangs_is_waited_for_once() -> None:
    groups = {f"g{number:03}": (number, -1) for number in range(GROUPS_A_REQUEST + 1)}
    brokers = Brokers(dict(groups), fetches={1: SILENT})
    brokers.ground.sleep = lambda seconds: brokers.ground.slept.append(5 * seconds)  # type: ignore[method-assign]
    found = read_all(brokers)
    assert set(found.unread.values()) == {Unread("no answer in time", passing=True)}
    assert (len(found.unread), found.offsets) == (201, {})
    assert brokers.asked.count("OffsetFetch 1") <= 2


def test_what_an_answer_leaves_out_is_not_taken_for_none() -> None:
    found = read_all(Brokers({"a": None, "b": (1, 1)}))
    assert found.unread == {"a": Unread("the coordinator's answer leaves it out")}


def test_a_partition_that_an_answer_leaves_out_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers({"a": (1, 1)})
    whole = brokers._topic
    monkeypatch.setattr(
        brokers, "_topic", lambda one, told: Answer(name=one.name, partitions=whole(one, told).partitions[1:])
    )
    assert read_all(brokers).unread == {"a": Unread("the coordinator's answer leaves it out")}


def test_a_group_that_was_deleted_meanwhile_has_committed_nothing() -> None:
    assert read(Brokers({"gone": 69})) == CommittedOffsets({}, 1)


def test_share_groups_keep_their_place_elsewhere() -> None:
    brokers = Brokers(
        {"shared": 69, "too": (1, 1), "a": (7, 1)}, types={"shared": ("share", "share"), "too": ("", "Share")}
    )
    assert [one.group for one in read_all(brokers).offsets[AT]] == ["a"]


@pytest.mark.parametrize("operations", [-(2**31), 0, 1 << 5])
def test_groups_that_the_listing_hides_are_not_taken_for_none(operations: int) -> None:
    hidden = Unread("ListGroups names only the groups that may be seen", "DESCRIBE on the cluster")
    assert read_all(Brokers(operations=operations)).not_listed == hidden


def test_a_broker_that_did_not_list_its_groups_is_said() -> None:
    brokers = Brokers({"a": (1, 1)}, lists={2: LOADING})
    found = read_all(brokers)
    assert found.not_listed == Unread("broker 2: COORDINATOR_LOAD_IN_PROGRESS", passing=True)
    assert [one.group for one in found.offsets[AT]] == ["a"]
    assert brokers.asked.count("ListGroups 2") > 1


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (31, Unread("CLUSTER_AUTHORIZATION_FAILED", "DESCRIBE on the cluster")),
        (DEAD, Unread("connection refused", passing=True)),
        (SILENT, Unread("no answer in time", passing=True)),
        (
            Failure(FailureKind.GARBLED, "not an answer of a Kafka broker: the message is cut short"),
            Unread("not an answer of a Kafka broker: the message is cut short"),
        ),
    ],
)
def test_where_no_group_can_be_listed_that_is_the_answer(told: Any, expected: Unread) -> None:
    assert read(Brokers(lists={1: told, 2: told})) == expected


def test_without_partitions_nobody_is_asked() -> None:
    brokers = Brokers({"a": (1, 1)})
    reader = GroupReader(brokers, (1, 2), brokers.coordinators, timeout_s=1)  # type: ignore[arg-type]
    assert (reader.read(()), brokers.asked) == (CommittedOffsets(), [])
