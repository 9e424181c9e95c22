"""What ``kelr doctor`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kelr import __version__
from kelr.commands.checkup_reading import Examination, admit, read_rights, some_topics
from kelr.commands.session import Session
from kelr.commands.stock_tools import stock_connection
from kelr.commands.topic_errors import topics_failed
from kelr.config.contexts_file import contexts_path
from kelr.engine.checkup.abilities import abilities
from kelr.engine.checkup.catalogue import LEADERLESS, UNDER_MIN_ISR, UNSAVED, chosen
from kelr.engine.checkup.rights import Allowed, CommandRights, all_rights, rights_of
from kelr.engine.checkup.tally import Tallies
from kelr.errors import PartlyDoneError, UsageError
from kelr.model import Selection
from kelr.model.acls import COMMAND_ACLS
from kelr.recovery.places import state_directory
from kelr.sources.base import Source, silence_of
from kelr.view.doctor import DoctorReport, Shell
from kelr.view.doctor_acls import AclsReport, show_acls_report

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


def check_up(session: Session, asked: Asked) -> bool:
    """Look at everything and show it; whether something of severity warning or worse was found, or no partition was
    seen of which it could be.

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
    return tallies.worth_an_exit or examined.saw_nothing


def refuse_without_controller(session: Session) -> None:
    """Raises PartlyDoneError where no controller answered: what stands on it was not checked."""
    silence = silence_of(session.source())
    if silence is not None:
        raise PartlyDoneError(
            f"no controller answers ({silence}): how partitions and brokers stand now could not be checked",
            next_step="bring a majority of the controllers back, and check again",
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
