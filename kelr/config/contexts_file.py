"""Reading ``contexts.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kelr.config.context import Context, ContextError, check_name, context_of, did_you_mean, located
from kelr.config.lines import KeyPath, lines_of_keys
from kelr.config.place import contexts_path
from kelr.config.shown import may_be_shown
from kelr.config.value import Kind, readable_by_others, writable_by_others
from kelr.errors import BadInputError, RefusedError, UsageError

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
