"""Pages read as bytes: the same partitions, filters and errors as object by object, and only errors from noise."""

from __future__ import annotations

import struct
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin.topics import DescribeTopicPartitionsResponse

from kelr.errors import ConnectError
from kelr.model import Features, PartitionState, Selection, Situation, TopicPartition, select
from kelr.model.cluster import Broker, BrokerStatus, Cluster
from kelr.protocol.codec import MalformedError
from kelr.sources.base import LeavesOut, Page
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.live import LiveSource
from kelr.sources.live.decode import described_partitions, kinds_of
from kelr.sources.live.page_bytes import Cursor, Skip, cursor_at_end, read_page
from kelr.sources.live.page_shapes import ANY, LookBytes, alike, one_of, regular_size, shape
from kelr.sources.live.reassignments import Reassignments
from kelr.sources.survey import Filters, SurveyPage, survey
from kelr.sources.unwanted import Look, Unwanted
from tests.properties import examples
from tests.sources.fake_cluster import FakeCluster, FakeTransport

BROKERS = (1, 2, 3, 256, 70_000)
"""Ids that differ in their last byte, and in others."""
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_Partition = _Topic.DescribeTopicPartitionsResponsePartition

members = st.lists(st.sampled_from(BROKERS), unique=True, max_size=4).map(tuple)


@st.composite
def partitions(draw: st.DrawFn) -> PartitionState:
    """One without a name; half of them are well."""
    replicas = draw(st.lists(st.sampled_from(BROKERS), unique=True, min_size=1, max_size=4).map(tuple))
    well = draw(st.booleans())
    among = st.lists(st.sampled_from(replicas), unique=True).map(tuple)
    isr = tuple(draw(st.permutations(replicas))) if well else draw(among)
    return PartitionState(
        topic="",
        partition=0,
        leader=draw(st.sampled_from((*replicas, None))),
        leader_epoch=draw(st.integers(0, 2**31 - 1)),
        replicas=replicas,
        isr=isr,
        elr=() if well else draw(among),
        last_known_elr=() if well else draw(members),
        offline_replicas=() if well else draw(members),
        adding=(),
        removing=(),
    )


@st.composite
def topics(draw: st.DrawFn) -> dict[TopicPartition, PartitionState]:
    """Some topics, with numbers that may have gaps."""
    found = {}
    for name in sorted(draw(st.sets(st.sampled_from(["a", "b", "orders", "__consumer_offsets"]), min_size=1))):
        numbers = sorted(draw(st.sets(st.integers(0, 12), min_size=1)) | ({0} if draw(st.booleans()) else set()))
        for number in numbers:
            state = replace(draw(partitions()), topic=name, partition=number, topic_id=TOPIC_ID)
            found[state.address] = state
    return found


@st.composite
def min_isrs(draw: st.DrawFn, held: dict[TopicPartition, PartitionState]) -> dict[str, str]:
    """Of some topics; often as many as partition 0 has replicas, where a full ISR is at min ISR and none is above."""
    found = {}
    for name in sorted({address.topic for address in held}):
        counts = [len(state.replicas) for address, state in sorted(held.items()) if address.topic == name]
        chosen = draw(st.none() | st.just(counts[0]) | st.just(max(counts)) | st.integers(1, 4))
        if chosen is not None:
            found[name] = str(chosen)
    return found


def encoded(states: Sequence[PartitionState], *, cursor: TopicPartition | None = None) -> bytes:
    """A page as kafka-python writes it; states of one topic stand together."""
    groups: dict[str, list[PartitionState]] = {}
    for state in states:
        groups.setdefault(state.topic, []).append(state)
    message = DescribeTopicPartitionsResponse(
        version=0,
        throttle_time_ms=0,
        topics=[
            _Topic(
                error_code=0,
                name=name,
                topic_id=UUID(int=1),
                is_internal=False,
                partitions=[_wire(state) for state in group],
                topic_authorized_operations=-(2**31),
            )
            for name, group in groups.items()
        ],
        next_cursor=None
        if cursor is None
        else DescribeTopicPartitionsResponse.Cursor(topic_name=cursor.topic, partition_index=cursor.partition),
    )
    return bytes(message.encode(version=0))


