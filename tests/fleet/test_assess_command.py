"""``kelr fleet assess``, what it shows and how it exits; without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from kelr.commands import fleet_assess
from kelr.commands.main import main
from kelr.controller import ELR_4_3, ChosenRules
from kelr.errors import ExitCode
from kelr.fleet.assess import assessing
from kelr.fleet.assess.contexts import Context
from kelr.fleet.assess.scenarios import wanted_scenarios
from kelr.fleet.assess.spreading import Spread
from kelr.fleet.assess.sums import Counted, Sums, sums
from kelr.model import Broker, BrokerStatus, Cluster

if TYPE_CHECKING:
    from kelr.view.output import Output

CLUSTER = Cluster(
    "id-1",
    (Broker(1, BrokerStatus.LIVE, rack="a"), Broker(2, BrokerStatus.LIVE, rack="b")),
    brokers_source="metadata log",
)
NOW_ADDS = {"partitions": 10, "then.leaderless": 1, "new.leaderless": 1, "situation.healthy": 9}


def answer(*, lost: tuple[int, ...] = (), now: dict[str, int] | None = None) -> assessing.Assessed:
    context = Context("id-1", "payments", "log", 1_790_000_000_000_000, True, CLUSTER, lost_directories=lost)
    chosen = ChosenRules(ELR_4_3, "as asked for", certain=True)
    wanted = wanted_scenarios(["each-pair"])
    plan = Spread(
        (context,), (ELR_4_3,), {"id-1": (chosen,)}, {"id-1": wanted.of(CLUSTER, "payments")}, wanted.families
    )
    adds = {
        "now": NOW_ADDS if now is None else now,
        "broker 1 killed": {"touched": 6, "new.under_min_isr": 6, "then.under_min_isr": 6},
        "broker 2 killed": {"touched": 5, "new.under_min_isr": 5, "then.under_min_isr": 5},
        "broker 1 killed + broker 2 killed": {
            "touched": -4,
            "new.under_min_isr": -8,
            "then.under_min_isr": -8,
            "new.leaderless": 4,
            "then.leaderless": 4,
        },
    }
    topics = {("id-1", "elr-4.3", "broker 1 killed"): ("orders",)}
    counted = Counted({("id-1", "elr-4.3", name): found for name, found in adds.items()}, topics)
    return assessing.Assessed(tuple(sums(plan, counted)), 3, ())


def by_name(found: assessing.Assessed) -> dict[str, Sums]:
    return {"now" if one.scenario is None else one.scenario.name: one for one in found.sums}


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: assessing.Assessed, *arguments: str
) -> tuple[int, str, str]:
    @contextmanager
    def no_spark(_output: Output, *_: object) -> Iterator[None]:
        yield None

    monkeypatch.setattr(fleet_assess, "spark_session", no_spark)
    monkeypatch.setattr(fleet_assess, "open_lake", lambda _spark, place: place)
    monkeypatch.setattr(assessing, "assess", lambda _lake, _question: found)
    code = main(["fleet", "assess", "--lake", "lake", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_sums_of_two_parts_are_those_of_each_and_what_both_add() -> None:
    both = by_name(answer())["broker 1 killed + broker 2 killed"].counts
    assert (both["touched"], both["partitions"]) == (7, 10)
    assert (both["new.under_min_isr"], both["new.leaderless"], both["then.leaderless"]) == (3, 4, 5)


def test_people_see_nothing_first_then_the_worst(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(monkeypatch, capsys, answer())
    assert code == ExitCode.DONE
    header, *rows = out.splitlines()
    assert header.split()[:3] == ["CLUSTER", "RULES", "SCENARIO"]
    assert len(rows) == 6
    assert rows[0].split()[:3] == ["payments", "elr-4.3", "now"]
    assert "broker 1 killed + broker 2 killed" in rows[1]
    assert "broker 1 killed" in rows[2]
    assert "3 more scenarios" in err
    assert err.splitlines()[-1] == "  next: kelr fleet exposure --lake lake"


def test_machines_get_every_scenario(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(monkeypatch, capsys, answer(), "-o", "json")
    told = json.loads(out)
    assert (code, told["failed"], told["listed"], told["scenarios"], told["patterns"]) == (0, None, 9, 9, 3)
    first = told["items"][2]
    assert (first["scenario"], first["touched"], first["under_min_isr"]) == ("broker 1 killed", 6, 6)
    assert (first["racks"], first["worst_topics"], first["at_ms"]) == (["a"], ["orders"], 1_790_000_000_000)


@pytest.mark.parametrize(
    ("found", "fail_on", "code"),
    [
        (answer(), "may_lose", ExitCode.DONE),
        (answer(), "may_lose,leaderless", ExitCode.FOUND),
        (answer(now={"partitions": 10, "new.doubtful": 1}), "may_lose", ExitCode.FOUND),
        (answer(now={}), "may_lose", ExitCode.FOUND),
        (answer(lost=(2,)), "may_lose", ExitCode.FOUND),
    ],
    ids=["fine", "without leader", "doubtful", "no partition", "a directory is lost"],
)
def test_check_fails_for_what_is_named_and_for_what_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: assessing.Assessed,
    fail_on: str,
    code: ExitCode,
) -> None:
    got, out, _ = run(monkeypatch, capsys, found, "--check", "--fail-on", fail_on, "-o", "json")
    assert (got, json.loads(out)["failed"]) == (code, code is ExitCode.FOUND)


def test_a_lost_directory_is_noted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(monkeypatch, capsys, answer(lost=(2,)))
    assert "payments: broker 2 has lost a log directory; which replicas were in it is not in the lake" in err


@pytest.mark.parametrize(
    "arguments",
    [("--rules", "elr-9"), ("--at", "yesterday"), ("--at", "120394"), ("--fail-on", "bad"), ("--scenarios", "none")],
)
def test_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, str]
) -> None:
    code, _, err = run(monkeypatch, capsys, answer(), *arguments)
    assert code == ExitCode.USAGE
    assert arguments[1] in err
