"""The strict models of kafka-leader-election.sh's JSON file; field names are Kafka's and KIP-966's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kelr.sources.snapshot_lines import Int32, Topic


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class PartitionEntryLine(_Line):
    """One partition, and what is asked for it."""

    topic: Topic
    partition: Int32
    desiredLeader: Int32 | None = None  # noqa: N815 - the KIP's spelling
    minimalReplicas: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None  # noqa: N815


class ElectionFileLine(_Line):
    """The whole file."""

    version: Literal[1] | None = None
    """Older tools of Kafka write it; it says nothing."""
    partitions: tuple[PartitionEntryLine, ...]


FIELDS = frozenset({*PartitionEntryLine.model_fields, *ElectionFileLine.model_fields})
"""The names of all fields there are."""
