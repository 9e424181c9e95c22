"""Topics and their partitions as the bytes of Metadata's and DescribeTopicPartitions' answers.

A million partitions are a few hundred different ones: those of the topics that are alike differ in their number alone.
So the bytes of each kind of partition are made once, those of a topic's partitions once for each kind that its first
one can have, and both are kept for as long as the controller writes nothing. The answers are those that the codec
would encode.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from uuid import UUID
from weakref import WeakKeyDictionary

from kelr.controller import ControllerState
from kelr.lab.simulated.api import NO_LEADER, is_internal, offline
from kelr.lab.simulated.world import Seen, World
from kelr.model import PartitionState, TopicPartition
from kelr.protocol.codec import uvarint_bytes
from kelr.simulation.alike import STAND_IN

# Pieces of Kafka's encoding, for the answers that are too long to be made of objects.
#
# Source: Kafka's protocol guide, "Protocol Primitive Types".


int16 = struct.Struct(">h").pack
int32 = struct.Struct(">i").pack
NO_TAGS = b"\x00"


def string(text: str, *, flexible: bool) -> bytes:
    """COMPACT_STRING, or STRING where the message is not flexible."""
    encoded = text.encode("utf-8", "surrogatepass")
    return (uvarint_bytes(len(encoded) + 1) if flexible else int16(len(encoded))) + encoded


def length(count: int, *, flexible: bool) -> bytes:
    """How many elements an array has."""
    return uvarint_bytes(count + 1) if flexible else int32(count)


@lru_cache(maxsize=1 << 14)
def int32s(numbers: Sequence[int], *, flexible: bool) -> bytes:
    """An array of INT32; `numbers` has to be a tuple."""
    return length(len(numbers), flexible=flexible) + struct.pack(f">{len(numbers)}i", *numbers)


MOST_KEPT_BYTES = 64 * 1024 * 1024
"""What is kept of topics' partitions, at most."""
_AT_ONCE = 1 << 14
"""Partitions whose pieces are in memory at the same time."""

Ends: TypeAlias = tuple[bytes, bytes]
"""A partition's bytes before and after its number."""


@dataclass(frozen=True, slots=True)
class Form:
    """How one version of an answer encodes a topic."""

    flexible: bool
    has_id: bool
    has_internal: bool
    has_operations: bool
    ends: Callable[[Seen, PartitionState], Ends]

    def topic(
        self, name: str | None, topic_id: UUID, body: bytes, count: int, *, error: int, internal: bool, operations: int
    ) -> bytes:
        """One topic; `body` is its partitions, of which there are `count`."""
        flexible = self.flexible
        head = [int16(error), b"\x00" if name is None else string(name, flexible=flexible)]
        if self.has_id:
            head.append(topic_id.bytes)
        if self.has_internal:
            head.append(b"\x01" if internal else b"\x00")
        head += (length(count, flexible=flexible), body)
        if self.has_operations:
            head.append(int32(operations))
        if flexible:
            head.append(NO_TAGS)
        return b"".join(head)


class TopicBytes:
    """What is kept of one world's topics, in one form."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._of: ControllerState | None = None
        self._kinds: list[Ends] = []
        self._whole: dict[int | str, bytes] = {}
        self._bytes = 0
        self._numbers: list[bytes] = []

    def topic(self, seen: Seen, name: str, begin: int, end: int, operations: int) -> bytes:
        """A topic with its partitions from `begin` up to `end`."""
        count = max(0, end - begin)
        body = self._body(seen, name, begin, end) if count else b""
        return self.form.topic(
            name, seen.world.topic_id(name), body, count, error=0, internal=is_internal(name), operations=operations
        )

    def _body(self, seen: Seen, name: str, begin: int, end: int) -> bytes:
        self._begin(seen)
        world = seen.world
        alike = None if name in world.partly_alike else world.alike_index(name)
        if (begin, end) != (0, seen.partitions(name)):
            return self._made(seen, name, alike, begin, end)
        key: int | str = name if alike is None else world.alike.kind(alike, 0)
        found = self._whole.get(key)
        if found is None:
            found = self._made(seen, name, alike, begin, end)
            self._keep(key, found)
        return found

    def _begin(self, seen: Seen) -> None:
        """What was kept is of no use once the controller has written something."""
        controller, world = seen.controller, seen.world
        if controller is self._of:
            return
        self._of, self._bytes = controller, 0
        self._whole.clear()
        stand_ins = range(len(world.alike.assignments)) if world.alike.topics else ()
        states = (controller.partitions[TopicPartition(STAND_IN, number)] for number in stand_ins)
        self._kinds = [self.form.ends(seen, state) for state in states]

    def _keep(self, key: int | str, body: bytes) -> None:
        if len(body) > MOST_KEPT_BYTES:
            return
        if self._bytes + len(body) > MOST_KEPT_BYTES:
            self._whole.clear()
            self._bytes = 0
        self._whole[key] = body
        self._bytes += len(body)

    def _made(self, seen: Seen, name: str, alike: int | None, begin: int, end: int) -> bytes:
        pieces = []
        for first in range(begin, end, _AT_ONCE):
            last = min(end, first + _AT_ONCE)
            parts = (
                self._one_by_one(seen, name, first, last)
                if alike is None
                else self._dealt(seen.world, alike, first, last)
            )
            pieces.append(b"".join([piece for before, number, after in parts for piece in (before, number, after)]))
        return b"".join(pieces)

    def _dealt(self, world: World, alike: int, begin: int, end: int) -> Iterator[tuple[bytes, bytes, bytes]]:
        kinds, first = self._kinds, world.alike.kind(alike, 0)
        for number, encoded in enumerate(self._encoded(begin, end), first + begin):
            before, after = kinds[number % len(kinds)]
            yield before, encoded, after

    def _one_by_one(self, seen: Seen, name: str, begin: int, end: int) -> Iterator[tuple[bytes, bytes, bytes]]:
        known = seen.controller.partitions
        for number, encoded in enumerate(self._encoded(begin, end), begin):
            address = TopicPartition(name, number)
            state = known.get(address)
            if state is None:
                state = known[seen.world.alike.stand_in(address) or address]
            before, after = self.form.ends(seen, state)
            yield before, encoded, after

    def _encoded(self, begin: int, end: int) -> list[bytes]:
        """The numbers of partitions."""
        while len(self._numbers) < min(end, _AT_ONCE):
            self._numbers.append(int32(len(self._numbers)))
        return self._numbers[begin:end] if end <= len(self._numbers) else [int32(one) for one in range(begin, end)]


_KEPT: WeakKeyDictionary[World, dict[tuple[Form, bool], TopicBytes]] = WeakKeyDictionary()


def topic_bytes(seen: Seen, form: Form) -> TopicBytes:
    """What is kept of this world in this form, for those who see it as it is and for those who do not."""
    kept = _KEPT.setdefault(seen.world, {})
    key = form, seen.outdated
    if key not in kept:
        kept[key] = TopicBytes(form)
    return kept[key]


# DescribeTopicPartitions v0.


def _describe_ends(seen: Seen, state: PartitionState) -> Ends:
    leader = state.leader if state.leader in seen.brokers else None
    lists = (
        state.replicas,
        state.isr,
        state.elr or (),
        state.last_known_elr or (),
        tuple(offline(seen.brokers, state)),
    )
    after = [int32(NO_LEADER if leader is None else leader), int32(state.leader_epoch)]
    return int16(0), b"".join([*after, *(int32s(one, flexible=True) for one in lists), NO_TAGS])


DESCRIBE = Form(flexible=True, has_id=True, has_internal=True, has_operations=True, ends=_describe_ends)
