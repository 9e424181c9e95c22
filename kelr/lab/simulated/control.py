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
from typing import Annotated, Any, TypeAlias

from annotated_types import Ge, Le, Len
from pydantic import ConfigDict, ValidationError, validate_call

from kelr.errors import KelrError, LabError, UsageError
from kelr.lab.simulated.api import CLUSTER, DENIED, SUPPORTED
from kelr.lab.simulated.disks import DiskKeeper
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.server import Server
from kelr.lab.simulated.world import HOST, Denied
from kelr.model import TopicPartition
from kelr.model.fields import Count, Int32
from kelr.model.numbers import MAX_INT32
from kelr.simulation.running import RunningCluster
from kelr.sources.field_problems import in_words

# What can be done to a simulated cluster besides speaking Kafka's protocol with it: each verb by its name.


def one_of(name: str, given: str, choices: tuple[str, ...]) -> str:
    """One of these words, however its letters are written. Raises UsageError."""
    for choice in choices:
        if choice.lower() in {given.lower().replace("-", "_"), given.lower()}:
            return str(choice)
    raise UsageError(f"no {name} is called {given[:80]!r}", next_step=f"one of {', '.join(choices)}")


Text: TypeAlias = Annotated[str, Len(1)]
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

    def status(self) -> Result:
        """Everything that is not as in any other cluster."""
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

    def kill(self, *, broker: Int32, power_loss: bool = False) -> Result:
        """A process dies. With `power_loss` a broker's machine loses its power, whether the process runs or not: what
        was not flushed is gone."""
        if self._is_controller(broker):
            self.server.world.kill_controller(broker)
        elif power_loss:
            self.running.lose_cache(self._broker(broker))
            self._disk_changed(broker)
        else:
            self.running.kill(self._broker(broker))
        return {}

    def stop(self, *, broker: Int32) -> Result:
        """A controlled shutdown."""
        self.running.stop(self._broker(broker))
        return {}

    def start(self, *, broker: Int32) -> Result:
        """A broker, or a controller, that is down starts."""
        if self._is_controller(broker):
            self.server.world.start_controller(broker)
            return {}
        if self._disks is not None:
            self._disks.take_mark(self._broker(broker))
        self.running.start(self._broker(broker))
        return {}

    def expire(self, *, broker: Int32) -> Result:
        """The controller gives up on a broker now."""
        self.running.expire(self._broker(broker))
        return {}

    def pause(self, *, broker: Int32) -> Result:
        """A broker's process stands still."""
        self.running.pause(self._broker(broker))
        return {}

    def go_on(self, *, broker: Int32) -> Result:
        """It goes on."""
        self.running.go_on(self._broker(broker))
        return {}

    def flush(self, *, broker: Int32) -> Result:
        """A broker writes everything to its disk."""
        self.running.flush(self._broker(broker))
        return {}

    def obstruct(self, *, broker: Int32) -> Result:
        """A broker will register when it is started, and then die while it loads its logs."""
        self.obstructed.add(self._broker(broker))
        return {}

    def clear(self, *, broker: Int32) -> Result:
        """Undo `obstruct`."""
        self.obstructed.discard(self._broker(broker))
        return {}

    def cut(self, *, broker: Int32, topic: Text, partition: Int32, batches: Count) -> Result:
        """A dead broker's log loses its last batches, and with them the mark of a clean shutdown."""
        self._broker(broker)
        address, world = TopicPartition(topic, partition), self.server.world
        if partition >= world.partitions(topic):
            raise UsageError(f"the lab has no partition {address}")
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

    def high_watermarks(self, *, broker: Int32, topic: Text) -> Result:
        """A topic's high watermarks, as a broker knows them."""
        self._broker(broker)
        world = self.server.world
        logs = {
            partition: world.log(TopicPartition(topic, partition), broker)
            for partition in range(world.partitions(topic))
        }
        return {str(partition): log.high_watermark for partition, log in logs.items() if log is not None}

    # The network.

    def sever(self, *, one: Int32, other: Int32) -> Result:
        """Two nodes do not reach each other any more."""
        self.running.sever(*self._link(one, other))
        return {}

    def heal(self, *, one: Int32 | None = None, other: Int32 | None = None) -> Result:
        """They do again; without nodes, all do."""
        if (one is None) is not (other is None):
            raise UsageError("a link has two nodes")
        self.running.heal(*((None, None) if one is None or other is None else self._link(one, other)))
        return {}

    def fault(
        self,
        *,
        kind: Text,
        amount: Annotated[int, Ge(-1), Le(MAX_INT32)] = 0,
        node: Int32 | None = None,
        api: Text | None = None,
        skip: Int32 = 0,
        times: Count | None = None,
        alone: bool = False,
    ) -> Result:
        """A rule for what goes wrong from now on: after those that are there, or in their place."""
        chosen = FaultKind(one_of("kind", kind, tuple(FaultKind)))
        if node is not None:
            self._node(node)
        try:
            fault = Fault(chosen, amount, node, self._api(api), skip, times)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if alone:
            self.server.faults.rules.clear()
        self.server.faults.rules.append(fault)
        return {}

    def no_faults(self) -> Result:
        """All rules are gone."""
        self.server.faults.rules.clear()
        return {}

    # Permissions and time.

    def deny(self, *, kind: Text, operation: Text, name: Text | None = None) -> Result:
        """Clients may not do something."""
        self.server.world.denied.add(_denied(kind, operation, name))
        return {}

    def allow(self, *, kind: Text | None = None, operation: Text | None = None, name: Text | None = None) -> Result:
        """They may again; without an operation, everything."""
        denied = self.server.world.denied
        if kind is None and operation is None and name is None:
            denied.clear()
            return {}
        wanted = _denied(kind or "", operation or "", name)
        if wanted not in denied:
            raise UsageError(f"{wanted.operation} was not denied on {wanted.name or f'every {wanted.kind}'}")
        denied.discard(wanted)
        return {}

    def advance(self, *, duration_ms: Int32) -> Result:
        """Turn a virtual clock."""
        self.server.turn(duration_ms)
        return {"now_ms": self.server.clock.now_ms()}

    # Inside.

    def _disk_changed(self, broker: int) -> None:
        if self._disks is not None:
            self._disks.rewrite(broker)

    def _die_on_obstacles(self) -> None:
        for broker in [one for one in self.obstructed if self.running.runs(one)]:
            self.running.kill(broker)
            self.server.look()

    def _node(self, node: int) -> int:
        return self._known(node, self.server.world.nodes, "node")

    def _broker(self, broker: int) -> int:
        world = self.server.world
        return self._known(broker, tuple(node for node in world.nodes if node not in world.controllers), "broker")

    def _is_controller(self, node: int) -> bool:
        """Whether a controller is named in a broker's place; not where there is one, whose end would be the
        cluster's."""
        controllers = self.server.world.controllers
        return len(controllers) > 1 and node in controllers

    def _known(self, node: int, known: tuple[int, ...], what: str) -> int:
        if node not in known:
            raise UsageError(f"the lab has no {what} {node}", next_step=f"its {what}s are {', '.join(map(str, known))}")
        return node

    def _link(self, one: int, other: int) -> tuple[int, int]:
        if self._node(one) == self._node(other):
            raise UsageError(f"node {one} has no link to itself")
        if {one, other} <= {*self.server.world.controllers}:
            raise UsageError(
                f"{one} and {other} are controllers, which all have one log on this lab: no link is between them",
                next_step="kill one, or cut brokers off from it",
            )
        return one, other

    def _api(self, api: str | None) -> str | None:
        nodes = self.server.world.nodes
        names = {api.name for node in (nodes[0], nodes[-1]) for api in self.server.apis_of(node).values()}
        return None if api is None else one_of("api", api, tuple(sorted(names)))


def _denied(kind: str, operation: str, name: str | None) -> Denied:
    kind = one_of("kind", kind, tuple(DENIED))
    operation = _operation_on(kind, one_of("operation", operation, _OPERATIONS))
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


VERBS: Mapping[str, Callable[..., Result]] = {
    name.replace("_", "-"): validate_call(config=ConfigDict(strict=True))(getattr(Operator, name))
    for name in (
        *("status", "kill", "stop", "start", "expire", "pause", "go_on", "flush", "obstruct", "clear", "cut"),
        *("high_watermarks", "sever", "heal", "fault", "no_faults", "deny", "allow", "advance"),
    )
}
"""By name; their arguments come from outside. ``down`` is the channel's own: it ends the process."""


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
        return known(operator, **arguments)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"{problem['loc'][-1]}: {in_words(problem)}"[:300]) from None
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
