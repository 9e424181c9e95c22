"""What idempotent producers sent last, so that a batch that comes twice is written once, and none out of its order.

Kafka keeps this beside each log. Here it is kept by partition with the place of each batch, and counts only as far as
the leader's log still holds the batch: after an election it is that of the new leader's log.

Source: ProducerStateManager, ProducerStateEntry and ProducerAppendInfo of Apache Kafka.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass

from kelr.model import TopicPartition
from kelr.simulation.logs import SimulatedLog
from kelr.sources.records.batches import BatchHeader

REMEMBERED = 5
"""ProducerStateEntry.NUM_BATCHES_TO_RETAIN: how far back a batch is known to be one that came before."""
_KEPT = 1000
"""Batches of one producer in one partition; what an election cuts off leaves the older ones."""
_PRODUCERS = 10_000
_HIGHEST_SEQUENCE = 2**31 - 1
NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch that a leader appended."""

    first_id: int
    base_offset: int
    next_offset: int
    epoch: int
    first_sequence: int
    last_sequence: int

    def lies_in(self, log: SimulatedLog) -> bool:
        """Whether this log holds it, or held it before retention took it."""
        if self.base_offset < log.start:
            return True
        index = self.base_offset - log.start
        return index < len(log.records) and log.records[index].id == self.first_id


class ProducerStates:
    """The last batches of every producer in every partition."""

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[TopicPartition, int], deque[Sent]] = OrderedDict()
        self._next_id = 1000

    def new_id(self) -> int:
        """A producer id that nobody has."""
        self._next_id += 1
        return self._next_id - 1

    def judged(self, address: TopicPartition, log: SimulatedLog, header: BatchHeader) -> Sent | str:
        """The batch that this one repeats, or the name of the error for it; ``NONE`` where it may be appended.

        Args:
            log: the leader's.
            header: of a batch with a producer id.
        """
        assert header.producer_id is not None
        assert header.producer_epoch is not None
        before = [sent for sent in self._sent.get((address, header.producer_id), ()) if sent.lies_in(log)]
        if not before:
            return NONE
        last, first, epoch = before[-1], _sequence(header), header.producer_epoch
        if epoch < last.epoch:
            return "INVALID_PRODUCER_EPOCH"
        if epoch > last.epoch:
            return NONE if first == 0 else "OUT_OF_ORDER_SEQUENCE_NUMBER"
        ends = _after(first, header.last_offset_delta)
        for sent in before[-REMEMBERED:]:
            if sent.epoch == epoch and (sent.first_sequence, sent.last_sequence) == (first, ends):
                return sent
        return NONE if first == _after(last.last_sequence, 1) else "OUT_OF_ORDER_SEQUENCE_NUMBER"

    def appended(self, address: TopicPartition, header: BatchHeader, *, first_id: int, base_offset: int) -> None:
        """A leader appended the batch at this offset; its records have ids from this one on."""
        assert header.producer_id is not None
        assert header.producer_epoch is not None
        key, first = (address, header.producer_id), _sequence(header)
        sent = self._sent.setdefault(key, deque(maxlen=_KEPT))
        self._sent.move_to_end(key)
        if len(self._sent) > _PRODUCERS:
            self._sent.popitem(last=False)
        last = _after(first, header.last_offset_delta)
        next_offset = base_offset + header.last_offset_delta + 1
        sent.append(Sent(first_id, base_offset, next_offset, header.producer_epoch, first, last))


def _sequence(header: BatchHeader) -> int:
    return -1 if header.base_sequence is None else header.base_sequence


def _after(sequence: int, count: int) -> int:
    """Sequence numbers begin anew at 0 behind the highest (DefaultRecordBatch.incrementSequence)."""
    return (sequence + count) % (_HIGHEST_SEQUENCE + 1)
