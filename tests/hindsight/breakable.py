"""A real cluster of which more can break than processes: its network, and a log directory of a broker that runs on.

Nodes reach each other through relays, one before each node, and clients do not: who is cut off from others still
answers kelr. A second log directory, where there is one, has the metadata log and some of the internal topics.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kelr.errors import LabError
from kelr.lab import Lab, wire
from kelr.lab.disk import CLEAN_SHUTDOWN_FILE
from kelr.lab.nodes import HOST, NodePaths, new_kafka_uuid
from kelr.lab.processes import free_ports
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import PartitionState, TopicPartition

_INNER = "INNER"
"""The listener at which brokers reach each other."""


class BreakableLab(Lab):
    """Made by `up` as any lab."""

    directories = 1

    def _properties_beside(self, _passwords: Mapping[str, str]) -> Mapping[int, Mapping[str, str]]:
        inner = free_ports(self.brokers)
        relays = free_ports((CONTROLLER_ID, *self.brokers))
        targets = {CONTROLLER_ID: self.port(CONTROLLER_ID), **inner}
        self.network = Network({node: (relays[node], targets[node]) for node in relays})
        self.away: set[int] = set()
        """Brokers that run, and that the others do not hear."""
        found: dict[int, dict[str, str]] = {
            CONTROLLER_ID: {"advertised.listeners": f"CONTROLLER://{HOST}:{relays[CONTROLLER_ID]}"}
        }
        for broker in self.brokers:
            clients = f"PLAINTEXT://{HOST}:{self.port(broker)}"
            found[broker] = {
                "listeners": f"{clients},{_INNER}://{HOST}:{inner[broker]}",
                "advertised.listeners": f"{clients},{_INNER}://{HOST}:{relays[broker]}",
                "inter.broker.listener.name": _INNER,
                "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{_INNER}:PLAINTEXT",
                "controller.quorum.bootstrap.servers": f"{HOST}:{relays[CONTROLLER_ID]}",
                # Every 15 seconds otherwise.
                "log.cleaner.backoff.ms": "500",
                **(self._two_directories(broker) if self.directories == 2 else {}),
            }
        return found

    def _two_directories(self, broker: int) -> Mapping[str, str]:
        data, second = NodePaths.of(self.directory, broker).data, self.second_directory(broker)
        second.mkdir(parents=True)
        meta = f"version=1\ncluster.id={self._state.cluster_id}\nnode.id={broker}\ndirectory.id={new_kafka_uuid()}\n"
        (second / "meta.properties").write_text(meta)
        return {"log.dirs": f"{data},{second}", "metadata.log.dir": str(second)}

    def second_directory(self, broker: int) -> Path:
        return NodePaths.of(self.directory, broker).home / "second"

    def _failed_directory(self, broker: int) -> Path:
        return NodePaths.of(self.directory, broker).home / "failed"

    def data_directory(self, node: int) -> Path:
        failed = self._failed_directory(node)
        return failed if failed.exists() else super().data_directory(node)

    @property
    def failed(self) -> set[int]:
        """Brokers without the log directory that holds replicas."""
        return {broker for broker in self.brokers if self._failed_directory(broker).exists()}

    def fail_directory(self, broker: int) -> None:
        """The broker's log directory cannot be written from now on; what it holds is at `data_directory`."""
        data = self.data_directory(broker)
        data.rename(self._failed_directory(broker))
        data.touch()

    def rejoin(self) -> None:
        """Every node reaches every other one."""
        self.network.heal()
        for broker in self.away:
            self.go_on(broker)
        self.away.clear()

    def mend(self) -> None:
        """The same, and all log directories are there."""
        self.rejoin()
        for broker in self.failed:
            data = NodePaths.of(self.directory, broker).data
            data.unlink()
            self._failed_directory(broker).rename(data)

    def stopped_cleanly(self, broker: int) -> bool:
        """Whether the next registration of a broker that is down will count as clean: its mark has the epoch of the
        last one (ClusterControlManager.registerBroker)."""
        try:
            mark = json.loads((self.data_directory(broker) / CLEAN_SHUTDOWN_FILE).read_text())
        except (OSError, ValueError):
            return False
        return mark["brokerEpoch"] == self._broker_epoch(broker)

    def gather_replicas(self, topic: str) -> None:
        """Every replica of the topic is in the first directory: a broker takes whichever has fewer.

        They are moved while all is down; where logs held something, their high watermarks would have to go with them.
        A log whose topic id is not on disk yet is a stray for Kafka, and one that is not made yet may be made anywhere.
        """
        replicas = [(one, at) for at, state in self.partitions(topic).items() for one in state.replicas]
        self.wait_until(
            f"{topic} is on all disks", lambda: all(self._is_on_disk(*one) for one in replicas), timeout_s=60
        )
        self.halt()
        for broker in self.brokers:
            for place in self.second_directory(broker).glob("*-*"):
                if place.is_dir() and not place.name.startswith("__"):
                    place.rename(self.data_directory(broker) / place.name)
        self.start_controller()
        for broker in self.brokers:
            self.start(broker, wait=False)
        self.wait_unfenced(*self.brokers)

    def _is_on_disk(self, broker: int, at: TopicPartition) -> bool:
        places = (self.data_directory(broker), self.second_directory(broker))
        return any((place / f"{at.topic}-{at.partition}" / "partition.metadata").exists() for place in places)

    def views(self, *topics: str) -> list[Mapping[TopicPartition, PartitionState]]:
        return list(wire.views([self.port(one) for one in self.brokers if one not in self.away], topics))

    def partitions(self, *topics: str) -> Mapping[TopicPartition, PartitionState]:
        for seen in self.views(*topics):
            return seen
        raise LabError("no broker of the lab answers that is not cut off")

    def view_of(self, broker: int, topic: str) -> Mapping[TopicPartition, PartitionState]:
        """The partitions as this broker has them; none where it does not answer."""
        return next(iter(wire.views([self.port(broker)], [topic])), {})

    def wait_fenced(self, broker: int) -> None:
        """Wait until all that are asked hold a broker to be fenced: it runs, and is away, or is down."""

        def is_fenced() -> bool:
            views = [wire.fenced_as_seen_by(self.port(one)) for one in self.brokers if one not in self.away | {broker}]
            return all(view[broker] for view in views if view)

        self.wait_until(f"broker {broker} is fenced", is_fenced, timeout_s=60)

    def _is_unfenced(self, broker: int, asked: Sequence[int]) -> bool:
        return super()._is_unfenced(broker, [one for one in asked if one not in self.away])

    def down(self, *, keep_data: bool = False) -> None:
        super().down(keep_data=keep_data)
        self.network.close()


