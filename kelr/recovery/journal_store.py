"""The journals that are kept for a cluster: which there are, and which are open."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from os import SEEK_END
from pathlib import Path
from typing import Any

from kelr.durable import files_of_lines, is_torn
from kelr.engine.words import length_of_time
from kelr.errors import BadInputError, OtherClusterError, RefusedError
from kelr.files import FILES, Files
from kelr.model import Plan, PlannedElection, TopicPartition
from kelr.recovery.journal import JOURNAL_DIRECTORY
from kelr.recovery.journal_reader import Journalled, moment_of, read_journal
from kelr.recovery.places import cluster_directory, every_cluster_directory
from kelr.sources.ground import Ground, Moment

_SHOWN = 3
_LONGEST_END = 4096


def journal_files(state_directory: Path, cluster_id: str | None, files: Files = FILES) -> tuple[Path, ...]:
    """The cluster's journals, oldest first."""
    directory = cluster_directory(state_directory, cluster_id) / JOURNAL_DIRECTORY
    return tuple(sorted(files_of_lines(directory, files), key=_age))


def open_journals(state_directory: Path, cluster_id: str | None, files: Files = FILES) -> tuple[Journalled, ...]:
    """The journals that something may be left of, oldest first.

    One that a crash left without its first whole line has asked nothing of the cluster, and counts for nothing.

    Raises:
        BadInputError: a journal is garbled; names file and line.
    """
    paths = journal_files(state_directory, cluster_id, files)
    found = (read_journal(path, files) for path in paths if not is_blank(path, files) and not is_ended(path, files))
    return tuple(journal for journal in found if journal.ending is None)


