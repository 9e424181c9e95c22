"""What ``kelr report`` does once its options are read: gathers what there is, and writes the file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from kelr import __version__
from kelr.commands.metadata_logs import counted, opened_log
from kelr.commands.moments import read_moment
from kelr.commands.recovering import rescued_in, source_with
from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import sees_any
from kelr.durable import whole_file
from kelr.engine.planning import plan_id
from kelr.errors import BadInputError, ConnectError, NotAuthorizedError, RefusedError, UnsupportedError, UsageError
from kelr.model import PartitionState, Selection, Target, TopicConfig, TopicError, TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.model.rows import topics_of
from kelr.recovery import audit
from kelr.recovery.journal_reader import Journalled
from kelr.recovery.journal_store import journal_files, open_journals
from kelr.recovery.places import audit_file, state_directory
from kelr.recovery.plan_file import read_plan
from kelr.replay.history import ElectedAs, Entry, History, Interest, PartitionEntry, Trouble, Window, grouped
from kelr.rescue.known import DUMP, known_files
from kelr.sources.base import Source, silence_of
from kelr.sources.decisions import decide_partitions
from kelr.sources.metadata_log.log import MetadataLogReader
from kelr.sources.metadata_log.replaying import check_understood
from kelr.sources.snapshot_file import SnapshotFileSource
from kelr.view.explain_columns import Explained
from kelr.view.history_words import when
from kelr.view.incident.chat import chat
from kelr.view.incident.figures import figures
from kelr.view.incident.happenings import weight_of
from kelr.view.incident.kinds import named
from kelr.view.incident.losses import READ_WITHIN_MS, losses
from kelr.view.incident.material import Done, Gap, Light, Look, Material, OpenRun, Planned, Told, Turn
from kelr.view.incident.pages import html
from kelr.view.saved import Reported, show_reported

_PAGES, _CHATS = (".html", ".htm"), (".md", ".markdown")
_TITLE = "Kafka incident report"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of ``kelr report``."""

    selection: Selection
    everything: bool = False
    before: Path | None = None
    plan: Path | None = None
    logs: tuple[Path, ...] = ()
    since: str | None = None
    until: str | None = None
    title: str | None = None

    @property
    def named(self) -> bool:
        return self.everything or not self.selection.is_everything


def write_report(session: Session, file: Path, wanted: Wanted, *, overwrite: bool) -> tuple[int, Sequence[TopicError]]:
    """Write the report; how many partitions it is about, and what could not be described.

    Raises:
        UsageError: the file's name says nothing of its kind, or it exists.
        BadInputError: a file that was given is not what it should be.
        RefusedError: one is of another cluster.
    """
    write = _writer(file)
    if file.exists() and not overwrite:
        raise UsageError(
            f"{file} exists already", next_step="give another name, or --overwrite to replace it", code="file-exists"
        )
    material = gather(session, wanted, file)
    text, known = write(material).encode(), figures(material)
    with whole_file(file, "report", overwrite=overwrite) as out:
        out.write(text)
    show_reported(
        session.output,
        Reported(
            str(file),
            len(text),
            len(material.partitions),
            len(known.affected),
            len(known.leaderless) if known.leaderless or known.current else None,
            known.lost,
            tuple(gap.text for gap in material.gaps),
        ),
    )
    return len(material.partitions), material.now.errors


def _writer(file: Path) -> Callable[[Material], str]:
    ending = file.suffix.lower()
    if ending in _PAGES:
        return html
    if ending in _CHATS:
        return chat
    raise UsageError(
        f"{file}: nothing says what kind of report that is",
        next_step="end its name in .html for a page, or .md for a chat",
    )


