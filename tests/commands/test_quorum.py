"""``kelr quorum``: whole outputs, documents and exit codes."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kelr.model.checkup import AddressState
from kelr.view.schema import SCHEMAS
from tests.commands.conftest import Kelr
from tests.quorum.nodes import LATE, SHORT, TOPIC, WHOLE, write_node, write_replica


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that lags, a broker that does not, and two controllers that are gone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "gethostname", lambda: "h")
    write_node(Path("c"), 100, SHORT, epoch=1)
    write_node(Path("b"), 1, WHOLE)
    write_replica(Path("b"), "early", TOPIC, [(0, 0), (1, 0)])
    write_replica(Path("b"), "late", LATE, [(0, 0)])


def test_what_is_collected_is_shown(kelr: Kelr) -> None:
    ran = kelr("quorum", "collect", "all", "--node-dir", "c", "--node-dir", "b")
    assert ran.code == 0
    assert ran.out == (
        "NODE  HOST  METADATA BYTES  REPLICAS  RUNNING\n"
        "   1  h               1207         2  no\n"
        " 100  h                852         0  no\n"
    )
    assert ran.err == "saved in all\n  next: kelr quorum explain all\n"
    again = kelr("quorum", "collect", "all", "--node-dir", "c")
    assert (again.code, again.out) == (2, "")
    assert again.err.startswith("error: all exists already")


EXPLAINED = """\
Quorum  LOST: 1 of 3 voters has a whole log among those read; 2 are needed to
        elect a controller.
Best    node 1 (h:b), offset 10 of epoch 2: lower bound
        It holds all that nodes 1 and 100 hold; not read whole: voters 101 and
        102. Whether others hold more is UNKNOWN.
        Voter 101: not read.
        Voter 102: not read.

NODE  ROLE    VERDICT      LAST EPOCH  END  START  EPOCH SEEN  SAME TO  DIRECTORY
   1  broker  lower bound           2   11      0           2       11  h:b
 100  voter   stale                 1    7      0           1        7  h:c

Node 100 (stale), if it is chosen:
  - contradicted: node 1 holds offset 10 of epoch 2; this copy ends at 6 of
    epoch 1 (h:b)
  - contradicted: broker 1 has early-0 in leader epoch 1; here it is 0
    (b/early-0)
  - contradicted: broker 1 has late-0 of topic id BBBBBBBBBBBBBBBBBBBBBQ, which
    this copy never knew (b/late-0)
  - brokers set the files of these topics aside (-stray): late
  - 1 partition with an older leader or ISR; followers truncate 0 records
  - node 1 truncates its metadata log; if it is a live broker, it exits
