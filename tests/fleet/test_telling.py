"""Rows that a log is told as: what `kelr history` tells of it, and what only the tables have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given

from kelr.fleet.tables import INGESTED
from kelr.fleet.telling import KEPT_CONFIGS, HistoryBuilder, Told, tell
from kelr.model import leader_min_isr
from kelr.replay import records as rec
from kelr.replay.history.causes import config_min_isr
from kelr.replay.image import BROKER, TOPIC, MetadataImage
from tests.fleet.as_history import as_state, check_rows_are_entries, rows
from tests.fleet.random_logs import BEGIN, DIRECTORIES, REPLICAS, TOPICS, checkpoint_of, logs, registered
from tests.properties import examples

ORDERS, PAYMENTS = TOPICS["orders"], TOPICS["payments"]
FROM_MS, STEP_MS = 1_760_000_000_000, 1_000
COLUMNS = {table.name: set(table.columns) - {"cluster", "date", "valid_to"} for table in INGESTED}
OF_SNAPSHOTS = {"offline_replicas"}


def batches_of(*batches: Sequence[rec.MetadataRecord], begin: bool = True) -> list[rec.RecordBatch]:
    """A second between each two."""
    found, offset = list[rec.RecordBatch](), 0
    for number, records in enumerate([BEGIN, *batches] if begin else batches):
        found.append(rec.RecordBatch(offset, 1, FROM_MS + STEP_MS * number, tuple(records)))
        offset += len(records)
    return found


def states(told: Iterable[Told], topic_id: str = ORDERS, partition: int = 0) -> list[Mapping[str, Any]]:
    """The rows of a partition."""
    found = rows(told, "partition_states")
    return [row for row in found if (row["topic_id"], row["partition"]) == (topic_id, partition)]


def changed(partition: int = 0, topic_id: str = ORDERS, **told: Any) -> rec.PartitionChanged:
    return rec.PartitionChanged(topic_id, partition, **told)


@examples(30)
@given(logs)
def test_rows_are_the_entries_of_a_history(batches: list[rec.RecordBatch]) -> None:
    check_rows_are_entries(batches)


@examples(30)
@given(logs)
def test_the_newest_rows_are_the_image_and_hold_its_min_isr(batches: list[rec.RecordBatch]) -> None:
    teller = HistoryBuilder()
    told = [one for batch in batches for one in teller.take(batch)] + list(teller.finish())
    newest = {(row["topic_id"], row["partition"]): row for row in rows(told, "partition_states")}
    there = {key: row for key, row in newest.items() if row["replicas"] is not None}
    image = teller.image
    expected = {(state.topic_id, state.partition): state for state in image.partitions()}
    assert there.keys() == expected.keys()
    for key, state in expected.items():
        row = there[key]
        assert as_state({**row, "partition_epoch": state.partition_epoch}) == state
        assert row["min_isr"] == leader_min_isr(config_min_isr(image, state.topic), len(state.replicas))
    brokers = {row["broker"]: row for row in rows(told, "broker_events")}
    live = {broker for broker, row in brokers.items() if row["status"] != "unregistered"}
    assert live == image.brokers.keys()
    assert all(brokers[broker]["broker_epoch"] == image.brokers[broker].registration.epoch for broker in live)
    configs: dict[tuple[Any, ...], Any] = {}
    for row in rows(told, "configs"):
        configs[row["resource_type"], row["resource"], row["key"]] = row["value"]
    kinds = {TOPIC: "topic", BROKER: "broker"}
    written = {
        (kinds[kind] if name else "cluster", name, key): value
        for (kind, name), values in image.configs.items()
        for key, value in values.items()
        if key in KEPT_CONFIGS
    }
    gone = {("topic", name) for name in TOPICS if name not in image.names}
    assert {key: value for key, value in configs.items() if value is not None and key[:2] not in gone} == {
        key: value for key, value in written.items() if key[:2] not in gone
    }


@examples(20)
@given(logs)
def test_every_row_has_the_columns_of_its_table(batches: list[rec.RecordBatch]) -> None:
    for one in tell(batches):
        assert one.row.keys() <= COLUMNS[one.table]
        assert one.row.get("source", "log") == "log"
        if one.table == "partition_states":
            assert COLUMNS[one.table] == one.row.keys()


def test_where_the_log_ends_is_told() -> None:
    told = list(tell(batches_of([changed(isr=(1, 2))])))
    (end,) = [row for row in rows(told, "cluster_events") if row["event"] == "end"]
    assert (end["at"], end["offset"]) == (FROM_MS + STEP_MS, len(BEGIN))
    assert told[-1].row is end


def test_another_min_isr_makes_rows_of_partitions_that_did_not_change() -> None:
    write = rec.ConfigSet(TOPIC, "orders", "min.insync.replicas", "3")
    cleared = changed(0, elr=(3,))
    told = list(tell(batches_of([cleared], [write, rec.ElrCleared("orders")])))
    before, lost, written, after = states(told)
    assert [row["min_isr"] for row in (before, lost, written, after)] == [2, 2, 3, 3]
    assert (written["elr"], after["elr"]) == ((3,), ())
    assert written["from_offset"] + 1 == after["from_offset"] == len(BEGIN) + 2
    assert {row["cause"] for row in (written, after)} == {"min-isr-written"}
    made, other = states(told, partition=1)
    assert (made["min_isr"], other["min_isr"], other["from_offset"]) == (2, 3, written["from_offset"])
    for_all = rec.ConfigSet(BROKER, "", "min.insync.replicas", "1")
    assert [row["min_isr"] for row in states(tell(batches_of([for_all])), partition=1)] == [2, 1]
    assert [row["min_isr"] for row in states(tell(batches_of([write], [for_all])), partition=1)] == [2, 3]


def test_fewer_replicas_of_partition_0_say_nothing_of_the_others() -> None:
    """Producers are refused by each partition's own replica count (Partition.effectiveMinIsr)."""
    told = list(tell(batches_of([changed(0, replicas=(1,), isr=(1,))])))
    assert [row["min_isr"] for row in states(told)] == [2, 1]
    assert [row["min_isr"] for row in states(told, partition=1)] == [2]


