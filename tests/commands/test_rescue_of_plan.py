"""The commands that save what a plan gives up: one for each host, and none for what was saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kelr.commands.recovering import (
    NOTHING,
    NOWHERE,
    Disks,
    Saved,
    all_rescued,
    rescue_commands,
    rescued_in,
    saved_before,
)
from kelr.model import RescueStep
from kelr.model.plan import Plan
from kelr.rescue.dump import TailSource
from tests.rescue.batches import batch
from tests.rescue.files import save, tail
from tests.view.plans import PREFERRED, plan


def a_plan(*steps: RescueStep) -> Plan:
    return plan(replace(PREFERRED, rescue=steps))


def test_one_command_saves_from_all_disks_of_one_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    disks = [RescueStep(replica, 9, 12, reachable=False) for replica in (1, 4, 5, 6)]
    path, made = Path("p.json"), a_plan(RescueStep(2, 5, 9, reachable=True), *disks)

    def commands(where: Disks, saved: Saved = NOTHING) -> list[str]:
        dump = "rescue dump --plan p.json "
        return [" ".join(one.words).removeprefix(dump) for one in rescue_commands(made, path, where, saved)]

    alone = [f"--from-replica {one} --log-dir DIRECTORY --out p-from-{one}.kelr-rescue" for one in (1, 4, 5, 6)]
    assert commands(NOWHERE) == ["--out p.kelr-rescue", *alone]
    hosts = Disks(hosts={1: "kafka-1", 4: "kafka-2", 5: "kafka-1", 6: "kafka-2"})
    of_host = [
        "--from-replica 1 --from-replica 5 --log-dir DIRECTORY --out p-from-1-5.kelr-rescue",
        "--from-replica 4 --from-replica 6 --log-dir DIRECTORY --out p-from-4-6.kelr-rescue",
    ]
    assert commands(hosts) == ["--out p.kelr-rescue", *of_host]
    # Of this machine: with what brokers answer for.
    local = Disks(hosts=dict.fromkeys((1, 4, 5, 6), "127.0.0.1"))
    assert commands(local) == ["--log-dir DIRECTORY --out p.kelr-rescue"]
    assert commands(replace(local, here={1: ["/a", "/b"], 4: ["/c"], 5: ["/d"], 6: ["/e"]})) == [
        "--log-dir /a --log-dir /b --log-dir /c --log-dir /d --log-dir /e --out p.kelr-rescue"
    ]
    assert commands(replace(hosts, here={1: ["/a", "/b"], 5: ["/d"]})) == [
        "--log-dir /a --log-dir /b --log-dir /d --out p.kelr-rescue",
        of_host[1],
    ]
    assert commands(hosts, Saved(answered=True, disks=frozenset({1, 5}))) == [of_host[1]]
    assert commands(local, Saved(answered=True, disks=frozenset({1, 5}))) == [of_host[1]]


def test_which_disks_were_saved_is_told_by_the_files_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that was read may have had nothing to save; one that is in a file's name may not have been there."""
    monkeypatch.chdir(tmp_path)
    made = a_plan(RescueStep(2, 5, 9, reachable=True), RescueStep(1, 9, 12, reachable=False))
    assert saved_before(made, Path("p.json")) == NOTHING
    pieces = [batch(8, 2)]
    of_disks = [tail(pieces, 8, 10, replica=1), tail(pieces, 10, 10, replica=4)]
    read = [(wanted, TailSource("log directory", lambda _start, _end: pieces)) for wanted, _ in of_disks]
    save(Path("p.kelr-rescue"), [*read, tail([batch(10, 2)], 10, 12, replica=9)])
    save(Path("p-from-5-6.kelr-rescue"), [(tail(pieces, 8, 10, replica=5)[0], read[0][1])])
    for other in ("p-from-7.txt", "q-from-7.kelr-rescue", "p-lost-to-7.kelr-rescue", "p2-from-7.kelr-rescue"):
        Path(other).touch()
    assert saved_before(made, Path("p.json")) == Saved(answered=True, disks=frozenset({1, 4, 5}))
    assert [one.name for one in rescued_in(Path("p.json"))] == ["p.kelr-rescue", "p-from-5-6.kelr-rescue"]
    assert all_rescued(made, Path("p.json"))
    assert not all_rescued(a_plan(RescueStep(7, 5, 9, reachable=False)), Path("p.json"))
