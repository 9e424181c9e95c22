"""The audit log: one JSON line for each partition or topic that was changed, and by whom, for what, with what result.

Several kelr may write at once: each takes the file's lock for the moment of its writing. Every line is on the disk
before `append` returns. Nothing secret goes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import NoneType
from typing import Any

from kelr import __version__
from kelr.durable import AppendOnlyFile, read_lines
from kelr.errors import BadInputError, RefusedError
from kelr.files import FILES, Files
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery.actor import Actor
from kelr.recovery.places import audit_file
from kelr.sources.ground import MACHINE, Ground

_LOCK_TIMEOUT_S = 60.0
"""Longer than the lines of the largest batch take on a slow disk, at 30 ms each."""
_LOCK_STEP_S = 0.02
_FIRST_MS, _LAST_MS = 0, 253_402_300_799_999
"""From 1970 to the end of the year 9999, in milliseconds."""


def by(who: Actor) -> dict[str, str | None]:
    """The fields of an `AuditRecord` that say who it was, and with which kelr."""
    return {"version": __version__, "user": who.user, "host": who.host, "principal": who.principal}


def append(state_directory: Path, *records: AuditRecord, ground: Ground = MACHINE) -> None:
    """Add lines to the audit log; with none, make sure that it can be written.

    Raises:
        UsageError: it cannot be written.
        RefusedError: another process has held its lock for a minute.
    """
    with _opened(audit_file(state_directory), ground) as file:
        file.append(*({"when": record.when, **asdict(record)} for record in records))


def read(
    state_directory: Path,
    *,
    since_ms: int | None = None,
    topics: Sequence[str] | None = None,
    cluster_id: str | None = None,
    files: Files = FILES,
) -> Iterator[AuditRecord]:
    """The audit log's lines, oldest first; none where there is no log yet.

    Args:
        since_ms: leave out what is older.
        topics: leave out other topics.
        cluster_id: leave out other clusters; None takes them all.

    Raises:
        BadInputError: a line is no audit record; names the line.
    """
    path = audit_file(state_directory)
    if not files.exists(path):
        return
    for number, line in read_lines(path, "audit log", files):
        record = _record(line, path, number)
        in_time = since_ms is None or record.at_ms >= since_ms
        if in_time and (topics is None or record.topic in topics) and cluster_id in {None, record.cluster_id}:
            yield record


def _opened(path: Path, ground: Ground) -> AppendOnlyFile:
    deadline = ground.steady_s() + _LOCK_TIMEOUT_S
    while True:
        try:
            return AppendOnlyFile(path, ground.files)
        except RefusedError:
            if ground.steady_s() > deadline:
                raise
            ground.sleep(_LOCK_STEP_S)


_FIELDS = frozenset(AuditRecord.__dataclass_fields__)
_TEXTS = ("command", "topic", "user", "host", "result", "version", "text")
_TEXTS_OR_NONE = (
    "cluster_id",
    "principal",
    "plan_id",
    "journal",
    "election",
    "method",
    "force_reason",
    "error",
    "boot_id",
)
_NUMBERS_OR_NONE = ("partition", "wanted", "boot_ms")
_TRUE_FALSE_OR_NONE = ("asked",)
_OBJECTS = ("before", "after", "consent")


def _record(line: Mapping[str, Any], path: Path, number: int) -> AuditRecord:
    """Fields that a newer kelr adds are left out."""
    try:
        known = {name: value for name, value in line.items() if name in _FIELDS}
        record = AuditRecord(**{**known, "what": AuditWhat(known["what"])})
        wrong = next(_wrong(record), None)
    except KeyError as error:
        wrong = f"it lacks {error}"
    except (TypeError, ValueError) as error:
        wrong = str(error)
    if wrong is not None:
        raise BadInputError(
            f"{path}, line {number}: not an audit record: {wrong}",
            next_step="nothing but kelr writes this file: keep it as it is elsewhere, and take that line out of it",
            code="record-garbled",
        )
    return record


def _wrong(record: AuditRecord) -> Iterator[str]:
    """Fields of another type than their own, and a time that no calendar has."""
    yield from (f"{name} is no text" for name in _TEXTS if not isinstance(getattr(record, name), str))
    yield from (
        f"{name} is no text" for name in _TEXTS_OR_NONE if not isinstance(getattr(record, name), str | NoneType)
    )
    yield from (
        f"{name} is no number" for name in _NUMBERS_OR_NONE if not _is_number(getattr(record, name), or_none=True)
    )
    yield from (
        f"{name} is neither true nor false"
        for name in _TRUE_FALSE_OR_NONE
        if not isinstance(getattr(record, name), bool | NoneType)
    )
    yield from (f"{name} is no object" for name in _OBJECTS if not isinstance(getattr(record, name), dict))
    if not isinstance(record.loss, dict | NoneType):
        yield "loss is no object"
    if not isinstance(record.evidence, list) or not all(isinstance(one, dict) for one in record.evidence):
        yield "evidence is no list of objects"
    if not _is_number(record.at_ms) or not _FIRST_MS <= record.at_ms <= _LAST_MS:
        yield f"at_ms is {record.at_ms!r}, no time since 1970"


def _is_number(value: object, *, or_none: bool = False) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (or_none and value is None)