def gather(session: Session, wanted: Wanted, file: Path) -> Material:
    """Read everything that there is."""
    source = source_with(session, wanted.logs)
    cluster_id = source.cluster().cluster_id
    told, gaps = read_log(session, wanted.selection, wanted.since, wanted.until, cluster_id=cluster_id)
    planned = None if wanted.plan is None else _planned(wanted.plan, cluster_id)
    beside = [] if planned is None else rescued_in(Path(planned.file))
    done, done_gaps = read_done(
        wanted.selection, wanted.since, wanted.until, cluster_id=cluster_id, told=told, rescued=beside
    )
    before_source = None if wanted.before is None else _snapshot(wanted.before, cluster_id)
    now = _look(session, source, wanted, done, name=_name(session, source))
    before = None if before_source is None else _look(session, before_source, wanted, None, name=before_source.name)
    if before is not None and session.settings.snapshot is not None and before.taken_at_ms > now.taken_at_ms:
        raise UsageError(
            f"{wanted.before} was taken after {session.settings.snapshot}: they are the wrong way round",
            next_step=f"kelr report {file} --before {session.settings.snapshot} --snapshot {wanted.before}",
            code="snapshots-reversed",
        )
    if not now.rows and not now.errors:
        now = replace(now, saw_any=sees_any(source, wanted.selection))
    gaps += _untold(wanted, told, now)
    every = _concerned((now, before), told, done, planned, wanted.selection)
    if not wanted.named:
        now = _completed(session, source, now, every, done)
        if before is not None and before_source is not None:
            before = _completed(session, before_source, before, every, None)
    material = Material(
        title=wanted.title or _TITLE,
        made_at_ms=now_ms(),
        version=__version__,
        command=_command(session, file, wanted),
        partitions=tuple(sorted(every)),
        now=now,
        named=wanted.named,
        before=before,
        told=told,
        done=done,
        planned=planned,
        gaps=(*_silence(source, before_source), *_gaps(wanted, now, before, every), *gaps, *done_gaps),
        commands=_commands(session, wanted),
        advice=_advice(session, now),
    )
    if wanted.named or before is None or before_source is None:
        return material
    return _with_elected(session, material, source, before_source, wanted.selection)


# What the cluster is, and was.


def _look(session: Session, source: Source, wanted: Wanted, done: Done | None, *, name: str) -> Look:
    """The named partitions, or those in trouble."""
    return _decided(session, source, wanted.selection, done, name=name, only_unsafe=not wanted.named)


def _decided(
    session: Session, source: Source, selection: Selection, done: Done | None, *, name: str, only_unsafe: bool
) -> Look:
    rows: dict[TopicPartition, Explained] = {}
    errors: list[TopicError] = []
    topic_ids: dict[str, str] = {}
    configs: dict[str, TopicConfig] = {}
    taken_at_ms = source.taken_at_ms
    with session.progress("partitions whose logs were asked for") as progress:
        for page in decide_partitions(
            source,
            selection,
            clock_ms=now_ms,
            only_unsafe=only_unsafe,
            saved=None if done is None else done.saved,
            progress=progress,
        ):
            snapshot = page.snapshot
            taken_at_ms = taken_at_ms or snapshot.taken_at_ms
            errors.extend(snapshot.topic_errors)
            topic_ids |= {one.topic: one.topic_id for one in snapshot.partitions if one.topic_id is not None}
            configs |= {topic: snapshot.configs[topic] for topic in topics_of(snapshot.partitions)}
            for decision in page.decisions:
                at = TopicPartition(decision.topic, decision.partition)
                rows[at] = Explained(decision, snapshot.taken_at_ms, logs=tuple(snapshot.logs.get(at, ())))
    return Look(name, taken_at_ms or now_ms(), source.cluster(), rows, tuple(errors), topic_ids, configs)


def _completed(
    session: Session, source: Source, look: Look, every: Iterable[TopicPartition], done: Done | None
) -> Look:
    """The look with those partitions, too, that were in trouble elsewhere."""
    by_topic: dict[str, list[int]] = {}
    for at in every:
        if at not in look.rows:
            by_topic.setdefault(at.topic, []).append(at.partition)
    if not by_topic:
        return look
    targets = tuple(Target(topic=topic, partitions=tuple(sorted(found))) for topic, found in sorted(by_topic.items()))
    more = _decided(session, source, Selection(targets), done, name=look.name, only_unsafe=False)
    # A partition that is not there any more, or was not yet, is no error of whoever asked for the report.
    return replace(
        look,
        rows={**look.rows, **more.rows},
        topic_ids={**look.topic_ids, **more.topic_ids},
        configs={**look.configs, **more.configs},
    )


