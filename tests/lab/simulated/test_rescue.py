"""What an election would cut off, saved from a simulated cluster and produced again there: kelr's own commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.lab.simulated import disks
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from kelr.lab.simulated.world import World
from kelr.rescue.archive import open_dump
from tests.lab.simulated.data import batch, fetch, produce
from tests.lab.simulated.stories import ORDERS, cluster, eventually
from tests.lab.simulated.test_contents import records_of
from tests.lab.simulated.test_next import first_of_screen

TOPIC = ORDERS.topic


@pytest.fixture(name="server")
def _server() -> Iterator[SimulatedServer]:
    """Broker 3 has 10 records, broker 2 has 16, broker 1 is dead with 20; nobody leads."""
    with cluster("elr-4.3", clock=MachineClock()) as server:
        produce(server.ports[1], TOPIC, batch(0, 10))
        dies(server, 3)
        produce(server.ports[1], TOPIC, batch(10, 6))
        dies(server, 2)
        produce(server.ports[1], TOPIC, batch(16, 4), acks=1)
        dies(server, 1)
        server.inside(lambda world: [world.running.start(broker) for broker in (2, 3)])
        eventually(server, lambda world: not (world.brokers[2].fenced or world.brokers[3].fenced))
        yield server


def dies(server: SimulatedServer, broker: int) -> None:
    server.inside(lambda world: (world.running.kill(broker), world.running.expire(broker)))


def keys(server: SimulatedServer, broker: int) -> list[bytes | None]:
    return [record.key for record in records_of(fetch(server.ports[broker], TOPIC, 0).records)]


def numbered(*numbers: int) -> list[bytes]:
    return [f"k{number}".encode() for number in numbers]


def kelr(server: SimulatedServer, *arguments: str) -> int:
    return main([*arguments, "-b", server.bootstrap_servers])


@pytest.mark.parametrize("from_disk", [False, True])
def test_what_a_shorter_replica_cuts_off_comes_back(
    server: SimulatedServer, tmp_path: Path, *, from_disk: bool
) -> None:
    saved, disk = str(tmp_path / "saved.kelr-rescue"), tmp_path / "disk"
    from_where = []
    if from_disk:
        server.inside(lambda world: disks.write(world, 1, disk))
        from_where = ["--log-dir", str(disk)]
    dump = kelr(server, "rescue", "dump", f"{TOPIC}:0", "--elect", "3", "--out", saved, *from_where)
    assert dump == (0 if from_disk else 7)  # the ELR may hold more than broker 2
    elect = ("elect", "--election-type", "designation", "--designate", "3", f"{TOPIC}:0", "--yes")
    assert kelr(server, *elect, "--accept-loss", "6+") == 0
    eventually(server, led_by_3_and_followed)
    assert keys(server, 3) == numbered(*range(10))
    assert kelr(server, "rescue", "replay", saved, "--yes") == 0
    assert keys(server, 3) == numbered(*range(20 if from_disk else 16))


def led_by_3_and_followed(world: World) -> bool:
    state = world.state(ORDERS)
    return state is not None and state.leader == 3 and set(state.isr) == {2, 3}


def test_the_disk_of_a_dead_broker_counts_in_a_decision(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk, collected = tmp_path / "disk", str(tmp_path / "broker-1.kelr")
    server.inside(lambda world: disks.write(world, 1, disk))
    assert main(["recover", "collect", "--log-dir", str(disk), "--out", collected]) == 0
    capsys.readouterr()
    assert kelr(server, "explain", f"{TOPIC}:0", "--logs", collected, "-o", "json") == 0
    (found,) = json.loads(capsys.readouterr().out)["items"]
    known = {one["replica"]: (one["log_end"], one["behind_best"], one["source"]) for one in found["candidates"]}
    by_broker = "GetReplicaLogInfo v0 (key 70)+Fetch"
    assert known == {1: (20, 0, "log directory"), 2: (16, 4, by_broker), 3: (10, 10, by_broker)}


def test_each_step_leads_to_the_next_and_none_to_a_replay_before_somebody_leads(
    server: SimulatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = f"-b {server.bootstrap_servers}"
    plan = ("recover", "plan", f"{TOPIC}:0", "-e", "designation", "--designate", "3", "--out", "plan.json")
    disk = tmp_path / "disk"
    server.inside(lambda world: disks.write(world, 1, disk))
    followed = [next_of(server, capsys, *plan)]
    # Brokers 1 and 2 are on one host. Whoever leaves the disk out is led to it.
    first = f"kelr rescue dump --plan plan.json --log-dir DIRECTORY --out plan.kelr-rescue {flags}"
    assert followed == [first]
    followed.append(next_of(server, capsys, *words(first.replace("--log-dir DIRECTORY ", ""), flags), code=7))
    # Verify before the elections does not lead past that disk in silence.
    assert kelr(server, "recover", "verify", "plan.json") == 1
    out, err = capsys.readouterr()
    assert f"kelr recover apply plan.json {flags}" in " ".join(out.split())
    assert f"rescue, too: {followed[1]}" in " ".join(err.split())
    for _ in range(4):
        command = words(followed[-1].replace("DIRECTORY", str(disk)), flags)
        if command[:2] == ["recover", "apply"]:
            eventually(server, lambda world: not world.brokers[2].fenced)
            command += ["--yes", "--accept-loss", "6+"]
        followed.append(next_of(server, capsys, *command))
    assert followed[1:] == [
        # The disk of broker 1, which is down and whose log nobody has read, may hold more.
        f"kelr rescue dump --plan plan.json --from-replica 1 --log-dir DIRECTORY --out plan-from-1.kelr-rescue {flags}",
        f"kelr recover apply plan.json {flags}",
        f"kelr recover verify plan.json --wait {flags}",
        f"kelr rescue replay plan.kelr-rescue --dry-run {flags}",
        f"kelr rescue replay plan.kelr-rescue {flags}",
    ]
    left = f"kelr rescue replay plan-from-1.kelr-rescue --dry-run {flags}"
    assert next_of(server, capsys, "rescue", "replay", "plan.kelr-rescue", "--yes") == left
    assert keys(server, 3) == numbered(*range(16))
    assert next_of(server, capsys, "recover", "verify", "plan.json") == left
    last = next_of(server, capsys, "rescue", "replay", "plan-from-1.kelr-rescue", "--yes")
    assert last == f"kelr explain {TOPIC}:0 {flags}"
    assert keys(server, 3) == numbered(*range(20))
    # All of it is produced again: nothing leads there any more.
    assert kelr(server, "recover", "verify", "plan.json") == 0
    assert "next:" not in capsys.readouterr().err


def words(command: str, flags: str) -> list[str]:
    return command.removeprefix("kelr ").removesuffix(flags).split()


def test_one_dump_reads_all_directories_of_a_host(
    server: SimulatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 1 has its log of partition 0 in one directory, and another directory besides."""
    monkeypatch.chdir(tmp_path)
    flags = f"-b {server.bootstrap_servers}"
    plan = ("recover", "plan", f"{TOPIC}:0", "-e", "designation", "--designate", "3", "--out", "plan.json")
    first, second = tmp_path / "first", tmp_path / "second"
    server.inside(lambda world: disks.write(world, 1, first))
    second.mkdir()
    (second / "meta.properties").write_bytes((first / "meta.properties").read_bytes())
    assert kelr(server, *plan) == 0
    told = capsys.readouterr().out
    (dump,) = first_of_screen(told)
    assert dump == f"kelr rescue dump --plan plan.json --log-dir DIRECTORY --out plan.kelr-rescue {flags}"
    # Without the disk there is still something to save before the elections.
    assert "(without --log-dir where no disk can be read):" in " ".join(told.split())
    both = dump.replace("--log-dir DIRECTORY", f"--log-dir {first} --log-dir {second}")
    assert next_of(server, capsys, *words(both, flags)) == f"kelr recover apply plan.json {flags}"
    with open_dump(tmp_path / "plan.kelr-rescue") as saved:
        found = {(one.replica, one.how, one.from_offset, one.to_offset) for one in saved.manifest.tails}
    assert found == {(1, "log directory", 10, 20)}
    # All is saved: nobody is told to save anything before the elections.
    assert kelr(server, "recover", "apply", "plan.json", "--dry-run") == 6
    assert "kelr rescue" not in "".join(capsys.readouterr())


