"""kafka-leader-election.sh's JSON file, with the fields that KIP-966 adds.

``{"partitions": [{"topic": "orders", "partition": 0, "desiredLeader": 2, "minimalReplicas": 3}]}``; the last two are
optional. Source: LeaderElectionCommand.parseReplicaElectionData of Apache Kafka, which refuses a file without
``partitions`` and partitions that are listed twice; KIP-966, "kafka-leader-election.sh".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kelr.errors import BadInputError
from kelr.files import FILES, Files
from kelr.model import ElectionRequest, ElectionType, TopicPartition
from kelr.model.fields import Count, Int32, Topic
from kelr.recovery.json_file import STRICT, adapter, first_problem, read_json

MAX_ELECTION_FILE_BYTES = 64 * 1024 * 1024
_EXAMPLE = 'write {"partitions": [{"topic": "orders", "partition": 0}]}'


@dataclass(frozen=True, slots=True)
class ElectionEntry:
    """What the file asks for one partition."""

    desired_leader: int | None = None
    minimal_replicas: int | None = None

    def wish(self, election: ElectionType) -> ElectionRequest:
        """The wish, for the election type of the command line, which holds for the whole file."""
        return ElectionRequest(election, self.desired_leader, self.minimal_replicas)


@dataclass(frozen=True, slots=True)
class _Line:
    """One partition of the file; field names are Kafka's and KIP-966's."""

    topic: Topic
    partition: Int32
    desiredLeader: Int32 | None = None  # noqa: N815 - the KIP's spelling
    minimalReplicas: Count | None = None  # noqa: N815


@dataclass(frozen=True, slots=True)
class _File:
    __pydantic_config__ = STRICT

    partitions: tuple[_Line, ...]
    version: Literal[1] | None = None
    """Older tools of Kafka write it; it says nothing."""


def read_election_file(path: Path, files: Files = FILES) -> Mapping[TopicPartition, ElectionEntry]:
    """The partitions of the file with what is asked for each, in the file's order.

    Raises:
        BadInputError: not such a file; names the file and the place in it.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    text, document = read_json(path, "election file", max_bytes=MAX_ELECTION_FILE_BYTES, files=files)
    if not isinstance(document, dict) or "partitions" not in document:
        raise BadInputError(
            f'{path}: replica election data is missing the "partitions" field', next_step=_EXAMPLE, code="election-file"
        )
    try:
        file = adapter(_File).validate_json(text)
    except ValidationError as error:
        raise BadInputError(
            f"{path}: {first_problem(error, _File)}", next_step=_EXAMPLE, code="election-file"
        ) from error
    if not file.partitions:
        raise BadInputError(
            f"{path}: replica election data is empty: it lists no partition", next_step=_EXAMPLE, code="election-file"
        )
    found: dict[TopicPartition, ElectionEntry] = {}
    for at, line in enumerate(file.partitions):
        address = TopicPartition(line.topic, line.partition)
        if address in found:
            raise BadInputError(
                f"{path}: partitions[{at}]: replica election data contains duplicate partitions: {address}",
                next_step="list each partition once",
                code="election-file",
            )
        found[address] = ElectionEntry(line.desiredLeader, line.minimalReplicas)
    return found