def test_a_deleted_topic_ends_its_rows() -> None:
    told = list(tell(batches_of([rec.TopicRemoved(ORDERS)])))
    gone = [one for one in told if one.table == "partition_states" and one.row["replicas"] is None]
    assert [one.row["partition"] for one in gone] == [0, 1]
    assert {(one.row["cause"], one.row["from_offset"], one.row["topic_id"]) for one in gone} == {
        ("topic-deleted", len(BEGIN), ORDERS)
    }


def image_of(batches: Iterable[rec.RecordBatch]) -> MetadataImage:
    image = MetadataImage()
    for batch in batches:
        image.apply(batch)
    return image


def test_a_log_that_begins_with_a_checkpoint_tells_it_as_found() -> None:
    hidden = batches_of([changed(leader=-1, isr=())])
    end = hidden[-1].next_offset
    later = rec.RecordBatch(end, 1, FROM_MS + 60_000, (changed(leader=2, isr=(2,)),))
    told = list(tell([*checkpoint_of(image_of(hidden)), later]))
    found, elected = states(told)
    assert (found["cause"], found["leader"], found["min_isr"]) == ("as-found", None, 2)
    assert (found["valid_from"], found["from_offset"]) == (FROM_MS + STEP_MS, end - 1)
    assert elected["leader"] == 2
    (election,) = rows(told, "elections")
    assert election["from_leader"] is None
    seen = rows(told, "broker_events")
    assert [(row["broker"], row["event"], row["status"]) for row in seen] == [(one, "seen", "live") for one in REPLICAS]
    assert (seen[0]["host"], seen[0]["port"], seen[0]["rack"]) == ("host-1", 9092, "rack-1")
    features = [row for row in rows(told, "cluster_events") if row["event"] == "feature"]
    assert [(row["before"], row["after"]) for row in features] == [(None, "1")]
    assert [(row["resource_type"], row["value"]) for row in rows(told, "configs")] == [("cluster", "2")]
    assert [one.row.get("event") for one in tell(checkpoint_of(image_of(hidden)))].count("seen") == 3


