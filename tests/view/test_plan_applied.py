"""How the results of a plan look: partition by partition, and in the words of kafka-leader-election.sh."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

from kelr.model import Applied, Difference, ElectionResult, Plan
from kelr.view.applied import show_applied
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from tests.view.plans import MIXED, NOT_NEEDED, PREFERRED, RESULTS, plan
from tests.view.test_schema import violations


def shown(
    what: Plan,
    *applied: Applied,
    format: OutputFormat = OutputFormat.TABLE,
    width: int | None = None,
    as_stock: bool = False,
) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    output = Output(out, err, format=format, width=width, connection_flags=("-b", "kafka-1:9092"))
    show_applied(output, what, applied, following=("recover", "status"), exit_code=7, as_stock=as_stock)
    return out.getvalue(), err.getvalue()


RESULT_LINES = [
    "Partly done: 1 of 3 leaders elected, 1 refused, 1 leaderless. Exit code 7.",
    "Refused     orders:1: Broker 1 came back and leads (leader: planned none, now",
    "            1).",
    "Leaderless  payments:0: No leader elected (ELIGIBLE_LEADERS_NOT_AVAILABLE).",
    "Lost        orders:0: None.",
    "            UNKNOWN on payments:0: an election that was asked for may have come",
    "            about.",
]


def test_results_for_people() -> None:
    out, err = shown(MIXED, *RESULTS)
    assert out.splitlines() == [*RESULT_LINES, "Next        kelr recover status -b kafka-1:9092"]
    assert err == ""


def test_results_as_kafkas_own_tool_says_them() -> None:
    out, err = shown(MIXED, *RESULTS, as_stock=True)
    assert out.splitlines() == [
        *RESULT_LINES,
        "Successfully completed leader election (PREFERRED) for partitions orders-0",
        "Valid replica already elected for partitions orders-2",
        "Error completing leader election (DESIGNATION) for partition: orders-1: not begun: cluster changed since the"
        " plan",
        "Error completing leader election (UNCLEAN) for partition: payments-0: no leader elected"
        " (ELIGIBLE_LEADERS_NOT_AVAILABLE)",
    ]
    assert err == "  next: kelr recover status -b kafka-1:9092\n"


def test_wide_has_a_row_for_each() -> None:
    out, _ = shown(MIXED, *RESULTS, format=OutputFormat.WIDE)
    assert out.splitlines()[8:12] == [
        "PARTITION   RESULT     WANTED  LEADER  EPOCH",
        "orders:0    done            2       2      8  elected",
        "orders:1    refused         3       1      9  not begun: cluster changed since the plan",
        "payments:0  no-leader       3       -      -  no leader elected (ELIGIBLE_LEADERS_NOT_AVAILABLE)",
    ]


def test_what_an_election_lost_that_may_have_come_about_is_unknown() -> None:
    """It was asked for, and another replica leads: whether by it is UNKNOWN. What nobody asked for lost nothing."""
    other = Applied("orders", 1, 3, ElectionResult.OTHER_LEADER, leader=2, leader_epoch=9, asked=True)
    out, _ = shown(MIXED, other)
    assert out.splitlines()[:3] == [
        "Not done: 0 of 1 leader elected, 1 led by another. Exit code 7.",
        "Other       orders:1: Another replica leads. Broker 2 leads, planned 3.",
        "Lost        UNKNOWN on orders:1: an election that was asked for may have come",
    ]
    assert "Lost" not in shown(MIXED, replace(other, asked=False))[0]


def test_a_loss_names_what_was_accepted() -> None:
    out, _ = shown(MIXED, Applied("orders", 1, 3, ElectionResult.DONE, leader=3, leader_epoch=9))
    assert out.splitlines()[:3] == [
        "Done: 1 of 1 leader elected. Exit code 7.",
        "Lost        At least 19 offsets, 4 committed. More UNKNOWN: the log of broker 1",
        "            was not read. Accepted: 19+.",
    ]


def test_nothing_to_do() -> None:
    done = [Applied("orders", 0, 2, ElectionResult.NOT_NEEDED, leader=2, leader_epoch=8)]
    output = Output(io.StringIO(), io.StringIO())
    show_applied(output, plan(PREFERRED), done)
    assert isinstance(output.stdout, io.StringIO)
    assert output.stdout.getvalue() == "Nothing to do: 1 of 1 already done.\n"
    out, _ = shown(plan(NOT_NEEDED), as_stock=True)
    assert out == "Valid replica already elected for partitions orders-2\n"


def test_very_many_partitions_are_not_all_named_and_that_is_said() -> None:
    many = plan(*(replace(PREFERRED, partition=number) for number in range(250)))
    results = [Applied("orders", number, 2, ElectionResult.DONE, 2, 8) for number in range(250)]
    out, _ = shown(many, *results, as_stock=True)
    (line,) = [line for line in out.splitlines() if line.startswith("Successfully")]
    assert line.endswith("orders-99 and 150 partitions more")
    out, _ = shown(many, *results, format=OutputFormat.WIDE)
    assert sum(" done " in line for line in out.splitlines()) == 250


def test_the_document_holds_plan_and_results() -> None:
    out, _ = shown(MIXED, *RESULTS, format=OutputFormat.JSON)
    document = json.loads(out)
    assert violations(document, "applied") == []
    assert document["ended"] == {"done": 1, "refused": 1, "no-leader": 1}
    assert document["next"] == "kelr recover status -b kafka-1:9092"
    results = {(item["topic"], item["partition"]): item["result"] for item in document["items"]}
    assert results["orders", 1]["differences"][0]["field"] == "leader"
    assert results["payments", 0]["error"] == "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    assert results["orders", 2] is None


def test_csv_has_how_each_ended() -> None:
    out, _ = shown(MIXED, *RESULTS, format=OutputFormat.CSV)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["ended"] for row in rows] == ["done", "refused", "", "", "", "no-leader"]


def test_what_follows_from_another_leader_is_told_on_demand() -> None:
    """One refused partition took 14 lines, the leader that explains them all among them."""
    moved = Difference("leader", "none", "3", "broker 3 leads now")
    others = tuple(Difference(name, "1", "2", f"{name} has changed") for name in ("leader_epoch", "isr", "elr", "loss"))

    def refused(*differences: Difference, format: OutputFormat = OutputFormat.TABLE) -> list[str]:
        one = replace(RESULTS[1], differences=differences)
        return [line.strip() for line in shown(MIXED, one, format=format)[0].splitlines()]

    assert refused(*others, moved)[1:3] == [
        "Refused     orders:1: Broker 3 leads now (leader: planned none, now 3).",
        "4 more differences: -o wide",
    ]
    assert refused(*others)[1:5] == [
        "Refused     orders:1: Leader_epoch has changed (leader_epoch: planned 1, now 2).",
        "Isr has changed (isr: planned 1, now 2).",
        "Elr has changed (elr: planned 1, now 2).",
        "1 more difference: -o wide",
    ]
    assert "more difference" not in " ".join(refused(*others, moved, format=OutputFormat.WIDE))
