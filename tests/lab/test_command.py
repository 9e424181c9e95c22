"""``kelr lab`` where no cluster is needed: lists, refusals, help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.lab import Acks, Action, CutTail, IncidentReport, LabStatus, NodeStatus, Produced, StepDone
from kelr.lab.cluster import Report

STATUS = LabStatus(
    directory=Path("lab"),
    kafka="4.3.1",
    cluster_id="cluster",
    bootstrap_servers="127.0.0.1:20001,127.0.0.1:20002",
    elr=True,
    min_isr=2,
    ready=True,
    nodes=(
        NodeStatus(100, "controller", 20100, None, 4000, None),
        NodeStatus(1, "broker 1", 20001, "az1", 4001, False),
        NodeStatus(2, "broker 2", 20002, "az2", None, True),
    ),
)
REPORT = IncidentReport(
    incident="lossy-restart",
    topic="orders",
    partitions=1,
    steps=(
        StepDone(Action.KILL, "killed broker 2 (SIGKILL)", (2,)),
        StepDone(Action.PRODUCE, "produced", produced=(Produced(0, Acks.LEADER, 10, 40, 5, "NOT_ENOUGH_REPLICAS"),)),
        StepDone(Action.CUT_TAIL, "cut", (2,), cuts=(CutTail(2, "orders", 0, 10, 40, 6),)),
    ),
    live=(1, 3),
    absent=(2,),
    awaited=(2,),
    try_next=("kelr explain orders", "kelr lab start 2"),
)


class LabOnPaper:
    """What the commands ask of a lab."""

    bootstrap_servers = STATUS.bootstrap_servers
    client_servers = STATUS.bootstrap_servers
    connection = ("-b", STATUS.bootstrap_servers)

    def status(self) -> LabStatus:
        return STATUS


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab that says what `STATUS` and `REPORT` hold."""

    def incident(_lab: LabOnPaper, name: str, *, topic: str, partitions: int, report: Report) -> IncidentReport:
        assert (name, topic, partitions) == (REPORT.incident, REPORT.topic, REPORT.partitions)
        for step in REPORT.steps:
            report(step.text)
        return REPORT

    monkeypatch.setattr("kelr.lab.open_lab", lambda _directory: LabOnPaper())
    monkeypatch.setattr("kelr.lab.run_incident", incident)


@pytest.mark.usefixtures("lab")
def test_status_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "status") == (
        0,
        "Kafka 4.3.1, ELR on, min ISR 2, in lab\n"
        "bootstrap servers: 127.0.0.1:20001,127.0.0.1:20002\n"
        "NODE         ID   PORT  RACK  PROCESS  STATE\n"
        "controller  100  20100  -        4000  -\n"
        "broker 1      1  20001  az1      4001  live\n"
        "broker 2      2  20002  az2      down  fenced\n",
        "",
    )


@pytest.mark.usefixtures("lab")
def test_status_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "status", "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "kind": "kelr/lab-status",
        "version": 1,
        "directory": "lab",
        "kafka": "4.3.1",
        "cluster_id": "cluster",
        "bootstrap_servers": "127.0.0.1:20001,127.0.0.1:20002",
        "elr": True,
        "min_isr": 2,
        "ready": True,
        "security": "plaintext",
        "sasl_mechanism": None,
        "authorizer": False,
        "client_servers": "127.0.0.1:20001,127.0.0.1:20002",
        "command_config": None,
        "simulated": False,
        "rules": None,
        "metrics_endpoint": None,
        "virtual_clock": None,
        "now_ms": None,
        "severed": None,
        "faults": None,
        "denied": None,
        "assumptions": None,
        "broken_handlers": None,
        "items": [
            {**node, "paused": False}
            for node in (
                {"name": "controller", "node": 100, "port": 20100, "rack": None, "pid": 4000, "fenced": None},
                {"name": "broker 1", "node": 1, "port": 20001, "rack": "az1", "pid": 4001, "fenced": False},
                {"name": "broker 2", "node": 2, "port": 20002, "rack": "az2", "pid": None, "fenced": True},
            )
        ],
        "complete": True,
    }


@pytest.mark.usefixtures("lab")
def test_an_incident_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "incident", "lossy-restart", "--topic", "orders", "--partitions", "1") == (
        0,
        "topic orders; live: 1, 3; down: 2. Try:\n  kelr explain orders\n  kelr lab start 2\n",
        "killed broker 2 (SIGKILL)\nproduced\ncut\n",
    )


