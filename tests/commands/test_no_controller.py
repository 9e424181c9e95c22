"""No controller that leads answers: whatever brokers tell is what they knew last, and no command gives an all-clear."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.model import Snapshot
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import write_snapshot
from tests.commands.conftest import Kelr
from tests.commands.test_whatif import HEALTHY

WELL = replace(HEALTHY, cluster=replace(HEALTHY.cluster, cluster_id="c-1"))
SILENT = replace(WELL, cluster=replace(WELL.cluster, controller_silence="no answer in time"))
ALL_CLEAR = re.compile(
    r"\bhealthy\b|nothing to (do|explain|elect)|nothing urgent|all is well|^Safe:|^ *yes$"
    r"|nothing was found(?! by what brokers knew)|has its leader and enough",
    re.IGNORECASE | re.MULTILINE,
)


COMMANDS = {
    ("explain",): 0,
    ("explain", "orders:0"): 0,
    ("explain", "orders"): 0,
    ("explain", "--if", "1 fails, then 1 returns"): 0,
    ("describe",): 0,
    ("describe", "--leaderless"): 0,
    ("describe", "--summary"): 0,
    ("describe", "--check"): 1,
    ("describe", "--leaderless", "--check"): 1,
    ("whatif", "--stop", "1"): 0,
    ("whatif", "--stop", "1", "--check"): 1,
    ("whatif", "--any", "1", "--check"): 1,
    ("whatif", "--restart-order", "--check"): 1,
    ("doctor",): 7,
    ("doctor", "--check"): 1,
    ("doctor", "--only", "rf-one", "--check"): 7,
    ("recover", "plan"): 3,
    ("recover", "plan", "orders:0", "-e", "unclean"): 3,
    ("elect", "-e", "unclean", "--dry-run", "orders"): 3,
    ("elect", "-e", "preferred", "--dry-run", "orders:0"): 3,
    ("log-info", "orders:0"): 0,
    ("metrics", "--check"): 1,
}


class Live(MemorySource):
    """The cluster itself, and no snapshot of it."""

    taken_at_ms = None


@pytest.fixture(params=["live", "saved"])
def silent(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> tuple[Callable[[Snapshot], tuple[str, ...]], str]:
    """Makes a snapshot answer, as a cluster or as a file: the arguments that it takes; and how it is said."""
    monkeypatch.chdir(tmp_path)

    def live(snapshot: Snapshot) -> tuple[str, ...]:
        monkeypatch.setattr("kelr.commands.session.open_source", lambda _: Live(snapshot))
        return ("-b", "kafka:9092")

    def saved(snapshot: Snapshot) -> tuple[str, ...]:
        write_snapshot(snapshot, Path("saved.kelr"))
        return ("--snapshot", "saved.kelr")

    if request.param == "live":
        # Whoever is cut off from a controller that leads hears none either: 4.3.1 elected another broker meanwhile.
        return live, (
            "No controller answers (no answer in time): what brokers tell may be out of date. No leader is elected now,"
            " or by a controller that they do not reach"
        )
    return saved, "No controller answered (no answer in time) when this was taken: what brokers told may have been out"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_first_line_says_it_and_no_line_says_that_all_is_well(
    kelr: Kelr, silent: tuple[Callable[[Snapshot], tuple[str, ...]], str], command: tuple[str, ...]
) -> None:
    serve, words = silent
    ran = kelr(*command, *serve(SILENT))
    assert ran.out.startswith(words)
    assert ALL_CLEAR.search(ran.out + ran.err) is None, ALL_CLEAR.search(ran.out + ran.err)
    assert ran.code == COMMANDS[command]


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "orders:0"),
        ("describe",),
        ("describe", "--summary"),
        ("whatif", "--stop", "1"),
        ("log-info", "orders"),
    ],
    ids=" ".join,
)
def test_documents_say_it_too(
    kelr: Kelr, silent: tuple[Callable[[Snapshot], tuple[str, ...]], str], command: tuple[str, ...]
) -> None:
    serve, words = silent
    ran = kelr(*command, "-o", "json", *serve(SILENT))
    document = json.loads(ran.out)
    assert document["silence"] == "no answer in time"
    assert "healthy" not in ran.out
    assert words[1:] in ran.err


def test_partitions_that_brokers_know_to_be_in_trouble_stay_what_they_are(
    kelr: Kelr, silent: tuple[Callable[[Snapshot], tuple[str, ...]], str]
) -> None:
    first, *others = SILENT.partitions
    serve, _ = silent
    options = serve(replace(SILENT, partitions=(replace(first, leader=None, isr=(), elr=(1, 2)), *others)))
    found = {
        item["partition"]: item["situation"]
        for item in json.loads(kelr("describe", "-o", "json", *options).out)["items"]
    }
    assert found == {0: "leader-pending", 1: "unknown", 2: "unknown", 3: "unknown"}
    explained = json.loads(kelr("explain", "-o", "json", *options).out)["items"]
    assert [item["partition"] for item in explained] == [0]
    unknown = json.loads(kelr("describe", "--situation", "unknown", "-o", "json", *options).out)["items"]
    assert [item["partition"] for item in unknown] == [1, 2, 3]


def test_doctor_names_it_first_and_clears_nothing_that_hangs_on_it(
    kelr: Kelr, silent: tuple[Callable[[Snapshot], tuple[str, ...]], str]
) -> None:
    serve, _ = silent
    options = serve(SILENT)
    document = json.loads(kelr("doctor", "-o", "json", *options).out)
    assert next(one["id"] for one in document["items"]) == "no-controller"
    results = {one["id"]: one["result"] for one in document["checks"]}
    assert {results[name] for name in ("leaderless", "under-min-isr", "broker-fenced")} == {"not-checked"}
    assert "CRITICAL" in kelr("doctor", *options).out


def test_a_controller_that_answers_is_not_spoken_of(
    kelr: Kelr, silent: tuple[Callable[[Snapshot], tuple[str, ...]], str]
) -> None:
    serve, _ = silent
    options = serve(WELL)
    for command in (("describe", "--check"), ("whatif", "--stop", "1", "--check"), ("recover", "plan")):
        ran = kelr(*command, *options)
        assert ran.code == 0
        assert "no controller" not in (ran.out + ran.err).lower()
