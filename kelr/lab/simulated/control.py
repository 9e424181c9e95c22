"""The control channel of a simulated cluster: who kills, starts and hampers its nodes speaks here.

A line is a JSON object with ``token``, ``verb`` and the verb's arguments; the answer is one too: ``ok`` and ``result``,
or ``error``, ``next_step`` and ``exit_code``. The token is in the lab's lab.json, which only its owner can read.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from kelr.errors import KelrError, LabError, UsageError
from kelr.lab.simulated.api import CLUSTER, DENIED, SUPPORTED
from kelr.lab.simulated.disks import DiskKeeper
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.server import Server
from kelr.lab.simulated.world import HOST, Denied
from kelr.model import TopicPartition
from kelr.simulation.running import RunningCluster

# What can be done to a simulated cluster besides speaking Kafka's protocol with it: each verb by its name.


# The arguments of a verb, as they came from outside: each is taken out as what it has to be, and none may be left.

Arguments: TypeAlias = dict[str, Any]
"""By name; what was read is gone from it."""
_MOST = 2**31 - 1


def number(arguments: Arguments, name: str, *, least: int = 0, default: int | None = None) -> int:
    """A whole number from `least` to 2^31 - 1. Raises UsageError, as the others do."""
    value = arguments.pop(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} is no whole number")
    if not least <= value <= _MOST:
        raise UsageError(f"{name} is {value}, outside {least} to {_MOST}")
    return value


def flag(arguments: Arguments, name: str) -> bool:
    """True or false; false where nothing was said."""
    value = arguments.pop(name, False)
    if not isinstance(value, bool):
        raise UsageError(f"{name} is neither true nor false")
    return value


def text(arguments: Arguments, name: str) -> str:
    """A text that is not empty."""
    value = arguments.pop(name, None)
    if not isinstance(value, str) or not value:
        raise UsageError(f"{name} is no text")
    return value


def one_of(arguments: Arguments, name: str, choices: tuple[str, ...]) -> str:
    """One of these words, however its letters are written."""
    given = text(arguments, name)
    for choice in choices:
        if choice.lower() == given.lower().replace("-", "_") or choice.lower() == given.lower():
            return str(choice)
    raise UsageError(f"no {name} is called {given[:80]!r}", next_step=f"one of {', '.join(choices)}")


def no_more(arguments: Arguments) -> None:
    """Refuse what nobody asked for."""
    if arguments:
        raise UsageError(f"not an argument of this command: {', '.join(sorted(arguments))[:200]}")


Result: TypeAlias = dict[str, Any]
_OPERATIONS = tuple(dict.fromkeys(operation for kind in SUPPORTED for operation in SUPPORTED[kind]))


class Operator:
    """Whoever drives a server by verbs.

    Args:
        disks: where the brokers' log directories are kept on the disk, if they are.
    """

    def __init__(self, server: Server, disks: DiskKeeper | None = None) -> None:
        self.server = server
        self._disks = disks
        self.obstructed: set[int] = set()
        """Brokers that die as soon as they have registered, while they load their logs."""
        server.after_change.append(self._die_on_obstacles)

    @property
    def running(self) -> RunningCluster:
        return self.server.world.running

    def status(self, arguments: Arguments) -> Result:
        """Everything that is not as in any other cluster."""
        no_more(arguments)
        world, running = self.server.world, self.running
        brokers = world.brokers
        return {
            "cluster_id": world.cluster_id,
            "now_ms": self.server.clock.now_ms(),
            "virtual_clock": self.server.clock.virtual,
            "rules": running.cluster.controller.rules.name,
            "elr": running.cluster.controller.rules.elr,
            "nodes": [
                {
                    "node": node,
                    "port": world.ports[node],
                    "rack": world.racks.get(node),
                    "running": world.listens(node),
                    "controller": None if node in brokers else "active" if node == world.controller else "standby",
                    "fenced": brokers[node].fenced if node in brokers else None,
                    "paused": node in running.paused,
                }
                for node in world.nodes
            ],
            "severed": sorted(sorted(link) for link in running.severed),
            "faults": [_fault_document(fault) for fault in self.server.faults.rules],
            "denied": [
                asdict(denied)
                for denied in sorted(world.denied, key=lambda one: (one.kind, one.operation, one.name or ""))
            ],
            "assumptions": list(world.assumptions),
            "broken_handlers": [repr(failure)[:500] for failure in self.server.failures],
        }

    # Processes.

    def kill(self, arguments: Arguments) -> Result:
        """A process dies. With `power_loss` a broker's machine loses its power, whether the process runs or not: what
        was not flushed is gone."""
        controller = self._controller(arguments)
        if controller is not None:
            self.server.world.kill_controller(controller)
            return {}
        broker, power_loss = self._broker(arguments), flag(arguments, "power_loss")
        no_more(arguments)
        if power_loss:
            self.running.lose_cache(broker)
            self._disk_changed(broker)
        else:
            self.running.kill(broker)
        return {}

    def stop(self, arguments: Arguments) -> Result:
        """A controlled shutdown."""
        return self._to_a_broker(arguments, self.running.stop)

    def start(self, arguments: Arguments) -> Result:
        """A broker, or a controller, that is down starts."""
        controller = self._controller(arguments)
        if controller is not None:
            self.server.world.start_controller(controller)
            return {}
        return self._to_a_broker(arguments, self._start)

    def expire(self, arguments: Arguments) -> Result:
        """The controller gives up on a broker now."""
        return self._to_a_broker(arguments, self.running.expire)

    def pause(self, arguments: Arguments) -> Result:
        """A broker's process stands still."""
        return self._to_a_broker(arguments, self.running.pause)

    def go_on(self, arguments: Arguments) -> Result:
        """It goes on."""
        return self._to_a_broker(arguments, self.running.go_on)

    def flush(self, arguments: Arguments) -> Result:
        """A broker writes everything to its disk."""
        return self._to_a_broker(arguments, self.running.flush)

    def obstruct(self, arguments: Arguments) -> Result:
        """A broker will register when it is started, and then die while it loads its logs."""
        return self._to_a_broker(arguments, self.obstructed.add)

    def clear(self, arguments: Arguments) -> Result:
        """Undo `obstruct`."""
        return self._to_a_broker(arguments, self.obstructed.discard)

    def cut(self, arguments: Arguments) -> Result:
        """A dead broker's log loses its last batches, and with them the mark of a clean shutdown."""
        broker, address = self._broker(arguments), self._partition(arguments)
        batches = number(arguments, "batches", least=1)
        no_more(arguments)
        world = self.server.world
        if self.running.runs(broker):
            raise LabError(f"broker {broker} runs", next_step="kill it before its log is cut")
        log = world.log(world.own(address), broker)
        found = [] if log is None else list(world.contents.batches(log, log.start))
        if log is None or len(found) < batches:
            raise LabError(f"broker {broker} holds fewer than {batches} batches of {address}")
        end = max(found[-batches].base_offset, log.start)
        cluster = self.running.cluster.cut(address, broker, end)
        self.running.cluster = replace(cluster, crashed=cluster.crashed | {broker})
        self.running.changes += 1
        self._disk_changed(broker)
        return {"from_offset": end, "to_offset": log.end}

    def high_watermarks(self, arguments: Arguments) -> Result:
        """A topic's high watermarks, as a broker knows them."""
        broker, topic = self._broker(arguments), text(arguments, "topic")
        no_more(arguments)
        world = self.server.world
        logs = {
            partition: world.log(TopicPartition(topic, partition), broker)
            for partition in range(world.partitions(topic))
        }
        return {str(partition): log.high_watermark for partition, log in logs.items() if log is not None}

    # The network.

    def sever(self, arguments: Arguments) -> Result:
        """Two nodes do not reach each other any more."""
        one, other = self._link(arguments)
        no_more(arguments)
        self.running.sever(one, other)
        return {}

    def heal(self, arguments: Arguments) -> Result:
        """They do again; without nodes, all do."""
        link = self._link(arguments) if arguments else (None, None)
        no_more(arguments)
        self.running.heal(*link)
        return {}

    def fault(self, arguments: Arguments) -> Result:
        """A rule for what goes wrong from now on: after those that are there, or in their place."""
        kind = one_of(arguments, "kind", tuple(FaultKind))
        amount = number(arguments, "amount", least=-1, default=0)
        node = None if arguments.get("node") is None else self._node(arguments, "node")
        arguments.pop("node", None)
        api = self._api(arguments)
        skip = number(arguments, "skip", default=0)
        times = None if arguments.get("times") is None else number(arguments, "times", least=1)
        arguments.pop("times", None)
        alone = flag(arguments, "alone")
        no_more(arguments)
        try:
            fault = Fault(FaultKind(kind), amount, node, api, skip, times)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if alone:
            self.server.faults.rules.clear()
        self.server.faults.rules.append(fault)
        return {}

    def no_faults(self, arguments: Arguments) -> Result:
        """All rules are gone."""
        no_more(arguments)
        self.server.faults.rules.clear()
        return {}

    # Permissions and time.

    def deny(self, arguments: Arguments) -> Result:
        """Clients may not do something."""
        self.server.world.denied.add(self._denied(arguments))
        return {}

    def allow(self, arguments: Arguments) -> Result:
        """They may again; without an operation, everything."""
        denied = self.server.world.denied
        if not arguments:
            denied.clear()
            return {}
        wanted = self._denied(arguments)
        if wanted not in denied:
            raise UsageError(f"{wanted.operation} was not denied on {wanted.name or f'every {wanted.kind}'}")
        denied.discard(wanted)
        return {}

    def advance(self, arguments: Arguments) -> Result:
        """Turn a virtual clock."""
        duration_ms = number(arguments, "duration_ms")
        no_more(arguments)
        self.server.turn(duration_ms)
        return {"now_ms": self.server.clock.now_ms()}

    # Inside.

    def _to_a_broker(self, arguments: Arguments, do: Callable[[int], object]) -> Result:
        broker = self._broker(arguments)
        no_more(arguments)
        do(broker)
        return {}

    def _start(self, broker: int) -> None:
        if self._disks is not None:
            self._disks.take_mark(broker)
        self.running.start(broker)

    def _disk_changed(self, broker: int) -> None:
        if self._disks is not None:
            self._disks.rewrite(broker)

    def _die_on_obstacles(self) -> None:
        for broker in [one for one in self.obstructed if self.running.runs(one)]:
            self.running.kill(broker)
            self.server.look()

    def _node(self, arguments: Arguments, name: str) -> int:
        return self._known(number(arguments, name), self.server.world.nodes, "node")

    def _broker(self, arguments: Arguments) -> int:
        world = self.server.world
        brokers = tuple(node for node in world.nodes if node not in world.controllers)
        return self._known(number(arguments, "broker"), brokers, "broker")

    def _controller(self, arguments: Arguments) -> int | None:
        """The controller that is named in a broker's place; None for a broker, and where there is one controller, whose
        end would be the cluster's."""
        controllers = self.server.world.controllers
        named = arguments.get("broker")
        if len(controllers) == 1 or named not in controllers or isinstance(named, bool):
            return None
        found = number(arguments, "broker")
        arguments.pop("power_loss", None)
        no_more(arguments)
        return found

    def _known(self, node: int, known: tuple[int, ...], what: str) -> int:
        if node not in known:
            raise UsageError(f"the lab has no {what} {node}", next_step=f"its {what}s are {', '.join(map(str, known))}")
        return node

    def _link(self, arguments: Arguments) -> tuple[int, int]:
        one, other = self._node(arguments, "one"), self._node(arguments, "other")
        if one == other:
            raise UsageError(f"node {one} has no link to itself")
        if {one, other} <= {*self.server.world.controllers}:
            raise UsageError(
                f"{one} and {other} are controllers, which all have one log on this lab: no link is between them",
                next_step="kill one, or cut brokers off from it",
            )
        return one, other

    def _partition(self, arguments: Arguments) -> TopicPartition:
        address = TopicPartition(text(arguments, "topic"), number(arguments, "partition"))
        if address.partition >= self.server.world.partitions(address.topic):
            raise UsageError(f"the lab has no partition {address}")
        return address

    def _api(self, arguments: Arguments) -> str | None:
        if arguments.get("api") is None:
            arguments.pop("api", None)
            return None
        nodes = self.server.world.nodes
        names = {api.name for node in (nodes[0], nodes[-1]) for api in self.server.apis_of(node).values()}
        return one_of(arguments, "api", tuple(sorted(names)))

    def _denied(self, arguments: Arguments) -> Denied:
        kind = one_of(arguments, "kind", tuple(DENIED))
        operation = _operation_on(kind, one_of(arguments, "operation", _OPERATIONS))
        name = None if arguments.get("name") is None else text(arguments, "name")
        arguments.pop("name", None)
        no_more(arguments)
        if kind == "cluster" and name is not None:
            raise UsageError("there is one cluster: it has no name")
        return Denied(kind, operation, name)


