"""The text of a scenario file: blocks of directives with the output that they are expected to print.

A block is one directive a line, then ``----``, then the expected output, then a blank line. A block without ``----``
has no expected output yet. Lines that start with ``#`` tell the story. Between blocks, comments and blank lines are
kept as they are, and directives as they are spelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

SEPARATOR = "----"
NOTHING_TO_SAY = "ok"

MAX_CHARACTERS = 1_000_000
MAX_DIRECTIVES = 5_000
MAX_NUMBER = 2**63 - 1
"""Offsets are 64 bits wide."""
MAX_MEMBERS = 100
"""The longest list of brokers."""

_SHOWN = 60


class ScenarioError(Exception):
    """A scenario that cannot be read or run.

    Args:
        line: where, counted from 1.
        what: what is wrong there.
        next_step: what can be written instead.
    """

    def __init__(self, line: int, what: str, *, next_step: str | None = None) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.what = what
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class Directive:
    """One step: a name, plain arguments, and ``key=value`` options."""

    line: int
    """Counted from 1."""
    text: str
    """The line as it is written."""
    name: str
    arguments: tuple[str, ...]
    options: Mapping[str, str]

    def error(self, what: str, *, next_step: str | None = None) -> ScenarioError:
        return ScenarioError(self.line, what, next_step=next_step)

    def allow(self, *options: str) -> None:
        """Refuse options that this directive does not have.

        Raises:
            ScenarioError: naming the option and those that there are.
        """
        unknown = sorted(self.options.keys() - set(options))
        if unknown:
            there_are = f"it has {', '.join(options)}" if options else "it has none"
            raise self.error(f"{self.name} has no option {cut(unknown[0])}; {there_are}")

    def ids(self, option: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """A list of broker ids: ``1,2,3``; ``-`` is the empty one."""
        value = self.options.get(option)
        return default if value is None else self.parsed_ids(value)

    def number(self, option: str, default: int) -> int:
        value = self.options.get(option)
        return default if value is None else self.parsed_number(value)

    def optional(self, option: str) -> int | None:
        return self.parsed_number(self.options[option]) if option in self.options else None

    def flag(self, option: str) -> bool | None:
        """``true`` or ``false``; None where it is not given."""
        value = self.options.get(option)
        if value not in {None, "true", "false"}:
            raise self.error(f"{option} is true or false, not {cut(str(value))!r}")
        return None if value is None else value == "true"

    def choice(self, option: str, *choices: str) -> str | None:
        value = self.options.get(option)
        if value is not None and value not in choices:
            raise self.error(f"{option} is {' or '.join(choices)}, not {cut(value)!r}")
        return value

    def parsed_ids(self, text: str) -> tuple[int, ...]:
        """Broker ids with commas between them.

        Raises:
            ScenarioError: one is no number, one is there twice, or they are too many.
        """
        if text == "-":
            return ()
        parts = text.split(",", MAX_MEMBERS)
        members = tuple(self.parsed_number(part) for part in parts[:MAX_MEMBERS])
        if len(parts) > MAX_MEMBERS:
            raise self.error(f"more than {MAX_MEMBERS} brokers in one list")
        if len(set(members)) < len(members):
            raise self.error(f"a broker is there twice in {cut(text)}")
        return members

    def parsed_number(self, text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 20 or int(text) > MAX_NUMBER:
            raise self.error(f"{cut(text)!r} is not a number")
        return int(text)


@dataclass(frozen=True, slots=True)
class Block:
    """Directives, and what they are expected to print; `expected` is None where nothing says."""

    directives: tuple[Directive, ...]
    expected: tuple[str, ...] | None


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
        ScenarioError: it is too long, or expected output belongs to no directive.
    """
    if len(text) > MAX_CHARACTERS:
        what = f"the scenario has {len(text)} characters; the most are {MAX_CHARACTERS}"
        raise ScenarioError(1, what, next_step="tell a shorter story, or several")
    lines = normalized(text).splitlines(keepends=False)
    parts: list[Block | str] = []
    at = directives = 0
    while at < len(lines):
        if _between_blocks(lines[at]):
            parts.append(lines[at])
            at += 1
            continue
        block, at = _block(lines, at)
        directives += len(block.directives)
        if directives > MAX_DIRECTIVES:
            raise ScenarioError(at, f"a scenario has no more than {MAX_DIRECTIVES} directives")
        parts.append(block)
    return Scenario(tuple(parts))


def normalized(text: str) -> str:
    """The text with Unix line ends, and one at its end."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return text if text.endswith("\n") or not text else text + "\n"


def render(scenario: Scenario, outputs: Sequence[Sequence[str]]) -> str:
    """The file's text with these outputs, one for each block, in place of the expected ones."""
    remaining = iter(outputs)
    lines: list[str] = []
    after_output = False
    for part in scenario.parts:
        if isinstance(part, Block):
            lines += [*(directive.text for directive in part.directives), SEPARATOR, *next(remaining)]
        else:
            # Only a blank line ends the output of a block that had none.
            lines += ["", part] if after_output and part.strip() else [part]
        after_output = isinstance(part, Block)
    return "".join(f"{line}\n" for line in lines)


def run(scenario: Scenario, perform: Callable[[Directive], Sequence[str]]) -> list[list[str]]:
    """Perform every directive in order; the output of each block."""
    outputs = []
    for block in scenario.blocks:
        printed = [line for directive in block.directives for line in perform(directive)]
        outputs.append(printed or [NOTHING_TO_SAY])
    return outputs


def directives_of(scenario: Scenario) -> Iterator[tuple[tuple[str, ...], Directive]]:
    """Every directive in order, with the comments that stand above it."""
    story: list[str] = []
    for part in scenario.parts:
        if isinstance(part, str):
            story += [part.removeprefix("#").removeprefix(" ")] if part.startswith("#") else []
            continue
        for directive in part.directives:
            yield tuple(story), directive
            story = []


def _between_blocks(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _block(lines: Sequence[str], at: int) -> tuple[Block, int]:
    directives: list[Directive] = []
    while at < len(lines) and lines[at] != SEPARATOR and not _between_blocks(lines[at]):
        directives.append(_directive(lines[at], at + 1))
        at += 1
    if not directives:
        raise ScenarioError(at + 1, f"{SEPARATOR} stands behind directives; there is none above it")
    if at == len(lines) or lines[at] != SEPARATOR:
        return Block(tuple(directives), None), at
    at += 1
    expected: list[str] = []
    while at < len(lines) and lines[at].strip():
        expected.append(lines[at])
        at += 1
    return Block(tuple(directives), tuple(expected)), at


def _directive(text: str, line: int) -> Directive:
    name, *words = text.split()
    pairs = [word.split("=", 1) for word in words if "=" in word]
    options = dict(pairs)
    if len(options) < len(pairs):
        raise ScenarioError(line, "an option is given twice")
    return Directive(line, text, name, tuple(word for word in words if "=" not in word), options)


def cut(text: str) -> str:
    """What somebody wrote, short enough to be shown in an error."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
