"""The write-ahead journal of one plan, or one hold: what was about to be asked of the cluster, and what it answered.

A line is on the disk before the request that it tells of is sent. Whatever moment a crash strikes, the lines say which
partitions may have another order of replicas than they should, and which elections may still be under way;
`kelr.recovery.restoring` puts right what they say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kelr import __version__
from kelr.controller import Election
from kelr.durable import AppendOnlyFile
from kelr.files import FILES, Files
from kelr.model import ElectionType, TopicPartition
from kelr.model.plan import Applied, Plan
from kelr.recovery.actor import Actor
from kelr.recovery.consent import Confirmation
from kelr.recovery.json_file import adapter
from kelr.recovery.places import cluster_directory
from kelr.recovery.written_config import WrittenConfig
from kelr.sources.ground import Ground

VERSION = 1
JOURNAL_DIRECTORY = "journals"
LOCK_FILE = "lock"


class JournalStep(StrEnum):
    """Which request a line tells of."""

    REORDER = "reorder"
    ELECT = "elect"
    RESTORE = "restore"
    CONFIG = "config"


class Line(StrEnum):
    """What a line is."""

    BEGIN = "begin"
    INTENT = "intent"
    """A request is about to be sent."""
    ANSWER = "answer"
    RESTORED = "restored"
    """These partitions were read, and have the order that they should have."""
    SEEN = "seen"
    """These partitions have an order by which another kelr may be electing."""
    APPLIED = "applied"
    """A planned election's result."""
    END = "end"
    """Nothing to repair."""


class Ending(StrEnum):
    """How a journal ended."""

    APPLIED = "applied"
    RESUMED = "resumed"
    UNDONE = "undone"


Orders = Mapping[TopicPartition, tuple[int, ...]]


