"""What the target's log says of records that were replayed, and of keys that were written since."""

from __future__ import annotations

import pytest

from kelr.errors import RefusedError
from kelr.model import TopicPartition
from kelr.rescue.origin import Origin, origin_headers
from kelr.rescue.scan import Scan, Scanner, digest_of, scan
from kelr.sources.records.stream import Piece, Unread, UnreadKind
from tests.rescue.batches import batch, marker

SOURCE = TopicPartition("orders", 0)


def looked(*pieces: Piece, keys: tuple[bytes, ...] = ()) -> Scan:
    scanner = Scanner("cluster", SOURCE, frozenset(map(digest_of, keys)))
    return scan(scanner, pieces, "orders:0")


def headers(epoch: int, offset: int, **changes: object) -> tuple[tuple[str, bytes | None], ...]:
    fields: dict[str, object] = {"cluster_id": "cluster", "topic": "orders", "partition": 0, **changes}
    return tuple(origin_headers(Origin(leader_epoch=epoch, offset=offset, **fields), None))  # type: ignore[arg-type]


def test_replayed_records_are_found() -> None:
    found = looked(batch(40, epoch=9), batch(41, epoch=9, headers=headers(5, 12)), batch(42, headers=headers(6, 13)))
    assert Origin("cluster", "orders", 0, 5, 12) in found.replayed
    assert Origin("cluster", "orders", 0, 6, 13) in found.replayed
    assert found.replayed.count == 2
    assert found.end == 43


@pytest.mark.parametrize("changes", [{"cluster_id": "other"}, {"topic": "payments"}, {"partition": 1}])
def test_records_of_another_origin_are_others(changes: dict[str, object]) -> None:
    found = looked(batch(40, keys=[b"a"], epoch=9, headers=headers(5, 12, **changes)), keys=(b"a",))
    assert Origin("cluster", "orders", 0, 5, 12) not in found.replayed
    assert found.newest_epoch == {digest_of(b"a"): 9}


def test_every_place_on_a_records_way_is_known() -> None:
    found = looked(batch(40, epoch=9, headers=(*headers(5, 12), *headers(1, 7, topic="copies"))))
    assert Origin("cluster", "orders", 0, 5, 12) in found.replayed
    assert Origin("cluster", "copies", 0, 1, 7) in found.replayed


def test_the_newest_epoch_of_a_key_counts() -> None:
    found = looked(batch(40, epoch=7, keys=[b"a", b"b", None]), batch(43, epoch=8, keys=[b"a"]), keys=(b"a", b"c"))
    assert found.newest_epoch == {digest_of(b"a"): 8}


def test_a_replayed_record_is_as_old_as_where_it_comes_from() -> None:
    found = looked(batch(40, epoch=9, keys=[b"a"], headers=headers(5, 12)), keys=(b"a",))
    assert found.newest_epoch == {digest_of(b"a"): 5}


def test_only_committed_transactions_overwrite() -> None:
    found = looked(
        batch(40, epoch=9, producer=1, transactional=True, keys=[b"a"]),
        batch(41, epoch=9, producer=2, transactional=True, keys=[b"b"]),
        batch(42, epoch=9, producer=3, transactional=True, keys=[b"c"]),
        marker(43, 1, commit=True, epoch=9),
        marker(44, 2, commit=False, epoch=9),
        keys=(b"a", b"b", b"c"),
    )
    assert found.newest_epoch == {digest_of(b"a"): 9}


def test_a_topic_that_stamps_records_itself_is_noticed() -> None:
    assert not looked(batch(40)).log_append_time
    assert looked(batch(40, log_append_ms=5)).log_append_time


def test_a_log_that_cannot_be_read_to_its_end_is_refused() -> None:
    with pytest.raises(RefusedError, match="offset 41: connection refused"):
        looked(batch(40), Unread(41, None, UnreadKind.NO_ANSWER, "connection refused"))