def test_a_checkpoint_in_the_place_of_missing_records_tells_what_is_different() -> None:
    begun = batches_of()
    missing = batches_of(
        [changed(0, leader=3), rec.BrokerChanged(1, 0, fenced=True), rec.BrokerUnregistered(2, 0)],
        [rec.ConfigSet(TOPIC, "orders", "min.insync.replicas", "1"), rec.FeatureLevel("a.feature", 2)],
        [rec.TopicMade("payments", PAYMENTS), rec.PartitionMade(PAYMENTS, 0, 1, 0, 0, REPLICAS, REPLICAS)],
    )
    end = missing[-1].next_offset
    later = rec.RecordBatch(end, 1, FROM_MS + 60_000, (changed(1, leader=-1),))
    told = list(tell([*begun, *checkpoint_of(image_of(missing)), later]))
    shown_at = {
        "valid_from": FROM_MS + 3 * STEP_MS,
        "from_offset": end - 1,
        "cause": "not-told",
        "certainty": "unknown",
    }
    made, moved = states(told)
    assert moved["leader"] == 3
    assert made["leader"] == 1
    first, other, lost = states(told, partition=1)
    assert (first["min_isr"], other["min_isr"], other["leader"], lost["leader"]) == (2, 1, 1, None)
    (new,) = states(told, PAYMENTS)
    for row in (moved, other, new):
        assert {name: row[name] for name in shown_at} == shown_at
    assert not rows(told, "elections")
    seen = [row for row in rows(told, "broker_events") if row["event"] == "seen"]
    assert [(row["broker"], row["status"]) for row in seen] == [(1, "fenced"), (2, "unregistered")]
    assert [(row["event"], row["name"], row["before"], row["after"]) for row in rows(told, "cluster_events")][1:-1] == [
        ("checkpoint", None, None, None),
        ("feature", "a.feature", "0", "2"),
    ]
    assert [row["value"] for row in rows(told, "configs")] == ["2", "1"]
    # The log may end with the checkpoint, and what it shows is told all the same.
    short = list(tell([*begun, *checkpoint_of(image_of(missing))]))
    assert states(short) == states(told)
    assert states(short, partition=1) == states(told, partition=1)[:-1]


def test_passwords_are_not_copied() -> None:
    secret = rec.ConfigSet(BROKER, "1", "ssl.keystore.password", "secret")
    assert not any("secret" in str(one.row) for one in tell(batches_of([secret])))


def test_a_topic_that_was_made_anew_in_the_meantime_ends_the_old_one() -> None:
    again = [rec.TopicRemoved(ORDERS), rec.TopicMade("orders", PAYMENTS)]
    missing = batches_of([*again, rec.PartitionMade(PAYMENTS, 0, 1, 0, 0, REPLICAS, REPLICAS)])
    told = list(tell([*batches_of(), *checkpoint_of(image_of(missing))]))
    assert [row["replicas"] for row in states(told)] == [REPLICAS, None]
    assert [row["replicas"] for row in states(told, partition=1)] == [REPLICAS, None]
    assert [(row["replicas"], row["cause"]) for row in states(told, PAYMENTS)] == [(REPLICAS, "not-told")]


def test_a_leader_of_long_ago_is_remembered_over_a_cut() -> None:
    batches = batches_of([changed(leader=-1, isr=(), elr=())], [rec.ElrCleared(None)], [changed(leader=2, isr=(2,))])
    builder = HistoryBuilder()
    for batch in batches[:3]:
        list(builder.take(batch))
    (election,) = rows(tell(batches[3:], builder.state()), "elections")
    assert election["from_leader"] == 1


def test_a_registration_tells_of_the_broker() -> None:
    again = registered(3, 17)
    lost = rec.BrokerChanged(3, 17, directories=DIRECTORIES[:1])
    told = rows(tell(batches_of([again], [lost])), "broker_events")
    assert [row["event"] for row in told] == ["registered"] * 4 + ["directories-changed"]
    assert (told[3]["restart"], told[3]["broker_epoch"], told[3]["features"]) == (
        "not-shown",
        17,
        {"metadata.version": 30},
    )
    assert told[4]["directories_lost"] == (DIRECTORIES[1],)


@pytest.mark.parametrize("topic_id", TOPICS.values())
def test_partitions_are_told_apart_by_topic_id(topic_id: str) -> None:
    again = [rec.TopicRemoved(ORDERS), rec.TopicMade("orders", PAYMENTS)]
    told = list(tell(batches_of([*again, rec.PartitionMade(PAYMENTS, 0, 1, 0, 0, REPLICAS, REPLICAS)])))
    assert len(states(told, topic_id)) == (2 if topic_id == ORDERS else 1)
    assert {row["topic"] for row in rows(told, "partition_states")} == {"orders"}