class Journal:
    """The writing side. Use as a context manager; closing it does not end it.

    Raises (every method that writes):
        UsageError: the line could not be written; then the request must not be sent.
    """

    def __init__(self, file: AppendOnlyFile, ground: Ground, by: Mapping[str, Any] | None = None) -> None:
        self._file = file
        self._ground = ground
        self._by = {} if by is None else {"by": by}

    @property
    def path(self) -> Path:
        """Its file."""
        return self._file.path

    @classmethod
    def begin(
        cls,
        path: Path,
        ground: Ground,
        *,
        cluster_id: str | None,
        who: Actor,
        command: str,
        plan: Plan | None,
        plan_id: str | None,
        consented: Confirmation,
        keep_order: bool = False,
    ) -> Self:
        """A new journal with its first line. A hold has no plan."""
        journal = cls(AppendOnlyFile(path, ground.files), ground)
        try:
            journal._write(
                Line.BEGIN,
                format="kelr-journal",
                version=VERSION,
                kelr=__version__,
                cluster_id=cluster_id,
                user=who.user,
                host=who.host,
                principal=who.principal,
                command=command,
                plan_id=plan_id,
                plan=None if plan is None else _readable(plan),
                keep_order=keep_order,
                yes=consented.yes,
                accept_loss=None if consented.accept_loss is None else str(consented.accept_loss),
                force_reason=consented.force_reason,
            )
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def reopen(cls, path: Path, ground: Ground, who: Actor, command: str) -> Self:
        """An earlier journal, to go on with. Raises RefusedError where another process holds it.

        Args:
            who: goes on with it; each request says so.
        """
        return cls(AppendOnlyFile(path, ground.files), ground, {**asdict(who), "command": command})

    def intend_orders(self, step: JournalStep, orders: Orders) -> None:
        """AlterPartitionReassignments is about to be sent: to reorder, or to restore."""
        changes = [{**_names(at), "replicas": list(order)} for at, order in sorted(orders.items())]
        self._write(Line.INTENT, step=step, changes=changes)

    def intend_election(self, election: Election | ElectionType, partitions: Iterable[TopicPartition]) -> None:
        """ElectLeaders is about to be sent."""
        changes = [_names(at) for at in sorted(partitions)]
        self._write(Line.INTENT, step=JournalStep.ELECT, election=election, changes=changes)

    def intend_designation(self, leaders: Mapping[TopicPartition, int]) -> None:
        """ElectLeaders v3 is about to be sent, which names the leaders."""
        changes = [{**_names(at), "leader": leader} for at, leader in sorted(leaders.items())]
        self._write(Line.INTENT, step=JournalStep.ELECT, election=ElectionType.DESIGNATION, changes=changes)

    def intend_config(self, config: WrittenConfig, *, new: str | None, restores: bool) -> None:
        """IncrementalAlterConfigs is about to be sent; None is the lack of an own value."""
        self._write(Line.INTENT, step=JournalStep.CONFIG, **_whose(config), old=config.old, new=new, restores=restores)

    def answer(self, step: JournalStep, answers: Mapping[TopicPartition, str]) -> None:
        """What Kafka answered, partition by partition."""
        self._write(Line.ANSWER, step=step, answers=[{**_names(at), "error": e} for at, e in sorted(answers.items())])

    def answer_config(self, config: WrittenConfig, error: str) -> None:
        self._write(Line.ANSWER, step=JournalStep.CONFIG, **_whose(config), error=error)

    def restored(self, partitions: Iterable[TopicPartition]) -> None:
        """These were read and are in order, so that none of their requests can take effect any more."""
        self._write(Line.RESTORED, partitions=[_names(at) for at in sorted(partitions)])

    def seen(self, orders: Orders) -> None:
        """These partitions have an order by which another kelr may be electing: it is looked at again later."""
        self._write(Line.SEEN, orders=[{**_names(at), "replicas": list(order)} for at, order in sorted(orders.items())])

    def config_restored(self, config: WrittenConfig) -> None:
        """The config was read and is what it was."""
        self._write(Line.RESTORED, **_whose(config))

    def applied(self, results: Sequence[Applied], *, audited: bool = True) -> None:
        """What became of elections, and whether the audit log has it: where not, resume and undo write it there."""
        for_each = [adapter(Applied).dump_python(result, mode="json") for result in results]
        self._write(Line.APPLIED, results=for_each, audited=audited)

    def end(self, ending: Ending) -> None:
        """Close the books: nothing is left to repair. Raises like every line that is written."""
        self._write(Line.END, ending=ending)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: Line, **values: Any) -> None:
        now = self._ground.now()
        times = {"at_ms": now.ms, "boot_id": now.moment.boot_id, "boot_ms": now.moment.ms}
        by = self._by if line is Line.INTENT else {}
        self._file.append({"line": line, **times, **by, **values})


def journal_path(state_directory: Path, cluster_id: str | None, name: str, now_ms: int) -> Path:
    """A journal's place: ``<name>-<milliseconds>.jsonl`` in the cluster's directory."""
    return cluster_directory(state_directory, cluster_id) / JOURNAL_DIRECTORY / f"{name}-{now_ms}.jsonl"


def cluster_lock(state_directory: Path, cluster_id: str | None, files: Files = FILES) -> AppendOnlyFile:
    """The lock that keeps two kelr of one machine from changing one cluster at once; given back when closed.

    Raises:
        RefusedError: another process holds it.
    """
    return AppendOnlyFile(cluster_directory(state_directory, cluster_id) / LOCK_FILE, files)


def _readable(plan: Plan) -> Any:
    """The plan as JSON values. Raises ValueError where it could not be read again: then nothing may be begun."""
    record = adapter(Plan).dump_python(plan, mode="json")
    adapter(Plan).validate_python(record)
    return record


def _names(address: TopicPartition) -> dict[str, Any]:
    return {"topic": address.topic, "partition": address.partition}


def _whose(config: WrittenConfig) -> dict[str, Any]:
    broker = {} if config.broker is None else {"broker": config.broker}
    return {"topic": config.topic, **broker, "name": config.name}