def find_journal(state_directory: Path, cluster_id: str | None, name: str | None, files: Files = FILES) -> Path:
    """The journal of this file name, path, plan id or beginning of one; without a name the newest that is open.

    Raises:
        BadInputError: there is none, or several fit.
        OtherClusterError: one fits, and is of another cluster.
    """
    if name is not None and files.is_file(Path(name)):
        refuse_another_cluster(read_journal(Path(name), files), cluster_id)
        return Path(name)
    paths = [path for path in journal_files(state_directory, cluster_id, files) if not is_blank(path, files)]
    if name is None:
        fitting = [journal.path for journal in open_journals(state_directory, cluster_id, files)][-1:]
    else:
        fitting = [path for path in paths if path.name == name or path.stem.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if name is None:
        raise BadInputError(
            "no journal of this cluster is open: nothing is left to repair",
            next_step="`kelr recover log` tells what was done; to undo a run that ended, name its journal or plan",
            code="no-open-journal",
        )
    if not fitting:
        every = _every_journal(state_directory, files)
        elsewhere = [path for path in every if path.name == name or path.stem.startswith(name)]
        if len(elsewhere) == 1:
            refuse_another_cluster(read_journal(elsewhere[0], files), cluster_id)
        names = ", ".join(path.stem for path in paths[-_SHOWN:]) or "none"
        raise BadInputError(
            f"no journal is called {name}", next_step=f"the newest ones: {names}", code="journal-unknown"
        )
    raise BadInputError(
        f"{len(fitting)} journals begin with {name}: {', '.join(path.stem for path in fitting)}",
        next_step="give the whole name",
        code="journal-ambiguous",
    )


def open_elsewhere(state_directory: Path, cluster_id: str | None, files: Files = FILES) -> tuple[Journalled, ...]:
    """The open journals of other clusters than this one; those that cannot be read are left out."""
    found = []
    for path in _every_journal(state_directory, files):
        with suppress(BadInputError):
            if not is_blank(path, files) and not is_ended(path, files):
                found.append(read_journal(path, files))
    return tuple(one for one in found if one.ending is None and one.cluster_id != cluster_id)


def _every_journal(state_directory: Path, files: Files) -> Iterator[Path]:
    for directory in every_cluster_directory(state_directory, files):
        yield from files_of_lines(directory / JOURNAL_DIRECTORY, files)


def refuse_another_cluster(journalled: Journalled, cluster_id: str | None) -> None:
    """Raises OtherClusterError where the journal is of another cluster than this one."""
    if journalled.cluster_id != cluster_id:
        name = f"journal {journalled.path.stem}"
        raise OtherClusterError(name, journalled.cluster_id, cluster_id, code="journal-other-cluster")


def refuse_open_journals(
    state_directory: Path,
    cluster_id: str | None,
    addresses: Collection[TopicPartition],
    *,
    topics: Collection[str] = (),
    brokers: Collection[int] = (),
    files: Files = FILES,
) -> None:
    """Raises RefusedError where an earlier run was cut short that concerns one of these partitions, or of all
    partitions of these topics, or configs of these brokers: what it left behind would be taken for the state of the
    cluster."""
    wanted, held = set(addresses), {*topics, *(one.topic for one in addresses)}
    for journal in open_journals(state_directory, cluster_id, files):
        known = set() if _lacks_broker_configs_alone(journal) else {*journal.partitions, *journal.planned}
        common = sorted(at for at in known if at in wanted or at.topic in topics)
        configs = sorted({one.where for one in journal.configs.values() if one.topic in held})
        configs += sorted({one.where for one in journal.configs_left if one.broker in brokers})
        if common or configs:
            named = ", ".join(map(str, common[:_SHOWN])) or configs[0]
            raise RefusedError(
                f"nothing was changed: an earlier run was cut short that concerns {named}: journal"
                f" {journal.path.stem} is open ({journal.command})",
                next_step="kelr recover resume, or kelr recover undo",
                code="journal-open",
            )


def refuse_restored_orders(
    plan: Plan, state_directory: Path, cluster_id: str | None, *, for_s: float, ground: Ground
) -> None:
    """Raises RefusedError where the plan takes an order for a partition's own that an earlier run gave it for an
    election, and has taken back since: the broker that was asked lags behind, and the order would be restored.

    Args:
        for_s: how long after that run's end, in seconds; then an order that is shown is somebody's own.
    """
    now = ground.moment()
    ends = [(path, _end_line(path, ground.files)) for path in journal_files(state_directory, cluster_id, ground.files)]
    ages = [(_ended_s(moment_of(line), now), path) for path, line in ends if line is not None]
    kept: set[TopicPartition] = set()  # what a run that ended later has left in the order that is shown
    for ended_s, path in sorted((age, path) for age, path in ages if age is not None and age < for_s):
        ended = read_journal(path, ground.files)
        for one in plan.elections:
            before, done = ended.planned.get(one.address), ended.partitions.get(one.address)
            if before is None or done is None or one.address in kept or not _shows_given(one, before):
                continue
            if not done.in_order:
                kept |= {one.address} if done.stands else set()
            if done.order is None or not done.in_order:
                continue
            given, restored = (f"[{','.join(map(str, order))}]" for order in (before.order, before.restores))
            raise RefusedError(
                f"nothing was changed: {one.address} is shown with the order {given}, which an earlier run gave it and"
                f" has restored to {restored} (journal {path.stem})",
                why="the broker that was asked lags behind, or somebody gave it that order again",
                next_step="make a new plan when another order is shown, or in"
                f" {length_of_time(int(1000 * (for_s - ended_s)))}",
                code="order-restored",
            )


def _shows_given(planned: PlannedElection, before: PlannedElection) -> bool:
    """Whether a partition is shown with the order that an earlier plan gave it for its election alone."""
    left_out = set(before.evidence.replicas) - set(before.order)
    shown = tuple(replica for replica in planned.evidence.replicas if replica not in left_out)
    return (
        before.order not in {(), before.restores}
        and shown == before.order
        and (planned.topic_id is None or before.topic_id is None or planned.topic_id == before.topic_id)
    )


def _ended_s(at: Moment, now: Moment) -> float | None:
    """How long ago a run ended, at least, in seconds: one of an earlier boot before this one. None: no clock tells."""
    if at.boot_id is None or now.boot_id is None:
        return None
    return at.age_s(now) if at.boot_id == now.boot_id else now.ms / 1000


def _lacks_broker_configs_alone(journal: Journalled) -> bool:
    """Whether nothing is left but configs of brokers: each partition is in order, and has its result on record."""
    left = journal.configs_left
    if not left or journal.not_audited or any(config.broker is None for config in left):
        return False
    partitions = journal.partitions.values()
    in_order = all(one.in_order or not (one.order or one.moved or one.sent or one.uncertain) for one in partitions)
    return in_order and all(map(journal.has_result, journal.planned))


def is_blank(path: Path, files: Files = FILES) -> bool:
    """Whether a crash left the journal without its first whole line: nothing was asked of the cluster."""
    with files.reader(path) as file:
        return is_torn(file.readline()) and not file.peek(1)


def is_ended(path: Path, files: Files = FILES) -> bool:
    """Whether its last line says that nothing is left: told without reading the plan in it."""
    return _end_line(path, files) is not None


def _end_line(path: Path, files: Files) -> dict[str, Any] | None:
    with files.reader(path) as file:
        file.seek(max(0, file.seek(0, SEEK_END) - _LONGEST_END))
        last = file.read().rpartition(b"\n")[0].rpartition(b"\n")[2]
    if not last.startswith(b'{"line":"end",'):
        return None
    with suppress(ValueError):  # garbled: whoever reads all of it says so
        line: dict[str, Any] = json.loads(last)
        return line
    return None


def _age(path: Path) -> tuple[int, str]:
    made = path.stem.rpartition("-")[2]
    return (int(made) if made.isdecimal() else 0, path.name)