def _wire(state: PartitionState) -> Any:
    return _Partition(
        error_code=0 if state.leader is not None else 5,
        partition_index=state.partition,
        leader_id=-1 if state.leader is None else state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr or ()),
        last_known_elr=list(state.last_known_elr or ()),
        offline_replicas=list(state.offline_replicas or ()),
    )


NONE_MOVES = Reassignments()


def read_states(body: bytes) -> list[PartitionState]:
    return list(described_partitions(read_page(body), kinds_of(True, NONE_MOVES), NONE_MOVES).partitions)


@given(topics())
def test_what_kafka_python_writes_is_read_whole_and_in_order(held: dict[TopicPartition, PartitionState]) -> None:
    states = [held[address] for address in sorted(held)]
    assert read_states(encoded(states)) == states


@given(topics(), st.randoms(use_true_random=False))
def test_a_broker_that_does_not_sort_is_sorted(held: dict[TopicPartition, PartitionState], chance: Any) -> None:
    states = list(held.values())
    chance.shuffle(states)
    assert read_states(encoded(states)) == [held[address] for address in sorted(held)]


def test_the_cursor_and_the_first_replica_counts_are_told() -> None:
    states = [
        PartitionState("a", 1, 1, 4, (1, 2), (1, 2), offline_replicas=()),
        PartitionState("b", 0, 1, 4, (1, 2, 3), (1, 2, 3), offline_replicas=()),
    ]
    page = described_partitions(
        read_page(encoded(states, cursor=TopicPartition("b", 7))), kinds_of(None, NONE_MOVES), NONE_MOVES
    )
    assert page.next_cursor == TopicPartition("b", 7)
    assert page.first_replicas == {"b": 3}
    assert list(page.topics) == ["a", "b"]


NAMES = st.text("abcxyzABCXYZ019._-", min_size=1, max_size=130)


@given(topics(), st.none() | st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1)), st.data())
def test_the_cursor_is_found_at_the_end_as_it_is_found_by_reading(
    held: dict[TopicPartition, PartitionState], cursor: TopicPartition | None, data: st.DataObject
) -> None:
    body = encoded([held[address] for address in sorted(held)], cursor=cursor)
    told = read_page(body).next_cursor
    assert cursor_at_end(body) == (told if cursor is not None and len(cursor.topic) <= 126 else None)
    # Whatever else is tried, an answer that can be read has no other cursor.
    changed = bytearray(body)
    changed[-data.draw(st.integers(1, min(20, len(body))))] = data.draw(st.sampled_from([0, 1, 2, 45, 97, 255]))
    with suppress(MalformedError):
        told = read_page(bytes(changed)).next_cursor
        assert cursor_at_end(bytes(changed)) in {told, None}


def test_a_cursor_that_stands_in_a_length_or_a_name_is_not_taken_for_one() -> None:
    assert cursor_at_end(b"\x00" * 4 + b"\x01\x01\x02a" + b"\x00" * 3 + b"\x07\x00\x00") == Cursor("a", 7)
    assert cursor_at_end(b"\x00" * 4 + b"\x01\x01\x03a" + b"\x00" * 3 + b"\x07\x00\x00") is None
    assert cursor_at_end(b"\x00" * 4 + b"\x01\xff\x00") is None
    assert cursor_at_end(b"") is None


IDS = st.none() | st.frozensets(st.sampled_from([1, 2, 3]))


@given(st.lists(partitions(), min_size=1, max_size=6), IDS, IDS, st.integers(1, 3))
@examples(100)
def test_what_is_compared_in_columns_is_what_expressions_match(
    states: list[PartitionState], leaders: frozenset[int] | None, replicas: frozenset[int] | None, count: int
) -> None:
    """Partitions with one number of replicas, one behind the other."""
    wanted = [replace(one, topic="t", partition=number) for number, one in enumerate(states)]
    body = encoded(wanted)
    at = body.index(b"t", 6) + 1 + 16 + 1 + 1
    look = LookBytes(
        ANY if leaders is None else one_of(leaders),
        ANY if replicas is None else one_of(replicas),
        leader_ids=leaders,
        replica_ids=replicas,
    )
    expression, (columns,) = shape(count, [look]), alike(count, [look])
    assert expression is not None
    matched = expression.match(body, at)
    assert matched is not None
    for left in range(1, len(wanted) + 1):
        assert columns.holds(body, at, left) == (matched.end() - at >= left * regular_size(count))
    assert not columns.holds(body, at, len(body))


