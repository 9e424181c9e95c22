"""The Unclean Recovery Manager's questions on the network: GetReplicaLogInfo from the controller to its brokers.

What to ask and what to make of an answer is decided by the pure manager (`kelr.controller.recovery`). Here its
questions travel as real requests, over one connection to each broker, through whatever goes wrong on the way: a link
that is severed, a broker that stands still or dies, and the faults that an operator set.

Source: KIP-966, "Broker Request Sender" (the controller's own sender: when its time is over or the network fails, the
manager is told and asks again in its next round).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kelr.controller import LogInfoAnswered, LogInfoEntry, LogInfoFailed, LogInfoRequest
from kelr.controller.reach import NONE
from kelr.lab.simulated.api import Message
from kelr.lab.simulated.connection import node_client_id
from kelr.lab.simulated.world import HOST, World
from kelr.model import TopicPartition
from kelr.protocol.dialects import REQUEST_LIMIT_REACHED, Dialect
from kelr.protocol.error_codes import error_name
from kelr.protocol.frames import request_frame
from kelr.protocol.messages import replica_log_info

if TYPE_CHECKING:
    from kelr.lab.simulated.server import Server

TIMEOUT_MS = 2000
"""How long a question waits for its answer, as long as other requests between nodes of a quorum do
(controller.quorum.request.timeout.ms); aggressive's window of five seconds then has room for a second try."""
MOST_BYTES = 16 * 1024 * 1024
"""A longer answer is noise: a partition takes 30 bytes or so, and no question has more than some thousands."""
_LOOK_AGAIN_S = 0.02
"""How often a clock that is turned by hand is looked at, as long as a question is under way."""

T = TypeVar("T")


class Sender:
    """Carries the manager's questions to the brokers, and brings their answers back.

    Used from the server's event loop alone.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lines: dict[int, _Line] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._controller = server.world.controller

    def look(self) -> None:
        """Send what the manager wants to ask by now; called whenever something has happened."""
        if self._server.world.controller != self._controller:
            # What the last controller asked ended with it; the new one asks over connections of its own.
            self._controller = self._server.world.controller
            for task in self._under_way:
                task.cancel()
            self.close()
            self._lines.clear()
        for question in self._running.asked():
            task = asyncio.get_running_loop().create_task(self._carry(question))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    def close(self) -> None:
        """End all connections."""
        for line in self._lines.values():
            line.end()

    @property
    def _running(self) -> Any:
        return self._server.world.running

    async def _carry(self, question: LogInfoRequest) -> None:
        try:
            event = await self._answer(question)
            self._server.time_passes()
            self._running.answered(event)
            self._server.look()
        except Exception as error:
            self._server.failures.append(error)

    async def _answer(self, question: LogInfoRequest) -> LogInfoAnswered | LogInfoFailed:
        world, failed = self._server.world, LogInfoFailed(question.broker, question.id)
        if world.spec.log_info is None or question.broker not in world.ports:
            return failed
        line = self._lines.setdefault(question.broker, _Line(world, question.broker))
        request, response = _classes(world)
        try:
            await self._server.follow()  # a broker that has just started listens before anybody asks it
            body = await self._in_time(line.ask(_request(world, request, question)))
        except (OSError, asyncio.IncompleteReadError, TimeoutError, _NoiseError):
            return failed
        if not self._running.linked(world.controller, question.broker):
            return failed  # it was sent before the link broke, and never got here
        try:
            answer = response.decode(body, 0)
            entries = _entries(world, question, answer)
        except Exception:
            return failed  # whatever a decoder makes of noise
        if all(entry.error == REQUEST_LIMIT_REACHED for entry in entries.values()):
            # Nobody is any wiser, and the manager would ask again at once, for ever.
            return failed
        return LogInfoAnswered(question.broker, answer.broker_epoch, entries, question.id)

    async def _in_time(self, doing: Coroutine[Any, Any, T]) -> T:
        """Do something until its time is over, by the cluster's clock.

        Raises:
            TimeoutError: it is.
        """
        clock = self._server.clock
        until_ms = clock.now_ms() + TIMEOUT_MS
        done = asyncio.ensure_future(doing)
        try:
            while not done.done() and (left_ms := until_ms - clock.now_ms()) > 0:
                await asyncio.wait({done}, timeout=_LOOK_AGAIN_S if clock.virtual else left_ms / 1000)
            if not done.done():
                raise TimeoutError
            return done.result()
        finally:
            done.cancel()
            await asyncio.gather(done, return_exceptions=True)


class _NoiseError(Exception):
    """What came is no answer to what was asked."""


class _Line:
    """The controller's connection to one broker; requests on it wait for one another."""

    def __init__(self, world: World, broker: int) -> None:
        self._world = world
        self._broker = broker
        self._turn = asyncio.Lock()
        self._sent = 0
        self._writer: asyncio.StreamWriter | None = None
        self._reader = asyncio.StreamReader()

    async def ask(self, request: Message) -> bytes:
        """Send a request, and give the body of its answer; the connection ends with whatever goes wrong."""
        async with self._turn:
            try:
                return await self._asked(request)
            except BaseException:
                self.end()
                raise

    def end(self) -> None:
        """End the connection, if there is one."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._writer = None

    async def _asked(self, request: Message) -> bytes:
        if self._writer is None or self._reader.at_eof():
            self.end()
            self._reader, self._writer = await asyncio.open_connection(HOST, self._world.ports[self._broker])
        self._sent += 1
        name = node_client_id(self._world.controller)
        self._writer.write(request_frame(request, 0, correlation=self._sent, client_id=name))
        await self._writer.drain()
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        # Correlation id, no tagged fields.
        if not 5 <= size <= MOST_BYTES:
            raise _NoiseError
        correlation, _tags = struct.unpack(">ib", await self._reader.readexactly(5))
        if correlation != self._sent:
            raise _NoiseError
        return await self._reader.readexactly(size - 5)


def _classes(world: World) -> tuple[Message, Message]:
    dialect, key = world.spec.log_info, world.spec.api_key
    assert dialect is not None
    assert key is not None
    return replica_log_info(dialect, key)


def _request(world: World, request: Message, question: LogInfoRequest) -> Message:
    """The question as a request in the cluster's dialect, topic by topic."""
    topics: dict[str, list[int]] = {}
    for address in question.partitions:
        topics.setdefault(address.topic, []).append(address.partition)
    asked = [
        request.TopicPartitions(topic_id=world.topic_id(topic), partitions=partitions)
        for topic, partitions in topics.items()
    ]
    if world.spec.log_info is Dialect.KIP:
        return request(broker_id=question.broker, topic_partitions=asked)
    return request(topic_partitions=asked)


def _entries(world: World, question: LogInfoRequest, answer: Message) -> Mapping[TopicPartition, LogInfoEntry]:
    """What the answer tells of the partitions that were asked for; what is missing in it is asked for again."""
    asked, entries = set(question.partitions), {}
    for topic in answer.topic_partition_log_info_list:
        name = world.topic_of(topic.topic_id)
        for told in topic.partition_log_info:
            address = None if name is None else TopicPartition(name, told.partition)
            if address not in asked:
                continue
            entries[address] = LogInfoEntry(
                told.log_end_offset,
                None if told.last_written_leader_epoch < 0 else told.last_written_leader_epoch,
                told.current_leader_epoch,
                NONE if told.error_code == 0 else error_name(told.error_code),
            )
    return entries
