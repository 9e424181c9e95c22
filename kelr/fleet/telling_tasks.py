"""The tasks that tell logs and read snapshots: how they are made, and what they do in Spark's workers.

A log that is long is read once by one task, which is fast and says what is known at each cut; then its parts are told
side by side, each from what is known where it begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as fn

from kelr.errors import KelrError
from kelr.fleet.cuts import states_before
from kelr.fleet.landing import TELLING
from kelr.fleet.observed import seen
from kelr.fleet.staging import OUTCOMES, STATES, TASK, TOLD, Stager, in_groups
from kelr.fleet.states import State
from kelr.fleet.tasks import Part, Stage, Task, Tasks
from kelr.fleet.telling import Teller
from kelr.fleet.worker import Given, UnreadablePieceError, on_disk
from kelr.replay.records import RecordBatch
from kelr.sources.metadata_log.replaying import check_understood

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from kelr.fleet.lake import Lake
    from kelr.fleet.laying import Piece
    from kelr.fleet.planning import LogWork, Work

PART_BYTES = 32 * 1024 * 1024
"""Of a log that is told in parts: telling costs much more than reading."""
CUTTING = "cutting"
_OF_LAKE = -1
"""The number of the state that the lake has of a cluster."""
_TABLES = {table.name: table for table in TOLD}


# Making tasks.


def tell_all(lake: Lake, stage: Stage, work: Work, *, part_bytes: int) -> None:
    """Let Spark's workers tell all logs and read all snapshots; their rows are in the stage then."""
    kept = lake.read(STATES).select("cluster", fn.lit(_OF_LAKE).alias("state"), "place", "content")
    parted: dict[str, _Parts] = {one.cluster: list(enumerate(one.parts(part_bytes))) for one in work.logs}
    long = [one for one in work.logs if len(parted[one.cluster]) > 1]
    cuts = None
    if long:
        made = [_cutting(number, one, parted[one.cluster]) for number, one in enumerate(long)]
        stage.fill(CUTTING, Tasks(lake.spark, made).rows(kept), cut)
        for row in stage.read(CUTTING, OUTCOMES).collect():
            outcome = json.loads(row["outcome"])
            parted[outcome["cluster"]] = _joined(parted[outcome["cluster"]], outcome["cuts"])
        cuts = _cuts(stage)
    tasks = _Numbering()
    for one in work.logs:
        tasks.log(one, parted[one.cluster])
    for file in work.seen:
        tasks.add(
            {"kind": "seen", "cluster": file.cluster, "last": True},
            [Part(file.path, file.kind, 0, 0, 0, file.size_bytes)],
        )
    states = kept if cuts is None else kept.unionByName(cuts)
    stage.fill(TELLING, Tasks(lake.spark, tasks.made).rows(states), tell)


_Parts: TypeAlias = "list[tuple[int, Sequence[Piece]]]"
"""The parts of a log by their numbers."""


@dataclass(slots=True)
class _Numbering:
    made: list[Task] = field(default_factory=list)

    def log(self, one: LogWork, parts: _Parts) -> None:
        for place, (number, pieces) in enumerate(parts):
            facts = {
                "kind": "log",
                "cluster": one.cluster,
                "last": place + 1 == len(parts),
                "parted": len(parts) > 1,
            }
            state = (one.cluster, number) if number else _first_state(one)
            self.add(facts, [_part(piece) for piece in pieces], state)

    def add(self, facts: dict[str, Any], parts: Sequence[Part], state_of: tuple[str, int] | None = None) -> None:
        self.made.append(Task(len(self.made), facts, parts, state_of))


def _first_state(one: LogWork) -> tuple[str, int] | None:
    return None if one.goes_on_from is None else (one.cluster, _OF_LAKE)


def _part(piece: Piece) -> Part:
    return Part(piece.path, piece.kind, piece.from_offset, piece.to_offset, piece.from_byte, piece.to_byte)


def _cutting(number: int, one: LogWork, parts: _Parts) -> Task:
    facts = {"kind": "log", "cluster": one.cluster, "counts": [len(part) for _, part in parts]}
    return Task(number, facts, [_part(piece) for _, part in parts for piece in part], _first_state(one))


def _joined(parts: _Parts, cuts: Sequence[int]) -> _Parts:
    """One in front of which there can be no cut is told with the one before it."""
    joined: _Parts = [parts[0]]
    for number, part in parts[1:]:
        if number in cuts:
            joined.append((number, part))
        else:
            joined[-1] = (joined[-1][0], (*joined[-1][1], *part))
    return joined


