"""The next command, whole: the words of the command, and the flags without which it would not ask the same again."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import count, pairwise

_TAKE_LOGS = (
    ("explain",),
    ("elect",),
    ("log-info",),
    ("snapshot",),
    ("recover", "plan"),
    ("recover", "apply"),
    ("rescue", "dump"),
)
"""Commands that count what collections hold (``--logs``)."""
_NEED_A_CLUSTER = (
    ("recover", "apply"),
    ("recover", "verify"),
    ("recover", "status"),
    ("recover", "resume"),
    ("recover", "undo"),
    ("recover", "clear-elr"),
    ("rescue", "dump"),
    ("rescue", "replay"),
)
"""Commands that a saved snapshot does not do for: they change the cluster, look whether it has changed, or fetch
records."""
_SOME_FILE = "FILE"
"""Stands for a collection: those that were given take its place."""
_SOME_CLUSTER = ("-b", "HOST:PORT")
"""Stands for a connection that nobody has given yet."""


def whole_command(
    arguments: Iterable[str], *, connection_flags: Sequence[str], log_flags: Sequence[str] = ()
) -> tuple[str, ...]:
    """The next command with the flags that it has to repeat.

    A command that needs a live cluster is not told to answer from a snapshot: where to connect is left to be filled in.
    One that names a snapshot by itself asks no cluster.

    Args:
        arguments: the command's words and its own flags, after ``kelr``.
        connection_flags: those that were given, such as ``-b HOST:PORT`` or ``--snapshot FILE``.
        log_flags: ``--logs FILE`` for each collection that was given.
    """
    words = _to_a_new_file(tuple(arguments))
    if words[:2] == ("recover", "collect") and "--log-dir" in words:
        return ("kelr", *words)  # on its broker's host, where no connection is needed
    asked_for = bool(log_flags) and ("--logs", _SOME_FILE) in pairwise(words)
    if asked_for:
        words = _without("--logs", words)
    takes_them = _is_one_of(words, _TAKE_LOGS) and (asked_for or "--logs" not in words)
    logs = tuple(log_flags) if takes_them else ()
    if "--snapshot" in words:
        return ("kelr", *words, *logs)
    return ("kelr", *words, *logs, *(_to_a_cluster(connection_flags) if _needs_a_cluster(words) else connection_flags))


def _to_a_new_file(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a dump whose file is there already with a name that is free: it would be refused, and what an
    earlier dump saved is needed, too."""
    if words[:2] != ("rescue", "dump") or "--out" not in words[:-1] or "--overwrite" in words:
        return words
    at = words.index("--out") + 1
    stem, suffix = os.path.splitext(words[at])
    names = (words[at] if number == 1 else f"{stem}-{number}{suffix}" for number in count(1))
    return (*words[:at], next(name for name in names if not os.path.exists(name)), *words[at + 1 :])


def with_connection(text: str, connection_flags: Sequence[str]) -> str:
    """A sentence whose commands ask the same cluster again: ``kelr recover resume`` with the flags that were given."""
    if not connection_flags or shlex.join(connection_flags) in text:
        return text

    def whole(match: re.Match[str]) -> str:
        return shlex.join(whole_command(match[0].split()[1:], connection_flags=connection_flags))

    return _ASKS_A_CLUSTER.sub(whole, text)


_ASKS_A_CLUSTER = re.compile(r"\bkelr (?:recover (?:status|resume|undo)|describe|explain)\b(?! --)")


def _is_one_of(words: Sequence[str], commands: Iterable[Sequence[str]]) -> bool:
    return any(tuple(words[: len(command)]) == command for command in commands)


def _needs_a_cluster(words: Sequence[str]) -> bool:
    if words[:1] == ("elect",):
        return "--dry-run" not in words
    if words[:1] == ("describe",):
        return "--watch" in words
    # A disk is read on its broker's host; a snapshot tells whom it belongs to as well as a cluster does. What others
    # give up to follow somebody is read from them, too.
    led = {"--elect", "--plan"} & set(words) and "--from-replica" not in words
    on_a_disk = "--log-dir" in words and not led
    return _is_one_of(words, _NEED_A_CLUSTER) and not on_a_disk


def _to_a_cluster(flags: Sequence[str]) -> tuple[str, ...]:
    if "--snapshot" in flags:
        return (*_SOME_CLUSTER, *_without("--snapshot", flags))
    if {"-b", "--context"}.isdisjoint(flags) and not {"--metadata-log", "--bootstrap-controller"}.isdisjoint(flags):
        # Beside a cluster a metadata log tells who held everything committed; what it was at some time is no cluster.
        return (*_SOME_CLUSTER, *_without("--at", flags))
    return tuple(flags)


def _without(flag: str, flags: Sequence[str]) -> tuple[str, ...]:
    if flag not in flags:
        return tuple(flags)
    at = flags.index(flag)
    return (*flags[:at], *flags[at + 2 :])
