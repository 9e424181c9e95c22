"""The line that a shell completes: which cluster it is about, and what else of it the answer depends on.

Read without Typer, which takes longer to load than a key press may take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_FLAGS: Mapping[str, str] = {
    "-b": "bootstrap_server",
    "--bootstrap-server": "bootstrap_server",
    "--bootstrap-servers": "bootstrap_server",
    "--command-config": "command_config",
    "--admin.config": "command_config",
    "--command-property": "command_property",
    "-c": "context",
    "--context": "context",
    "--snapshot": "snapshot",
    "--metadata-log": "metadata_log",
    "--bootstrap-controller": "bootstrap_controller",
    "--bootstrap-controllers": "bootstrap_controller",
    "--topic": "topic",
}
_SHORT = tuple(flag for flag in _FLAGS if len(flag) == 2)
_ESCAPED = re.compile(r"\\(.)|['\"]", re.DOTALL)


def unquoted(word: str) -> str:
    """A word as the shell would hand it to kelr, as far as quotes and backslashes go; it may end inside a quote."""
    return _ESCAPED.sub(lambda match: match[1] or "", word) if "\\" in word or "'" in word or '"' in word else word


def flags_of(words: Iterable[str]) -> dict[str, list[str]]:
    """The values of connection flags and of ``--topic``, by the name of the setting, in the order of the line."""
    found: dict[str, list[str]] = {}
    waiting: str | None = None
    for word in words:
        if waiting is not None:
            found.setdefault(waiting, []).append(word)
            waiting = None
            continue
        flag, equals, value = word.partition("=")
        if flag in _FLAGS and equals and flag.startswith("--"):
            found.setdefault(_FLAGS[flag], []).append(value)
        elif word in _FLAGS:
            waiting = _FLAGS[word]
        elif word.startswith(_SHORT) and not word.startswith("--"):
            found.setdefault(_FLAGS[word[:2]], []).append(word[2:])
    return found


def last(flags: Mapping[str, Sequence[str]], name: str) -> str | None:
    """The value that counts: the last one that was given."""
    values = flags.get(name)
    return values[-1] if values and values[-1] else None