def _cuts(stage: Stage) -> DataFrame:
    """The states at cuts. They were written under the number of the part that each stands in front of."""
    rows = stage.read(CUTTING, STATES)
    return rows.select("cluster", fn.col(TASK).alias("state"), "place", "content")


# What workers do.


def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read long logs once, and say what is known at their cuts."""
    return in_groups(batches, _cut)


def _cut(task: int, rows: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    given = Given(rows)
    facts = given.facts
    pieces = iter(given.pieces)
    parts = [[next(pieces) for _ in range(count)] for count in facts["counts"]] if _whole(given) else []
    found = []
    try:
        states = states_before((_batches(given, part) for part in parts), _state(given))
        for number, state in enumerate(states):
            if number and state is not None:
                found.append(number)
                stager = Stager(number, facts["cluster"])
                yield from stager.content(STATES, _packed(state), {})
    except KelrError:
        # Whoever tells the part in which this is comes to it, too, and says so.
        pass
    yield from Stager(task, facts["cluster"]).outcome({"cuts": found})


def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell logs, or parts of them, and read snapshots."""
    return in_groups(batches, _tell)


def _tell(task: int, rows: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    given = Given(rows)
    stager = Stager(task, given.facts["cluster"])
    outcome: dict[str, Any] = {
        "kind": given.facts["kind"],
        "last": given.facts["last"],
        "paths": [piece["path"] for piece in given.pieces],
        "records": 0,
        "partitions": 0,
        "begun_ms": None,
        "ended_ms": None,
        "notes": [],
    }
    try:
        given.check_whole()
        yield from _log(given, stager, outcome) if given.facts["kind"] == "log" else _seen(given, stager, outcome)
    except KelrError as error:
        outcome["error"] = str(error)
    yield from stager.outcome(outcome)


def _log(given: Given, stager: Stager, outcome: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    teller = Teller(_state(given))
    try:
        for batch in _batches(given, given.pieces):
            _count(batch, outcome)
            for told in teller.take(batch):
                yield from stager.add(_TABLES[told.table], told.row)
    except UnreadablePieceError as error:
        if given.facts["parted"] or teller.image.at is None:
            raise
        # What comes before is told, as a node that starts would take it.
        outcome["stopped"] = {"path": error.path, "text": error.why}
    for told in teller.finish(ended=given.facts["last"]):
        yield from stager.add(_TABLES[told.table], told.row)
    outcome["next_offset"] = 0 if teller.image.at is None else teller.image.at.offset + 1
    outcome["partitions"] = sum(len(topic.partitions) for topic in teller.image.topics.values())
    if given.facts["last"]:
        outcome["notes"] = check_understood(teller.image, name=f"the metadata log of cluster {stager.cluster}")
        state = teller.state()
        if state is not None:
            yield from stager.content(STATES, _packed(state), {})


def _seen(given: Given, stager: Stager, outcome: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    (piece,) = given.pieces
    try:
        for table, row in on_disk(given, piece["path"], seen):
            at_ms = row.get("valid_from")
            if at_ms is not None:
                outcome["begun_ms"] = outcome["ended_ms"] = at_ms
                outcome["partitions"] += 1
            yield from stager.add(table, row)
    except OSError as error:
        raise UnreadablePieceError(piece["path"], f"it cannot be read: {error.strerror or error}") from error


def _count(batch: RecordBatch, outcome: dict[str, Any]) -> None:
    if batch.checkpoint_end is None:
        outcome["records"] += len(batch.records)
    if outcome["begun_ms"] is None:
        outcome["begun_ms"] = batch.timestamp_ms
    outcome["ended_ms"] = batch.timestamp_ms


def _batches(given: Given, pieces: Sequence[Mapping[str, Any]]) -> Iterator[RecordBatch]:
    for piece in pieces:
        yield from given.batches(dict(piece))


def _whole(given: Given) -> bool:
    return len(given.pieces) >= int(given.facts["parts"])


def _state(given: Given) -> State | None:
    """The state that the task begins with. Raises BadInputError."""
    if given.state is None:
        return None
    size = int.from_bytes(given.state[:_SIZE])
    beside, checkpoint = given.state[_SIZE : _SIZE + size], given.state[_SIZE + size :]
    return State.read({"beside.json": beside, "checkpoint": checkpoint})


def _packed(state: State) -> bytes:
    return len(state.beside).to_bytes(_SIZE) + state.beside + state.checkpoint


_SIZE = 8
"""Bytes of the length in front of what is beside a checkpoint."""
