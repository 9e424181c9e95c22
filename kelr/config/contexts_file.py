"""Reading ``contexts.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kelr.config.context import Context, ContextError, check_name, context_of, did_you_mean, located
from kelr.config.value import Kind, readable_by_others, writable_by_others
from kelr.errors import BadInputError, RefusedError, UsageError

# Where kelr's own configuration lives.


DIRECTORY_VARIABLE = "KELR_CONFIG_DIR"
FILE_NAME = "contexts.toml"


def config_directory(environ: Mapping[str, str]) -> Path:
    """``KELR_CONFIG_DIR``, else the platform's configuration directory for kelr."""
    directory = environ.get(DIRECTORY_VARIABLE)
    if directory:
        return Path(directory)
    import platformdirs  # noqa: PLC0415 - only where contexts are used

    return Path(platformdirs.user_config_dir("kelr", appauthor=False))


def contexts_path(environ: Mapping[str, str]) -> Path:
    """The file that names clusters."""
    return config_directory(environ) / FILE_NAME


# Which client properties may be shown: those that are known to hold no secret, and no others.
#
# Kafka's types of its client configs tell (ConfigDef.Type.PASSWORD is hidden there too); a key that is not known may be
# anything, so its value is hidden.


HIDDEN = "(hidden)"

_HARMLESS = re.compile(
    r"""
      bootstrap\.(servers|controllers) | client\.(id|rack|dns\.lookup) | security\.(protocol|providers) | .*\.(ms|bytes)
    | sasl\.mechanism | sasl\.client\.callback\.handler\.class | sasl\.login\.(class|callback\.handler\.class)
    | sasl\.login\.refresh\..* | sasl\.kerberos\..*
    | sasl\.oauthbearer\.(.*\.url|scope|scope\.claim\.name|sub\.claim\.name|expected\..*)
    | sasl\.oauthbearer\.client\.credentials\.client\.id
    | ssl\.(ca|certificate|key|keystore|truststore)\.location | ssl\.(keystore|truststore)\.type
    | ssl\.(protocol|enabled\.protocols|cipher\.suites|provider|keymanager\.algorithm|trustmanager\.algorithm)
    | ssl\.(endpoint\.identification\.algorithm|engine\.factory\.class|secure\.random\.implementation)
    | config\.providers | config\.providers\.[^.]+\.class
    | config\.providers\.[^.]+\.param\.(allowed\.paths|allowlist\.pattern)
    | enable\.metrics\.push | retries | metric\.reporters | metrics\..*
    """,
    re.VERBOSE,
)
_LOGIN_IN_URL = re.compile(r"://[^/@\s]*@")


def may_be_shown(key: str, value: str) -> bool:
    """Whether the value of a property is known to be no secret."""
    return _HARMLESS.fullmatch(key) is not None and not _LOGIN_IN_URL.search(value) and "?" not in value


def shown_value(key: str, value: str) -> str:
    """The value, or ``(hidden)``."""
    return value if may_be_shown(key, value) else HIDDEN


# On which line of a TOML file a key stands; Python's reader does not tell.


KeyPath = tuple[str, ...]


def lines_of_keys(text: str) -> Mapping[KeyPath, int]:
    """The line (from 1) of every table and key of a valid TOML document, by its path.

    A document is a row of statements, headers and assignments, each of which is valid by itself: the shortest run of
    lines that can be read is one.
    """
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, statement in statements(text):
        if statement.lstrip().startswith("["):
            table = next(_paths(tomllib.loads(statement)))
            for length in range(1, len(table) + 1):
                found.setdefault(table[:length], number)
            continue
        for path in _paths(tomllib.loads(statement)):
            whole = (*table, *path)
            for length in range(len(table) + 1, len(whole) + 1):
                found.setdefault(whole[:length], number)
    return found


def statements(text: str) -> Iterator[tuple[int, str]]:
    """The headers and assignments of a valid TOML document, whole, each with the line (from 1) that it begins on."""
    held: list[str] = []
    first = 0
    # Not str.splitlines: it knows line ends that TOML does not.
    for number, line in enumerate(text.split("\n"), start=1):
        first = number if not held else first
        held.append(line + "\n")
        try:
            empty = not tomllib.loads("".join(held))
        except tomllib.TOMLDecodeError:
            continue
        if not empty:
            yield first, "".join(held)
        held = []