def _operation_on(kind: str, operation: str) -> str:
    if operation not in SUPPORTED[kind]:
        raise UsageError(
            f"there is no {operation} on a {kind}",
            next_step="name a topic: --topic NAME" if kind == CLUSTER else f"one of {', '.join(SUPPORTED[kind])}",
        )
    return operation


def _fault_document(fault: Fault) -> dict[str, Any]:
    return {**asdict(fault), "kind": str(fault.kind)}


VERBS: Mapping[str, Callable[[Operator, Arguments], Result]] = {
    "status": Operator.status,
    "kill": Operator.kill,
    "stop": Operator.stop,
    "start": Operator.start,
    "expire": Operator.expire,
    "pause": Operator.pause,
    "go-on": Operator.go_on,
    "flush": Operator.flush,
    "obstruct": Operator.obstruct,
    "clear": Operator.clear,
    "cut": Operator.cut,
    "high-watermarks": Operator.high_watermarks,
    "sever": Operator.sever,
    "heal": Operator.heal,
    "fault": Operator.fault,
    "no-faults": Operator.no_faults,
    "deny": Operator.deny,
    "allow": Operator.allow,
    "advance": Operator.advance,
}
"""``down`` is the channel's own: it ends the process."""


MOST_LINE_BYTES = 64 * 1024
_IDLE_S = 600.0