def _with_elected(
    session: Session, material: Material, source: Source, before_source: Source, selection: Selection
) -> Material:
    """The report with those partitions, too, that were well in both looks and had elections in between which may have
    lost something."""
    before, every = material.before, {*material.partitions}
    assert before is not None
    elected = {*_elected_between(before_source, source, selection)} - every
    now = _completed(session, source, material.now, elected, material.done)
    before = _completed(session, before_source, before, elected, None)
    with_all = replace(material, partitions=tuple(sorted(every | elected)), now=now, before=before)
    kept = every | {one.address for one in losses(with_all)}
    return replace(
        with_all,
        partitions=tuple(sorted(kept)),
        now=_only(now, kept),
        before=_only(before, kept),
        advice=_advice(session, now),
    )


def _elected_between(before: Source, now: Source, selection: Selection) -> Iterator[TopicPartition]:
    """Partitions with elections between two looks that may have lost something, by their leader epochs: not those that
    went over to another leader in a single step where Kafka may not elect uncleanly."""
    then = {
        state.address: (state.leader, state.leader_epoch, state.topic_id)
        for page in before.pages(selection)
        for state in page.partitions
    }
    single: list[TopicPartition] = []
    for page in now.pages(selection):
        for state in page.partitions:
            leader, epoch, topic_id = then.get(state.address, (None, state.leader_epoch, None))
            steps = state.leader_epoch - epoch
            if None not in {topic_id, state.topic_id} and topic_id != state.topic_id:
                continue
            if steps > 1:
                yield state.address
            elif steps and state.leader != leader:
                single.append(state.address)
    topics = {at.topic for at in single}
    configs = [source.topic_configs(topics) for source in (before, now)] if topics else []
    for at in single:
        if any(known.get(at.topic, TopicConfig()).unclean_leader_election is not False for known in configs):
            yield at


def _only(look: Look, kept: Collection[TopicPartition]) -> Look:
    return replace(look, rows={at: row for at, row in look.rows.items() if at in kept})


def _concerned(
    looks: Iterable[Look | None],
    told: Told | None,
    done: Done | None,
    planned: Planned | None,
    selection: Selection,
) -> frozenset[TopicPartition]:
    found = {at for look in looks if look is not None for at in look.rows}
    found |= set() if told is None else set(told.summaries)
    rows = () if done is None else done.rows
    found |= {TopicPartition(row.topic, row.partition) for row in rows if row.partition is not None}
    found |= set() if planned is None else planned.in_trouble
    return frozenset(at for at in found if selection.matches(at.topic, at.partition))


def _name(session: Session, source: Source) -> str:
    return "the live cluster" if session.settings.saved is None else source.name


def _snapshot(path: Path, cluster_id: str | None) -> SnapshotFileSource:
    source = SnapshotFileSource(path)
    _check_cluster(str(path), source.cluster().cluster_id, cluster_id)
    return source


def _check_cluster(what: str, found: str | None, cluster_id: str | None) -> None:
    if None not in {found, cluster_id} and found != cluster_id:
        raise RefusedError(
            f"{what} is of cluster {found}, and the report is about cluster {cluster_id}",
            next_step="give files of one cluster",
            code="wrong-cluster",
        )


# What was planned and done.


def _planned(path: Path, cluster_id: str | None) -> Planned:
    plan = read_plan(path)
    _check_cluster(str(path), plan.cluster_id, cluster_id)
    return Planned(str(path), plan, plan_id(plan))


# What is not there, and what to type.


