"""Without a terminal and without ``--yes`` nothing is changed: every command that can, with stdin from /dev/null and
from a pipe into which somebody writes a yes, and what brokers are asked meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kelr.commands.generate import command_line, every
from kelr.commands.main import main
from kelr.lab.simulated.connection import Connection
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from kelr.sources.live.changes import LiveAdminClient
from tests.lab.simulated.data import batch, produce
from tests.lab.simulated.stories import ORDERS, cluster, eventually

TOPIC, AT = ORDERS.topic, str(ORDERS)
CHANGES = {
    "AlterPartitionReassignments",
    "AlterConfigs",
    "ElectLeaders",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "Produce",
}
DESIGNATE_3 = ("--election-type", "designation", "--designate", "3")
YES, ACCEPT = "--yes", ("--accept-loss", "100+")


def dies(server: SimulatedServer, broker: int) -> None:
    server.inside(lambda world: (world.running.kill(broker), world.running.expire(broker)))


def returns(server: SimulatedServer, *brokers: int) -> None:
    server.inside(lambda world: [world.running.start(broker) for broker in brokers])
    eventually(server, lambda world: not any(world.brokers[broker].fenced for broker in brokers))


class Killed(BaseException):
    """kelr is killed at this moment."""


@pytest.fixture(name="server")
def _server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedServer]:
    """Brokers 2 and 3 are live with 16 and 10 records, 1 is dead with 20; nobody leads."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with cluster("elr-4.3", clock=MachineClock()) as server:
        produce(server.ports[1], TOPIC, batch(0, 10))
        dies(server, 3)
        produce(server.ports[1], TOPIC, batch(10, 6))
        dies(server, 2)
        produce(server.ports[1], TOPIC, batch(16, 4), acks=1)
        dies(server, 1)
        returns(server, 2, 3)
        yield server


@pytest.fixture(name="asked")
def _asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the requests that come to brokers."""
    seen: list[str] = []
    carried_out = Connection._carried_out

    async def watched(self: Connection, api: Any, call: Any) -> Any:
        seen.append(api.name)
        return await carried_out(self, api, call)

    monkeypatch.setattr(Connection, "_carried_out", watched)
    return seen


def kelr(server: SimulatedServer, *arguments: str) -> int:
    return main([*arguments, "-b", server.bootstrap_servers])


def prepared(server: SimulatedServer, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has to be there before the command has something to change."""
    if command == "elect preferred":
        assert kelr(server, "elect", *DESIGNATE_3, AT, YES, *ACCEPT) == 0
        returns(server, 1)
        eventually(server, lambda world: (found := world.state(ORDERS)) is not None and 1 in found.isr)
    if command.startswith("recover"):
        assert kelr(server, "recover", "plan", AT, *DESIGNATE_3, "--out", "plan.json") == 0
    if command in {"recover resume", "recover undo", "recover undo plan"}:
        with monkeypatch.context() as patch:
            patch.setattr(LiveAdminClient, "elect", killed)
            with pytest.raises(Killed):
                kelr(server, "recover", "apply", "plan.json", YES, *ACCEPT)
    if command == "recover undo plan":
        monkeypatch.setenv("KELR_STATE_DIR", str(Path("another").absolute()))
    if command == "rescue replay":
        assert kelr(server, "rescue", "dump", AT, "--elect", "3", "--out", "saved.kelr-rescue") == 7
        assert kelr(server, "elect", *DESIGNATE_3, AT, YES, *ACCEPT) == 0
        eventually(server, lambda world: (found := world.state(ORDERS)) is not None and set(found.isr) == {2, 3})


def killed(*_: Any, **__: Any) -> Any:
    raise Killed


ELECTIONS = {
    "elect preferred": ("elect", "-e", "preferred", AT),
    "elect unclean": ("elect", "-e", "unclean", AT, *ACCEPT),
    "elect designation": ("elect", *DESIGNATE_3, AT, *ACCEPT),
    "elect longest_log_balanced": ("elect", "-e", "longest_log_balanced", AT, "--timeout", "1", *ACCEPT),
    "elect longest_log_aggressive": ("elect", "-e", "longest_log_aggressive", AT, "--window", "0", *ACCEPT),
}
COMMANDS = ELECTIONS | {
    "recover apply": ("recover", "apply", "plan.json", *ACCEPT),
    "recover resume": ("recover", "resume"),
    "recover undo": ("recover", "undo"),
    "recover undo plan": ("recover", "undo", "plan.json"),
    "recover clear-elr": ("recover", "clear-elr", TOPIC, "--force", "broker 1 is broken"),
    "rescue replay": ("rescue", "replay", "saved.kelr-rescue"),
}
NAMED = {"recover clear-elr": f"--yes-clear-elr-of {TOPIC}"}
"""What stands for ``--yes`` where that is another option."""


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_changed_without_yes(
    server: SimulatedServer,
    asked: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    prepared(server, command, monkeypatch)
    before = server.inside(lambda world: world.state(ORDERS))
    read, write = os.pipe()
    os.write(write, b"y\n100+\norders\n")
    os.close(write)
    with open(os.devnull, encoding="utf-8") as nothing, os.fdopen(read, encoding="utf-8") as pipe:
        for stdin in (nothing, pipe):
            monkeypatch.setattr("sys.stdin", stdin)
            asked.clear()
            capsys.readouterr()
            code = kelr(server, *COMMANDS[command])
            said = capsys.readouterr().err
            if command != "elect longest_log_balanced":  # which elects nobody without the log of broker 1
                assert NAMED.get(command, "--yes") in said, said
            assert code == 6, said
            assert asked
            assert CHANGES.isdisjoint(asked)
    assert server.inside(lambda world: world.state(ORDERS)) == before


def test_every_command_that_takes_a_yes_is_walked_through() -> None:
    takes_a_yes = {
        command.path.removeprefix("kelr ")
        for command in every(command_line())
        if "--yes" in command.help and not command.commands
    }
    walked = {" ".join(one for one in arguments[:2]) for arguments in COMMANDS.values()}
    on_this_machine = {"context remove"}
    assert takes_a_yes - on_this_machine == {"elect" if one.startswith("elect") else one for one in walked}
