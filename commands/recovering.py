"""What ``kelr elect`` and the commands of ``kelr recover`` share; loaded only when one runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TypedDict

from kelr.commands.changing import hand_of, who_changes
from kelr.commands.rescue import SUFFIX
from kelr.commands.session import Session
from kelr.engine.advice.commands import DIRECTORY
from kelr.engine.planning import plan_id
from kelr.engine.planning.saved import NO_FILES, before_planned, saved_of
from kelr.engine.words import agree, brokers, joined, length_of_time, time_of_day
from kelr.errors import BadInputError, OtherClusterError, UsageError
from kelr.model import LOG_DIRECTORY, ElectionType, SavedLog, TopicPartition
from kelr.model.audit import AuditRecord
from kelr.model.plan import Plan, PlannedElection
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.places import state_directory
from kelr.recovery.plan_file import read_plan
from kelr.recovery.progress import ApplyEvent, Report, Stage
from kelr.rescue.archive import read_head
from kelr.rescue.known import known_files, leaderless_in
from kelr.sources.base import Source
from kelr.sources.ground import MACHINE, Ground
from kelr.view.output import Output
from kelr.view.plan_words import disks_at_stake, targets_of

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


def plan_for_this_cluster(session: Session, path: Path, *, reads: bool = False) -> Plan:
    """The plan of a file, which has to be of the session's cluster.

    Args:
        reads: the command changes nothing.

    Raises:
        BadInputError: the file is no plan.
        OtherClusterError: it is of another cluster, or one of the two does not tell which it is.
    """
    plan = read_plan(path)
    wanted, found = plan.cluster_id, session.source().cluster().cluster_id
    if wanted is None or wanted != found:
        raise OtherClusterError(str(path), wanted, found, code="plan-other-cluster", reads=reads)
    return plan


def plan_again(plan: Plan, addresses: Collection[TopicPartition], path: Path, *, alike: bool = True) -> tuple[str, ...]:
    """The one command that plans these partitions again, as arguments after ``kelr``.

    Args:
        alike: ask for the same elections; else for what kelr recommends.
    """
    elections = [one for one in plan.elections if one.address in addresses]
    targets = targets_of(addresses)
    named = targets if len(targets) <= _MOST_TARGETS else ()
    return ("recover", "plan", *named, *(_kind(elections) if alike else ()), "--out", str(another_name(path)))


@dataclass(frozen=True, slots=True)
class Disks:
    """Where the log directories of brokers are, as far as that is known.

    Args:
        here: by broker, its log directories, where all of them can be read on this machine.
        hosts: by broker, the host that it has registered.
    """

    here: Mapping[int, Sequence[str]] = field(default_factory=dict)
    hosts: Mapping[int, str] = field(default_factory=dict)

    def machine(self, broker: int) -> str:
        """The same text for brokers whose disks one command can read; empty for those of this machine."""
        host = self.hosts.get(broker, "")
        return "" if broker in self.here or _is_loopback(host) else host or f"broker {broker}"


@dataclass(frozen=True, slots=True)
class Saved:
    """What of a plan was saved already: what brokers answer for, and the disks of these brokers."""

    answered: bool = False
    disks: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Rescue:
    """A command that saves what a plan gives up.

    Args:
        words: after ``kelr``.
        answered: whether it saves what brokers answer for.
        disks: the brokers whose log directories it reads.
    """

    words: tuple[str, ...]
    answered: bool
    disks: tuple[int, ...]


NOWHERE, NOTHING = Disks(), Saved()
Files = Mapping[TopicPartition, Sequence[SavedLog]]
"""What rescue files hold, by partition."""


def rescue_commands(plan: Plan, path: Path, disks: Disks = NOWHERE, saved: Saved = NOTHING) -> list[Rescue]:
    """The commands that save what the plan gives up: one for what brokers answer for and all disks of this machine, and
    one for each other host. A disk counts where it alone has some of it, or may have since nobody has read it.

    Args:
        saved: what is left out.
    """
    steps = [step for one in plan.elections for step in one.rescue]
    answered = any(step.reachable for step in steps) and not saved.answered
    hosts: dict[str, list[int]] = {}
    for broker in sorted(disks_at_stake(plan.elections)):
        if broker not in saved.disks:
            hosts.setdefault(disks.machine(broker), []).append(broker)
    here = hosts.pop("", [])
    whole = answered or (not saved.answered and all(broker in disks.here for broker in here))
    found = [_rescue(path, disks, here, answered=answered, whole=whole)] if answered or here else []
    return found + [_rescue(path, disks, holders) for holders in hosts.values()]


def _rescue(path: Path, disks: Disks, holders: Sequence[int], *, answered: bool = False, whole: bool = False) -> Rescue:
    """
    Args:
        whole: whether it saves all that it can read, in the file that has the plan's own name.
    """
    only = () if whole else tuple(word for one in holders for word in ("--from-replica", str(one)))
    known = [directory for one in holders for directory in disks.here.get(one, ())]
    if any(one not in disks.here for one in holders):
        known.append(DIRECTORY)
    read = tuple(word for directory in known for word in ("--log-dir", directory))
    of = "" if whole else f"-from-{'-'.join(map(str, holders))}"
    words = ("rescue", "dump", "--plan", str(path), *only, *read, "--out", f"{path.stem}{of}{SUFFIX}")
    return Rescue(words, answered, tuple(holders))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def disks_of(session: Session, source: Source) -> Disks:
    """Where the disks of a source's brokers are. Those that `--logs` tells of count as here where all of a broker's
    directories are on this machine."""
    from kelr.sources.collected import CollectedSource  # noqa: PLC0415 - only where there are any

    hosts = {broker.id: broker.host for broker in source.cluster().brokers if broker.host}
    if not isinstance(source, CollectedSource) or session.settings.saved is not None:
        return Disks(hosts=hosts)
    here = {
        broker: paths
        for broker, read in source.merged.disks.items()
        if (paths := [one.path for one in read[0].directories]) and all(Path(one).is_dir() for one in paths)
    }
    return Disks(here, hosts)


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
        beside, name = rescued_in(path), plan_id(plan)
        epochs = {one.address: one.evidence.leader_epoch for one in plan.elections}
        rows = [
            row
            for row in rows
            if row.plan_id == name
            or leaderless_in(row) == epochs.get(TopicPartition(row.topic, row.partition or 0), -1)
        ]
    found, unread = known_files(rows, beside, cluster_id=cluster_id)
    for text in unread:
        output.note(text)
    return found


def rescued_in(path: Path) -> list[Path]:
    """The rescue files that `rescue_commands` made the reader write for the plan of this file, as far as they are here:
    beside the plan, or in the present directory."""
    whole = f"{path.stem}{SUFFIX}"
    ours = re.compile(rf"{re.escape(path.stem)}(-from-[0-9-]+)?{re.escape(SUFFIX)}")
    places = {
        found.name: found
        for place in (path.parent, Path())
        for found in place.glob(f"*{SUFFIX}")
        if ours.fullmatch(found.name) and found.is_file()
    }
    return [places[name] for name in sorted(places, key=lambda name: (name != whole, name))]


def saved_before(plan: Plan, path: Path | None, files: Files = NO_FILES) -> Saved:
    """What of the plan was saved already: in the rescue files that are here, by the disks of which they hold something,
    or say that there was nothing to save; and, of each election, in those on record.

    Args:
        path: the plan's file, if it has one.
        files: what the rescue files hold that are on record.
    """
    stem, here = "" if path is None else path.stem, [] if path is None else rescued_in(path)
    read: set[int] = set()
    for one in here:
        with suppress(BadInputError):
            read.update(tail.replica for tail in read_head(one)[0].tails if tail.how == LOG_DIRECTORY)
    disks, lacking = set[int](), set[int]()
    for election, whole in _held_whole(plan, files):
        at_stake = disks_at_stake([election])
        disks, lacking = disks | (at_stake & whole.keys()), lacking | (at_stake - whole.keys())
    return Saved(f"{stem}{SUFFIX}" in {one.name for one in here}, frozenset(read | (disks - lacking)))


def saved_in_words(plan: Plan, files: Files) -> Mapping[str, Sequence[TopicPartition]]:
    """Of which replicas files have all that these elections give up, and which; by that, the partitions."""
    found = dict[str, list[TopicPartition]]()
    for election, whole in _held_whole(plan, files):
        held = sorted(whole)
        if held:
            files_of = joined(sorted({whole[replica] for replica in held}))
            text = f"What {brokers(held)} {agree(len(held), 'holds', 'hold')} and the elected log lacks, in {files_of}"
            found.setdefault(text, []).append(election.address)
    return found


def _held_whole(plan: Plan, files: Files) -> Iterator[tuple[PlannedElection, Mapping[int, str]]]:
    """Each election with the replicas of which a file has all that the elected log lacks, and that file."""
    name = plan_id(plan) if files and plan.elections else ""
    for one in plan.elections:
        held = files.get(one.address)
        yield one, saved_of(before_planned(one, name), held).whole if held else {}


def all_rescued(plan: Plan, path: Path) -> bool:
    """Whether there was something to save before this plan, and the files of all of it are here."""
    return bool(rescue_commands(plan, path)) and not rescue_commands(plan, path, saved=saved_before(plan, path))


def rescue_first(plan: Plan, path: Path, disks: Disks, saved: Saved) -> tuple[str, ...] | None:
    """The command that saves what the plan gives up, where that was not done and can be done from here; None else."""
    left = rescue_commands(plan, path, disks, saved)
    return next((one.words for one in left if one.answered or DIRECTORY not in one.words), None)


def say_other_rescues(output: Output, commands: Sequence[Rescue], *, said: Collection[Sequence[str]]) -> None:
    """Name these commands, but for those that stand in the plan's text or come next, and where they are run."""
    for one in commands:
        if one.words not in said:
            output.note(f"rescue, too: {output.next_command(one.words)}")
    on_hosts = [one for one in commands if DIRECTORY in one.words]
    if on_hosts:
        holders = sorted({broker for one in on_hosts for broker in one.disks})
        which, its = brokers(holders), agree(len(holders), "its", "their")
        where = f"run that on {its} host" if len(on_hosts) == 1 else "run each command on the host of its brokers"
        output.note(
            f"--log-dir DIRECTORY stands for the log directories of {which}, one --log-dir for each: {where}, before"
            " the elections"
        )
    if any(one.answered for one in on_hosts):
        output.note("where no such disk can be read: the same command without --log-dir saves what brokers answer for")


