"""The connection of a session as Kafka's own tools take it."""

from __future__ import annotations

import shlex

from kelr.commands.session import Session


def stock_connection(session: Session) -> str:
    """The connection flags as Kafka's own tools take them; to be filled in for a snapshot."""
    settings = session.settings
    if settings.snapshot is not None or not (settings.bootstrap_server or settings.command_config):
        return "--bootstrap-server HOST:PORT"
    stock = ["--bootstrap-server", settings.connection().servers_text]
    if settings.login is not None and set(settings.login.keys) - {"bootstrap.servers"}:
        # Kafka's tools know no contexts: their properties have to be put into a file.
        stock += ["--command-config", "FILE"]
    elif settings.command_config is not None:
        stock += ["--command-config", str(settings.command_config)]
    return shlex.join(stock)
