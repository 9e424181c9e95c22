"""Where replayed records come from, and which are known to have been replayed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kelr.rescue.origin import MARK, Origin, Origins, Replayed, origin_headers, read_origins

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
    assert read_origins([("x", b"y"), *origin_headers(ORIGIN, None), ("z", None)]) == (ORIGIN,)
    assert read_origins([("x", b"y")]) == ()


def test_a_record_that_was_replayed_twice_names_both_places() -> None:
    second = Origin("cluster", "orders", 3, 9, 4_000, "topic-id")
    third = Origin("cluster", "copies", 3, 1, 2)
    headers = [*origin_headers(ORIGIN, "plan"), *origin_headers(second, None), ("x", b"y"), *origin_headers(third, "p")]
    assert read_origins(headers) == (ORIGIN, second, third)


def test_headers_that_somebody_else_wrote_are_no_origin() -> None:
    headers = dict(origin_headers(ORIGIN, None))
    for name, value in (("offset", b"many"), ("topic", None), ("leader-epoch", b"\xff")):
        assert read_origins([*{**headers, f"kelr-rescue.{name}": value}.items()]) == ()


def test_a_topic_that_was_deleted_is_not_the_one_that_has_its_name() -> None:
    origins = Origins()
    origins.add(replace(ORIGIN, topic_id="one"))
    assert replace(ORIGIN, topic_id="one") in origins
    assert replace(ORIGIN, topic_id="two") not in origins
    assert ORIGIN in origins, "an unknown id may be either"
    assert replace(ORIGIN, topic_id="one", offset=9) not in origins
    assert replace(ORIGIN, topic_id="one", cluster_id="other") not in origins


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 15)), max_size=40))
def test_the_runs_are_a_set(records: list[tuple[int, int]]) -> None:
    replayed = Replayed()
    for epoch, offset in records:
        replayed.add(epoch, offset)
    assert replayed.count == len(set(records))
    assert {(epoch, offset) for epoch in range(4) for offset in range(17) if (epoch, offset) in replayed} == set(
        records
    )
