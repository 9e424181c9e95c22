"""A Fetch that wants no records: what is asked of a log, and what the answer says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kelr.model import EpochEnd, TopicPartition
from kelr.protocol.error_codes import error_name
from kelr.sources.live import requests
from kelr.sources.live.decode import topic_id_text
from kelr.sources.live.epochs import Above, Below
from kelr.sources.live.failures import NONE
from kelr.sources.live.log_ends import End
from kelr.sources.live.transport import Message

_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


@dataclass(frozen=True, slots=True)
class Position:
    """An answer about no epoch: where the log stands."""

    high_watermark: int | None
    log_start: int | None
    last_stable_offset: int | None


Fetched = Above | Below | Position | str
"""What a Fetch said of one partition; a str is the name of the error."""


def probe(end: End, epoch: int) -> requests.Probe:
    return requests.Probe(
        end.partition.address, end.partition.topic_id, end.leader_epoch, requests.FAR_OFFSET, last_epoch=epoch
    )


def position_of(end: End) -> requests.Probe:
    """At the log end, without an epoch: no records, but where the log stands."""
    return requests.Probe(end.partition.address, end.partition.topic_id, end.leader_epoch, end.log_end, last_epoch=None)


def answers_to(probes: Sequence[requests.Probe], answer: Message) -> dict[TopicPartition, Fetched]:
    """For each probe what a Fetch answer says, or Kafka's name of why it says nothing."""
    error = error_name(answer.error_code)
    if error != NONE:
        return {probe.address: error for probe in probes}
    names = {probe.topic_id: probe.address.topic for probe in probes}
    found = {
        TopicPartition(_topic_name(answer, topic, names), partition.partition_index): _fetched(partition)
        for topic in answer.responses
        for partition in topic.partitions
    }
    return {
        probe.address: _possible(probe, found.get(probe.address, "the answer leaves this partition out"))
        for probe in probes
    }


def _possible(probe: requests.Probe, said: Fetched) -> Fetched:
    """What was said, unless it cannot be so: the epoch told is at most the one asked about, and ends where a log can.

    Without it a search for the newest epoch goes on for as long as somebody answers.
    """
    if not isinstance(said, Below):
        return said
    asked, end = probe.last_epoch, said.end
    possible = asked is not None and end.epoch <= asked and 0 <= end.end_offset < requests.FAR_OFFSET
    return said if possible else "the answer makes no sense"


def _topic_name(answer: Message, topic: Message, names: dict[str | None, str]) -> str:
    if answer.version < 13:
        return str(topic.topic)
    return names.get(topic_id_text(topic.topic_id), "")


def _fetched(partition: Message) -> Fetched:
    error = error_name(partition.error_code)
    if error == _OUT_OF_RANGE:
        return Above()
    if error != NONE:
        return error
    high_watermark, log_start = _known(partition.high_watermark), _known(partition.log_start_offset)
    last_stable_offset = _known(partition.last_stable_offset)
    diverging = partition.diverging_epoch
    if diverging is None or diverging.epoch < 0:
        return Position(high_watermark, log_start, last_stable_offset)
    end = EpochEnd(diverging.epoch, diverging.end_offset)
    return Below(end, high_watermark, log_start, last_stable_offset)


def _known(offset: int) -> int | None:
    return offset if offset >= 0 else None
