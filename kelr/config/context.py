"""A cluster as the user named it, and what a table of ``contexts.toml`` may hold.

current = "prod"

[contexts.prod]
bootstrap_server = "kafka-1:9092,kafka-2:9092"
bootstrap_controller = "controller-1:9093"  # from which the metadata log is read
command_config = "prod.properties"        # relative to this file
cluster_id = "4L6g3nShT-eMCtK--X86sw"     # kelr refuses another cluster
timeout = 10                              # seconds
read_only = true                          # commands that change a cluster are refused
username = "ada"
password_command = "pass kafka/prod"      # or password_env, password_file
log_info_api_key = 70                     # brokers that speak GetReplicaLogInfo; no release does
log_info_dialect = "kip"

[contexts.prod.properties]
"security.protocol" = "SASL_SSL"
"sasl.mechanism" = "SCRAM-SHA-512"
"ssl.key.password" = { env = "KEY_PASSWORD" }   # or file, or command
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kelr.config.value import REFERENCES, Kind, Value
from kelr.errors import BadInputError, UsageError

PASSWORD_KEYS: Mapping[str, Kind] = {
    "password": Kind.HERE,
    "password_env": Kind.ENV,
    "password_file": Kind.FILE,
    "password_command": Kind.COMMAND,
}
KEYS: Mapping[str, type] = {
    "bootstrap_server": str,
    "bootstrap_controller": str,
    "command_config": str,
    "cluster_id": str,
    "timeout": float,
    "read_only": bool,
    "username": str,
    **dict.fromkeys(PASSWORD_KEYS, str),
    "log_info_api_key": int,
    "log_info_dialect": str,
    "properties": dict,
}
"""What a context may hold, and of which type, in the order in which it is written."""

_WORDS = {str: "text in quotes", float: "a number", int: "a number", bool: "true or false", dict: "a table"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_LONGEST_TIMEOUT_S = 86_400
_NO_REFERENCES = frozenset({"sasl.oauthbearer.assertion.file"})
"""Properties of Kafka's that read as a reference where they are written with dots and without quotes."""


@dataclass(frozen=True, slots=True)
class Context:
    """A cluster as the user named it; None where the file does not say. Secrets are in no repr."""

    name: str | None = None
    bootstrap_server: str | None = None
    bootstrap_controller: str | None = None
    command_config: Path | None = None
    cluster_id: str | None = None
    timeout_s: float | None = None
    read_only: bool = False
    username: str | None = None
    password: Value | None = None
    log_info_api_key: int | None = None
    log_info_dialect: str | None = None
    properties: Mapping[str, Value] = field(default_factory=dict)
    """Client properties as Kafka's own tools know them."""
    file: Path | None = field(default=None, compare=False)
    """Where it stands."""

    @property
    def logs_in(self) -> bool:
        """Whether it says more of how to log in than a properties file."""
        return bool(self.properties or self.username or self.password)


NO_CONTEXT = Context()


def check_name(name: str) -> str:
    """The name, where it is one. Raises UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a context",
            next_step="use up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
        )
    return name


class ContextError(Exception):
    """Something is wrong with a key of a context.

    Args:
        path: below the context's own table.
    """

    def __init__(self, path: tuple[str, ...], message: str, next_step: str) -> None:
        super().__init__(message)
        self.path, self.message, self.next_step = path, message, next_step


def context_of(name: str, values: Mapping[str, Any], file: Path) -> Context:
    """The context of a table.

    Raises:
        ContextError: the table holds what a context has not, or a value of another type.
    """
    for key, value in values.items():
        if key not in KEYS:
            raise ContextError(
                (key,), f"has {key}, which kelr does not know{did_you_mean(key, KEYS)}", f"use only {', '.join(KEYS)}"
            )
        if not _fits(value, KEYS[key]):
            raise ContextError((key,), f"{key} has to be {_WORDS[KEYS[key]]}", "correct that file")
    base = file.parent
    config = values.get("command_config")
    return Context(
        name=name,
        bootstrap_server=values.get("bootstrap_server"),
        bootstrap_controller=values.get("bootstrap_controller"),
        command_config=base / Path(config).expanduser() if config else None,
        cluster_id=values.get("cluster_id"),
        timeout_s=_timeout(values),
        read_only=values.get("read_only", False),
        username=values.get("username"),
        password=_password(values, base),
        log_info_api_key=values.get("log_info_api_key"),
        log_info_dialect=values.get("log_info_dialect"),
        properties=dict(_properties(values.get("properties", {}), (), base)),
        file=file,
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` where one of them is alike, else nothing."""
    import difflib  # noqa: PLC0415 - only for an error

    near = difflib.get_close_matches(word.lower().replace("-", "_"), list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _fits(value: Any, kind: type) -> bool:
    if kind is str:
        return isinstance(value, str) and value != ""
    if kind in (int, float):
        return isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _timeout(values: Mapping[str, Any]) -> float | None:
    value = values.get("timeout")
    if value is None:
        return None
    if not 0 < value <= _LONGEST_TIMEOUT_S:
        raise ContextError(
            ("timeout",), f"timeout is {value}, not a number of seconds", "give something like 10 or 2.5"
        )
    return float(value)


def _password(values: Mapping[str, Any], base: Path) -> Value | None:
    given = [key for key in PASSWORD_KEYS if key in values]
    if not given:
        return None
    if len(given) > 1:
        raise ContextError(
            (given[1],), f"{' and '.join(given)} say where the password is: which one counts?", "keep one"
        )
    if "username" not in values:
        raise ContextError((given[0],), f"{given[0]} says nothing without username", "add username, or leave it out")
    return Value(PASSWORD_KEYS[given[0]], values[given[0]], base)


def _properties(values: Mapping[str, Any], above: tuple[str, ...], base: Path) -> Iterator[tuple[str, Value]]:
    """Properties by their whole key; TOML reads a key with dots and without quotes as tables in tables."""
    for part, value in values.items():
        path = (*above, part)
        key = ".".join(path)
        if isinstance(value, bool):
            yield key, Value(Kind.HERE, "true" if value else "false", base)
        elif isinstance(value, (str, int, float)):
            yield key, Value(Kind.HERE, str(value), base)
        elif isinstance(value, dict) and (reference := _reference(key, value, base)) is not None:
            yield key, reference
        elif isinstance(value, dict):
            yield from _properties(value, path, base)
        else:
            raise ContextError(
                ("properties", *path), f"the property {key} has to be text in quotes", 'write "key" = "value"'
            )


def _reference(key: str, value: Mapping[str, Any], base: Path) -> Value | None:
    if len(value) != 1:
        return None
    ((kind, text),) = value.items()
    if kind not in REFERENCES or not isinstance(text, str) or not text or f"{key}.{kind}" in _NO_REFERENCES:
        return None
    return Value(Kind(kind), text, base)


def located(problem: ContextError, where: str, name: str) -> BadInputError:
    """The problem as an error that names the file, the line and the context."""
    return BadInputError(
        f"{where}: context {name!r}: {problem.message}", next_step=problem.next_step, code="contexts-garbled"
    )