@pytest.mark.parametrize("leaderless", [None, 0, 20, 39])
@pytest.mark.parametrize("topics", [1, 7])
def test_topics_of_many_partitions_are_passed_over_whole_or_in_parts(leaderless: int | None, topics: int) -> None:
    """Of each kind of list; more numbers of partitions than there are expressions for."""
    look = Look(leader_in=frozenset({1, 2, 3}), well=False)
    kinds = [((1, 2, 3), ()), ((2,), (3,)), ((3, 1), ()), ((), (1, 2))]
    states = [
        PartitionState(
            f"t{topic}", number, None if number == leaderless else 1, 4, (1, 2, 3), isr, elr, (), offline_replicas=()
        )
        for topic in range(topics)
        for number, (isr, elr) in zip(range(40 + topic), kinds * 12, strict=False)
    ]
    page = read_page(encoded(states), skip=Skip(Unwanted((look,))))
    found = list(described_partitions(page, kinds_of(True, NONE_MOVES), NONE_MOVES).partitions)
    read = Counter(one.topic for one in found)
    assert [topic.left_out + read[topic.name or ""] for topic in page.topics] == [40 + n for n in range(topics)]
    # What is not passed over is as it was; what is wanted is among it.
    assert {(one.topic, one.partition, one.leader, one.isr, one.elr) for one in found} <= {
        (one.topic, one.partition, one.leader, one.isr, one.elr) for one in states
    }
    assert [one.address for one in found if one.leader is None] == [one.address for one in states if one.leader is None]
    assert leaderless is not None or not found


@pytest.mark.parametrize("ids", [frozenset({1, 256}), frozenset({70_000}), frozenset({-1})])
def test_ids_of_more_than_one_byte_are_left_to_the_expressions(ids: frozenset[int]) -> None:
    assert alike(3, [LookBytes(one_of(ids), leader_ids=ids)]) == ()
    assert alike(3, [LookBytes(replica=one_of(ids), replica_ids=ids)]) == ()


@given(topics(), st.data())
@examples(200)
def test_bytes_that_are_cut_or_changed_are_an_error_or_an_answer(
    held: dict[TopicPartition, PartitionState], data: st.DataObject
) -> None:
    whole = bytearray(encoded(list(held.values()), cursor=TopicPartition("z", 1)))
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    body = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    skip = data.draw(st.sampled_from([None, Skip(Unwanted((Look(leader_in=frozenset({1, 2})),)))]))
    try:
        page = read_page(body, skip=skip)
    except MalformedError:
        return
    with suppress(ConnectError):
        list(described_partitions(page, kinds_of(True, NONE_MOVES), NONE_MOVES).partitions)


@given(topics())
def test_every_beginning_of_a_page_is_cut_short(held: dict[TopicPartition, PartitionState]) -> None:
    whole = encoded(list(held.values()))
    for size in range(len(whole)):
        with pytest.raises(MalformedError):
            read_page(whole[:size])
    with pytest.raises(MalformedError, match="another length"):
        read_page(whole + b"\x00")


@pytest.mark.parametrize(
    "body",
    [
        b"\x00" * 4 + b"\xff\xff\xff\xff\x07" + b"\x00" * 20,  # two thousand million topics
        b"\x00" * 4 + b"\x02\x00\x00\x02a" + b"\x00" * 17 + b"\xff\xff\xff\xff\x07" + b"\x00" * 40,  # partitions
        b"\x00" * 4 + b"\xff" * 40,
    ],
)
def test_lengths_that_claim_gigabytes_allocate_nothing(body: bytes) -> None:
    with pytest.raises(MalformedError):
        read_page(body)


@given(st.frozensets(st.integers(-(2**31), 2**31 - 1), max_size=6), st.integers(-(2**31), 2**31 - 1))
def test_an_expression_for_ids_matches_those_ids(ids: frozenset[int], other: int) -> None:
    expression = shape(1, [LookBytes(one_of(ids))])
    assert expression is not None
    for number in {*ids, other}:
        state = PartitionState("t", 0, number, 0, (5,), (5,), elr=(), last_known_elr=(), offline_replicas=())
        if number == -1:
            continue  # no leader
        body = encoded([state])
        start = read_page(body).topics[0].pieces[0].start
        matched = expression.match(body, start)
        assert matched is not None
        assert (matched.end() > start) == (number in ids)