class ControlServer:
    """Listens for verbs, in the event loop of the server that they are about.

    Args:
        token: what a request has to bring.
        down: called when the verb ``down`` came, after its answer was sent.
    """

    def __init__(self, operator: Operator, token: str, *, down: Callable[[], None]) -> None:
        self._operator = operator
        self._token = token.encode()
        self._down = down

    async def listen(self, port: int) -> asyncio.Server:
        """Begin; whoever called ends the server.

        Raises:
            OSError: the port is taken.
        """
        return await asyncio.start_server(self._accepted, HOST, port, limit=MOST_LINE_BYTES)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, TimeoutError, asyncio.CancelledError):
                while True:
                    async with asyncio.timeout(_IDLE_S):
                        line = await _line(reader)
                    if line == b"":
                        break
                    answer, goes_on = await self._answered(line)
                    writer.write(json.dumps(answer).encode() + b"\n")
                    await writer.drain()
                    if not goes_on:
                        break
        finally:
            writer.close()

    async def _answered(self, line: bytes | None) -> tuple[dict[str, Any], bool]:
        """The answer, and whether more may be said on this connection."""
        if line is None:
            return _refusal(UsageError(f"a line is longer than {MOST_LINE_BYTES} bytes")), False
        try:
            request = _request(line)
        except UsageError as error:
            return _refusal(error), True
        if not hmac.compare_digest(str(request.pop("token", "")).encode(), self._token):
            return _refusal(UsageError("this is not the lab's token")), False
        verb = request.pop("verb", None)
        if verb == "down" and not request:
            self._down()
            return {"ok": True, "result": {}}, False
        try:
            result = _perform(self._operator, verb, request)
            await self._operator.server.follow()
        except KelrError as error:
            return _refusal(error), True
        except OSError as error:
            return _refusal(LabError(f"a port of the lab is taken ({error.strerror})")), True
        return {"ok": True, "result": result}, True


def _perform(operator: Operator, verb: object, arguments: dict[str, Any]) -> dict[str, Any]:
    known = VERBS.get(verb) if isinstance(verb, str) else None
    if known is None:
        raise UsageError(
            f"no verb is called {json.dumps(verb)[:80]}", next_step=f"one of {', '.join((*VERBS, 'down'))}"
        )
    operator.server.time_passes()
    try:
        return known(operator, arguments)
    finally:
        operator.server.look()


def _request(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError("a line that is no JSON") from None
    if not isinstance(request, dict):
        raise UsageError("a line that is no JSON object")
    return request


async def _line(reader: asyncio.StreamReader) -> bytes | None:
    """The next line; b"" at the end of the connection; None for one that is too long."""
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError:
        return b""
    except asyncio.LimitOverrunError:
        return None


def _refusal(error: KelrError) -> dict[str, Any]:
    return {"ok": False, "error": error.message, "next_step": error.next_step, "exit_code": int(error.exit_code)}