def _gaps(wanted: Wanted, now: Look, before: Look | None, every: Collection[TopicPartition]) -> Iterable[Gap]:
    if wanted.before is None:
        yield Gap(
            "No snapshot from the incident was given (--before): what the logs held before the elections is known only"
            " where kelr carried them out, or where they have not happened yet."
        )
    if before is not None and before.taken_at_ms >= now.taken_at_ms:
        yield Gap(
            "The snapshot from the incident (--before) is not older than the newest look: what came between them cannot"
            " be told, or a clock was wrong."
        )
    if wanted.plan is None:
        yield Gap("No plan was given (--plan): what was planned is not shown.")
    if not now.saw_any:
        yield Gap(
            "The newest look was shown no partition: there is none, or the principal may not describe any. Whether"
            " anything is in trouble is not known."
        )
    missing = sorted(at for at in every if at not in now.rows)
    if missing:
        yield Gap(
            f"{len(missing):,} of these partitions are not in the newest look ({named(missing, 6)}): they were made"
            " later, or are gone, or could not be described."
        )
    unheard = sum(1 for row in now.rows.values() if not any(one.heard for one in row.decision.candidates))
    if unheard:
        yield Gap(f"Of {unheard:,} partitions no replica's log was read in the newest look.")
    if now.errors:
        topics = ", ".join(sorted({error.topic for error in now.errors})[:5])
        yield Gap(f"{len(now.errors):,} topics or partitions could not be described, such as {topics}.")


def _untold(wanted: Wanted, told: Told | None, now: Look) -> Iterator[Gap]:
    """The times of which the metadata log does not tell."""
    if told is None:
        return
    begins, ends = (when(at_ms)[:19] for at_ms in (told.whole_since_ms or told.begins_ms, told.ends_ms))
    if told.whole_since_ms is not None:
        yield Gap(f"What happened before {begins} UTC is not told by the metadata log: only how partitions stood then.")
    if not told.to_its_end or told.ends_ms + READ_WITHIN_MS < now.taken_at_ms:
        why = "" if wanted.until is None else " (--until)"
        yield Gap(f"What happened between {ends} UTC{why} and the newest look is not told by the metadata log.")
    if not told.elr_on:
        yield Gap(
            "ELR was off for all or some of that time: whether partitions were under min ISR is told only where"
            " min.insync.replicas is on record, and to be elected from the ISR proves nothing of a log."
        )


def _silence(now: Source, before: Source | None) -> Iterator[Gap]:
    for source, what in ((now, "the newest look"), (before, "the snapshot from the incident (--before)")):
        silence = None if source is None else silence_of(source)
        if silence is not None:
            yield Gap(
                f"No controller answered ({silence}) when {what} was taken: what brokers told may have been out of"
                " date."
            )


def _commands(session: Session, wanted: Wanted) -> Mapping[str, str]:
    targets = tuple(map(str, wanted.selection.targets))
    output, plan = session.output, str(wanted.plan or "PLAN")
    return {
        "explain": output.next_command(["explain", *targets, "--full"]),
        "csv": output.next_command(["explain", *targets, "-o", "csv"]),
        "history": output.next_command(["history", *targets]),
        "history-summary": output.next_command(["history", *targets, "--summary"]),
        "log": shlex.join(["kelr", "recover", "log"]),
        "resume": output.next_command(["recover", "resume"]),
        "verify": output.next_command(["recover", "verify", plan]),
    }


def _advice(session: Session, now: Look) -> Mapping[TopicPartition, str]:
    return {
        at: session.output.next_command(row.decision.advice.command)
        for at, row in now.rows.items()
        if row.decision.advice.command
    }


def _command(session: Session, file: Path, wanted: Wanted) -> str:
    """The command line that makes the same report, without what only this machine or person knows."""
    options: list[str] = []
    for flag, value in (("--before", wanted.before), ("--plan", wanted.plan), ("--since", wanted.since)):
        options += [] if value is None else [flag, str(value)]
    options += [] if wanted.until is None else ["--until", wanted.until]
    options += [part for path in wanted.logs for part in ("--logs", str(path))]
    options += ["--all-topic-partitions"] if wanted.everything else []
    return session.output.next_command(["report", str(file), *map(str, wanted.selection.targets), *options])


# What was done.


_NO_CLUSTER = (
    "Which cluster this is, is not known: kelr's audit log may be of another one, and what kelr did is not told."
)
_NO_AUDIT = (
    "There is no audit log on this machine ({file}): what kelr did from elsewhere is not in this report. Run it where"
    " the elections were carried out, or name that state directory in KELR_STATE_DIR."
)


