"""``kelr config``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import typer

from kelr.commands.context_in_use import given_servers, variables_beside
from kelr.commands.options import CommandGroup, on_cluster, open_session
from kelr.commands.settings import Resolved
from kelr.config.context import PASSWORD_KEYS, Context
from kelr.config.contexts_file import DIRECTORY_VARIABLE, ContextsFile, config_directory, may_be_shown, read_contexts
from kelr.config.login import JAAS_KEY
from kelr.config.value import Kind, Value
from kelr.lab.jars import cache_directory
from kelr.lab.state import default_directory
from kelr.recovery.places import STATE_DIRECTORY_VARIABLE, state_directory
from kelr.sources.properties import read_properties
from kelr.view.contexts import SettingRow

app = typer.Typer(cls=CommandGroup, add_completion=False, help="Show settings and their sources.")


@app.callback(invoke_without_command=True)
def config(ctx: typer.Context) -> None:
    """Show settings and their sources."""
    if ctx.invoked_subcommand is None:
        show(ctx)


@app.command(**on_cluster())
def show(ctx: typer.Context) -> None:
    """Show every setting, its value and where it comes from; secrets are hidden.

    A flag wins over an environment variable, that over the context, that over the
    default. Nothing is asked of a cluster, and no command is run for a password.

    Examples:
      kelr config show
      kelr config show --context prod -o json
      kelr config show -b kafka-1:9092 --command-config client.properties
    """
    session = open_session(ctx)
    from kelr.view.contexts import settings_view  # noqa: PLC0415

    with session.output.listing(settings_view("config")) as listing:
        listing.add(setting_rows(session.settings))
    login = session.settings.login
    for warning in () if login is None else login.warnings:
        session.output.note(warning)


DEFAULT = "default"
_PLACES = (
    ("bootstrap_server", "--bootstrap-server", "KELR_BOOTSTRAP_SERVER"),
    ("bootstrap_controller", "--bootstrap-controller", "KELR_BOOTSTRAP_CONTROLLER"),
    ("command_config", "--command-config", "KELR_COMMAND_CONFIG"),
)


@dataclass(frozen=True, slots=True)
class _Origins:
    """Who says what."""

    settings: Resolved
    environ: Mapping[str, str]
    file: ContextsFile

    def of(self, key: str, flag: str, variable: str | None, given: object) -> str:
        """The flag, the variable, the context's line, or the default."""
        if given is not None:
            return flag
        if variable is not None and self.environ.get(variable):
            return variable
        name = self.settings.context
        return origin_in(self.file, name, key) if name is not None and key in self.file.tables[name] else DEFAULT


def setting_rows(settings: Resolved, *, environ: Mapping[str, str] | None = None) -> list[SettingRow]:
    """The settings, then the client properties, then the directories. Nothing is asked, and no command is run.

    Raises:
        BadInputError: a properties file cannot be read.
    """
    variables = variables_beside(settings.given, os.environ if environ is None else environ)
    origins = _Origins(settings, variables, read_contexts(variables))
    return [*_settings(origins), *_login(origins), *_directories(variables)]


def _settings(origins: _Origins) -> Iterator[SettingRow]:
    settings, given = origins.settings, origins.settings.given
    yield _context(origins)
    for key, flag, variable in _PLACES:
        value = getattr(settings, key)
        origin = origins.of(key, flag, variable, getattr(given, key))
        if key == "bootstrap_server" and given.bootstrap_server is None and given_servers(given) is not None:
            origin = "--command-property"
        if value is not None and origin == DEFAULT:  # only a property says so
            origin = "bootstrap.servers"
        yield SettingRow(key, None if value is None else str(value), origin)
    for key, flag in (("snapshot", "--snapshot"), ("at", "--at")):
        if getattr(given, key) is not None:
            yield SettingRow(key, str(getattr(given, key)), flag)
    for path in settings.metadata_log:
        yield SettingRow("metadata_log", str(path), "--metadata-log")
    yield SettingRow("cluster_id", settings.cluster_id, origins.of("cluster_id", "", None, None))
    read_only = "false" if settings.read_only is None else "true"
    yield SettingRow("read_only", read_only, origins.of("read_only", "", None, None))
    origin = origins.of("timeout", "--timeout", "KELR_TIMEOUT", given.timeout_s)
    yield SettingRow("timeout", f"{settings.timeout_s:g}", origin)
    yield SettingRow("output", str(settings.format), origins.of("", "--output", "KELR_OUTPUT", given.format))
    log_info = settings.log_info
    origin = origins.of("log_info_api_key", "", "KELR_LOG_INFO_API_KEY", None)
    yield SettingRow("log_info_api_key", str(log_info.api_key) if log_info is not None else None, origin)
    origin = origins.of("log_info_dialect", "", "KELR_LOG_INFO_DIALECT", None)
    yield SettingRow("log_info_dialect", str(log_info.dialect) if log_info is not None else None, origin)
    no_color = bool(origins.environ.get("NO_COLOR"))
    yield SettingRow("color", "off" if no_color else "on a terminal", "NO_COLOR" if no_color else DEFAULT)


