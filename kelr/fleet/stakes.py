"""What an election put at stake, as far as somebody had asked the replicas for their logs while nobody led.

While a partition has no leader nothing is appended to it. So what replicas told in that time, in the leader epoch just
before the election, is what they held when one of them was elected.

The figure is how many records the best known log had behind the end of the elected one, where both end in one epoch:
then they are of one line. Where the best log ends in a newer epoch than the elected one, or an end or epoch was not
heard, it is null; and also where neither all replicas were heard nor one that held all that was committed (of ISR or
ELR while nobody led, with ELR on): whoever was not heard may have had more. With ELR off no ISR is emptied
(PartitionChangeBuilder.build): the last one stays in it after an unclean shutdown, though its log may lack what it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from kelr.model import ELR_FEATURE

T = TypeVar("T", pa.RecordBatch, pa.Table)
LOGS = ("topic", "partition", "leader_epoch", "replica", "read_at", "log_end", "last_epoch")
"""What has to be known of log_info."""
LEVELS = ("event", "name", "source", "offset", "after")
"""Of cluster_events, which tell when ELR was on."""
STATES = (
    *("topic", "topic_id", "partition", "leader_epoch", "valid_from", "valid_to", "from_offset"),
    *("replicas", "isr", "elr", "leader", "source"),
)
"""Of partition_states, with their ends."""
FIGURES = ("offsets_at_stake", "stake_source")
ELECTED = ("topic", "topic_id", "partition", "leader_epoch", "at", "offset", "to_leader")
"""Of elections."""

_Wait = tuple[str, int, int]
"""Topic, partition, and the epoch in which nobody led."""


@dataclass(frozen=True, slots=True)
class _Log:
    replica: int
    read_at: int
    """In microseconds since 1970, as all times here."""
    log_end: int
    last_epoch: int | None


@dataclass(frozen=True, slots=True)
class _State:
    topic_id: str | None
    begun: int
    ended: int | None
    offset: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@dataclass(slots=True)
class Stakes:
    """What is known of one cluster."""

    _logs: dict[_Wait, list[_Log]] = field(default_factory=dict)
    _states: dict[_Wait, list[_State]] = field(default_factory=dict)
    _levels: list[tuple[int, bool]] = field(default_factory=list)
    """Where in the log ELR was turned on or off."""

    def take_logs(self, parts: Iterable[pa.Table]) -> bool:
        """Logs that were read; whether there are any."""
        for row in _rows(parts, LOGS):
            if row["leader_epoch"] is not None and row["log_end"] is not None:
                log = _Log(row["replica"], row["read_at"], row["log_end"], row["last_epoch"])
                self._logs.setdefault(_wait(row), []).append(log)
        return bool(self._logs)

    def take_levels(self, parts: Iterable[pa.Table]) -> None:
        """Events of the cluster."""
        for row in _rows((part.filter(pc.equal(part["name"], ELR_FEATURE)) for part in parts), LEVELS):
            if row["event"] == "feature" and row["source"] == "log":
                self._levels.append((row["offset"], int(row["after"] or 0) > 0))

    def take_states(self, parts: Iterable[pa.Table]) -> None:
        """States, after the logs."""
        for row in _rows((part.filter(pc.is_null(part["leader"])) for part in parts), STATES):
            if row["source"] == "log" and _wait(row) in self._logs:
                in_sync = frozenset((*row["isr"], *(row["elr"] or ())))
                state = _State(
                    row["topic_id"],
                    row["valid_from"],
                    row["valid_to"],
                    row["from_offset"],
                    (*row["replicas"],),
                    in_sync,
                )
                self._states.setdefault(_wait(row), []).append(state)

    def added(self, elections: T) -> T:
        """Elections with what was at stake in each; the same object where that is as it was.

        Args:
            elections: with at least the columns `ELECTED` and `FIGURES`.
        """
        places, epochs = elections["partition"].to_pylist(), elections["leader_epoch"].to_pylist()
        waits = zip(elections["topic"].to_pylist(), places, epochs, strict=True)
        asked = [
            place for place, (topic, number, epoch) in enumerate(waits) if (topic, number, epoch - 1) in self._logs
        ]
        before = [elections[name].to_pylist() for name in FIGURES]
        after: list[list[Any]] = [[None] * elections.num_rows for _ in FIGURES]
        if asked:
            for place, row in zip(asked, _rows([_table(elections).take(asked)], ELECTED), strict=True):
                after[0][place], after[1][place] = self._stake(row) or (None, None)
        if after == before:
            return elections
        for name, values in zip(FIGURES, after, strict=True):
            place = elections.schema.get_field_index(name)
            kind = elections.schema.field(place)
            elections = elections.set_column(place, kind, pa.array(values, kind.type))
        return elections

    def _stake(self, election: dict[str, Any]) -> tuple[int, str] | None:
        wait = (election["topic"], election["partition"], election["leader_epoch"] - 1)
        heard: dict[int, tuple[_Log, _State]] = {}
        for log in sorted(self._logs[wait], key=lambda log: (-log.read_at, -log.log_end)):
            state = next((one for one in self._states.get(wait, ()) if _then(log, one, election)), None)
            if state is not None:
                heard.setdefault(log.replica, (log, state))
        own = heard.get(election["to_leader"])
        if own is None or any(log.last_epoch is None for log, _ in heard.values()):
            return None
        logs = [log for log, _ in heard.values()]
        best = max(logs, key=lambda log: (log.last_epoch, log.log_end))
        complete = any(
            log.replica in state.in_sync and self._kept_elr(state.offset, election["offset"])
            for log, state in heard.values()
        )
        unheard = {*own[1].replicas} - heard.keys()
        if (unheard and not complete) or own[0].last_epoch != best.last_epoch:
            return None
        last = datetime.fromtimestamp(max(log.read_at for log in logs) // 1_000_000, UTC)
        return best.log_end - own[0].log_end, f"log_info: {len(logs)} logs read, the last at {last:%Y-%m-%d %H:%M:%S}"

    def _kept_elr(self, from_offset: int, offset: int) -> bool:
        """Whether ELR was on from when nobody led up to the election; not so where no record tells."""
        before = max((one for one in self._levels if one[0] <= from_offset), default=(0, False))
        return before[1] and all(kept for at, kept in self._levels if from_offset < at < offset)


def _then(log: _Log, state: _State, election: dict[str, Any]) -> bool:
    """Whether a log was read while the partition was in that state, before the election."""
    until = election["at"] if state.ended is None else min(state.ended, election["at"])
    return bool(state.topic_id == election["topic_id"] and state.begun <= log.read_at <= until)


def _wait(row: dict[str, Any]) -> _Wait:
    return row["topic"], row["partition"], row["leader_epoch"]


def _rows(parts: Iterable[pa.Table], names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Rows of these columns; times as numbers."""
    for part in parts:
        columns = [part[name] for name in names]
        numbers = [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in columns]
        yield from pa.table(numbers, list(names)).to_pylist()


def _table(rows: Any) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
