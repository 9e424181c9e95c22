"""``next:`` leads on: never to the command that was just run, never to another target or cluster, never past rescue."""

from __future__ import annotations

import itertools
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.lab.simulated import disks
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from tests.lab.simulated.data import batch, produce
from tests.lab.simulated.stories import ORDERS, cluster, eventually

TOPIC, AT = ORDERS.topic, str(ORDERS)
PLAN, SAVED, OF_DISK = "plan.json", "plan.kelr-rescue", "plan-from-1.kelr-rescue"
ABOUT_PARTITIONS = {"describe", "explain", "log-info", "elect", "whatif", "history", "doctor"}
LATER = {"recover collect", "recover plan", "rescue dump", "rescue replay", "recover clear-elr"}
TAKES_TARGETS = ABOUT_PARTITIONS | LATER
NOT_WALKED = {"explain", "history", "rescue replay", "recover clear-elr"}
"""Commands that lead nowhere here, or are looked at elsewhere."""

WALK: tuple[tuple[str, ...], ...] = (
    ("describe", AT),
    ("describe", TOPIC, "--summary"),
    ("describe", AT, "--check"),
    ("describe", AT, "-o", "json"),
    ("log-info", AT),
    ("log-info", AT, "--lineage", "-o", "json"),
    ("log-info", AT, "--log-dir", "disk"),
    ("doctor", AT),
    ("doctor", TOPIC, "--check", "-o", "json"),
    ("whatif", AT),
    ("whatif", AT, "--kill", "2"),
    ("whatif", AT, "--stop", "2", "-o", "json"),
    ("whatif", AT, "--restart", "2"),
    ("whatif", AT, "--any", "1"),
    ("whatif", AT, "--restart-order"),
    ("snapshot", "saved.kelr", AT),
    ("describe", AT, "--snapshot", "saved.kelr"),
    ("log-info", AT, "--snapshot", "saved.kelr"),
    ("metrics",),
    ("history", AT),
    ("report", "report.html", AT),
    ("watch", AT, "--for", "1s", "--until-healthy"),
    ("recover", "status"),
    ("recover", "resume"),
    ("recover", "undo"),
    ("recover", "collect", AT, "--out", "live.kelr"),
    ("recover", "collect", "--log-dir", "disk", "--out", "disk.kelr"),
    ("elect", "-e", "unclean", AT, "--dry-run"),
    ("elect", "-e", "unclean", AT, "-o", "json"),
    ("elect", "-e", "longest_log_balanced", AT, "--timeout", "1"),
    ("elect", "-e", "preferred", AT),
    ("recover", "clear-elr", TOPIC, "--dry-run"),
    ("recover", "clear-elr", TOPIC, "--force", "broker 1 is broken"),
    ("recover", "plan", AT, "-e", "designation", "--designate", "3"),
    ("recover", "plan", AT, "-e", "designation", "--designate", "3", "--out", PLAN),
    ("recover", "status", PLAN),
    ("recover", "verify", PLAN),
    ("recover", "apply", PLAN, "--dry-run"),
    ("recover", "apply", PLAN, "-o", "json"),
    ("rescue", "dump", "--plan", PLAN, "--out", SAVED),
    ("rescue", "dump", "--plan", PLAN, "--from-replica", "1", "--log-dir", "disk", "--out", OF_DISK),
    ("recover", "verify", PLAN),
    ("recover", "apply", PLAN),
    ("recover", "apply", PLAN, "--yes", "--accept-loss", "100+"),
    ("recover", "verify", PLAN),
    ("recover", "verify", PLAN, "-o", "json"),
    ("recover", "status", PLAN),
    ("recover", "apply", PLAN, "--yes"),
    ("recover", "undo", PLAN),
    ("rescue", "replay", SAVED, "--dry-run"),
    ("rescue", "replay", SAVED, "--yes"),
    ("describe", "no-such-topic"),
    ("recover", "resume", "no-such-journal"),
)


