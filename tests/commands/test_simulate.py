"""``kelr simulate``: what it prints, what it compares and writes, and what it says of scenarios that cannot be run."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands.conftest import Kelr

SCENARIO = """\
# One broker of two goes.
cluster rules=elr-4.3 brokers=1,2 min-isr=2
topic orders replicas=1,2
----
orders:0 leader=1 epoch=0 isr=1,2 elr=- last=-

# The other one leads on.
fence 1
decide rules=kraft
----
orders:0 leader=2 by=isr epoch=1 isr=2 elr=1 last=-
orders:0 under-min-isr min-isr=2
  by itself: 2 by leader-stays
  preferred: 2 by leader-stays
  unclean: not needed, 2 leads
  designation: not needed, 2 leads
  balanced: not needed, 2 leads
  aggressive: not needed, 2 leads
  advice: restore-replication
"""

TOLD = """\
# One broker of two goes.
> cluster rules=elr-4.3 brokers=1,2 min-isr=2
> topic orders replicas=1,2
  orders:0 leader=1 epoch=0 isr=1,2 elr=- last=-
  = orders:0 healthy: advice: nothing

# The other one leads on.
> fence 1
  orders:0 leader=2 by=isr epoch=1 isr=2 elr=1 last=-
  = orders:0 under-min-isr: advice: restore-replication
> decide rules=kraft
  orders:0 under-min-isr min-isr=2
    by itself: 2 by leader-stays
    preferred: 2 by leader-stays
    unclean: not needed, 2 leads
    designation: not needed, 2 leads
    balanced: not needed, 2 leads
    aggressive: not needed, 2 leads
    advice: restore-replication
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("two-brokers.txt")
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_tells_the_story_with_each_state_and_decision(kelr: Kelr, scenario: Path) -> None:
    ran = kelr("simulate", str(scenario))
    assert (ran.code, ran.out, ran.err) == (0, TOLD, "")


def test_the_decision_is_said_again_only_when_it_changes(kelr: Kelr, tmp_path: Path) -> None:
    path = tmp_path / "logs.txt"
    path.write_text("cluster brokers=1,2\ntopic a replicas=1,2\nproduce 2\nreplicate\ncrash 1\n", encoding="utf-8")
    lines = kelr("simulate", str(path)).out.splitlines()
    assert lines.count("  = a:0 healthy: advice: nothing") == 1
    assert lines[-2:] == ["  nothing is lost", "  = a:0 healthy: advice: wait 1"]


WORKED_EXAMPLES = {
    "kip-903-notable-exception",
    "kip-903-race",
    "kip-903-timeline",
    "kip-966-delivery-plan",
    "kip-966-four-brokers-min-isr-3",
    "kip-966-maximal-isr",
    "kip-966-motivation",
    "kip-966-rejected-replies",
    "vanlightly-5.2.1-cases-a-to-g",
    "vanlightly-5.2.2",
    "vanlightly-5.3.3",
}
"""Those of the requirement documents, by their own names for them."""
REJECTED = {
    # What the rejected idea loses at its worst moment; 0: it costs something else.
    "kip-903-rejected-epoch-from-metadata": 10,
    "kip-903-rejected-leader-epoch-bump": 0,
    "kip-903-rejected-smart-election": 7,
    "kip-966-rejected-log-inspection": 6,
    "kip-966-rejected-number-of-replies": 4,
    "kip-966-rejected-shadow-isr": 7,
    "kip-966-rejected-soft-min-isr": 0,
}


def test_scenarios_that_come_with_kelr(kelr: Kelr) -> None:
    listed = json.loads(kelr("simulate", "--list", "-o", "json").out)["items"]
    assert [item["name"] for item in listed] == sorted(WORKED_EXAMPLES | REJECTED.keys())
    assert all(item["about"].endswith(".") for item in listed)
    for item in listed:
        assert kelr("simulate", item["name"], "--check").code == 0


@pytest.mark.parametrize(("name", "lost"), REJECTED.items())
def test_a_rejected_alternative_shows_why(kelr: Kelr, name: str, lost: int) -> None:
    """And the rules that were chosen lose nothing of the same, where the scenario plays them."""
    counts = [int(count) for count in re.findall(r" lost=(\d+) ", kelr("simulate", name).out)]
    assert max(counts, default=0) == lost
    assert (
        not counts
        or counts[-1] == 0
        or name
        in {
            "kip-903-rejected-epoch-from-metadata",
            "kip-966-rejected-number-of-replies",
        }
    )


