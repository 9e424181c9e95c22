"""How the results of a plan look: partition by partition, and in the words of kafka-leader-election.sh."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

from kelr.model import Applied, Ended, Plan
from kelr.view.applied import show_applied
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from tests.view.plans import MIXED, NOT_NEEDED, PREFERRED, RESULTS, plan
from tests.view.test_schema import violations


def shown(
    what: Plan, *applied: Applied, format: OutputFormat = OutputFormat.TABLE, width: int | None = None
) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    output = Output(out, err, format=format, width=width, connection_flags=("-b", "kafka-1:9092"))
    show_applied(output, what, applied, following=("recover", "status"))
    return out.getvalue(), err.getvalue()


def test_results_for_people() -> None:
    out, err = shown(MIXED, *RESULTS)
    assert out.splitlines() == [
        " PARTITION   RESULT     WANTED  LEADER  EPOCH",
        " orders:0    done            2       2      8  elected",
        " orders:1    refused         3       1      9  not begun: what the plan stood on has changed",
        " payments:0  no-leader       3       -      -  nobody leads (ELIGIBLE_LEADERS_NOT_AVAILABLE)",
        "",
        "What has changed since the plan:",
        " PARTITION  FIELD   PLANNED  NOW",
        " orders:1   leader  none     1    Broker 1 came back and leads.",
        "",
        "Successfully completed leader election (PREFERRED) for partitions orders-0",
        "Valid replica already elected for partitions orders-2",
        "Error completing leader election (DESIGNATION) for partition: orders-1: not begun: what the plan stood on has"
        " changed",
        "Error completing leader election (UNCLEAN) for partition: payments-0: nobody leads"
        " (ELIGIBLE_LEADERS_NOT_AVAILABLE)",
    ]
    assert err == "  next: kelr recover status -b kafka-1:9092\n"


def test_nothing_to_do_reads_as_kafkas_own_tool_says_it() -> None:
    out, _ = shown(plan(NOT_NEEDED))
    assert out == "Valid replica already elected for partitions orders-2\n"


def test_very_many_partitions_are_not_all_named_and_that_is_said() -> None:
    many = plan(*(replace(PREFERRED, partition=number) for number in range(250)))
    results = [Applied("orders", number, 2, Ended.DONE, 2, 8) for number in range(250)]
    out, _ = shown(many, *results)
    (line,) = [line for line in out.splitlines() if line.startswith("Successfully")]
    assert line.endswith("orders-99 and 150 partitions more")
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
