"""Open transactions and their coordinators, over brokers that answer as a table says: who is taken to hang, who not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace as Answer
from typing import Any

import pytest

from kelr.model import TopicPartition
from kelr.model.afterwards import Coordinated, OpenTransaction, Unread
from kelr.sources.live.coordinators import Coordinators, names_in
from kelr.sources.live.producers import ProducerReader
from kelr.sources.live.transport import Dialogue, Failure, FailureKind

AT = TopicPartition("orders", 1)
NO_AUTHORIZER, AUTHORIZED = 54, 0
NOT_FOUND, NOT_COORDINATOR, LOADING = 105, 16, 14
PROBE = names_in(1)[0]
"""The id that is asked for to learn whether 1 has loaded its partition."""


def producer(start: int, producer_id: int = 7, epoch: int = 1) -> Answer:
    return Answer(producer_id=producer_id, producer_epoch=epoch, last_timestamp=-1, current_txn_start_offset=start)


def known(state: str = "Ongoing", *, partitions: Sequence[int] = (1,), epoch: int = 1, error: int = 0) -> Answer:
    return Answer(
        error_code=error,
        transactional_id="tx",
        transaction_state=state,
        producer_epoch=epoch,
        transaction_start_time_ms=1000,
        transaction_timeout_ms=60_000,
        topics=[Answer(topic="orders", partitions=list(partitions))],
    )


@dataclass
class Brokers:
    """Brokers 1 and 2; 2 leads, and coordinates ``tx`` where `coordinated` says so."""

    open: list[list[Answer]]
    """What the leader says each time that it is asked; the last answer goes on."""
    coordinated: Answer | None = None
    acls: int = NO_AUTHORIZER
    error: int = 0
    """DescribeProducers' error of the partition."""
    listing: Mapping[Any, Any] = field(default_factory=dict)
    """What a broker answers to ListTransactions in place of a list: an error code, or a Failure."""
    probed: list[int | Failure] = field(default_factory=list)
    """What 1 answers of an id that nobody has, each time that it is asked; the last goes on: not found unless told."""
    asked: list[str] = field(default_factory=list)

    def exchange(self, node: Any, request: Any, **_timeout: float | None) -> Any:
        name = request.name
        if name == "DescribeTransactions" and PROBE in request.message.transactional_ids:
            return self._described(node, request.message.transactional_ids)
        self.asked.append(f"{name} {node}")
        answers: dict[str, Callable[[Any], Any]] = {
            "DescribeProducers": self._producers,
            "ListTransactions": self._listed,
            "DescribeTransactions": lambda _node: Answer(transaction_states=[self.coordinated]),
            "DescribeAcls": lambda _node: Answer(error_code=self.acls),
        }
        return answers[name](node)

    def run(self, dialogues: Mapping[Any, Callable[[], Dialogue[Any]]]) -> Mapping[Any, Any]:
        return {node: self._hold(node, start()) for node, start in dialogues.items()}

    def _hold(self, node: Any, dialogue: Dialogue[Any]) -> Any:
        answer: Any = None
        while True:
            try:
                wanted = dialogue.send(answer)
            except StopIteration as end:
                return end.value
            answer = self.exchange(node, wanted.request)  # type: ignore[union-attr]

    def _producers(self, _node: Any) -> Any:
        found = self.open.pop(0) if len(self.open) > 1 else self.open[0]
        partition = Answer(partition_index=1, error_code=self.error, active_producers=found)
        return Answer(topics=[Answer(name="orders", partitions=[partition])])

    def _described(self, _node: Any, ids: Sequence[str]) -> Any:
        told = (self.probed.pop(0) if len(self.probed) > 1 else self.probed[0]) if self.probed else NOT_FOUND
        if isinstance(told, Failure):
            return told
        states = [Answer(transactional_id=PROBE, error_code=told)]
        return Answer(transaction_states=states + [self.coordinated for one in ids if one == "tx"])

    def _listed(self, node: Any) -> Any:
        told = self.listing.get(node)
        if isinstance(told, Failure):
            return told
        here = node == 2 and self.coordinated is not None
        states = [Answer(transactional_id="tx", producer_id=7, transaction_state="Ongoing")] if here else []
        return Answer(error_code=told or 0, transaction_states=states)


def read(brokers: Brokers, *, missing: Unread | None = None) -> Any:
    """What is open, of a cluster whose one partition of __transaction_state is led by 1."""
    coordinators = Coordinators("__transaction_state", 1, {0: 1}, missing)
    reader = ProducerReader(brokers, (1, 2), coordinators=coordinators, timeout_s=1)  # type: ignore[arg-type]
    return reader.read({AT: 2})[AT]


def only(found: Any) -> OpenTransaction:
    (one,) = found
    assert isinstance(one, OpenTransaction)
    assert (one.producer_id, one.start_offset) == (7, 130)
    return one