def test_a_proposal_by_metadata_is_all_that_can_be_said_of_broker_epochs(kelr: Kelr, tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text("# Wrong.\ncluster brokers=1,2\ntopic a replicas=1,2\npropose 1 epochs=old\n", encoding="utf-8")
    ran = kelr("simulate", str(path))
    assert (ran.code, "epochs= says whose broker epochs are sent" in ran.err) == (2, True)


def shown(kelr: Kelr, name: str, prefix: tuple[str, ...]) -> list[str]:
    """The states that a scenario shows, without the spaces that the texts set now so, now so."""
    lines = kelr("simulate", name).out.splitlines()
    return [line.replace(" ", "") for line in lines if line.strip().startswith(prefix)]


def test_the_states_of_vanlightly_5_2_2(kelr: Kelr) -> None:
    assert shown(kelr, "vanlightly-5.2.2", ("Leader=",)) == [
        "Leader=1,ISR=[1,2,3],ELR=[]",
        "Leader=1,ISR=[1,3],ELR=[]",
        "Leader=1,ISR=[1],ELR=[3]",
        "Leader=3,ISR=[3],ELR=[]",
        "Leader=3,ISR=[1,3],ELR=[]",
    ]


def test_the_states_of_vanlightly_5_3_3(kelr: Kelr) -> None:
    states = shown(kelr, "vanlightly-5.3.3", ("Leader=", "Replica "))
    assert states[:4] == [
        "Leader=1,ISR=[1,2,3],ELR=[],LastKnownELR=[]",
        "Replica1:LEO=15,HWM=10",
        "Replica2:LEO=12,HWM=8",
        "Replica3:LEO=10,HWM=8",
    ]
    assert states[4:10] == [
        "Leader=2,ISR=[2,3],ELR=[],LastKnownELR=[]",
        "Leader=3,ISR=[3],ELR=[2],LastKnownELR=[]",
        "Leader=NoLeader,ISR=[],ELR=[2,3],LastKnownELR=[]",
        "Leader=NoLeader,ISR=[],ELR=[2,3],LastKnownELR=[]",
        "Leader=NoLeader,ISR=[],ELR=[3],LastKnownELR=[2]",
        "Leader=NoLeader,ISR=[],ELR=[],LastKnownELR=[2,3]",
    ]
    assert states[10] == "Leader=2,ISR=[2],ELR=[],LastKnownELR=[3]"
    assert "committed=10 lost=0 gone=0" in kelr("simulate", "vanlightly-5.3.3").out.splitlines()[-1]


def test_the_states_of_the_motivation(kelr: Kelr) -> None:
    assert shown(kelr, "kip-966-motivation", ("Leader=",)) == [
        "Leader=0,ISR=[0,1,2]",
        "Leader=1,ISR=[1,2]",
        "Leader=2,ISR=[2]",
        "Leader=NoLeader,ISR=[2]",
        "Leader=NoLeader,ISR=[2]",
        "Leader=2,ISR=[2]",
        "Leader=0,ISR=[0,1,2],ELR=[]",
        "Leader=1,ISR=[1,2],ELR=[]",
        "Leader=2,ISR=[2],ELR=[1]",
        "Leader=NoLeader,ISR=[],ELR=[1,2]",
        "Leader=1,ISR=[1],ELR=[2]",
        "Leader=1,ISR=[1],ELR=[]",
    ]
    lost = re.findall(r"committed=(\d+) lost=(\S+) gone=(\d+)", kelr("simulate", "kip-966-motivation").out)
    assert lost == [("15", "0", "0"), ("15", "-", "0"), ("15", "4", "4"), ("15", "0", "0"), ("15", "0", "0")]


def test_documents_hold_states_decisions_and_logs(kelr: Kelr) -> None:
    items = json.loads(kelr("simulate", "vanlightly-5.3.3", "-o", "json").out)["items"]
    elected = next(item for item in items if item["directive"] == "answer 2")
    (partition,) = elected["partitions"]
    assert (partition["leader"], partition["isr"], partition["situation"]) == (2, [2], "under-min-isr")
    assert (partition["committed"], partition["lost"], partition["gone"]) == (10, 0, 0)
    assert partition["logs"][0] == {
        "replica": 1,
        "log_start": 0,
        "log_end": 8,
        "high_watermark": 8,
        "last_epoch": 0,
        "flushed": 0,
    }


def test_several_scenarios_and_stdin(kelr: Kelr, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"cluster brokers=7\nfence 7\n")))
    items = [json.loads(line) for line in kelr("simulate", str(scenario), "-", "-o", "ndjson").out.splitlines()]
    assert [(item["scenario"], item["line"]) for item in items][-3:] == [("two-brokers.txt", 9), ("-", 1), ("-", 2)]


