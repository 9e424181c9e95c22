"""The connection of a session as Kafka's own tools take it."""

from __future__ import annotations

import shlex

from kelr.commands.session import Session


def stock_connection(session: Session) -> str:
    """The connection flags as Kafka's own tools take them; to be filled in for a snapshot."""
    settings = session.settings
    if settings.snapshot is not None or not (settings.bootstrap_server or settings.command_config):
        return "--bootstrap-server HOST:PORT"
    from kelr.sources.connection import ConnectionSettings  # noqa: PLC0415 - not for a snapshot

    connection = ConnectionSettings.read(settings.bootstrap_server, command_config=settings.command_config)
    stock = ["--bootstrap-server", connection.servers_text]
    if settings.command_config is not None:
        stock += ["--command-config", str(settings.command_config)]
    return shlex.join(stock)
