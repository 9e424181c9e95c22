"""What ``kelr elect`` and the commands of ``kelr recover`` share; loaded only when one runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from kelr.commands.session import Session
from kelr.engine.advice.commands import DIRECTORY
from kelr.engine.planning import plan_id
from kelr.engine.planning.saved import SavedLog
from kelr.engine.words import length_of_time, time_of_day
from kelr.errors import OtherClusterError, UsageError
from kelr.model import LOG_DIRECTORY, ElectionType, TopicPartition
from kelr.model.audit import AuditRecord
from kelr.model.plan import Consent, Plan, PlannedElection
from kelr.recovery.plan_file import SavedPlan, read_plan
from kelr.recovery.progress import ApplyEvent, Report, Stage
from kelr.rescue.known import LEADERLESS_SINCE, known_files
from kelr.sources.base import Source
from kelr.view.output import Output
from kelr.view.plan_words import targets_of

PLAN_FILE = "plan.json"
"""What a next command calls a plan's file."""
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]{1,9})\s*([smhd])", re.ASCII)
_SAID_AT_ONCE = frozenset({Stage.REPEAT, Stage.LATE, Stage.INTERRUPTED})
_MOST_TARGETS = 20


def read_duration_ms(text: str, flag: str) -> int:
    """``90s``, ``30m``, ``2h`` or ``1d`` in milliseconds. Raises UsageError."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise UsageError(f"{flag} is {text!r}, not a length of time", next_step="write 90s, 30m, 2h or 1d")
    return int(match[1]) * _UNITS_MS[match[2]]


def source_with(session: Session, logs: Sequence[Path]) -> Source:
    """The session's source; with collections, one that knows dead brokers' disks too. Next commands repeat ``--logs``.

    Raises:
        BadInputError: a file is no collection.
        RefusedError: one is of another cluster.
    """
    source = session.source()
    if not logs:
        return source
    from kelr.sources.collected import CollectedSource, read_collection  # noqa: PLC0415 - only where there are any

    collected = CollectedSource(source, [read_collection(path) for path in logs])
    flags = tuple(part for path in logs for part in ("--logs", str(path)))
    session.output = replace(session.output, log_flags=flags)
    for warning in collected.warnings:
        session.output.note(warning)
    return collected


def plan_for_this_cluster(session: Session, path: Path, *, reads: bool = False) -> SavedPlan:
    """The plan of a file, which has to be of the session's cluster.

    Args:
        reads: the command changes nothing.

    Raises:
        BadInputError: the file is no plan.
        OtherClusterError: it is of another cluster, or one of the two does not tell which it is.
    """
    saved = read_plan(path)
    wanted, found = saved.plan.cluster_id, session.source().cluster().cluster_id
    if wanted is None or wanted != found:
        raise OtherClusterError(str(path), wanted, found, code="plan-other-cluster", reads=reads)
    return saved


def plan_again(plan: Plan, addresses: Collection[TopicPartition], path: Path, *, alike: bool = True) -> tuple[str, ...]:
    """The one command that plans these partitions again, as arguments after ``kelr``.

    Args:
        alike: ask for the same elections; else for what kelr recommends.
    """
    elections = [one for one in plan.elections if one.address in addresses]
    targets = targets_of(addresses)
    named = targets if len(targets) <= _MOST_TARGETS else ()
    return ("recover", "plan", *named, *(_kind(elections) if alike else ()), "--out", str(another_name(path)))


def rescue_commands(
    plan: Plan, path: Path, directories: Mapping[int, Sequence[str]] = MappingProxyType({})
) -> list[tuple[str, ...]]:
    """The commands that save what the plan gives up, as arguments after ``kelr``: one where all of it can be read from
    here; else one for what brokers answer for, and one for each broker whose disk alone has it, or may have it since
    nobody has read it, to be run on that broker's host.

    Args:
        directories: by broker, its log directories that can be read here.
    """
    steps = [step for one in plan.elections for step in one.rescue]
    base = ("rescue", "dump", "--plan", str(path))
    commands: list[tuple[str, ...]] = []
    down = sorted({step.replica for step in steps if not step.reachable} | _unread(plan))
    if down and all(broker in directories for broker in down):
        here = tuple(
            word for broker in sorted(directories) for one in directories[broker] for word in ("--log-dir", one)
        )
        return [(*base, *here, "--out", f"{path.stem}.kelr-rescue")]
    if any(step.reachable for step in steps):
        commands.append((*base, "--out", f"{path.stem}.kelr-rescue"))
    for broker in down:
        out = f"{path.stem}-from-{broker}.kelr-rescue"
        commands.append((*base, "--from-replica", str(broker), "--log-dir", DIRECTORY, "--out", out))
    return commands


def _unread(plan: Plan) -> set[int]:
    """Replicas that are down and whose disks nobody has read, where what an election gives up is UNKNOWN for that."""
    lossy = [one for one in plan.elections if one.consent is not Consent.YES]
    unknown = [one for one in lossy if one.loss.total is None or one.loss.total.at_most is None]
    return {
        replica
        for one in unknown
        for replica in one.loss.unheard
        if replica in one.evidence.replicas and replica not in one.evidence.live
    }


def on_whose_host(command: Sequence[str]) -> int | None:
    """The broker on whose host one of `rescue_commands` is run; None: it is run anywhere."""
    return next((int(word) for flag, word in pairwise(command) if flag == "--from-replica"), None)


def directories_here(session: Session, source: Source) -> Mapping[int, Sequence[str]]:
    """The log directories of brokers that `--logs` were read of, where all of a broker's are on this machine."""
    from kelr.sources.collected import CollectedSource  # noqa: PLC0415 - only where there are any

    if not isinstance(source, CollectedSource) or session.settings.saved is not None:
        return {}
    return {
        broker: paths
        for broker, disks in source.merged.disks.items()
        if (paths := [one.path for one in disks[0].directories]) and all(Path(one).is_dir() for one in paths)
    }


