"""Targets: what they select, how they print, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.model import Target, parse_target, select

TOPICS = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}", fullmatch=True)
PARTITIONS = st.lists(st.integers(0, 200), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("orders", Target(topic="orders")),
        ("orders:3", Target(topic="orders", partitions=(3,))),
        ("orders:0,4-7", Target(topic="orders", partitions=(0, 4, 5, 6, 7))),
        ("orders:7,4-7,4", Target(topic="orders", partitions=(4, 5, 6, 7))),
        ("or*:1", Target(glob="or*", partitions=(1,))),
        ("/a:b|c/", Target(regex="a:b|c")),
        ("/a/:2", Target(regex="a", partitions=(2,))),
    ],
)
def test_parse(text: str, target: Target) -> None:
    assert parse_target(text) == target


@given(TOPICS.filter(lambda topic: topic not in {".", ".."}), PARTITIONS)
def test_a_printed_target_reads_back(topic: str, partitions: list[int]) -> None:
    target = Target(topic=topic, partitions=tuple(sorted(set(partitions))))
    assert parse_target(str(target)) == target


@given(PARTITIONS)
def test_a_target_selects_its_partitions_and_no_others(partitions: list[int]) -> None:
    target = parse_target("t:" + ",".join(map(str, partitions)))
    assert {number for number in range(210) if target.matches("t", number)} == set(partitions)
    assert not target.matches("u", partitions[0])


@pytest.mark.parametrize(
    ("text", "topic", "matches"),
    [
        ("or*", "orders", True),
        ("or*", "Orders", False),
        ("o?ders", "orders", True),
        ("[op]*", "payments", True),
        ("/ord/", "orders", False),
        ("/ord.*/", "orders", True),
        ("orders", "orders2", False),
    ],
)
def test_patterns_match_whole_names(text: str, topic: str, matches: bool) -> None:
    assert parse_target(text).matches_topic(topic) is matches


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":1",
        "a:",
        "a:x",
        "a:1-",
        "a:2-1",
        "a:-1",
        "a:1,,2",
        "a b",
        ".",
        "..",
        "a" * 250,
        "/a",
        "/(/",
        "/a/b",
        "a:1:2",
        "a:٣",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="target"):
        parse_target(text)


@pytest.mark.parametrize("text", ["a:" + "1" * 5000, "a" * 5000, "a:" + "x" * 5000, "/" + "a" * 5000, ":" + "1" * 5000])
def test_of_a_long_one_the_beginning_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="target") as refused:
        parse_target(text)
    assert len(str(refused.value)) < 400


@given(st.text(max_size=30))
def test_any_text_is_a_target_of_one_kind_or_refused(text: str) -> None:
    try:
        target = parse_target(text)
    except ValueError:
        return
    assert [target.topic, target.glob, target.regex].count(None) == 2


def test_no_target_means_everything() -> None:
    selection = select([])
    assert selection.is_everything
    assert selection.matches("any", 5)
    assert selection.named_partitions() == frozenset()


def test_targets_add_up() -> None:
    selection = select(["a:1", "a:2", "b*", "c"])
    assert [selection.matches(*address) for address in (("a", 1), ("a", 3), ("bb", 9), ("c", 0), ("d", 0))] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert selection.topics == ("a", "c")
    assert selection.named_partitions() == {("a", 1), ("a", 2)}
    assert selection.has_patterns