def say_disks(output: Output, plan: Plan, now_ms: int) -> None:
    """Name the disks that the plan stands on, with their age: they are not read again where nobody gives new ones."""
    read_at: dict[int, int] = {}
    for one in plan.elections:
        for log in one.evidence.logs:
            if log.source == LOG_DIRECTORY and log.read_at_ms is not None:
                read_at[log.replica] = min(log.read_at_ms, read_at.get(log.replica, log.read_at_ms))
    for broker, at_ms in sorted(read_at.items()):
        output.note(
            f"the plan is based on the disk of broker {broker}, read at {time_of_day(at_ms)},"
            f" {length_of_time(now_ms - at_ms)} ago. If that was an older copy of it, or broker {broker} has run"
            " since: stop, read its own disk again, and plan again. --logs FILE compares a newer reading with the"
            " plan's"
        )


def another_name(path: Path) -> Path:
    """A name beside the plan's for the next one."""
    return path.with_name(f"{path.stem}-again{path.suffix}")


class ChangeTools(TypedDict):
    """What every function of the library that changes a cluster is given."""

    source: Source
    hand: AdminClient
    state_directory: Path
    ground: Ground
    who: Actor
    report: Report


def change_tools(session: Session, source: Source) -> ChangeTools:
    """The same for the session's cluster; `source` may know more of it than the session's own."""
    return {
        "source": source,
        "hand": hand_of(session),
        "state_directory": state_directory(),
        "ground": MACHINE,
        "who": who_changes(session),
        "report": reporter(session),
    }


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