def _cluster(*, live: frozenset[int], listed: frozenset[int], elr: int | None) -> Cluster:
    finalized = None if elr is None else {"eligible.leader.replicas.version": elr}
    return Cluster(
        cluster_id="c",
        brokers=tuple(
            Broker(
                number,
                BrokerStatus.LIVE if number in live else BrokerStatus.FENCED,
                "127.0.0.1",
                9000,
                "az1" if number < 3 else None,
            )
            for number in sorted(listed)
        ),
        features=Features(finalized, finalized),
    )


class OneByOne:
    """The same source, whose pages are plain partitions, none left out."""

    def __init__(self, source: LiveSource) -> None:
        self._source = source
        self.name = source.name
        self.cluster = source.cluster
        self.topic_configs = source.topic_configs

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        for page in self._source.pages(selection, page_size=page_size, start=start):
            yield replace(page, partitions=tuple(page.partitions))


filters = st.builds(
    Filters,
    leaderless=st.booleans(),
    under_min_isr=st.booleans(),
    at_min_isr=st.sampled_from([False, False, True]),
    under_replicated=st.booleans(),
    has_elr=st.sampled_from([False, False, True]),
    has_last_known=st.sampled_from([False, False, True]),
    offline=st.booleans(),
    situations=st.frozensets(st.sampled_from(list(Situation)), max_size=3),
    brokers=st.frozensets(st.sampled_from(BROKERS), max_size=2),
    racks=st.frozensets(st.sampled_from(["az1", "az9"]), max_size=1),
    exclude_internal=st.booleans(),
    unsettled=st.booleans(),
) | st.sampled_from(
    [Filters(leaderless=True), Filters(under_min_isr=True), Filters(offline=True), Filters(unsettled=True), Filters()]
)


def _told(pages: Iterator[SurveyPage]) -> tuple[list[Any], int, int, list[Any]]:
    found, read, undecided, errors = [], 0, 0, []
    for page in pages:
        found += list(page.partitions)
        read += page.read
        undecided += page.undecided
        errors += page.topic_errors
    return found, read, undecided, errors


@given(
    held=topics(),
    wanted=filters,
    live=st.frozensets(st.sampled_from(BROKERS)),
    listed=st.frozensets(st.sampled_from(BROKERS)),
    elr=st.sampled_from([None, 0, 1]),
    data=st.data(),
    size=st.integers(1, 9),
    start=st.none() | st.builds(TopicPartition, st.sampled_from(["a", "b", "orders"]), st.integers(0, 12)),
    targets=st.sampled_from([[], [], ["orders"], ["o*", "absent"], ["a:0-3", "b"]]),
)
@examples(120)
def test_filters_decide_the_same_on_bytes_as_on_partitions(
    *,
    held: dict[TopicPartition, PartitionState],
    wanted: Filters,
    live: frozenset[int],
    listed: frozenset[int],
    elr: int | None,
    data: st.DataObject,
    size: int,
    start: TopicPartition | None,
    targets: list[str],
) -> None:
    cluster = FakeCluster(_cluster(live=live, listed=listed | {1}, elr=elr), held)
    min_isr = data.draw(min_isrs(held))
    cluster.configs = {topic: {"min.insync.replicas": (value, 1)} for topic, value in min_isr.items()}
    connection = ConnectionSettings((("127.0.0.1", 1),), timeout_s=0.4)
    source = LiveSource(connection, connect=lambda _settings: FakeTransport(cluster))
    by_bytes = _told(survey(source, select(targets), filters=wanted, page_size=size, start=start))
    one_by_one: Any = OneByOne(source)
    assert by_bytes == _told(survey(one_by_one, select(targets), filters=wanted, page_size=size, start=start))
    told = survey(source, select(targets), filters=wanted, page_size=size, start=start, shows_configs=False)
    without_configs = _told(told)
    assert without_configs[1:] == by_bytes[1:]
    stands = [[(row.state, row.situation) for row in rows] for rows in (without_configs[0], by_bytes[0])]
    assert stands[0] == stands[1], "configs that are left out do not decide"


