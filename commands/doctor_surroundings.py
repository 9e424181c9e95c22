"""What is around kelr on this machine: versions, files, the way in."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kelr import __version__
from kelr.commands.contexts import contexts_file
from kelr.commands.session import Session
from kelr.recovery.places import state_directory

_LIBRARIES = ("confluent-kafka", "kafka-python")


def surroundings(session: Session, *, live: bool) -> tuple[tuple[str, str], ...]:
    """Name and value of each; nothing secret.

    Args:
        live: whether a cluster is asked.
    """
    return tuple(_told(session, live=live))


def _told(session: Session, *, live: bool) -> Iterator[tuple[str, str]]:
    libraries = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
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