def test_check_is_content_with_what_is_expected(kelr: Kelr, scenario: Path) -> None:
    ran = kelr("simulate", str(scenario), "--check")
    assert (ran.code, ran.out, ran.err) == (0, "", "1 of 1 print what they expect\n")


def test_check_shows_what_differs(kelr: Kelr, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("isr=2 elr=1", "isr=2 elr=-"), encoding="utf-8")
    ran = kelr("simulate", str(scenario), "vanlightly-5.2.2", "--check")
    assert (ran.code, ran.err) == (1, "1 of 2 print what they expect\n")
    assert "-orders:0 leader=2 by=isr epoch=1 isr=2 elr=- last=-" in ran.out.splitlines()
    assert "+orders:0 leader=2 by=isr epoch=1 isr=2 elr=1 last=-" in ran.out.splitlines()


def test_check_in_a_document(kelr: Kelr, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("isr=2 elr=1", "isr=2 elr=-"), encoding="utf-8")
    ran = kelr("simulate", str(scenario), "vanlightly-5.2.2", "--check", "-o", "json")
    differing, same = json.loads(ran.out)["items"]
    assert (ran.code, differing["scenario"], differing["same"]) == (1, "two-brokers.txt", False)
    assert "+orders:0 leader=2 by=isr epoch=1 isr=2 elr=1 last=-" in differing["difference"]
    assert same == {"scenario": "vanlightly-5.2.2", "same": True, "difference": []}


def test_rewrite_writes_what_is_printed(kelr: Kelr, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("isr=2 elr=1", "nonsense"), encoding="utf-8")
    scenario.chmod(0o640)
    assert kelr("simulate", str(scenario), "--rewrite").err == "two-brokers.txt: rewritten\n"
    assert scenario.read_text(encoding="utf-8") == SCENARIO
    assert scenario.stat().st_mode & 0o777 == 0o640
    assert kelr("simulate", str(scenario), "--rewrite").err == "two-brokers.txt: nothing changes\n"
    assert [path.name for path in Path().iterdir()] == ["two-brokers.txt"]


def test_a_read_only_file_stays_as_it_is(kelr: Kelr, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = SCENARIO.replace("isr=2 elr=1", "nonsense")
    scenario.write_text(wrong, encoding="utf-8")
    scenario.chmod(0o440)
    # The root user may write it all the same; this is what everybody else is told.
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK and Path(path).stat().st_mode == 0o100440))
    ran = kelr("simulate", str(scenario), "--rewrite")
    assert (ran.code, ran.err) == (
        2,
        "error: two-brokers.txt cannot be written: Permission denied\n  fix: the file is as it was\n",
    )
    assert scenario.read_text(encoding="utf-8") == wrong
    assert [path.name for path in Path().iterdir()] == ["two-brokers.txt"]


def test_nothing_is_written_where_one_of_them_cannot_be_run(kelr: Kelr, scenario: Path) -> None:
    wrong = SCENARIO.replace("isr=2 elr=1", "nonsense")
    scenario.write_text(wrong, encoding="utf-8")
    Path("broken.txt").write_text("cluster brokers=1\nexplode\n", encoding="utf-8")
    ran = kelr("simulate", str(scenario), "broken.txt", "--rewrite")
    assert ran.code == 2
    assert scenario.read_text(encoding="utf-8") == wrong