def read_done(
    selection: Selection,
    since: str | None,
    until: str | None,
    *,
    cluster_id: str | None,
    told: Told | None,
    rescued: Iterable[Path] = (),
) -> tuple[Done | None, list[Gap]]:
    """What kelr did to these partitions in this time; None, and why, where that cannot be told.

    Args:
        rescued: rescue files that count beside those of the audit log.

    Raises:
        UsageError: a moment cannot be read.
    """
    if cluster_id is None:
        return None, [Gap(_NO_CLUSTER)]
    state = state_directory()
    since_ms = _moment_ms("--since", since, None if told is None else told.begins_ms)
    until_ms = _moment_ms("--until", until, None if told is None else told.ends_ms)
    try:
        # Which line is there twice is seen in the whole log alone: the first of them may be from before that time.
        lines = _each_once(audit.read(state, cluster_id=cluster_id))
        rows = tuple(row for row in lines if _concerns(row, selection) and _is_within(row, since_ms, until_ms))
        runs = tuple(map(_open_run, open_journals(state, cluster_id)))
        journals = len(journal_files(state, cluster_id))
    except BadInputError as error:
        return None, [Gap(f"What kelr did is not told: {error}.")]
    file = audit_file(state)
    saved, unread = known_files(rows, rescued, cluster_id=cluster_id)
    gaps = [*map(Gap, unread), *([] if file.exists() else [Gap(_NO_AUDIT.format(file=file))])]
    # Saving records changes nothing, and a disk may have been saved whole.
    changes = tuple(row for row in rows if row.command != DUMP)
    return Done(str(file), changes, runs, journals, saved), gaps


def _moment_ms(option: str, text: str | None, by_log_ms: int | None) -> int | None:
    """A moment as a time: an offset is only one where a metadata log tells when it was written."""
    moment = read_moment(option, text, now_ms=now_ms())
    if moment is None:
        return None
    return by_log_ms if moment.at_ms is None else moment.at_ms


def _each_once(rows: Iterable[AuditRecord]) -> Iterator[AuditRecord]:
    """The lines without those that say again what an earlier one of the same journal says: where kelr was killed right
    after it had written an election's line, `recover resume` writes it once more."""
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        key = row.journal, row.topic, row.partition, row.result
        if row.what is AuditWhat.ELECTION and row.journal is not None:
            if key in seen:
                continue
            seen.add(key)
        yield row


def _is_within(row: AuditRecord, since_ms: int | None, until_ms: int | None) -> bool:
    return (since_ms is None or row.at_ms >= since_ms) and (until_ms is None or row.at_ms <= until_ms)


def _concerns(row: AuditRecord, selection: Selection) -> bool:
    if row.partition is None:
        return selection.matches_topic(row.topic)
    return selection.matches(row.topic, row.partition)


def _open_run(journal: Journalled) -> OpenRun:
    who = f"{journal.who.user}@{journal.who.host}"
    partitions = len({*journal.partitions, *journal.planned})
    return OpenRun(journal.path.stem, journal.command, who, journal.begun_ms, partitions)


# The metadata log.


MOST_ENTRIES = 5_000
"""So many entries are kept at most; those that tell least are left out first, then the oldest."""
_NO_LOG = (
    "No metadata log was given (--metadata-log, or -b of a live cluster): the timeline has only what kelr did and saw,"
    " and how long partitions had no leader is not known."
)