def _paths(values: Mapping[str, Any]) -> Iterator[KeyPath]:
    """The paths of all leaves; of a table without any, its own."""
    for key, value in values.items():
        inner = value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) else value
        if isinstance(inner, dict) and inner:
            yield from ((key, *path) for path in _paths(inner))
        else:
            yield (key,)


def without_tables(text: str, path: KeyPath, instead: str | None = None) -> str | None:
    """The document without the tables at and below a path; None where those are not written as ``[a.b]``.

    Comments right above a table are about it: they go with it, or stay where another text comes in its place.

    Args:
        instead: tables that are put where the first of them was.
    """
    lines = text.split("\n")
    headers = [(number, table) for number, table in _headers(text)]
    starts = [_with_comments(lines, number - 1) for number, _ in headers] + [len(lines)]
    kept, done = lines[: starts[0]], False
    for (number, table), start, end in zip(headers, starts, starts[1:], strict=False):
        if table[: len(path)] != path:
            kept += lines[start:end]
        elif not done and instead is not None:
            gap = [""] if end < len(lines) else []
            kept += [*lines[start : number - 1], *instead.rstrip("\n").split("\n"), *gap]
            done = True
    changed = "\n".join(kept)
    changed = changed if changed.endswith("\n") or not changed else f"{changed}\n"
    return changed if _as_wanted(text, changed, path, instead) else None


def _headers(text: str) -> Iterator[tuple[int, KeyPath]]:
    for number, statement in statements(text):
        if statement.lstrip().startswith("["):
            yield number, next(_paths(tomllib.loads(statement)))


def _with_comments(lines: list[str], at: int) -> int:
    """Where the comments right above a line begin."""
    while at and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _as_wanted(before: str, after: str, path: KeyPath, instead: str | None) -> bool:
    """Whether nothing else of the document has changed."""
    expected, found = tomllib.loads(before), tomllib.loads(after)
    for document in (expected, found):
        table = document
        for part in path[:-1]:
            table = table.get(part, {})
        held = table.pop(path[-1], None)
        if document is found and (held is None) != (instead is None):
            return False
    return _without_empty(expected) == _without_empty(found)


def _without_empty(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in values.items() if value != {}}


_TOP = ("current", "contexts")
_MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class ContextsFile:
    """The file as it is: which contexts it has, and which is the current one. Secrets are in no repr."""

    path: Path
    text: str = field(default="", repr=False)
    exists: bool = False
    current: str | None = None
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """What stands in each context's table, not yet checked."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the contexts, in the order of the file."""
        return tuple(self.tables)

    @cached_property
    def lines(self) -> Mapping[KeyPath, int]:
        """On which line a key stands: ``("contexts", "prod", "username")``."""
        return lines_of_keys(self.text)

    def line(self, name: str, *path: str) -> int | None:
        """The line of a key of a context; that of the context where the key's own is not known."""
        whole = ("contexts", name, *path)
        while whole and whole not in self.lines:
            whole = whole[:-1]
        return self.lines.get(whole)

    def context(self, name: str) -> Context:
        """The context of that name.

        Raises:
            UsageError: there is no such context.
            BadInputError: it is not what a context should be; names file and line.
            RefusedError: others may read the secrets in the file, or change the commands that it has kelr run.
        """
        if name not in self.tables:
            raise self.no_context(name)
        context = self._checked(name)
        self._check_mode(context)
        return context

    def current_context(self) -> Context:
        """The one that is used where nothing names a cluster; there has to be a `current`. Raises as `context` does."""
        assert self.current is not None
        if self.current not in self.tables:
            line = self.lines.get(("current",))
            raise UsageError(
                f"{self.path}, line {line}: the current context is {self.current!r}, and there is no such context"
                f" ({self._known()})",
                next_step="choose another with kelr context use NAME",
                code="context-unknown",
            )
        return self.context(self.current)

    def every(self) -> tuple[Context, ...]:
        """All contexts, to look at; nothing is refused. Raises BadInputError as `context` does."""
        return tuple(self._checked(name) for name in self.tables)

    def clear_secrets(self, name: str) -> tuple[str, ...]:
        """The keys of a context whose value may be a secret and stands in the file itself."""
        context = self._checked(name)
        password = ["password"] if context.password is not None and context.password.kind is Kind.HERE else []
        return (
            *password,
            *(key for key, value in context.properties.items() if _may_be_secret(key, value.text, value.kind)),
        )

    def _checked(self, name: str) -> Context:
        try:
            return context_of(name, self.tables[name], self.path)
        except ContextError as problem:
            line = self.line(name, *problem.path)
            raise located(problem, f"{self.path}, line {line}" if line else str(self.path), name) from None

    def _check_mode(self, context: Context) -> None:
        assert context.name is not None
        secrets = self.clear_secrets(context.name)
        if secrets and readable_by_others(self.path):
            raise RefusedError(
                f"{self.path} holds {secrets[0]} of context {context.name!r} in clear, and others may read it",
                next_step=f"chmod 600 {self.path}",
                code="contexts-not-private",
            )
        values = [*([context.password] if context.password else []), *context.properties.values()]
        if any(value.kind is Kind.COMMAND for value in values) and writable_by_others(self.path):
            raise RefusedError(
                f"{self.path} names a command that kelr runs for context {context.name!r}, and others may write it",
                next_step=f"chmod 600 {self.path}",
                code="contexts-not-private",
            )

    def no_context(self, name: str) -> UsageError:
        """The error for a name that no context has."""
        if not self.exists:
            return UsageError(
                f"there is no file {self.path}, so there are no contexts",
                next_step=f"make one with kelr context add {name} -b HOST:PORT, or give --bootstrap-server",
                code="context-unknown",
            )
        near = did_you_mean(name, self.tables)
        return UsageError(
            f"no context {name!r} in {self.path} ({self._known()}){near}",
            next_step=f"choose one of them, or make it with kelr context add {name} -b HOST:PORT",
            code="context-unknown",
        )

    def _known(self) -> str:
        return f"it has {', '.join(sorted(self.tables))}" if self.tables else "it has none"


