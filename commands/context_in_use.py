"""Which context a run uses, how that logs in, and the flags that lead to the same cluster again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.errors import UsageError

if TYPE_CHECKING:
    from kelr.commands.settings import Settings
    from kelr.config.context import Context
    from kelr.config.login import Login


CLUSTER_VARIABLES = ("KELR_BOOTSTRAP_SERVER", "KELR_COMMAND_CONFIG", "KELR_BOOTSTRAP_CONTROLLER")
"""Those that name a cluster, or how to log in to one."""


def variables_beside(given: Settings, variables: Mapping[str, str]) -> Mapping[str, str]:
    """The variables without those that name a cluster, where ``--context`` names one: who typed it means that cluster,
    and not the one of a variable that was set a while ago; nor is its password for that one."""
    if not given.context:
        return variables
    return {name: value for name, value in variables.items() if name not in CLUSTER_VARIABLES}


def given_servers(given: Settings) -> str | None:
    """The brokers that a flag names, be it as a property. Raises UsageError where that property is empty."""
    if given.bootstrap_server or not given.command_property:
        return given.bootstrap_server
    from kelr.config.login import given_properties  # noqa: PLC0415 - only where there are properties

    servers = given_properties(given.command_property).get("bootstrap.servers")
    if servers is not None and not servers.strip():
        raise UsageError(
            "--command-property bootstrap.servers was given an empty value, as by a variable that is not set",
            next_step="give it a value, or leave it out",
        )
    return servers


def context_in_use(given: Settings, variables: Mapping[str, str]) -> Context | None:
    """The context that a flag or a variable names, or else the current one, where nothing else names a cluster.

    The current context never stands beside an address or a properties file that somebody gave: its password would go
    to a cluster that it is not for.

    Raises:
        UsageError, BadInputError, RefusedError: see `ContextsFile.context`; or such a variable is set and empty.
    """
    wanted = given.context or variables.get("KELR_CONTEXT") or None
    if wanted is None and _names_cluster(given, variables):
        return None
    from kelr.config.contexts_file import read_contexts  # noqa: PLC0415 - not where a cluster is named otherwise

    file = read_contexts(variables)
    if wanted is not None:
        return file.context(wanted)
    if file.current is None:
        return None
    _refuse_empty(variables)
    return file.current_context()


def _refuse_empty(variables: Mapping[str, str]) -> None:
    """An empty variable names no cluster, and whoever set it did not mean the current context. Raises UsageError."""
    for name in ("KELR_CONTEXT", *CLUSTER_VARIABLES):
        if name in variables:
            raise UsageError(
                f"{name} is set and empty, as by a variable that is not set; the current context is not used instead",
                next_step=f"give it a value, or unset {name}",
            )


def _names_cluster(given: Settings, variables: Mapping[str, str]) -> bool:
    flags = (
        given_servers(given),
        given.command_config,
        given.bootstrap_controller,
        given.snapshot,
        given.metadata_log,
    )
    return any(flags) or any(variables.get(name) for name in CLUSTER_VARIABLES)


def login_of(given: Settings, variables: Mapping[str, str], context: Context | None) -> Login | None:
    """The properties besides those of a file. A file that was given is the whole way to log in: with it, what the
    context says of that is not used."""
    properties = given.command_property or ()
    used = (
        context if context is not None and context.logs_in and given_command_config(given, variables) is None else None
    )
    if not properties and used is None:
        return None
    from kelr.config.login import Login, given_properties  # noqa: PLC0415 - only where there are properties

    found = given_properties(properties)
    return Login(given=found, environ=variables) if used is None else Login(used, found, environ=variables)


def given_command_config(given: Settings, variables: Mapping[str, str]) -> Path | None:
    """The properties file of a flag or a variable; not that of a context."""
    text = variables.get("KELR_COMMAND_CONFIG")
    return given.command_config or (Path(text) if text else None)


def connection_flags(given: Settings, variables: Mapping[str, str], context: Context | None) -> tuple[str, ...]:
    """The flags that lead to the same cluster. The current context is named too: it may be another one soon."""
    current = context.name if context is not None and not variables.get("KELR_CONTEXT") else None
    flags: list[str] = []
    for flag, value in (
        ("-b", given.bootstrap_server),
        ("--command-config", given.command_config),
        *(("--command-property", text) for text in _properties_without_secrets(given)),
        ("--context", given.context or current),
        ("--snapshot", given.snapshot),
        *(("--metadata-log", path) for path in given.metadata_log or ()),
        ("--bootstrap-controller", given.bootstrap_controller),
        ("--at", given.at),
        ("--timeout", given.timeout_s),
    ):
        if value is not None:
            flags += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return tuple(flags)


def _properties_without_secrets(given: Settings) -> list[str]:
    if not given.command_property:
        return []
    from kelr.config.contexts_file import shown_value  # noqa: PLC0415
    from kelr.config.login import given_properties  # noqa: PLC0415 - only where there are properties

    return [f"{key}={shown_value(key, value)}" for key, value in given_properties(given.command_property).items()]