def test_nobody_is_sent_to_elect_where_somebody_leads(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elect = ("elect", "--election-type", "designation", "--designate", "3", f"{TOPIC}:0", "--yes")
    assert kelr(server, *elect, "--accept-loss", "6+") == 0
    eventually(server, led_by_3_and_followed)
    capsys.readouterr()
    server.inside(lambda world: disks.write(world, 1, tmp_path / "disk"))
    dump = ("rescue", "dump", f"{TOPIC}:0", "--elect", "2", "--out", str(tmp_path / "saved.kelr-rescue"))
    assert kelr(server, *dump) == 7
    assert "next:" not in capsys.readouterr().err
    dump = (*dump, "--overwrite", "--log-dir", str(tmp_path / "disk"))
    assert next_of(server, capsys, *dump) == f"kelr explain {TOPIC}:0 -b {server.bootstrap_servers}"


@pytest.mark.parametrize("wanted", [("--plan", "plan.json"), (f"{TOPIC}:0", "--elect", "3")])
def test_what_was_saved_is_known_when_somebody_asks_what_was_lost(
    server: SimulatedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wanted: tuple[str, ...],
) -> None:
    """Broker 1 holds four records alone, and its disk is read for a rescue file of whatever name, for the plan or in
    the state that its election comes out of."""
    monkeypatch.chdir(tmp_path)
    disk, elsewhere = tmp_path / "disk", tmp_path / "elsewhere"
    elsewhere.mkdir()
    server.inside(lambda world: disks.write(world, 1, disk))
    designation = ("-e", "designation", "--designate", "3")
    assert kelr(server, "recover", "plan", f"{TOPIC}:0", *designation, "--out", "plan.json") == 0
    saved = elsewhere / "mine.kelr-rescue"
    dump = ("rescue", "dump", *wanted, "--from-replica", "1", "--log-dir", str(disk), "--out", str(saved))
    apply = ("recover", "apply", "plan.json", "--yes", "--accept-loss", "6+")
    assert kelr(server, *dump) == 0
    assert kelr(server, *apply) == 0
    eventually(server, led_by_3_and_followed)

    def lost(*command: str) -> dict[str, object]:
        capsys.readouterr()
        kelr(server, *command, "-o", "json")
        document = json.loads(capsys.readouterr().out)
        return dict(document["lost"] if "lost" in document else document["items"][0]["lost"])

    for number, command in enumerate((("recover", "verify"), ("recover", "status"), ("report",))):
        asked = (*command, "plan.json") if command != ("report",) else ("report", f"a{number}.md")
        told = lost(*asked)
        assert (told["total"], told["saved"], told["files"]) == ([10, None], 10, ["elsewhere/mine.kelr-rescue"]), (
            command
        )
        assert (told["unread"], told["truncated"], told["read_for_files"]) == ([], [], [1])
    kelr(server, "recover", "verify", "plan.json")
    said = " ".join(capsys.readouterr().out.split())
    assert "not read before" not in said
    assert (
        "Saved: at least 10 of these offsets, in elsewhere/mine.kelr-rescue (checked). The log of broker 1 was read for"
        " that: as it was then, all that the new leader lacks of it is there." in said
    )
    assert "1 is not live: what 3 lacked of its log, as it was read, is saved in elsewhere/mine.kelr-rescue" in said
    moved = saved.rename(tmp_path / "elsewhere.zip")
    told = lost("recover", "verify", "plan.json")
    assert (told["total"], told["saved"], told["files"], told["unread"]) == ([6, None], 0, [], [1])
    kelr(server, "recover", "verify", "plan.json")
    out, err = capsys.readouterr()
    assert f"cannot read the rescue file {saved}: No such file or directory: what it holds counts for nothing" in err
    assert "The log of broker 1 was not read before the election." in " ".join(out.split())
    # Where the plan's own commands write it, its name is enough: it may come from the broker's host.
    moved.rename(tmp_path / "plan-from-1.kelr-rescue")
    assert lost("recover", "verify", "plan.json")["saved"] == 10
    assert "counts for nothing" not in capsys.readouterr().err


def test_a_plan_and_what_is_imagined_know_what_was_saved(
    server: SimulatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    server.inside(lambda world: disks.write(world, 1, tmp_path / "disk"))

    def said(*command: str) -> str:
        capsys.readouterr()
        kelr(server, *command)
        return " ".join("".join(capsys.readouterr()).split())

    designation = ("-e", "designation", "--designate", "3")
    plan = ("recover", "plan", f"{TOPIC}:0", *designation)
    asked = (
        plan,
        (*plan, "--out", "plan.json", "--overwrite"),
        ("recover", "apply", "plan.json", "--dry-run"),
        ("explain", f"{TOPIC}:0"),
        ("explain", f"{TOPIC}:0", "--if", "designate 3"),
    )
    to_save = ("eep broker 1 down until its disk is saved", "ave what the disk of broker 1 holds")
    for command in asked:
        assert any(words in (found := said(*command)) for words in to_save), (command, found)
    dump = ("rescue", "dump", f"{TOPIC}:0", "--elect", "3", "--log-dir", "disk", "--out", "mine.kelr-rescue")
    assert kelr(server, *dump) == 0
    for command in asked:
        found = said(*command)
        assert not any(words in found for words in (*to_save, "rescue dump")), (command, found)
        if command[0] == "recover":
            assert "Saved What broker 1 holds and the elected log lacks, in mine.kelr-rescue." in found
    (tmp_path / "mine.kelr-rescue").unlink()
    assert to_save[0] in said(*plan)


@pytest.mark.parametrize("after", [False, True])
def test_what_was_saved_is_not_to_be_saved_again_and_a_file_that_was_changed_counts_for_nothing(
    server: SimulatedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    after: bool,
) -> None:
    """The records that only the disk of broker 1 holds are saved before 3 is elected, or after it by the advice."""
    monkeypatch.chdir(tmp_path)
    disk, saved = tmp_path / "disk", tmp_path / "mine.kelr-rescue"
    server.inside(lambda world: disks.write(world, 1, disk))
    designation = ("-e", "designation", "--designate", "3")
    dump = ("rescue", "dump", f"{TOPIC}:0", "--elect", "3", "--log-dir", str(disk), "--out", str(saved))
    assert kelr(server, "recover", "plan", f"{TOPIC}:0", *designation, "--out", "plan.json") == 0
    assert after or kelr(server, *dump) == 0
    assert kelr(server, "recover", "apply", "plan.json", "--yes", "--accept-loss", "6+") == 0
    eventually(server, led_by_3_and_followed)
    if after:
        assert "save what the disk of broker 1 holds" in explain(server, capsys)
        assert kelr(server, *dump) == 0
    explained = explain(server, capsys)
    assert "Saved already, as mine.kelr-rescue says: what broker 1 held and the leader's log lacked." in explained
    assert "rescue dump" not in explained

    def verified(*options: str) -> str:
        capsys.readouterr()
        kelr(server, "recover", "verify", "plan.json", *options)
        out, err = capsys.readouterr()
        return out if options else " ".join((out + err).split())

    assert "Saved: at least 10 of these offsets, in mine.kelr-rescue (checked)." in verified()
    whole = saved.read_bytes()
    saved.write_bytes(whole.replace(b"k18", b"k81"))
    assert json.loads(verified("-o", "json"))["lost"]["files"] == []
    assert "Bad CRC-32" in (said := verified())
    assert "what it holds counts for nothing" in said
    saved.write_bytes(whole)
    monkeypatch.setattr("kelr.rescue.known.CHECK_UP_TO_BYTES", 10)
    assert json.loads(verified("-o", "json"))["lost"]["unchecked"] == ["mine.kelr-rescue"]
    assert "(not checked). To check: kelr rescue show mine.kelr-rescue." in verified()
    saved.unlink()
    assert "save what the disk of broker 1 holds" in explain(server, capsys)


def test_what_was_saved_is_known_after_an_election_that_is_on_record_nowhere(
    server: SimulatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By leader epochs alone: nobody led for a while, and what the disk of broker 1 held then is in a file."""
    monkeypatch.chdir(tmp_path)
    server.inside(lambda world: disks.write(world, 1, tmp_path / "disk"))
    dump = ("rescue", "dump", f"{TOPIC}:0", "--elect", "3", "--log-dir", "disk", "--out", "mine.kelr-rescue")
    assert kelr(server, *dump) == 0
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("KELR_STATE_DIR", str(tmp_path / "elsewhere"))
        elect = ("elect", "--election-type", "designation", "--designate", "3", f"{TOPIC}:0", "--yes")
        assert kelr(server, *elect, "--accept-loss", "6+") == 0
    eventually(server, led_by_3_and_followed)
    produce(server.ports[3], TOPIC, batch(20, 1))
    explained = explain(server, capsys)
    assert "Saved already, as mine.kelr-rescue says: what broker 1 held and the leader's log lacked." in explained
    assert "rescue dump" not in explained
    assert kelr(server, "rescue", "replay", "mine.kelr-rescue", "--yes") == 0
    assert "rescue" not in explain(server, capsys)  # nothing is left to produce again
    (tmp_path / "mine.kelr-rescue").unlink()
    assert "save what the disk of broker 1 holds" in explain(server, capsys)


def explain(server: SimulatedServer, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert kelr(server, "explain", f"{TOPIC}:0") == 0
    return " ".join(capsys.readouterr().out.split())


def next_of(server: SimulatedServer, capsys: pytest.CaptureFixture[str], *command: str, code: int = 0) -> str:
    """The one next command that a command names on the screen, which its document names too."""
    assert kelr(server, *command) == code
    captured = capsys.readouterr()
    said = [line.removeprefix("  next: ") for line in captured.err.splitlines() if "  next: " in line]
    said += first_of_screen(captured.out)
    assert len(said) == 1
    return said[0]


def test_what_a_return_truncates_is_saved_from_whoever_holds_it(
    server: SimulatedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 3 dies too, with 10 records; it returns and is elected: what 2 holds beyond it, and 1's disk, goes."""
    dirs = []
    server.inside(lambda world: world.running.kill(3))
    server.inside(lambda world: world.running.expire(3))
    for broker in (1, 3):
        server.inside(lambda world, broker=broker: disks.write(world, broker, tmp_path / f"disk-{broker}"))  # type: ignore[misc]
        dirs += ["--log-dir", str(tmp_path / f"disk-{broker}")]
    saved = str(tmp_path / "return.kelr-rescue")
    assert kelr(server, "rescue", "dump", TOPIC, "--elect", "3", *dirs, "--out", saved, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(one["replica"], one["how"], one["from_offset"], one["to_offset"]) for one in document["items"]] == [
        (1, "log directory", 10, 20)
    ]
    assert document["next"] == f"kelr explain {TOPIC}:0 -b {server.bootstrap_servers}"
    unread = str(tmp_path / "unread.kelr-rescue")
    assert kelr(server, "rescue", "dump", TOPIC, "--elect", "3", *dirs[:2], "--out", unread) == 7
    assert "the log of replica 3, which is to lead, was not read" in capsys.readouterr().err


def test_a_stale_reading_of_the_leader_to_come_counts_as_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 1's disk is from before it led for the second time: nothing tells how much of it is there now."""
    with cluster("elr-4.3", clock=MachineClock()) as server:
        produce(server.ports[1], TOPIC, batch(0, 10))
        server.inside(lambda world: disks.write(world, 1, tmp_path / "stale"))
        dies(server, 1)
        server.inside(lambda world: world.running.start(1))
        eventually(server, lambda world: _led_by(world, 2, isr={1, 2, 3}))
        dies(server, 2)
        eventually(server, lambda world: _led_by(world, 1, isr={1, 3}))
        produce(server.ports[1], TOPIC, batch(10, 6))
        dies(server, 3)
        server.inside(lambda world: disks.write(world, 1, tmp_path / "true"))
        dies(server, 1)
        server.inside(lambda world: [world.running.start(broker) for broker in (2, 3)])
        eventually(server, lambda world: not (world.brokers[2].fenced or world.brokers[3].fenced))
        found = []
        for name in ("true", "stale"):
            out = ("--log-dir", str(tmp_path / name), "--out", str(tmp_path / f"{name}.kelr-rescue"), "-o", "json")
            code = kelr(server, "rescue", "dump", TOPIC, "--elect", "1", *out)
            document = json.loads(capsys.readouterr().out)
            runs = [(one["replica"], one["from_offset"], one["to_offset"]) for one in document["items"]]
            found.append((code, runs, [one["text"] for one in document["notes"]]))
    (true, stale) = found
    assert true[:2] == (0, [])
    assert stale[:2] == (7, [(3, 0, 16)])
    assert "is not believed" in stale[2][0]
    assert "it counts as not read, so all that the others hold is saved" in stale[2][0]


def _led_by(world: World, leader: int, isr: set[int]) -> bool:
    state = world.state(ORDERS)
    return state is not None and state.leader == leader and set(state.isr) == isr


def test_a_plan_leads_to_one_dump_with_all_directories_that_were_read_here(
    server: SimulatedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    disk = tmp_path / "disk"
    server.inside(lambda world: disks.write(world, 1, disk))
    assert main(["recover", "collect", f"{TOPIC}:0", "--log-dir", str(disk), "--out", "broker-1.kelr"]) == 0
    leads_to = f"  next: kelr recover plan {TOPIC}:0 --logs broker-1.kelr --out plan.json"
    assert leads_to in capsys.readouterr().err.splitlines()
    plan = ("recover", "plan", f"{TOPIC}:0", "-e", "designation", "--designate", "2", "--logs", "broker-1.kelr")
    flags = f"-b {server.bootstrap_servers}"
    dump = next_of(server, capsys, *plan, "--out", "plan.json")
    assert dump == (
        f"kelr rescue dump --plan plan.json --log-dir {disk} --out plan.kelr-rescue --logs broker-1.kelr {flags}"
    )
    apply = next_of(server, capsys, *dump.removeprefix("kelr ").removesuffix(flags).split())
    assert apply == f"kelr recover apply plan.json --logs broker-1.kelr {flags}"
