"""``kelr explain --picture``: the replicas' logs, drawn within the explanation."""

from __future__ import annotations

import pytest

from tests.commands.conftest import Kelr

pytestmark = pytest.mark.usefixtures("incident")


def test_the_picture_stands_below_the_replicas(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_UNICODE", "1")
    ran = kelr("explain", "orders:1", "--picture", "--election", "unclean", "-b", "kafka:9092")
    lines = ran.out.splitlines()
    at = lines.index("Logs: if 3 were elected now: unclean (stock)")
    assert lines[at - 2].startswith("      2  live ")
    assert lines[at + 2] == " 1 fenced                not read: connection refused"
    elected, best = lines[at + 1], lines[at + 3]
    assert elected.startswith(" 3 live (would lead)     ===")
    assert best.startswith(" 2 live (most complete)  ===")
    assert (elected.count("-"), best.count("-"), elected.count("|"), best.count("|")) == (0, 19, 1, 1)
    assert "  2 would truncate 19 offsets (116..134) to follow 3" in lines
    assert (ran.code, ran.out.isascii() or "·" in ran.out) == (0, True)


def test_what_is_imagined_is_drawn(kelr: Kelr) -> None:
    ran = kelr("explain", "orders:1", "--picture", "--if", "2 fails", "-b", "kafka:9092")
    assert "\n 2 fenced (most complete)" in ran.out
    assert "Logs: if 3 were elected now" in ran.out


def test_many_partitions_are_explained_in_full(kelr: Kelr) -> None:
    ran = kelr("explain", "--picture", "-b", "kafka:9092")
    assert ran.out.count("\nLogs: ") == 4
    assert ran.out.count("Logs: no replica's log was read: nothing can be drawn") == 2


@pytest.mark.parametrize("other", [["--short"], ["-o", "json"], ["-o", "csv"]])
def test_it_is_for_people_and_whole_explanations(kelr: Kelr, other: list[str]) -> None:
    ran = kelr("explain", "orders:1", "--picture", *other)
    assert (ran.code, ran.out) == (2, "")
    assert "--picture is" in ran.err