class Deaf:
    """A source whose replicas tell nothing; with `pages_without` where its own one has it."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.name, self.taken_at_ms = source.name, 0
        self.cluster, self.topic_configs, self.pages = source.cluster, source.topic_configs, source.pages
        if isinstance(source, LeavesOut):
            self.pages_without = source.pages_without

    def replica_logs(self, *_: Any, **__: Any) -> dict[TopicPartition, Any]:
        return {}


@given(held=topics(), live=st.frozensets(st.sampled_from(BROKERS)), elr=st.sampled_from([None, 0, 1]), data=st.data())
@examples(60)
def test_unsafe_partitions_are_decided_the_same_where_healthy_ones_are_left_out_unread(
    held: dict[TopicPartition, PartitionState], live: frozenset[int], elr: int | None, data: st.DataObject
) -> None:
    cluster = FakeCluster(_cluster(live=live, listed=live | {1}, elr=elr), held)
    cluster.configs = {topic: {"min.insync.replicas": (value, 1)} for topic, value in data.draw(min_isrs(held)).items()}
    connection = ConnectionSettings((("127.0.0.1", 1),), timeout_s=0.4)
    source = LiveSource(connection, connect=lambda _settings: FakeTransport(cluster))
    quick: Any = Deaf(source)
    slow: Any = Deaf(OneByOne(source))
    found = [
        [
            decision
            for page in decide_partitions(one, select([]), clock_ms=lambda: 0, only_unsafe=True)
            for decision in page.decisions
        ]
        for one in (quick, slow)
    ]
    assert isinstance(quick, LeavesOut)
    assert not isinstance(slow, LeavesOut)
    assert found[0] == found[1]


@pytest.mark.parametrize("shows_configs", [True, False])
def test_a_full_isr_is_at_min_isr_whether_configs_are_shown_or_not(shows_configs: bool) -> None:
    """`describe --summary --at-min-isr` counts what `describe --at-min-isr` lists."""
    full = PartitionState("orders", 0, 1, 0, (1, 2), (1, 2), (), (), (), topic_id=TOPIC_ID)
    cluster = FakeCluster(_cluster(live=frozenset({1, 2}), listed=frozenset({1, 2}), elr=1), {full.address: full})
    cluster.configs = {"orders": {"min.insync.replicas": ("2", 1)}}
    connection = ConnectionSettings((("127.0.0.1", 1),), timeout_s=0.4)
    with LiveSource(connection, connect=lambda _settings: FakeTransport(cluster)) as source:
        pages = survey(source, select([]), filters=Filters(at_min_isr=True), shows_configs=shows_configs)
        assert [(row.state.address, row.min_isr) for row in _told(pages)[0]] == [(full.address, 2)]


_ids = st.none() | st.frozensets(st.sampled_from(BROKERS))
looks = st.builds(Look, _ids, _ids, st.booleans(), st.booleans(), st.booleans(), st.booleans())
unwanted_ones = st.builds(Unwanted, st.lists(looks, min_size=1, max_size=3).map(tuple))


@given(partitions(), unwanted_ones)
@examples(100)
def test_unwanted_bytes_are_those_of_unwanted_partitions(state: PartitionState, unwanted: Unwanted) -> None:
    (topic,) = read_page(encoded([replace(state, topic="t", partition=5)]), skip=Skip(unwanted)).topics
    assert (topic.left_out == 0) == bool(topic.pieces)
    lists = (state.isr, state.elr, state.last_known_elr, state.offline_replicas)
    if max(len(one or ()) for one in lists) <= len(state.replicas) and sys.version_info >= (3, 11, 5):
        assert (topic.left_out == 1) == unwanted.holds(state)
    else:  # there is no expression for longer lists, nor one with choices in older Pythons
        assert topic.left_out <= unwanted.holds(state)


@given(st.lists(st.tuples(partitions(), st.integers(1, 70)), min_size=1, max_size=8), unwanted_ones)
@examples(60)
def test_of_long_topics_none_but_unwanted_partitions_are_passed_over(
    runs: list[tuple[PartitionState, int]], unwanted: Unwanted
) -> None:
    alike = [state for state, times in runs for _ in range(times)]
    states = [replace(state, topic="t", partition=n, topic_id=TOPIC_ID) for n, state in enumerate(alike)]
    page = read_page(encoded(states), skip=Skip(unwanted))
    read = list(described_partitions(page, kinds_of(True, NONE_MOVES), NONE_MOVES).partitions)
    left = page.topics[0].left_out
    numbers = {state.partition for state in read}
    assert read == [state for state in states if state.partition in numbers]
    assert len(read) + left == len(states)
    assert all(unwanted.holds(state) for state in states if state.partition not in numbers)


@pytest.mark.parametrize("well", [True, False])
@pytest.mark.parametrize("number", [0, 5])
@pytest.mark.parametrize("before", [1, 2, 65])
def test_what_follows_a_topic_is_no_partition_of_it_though_it_look_like_one(
    before: int, number: int, *, well: bool
) -> None:
    """The bytes between two topics can be those of a partition, its leader out of the second one's name."""
    behind = struct.unpack(">i", b"\x00\x07ab")[0]
    leader = 1
    topic_id = b"\x02" + struct.pack(">i", 1) + b"\x01\x01\x01\x01\x00" + b"\x01" * 6
    one = PartitionState("a", 0, leader, 1, (1,), (1,) if well else (), (), (), ())
    states = [replace(one, partition=number + at) for at in range(before)]
    body = encoded([*states, replace(one, topic="abcdef")]).replace(
        UUID(int=1).bytes + b"\x00\x02", topic_id + b"\x00\x02"
    )
    pretended = body[body.index(b"\x80\x00\x00\x00") :]
    assert one_partition(pretended) == (-32768, 0, behind)
    for looks in ((), (Look(well=False),), (Look(frozenset({leader, behind}), well=False),), (Look(),)):
        topics = read_page(body, skip=Skip(Unwanted(looks)) if looks else None).topics
        assert [topic.name for topic in topics] == ["a", "abcdef"]
        found = [topic.left_out + sum(piece.count or 1 for piece in topic.pieces) for topic in topics]
        assert found == [before, 1], looks