class TwoDirectories(BreakableLab):
    """Each broker has a second log directory."""

    directories = 2


class _End(asyncio.Protocol):
    """One end of a connection through a relay; what comes goes to the other end."""

    def __init__(self, other: _End | None = None) -> None:
        self.other = other
        self.transport: asyncio.Transport | None = None
        self.blocked = False
        self._waiting: list[bytes] = []
        """What came before the other end was there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.blocked:
            return
        self._waiting.append(data)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.writelines(self._waiting)
            self._waiting.clear()

    def connection_lost(self, _error: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.abort()


def broker_of(request: bytes) -> int:
    """The broker whose request this is: its client id has one number at least, and that first (1, raft-client-1,
    broker-1-fetcher-0)."""
    length = int.from_bytes(request[12:14], "big")
    found = re.search(rb"\d+", request[14 : 14 + length])
    if found is None:
        raise ValueError(f"whose request is {request[:80]!r}?")
    return int(found[0])


class _Asking(_End):
    """The end of whoever connected."""

    def __init__(self, network: Network, node: int, port: int) -> None:
        super().__init__()
        self.node = node
        """Whom it leads to, and the port of that."""
        self._network, self._port = network, port

        self.source: int | None = None
        """Who connected, once it has said so."""

    def data_received(self, data: bytes) -> None:
        if self.source is None and data:
            self.source = broker_of(data)
            self._network.opened(self)
        super().data_received(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        self.other = _End(self)
        try:
            await asyncio.get_running_loop().create_connection(lambda: self.other, HOST, self._port)
        except OSError:
            self.abort()
        else:
            self.data_received(b"")

    def block(self) -> None:
        self.blocked = True
        if self.other is not None:
            self.other.blocked = True

    def abort(self) -> None:
        assert self.transport is not None
        self.transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        super().connection_lost(_error)
        self._network.closed(self)


class Network:
    """The relays, in a thread of their own; who is parted can connect, and hears nothing."""

    def __init__(self, ports: Mapping[int, tuple[int, int]]) -> None:
        """`ports`: of each node those of its relay and of its listener."""
        self._parted: set[frozenset[int | None]] = set()
        self._open: set[_Asking] = set()
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._run(self._listen(ports))

    def part(self, one: int, other: int) -> None:
        """These nodes do not reach each other until `heal`."""
        self._run(self._part(one, other))

    def heal(self) -> None:
        self._run(self._heal())

    @property
    def is_whole(self) -> bool:
        return not self._parted

    def close(self) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def opened(self, connection: _Asking) -> None:
        self._open.add(connection)
        self._look_at(connection)

    def closed(self, connection: _Asking) -> None:
        self._open.discard(connection)

    def _run(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(60)

    async def _listen(self, ports: Mapping[int, tuple[int, int]]) -> None:
        for node, (relay, port) in ports.items():
            self._servers.append(await self._loop.create_server(partial(_Asking, self, node, port), HOST, relay))

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for connection in tuple(self._open):
            connection.abort()

    async def _part(self, one: int, other: int) -> None:
        self._parted.add(frozenset((one, other)))
        for connection in tuple(self._open):
            self._look_at(connection)

    async def _heal(self) -> None:
        self._parted.clear()
        for connection in tuple(self._open):
            if connection.blocked:
                connection.abort()

    def _look_at(self, connection: _Asking) -> None:
        if frozenset((connection.node, connection.source)) in self._parted:
            connection.block()
