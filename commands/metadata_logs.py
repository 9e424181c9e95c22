"""The metadata log that the shared options point to: files, live controllers, or those that the brokers tell of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kelr.commands.session import Resolved
    from kelr.sources.connection import ConnectionSettings
    from kelr.sources.live.metadata_log import LiveMetadataLog
    from kelr.sources.metadata_log.log import MetadataLogReader


@contextmanager
def opened_log(settings: Resolved, *, by_brokers: bool = False) -> Iterator[MetadataLogReader | None]:
    """The metadata log; None where no option points to one. Connections end with the block.

    Args:
        by_brokers: where only brokers are named, ask them where the controllers are.

    Raises:
        BadInputError: the files are no metadata log.
        ConnectError, AuthenticationError, NotAuthorizedError, UnsupportedError: brokers do not tell of controllers.
    """
    if settings.metadata_log:
        from kelr.sources.metadata_log.log import open_metadata_log  # noqa: PLC0415 - only for files

        yield open_metadata_log(settings.metadata_log)
        return
    live = live_log(settings, by_brokers=by_brokers)
    if live is None:
        yield None
        return
    with live:
        yield live


def live_log(settings: Resolved, *, by_brokers: bool = False) -> LiveMetadataLog | None:
    """The metadata log of a live cluster, to be closed; see `opened_log`."""
    from kelr.sources.live.metadata_log import live_metadata_log  # noqa: PLC0415 - only where it is asked for

    named = settings.bootstrap_server is not None or (
        settings.command_config is not None and settings.bootstrap_controller is None
    )
    answers = settings.log_answers or settings.snapshot is not None
    brokers = None if answers or not named else _connection(settings, settings.bootstrap_server)
    if settings.bootstrap_controller is not None:
        controllers = _connection(settings, settings.bootstrap_controller)
        return live_metadata_log(controllers=controllers, brokers=brokers, cluster_id=settings.cluster_id)
    if brokers is None or not by_brokers:
        return None
    return live_metadata_log(brokers=brokers, cluster_id=settings.cluster_id)


def counted(log: MetadataLogReader) -> str:
    """What a progress line of this log counts."""
    # A controller tells no bytes: only how many records there are.
    return "records of the metadata log read" if hasattr(log, "follow") else "bytes of the metadata log read"


def _connection(settings: Resolved, servers: str | None) -> ConnectionSettings:
    return settings.connection(servers)
