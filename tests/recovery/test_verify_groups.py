"""Reading what consumer groups committed: whatever could not be read is said, and never taken for "none"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Wire
from confluent_kafka.admin import AclOperation

from kelr.model import TopicPartition
from kelr.model.afterwards import CommittedOffset, CommittedOffsets, Unread
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.groups import read_committed_offsets

AT = TopicPartition("orders", 1)
SETTINGS = ConnectionSettings((("kafka-1", 9092),), timeout_s=1)


@dataclass
class Admin:
    """librdkafka's admin client, as far as groups go."""

    groups: Mapping[str, Any] = field(default_factory=dict)
    """What each group has committed for the partition: (offset, epoch), a KafkaError, or None for no answer at all."""
    errors: list[Any] = field(default_factory=list)
    listing: KafkaError | None = None
    operations: Any = (AclOperation.DESCRIBE,)
    asked: list[str] = field(default_factory=list)

    def list_consumer_groups(self, **_: Any) -> Future[Any]:
        if self.listing is not None:
            return failed(self.listing)
        valid = [SimpleNamespace(group_id=group) for group in self.groups]
        return done(SimpleNamespace(valid=valid, errors=self.errors))

    def list_consumer_group_offsets(self, wanted: list[Any], **_: Any) -> Mapping[str, Future[Any]]:
        (one,) = wanted
        self.asked.append(one.group_id)
        found = self.groups[one.group_id]
        if isinstance(found, KafkaError):
            return {one.group_id: failed(found)}
        if found is None:
            return {one.group_id: Future()}
        offset, epoch = found
        answer = (
            Wire(AT.topic, AT.partition, offset) if epoch is None else Wire(AT.topic, AT.partition, offset, "", epoch)
        )
        return {one.group_id: done(SimpleNamespace(topic_partitions=[answer]))}

    def describe_cluster(self, **_: Any) -> Future[Any]:
        return done(SimpleNamespace(authorized_operations=self.operations))


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def failed(error: KafkaError) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(KafkaException(error))
    return future


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[[Admin], CommittedOffsets | Unread]:
    def reader(admin: Admin) -> CommittedOffsets | Unread:
        monkeypatch.setattr("confluent_kafka.admin.AdminClient", lambda _config: admin)
        return read_committed_offsets(SETTINGS, [AT])

    return reader


Read = Callable[[Admin], CommittedOffsets | Unread]


def test_offsets_come_with_their_epochs(read: Read) -> None:
    found = read(Admin({"b": (140, 5), "a": (7, None), "nothing-here": (-1001, None)}))
    assert found == CommittedOffsets({AT: (CommittedOffset("a", 7, None), CommittedOffset("b", 140, 5))}, 3)


def test_more_groups_than_are_asked_at_once_are_all_asked(read: Read) -> None:
    admin = Admin({f"g{number:03}": (number, None) for number in range(100)})
    found = read(admin)
    assert isinstance(found, CommittedOffsets)
    assert (found.groups, len(found.offsets[AT]), admin.asked) == (100, 100, sorted(admin.groups))


def test_a_group_that_may_not_be_read_is_said_beside_the_others(read: Read) -> None:
    refused = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    found = read(Admin({"open": (7, None), "secret": refused}))
    assert isinstance(found, CommittedOffsets)
    assert found.unread == {"secret": Unread("GROUP_AUTHORIZATION_FAILED", "DESCRIBE on the group")}
    assert [one.group for one in found.offsets[AT]] == ["open"]


def test_a_group_whose_coordinator_is_silent_may_answer_later(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.recovery.test_verify_groups.SETTINGS", ConnectionSettings((("k", 1),), timeout_s=0.05))
    loading = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    found = read(Admin({"silent": None, "loading": loading, "timeout": KafkaError(KafkaError._TIMED_OUT)}))
    assert isinstance(found, CommittedOffsets)
    assert found.unread == {
        "silent": Unread("no answer in time", passing=True),
        "loading": Unread("COORDINATOR_LOAD_IN_PROGRESS", passing=True),
        "timeout": Unread("no answer in time", passing=True),
    }


@pytest.mark.parametrize("operations", [None, (), (AclOperation.CREATE,)])
def test_groups_that_the_listing_hides_are_not_taken_for_none(read: Read, operations: Any) -> None:
    found = read(Admin(operations=operations))
    assert isinstance(found, CommittedOffsets)
    hidden = Unread("ListGroups names only the groups that may be seen", "DESCRIBE on the cluster")
    assert found.not_listed == hidden


def test_a_broker_that_did_not_list_its_groups_is_said(read: Read) -> None:
    error = KafkaException(KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
    found = read(Admin({"a": (1, None)}, errors=[error]))
    assert isinstance(found, CommittedOffsets)
    assert found.not_listed == Unread("COORDINATOR_LOAD_IN_PROGRESS", passing=True)


def test_where_no_group_can_be_listed_that_is_the_answer(read: Read) -> None:
    found = read(Admin(listing=KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)))
    assert found == Unread("CLUSTER_AUTHORIZATION_FAILED", "DESCRIBE on the cluster")
    assert read(Admin(listing=KafkaError(KafkaError._ALL_BROKERS_DOWN))) == Unread("no broker answers", passing=True)
