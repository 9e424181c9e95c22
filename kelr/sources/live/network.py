"""The real transport: kafka-python's connection manager on its own event loop, driven from the caller's thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.failures import failure_of
from kelr.sources.live.names import LOOKUP_TIMEOUT_S, AddressBook
from kelr.sources.live.questions import Question, for_kafka_python
from kelr.sources.live.transport import (
    Answer,
    Dialogue,
    Failure,
    FailureKind,
    Message,
    NodeAddress,
    NodeId,
    Pause,
)

if TYPE_CHECKING:
    pass

T = TypeVar("T")

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""A longer frame is taken for garbage: Metadata of a million partitions stays below it."""
MAX_PARALLEL_DIALOGUES = 64
CONNECT_TIMEOUT_S = 10.0
"""How long connecting may take, TLS and SASL included, where the request's own timeout is longer."""


class KafkaTransport:
    """`Transport` over kafka-python. Bootstrap servers are the nodes ``bootstrap-0``, ``bootstrap-1``, ..."""

    def __init__(self, settings: ConnectionSettings) -> None:
        from kafka.protocol.metadata import MetadataResponse  # noqa: PLC0415

        from kelr.sources.live.manager import ConnectionManager, EventLoop  # noqa: PLC0415

        self._settings = settings
        config = settings.kafka_python()
        # Python's loop warns of slow steps, and decoding a big page is one.
        self._loop = EventLoop(client_id=settings.client_id, slow_task_threshold_secs=0)
        self._names = AddressBook()
        self._manager = ConnectionManager(
            self._loop,
            self._names.by_host,
            receive_message_max_bytes=MAX_ANSWER_BYTES,
            request_timeout_ms=int(settings.timeout_s * 1000),
            **config,
        )
        # kafka-python shuffles them, and a name has to mean the same server in every transport (`QuickTransport`).
        self._manager.cluster._bootstrap_brokers = {
            f"bootstrap-{number}": MetadataResponse.MetadataResponseBroker(f"bootstrap-{number}", host, port, None)
            for number, (host, port) in enumerate(settings.bootstrap_servers)
        }
        self._closed = False

    def bootstrap_nodes(self) -> Mapping[NodeId, NodeAddress]:
        return {
            broker.node_id: NodeAddress(broker.host, broker.port)
            for broker in self._manager.cluster.bootstrap_brokers()
        }

    def add_nodes(self, nodes: Mapping[int, NodeAddress]) -> None:
        from kafka.protocol.metadata import MetadataResponse  # noqa: PLC0415

        broker = MetadataResponse.MetadataResponseBroker
        answer = MetadataResponse(
            version=8,
            throttle_time_ms=0,
            brokers=[broker(node, address.host, address.port, None, version=8) for node, address in nodes.items()],
            cluster_id=None,
            controller_id=-1,
            topics=[],
        )
        self._manager.cluster.update_metadata(answer)
        self.resolve(nodes.items(), timeout_s=min(LOOKUP_TIMEOUT_S, self._settings.timeout_s))

    def resolve(self, nodes: Iterable[tuple[NodeId, NodeAddress]], *, timeout_s: float) -> None:
        """Look all names up at once, in threads, because a lookup inside the event loop would stop every connection."""
        self._names.resolve(nodes, timeout_s=timeout_s)

    def exchange(self, node: NodeId, request: Message, *, timeout_s: float | None = None) -> Answer:
        return self._manager.run(self._exchange, node, request, timeout_s or self._settings.timeout_s)

    def send_ahead(self, node: NodeId, request: Message) -> None:
        """Nothing: kafka-python's loop runs, and so sends, only while somebody waits."""

    def exchange_all(self, node: NodeId, requests: Sequence[Message], *, timeout_s: float) -> Sequence[Answer]:
        return self._manager.run(self._exchange_all, node, requests, timeout_s)  # type: ignore[no-any-return]

    def first_answer(
        self, nodes: Sequence[NodeId], request: Callable[[], Message], *, timeout_s: float
    ) -> tuple[NodeId, Message] | Mapping[NodeId, Failure]:
        return self._manager.run(self._first_answer, nodes, request, timeout_s)  # type: ignore[no-any-return]

    def run(self, dialogues: Mapping[NodeId, Callable[[], Dialogue[T]]]) -> Mapping[NodeId, T]:
        return self._manager.run(self._run_all, dialogues)  # type: ignore[no-any-return]

    def pause(self, seconds: float) -> None:
        self._manager.run(self._sleep, seconds)

    def now_s(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._manager.close()
            self._loop.close()

    async def _exchange(self, node: NodeId, request: Message, timeout_s: float) -> Answer:
        """One request, answered or failed within `timeout_s`, connecting first where needed."""
        if node in self._names.unresolved:
            return self._names.unresolved[node]
        deadline = time.monotonic() + timeout_s
        connection = None
        try:
            # Each node settles its own versions: brokers of a cluster that is being upgraded differ.
            self._manager.broker_version_data = None
            connection = self._manager.get_connection(
                node,
                timeout_ms=1000 * min(CONNECT_TIMEOUT_S, timeout_s),
                refresh_metadata_on_err=False,
            )
            left_ms = max(1.0, 1000 * (deadline - time.monotonic()))
            # kafka-python bounds the TCP connect and each request, but no TLS handshake: so the whole is bounded here.
            message = for_kafka_python(request) if isinstance(request, Question) else request
            future = connection.send_request(message, request_timeout_ms=left_ms)
            return await self._manager.wait_for(future, left_ms)
        except Exception as error:
            failure = failure_of(error)
            if failure.kind is FailureKind.TIMED_OUT and connection is not None and not connection.closed:
                connection.close(error)
            return failure

    async def _exchange_all(self, node: NodeId, requests: Sequence[Message], timeout_s: float) -> Sequence[Answer]:
        answers = [self._loop.call_soon_with_future(self._exchange, node, request, timeout_s) for request in requests]
        return [await answer for answer in answers]

    async def _first_answer(
        self, nodes: Sequence[NodeId], request: Callable[[], Message], timeout_s: float
    ) -> tuple[NodeId, Message] | Mapping[NodeId, Failure]:
        from kafka.future import Future  # noqa: PLC0415

        failures: dict[NodeId, Failure] = {}
        won: Any = Future()

        async def attempt(node: NodeId) -> None:
            answer = await self._exchange(node, request(), timeout_s)
            if isinstance(answer, Failure):
                failures[node] = answer
                if len(failures) == len(nodes) and not won.is_done:
                    won.success(failures)
            elif not won.is_done:
                won.success((node, answer))

        for node in nodes:
            self._loop.call_soon_with_future(attempt, node)
        return await won  # type: ignore[no-any-return]

    async def _run_all(self, dialogues: Mapping[NodeId, Callable[[], Dialogue[T]]]) -> Mapping[NodeId, T]:
        results: dict[NodeId, T] = {}
        waiting = list(dialogues.items())

        async def work() -> None:
            while waiting:
                node, start = waiting.pop(0)
                results[node] = await self._hold(node, start())

        workers = [self._loop.call_soon_with_future(work) for _ in range(min(MAX_PARALLEL_DIALOGUES, len(waiting)))]
        for worker in workers:
            await worker
        return {node: results[node] for node in dialogues}

    async def _hold(self, node: NodeId, dialogue: Dialogue[T]) -> T:
        answer: Any = None
        while True:
            try:
                wanted = dialogue.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(wanted, Pause):
                await self._sleep(wanted.seconds)
                answer = None
            else:
                answer = await self._exchange(node, wanted.request, wanted.timeout_s or self._settings.timeout_s)

    async def _sleep(self, seconds: float) -> None:
        await self._loop.sleep(seconds)