@pytest.mark.parametrize("name", ["-", "vanlightly-5.2.2"])
def test_only_files_are_rewritten(kelr: Kelr, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    ran = kelr("simulate", name, "--rewrite")
    assert ran.code == 2
    assert f"{name} is none" in ran.err


def test_an_error_says_file_line_and_what_to_do(kelr: Kelr, scenario: Path) -> None:
    scenario.write_text("cluster brokers=1\n\n# Then:\nexplode 1\n", encoding="utf-8")
    ran = kelr("simulate", str(scenario))
    assert ran.code == 2
    assert ran.out == "> cluster brokers=1\n"
    assert ran.err.startswith(
        "error: two-brokers.txt, line 4: there is no directive 'explode' [scenario-garbled]\n  fix: there are "
    )


def test_a_document_of_a_scenario_that_fails_is_not_complete(kelr: Kelr, scenario: Path) -> None:
    scenario.write_text("cluster brokers=1\nexplode\n", encoding="utf-8")
    document = json.loads(kelr("simulate", str(scenario), "-o", "json").out)
    assert (len(document["items"]), document["complete"]) == (1, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no scenario was named"),
        (("nope",), "there is no scenario nope"),
        (("nope", "--check"), "there is no scenario nope"),
        ((".",), ". cannot be read: Is a directory"),
        (("x.txt", "--check", "--rewrite"), "--list, --step, --check and --rewrite exclude each other"),
        (("--list", "--check"), "--list, --step, --check and --rewrite exclude each other"),
        (("--list", "vanlightly-5.2.2"), "--list lists all scenarios"),
        (("vanlightly-5.2.2", "--step"), "--step waits for Enter, and there is no terminal"),
    ],
)
def test_wrong_usage(kelr: Kelr, arguments: tuple[str, ...], message: str) -> None:
    ran = kelr("simulate", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "\n  fix: " in ran.err


@pytest.mark.parametrize("text", ["", "\n\n", "# A story without events.\n"])
@pytest.mark.parametrize("options", [(), ("--check",), ("--rewrite",)])
def test_a_file_without_a_directive_is_no_scenario(
    kelr: Kelr, scenario: Path, text: str, options: tuple[str, ...]
) -> None:
    scenario.write_text(text, encoding="utf-8")
    ran = kelr("simulate", str(scenario), *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: two-brokers.txt holds no directive\n  fix: ")
    assert scenario.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"cluster brokers=1\n\xff\xfe\n", "line 2: this is not UTF-8 text, so no scenario"),
        (b"\x00" * 100, "line 1: there is no directive"),
        (b"# " + b"x" * 4_000_000, "too large to be a scenario: more than 4000000 bytes"),
        (b"#" * 1_500_000, "line 1: the scenario has 1500000 characters; the most are 1000000"),
        (b"cluster brokers=1\n" + b"\n".join(b"state" for _ in range(9_000)), "no more than 5000 directives"),
        (b"x" * 500_000, "line 1: there is no directive"),
    ],
)
def test_hostile_files(kelr: Kelr, scenario: Path, data: bytes, message: str) -> None:
    scenario.write_bytes(data)
    ran = kelr("simulate", str(scenario))
    assert ran.code == 2
    assert message in ran.err
    assert "\n  fix: " in ran.err
    assert len(ran.err) < 1_000


def test_control_characters_reach_no_terminal(kelr: Kelr, scenario: Path) -> None:
    scenario.write_text("# \x1b[2Jgone\ncluster brokers=1\n", encoding="utf-8")
    ran = kelr("simulate", str(scenario))
    assert "\x1b" not in ran.out
    assert "\\x1b[2Jgone" in ran.out


def test_the_largest_scenario_ends_in_time(kelr: Kelr, scenario: Path) -> None:
    text = "cluster brokers=1,2,3 min-isr=2\ntopic a replicas=1,2,3\nproduce 19000\nreplicate\n" + "replicate\n" * 300
    scenario.write_text(text, encoding="utf-8")
    started = time.monotonic()
    assert kelr("simulate", str(scenario), "-o", "ndjson").code == 0
    assert time.monotonic() - started < 60


def read_until(terminal: int, ending: bytes, deadline_s: float = 30) -> bytes:
    """What the terminal shows, up to where it shows this."""
    data, until = b"", time.monotonic() + deadline_s
    while not data.endswith(ending):
        ready, _, _ = select.select([terminal], [], [], max(until - time.monotonic(), 0))
        assert ready, data
        data += os.read(terminal, 4096)
    return data


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(b"q\n", 0, id="q"),
        pytest.param(b"\x04", 130, id="the end of the input, as Ctrl-D gives it"),
    ],
)
def test_steps_wait_for_enter_on_a_terminal(scenario: Path, answer: bytes, code: int) -> None:
    terminal, inside = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "kelr", "simulate", str(scenario), "--step"],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(inside)
        prompt = b"-- Enter goes on, q and Enter leaves --"
        first = read_until(terminal, prompt)
        assert b"cluster rules=elr-4.3" in first
        assert b"topic orders" not in first
        os.write(terminal, b"\n")
        assert b"topic orders" in read_until(terminal, prompt)
        os.write(terminal, answer)
        try:
            assert process.wait(timeout=30) == code
        finally:
            process.kill()
    os.close(terminal)
