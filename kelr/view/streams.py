"""This process's stdout and stderr, made fit to be written to whatever the shell and the locale made of them."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
import textwrap
from typing import TextIO

_ERRORS = "kelr-readable"
_STAND_INS = {"\N{MIDDLE DOT}": "-"}
"""What is written for kelr's own signs where the stream cannot hold them; all else is escaped."""
_COMMAND = re.compile(r"`|\bkelr [a-z]|\bkafka-[a-z]+")
_LABELS = {"", "fix:"}
"""What stands before a command that is the whole text."""
_NARROWEST = 40


def prepare_streams() -> None:
    """Replace streams that are closed, and let no character fail on a stream's encoding."""
    _replace_closed()
    codecs.register_error(_ERRORS, _readable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def write_utf8(stream: TextIO) -> None:
    """Data for machines is UTF-8 whatever the locale says: who reads it need not know where it was written."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def lines_for(stream: TextIO, text: str, *, indent: str = "") -> list[str]:
    """A sentence in lines of the terminal that the stream is: a terminal breaks words in two. In a pipe it stays whole,
    and so does a command that is copied, with what follows it.

    Args:
        indent: what further lines begin with.
    """
    if "\n" in text or not stream.isatty():
        return [text]
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:  # no terminal of this system's after all
        return [text]
    found = _COMMAND.search(text)
    at = len(text) if found is None else found.start()
    if columns < _NARROWEST or len(text) <= columns or text[:at].strip() in _LABELS:
        return [text]
    lines = textwrap.wrap(text[:at], columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines if found is None else [*lines, indent + text[at:]]


def _readable(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    shown = (_STAND_INS.get(one) or one.encode("ascii", "backslashreplace").decode() for one in characters)
    return "".join(shown), error.end


def _replace_closed() -> None:
    """With a descriptor closed (``>&-``) Python has None for a stream.

    Data that nobody can get is an error, as on a full disk: stdout becomes a descriptor that cannot be written to. Its
    number is taken before a file or a socket gets it. Notes on a closed stderr go to nowhere.
    """
    if sys.stdout is None:
        _occupy(1, os.O_RDONLY)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - it lives as long as the process
    if sys.stderr is None:
        _occupy(2, os.O_WRONLY)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _occupy(descriptor: int, flags: int) -> None:
    opened = os.open(os.devnull, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