"""


def test_the_copies_are_explained(kelr: Kelr) -> None:
    kelr("quorum", "collect", "one", "--node-dir", "c")
    kelr("quorum", "collect", "two", "--node-dir", "b")
    ran = kelr("quorum", "explain", "one", "two")
    assert ran.out == EXPLAINED
    assert (ran.code, ran.err) == (1, "")


def test_documents_fit_their_schemas(kelr: Kelr) -> None:
    ran = kelr("quorum", "collect", "all", "--node-dir", "c", "--node-dir", "b", "-o", "json")
    document = json.loads(ran.out)
    Draft202012Validator(dict(SCHEMAS["quorum-collection"]())).validate(document)
    assert [one["node"] for one in document["items"]] == [1, 100]
    ran = kelr("quorum", "explain", "all", "-o", "json")
    document = json.loads(ran.out)
    Draft202012Validator(dict(SCHEMAS["quorum-copies"]())).validate(document)
    assert (ran.code, document["matter"], document["missing_voters"]) == (1, "lost", [101, 102])
    assert document["voters"][0] == {
        "node": 100,
        "state": "whole",
        "directory_id": f"{100:021d}A",
        "endpoints": ["CONTROLLER://c100:9093"],
        "running": False,
    }
    best, stale = document["items"]
    assert (best["verdict"], best["contradictions"], best["truncating"]) == ("lower-bound", [], [])
    assert (stale["verdict"], stale["truncating"]) == ("stale", [1])
    assert stale["topics"] == [{"topic": "late", "topic_id": LATE, "fate": "stray"}]
    assert [one["certain"] for one in stale["contradictions"]] == [True, True, True]


def test_a_quorum_that_is_not_lost(kelr: Kelr) -> None:
    write_node(Path("d"), 101, WHOLE)
    kelr("quorum", "collect", "all", "--node-dir", "c", "--node-dir", "b", "--node-dir", "d")
    ran = kelr("quorum", "explain", "all")
    assert ran.code == 0
    assert ran.out.startswith(
        "Quorum  not lost: 2 of 3 voters have a whole log, a majority. Not enough of them\n"
        "        run: start them. Kafka then elects a controller by itself.\n"
        "Best    node 1 (h:b), offset 10 of epoch 2: proved\n"
        "        It holds all that was committed: enough voters had stopped and were\n"
        "        read, nothing contradicts it.\n"
        "        Voter 102: not read.\n"
    )


def test_a_copy_that_was_read_while_its_controller_ran_proves_nothing(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began to run while its bytes were read: what it and the voter that was not read commit is in no copy."""
    write_node(Path("d"), 101, WHOLE)
    monkeypatch.setattr("kelr.quorum.archive.is_locked", lambda path: path.name == "d" and Path("all").exists())
    Path("all").touch()
    kelr("quorum", "collect", "all", "--overwrite", "--node-dir", "c", "--node-dir", "b", "--node-dir", "d")
    out = kelr("quorum", "explain", "all").out
    assert "Best    node 1 (h:b), offset 10 of epoch 2: lower bound\n" in out
    assert "Voter 101: log read whole, and it ran: what it wrote since is not in it.\n" in out
    words = " ".join(out.split())
    assert "not read whole: voter 102; not known to have stopped when read: voter 101. Whether others hold" in words


def test_a_majority_whose_logs_are_contradicted_is_not_told_to_start(kelr: Kelr) -> None:
    write_node(Path("d"), 101, SHORT, epoch=1)
    (Path("b") / "__cluster_metadata-0").rename("lost")
    kelr("quorum", "collect", "all", "--node-dir", "c", "--node-dir", "b", "--node-dir", "d")
    ran = kelr("quorum", "explain", "all")
    assert ran.code == 1
    assert ran.out.startswith(
        "Quorum  not lost: 2 of 3 voters have a whole log, a majority. But the best copy\n"
        "        is stale: do not start them. They would lead with it.\n"
    )


def test_what_is_no_collection_is_refused(kelr: Kelr) -> None:
    Path("x").write_text("nothing of the kind")
    ran = kelr("quorum", "explain", "x")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: x is no collection of kelr quorum collect")


PLAN = ("--node", "100", "--directory", "c", "--address", "c100:9093", "--kafka", "4.3.1", "--out", "plan.json")


