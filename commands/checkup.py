"""What ``kelr doctor`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kelr import __version__
from kelr.commands.elections_on_record import Unsaved, unsaved_on_record
from kelr.commands.metadata_logs import counted, opened_log
from kelr.commands.session import CONTROLLERS_FIRST, Session, now_ms
from kelr.commands.stock_tools import stock_connection
from kelr.commands.topic_errors import topics_failed
from kelr.config.contexts_file import contexts_path
from kelr.engine.checkup import cluster_checks
from kelr.engine.checkup.abilities import LogInfo, abilities
from kelr.engine.checkup.catalogue import (
    CHECKS,
    FLUSH_UNWATCHED,
    FLUSHING,
    LEADERLESS,
    REORDERED,
    THROTTLE_LEFT,
    UNCLEAN_RESTARTS,
    UNDER_MIN_ISR,
    UNSAVED,
    Looks,
    chosen,
)
from kelr.engine.checkup.flushing import flush_checks
from kelr.engine.checkup.incidents import Calm, for_cluster, waits
from kelr.engine.checkup.nodes import throttle_checks
from kelr.engine.checkup.rights import Allowed, CommandRights, all_rights, named_topics, rights_of
from kelr.engine.checkup.tally import Tallies
from kelr.engine.checkup.topics import TopicChecks
from kelr.errors import AuthenticationError, KelrError, PartlyDoneError, UsageError
from kelr.model import Selection, TopicError
from kelr.model.acls import COMMAND_ACLS
from kelr.model.checkup import CheckupFacts, Finding, LeftBehind, NotChecked, NotRead, RestartHistory, Restarts
from kelr.model.rows import example_of_topics, topics_of
from kelr.recovery.places import state_directory
from kelr.sources.base import Source, silence_of
from kelr.sources.live import LiveSource
from kelr.sources.quorum_source import without_log
from kelr.sources.survey import survey
from kelr.view.doctor import AclsReport, DoctorReport, Shell, show_acls_report

# Where the named clusters are: ``contexts.toml``; see `kelr.config`.


def contexts_file(environ: Mapping[str, str]) -> Path:
    """Where the contexts are looked for."""
    return contexts_path(environ)


# What is around kelr on this machine: versions, files, the way in.


def surroundings(session: Session, *, live: bool) -> tuple[tuple[str, str], ...]:
    """Name and value of each; nothing secret.

    Args:
        live: whether a cluster is asked.
    """
    return tuple(_told(session, live=live))


def _told(session: Session, *, live: bool) -> Iterator[tuple[str, str]]:
    libraries = f"confluent-kafka {_version('confluent-kafka')}"
    yield "kelr", f"{__version__}, Python {platform.python_version()}, {libraries}"
    settings = session.settings
    if live:
        yield "connection", _connection(session)
    if settings.context is not None:
        yield "context", f"{settings.context} ({contexts_file(os.environ)})"
    if settings.command_config is not None:
        yield "command config", str(settings.command_config)
    yield "state directory", _state(state_directory())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "is not installed"


def _connection(session: Session) -> str:
    connection = session.settings.connection()
    mechanism = f", {connection.sasl_mechanism}" if connection.sasl_mechanism is not None else ""
    ignored = f"; not used: {', '.join(connection.ignored)}" if connection.ignored else ""
    return f"{connection.security_protocol}{mechanism}{ignored}"


def _state(directory: Path) -> str:
    """Whether journals could be written there; nothing is made to find out."""
    place = directory
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        return f"{directory}: {place} is no directory, so that no election can be journalled"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"{directory}: not writable, so that no election can be journalled"
    return f"{directory}: writable" if place == directory else f"{directory}: not there yet, and can be made"


@dataclass(frozen=True, slots=True)
class Asked:
    """Which partitions, and which checks."""

    selection: Selection
    only: tuple[str, ...]
    skip: tuple[str, ...]


def check_up(session: Session, asked: Asked, *, check: bool) -> bool:
    """Look at everything and show it; whether no partition was seen though some were to be looked at or, with `check`,
    something of severity warning or worse was found.

    Raises:
        UsageError: there is no such check.
        ConnectError, AuthenticationError: the cluster cannot be reached at all.
        NotAuthorizedError, PartlyDoneError: topics could not be described.
    """
    wanted = _wanted(asked)
    patient = admit(session, wanted)
    tallies = Tallies(wanted)
    examined = Examination(session, patient, asked.selection, wanted)
    shell = Shell(session.output, stock_connection(session))
    report = DoctorReport(
        shell,
        patient.facts.cluster,
        source=patient.source.name,
        abilities=abilities(patient.facts, patient.log_info),
        surroundings=surroundings(session, live=patient.live is not None),
    )
    with report:
        for found in examined.findings():
            report.add(tallies.take(found))
        report.finish(
            tallies,
            partitions=examined.partitions,
            topics=examined.topics,
            rights=_rights(patient.source, examined.some_topics or some_topics(patient.source, asked.selection)),
            errors=examined.errors,
            following=_following(tallies, asked.selection),
        )
    if examined.errors:
        raise topics_failed(examined.errors, some_worked=examined.partitions > 0)
    return examined.saw_nothing or (check and tallies.worth_an_exit)


def refuse_without_controller(session: Session) -> None:
    """Raises PartlyDoneError where no controller answered: what stands on it was not checked."""
    silence = silence_of(session.source())
    if silence is not None:
        raise PartlyDoneError(
            f"no controller answers ({silence}): how partitions and brokers stand now could not be checked",
            next_step=CONTROLLERS_FIRST,
        )


def _wanted(asked: Asked) -> frozenset[str]:
    try:
        return chosen(_names(asked.only), _names(asked.skip))
    except ValueError as error:
        raise UsageError(str(error), next_step="kelr doctor without --only and --skip makes all checks") from None


def _names(given: Iterable[str]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def _rights(source: Source, topics: Sequence[str]) -> tuple[CommandRights, ...] | None:
    allowed = read_rights(source, topics)
    return None if allowed is None else all_rights(allowed)


def _following(tallies: Tallies, selection: Selection) -> tuple[str, ...] | None:
    """Partitions in trouble come before everything else."""
    found = {tally.id for tally in tallies.found}
    return ("explain", *map(str, selection.targets)) if found & {LEADERLESS.id, UNDER_MIN_ISR.id, UNSAVED.id} else None


def show_acls(session: Session, words: Sequence[str], principal: str | None) -> None:
    """Show what commands need and, where a cluster is named, which of it this principal has.

    Raises:
        UsageError: there is no such command, or none that needs an ACL.
    """
    command = " ".join(words)
    allowed = _allowed(session)
    try:
        rights = all_rights(allowed or Allowed()) if not command else (rights_of(command, allowed or Allowed()),)
    except KeyError:
        raise UsageError(
            f"no command {command!r} asks a cluster for anything", next_step=f"choose one of {', '.join(COMMAND_ACLS)}"
        ) from None
    settings = session.settings
    servers = _stock_servers(session) if settings.bootstrap_server and settings.saved is None else None
    report = AclsReport(rights, principal or _principal(session), servers, asked=allowed is not None)
    show_acls_report(session.output, report)


def _stock_servers(session: Session) -> str:
    """Where kafka-acls.sh goes. Whoever may grant ACLs logs in as another than who lacks them: with another file."""
    flags = stock_connection(session).split(maxsplit=1)[1]
    return f"{flags.split(maxsplit=1)[0]} --command-config FILE" if "--command-config" in flags else flags


def _allowed(session: Session) -> Allowed | None:
    """What brokers tell; None where no cluster was named."""
    settings = session.settings
    if settings.saved is not None or not (settings.bootstrap_server or settings.command_config):
        return None
    source = session.source()
    return read_rights(source, some_topics(source, session.selection(())))


def _principal(session: Session) -> str:
    """Who we are, where the login tells: a certificate's name is the broker's own business."""
    settings = session.settings
    if settings.saved is not None or not settings.bootstrap_server:
        return "User:NAME"
    credentials = settings.connection().credentials
    name = getattr(credentials, "username", None)
    return f"User:{name}" if name else "User:NAME"


# Reading.


TOPICS_ASKED = 100
"""Topics whose ACLs are asked for: the answer lists all of their partitions."""
_NO_LOG = "no metadata log was named (--metadata-log or --bootstrap-controller)"


@dataclass(frozen=True, slots=True)
class Patient:
    """A cluster, or what was saved of it, and what it told before any partition was read."""

    source: Source
    facts: CheckupFacts
    log_info: LogInfo

    @property
    def live(self) -> LiveSource | None:
        """The live cluster; None where something saved answers."""
        found = without_log(self.source)
        return found if isinstance(found, LiveSource) else None


def admit(session: Session, wanted: frozenset[str]) -> Patient:
    """Ask everything that is not about partitions.

    Raises:
        ConnectError, AuthenticationError: the cluster cannot be reached at all.
    """
    source = session.source()
    cluster = source.cluster()
    live = without_log(source)
    configured = session.settings.log_info
    if not isinstance(live, LiveSource):
        unknown = NotRead(_saved(session))
        restarts = _restarts(session) if UNCLEAN_RESTARTS.id in wanted else unknown
        left = _left_behind(source) if REORDERED.id in wanted and session.settings.saved is None else unknown
        unsaved = _unsaved(source, wanted)
        facts = CheckupFacts(cluster, unknown, unknown, unknown, restarts, left, unsaved=unsaved)
        return Patient(source, facts, LogInfo(None if configured is None else str(configured)))
    from kelr.sources.live.checkup import read_live_facts  # noqa: PLC0415 - only a live cluster is asked

    told = read_live_facts(live, clock_ms=now_ms)
    facts = CheckupFacts(
        cluster,
        told.brokers,
        told.defaults,
        told.quorum,
        _restarts(session) if UNCLEAN_RESTARTS.id in wanted else NotRead("not asked for"),
        _left_behind(source) if REORDERED.id in wanted else NotRead("not asked for"),
        told.moving,
        _unsaved(source, wanted),
        told.controllers,
    )
    return Patient(source, facts, LogInfo(None if configured is None else str(configured), told.log_info))


def _saved(session: Session) -> str:
    what = "a metadata log" if session.settings.log_answers else "a saved snapshot"
    return f"{what} does not tell"


_OF_PARTITIONS = frozenset(check.id for check in CHECKS if check.looks is Looks.PARTITIONS)


class Examination:
    """All checks, as they are made: of the cluster first, then topic by topic.

    Args:
        wanted: ids of the checks to make.
    """

    def __init__(self, session: Session, patient: Patient, selection: Selection, wanted: frozenset[str]) -> None:
        self._session, self._patient, self._selection, self._wanted = session, patient, selection, wanted
        self._reads_topics = bool(wanted & {THROTTLE_LEFT.id, FLUSHING.id, FLUSH_UNWATCHED.id})
        self._own: dict[str, Mapping[str, str]] = {}
        """What is set on topics themselves, of throttles and flushing."""
        self._unread: list[NotChecked] = []
        self._defaults: list[Finding] = []
        self._troubled = 0
        self.partitions = 0
        self.topics = 0
        self.errors: list[TopicError] = []
        self.some_topics: list[str] = []
        """The first that were seen."""

    def findings(self) -> Iterator[list[Finding | NotChecked]]:
        """All that is found, as it is found.

        Raises:
            ConnectError, AuthenticationError: the cluster went away for good.
        """
        told = list(cluster_checks(self._patient.facts))
        yield [one for one in told if not waits(one)]
        if self._wanted & _OF_PARTITIONS or self._reads_topics:
            yield from self._of_topics()
        if self._reads_topics:
            yield list(self._of_own_configs())
        waiting = [one for one in told if isinstance(one, Finding) and waits(one)]
        yield list(for_cluster((*waiting, *self._defaults), self._calm()))

    @property
    def saw_nothing(self) -> bool:
        """Whether partitions were to be looked at, and there was none to see."""
        return bool(self._wanted & _OF_PARTITIONS) and not self.partitions

    def _calm(self) -> Calm:
        """Whether anything is in trouble, as far as was looked."""
        whole = self._selection.is_everything and not self.errors
        return Calm(self._troubled, everything=whole and self.partitions > 0)

    def _of_own_configs(self) -> Iterator[Finding | NotChecked]:
        facts = self._patient.facts
        if self._patient.live is None:
            for check in (THROTTLE_LEFT, FLUSHING, FLUSH_UNWATCHED):
                yield check.not_checked(_saved(self._session))
            return
        yield from throttle_checks(facts, self._own, moving=facts.moving, not_read=self._unread)
        yield from flush_checks(facts, self._own, not_read=self._unread)

    def _of_topics(self) -> Iterator[list[Finding | NotChecked]]:
        checks = TopicChecks(self._patient.facts.cluster, wanted=self._wanted)
        last: str | None = None
        with self._session.progress("partitions looked at") as progress:
            for page in survey(self._patient.source, self._selection, as_told=True):
                found = list(checks.add(page.partitions))
                self.errors.extend(page.topic_errors)
                names = dict.fromkeys(topic for topic, _ in example_of_topics(page.partitions))
                seen = [name for name in names if name != last]
                last = next(reversed(names), last)
                self._have_seen(seen)
                if progress is not None:
                    progress(checks.partitions, checks.partitions + 1)
                if found:
                    yield found
        yield list(checks.finish())
        self.partitions, self.topics = checks.partitions, checks.topics
        self._defaults, self._troubled = list(checks.of_defaults()), checks.troubled
        yield self._unseen()

    def _have_seen(self, topics: list[str]) -> None:
        self.some_topics.extend(topics[: max(0, TOPICS_ASKED - len(self.some_topics))])
        live = self._patient.live
        if live is None or not topics or not self._reads_topics:
            return
        from kelr.sources.live.checkup import read_own_configs  # noqa: PLC0415 - only a live cluster is asked

        for found, unknown in read_own_configs(live, topics):
            self._own.update(found)
            self._unread.extend(unknown)

    def _unseen(self) -> list[Finding | NotChecked]:
        """What nobody could look at: a cluster that shows nothing is not one that is well."""
        ids = sorted(self._wanted & _OF_PARTITIONS)
        if not self.partitions:
            why = "no partition was seen; brokers leave out topics that this principal may not DESCRIBE"
            return [NotChecked(check, why) for check in ids]
        hidden: dict[str, list[str]] = {}
        for error in self.errors:
            if not error.absent:
                hidden.setdefault(error.error, []).append(error.topic)
        return [NotChecked(check, why, tuple(topics)) for why, topics in hidden.items() for check in ids]


def _restarts(session: Session) -> RestartHistory | NotRead:
    """Registrations in the metadata log that was named, and what they tell of the shutdowns before."""
    from kelr.replay.history import BrokerEntry, BrokerEvent, History, Interest, Restart, Window  # noqa: PLC0415
    from kelr.sources.metadata_log.replaying import check_understood  # noqa: PLC0415

    settings = session.settings
    if not settings.metadata_log and settings.bootstrap_controller is None:
        return NotRead(_NO_LOG)
    history = History(Interest(), Window(), summaries=False)
    unclean: dict[int, list[int]] = {}
    counts: dict[int, dict[Restart, int]] = {}
    first_ms: int | None = None
    try:
        with opened_log(settings) as log, session.progress("metadata log read") as progress:
            if log is None:
                return NotRead(_NO_LOG)
            session.say(counted(log))
            for batch in log.batches(progress):
                first_ms = batch.timestamp_ms if first_ms is None else first_ms
                for entry in history.take(batch):
                    if isinstance(entry, BrokerEntry) and entry.event is BrokerEvent.REGISTERED and entry.restart:
                        of_broker = counts.setdefault(entry.broker, {})
                        of_broker[entry.restart] = of_broker.get(entry.restart, 0) + 1
                        if entry.restart is Restart.UNCLEAN:
                            unclean.setdefault(entry.broker, []).append(entry.at.timestamp_ms)
            for _ in history.finish():
                pass
            check_understood(history.image, name=log.name)
    except AuthenticationError:
        raise
    except KelrError as error:
        return NotRead(f"the metadata log: {error.message}")
    as_of = history.as_of
    if first_ms is None or as_of is None:
        return NotRead("the metadata log holds nothing")
    brokers = tuple(
        Restarts(
            broker,
            tuple(unclean.get(broker, ())),
            of_broker.get(Restart.CLEAN, 0),
            of_broker.get(Restart.NOT_SHOWN, 0),
        )
        for broker, of_broker in sorted(counts.items())
    )
    return RestartHistory(first_ms, as_of.timestamp_ms, brokers)


def _unsaved(source: Source, wanted: frozenset[str]) -> Unsaved | NotRead:
    """What disks of brokers that are down may hold alone, by the elections in this machine's audit log."""
    if UNSAVED.id not in wanted:
        return NotRead("not asked for")
    notes: list[str] = []
    found = unsaved_on_record(source, Selection(), notes.append)
    return NotRead("; ".join(notes)) if notes else found


