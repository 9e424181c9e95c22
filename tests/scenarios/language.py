"""The text of a scenario file: blocks of directives with the output that they must print.

A block is one directive a line, then ``----``, then the expected output, then a blank line. Lines that start with ``#``
tell the story. Between blocks, comments and blank lines are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

SEPARATOR = "----"
NOTHING_TO_SAY = "ok"


class ScenarioError(Exception):
    """A scenario that cannot be read or run: says the line and why."""


@dataclass(frozen=True, slots=True)
class Directive:
    """One step: a name, plain arguments, and ``key=value`` options; `line` counts from 1."""

    line: int
    name: str
    arguments: tuple[str, ...]
    options: Mapping[str, str]

    def allow(self, *options: str) -> None:
        """Refuse options that this directive does not have."""
        unknown = sorted(self.options.keys() - set(options))
        if unknown:
            raise ScenarioError(
                f"line {self.line}: {self.name} has no option {unknown[0]}; it has {', '.join(options)}"
            )

    def ids(self, option: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """A list of broker ids: ``1,2,3``; ``-`` is the empty one."""
        value = self.options.get(option)
        return default if value is None else parse_ids(value, self.line)

    def number(self, option: str, default: int) -> int:
        value = self.options.get(option)
        return default if value is None else parse_int(value, self.line)


@dataclass(frozen=True, slots=True)
class Block:
    """Directives, and what they are expected to print."""

    directives: tuple[Directive, ...]
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A file as its blocks and what stands between them, in order."""

    parts: tuple[Block | str, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(part for part in self.parts if isinstance(part, Block))


def parse(text: str) -> Scenario:
    """Read a scenario.

    Raises:
        ScenarioError: a block has no separator, or a directive no name.
    """
    lines = text.splitlines()
    parts: list[Block | str] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            parts.append(lines[at])
            at += 1
            continue
        block, at = _block(lines, at)
        parts.append(block)
    return Scenario(tuple(parts))


def render(scenario: Scenario, outputs: Sequence[Sequence[str]]) -> str:
    """The file's text with these outputs, one for each block, in place of the expected ones."""
    remaining = iter(outputs)
    lines: list[str] = []
    for part in scenario.parts:
        if isinstance(part, str):
            lines.append(part)
        else:
            lines += [_spelled(directive) for directive in part.directives]
            lines += [SEPARATOR, *next(remaining)]
    return "\n".join(lines) + "\n"


def _block(lines: Sequence[str], at: int) -> tuple[Block, int]:
    directives: list[Directive] = []
    first = at
    while at < len(lines) and lines[at] != SEPARATOR:
        if not lines[at].strip() or lines[at].startswith("#"):
            raise ScenarioError(f"line {first + 1}: a block's directives must be followed by {SEPARATOR}")
        directives.append(_directive(lines[at], at + 1))
        at += 1
    if at == len(lines):
        raise ScenarioError(f"line {first + 1}: a block's directives must be followed by {SEPARATOR}")
    at += 1
    expected: list[str] = []
    while at < len(lines) and lines[at].strip():
        expected.append(lines[at])
        at += 1
    return Block(tuple(directives), tuple(expected)), at


def _directive(text: str, line: int) -> Directive:
    name, *words = text.split()
    options = dict(word.split("=", 1) for word in words if "=" in word)
    return Directive(line, name, tuple(word for word in words if "=" not in word), options)


def _spelled(directive: Directive) -> str:
    options = (f"{key}={value}" for key, value in directive.options.items())
    return " ".join((directive.name, *directive.arguments, *options))


def parse_ids(text: str, line: int) -> tuple[int, ...]:
    return () if text == "-" else tuple(parse_int(part, line) for part in text.split(","))


def parse_int(text: str, line: int) -> int:
    try:
        return int(text)
    except ValueError:
        raise ScenarioError(f"line {line}: {text!r} is not a number") from None


def run(scenario: Scenario, perform: Callable[[Directive], Sequence[str]]) -> list[list[str]]:
    """Perform every directive in order; the output of each block."""
    outputs = []
    for block in scenario.blocks:
        printed = [line for directive in block.directives for line in perform(directive)]
        outputs.append(printed or [NOTHING_TO_SAY])
    return outputs
