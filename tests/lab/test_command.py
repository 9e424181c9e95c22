"""``kelr lab`` where no cluster is needed: lists, refusals, help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kelr.commands.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["lab", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_incidents_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "incident", "-o", "csv")
    assert code == 0
    assert out.splitlines() == [
        "name,summary,needs_elr,racks",
        "under-min-isr,"
        '"two of three replicas die: a leader alone, acks=all refused, acks=1 records on one disk only",false,1',
        "waiting-for-elr,"
        "one ELR member was stopped cleanly and one was killed; the replica that lives missed committed records,true,1",
        "last-known-leader,"
        '"the last leader came back, registered and died again: ISR and ELR are empty, and its return elects it",'
        "true,1",
        "needs-unclean-recovery,"
        '"the only replica that may lead is gone; of the two that live, the stock election can choose the worse",'
        "false,1",
        "lossy-restart,"
        '"a crash cut the logs of killed brokers: one is back without its tail, another would lead without its own",'
        "false,1",
        'rack-outage,"three racks fail one after the other, and the one that failed first comes back first",false,3',
    ]


def test_incidents_are_listed_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, "incident", "-o", "json")
    document = json.loads(out)
    assert (document["kind"], document["complete"], len(document["items"])) == ("kelr/lab-incidents", True, 6)
    assert err == ""


@pytest.mark.parametrize("command", [["status"], ["env"], ["kill", "1"], ["incident", "rack-outage"], ["down"]])
def test_without_a_lab_each_command_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    code, out, err = run(capsys, *command, "--dir", str(tmp_path))
    assert (code, out) == (5, "")
    assert err == f"kelr: error: there is no lab in {tmp_path}\n  next: start one with 'kelr lab up'\n"


def test_an_unknown_incident_is_a_usage_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "incident", "flood", "--dir", str(tmp_path))
    assert code == 2
    assert "no incident is called 'flood'" in err
    assert "needs-unclean-recovery" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--brokers", "12"], 2, "a lab's brokers is 12, outside 1 to 9"),
        (["--brokers", "2", "--min-isr", "3"], 2, "a lab's min-isr is 3, outside 1 to 2"),
        (["--kafka", "3.9.0"], 5, "no locked jars for Kafka 3.9.0"),
    ],
)
def test_a_lab_that_cannot_be_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    done, _, err = run(capsys, "up", *arguments, "--dir", str(tmp_path / "lab"))
    assert done == code
    assert message in err
    assert not (tmp_path / "lab").exists()
