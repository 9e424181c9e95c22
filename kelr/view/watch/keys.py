"""From the bytes that a terminal sends to the names of keys."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

ESCAPE = "esc"
_SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "OA": "up",
    "OB": "down",
    "[5~": "pgup",
    "[6~": "pgdn",
    "[H": "home",
    "[F": "end",
    "OH": "home",
    "OF": "end",
    "[1~": "home",
    "[4~": "end",
}
_CONTROLS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x15": "kill", "\x0c": "redraw"}
_LONGEST = 16
"""Of a sequence: what is longer is none."""


class KeyDecoder:
    """Makes keys of bytes as they arrive: a printable character is its own name, others have names such as ``pgup``.

    A sequence may come in pieces. A lone Escape is one only when nothing follows it: `flush` says so.
    """

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pending = ""

    @property
    def waiting(self) -> bool:
        """Whether what came last may be the beginning of a sequence."""
        return bool(self._pending)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are complete."""
        self._pending += self._text.decode(data)
        return list(self._keys())

    def flush(self) -> list[str]:
        """Nothing more came: an Escape was the key, and what stood behind it was typed."""
        pending, self._pending = self._pending, ""
        return [] if not pending else [ESCAPE, *(one for one in pending[1:] if one.isprintable())]

    def _keys(self) -> Iterator[str]:
        while self._pending:
            if self._pending[0] != "\x1b":
                character, self._pending = self._pending[0], self._pending[1:]
                if character in _CONTROLS:
                    yield _CONTROLS[character]
                elif character.isprintable():
                    yield character
                continue
            if self._pending.startswith("\x1b\x1b"):
                self._pending = self._pending[1:]
                yield ESCAPE
                continue
            length = _sequence_length(self._pending)
            if length is None:
                return
            sequence, self._pending = self._pending[1:length], self._pending[length:]
            if sequence in _SEQUENCES:
                yield _SEQUENCES[sequence]


def _sequence_length(text: str) -> int | None:
    """How many characters the sequence at the beginning has; None where it is not complete. One that is none is
    taken away with the character behind its Escape."""
    if len(text) < 2:
        return None
    if text[1] == "O":
        return 3 if len(text) >= 3 else None
    if text[1] != "[":
        return 2
    for index, character in enumerate(text[2:_LONGEST], start=2):
        if "@" <= character <= "~":
            return index + 1
    return None if len(text) < _LONGEST else 2
