"""The flags that a next command repeats."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelr.view.following import whole_command

LIVE = ("-b", "kafka-1:9092", "--timeout", "5")
SAVED = ("--snapshot", "incident.kelr", "--timeout", "5")
LOGS = ("--logs", "broker-1.kelr")


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "orders:1"),
        ("elect", "orders:1"),
        ("log-info", "orders:1"),
        ("snapshot", "incident.kelr"),
        ("recover", "plan"),
        ("recover", "apply", "plan.json"),
        ("rescue", "dump", "orders:1", "--elect", "1", "--out", "lost.kelr-rescue"),
    ],
)
def test_commands_that_count_collections_are_given_them_again(arguments: tuple[str, ...]) -> None:
    assert whole_command(arguments, connection_flags=LIVE, log_flags=LOGS) == ("kelr", *arguments, *LOGS, *LIVE)


def test_those_that_were_given_take_the_place_of_a_file_beside_a_named_one() -> None:
    elect = ("elect", "--designate", "1", "orders:0")
    words = (*elect, "--logs", "FILE", "--logs", "before-stopping-3.kelr")
    named = ("--logs", "before-stopping-3.kelr")
    assert whole_command(words, connection_flags=LIVE, log_flags=LOGS) == ("kelr", *elect, *named, *LOGS, *LIVE)
    assert whole_command(words, connection_flags=LIVE) == ("kelr", *words, *LIVE)


def test_a_command_that_names_its_collections_gets_no_others() -> None:
    arguments = ("recover", "plan", "--logs", "broker-3.kelr")
    assert whole_command(arguments, connection_flags=LIVE, log_flags=LOGS) == ("kelr", *arguments, *LIVE)


def test_the_files_that_were_given_take_the_place_of_one_that_is_left_to_be_filled_in() -> None:
    dump = ("rescue", "dump", "orders:1", "--elect", "1")
    arguments, out = (*dump, "--logs", "FILE", "--out", "x.kelr-rescue"), ("--out", "x.kelr-rescue")
    assert whole_command(arguments, connection_flags=LIVE, log_flags=LOGS) == ("kelr", *dump, *out, *LOGS, *LIVE)
    assert whole_command(arguments, connection_flags=LIVE) == ("kelr", *arguments, *LIVE)


def test_a_dump_is_not_to_be_written_over_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was refused, as the file exists; and what the earlier one saved is needed, too."""
    monkeypatch.chdir(tmp_path)
    dump, out = ("rescue", "dump", "orders", "--elect", "3"), ("--out", "lost-to-3.kelr-rescue")

    def named() -> tuple[str, ...]:
        return whole_command((*dump, *out), connection_flags=LIVE)

    assert named() == ("kelr", *dump, *out, *LIVE)
    Path(out[1]).touch()
    assert named() == ("kelr", *dump, "--out", "lost-to-3-2.kelr-rescue", *LIVE)
    Path("lost-to-3-2.kelr-rescue").touch()
    assert named() == ("kelr", *dump, "--out", "lost-to-3-3.kelr-rescue", *LIVE)
    again = (*dump, *out, "--overwrite")
    assert whole_command(again, connection_flags=LIVE) == ("kelr", *again, *LIVE)


@pytest.mark.parametrize("arguments", [("describe", "orders"), ("recover", "verify", "plan.json")])
def test_other_commands_are_not(arguments: tuple[str, ...]) -> None:
    assert whole_command(arguments, connection_flags=LIVE, log_flags=LOGS) == ("kelr", *arguments, *LIVE)


@pytest.mark.parametrize(
    "arguments",
    [
        ("elect", "orders:1", "--yes"),
        ("recover", "apply", "plan.json"),
        ("recover", "verify", "plan.json", "--wait"),
        ("recover", "status"),
        ("recover", "clear-elr", "--topic", "orders"),
        ("rescue", "dump", "--plan", "plan.json", "--out", "lost.kelr-rescue"),
        ("rescue", "dump", "--plan", "plan.json", "--log-dir", "DIRECTORY", "--out", "lost.kelr-rescue"),
        ("rescue", "replay", "lost.kelr-rescue"),
    ],
)
def test_what_a_snapshot_cannot_do_is_left_to_be_connected(arguments: tuple[str, ...]) -> None:
    whole = whole_command(arguments, connection_flags=SAVED)
    assert whole == ("kelr", *arguments, "-b", "HOST:PORT", "--timeout", "5")
    assert whole_command(arguments, connection_flags=LIVE) == ("kelr", *arguments, *LIVE)


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "orders:1"),
        ("recover", "plan", "orders:1"),
        ("elect", "orders:1", "--dry-run"),
        ("rescue", "dump", "--plan", "plan.json", "--from-replica", "1", "--log-dir", "D", "--out", "x.kelr-rescue"),
    ],
)
def test_what_a_snapshot_can_do_it_goes_on_doing(arguments: tuple[str, ...]) -> None:
    assert whole_command(arguments, connection_flags=SAVED) == ("kelr", *arguments, *SAVED)