def _left_behind(source: Source) -> tuple[LeftBehind, ...] | NotRead:
    """Journals of this machine that are open for the cluster."""
    from kelr.recovery.places import state_directory  # noqa: PLC0415 - only where it is checked
    from kelr.recovery.status import status  # noqa: PLC0415

    try:
        found = status(source, state_directory())
    except OSError as error:
        return NotRead(f"the state directory: {error.strerror or error}")
    journals = [
        LeftBehind(
            one.name,
            f"{one.command}, {one.text}" + (" (another kelr is at work)" if found.at_work else ""),
            tuple(at.address for at in one.partitions if at.reordered),
            ("recover", "status") if found.at_work else tuple(one.next_step.split()),
        )
        for one in found.journals
    ]
    journals += [LeftBehind("?", f"a journal cannot be read: {why}", (), ()) for why in found.garbled]
    return tuple(journals)


def some_topics(source: Source, selection: Selection) -> list[str]:
    """The first topics of a selection that can be seen: no more than `TOPICS_ASKED`."""
    found: list[str] = []
    for page in source.pages(selection):
        found.extend(topic for topic in topics_of(page.partitions) if topic not in found)
        if len(found) >= TOPICS_ASKED:
            break
    return found[:TOPICS_ASKED]


def read_rights(source: Source, topics: Sequence[str]) -> Allowed | None:
    """What the principal may do on the cluster and on these topics; None where no cluster is asked.

    Raises:
        ConnectError, AuthenticationError: the cluster cannot be reached.
    """
    live = without_log(source)
    if not isinstance(live, LiveSource):
        return None
    from kelr.sources.live.changes import LiveAdminClient  # noqa: PLC0415 - only a live cluster is asked

    named = named_topics()
    told = LiveAdminClient.of(live).permissions(tuple(dict.fromkeys((*topics, *sorted(named)))))
    return Allowed(
        told.cluster,
        {topic: told.topics.get(topic) for topic in topics},
        {topic: told.topics.get(topic) for topic in named},
    )
