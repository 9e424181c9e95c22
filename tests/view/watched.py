"""A watch for tests of its screen: the incident at one look, and what it has become at the next."""

from __future__ import annotations

from dataclasses import replace

from kelr.engine.watching import BrokerChange, Change, PartitionChange, Story, changes_between
from kelr.model import Broker, BrokerStatus, PartitionState, ReplicaLog, Selection, Snapshot, TopicPartition
from kelr.sources.decisions import decide_partitions
from kelr.sources.memory import MemorySource
from kelr.sources.watched import Looker
from kelr.view.explain import Explanation
from kelr.view.styled import plain
from kelr.view.watch.lines import WatchLine
from kelr.view.watch.model import Detail, Shown, log_lines
from tests.incident import INCIDENT, LOGS, PARTITIONS

BEGIN_MS = INCIDENT.taken_at_ms
"""22:13:20 UTC."""
SECOND_MS = BEGIN_MS + 2000
ORDERS_1 = TopicPartition("orders", 1)


def _grown(before: Snapshot) -> Snapshot:
    """Two seconds later: broker 1 is back and leads orders:1, orders:0 has lost its leader, payments:0 catches up."""
    states: list[PartitionState] = []
    for state in PARTITIONS:
        if state.address == ORDERS_1:
            states.append(replace(state, leader=1, leader_epoch=3, isr=(1,), elr=(), last_known_elr=()))
        elif state.address == TopicPartition("orders", 0):
            states.append(replace(state, leader=None, leader_epoch=6, isr=(), elr=(2, 3), last_known_elr=(2,)))
        elif state.topic == "payments":
            states.append(replace(state, isr=(3, 2), elr=()))
        else:
            states.append(state)
    brokers = (
        Broker(1, BrokerStatus.LIVE, "kafka-1", 9092, "az1"),
        Broker(2, BrokerStatus.FENCED, "kafka-2", 9092, "az2"),
        Broker(3, BrokerStatus.FENCED, "kafka-3", 9092, "az3"),
    )
    later = {
        ORDERS_1: tuple(
            replace(log, log_end=log.log_end + 30, read_at_ms=SECOND_MS) if isinstance(log, ReplicaLog) else log
            for log in LOGS[ORDERS_1]
        )
    }
    cluster = replace(before.cluster, brokers=brokers)
    return replace(before, partitions=tuple(states), cluster=cluster, taken_at_ms=SECOND_MS, logs=later)


LATER = _grown(INCIDENT)


def at_first(snapshot: Snapshot = INCIDENT) -> Shown:
    """After the first look and the first logs."""
    story = Story.beginning(looker(BEGIN_MS).look(MemorySource(snapshot)))
    return with_logs(
        Shown(
            title="kafka-1:9092",
            interval_s=2,
            now_ms=BEGIN_MS + 1000,
            explanation=Explanation(lambda words: " ".join(["kelr", *words, "-b", "kafka-1:9092"])),
            story=story,
            begun_ms=BEGIN_MS,
        ),
        snapshot,
    )


def later(shown: Shown) -> Shown:
    """After the second look and the second logs."""
    assert shown.story is not None
    sight = looker(SECOND_MS).look(MemorySource(LATER), shown.story.sight)
    story, changes = shown.story.after(sight)
    log = log_lines(sight.seen_ms, changes)
    return with_logs(replace(shown, story=story, log=log, now_ms=SECOND_MS + 1000), LATER)


def _changes() -> tuple[Change, ...]:
    story = at_first().story
    assert story is not None
    sight = looker(SECOND_MS).look(MemorySource(LATER), story.sight)
    gone = PartitionChange(ORDERS_1, story.sight.partitions[ORDERS_1], None)
    return (*changes_between(story.sight, sight), gone, BrokerChange(9, BrokerStatus.FENCED, None))


def looker(at_ms: int) -> Looker:
    return Looker(Selection(), lambda: at_ms)


def with_logs(shown: Shown, snapshot: Snapshot) -> Shown:
    (page,) = decide_partitions(MemorySource(snapshot), Selection(), clock_ms=lambda: snapshot.taken_at_ms)
    logs = page.snapshot.logs
    details = {
        at: Detail(one, snapshot.taken_at_ms, tuple(logs.get(at, ())))
        for one in page.decisions
        for at in [TopicPartition(one.topic, one.partition)]
    }
    return replace(shown, details=details, readings=shown.readings.with_answers(page.snapshot.logs))


CHANGES = _changes()
"""What the second look saw, and a broker and a partition that are gone."""
SAID = WatchLine(SECOND_MS, "not-read", "", plain("the cluster cannot be read: caf\u00e9, no answer"))
