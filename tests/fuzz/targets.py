"""What is fuzzed: functions of bytes that raise only where a property does not hold.

hypothesis tries them with a few bytes in every run of the tests (`test_targets.py`), atheris for as long as it is let
(`atheris_targets.py`). The first bytes choose what the others are taken for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from kelr.controller import events
from kelr.errors import ConnectError
from kelr.lab.simulated.api import Api, Call, Later
from kelr.lab.simulated.handlers import apis_of
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import LogUnavailable, PartitionState, ReplicaLog
from kelr.protocol.codec import MalformedError, message_class
from kelr.protocol.dialects import Dialect
from kelr.protocol.frames import read_request
from kelr.protocol.messages import FetchResponse, ListOffsetsResponse, replica_log_info
from kelr.simulation.logs import Acks
from kelr.sources.live.broker_dialogue import BrokerDialogue, LogInfoUse
from kelr.sources.live.decode import described_partitions, kinds_of
from kelr.sources.live.page_bytes import Skip, read_page
from kelr.sources.live.reassignments import Reassignments
from kelr.sources.live.tail import TailReader
from kelr.sources.live.transport import Ask, Failure, FailureKind
from kelr.sources.log_info_key import LogInfoKey
from kelr.sources.records.batches import BatchRun
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import read_records
from kelr.sources.unwanted import Look, Unwanted
from tests.fuzz.hostile import makes_sense
from tests.fuzz.messages import answers
from tests.still_ground import StillGround

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
STATE = PartitionState("orders", 0, 2, 5, (1, 2, 3), (2,), topic_id=TOPIC_ID)
LIMIT_BYTES = 1 << 20
MOST_QUESTIONS = 2_000


def answer(data: bytes) -> None:
    """Any answer, decoded to the letter."""
    if len(data) < 2:
        return
    kinds = answers()
    kind, version = kinds[int.from_bytes(data[:2], "big") % len(kinds)]
    with suppress(MalformedError):
        repr(message_class(kind.__name__).decode(data[2:], version))


def page(data: bytes) -> None:
    """A page of partitions, with and without a filter: what comes out could be so."""
    led = frozenset({1, 2})
    for looks in ((), (Look(leader_in=led),), (Look(leader_in=led, well=False),)):
        with suppress(MalformedError, ConnectError):
            skip = Skip(Unwanted(looks)) if looks else None
            found = described_partitions(read_page(data, skip=skip), kinds_of(True, Reassignments()), Reassignments())
            for state in found.partitions:
                assert makes_sense(state), state


def records(data: bytes) -> None:
    """Batches, and their records in every compression, checksums aside."""
    run = BatchRun(data, check_crc=False)
    for at, header in run:
        with suppress(UnreadableBatchError):
            for record in read_records(data, at, header, limit_bytes=LIMIT_BYTES):
                assert header.base_offset <= record.offset <= header.last_offset
    assert run.stop is not None


def _pieces(data: bytes) -> Iterator[bytes]:
    """Bytes behind their lengths; for ever, empty ones at last."""
    at = 0
    while True:
        size = int.from_bytes(data[at : at + 2], "big")
        yield data[at + 2 : at + 2 + size]
        at += 2 + size


class _Broker:
    """Answers whatever is asked with the next bytes."""

    def __init__(self, data: bytes) -> None:
        self._pieces = _pieces(data)
        self.ground = StillGround()
        self.asked = 0

    def answer(self, request: Any) -> Any:
        self.asked += 1
        assert self.asked < MOST_QUESTIONS, "questions without an end"
        name = getattr(request, "name", type(request).__name__)
        kind, version = _response(str(name))
        try:
            return kind.decode(next(self._pieces), version)
        except MalformedError as error:
            return Failure(FailureKind.GARBLED, str(error))

    def exchange(self, _node: Any, request: Any, **_: Any) -> Any:
        return self.answer(request)


@cache
def _response(name: str) -> tuple[Any, int]:
    if name.startswith("Fetch"):
        return FetchResponse, 13
    if name.startswith("ListOffsets"):
        return ListOffsetsResponse, 7
    return replica_log_info(Dialect.KIP, 70)[1], 0


def dialogue(data: bytes) -> None:
    """A broker that answers with these bytes, asked for a log: what is heard could be so, and the questions end."""
    if not data:
        return
    use = LogInfoUse(LogInfoKey(70, Dialect.KIP)) if data[0] & 1 else None
    held = BrokerDialogue(
        2, [STATE], lineage=bool(data[0] & 2), timeout_s=1, clock_ms=lambda: 0, log_info=use, registered_epoch=7
    ).hold()
    broker = _Broker(data[1:])
    answer = None
    try:
        while True:
            wanted = held.send(answer)
            answer = broker.answer(wanted.request) if isinstance(wanted, Ask) else None
    except StopIteration as end:
        (log,) = end.value.values()
    if isinstance(log, LogUnavailable):
        assert log.detail
        return
    assert isinstance(log, ReplicaLog)
    start = log.log_start or 0
    assert 0 <= start <= log.log_end
    assert log.high_watermark is None or 0 <= log.high_watermark <= log.log_end
    ends = [end.end_offset for end in log.lineage or ()]
    assert ends == sorted(ends)
    assert all(0 <= end <= log.log_end for end in ends), log


def tail(data: bytes) -> None:
    """A broker that answers with these bytes, asked for records."""
    broker: Any = _Broker(data)
    reader = TailReader(broker, 2, STATE, start=5, end=100, leader_epoch=5, timeout_s=1)
    last = 4
    for piece in reader:
        header = getattr(piece, "header", None)
        if header is not None:
            assert header.last_offset > last
            last = header.last_offset


@cache
def _simulated() -> tuple[World, tuple[Api, ...]]:
    spec = SimulatedSpec(topics=3, partitions=4)
    world = World(spec, {node: 9000 + node % 1000 for node in (1, 2, 3, 3000)}, cluster_id="fuzzed")
    world.running.ask(events.TopicCreated("orders", ((1, 2, 3), (2, 3, 1))))
    for address in list(world.running.cluster.controller.partitions):
        world.running.produce(address, 5, Acks.ALL)
    return world, tuple(api for _, api in sorted(apis_of(spec).items()))


def request(data: bytes) -> None:
    """A request to a node of a simulated cluster: answered, or no request; the handlers never break."""
    if len(data) < 2:
        return
    world, apis = _simulated()
    api = apis[data[0] % len(apis)]
    low, high = api.versions
    version = low + data[1] % (high - low + 1)
    client = struct.pack(">hhih", api.key, version, 1, 0) + (b"\0" if api.request.is_flexible(version) else b"")
    try:
        asked = read_request(api.request, client + data[2:], version)
    except MalformedError:
        return
    try:
        answer = api.handle(Call(world, 1, asked, version, "fuzz"))
    except ConnectionError:
        return  # the connection ends, as the handler wants it
    if isinstance(answer, Later):
        answer = answer.poll() or answer.expired()
    if answer is not None and not isinstance(answer, bytes):
        answer.encode(version)


TARGETS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one for one in (answer, page, records, dialogue, tail, request)
}