def one_partition(data: bytes) -> tuple[int, int, int]:
    """Error, number and leader of the partition with one replica and nothing else that these bytes begin with."""
    error, number, leader, _ = struct.unpack_from(">hiii", data)
    assert data[14:24] == b"\x02" + struct.pack(">i", 1) + b"\x01\x01\x01\x01\x00"
    return error, number, leader


def test_pieces_of_a_page_follow_each_other() -> None:
    well = PartitionState("t", 0, 1, 4, (1, 2), (1, 2), elr=(), last_known_elr=(), offline_replicas=())
    states = [replace(well, partition=number, isr=(1,) if number == 3 else (1, 2)) for number in range(7)]
    (topic,) = read_page(encoded(states)).topics
    assert sum(piece.count or 1 for piece in topic.pieces) == 7
    assert topic.pieces[0].count == 3
    assert all(one.end == other.start for one, other in pairwise(topic.pieces))


@pytest.mark.parametrize(
    "looks",
    [
        [LookBytes()],
        [LookBytes(one_of(frozenset({1})))],
        [LookBytes(ANY, one_of(frozenset({1, 2, 3})))],
        [LookBytes(one_of(frozenset({1}))), LookBytes(ANY, one_of(frozenset({1, 2, 3})))],
    ],
)
@pytest.mark.parametrize("alike", range(4))
def test_a_run_ends_where_the_next_partition_is_another(looks: list[LookBytes], alike: int) -> None:
    """Python's possessive expressions went on into what did not match, before 3.11.5."""

    def wire(number: int, leader: int, isr: tuple[int, ...]) -> bytes:
        lists = [(1, 2, 3), isr, (), (), ()]
        return (
            struct.pack(">hiii", 0, number, leader, 0)
            + b"".join(bytes([len(ids) + 1]) + struct.pack(f">{len(ids)}i", *ids) for ids in lists)
            + b"\x00"
        )

    run = b"".join(wire(number, 1, (1, 2, 3)) for number in range(alike))
    expression = shape(3, looks)
    assert expression is not None
    found = expression.match(run + wire(alike, -1, ()) + wire(alike + 1, 1, (1, 2, 3)) * 3)
    assert (found.end() if found else 0) == len(run)