def _context(origins: _Origins) -> SettingRow:
    settings, file = origins.settings, origins.file
    origin = origins.of("", "--context", "KELR_CONTEXT", settings.given.context)
    if settings.context is not None and origin == DEFAULT:
        origin = f"{file.path}, line {file.lines.get(('current',))}"
    return SettingRow("context", settings.context, origin)


def _login(origins: _Origins) -> Iterator[SettingRow]:
    """Who logs in and how: each client property once, as the one that wins has it."""
    settings, login = origins.settings, origins.settings.login
    found: dict[str, SettingRow] = {}
    if settings.command_config is not None:
        for key, held in read_properties(settings.command_config).items():
            found[key] = text_row(key, held.value, f"{settings.command_config}, line {held.line}")
    if login is not None:
        context, name = login.context, login.context.name
        # One of them counts: the flag, else the user of the context, else the file.
        by_name = context.username is not None and JAAS_KEY not in login.given
        if by_name:
            found.pop(JAAS_KEY, None)
        if name is not None:
            if by_name:
                yield SettingRow("username", context.username, origin_in(origins.file, name, "username"))
            if by_name and context.password is not None:
                key = next(key for key in origins.file.tables[name] if key.startswith("password"))
                yield password_row(context, origin_in(origins.file, name, key))
            for key, value in context.properties.items():
                path = path_of(origins.file, name, key)
                found[key] = property_row(key, value, origin_in(origins.file, name, "properties", *path))
        for key, text in login.given.items():
            found[key] = text_row(key, text, "--command-property")
    yield from (found[key] for key in sorted(found))


def _directories(environ: Mapping[str, str]) -> Iterator[SettingRow]:
    for name, variable, path in (
        ("config directory", DIRECTORY_VARIABLE, config_directory(environ)),
        ("state directory", STATE_DIRECTORY_VARIABLE, state_directory()),
        ("cache directory", "KELR_CACHE_DIR", cache_directory()),
        ("lab directory", "KELR_LAB_DIR", default_directory()),
    ):
        yield SettingRow(name, str(path), variable if environ.get(variable) else DEFAULT)


# How values of settings, and where they come from, are said.


def login_words(context: Context) -> str | None:
    """How a context logs in, such as ``SASL_SSL SCRAM-SHA-512 as ada``; None where only its file says, or nothing."""
    words = [
        held.text
        for key in ("security.protocol", "sasl.mechanism")
        if (held := context.properties.get(key)) is not None and held.kind is Kind.HERE
    ]
    if context.username is not None:
        words += ["as", context.username]
    return " ".join(words) or None


def context_rows(file: ContextsFile, context: Context) -> list[SettingRow]:
    """Every key of a context with its line."""
    name = context.name or ""
    rows = []
    for key, value in file.tables[name].items():
        origin = origin_in(file, name, key)
        if key == "properties":
            rows += [
                property_row(one, held, origin_in(file, name, "properties", *path_of(file, name, one)))
                for one, held in context.properties.items()
            ]
        elif key in PASSWORD_KEYS:
            rows.append(password_row(context, origin))
        elif key == "command_config":
            rows.append(SettingRow(key, str(context.command_config), origin))
        else:
            rows.append(SettingRow(key, _text(value), origin))
    return rows


def password_row(context: Context, origin: str) -> SettingRow:
    """The password: where it is found, or hidden."""
    assert context.password is not None
    return SettingRow("password", context.password.reference, origin, hidden=context.password.kind is Kind.HERE)


def property_row(key: str, value: Value, origin: str) -> SettingRow:
    """A client property; its value where that is known to be no secret."""
    if value.kind is not Kind.HERE:
        return SettingRow(key, value.reference, origin)
    return text_row(key, value.text, origin)


def text_row(key: str, text: str, origin: str) -> SettingRow:
    """A client property that is written down somewhere."""
    only_a_variable = text.startswith("${") and text.endswith("}") and text.count("}") == 1
    shown = may_be_shown(key, text) or only_a_variable
    return SettingRow(key, text if shown else None, origin, hidden=not shown)


def origin_in(file: ContextsFile, name: str, *path: str) -> str:
    """The file and the line of a key of a context."""
    line = file.line(name, *path)
    return f"{file.path}, line {line}" if line is not None else str(file.path)


def path_of(file: ContextsFile, name: str, key: str) -> tuple[str, ...]:
    """How a property stands in the file: as one quoted key, or as a key for each of its parts."""
    whole = ("contexts", name, "properties", key)
    return (key,) if whole in file.lines else tuple(key.split("."))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