def read_log(
    session: Session, selection: Selection, since: str | None, until: str | None, *, cluster_id: str | None
) -> tuple[Told | None, list[Gap]]:
    """What the metadata log tells of these partitions; None, and why, where there is none or no controller answers.

    Raises:
        BadInputError: files that were given are no metadata log.
        RefusedError: the log is of another cluster.
        UsageError: a moment cannot be read.
    """
    now = now_ms()
    window = Window(read_moment("--since", since, now_ms=now), read_moment("--until", until, now_ms=now))
    try:
        with opened_log(session.settings, by_brokers=True) as log:
            if log is None:
                return None, [Gap(_NO_LOG)]
            if None not in {log.cluster_id, cluster_id} and log.cluster_id != cluster_id:
                raise RefusedError(
                    f"the metadata log is of cluster {log.cluster_id}, and the report is about cluster {cluster_id}",
                    next_step="give files of one cluster",
                    code="wrong-cluster",
                )
            told = _Reading(session, log, selection, window).told()
    except (ConnectError, NotAuthorizedError, UnsupportedError) as error:
        return None, [Gap(f"The metadata log could not be read: {error}. The timeline has only what kelr did and saw.")]
    if told is None:
        return None, [Gap("The metadata log holds nothing of the time that was asked for.")]
    return told, []


class _Reading:
    """One run over the log."""

    def __init__(self, session: Session, log: MetadataLogReader, selection: Selection, window: Window) -> None:
        self._session, self._log, self._window = session, log, window
        self._history = History(_interest(selection), window)
        self._entries: list[Entry] = []
        self._left_out = 0
        self._turns: dict[TopicPartition, list[Turn]] = {}
        self._elr_on = True

    def told(self) -> Told | None:
        """Read it all; None where nothing is in the window."""
        history = self._history
        with self._session.progress(counted(self._log)) as progress:
            for batch in self._log.batches(progress):
                if history.over(batch):
                    break
                self._take(list(history.take(batch)))
                self._elr_on &= history.image.keeps_elr or history.begins_ms is None or not history.image.names
            self._take(list(history.finish()))
        as_of = history.as_of
        if as_of is None or history.begins_ms is None:
            return None
        summaries = {one.address: one for one in history.summaries() if _IN_TROUBLE & one.spans.keys() or one.unsafe}
        return Told(
            self._log.name,
            history.begins_ms,
            history.whole_since_ms,
            as_of.timestamp_ms,
            self._window.until is None and not self._log.cut_short,
            self._elr_on,
            history.image.partition,
            as_of.offset,
            tuple(self._entries),
            self._left_out,
            summaries,
            {at: tuple(turns) for at, turns in self._turns.items() if at in summaries},
            (*self._log.warnings, *check_understood(history.image, name=self._log.name)),
        )

    def _take(self, found: list[Entry]) -> None:
        for entry in found:
            if isinstance(entry, PartitionEntry):
                self._turn(entry)
        self._entries += grouped(found)
        if len(self._entries) > 2 * MOST_ENTRIES:
            before = len(self._entries)
            telling = [entry for entry in self._entries if weight_of(entry)]
            self._entries = telling[-MOST_ENTRIES:]
            self._left_out += before - len(self._entries)

    def _turn(self, entry: PartitionEntry) -> None:
        """Follow how a partition stands, from its first trouble on."""
        at_ms, light = entry.at.timestamp_ms, _light(entry.after)
        election = entry.election
        clean = None if election is None or election.elected_as is ElectedAs.UNKNOWN else election.elected_as.clean
        unsure = election is not None and clean is not True
        turns = self._turns.get(entry.address)
        if turns is None:
            if light is Light.LED and not unsure:
                return
            turns = self._turns[entry.address] = []
            if entry.before is not None:
                turns.append(Turn(0, _light(entry.before)))
        if not turns or turns[-1].light is not light or election is not None:
            turns.append(Turn(at_ms, light, None if election is None else election.leader, clean))


_IN_TROUBLE = frozenset({Trouble.LEADERLESS, Trouble.UNDER_MIN_ISR})


def _interest(selection: Selection) -> Interest:
    if selection.is_everything:
        return Interest()

    @lru_cache(maxsize=1 << 20)
    def matches(address: TopicPartition) -> bool:
        return selection.matches(address.topic, address.partition)

    return Interest(matches, named=True)


def _light(state: PartitionState | None) -> Light:
    if state is None:
        return Light.DELETED
    if state.leader is None:
        return Light.LEADERLESS
    return Light.ALONE if len(state.isr) == 1 and len(state.replicas) > 1 else Light.LED