@pytest.fixture(name="server")
def _server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedServer]:
    """Brokers 2 and 3 are live with 16 and 10 records, 1 is dead with 20 on its disk; nobody leads."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with cluster("elr-4.3", clock=MachineClock()) as server:
        produce(server.ports[1], TOPIC, batch(0, 10))
        server.inside(lambda world: (world.running.kill(3), world.running.expire(3)))
        produce(server.ports[1], TOPIC, batch(10, 6))
        server.inside(lambda world: (world.running.kill(2), world.running.expire(2)))
        produce(server.ports[1], TOPIC, batch(16, 4), acks=1)
        server.inside(lambda world: disks.write(world, 1, tmp_path / "disk"))
        server.inside(lambda world: (world.running.kill(1), world.running.expire(1)))
        server.inside(lambda world: [world.running.start(broker) for broker in (2, 3)])
        eventually(server, lambda world: not (world.brokers[2].fenced or world.brokers[3].fenced))
        yield server


def next_commands(out: str, err: str) -> list[list[str]]:
    """Commands that `next:` names, on stderr and in a document, or that come first on a screen; sentences are none."""
    texts = [line.strip().removeprefix("next: ") for line in err.splitlines() if line.strip().startswith("next: ")]
    texts += first_of_screen(out)
    if out.startswith("{"):
        texts += [text for text in [json.loads(out).get("next")] if text]
    return [shlex.split(text) for text in texts if text.startswith("kelr ")]


def first_of_screen(out: str) -> list[str]:
    """The command of the first of the steps below ``Do``, or the one behind ``Next``."""
    lines = out.splitlines()
    begins = next((at for at, line in enumerate(lines) if line.startswith(("Do  ", "Next  "))), len(lines))
    steps = itertools.takewhile(bool, lines[begins:])
    return [f"kelr {line.partition('kelr ')[2]}" for line in steps if "kelr " in line][:1]


def name_of(words: Sequence[str]) -> str:
    return " ".join(words[:2]) if words[0] in {"recover", "rescue"} else words[0]


def meant(words: Sequence[str]) -> frozenset[str]:
    """What a command line asks for, in whichever order."""
    spelt = {"-e": "--election-type"}
    return frozenset(spelt.get(word, word) for word in words)


def test_next_leads_on(server: SimulatedServer, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("-b", server.bootstrap_servers)
    found: dict[str, list[list[str]]] = {}
    with open(os.devnull, encoding="utf-8") as nothing, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", nothing)
        for words in WALK:
            flags = () if "--snapshot" in words else where
            capsys.readouterr()
            main([*words, *flags])
            captured = capsys.readouterr()
            assert "internal error" not in captured.err
            for following in next_commands(captured.out, captured.err):
                found.setdefault(" ".join(words), []).append(following[1:])
                check(words, flags, following[1:])
    assert {name_of(shlex.split(line)) for line in found} >= TAKES_TARGETS - NOT_WALKED
    dump, apply = ("rescue", "dump"), ("recover", "apply")
    with_losses = f"recover plan {AT} -e designation --designate 3 --out {PLAN}"
    assert [tuple(one[:2]) for one in found[with_losses]] == [dump]
    assert {tuple(one[:2]) for one in found[f"recover apply {PLAN} --dry-run"]} == {dump}
    assert {tuple(one[:2]) for one in found[f"recover apply {PLAN} -o json"]} == {dump}
    # Nobody has read the disk of broker 1, which is down: it is saved, too, before the plan is carried out.
    of_disk = f"rescue dump --plan {PLAN} --from-replica 1 --log-dir {{}} --out {OF_DISK}".format
    first = found[f"rescue dump --plan {PLAN} --out {SAVED}"]
    assert [shlex.join(one[:-2]) for one in first] == [of_disk("DIRECTORY")]
    assert [tuple(one[:2]) for one in found[of_disk("disk")]] == [apply]
    assert {tuple(one[:2]) for one in found[f"recover apply {PLAN}"]} == {apply}
    assert [tuple(one[:2]) for one in found[f"recover apply {PLAN} --yes --accept-loss 100+"]] == [
        ("recover", "verify")
    ]
    assert {tuple(one[:2]) for one in found[f"recover verify {PLAN} -o json"]} == {("rescue", "replay")}


def check(words: Sequence[str], flags: Sequence[str], following: Sequence[str]) -> None:
    """One `next:` against the command that printed it."""
    told = f"kelr {shlex.join(words)} leads to kelr {shlex.join(following)}"
    assert meant(following) != meant((*words, *flags)), f"the same again: {told}"
    if "--snapshot" in following:
        assert "-b" not in following, told
    elif "--snapshot" not in words:
        assert tuple(following[-2:]) == tuple(flags) or "--timeout" in following, f"another cluster: {told}"
    targets = [word for word in words if word.partition(":")[0] == TOPIC]
    # A snapshot of the target alone is asked whole.
    if targets and name_of(following) in TAKES_TARGETS and words[0] != "snapshot" and "--plan" not in following:
        assert any(word.partition(":")[0] == TOPIC for word in following), f"another target: {told}"
        if words[0] in ABOUT_PARTITIONS and AT in words:
            assert AT in following, f"a wider target: {told}"
