"""Which part of a log is told, about whom; and how long partitions were in trouble."""

from __future__ import annotations

from kelr.model import TopicPartition
from kelr.replay import records as rec
from kelr.replay.history import (
    BrokerEntry,
    CauseKind,
    History,
    Interest,
    Moment,
    PartitionEntry,
    PartitionsEntry,
    PartitionSummary,
    Trouble,
    Window,
    grouped,
)
from kelr.replay.image import TOPIC
from tests.replay.history.told import BEGAN_MS, ID, Log, changed, fenced, made, registered, unfenced

ORDERS = TopicPartition("orders", 0)
NAMED = Interest(lambda address: address == ORDERS, named=True)


def trouble() -> Log:
    """Broker 1 leads alone for 1 s, nobody for 2 s; then broker 2 is elected uncleanly, and leads alone since."""
    log = Log()
    log.topic(1, 2, 3)
    log.write(changed(isr=(1, 2)), fenced(3))
    log.write(changed(isr=(1,), elr=(2,)), fenced(2))
    log.write(changed(leader=rec.NO_LEADER, isr=(), elr=(2, 1), last_known_elr=(1,)), fenced(1))
    log.write(changed(elr=(1,)), registered(2, 20))
    log.write(unfenced(2, 20), changed(leader=2, isr=(2,), elr=(), last_known_elr=(), recovering=True))
    log.write(rec.Irrelevant("NoOpRecord"), later_ms=5000)
    return log


def summary(log: Log, interest: Interest = NAMED, window: Window | None = None) -> list[PartitionSummary]:
    history = History(interest, window or Window(), keep_all=interest.named)
    for batch in log.batches:
        if history.over(batch):
            break
        list(history.take(batch))
    list(history.finish())
    return list(history.summaries())


def test_how_long_each_trouble_lasted() -> None:
    (found,) = summary(trouble())
    assert {trouble: span.total_ms for trouble, span in found.spans.items()} == {
        Trouble.UNDER_MIN_ISR: 1000 + 5000,
        Trouble.LAST_REPLICA: 1000 + 5000,
        Trouble.LEADERLESS: 2000,
        Trouble.ELR_ONLY: 2000,
    }
    assert found.lasting.keys() == {Trouble.UNDER_MIN_ISR, Trouble.LAST_REPLICA}
    assert [(entry.election.last_leader, entry.election.leader) for entry in found.unsafe if entry.election] == [(1, 2)]
    assert found.elections == 1


def test_troubles_are_counted_within_the_window_alone() -> None:
    log = trouble()
    since = next(
        entry.at.timestamp_ms
        for entry in log.told()
        if isinstance(entry, BrokerEntry) and entry.broker == 1 and entry.event == "fenced"
    )
    (found,) = summary(log, window=Window(Moment(at_ms=since + 500), Moment(at_ms=since + 1500)))
    assert found.spans[Trouble.LEADERLESS].total_ms == 1000
    assert Trouble.UNDER_MIN_ISR not in found.spans


def test_a_config_ends_and_begins_trouble() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(changed(isr=(1, 2)), fenced(3))
    log.write(rec.ConfigSet(TOPIC, "orders", "min.insync.replicas", "3"))
    log.write(rec.ConfigSet(TOPIC, "orders", "min.insync.replicas", "1"), later_ms=7000)
    log.write(rec.Irrelevant("NoOpRecord"))
    (found,) = summary(log)
    assert found.spans[Trouble.UNDER_MIN_ISR].total_ms == 7000
    assert not found.lasting


def test_a_min_isr_that_is_not_on_record_is_not_known() -> None:
    log = Log()
    log.batches[0] = rec.RecordBatch(0, 1, BEGAN_MS, (rec.FeatureLevel("metadata.version", 30),) * 2)
    log.topic(1, 2, 3)
    log.write(changed(isr=(1,)))
    (found,) = summary(log)
    assert (found.min_isr, found.min_isr_unknown) == (None, True)
    assert Trouble.UNDER_MIN_ISR not in found.spans
    assert Trouble.LAST_REPLICA in found.spans


def test_partitions_that_were_never_in_trouble_are_not_kept_unless_named() -> None:
    log = Log()
    log.topic(1, 2, 3)
    log.write(rec.Irrelevant("NoOpRecord"))
    assert summary(log, Interest()) == []
    assert [found.address for found in summary(log)] == [ORDERS]


def test_a_window_begins_with_the_state_that_it_finds() -> None:
    log = trouble()
    told = log.told(NAMED, Window(Moment(offset=log.batches[4].base_offset)))
    first = told[0]
    assert isinstance(first, PartitionEntry)
    assert first.cause.kind is CauseKind.AS_FOUND
    assert (first.state.leader, first.state.isr) == (1, (1, 2))
    assert [entry.at.offset for entry in told[1:]] == list(range(log.batches[4].base_offset, log.end - 1))


def test_the_quorum_of_one_partition_hangs_on_partition_0_as_well() -> None:
    """The controller takes its min ISR from partition 0, which has one replica: broker 2 was in no ELR of KIP-966."""
    log = Log()
    log.write(rec.TopicMade("orders", ID), made(0, (1,)), made(1, (1, 2, 3)))
    log.write(changed(1, isr=(1, 2)))
    log.write(changed(1, isr=(1,)))
    log.write(changed(1, leader=rec.NO_LEADER, isr=(), elr=(1,)))
    log.write(changed(1, elr=(), last_known_elr=(1,)), registered(1, 20))
    log.write(registered(2, 21))
    one = TopicPartition("orders", 1)
    named = Interest(lambda address: address == one, named=True)
    for interest in (named, Interest()):
        history = History(interest, Window(), quorums=True)
        for batch in log.batches:
            list(history.take(batch))
        found = history.quorum(one)
        assert found is not None
        assert (found.members, found.restarted, found.last_known_elr) == ((1, 2), (1, 2), (1,))


def test_a_window_ends_before_its_end() -> None:
    log = trouble()
    end = log.batches[4].base_offset
    assert max(entry.at.offset for entry in log.told(window=Window(until=Moment(offset=end)))) == end - 1


def test_only_what_concerns_a_broker() -> None:
    told = trouble().told(Interest(brokers=frozenset({3})))
    assert [
        (entry.broker, str(entry.event)) if isinstance(entry, BrokerEntry) else str(entry.cause.kind)
        for entry in told
        if isinstance(entry, BrokerEntry | PartitionEntry)
    ] == [(3, "registered"), "topic-created", "broker-fenced", (3, "fenced")]


def test_only_unclean_elections() -> None:
    (entry,) = trouble().told(Interest(unclean_only=True))
    assert isinstance(entry, PartitionEntry)
    assert entry.state.leader == 2


def test_one_cause_of_many_changes_is_one_entry() -> None:
    log = Log()
    log.write(rec.TopicMade("orders", ID), *(made(number, (1, 2, 3)) for number in range(5)))
    moved = [changed(number, leader=2, isr=(2, 3)) for number in range(3)]
    lost = [changed(number, isr=(2, 3)) for number in (3, 4)]
    log.write(*moved, *lost, fenced(1))
    (group,) = [entry for entry in grouped(log.told()) if isinstance(entry, PartitionsEntry)][-1:]
    assert (group.count, group.topics, group.moved_leader, group.isr_shrank) == (5, ("orders",), 3, 5)
    assert [str(entry.address) for entry in group.entries] == ["orders:0", "orders:1", "orders:2"]