@pytest.mark.usefixtures("lab")
def test_an_incident_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "incident", "lossy-restart", "--topic", "orders", "--partitions", "1", "-o", "json")
    assert code == 0
    produced = {
        "partition": 0,
        "acks": "1",
        "acknowledged": 10,
        "first_offset": 40,
        "refused": 5,
        "error": "NOT_ENOUGH_REPLICAS",
    }
    cut = {"broker": 2, "partition": 0, "from_offset": 10, "to_offset": 40, "batches": 6}
    kill_text = "killed broker 2 (SIGKILL)"
    assert json.loads(out) == {
        "kind": "kelr/lab-incident",
        "version": 1,
        "incident": "lossy-restart",
        "bootstrap_servers": "127.0.0.1:20001,127.0.0.1:20002",
        "topic": "orders",
        "partitions": 1,
        "items": [
            {"action": "kill", "text": kill_text, "brokers": [2], "produced": [], "cuts": []},
            {"action": "produce", "text": "produced", "brokers": [], "produced": [produced], "cuts": []},
            {"action": "cut-tail", "text": "cut", "brokers": [2], "produced": [], "cuts": [cut]},
        ],
        "live": [1, 3],
        "absent": [2],
        "awaited": [2],
        "next": ["kelr explain orders", "kelr lab start 2"],
        "complete": True,
    }


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["lab", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_incidents_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "incident", "-o", "csv")
    assert code == 0
    assert out.splitlines() == [
        "name,summary,needs_elr,racks,controllers",
        "under-min-isr,"
        '"two of three replicas die: a leader alone, acks=all refused, acks=1 records on one disk only",false,1,1',
        "waiting-for-elr,"
        "one ELR member was stopped cleanly and one was killed; the replica that lives missed committed records,true,1,"
        "1",
        "last-known-leader,"
        '"the last leader came back, registered and died again: ISR and ELR are empty, and its return elects it",'
        "true,1,1",
        "needs-unclean-recovery,"
        '"the only replica that may lead is gone; of the two that live, the stock election can choose the worse",'
        "false,1,1",
        "lossy-restart,"
        '"a crash cut the logs of killed brokers: one is back without its tail, another would lead without its own",'
        "false,1,1",
        'rack-outage,"three racks fail one after the other, and the one that failed first comes back first",false,3,1',
        "quorum-lost,a majority of the controllers dies with its disks; the one that is left lacks the newest topic,"
        "false,1,3",
        'quorum-addresses,"all controllers get other addresses at once, and never find each other again",false,1,3',
        'quorum-disk,"a controller\'s disk is replaced by an empty one: it runs, and votes no more",false,1,3',
    ]


def test_incidents_are_listed_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, "incident", "-o", "json")
    document = json.loads(out)
    assert (document["kind"], document["complete"], len(document["items"])) == ("kelr/lab-incidents", True, 9)
    assert err == ""


@pytest.mark.parametrize("command", [["status"], ["env"], ["kill", "1"], ["incident", "rack-outage"], ["down"]])
def test_without_a_lab_each_command_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    code, out, err = run(capsys, *command, "--dir", str(tmp_path))
    assert (code, out) == (5, "")
    assert err == f"error: there is no lab in {tmp_path} [no-lab]\n  fix: start one with 'kelr lab up'\n"


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
        (["--simulated", "--kafka", "4.3.1"], 2, "a simulated lab has no --kafka"),
        (["--simulated", "--no-elr"], 2, "a simulated lab has no --no-elr"),
        (["--simulated", "--heap-mb", "300"], 2, "a simulated lab has no --heap-mb"),
        (["--simulated", "--brokers", "0"], 2, "a simulated lab's brokers is 0, outside 1 to 99"),
        (
            ["--simulated", "--topics", "1", "--replication", "4"],
            2,
            "a simulated lab's replication is 4, outside 1 to 3",
        ),
        (["--simulated", "--min-isr", "4"], 2, "a simulated lab's min-isr is 4, outside 1 to 3"),
        (["--simulated", "--rules", "kip-000"], 2, "kip-000"),
        (["--simulated", "--log-info", "loud"], 2, "loud"),
        (["--simulated", "--partitions", "9"], 2, "without --topics there is nothing for --partitions"),
        (["--simulated", "--page-limit", "0"], 2, "a simulated lab's page-limit is 0, outside 1 to"),
        (["--simulated", "--log-info-api-key", "3"], 2, "GetReplicaLogInfo cannot have the API key 3: "),
        (["--simulated", "--log-info-api-key", "18"], 2, "GetReplicaLogInfo cannot have the API key 18: "),
        (["--simulated", "--log-info-api-key", "21"], 2, "GetReplicaLogInfo cannot have the API key 21: "),
        (["--simulated", "--log-info-api-key", "32768"], 2, "log-info-api-key is 32768, outside 0 to 32767"),
        (["--simulated", "--log-info", "off", "--log-info-api-key", "70"], 2, "with --log-info off there is no"),
        (["--rules", "elr-4.3"], 2, "without --simulated there is no --rules"),
        (["--virtual-clock"], 2, "without --simulated there is no --virtual-clock"),
        (["--topics", "0"], 2, "without --simulated there is no --topics"),
    ],
)
def test_a_lab_that_cannot_be_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    done, _, err = run(capsys, "up", *arguments, "--dir", str(tmp_path / "lab"))
    assert done == code
    assert message in err
    assert not (tmp_path / "lab").exists()
