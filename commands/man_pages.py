"""A man page for each command, made of what its ``--help`` says; the same bytes for the same command line.

Written in the macros of man(7), so that groff, mandoc and BSD's man read it. The help's layout is kelr's own
(`help.py`): paragraphs, then blocks with a title, whose rows have a name on the left and a text on the right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kelr import __version__
from kelr.commands.cli_model import Command, every
from kelr.commands.main import INTERNAL_ERROR, PIPE_CLOSED
from kelr.commands.options import EXIT_MEANINGS
from kelr.interrupts import INTERRUPTED

DATE = "2026-11-22"
"""The day of this version. A page has to have one, and the day on which it was made would make each build another."""

_LINE = 78
_TITLE = re.compile(r"([A-Z][^\n:]*):\n((?: .*(?:\n|$))+)\Z")
_ROW = re.compile(r"  (\S.*?)(?: {2,}(.*))?")
_VARIABLE = re.compile(r"\[env:\s+([A-Z_]+)\]")
_VARIABLES = {
    "KELR_CACHE_DIR": "Where kelr keeps what it can make or fetch again.",
    "KELR_CONFIG_DIR": "Where contexts.toml is.",
    "KELR_STATE_DIR": "Where journals and the audit log are.",
    "NO_COLOR": "No colour, whatever its value is.",
}
_TYPED = frozenset({"Examples", "Example"})
_SECTIONS = {"Exit codes": "EXIT STATUS", "Examples": "EXAMPLES", "Example": "EXAMPLES"}


def man_pages(kelr: Command) -> dict[str, str]:
    """Each page's text by the name of its file, such as ``kelr-lab-up.1``."""
    commands = list(every(kelr))
    pages = {f"{_page(command.path)}.1": "\n".join(_lines(command, commands)) + "\n" for command in commands}
    return dict(sorted(pages.items()))


def _page(path: str) -> str:
    return path.replace(" ", "-")


def _lines(command: Command, commands: list[Command]) -> Iterator[str]:
    name = _page(command.path)
    usage, *parts = command.help.split("\n\n")
    yield f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "{DATE}" "kelr {__version__}" "kelr"'
    # Names of commands and options are not to be cut at the end of a line.
    yield ".nh"
    yield ".ad l"
    yield ".SH NAME"
    yield f"{_escaped(name)} \\-"
    yield from _wrapped(_small(command.sentence))
    yield ".SH SYNOPSIS"
    yield ".B " + _escaped(" ".join(usage.removeprefix("Usage: ").split()))
    blocks = [match for part in parts if (match := _TITLE.fullmatch(part))]
    told = [part for part in parts if not _TITLE.fullmatch(part)]
    if told:
        yield ".SH DESCRIPTION"
        yield from _paragraphs(told)
    options = False
    for match in blocks:
        title, body = match[1], match[2]
        section = _SECTIONS.get(title)
        if section is None and not options:
            options = True
            yield ".SH OPTIONS"
        yield f".SH {section}" if section else f".SS {_escaped(title)}"
        yield from _typed(body) if title in _TYPED else _rows(body)
    if command.path == "kelr":
        yield from _of_all(commands)
    yield ".SH SEE ALSO"
    yield from _see_also(command, commands)


def _small(sentence: str) -> str:
    first, _, rest = sentence.partition(" ")
    return f"{first.lower() if first.istitle() else first} {rest}"


def _paragraphs(parts: list[str]) -> Iterator[str]:
    for number, part in enumerate(parts):
        if number:
            yield ".PP"
        yield from _wrapped(part)


def _wrapped(text: str) -> Iterator[str]:
    """Text that is filled, in lines that editors and linters like."""
    line = ""
    for word in map(_escaped, text.split()):
        if line and len(line) + len(word) > _LINE:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield line


def _typed(body: str) -> Iterator[str]:
    yield ".nf"
    for line in body.splitlines():
        yield _escaped(line[2:])
    yield ".fi"


def _rows(body: str) -> Iterator[str]:
    told: list[str] = []
    for line in body.splitlines():
        row = _ROW.fullmatch(line)
        if row is None:
            told.append(line)
            continue
        yield from _wrapped(" ".join(told))
        told = [row[2] or ""]
        yield ".TP"
        yield ".B " + _escaped(row[1])
    yield from _wrapped(" ".join(told))


def _of_all(commands: list[Command]) -> Iterator[str]:
    """What the page of kelr itself has beyond its help: exit codes and variables of all commands."""
    yield ".SH EXIT STATUS"
    own = {
        INTERNAL_ERROR: "a defect in kelr itself; --debug shows where",
        INTERRUPTED: "interrupted (Ctrl-C)",
        PIPE_CLOSED: "whoever read the output went away",
    }
    meanings = {**{int(code): meaning for code, meaning in EXIT_MEANINGS.items()}, **own}
    for code, meaning in meanings.items():
        yield ".TP"
        yield f".B {code}"
        yield from _wrapped(meaning)
    yield ".SH ENVIRONMENT"
    told = {
        variable: f"Stands for {option.flags[-1]} where that is not given."
        for command in commands
        for option in command.options
        for variable in _VARIABLE.findall(option.help)
    }
    for variable, text in sorted({**_VARIABLES, **told}.items()):
        yield ".TP"
        yield f".B {_escaped(variable)}"
        yield from _wrapped(text)


def _see_also(command: Command, commands: list[Command]) -> Iterator[str]:
    parent = command.path.rpartition(" ")[0]
    below = [one.path for one in command.commands]
    beside = [one.path for one in commands if parent and one.path.rpartition(" ")[0] == parent and one is not command]
    paths = [path for path in (parent, *below, *(beside if parent != "kelr" else [])) if path]
    for number, path in enumerate(paths):
        yield f".BR {_escaped(_page(path))} (1){',' if number + 1 < len(paths) else ''}"


def _escaped(text: str) -> str:
    r"""A line that is shown as it is: ``-`` can be copied as a minus, and neither ``.`` nor ``'`` begins a request."""
    shown = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace('"', "\\(dq")
    )
    shown = shown.replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{shown}" if shown.startswith(".") else shown