@pytest.mark.parametrize(
    ("told", "coordinated"),
    [
        (known("Ongoing"), Coordinated.UNDER_WAY),
        (known("PrepareCommit"), Coordinated.ENDING),
        (known("PrepareAbort"), Coordinated.ENDING),
        # Which partitions have no marker yet: this one is not among them, so that its marker was written, and lost.
        (known("PrepareCommit", partitions=(0,)), Coordinated.FORGOTTEN),
        (known("Ongoing", partitions=(0, 2)), Coordinated.FORGOTTEN),
        (known("CompleteCommit", partitions=()), Coordinated.FORGOTTEN),
        (known("Empty", partitions=()), Coordinated.FORGOTTEN),
        # A coordinator that lost its own log: the leader would refuse its marker.
        (known("Ongoing", epoch=0), Coordinated.UNKNOWN),
        (known("Ongoing", epoch=2), Coordinated.UNDER_WAY),
        (known(error=53), Coordinated.UNKNOWN),
        (known(error=14), Coordinated.UNKNOWN),
    ],
)
def test_what_the_coordinator_says_decides(told: Answer, coordinated: Coordinated) -> None:
    assert only(read(Brokers([[producer(130)]], told))).coordinated is coordinated


def test_a_transaction_under_way_carries_what_tells_when_it_ends() -> None:
    one = only(read(Brokers([[producer(130)]], known())))
    assert (one.transactional_id, one.state, one.started_at_ms, one.timeout_ms) == ("tx", "Ongoing", 1000, 60_000)


def test_a_marker_that_arrives_in_between_is_not_taken_for_a_lost_one() -> None:
    assert read(Brokers([[producer(130)], []], known("CompleteCommit", partitions=()))) == ()
    # The next transaction of the same producer is open by now, and nothing is known against it.
    assert read(Brokers([[producer(130)], [producer(140)]], known("CompleteCommit", partitions=()))) == ()


def test_without_open_transactions_no_coordinator_is_asked() -> None:
    brokers = Brokers([[producer(-1)]])
    assert read(brokers) == ()
    assert brokers.asked == ["DescribeProducers 2"]


def test_a_producer_that_nobody_lists_hangs_where_nothing_can_be_hidden() -> None:
    one = only(read(Brokers([[producer(130)]])))
    assert (one.coordinated, one.transactional_id, one.unread) == (Coordinated.FORGOTTEN, None, None)


def test_a_producer_that_nobody_lists_may_be_one_that_may_not_be_seen() -> None:
    one = only(read(Brokers([[producer(130)]], acls=AUTHORIZED)))
    assert one.coordinated is Coordinated.UNKNOWN
    assert one.unread is not None
    assert one.unread.acl == "DESCRIBE on its transactional id"


@pytest.mark.parametrize(
    ("silence", "passing"),
    [(Failure(FailureKind.TIMED_OUT, "no answer in time"), True), (14, True), (31, False)],
)
def test_a_coordinator_that_is_silent_may_know_the_producer(silence: Any, passing: bool) -> None:
    one = only(read(Brokers([[producer(130)]], listing={1: silence})))
    assert one.coordinated is Coordinated.UNKNOWN
    assert one.unread is not None
    assert (one.unread.error.startswith("broker 1: "), one.unread.passing) == (True, passing)


def test_a_producer_whose_coordinator_is_gone_is_not_taken_to_hang() -> None:
    missing = Unread("partitions 0 of __transaction_state have no leader", passing=True)
    one = only(read(Brokers([[producer(130)]]), missing=missing))
    assert (one.coordinated, one.unread) == (Coordinated.UNKNOWN, missing)
    # One that is listed all the same is judged by what its coordinator says.
    assert only(read(Brokers([[producer(130)]], known()), missing=missing)).coordinated is Coordinated.UNDER_WAY


@pytest.mark.parametrize(
    ("error", "acl", "passing"), [(29, "READ on topic orders", False), (6, "", True), (3, "", True), (-1, "", False)]
)
def test_a_leader_that_does_not_tell_is_said(error: int, acl: str, passing: bool) -> None:
    found = read(Brokers([[]], error=error))
    assert isinstance(found, Unread)
    assert (found.acl, found.passing) == (acl, passing)


@pytest.mark.parametrize(
    ("probed", "why"),
    [
        ([NOT_COORDINATOR], "NOT_COORDINATOR"),  # it has not begun to load, and lists nothing without an error
        ([LOADING, NOT_FOUND], "COORDINATOR_LOAD_IN_PROGRESS"),  # what it listed may be of before
        ([NOT_FOUND, NOT_COORDINATOR], "NOT_COORDINATOR"),  # it may have given up the partition before it listed
        ([Failure(FailureKind.TIMED_OUT, "no answer in time")], "no answer in time"),
    ],
)
def test_what_a_coordinator_does_not_list_before_it_is_loaded_is_not_forgotten(
    probed: list[int | Failure], why: str
) -> None:
    one = only(read(Brokers([[producer(130)]], probed=probed)))
    told = Unread(f"broker 1: {why} for partition 0 of __transaction_state", passing=True)
    assert (one.coordinated, one.unread) == (Coordinated.UNKNOWN, told)


def test_what_a_list_names_and_the_description_leaves_out_is_not_forgotten() -> None:
    brokers = Brokers([[producer(130)]], known())
    brokers.coordinated.transactional_id = "other"  # type: ignore[union-attr]
    one = only(read(brokers))
    assert (one.coordinated, one.unread) == (
        Coordinated.UNKNOWN,
        Unread("the coordinator's answer leaves it out"),
    )