def saved_files(
    output: Output, rows: Iterable[AuditRecord], plan: Plan | None, path: Path | None, *, cluster_id: str | None
) -> Mapping[TopicPartition, Sequence[SavedLog]]:
    """What rescue files hold that the audit log names, or that lie where the plan's commands write them. One that
    cannot be read is named.

    Args:
        plan, path: those files alone that were saved for it, or in the states that its elections are to come out of.
    """
    beside: Sequence[Path] = ()
    if plan is not None and path is not None:
        beside, name = rescued_in(plan, path), plan_id(plan)
        epochs = {one.address: one.evidence.leader_epoch for one in plan.elections}
        rows = [
            row
            for row in rows
            if row.plan_id == name
            or row.before.get(LEADERLESS_SINCE, -1) == epochs.get(TopicPartition(row.topic, row.partition or 0))
        ]
    found, unread = known_files(rows, beside, cluster_id=cluster_id)
    for text in unread:
        output.note(text)
    return found


def rescued_in(plan: Plan, path: Path) -> list[Path]:
    """The rescue files that `rescue_commands` made the reader write for this plan, as far as they are here."""
    names = dict.fromkeys([*(command[-1] for command in rescue_commands(plan, path)), f"{path.stem}.kelr-rescue"])
    places = ((Path(name), path.with_name(name)) for name in names)
    return [found for both in places if (found := next(filter(Path.is_file, both), None)) is not None]


def all_rescued(plan: Plan, path: Path) -> bool:
    """Whether there was something to save before this plan, and the files of all of it are here."""
    names = {command[-1] for command in rescue_commands(plan, path)}
    return bool(names) and names <= {found.name for found in rescued_in(plan, path)}


def rescue_first(plan: Plan, path: Path) -> tuple[str, ...] | None:
    """The command that saves what the plan gives up, where that was not done and can be done from here; None else."""
    if rescued_in(plan, path):
        return None
    return next((command for command in rescue_commands(plan, path) if DIRECTORY not in command), None)


def say_other_rescues(
    output: Output, commands: Sequence[tuple[str, ...]], saved: Collection[Path] = (), *, first: bool = False
) -> None:
    """Name the commands beside the first one, which stands in the plan's text or comes next, and where they are run.

    Args:
        saved: files that such commands have written: those are not named again.
        first: name the first one, too.
    """
    done = {path.name for path in saved}
    on_hosts = [command for command in commands if DIRECTORY in command and command[-1] not in done]
    for command in commands if first else commands[1:]:
        if command[-1] in done:
            continue
        output.note(f"rescue, too: {output.next_command(command)}")
    if on_hosts:
        brokers = ", ".join(str(on_whose_host(command)) for command in on_hosts)
        output.note(
            f"--log-dir {DIRECTORY} stands for the log directories of broker {brokers}: run that on the broker's host,"
            " once for each broker, before the elections"
        )


def say_disks(output: Output, plan: Plan, now_ms: int) -> None:
    """Name the disks that the plan stands on, with their age: they are not read again where nobody gives new ones."""
    read_at: dict[int, int] = {}
    for one in plan.elections:
        for log in one.evidence.logs:
            if log.source == LOG_DIRECTORY and log.read_at_ms is not None:
                read_at[log.replica] = min(log.read_at_ms, read_at.get(log.replica, log.read_at_ms))
    for broker, at_ms in sorted(read_at.items()):
        output.note(
            f"the plan stands on the disk of broker {broker} as it was at {time_of_day(at_ms)},"
            f" {length_of_time(now_ms - at_ms)} ago: if broker {broker} has run since, stop, read its disk again and"
            " plan again; --logs FILE compares a newer reading with the plan's"
        )


def another_name(path: Path) -> Path:
    """A name beside the plan's for the next one."""
    return path.with_name(f"{path.stem}-again{path.suffix}")


def reporter(session: Session) -> Report:
    """Counts on the terminal; says what somebody should know at once in a pipe too."""

    def report(event: ApplyEvent) -> None:
        if event.stage in _SAID_AT_ONCE:
            session.output.note(event.text)
        else:
            session.say(event.text)
        session.output.progress(event.done, event.total, what=event.text)

    return report


def _kind(elections: Sequence[PlannedElection]) -> tuple[str, ...]:
    """The flags that ask for the same again, where all of them were asked for in one way."""
    kinds = {(one.election, one.elect if one.election is ElectionType.DESIGNATION else None) for one in elections}
    if any(one.recommended for one in elections) or len(kinds) != 1:
        return ()
    ((kind, whom),) = kinds
    return ("--election-type", kind.value, *(() if whom is None else ("--designate", str(whom))))