def read_contexts(environ: Mapping[str, str]) -> ContextsFile:
    """The user's contexts; a file without any where there is none. Raises BadInputError where it is no such file."""
    return read_contexts_file(contexts_path(environ))


def read_contexts_file(path: Path) -> ContextsFile:
    """As `read_contexts`, of this file."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a pipe would be waited for, for ever
            raise _garbled(f"{path} is no file", "look at what became of it")
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise _garbled(f"{path} is larger than {_MAX_BYTES} bytes", "look at what became of it")
        text = content.decode("utf-8-sig")  # editors of Windows begin a file with a mark
    except FileNotFoundError:
        return ContextsFile(path)
    except (OSError, UnicodeDecodeError) as error:
        # Not chained: the error may hold what the file holds.
        why = f"byte {error.start} is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise _garbled(f"{path} cannot be read: {why}") from None
    return contexts_of(text, path)


def contexts_of(text: str, path: Path) -> ContextsFile:
    """The contexts in the text of a file. Raises BadInputError as `read_contexts`."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Not chained: the error holds what the file holds.
        raise _garbled(f"{path} cannot be read: {error}") from None
    unknown = [key for key in document if key not in _TOP]
    if unknown:
        line = lines_of_keys(text).get((unknown[0],))
        raise _garbled(
            f"{path}, line {line}: {unknown[0]} is nothing that kelr knows{did_you_mean(unknown[0], _TOP)}",
            "at the top there may be current, and tables such as [contexts.prod]",
        )
    contexts, current = document.get("contexts", {}), document.get("current")
    if not isinstance(contexts, dict) or not all(isinstance(value, dict) for value in contexts.values()):
        raise _garbled(f"{path}: contexts are tables such as [contexts.prod]")
    if current is not None and not isinstance(current, str):
        raise _garbled(f'{path}: current has to be a name, such as "prod"')
    for name in contexts:
        try:
            check_name(name)
        except UsageError as error:
            raise _garbled(f"{path}: {error.message}", error.next_step) from None
    return ContextsFile(path, text, exists=True, current=current or None, tables=contexts)


def _garbled(message: str, next_step: str | None = "correct that file") -> BadInputError:
    return BadInputError(message, next_step=next_step, code="contexts-garbled")


def _may_be_secret(key: str, text: str, kind: Kind) -> bool:
    # A variable of Kafka's config providers is only a name.
    return kind is Kind.HERE and not may_be_shown(key, text) and not text.startswith("${")