@pytest.fixture
def planned(kelr: Kelr, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A plan was made of what was collected; gives its output. Nobody answers anywhere."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("kelr.commands.quorum_plan.new_kafka_uuid", lambda: "N" * 21 + "Q")
    monkeypatch.setattr("kelr.commands.quorum_plan.probe_address", lambda _address: AddressState.SILENT)
    kelr("quorum", "collect", "all", "--node-dir", "c", "--node-dir", "b")
    ran = kelr("quorum", "plan", "all", *PLAN)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def test_a_plan_says_what_it_makes_and_what_follows(planned: str, tmp_path: Path) -> None:
    head, _, steps = planned.partition("\n\n")
    plan_id = json.loads(Path("plan.json").read_text())["plan_id"]
    assert head.splitlines()[:5] == [
        f"Plan    {plan_id}, saved in plan.json. Nothing changed.",
        "Copy    node 1 (h:b), offset 10 of epoch 2",
        "Loss    UNKNOWN: nodes 101 and 102 were not read whole, or ran meanwhile, and",
        "        may hold more metadata.",
        "It knows 2 topics, 2 partitions.",
    ]
    assert steps.splitlines()[:4] == [
        f"1. On the host of {tmp_path}/c: kelr quorum apply plan.json all --never-start 100,101,102 --missing 101,102",
        "2. Start the new controller with these configs, and with the security of its listener as the old controllers"
        " had it: process.roles=controller node.id=100"
        " listeners=CONTROLLER://c100:9093 controller.listener.names=CONTROLLER"
        f" controller.quorum.bootstrap.servers=c100:9093 log.dirs={tmp_path}/c",
        "3. See that it leads and nothing is lost: kelr quorum verify PLAN OUT -b BROKER",
        "4. On each broker's host: kelr quorum verify PLAN OUT --node-dir PATH -b BROKER. If it finds -stray or"
        " -delete directories, stop that broker at once",
    ]


@pytest.mark.usefixtures("planned")
def test_it_is_carried_out_as_the_plan_says_and_undone(kelr: Kelr) -> None:
    before = Path("c/__cluster_metadata-0/00000000000000000000.log").read_bytes()
    refused = kelr("quorum", "apply", "plan.json", "all", "--never-start", "100,101")
    assert refused.code == 6
    assert "102 never start" in refused.err
    stated = ("--never-start", "100,101,102", "--missing", "101,102")
    ran = kelr("quorum", "apply", "plan.json", "all", *stated, "-o", "json")
    document = json.loads(ran.out)
    Draft202012Validator(dict(SCHEMAS["quorum-plan"]())).validate(document)
    assert (ran.code, document["applied"], document["epoch"]) == (0, True, 12)
    after = Path("c/__cluster_metadata-0/00000000000000000000.log").read_bytes()
    assert after.startswith(WHOLE)
    assert len(after) > len(WHOLE)
    assert Path(document["saved"], "__cluster_metadata-0/00000000000000000000.log").read_bytes() == before
    ran = kelr("quorum", "undo", "plan.json")
    assert ran.code == 0
    assert Path("c/__cluster_metadata-0/00000000000000000000.log").read_bytes() == before


STALE = (*PLAN, "--overwrite", "--stale", "--source", "100")


@pytest.mark.usefixtures("planned")
def test_a_stale_copy_is_planned_and_carried_out_as_its_plan_says(kelr: Kelr) -> None:
    ran = kelr("quorum", "plan", "all", *PLAN, "--overwrite", "--source", "h:c")
    assert ran.code == 6
    assert "stop all brokers, copy their data, and add --stale" in ran.err
    ran = kelr("quorum", "plan", "all", *STALE)
    assert (ran.code, ran.err) == (0, "")
    head, _, steps = ran.out.partition("\n\n")
    assert head.splitlines()[1:6] == [
        "Copy    node 100 (h:c), offset 6 of epoch 1",
        "Loss    STALE: metadata that it lacks is lost: 1 PartitionChangeRecord, 1",
        "        PartitionRecord, 1 TopicRecord. 2 topics would be set aside, come back,",
        "        or lose records; kelr quorum explain says which.",
        "It knows 1 topic, 1 partition.",
    ]
    stated = ("--never-start", "100,101,102", "--missing", "101,102", "--topics", "early,late", "--data-copied", "1")
    first, _, _, fourth, *_ = steps.splitlines()
    assert first.endswith(f"kelr quorum apply plan.json all {' '.join(stated)}")
    assert fourth == "4. Start the brokers"
    refused = kelr("quorum", "apply", "plan.json", "all", *stated[:-2])
    assert refused.code == 6
    assert "directories of brokers 1 are copied" in refused.err
    ran = kelr("quorum", "apply", "plan.json", "all", *stated, "-o", "json")
    document = json.loads(ran.out)
    Draft202012Validator(dict(SCHEMAS["quorum-plan"]())).validate(document)
    assert (ran.code, document["verdict"], document["stale_topics"]) == (0, "stale", ["early", "late"])
    assert Path("c/__cluster_metadata-0/00000000000000000000.log").read_bytes().startswith(SHORT)


@pytest.mark.usefixtures("planned")
def test_what_a_broker_has_set_aside_is_renamed_back(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("b/early-0").rename("b/early-0.a1-stray")
    ran = kelr("quorum", "restore", "plan.json", "all", "--node-dir", "b")
    assert (ran.code, ran.out, ran.err) == (0, "REPLICA  RESULT   WHY\nearly-0  renamed  -\n", "")
    assert Path("b/early-0/partition.metadata").exists()
    Path("b/gone-0.a1-stray").mkdir()
    ran = kelr("quorum", "restore", "plan.json", "all", "--node-dir", "b", "-o", "json")
    document = json.loads(ran.out)
    Draft202012Validator(dict(SCHEMAS["quorum-restored"]())).validate(document)
    assert ran.code == 7
    assert [(one["replica"], one["renamed"], one["kept"]) for one in document["items"]] == [
        ("gone-0", False, "it has no topic id")
    ]
    Path("b/gone-0.a1-stray").rename("b/gone-0.a1-delete")
    ran = kelr("quorum", "restore", "plan.json", "all", "--node-dir", "b")
    assert (ran.code, ran.out.splitlines()[1:]) == (7, ["gone-0   left; Kafka deletes it  it has no topic id"])
    assert "Kafka deletes 1 replica soon after the broker starts" in ran.err
    monkeypatch.setattr("kelr.quorum.restore.find_set_aside.__kwdefaults__", {"locked": lambda _path: True})
    refused = kelr("quorum", "restore", "plan.json", "all", "--node-dir", "b")
    assert (refused.code, refused.out) == (6, "")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--address", "c100", "no address"), ("--address", "c:99999", "no address"), ("--kafka", "x", "no release")],
)
def test_options_that_make_no_sense_are_refused(kelr: Kelr, option: str, value: str, words: str) -> None:
    kelr("quorum", "collect", "all", "--node-dir", "c", "--node-dir", "b")
    arguments = list(PLAN)
    arguments[arguments.index(option) + 1] = value
    ran = kelr("quorum", "plan", "all", *arguments)
    assert ran.code == 2
    assert words in ran.err


def test_voters_that_have_moved_are_planned_by_their_addresses(kelr: Kelr, tmp_path: Path) -> None:
    write_node(Path("c"), 100, WHOLE)
    write_node(Path("d"), 101, WHOLE)
    kelr("quorum", "collect", "all", "--node-dir", "c", "--node-dir", "d")
    rest = ("--kafka", "4.3.1", "--out", "plan.json")
    voters = ("--voter", "100@n1:9093", "--voter", "101@n2:9093", "--voter", "102@n3:9093")
    ran = kelr("quorum", "plan", "all", *voters, *rest)
    assert (ran.code, ran.err) == (0, "")
    head, _, steps = ran.out.partition("\n\n")
    assert "Adds    the voters' new addresses to its log" in head
    assert "Loss" not in head
    assert steps.splitlines() == [
        f"1. On the host of {tmp_path}/c: kelr quorum apply plan.json all",
        "2. Start every controller with its new listeners and"
        " controller.quorum.bootstrap.servers=n1:9093,n2:9093,n3:9093",
        "3. Restart every broker with controller.quorum.bootstrap.servers=n1:9093,n2:9093,n3:9093",
        "4. See that it leads and nothing is lost: kelr quorum verify PLAN OUT -b BROKER",
        "5. On each broker's host: kelr quorum verify PLAN OUT --node-dir PATH -b BROKER. If it finds -stray or"
        " -delete directories, stop that broker at once",
    ]
    for wrong, words in (
        (("--voter", "n1:9093"), "no voter"),
        ((*voters, "--node", "100"), "--voter takes the voters as they are"),
        ((), "nothing says which controller is to lead"),
    ):
        ran = kelr("quorum", "plan", "all", *wrong, "--kafka", "4.3.1", "--out", "other.json")
        assert ran.code == 2
        assert words in ran.err


@pytest.mark.parametrize("ids", ["x", "100,", "99999999999"])
def test_what_is_no_node_id_is_not_taken_for_a_statement(kelr: Kelr, ids: str) -> None:
    ran = kelr("quorum", "apply", "plan.json", "out.kelr-quorum", "--never-start", ids)
    assert ran.code == 2
    assert "no node id" in ran.err
