"""Where replayed records come from, and which are known to have been replayed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kelr.rescue.origin import MARK, Origin, Replayed, origin_headers, read_origin

ORIGIN = Origin("cluster", "orders", 3, 7, 1_234)


def test_headers_name_the_record() -> None:
    assert origin_headers(ORIGIN, "abc") == [
        ("kelr-rescue.cluster", b"cluster"),
        ("kelr-rescue.topic", b"orders"),
        ("kelr-rescue.partition", b"3"),
        ("kelr-rescue.offset", b"1234"),
        ("kelr-rescue.leader-epoch", b"7"),
        ("kelr-rescue.plan", b"abc"),
    ]
    assert all(name.encode().startswith(MARK) for name, _ in origin_headers(ORIGIN, "abc"))


def test_they_are_read_back_among_others() -> None:
    assert read_origin([("x", b"y"), *origin_headers(ORIGIN, None), ("z", None)]) == ORIGIN
    assert read_origin([("x", b"y")]) is None


def test_the_last_replay_counts() -> None:
    second = Origin("cluster", "orders", 3, 9, 4_000)
    assert read_origin([*origin_headers(ORIGIN, None), *origin_headers(second, None)]) == second


def test_headers_that_somebody_else_wrote_are_no_origin() -> None:
    headers = dict(origin_headers(ORIGIN, None))
    for name, value in (("offset", b"many"), ("topic", None), ("leader-epoch", b"\xff")):
        assert read_origin([*{**headers, f"kelr-rescue.{name}": value}.items()]) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 15)), max_size=40))
def test_the_runs_are_a_set(records: list[tuple[int, int]]) -> None:
    replayed = Replayed()
    for epoch, offset in records:
        replayed.add(epoch, offset)
    assert replayed.count == len(set(records))
    assert {(epoch, offset) for epoch in range(4) for offset in range(17) if (epoch, offset) in replayed} == set(
        records
    )
