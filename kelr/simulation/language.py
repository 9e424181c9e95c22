"""The text of a scenario file: blocks of directives with the output that they are expected to print.

A block is one directive a line, then ``----``, then the expected output, then a blank line. A block without ``----``
has no expected output yet. Lines that start with ``#`` tell the story. Between blocks, comments and blank lines are
kept as they are, and directives as they are spelled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.controller import RuleSet, rule_set
from kelr.model import TopicPartition
from kelr.simulation.cluster import SimulatedCluster

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


# What a directive's words mean in a cluster: partitions, brokers, rule sets; and what one directive is made of.


Result = tuple[SimulatedCluster, Sequence[str]]
"""The cluster after a directive, and what the directive prints."""

MAX_BROKERS = 100
MAX_PARTITIONS = 200
MAX_REPLICAS = 2_000
"""Replicas of all partitions together: decisions about more of them take too long to be looked at step by step."""
MAX_RECORDS = 20_000
"""Records that a scenario may produce in all."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_DURATION = re.compile(r"([0-9]+)(ms|s)")
_MAX_PARTITION = 2**31 - 1
"""Kafka's numbers of partitions are 32 bits wide."""
_DAY_MS = 86_400_000
_NAMED = 20
"""How many brokers an error lists."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One directive of the language."""

    name: str
    words: str
    """What follows the name: capitals stand for values, brackets for what may be left out."""
    about: str
    perform: Callable[[SimulatedCluster, Directive], Result]


def argument(directive: Directive, what: str) -> str:
    """The directive's first argument.

    Raises:
        ScenarioError: there is none; `what` says what it should be.
    """
    if not directive.arguments:
        raise directive.error(f"{directive.name} needs {what}")
    return directive.arguments[0]


def topic(directive: Directive, name: str) -> str:
    if not _TOPIC.fullmatch(name):
        raise directive.error(f"{cut(name)!r} is not a topic's name")
    return name


def named(directive: Directive, word: str) -> TopicPartition:
    """The partition that ``orders:0`` names, whether or not it is there."""
    name, colon, number = word.rpartition(":")
    if not colon:
        raise directive.error(f"{cut(word)!r} is not a partition such as orders:0")
    parsed = directive.parsed_number(number)
    if not 0 <= parsed <= _MAX_PARTITION:
        raise directive.error(f"{cut(word)!r} is not a partition such as orders:0")
    return TopicPartition(topic(directive, name), parsed)


def address(cluster: SimulatedCluster, directive: Directive) -> TopicPartition:
    """The partition that a directive names; it need not where there is only one.

    Raises:
        ScenarioError: there is no such partition, or several and none is named.
    """
    known = cluster.controller.partitions
    words = [word for word in directive.arguments if ":" in word]
    if len(words) > 1:
        raise directive.error(f"{directive.name} takes one partition")
    if words:
        found = named(directive, words[0])
        if found not in known:
            raise directive.error(f"there is no partition {found}")
        return found
    if len(known) != 1:
        raise directive.error(f"name one of {len(known)} partitions" if known else "there is no partition yet")
    return next(iter(known))


def addresses(cluster: SimulatedCluster, directive: Directive) -> tuple[TopicPartition, ...]:
    """The partition that a directive names, or all, in order."""
    if any(":" in word for word in directive.arguments):
        return (address(cluster, directive),)
    return tuple(sorted(cluster.controller.partitions))


def others(directive: Directive) -> tuple[str, ...]:
    """The arguments besides the partition's name."""
    return tuple(word for word in directive.arguments if ":" not in word)


def rest(directive: Directive, what: str = "an argument") -> tuple[str, ...]:
    """The same, and at least one.

    Raises:
        ScenarioError: there is none.
    """
    found = others(directive)
    if not found:
        raise directive.error(f"{directive.name} needs {what}")
    return found


def broker_id(directive: Directive, word: str) -> int:
    """One broker of those that a directive lists with blanks between them: ``fence 1 2``."""
    if "," in word:
        apart = cut(f"{directive.name} {word.replace(',', ' ')}".rstrip())
        raise directive.error(f"brokers stand with blanks between them here, not commas: {apart}")
    return directive.parsed_number(word)


def brokers(cluster: SimulatedCluster, directive: Directive) -> tuple[int, ...]:
    """The registered brokers that a directive names.

    Raises:
        ScenarioError: there is none, or one is not registered.
    """
    return tuple(registered(cluster, directive, broker_id(directive, word)) for word in rest(directive, "a broker"))


def broker(cluster: SimulatedCluster, directive: Directive) -> int:
    """The one registered broker that a directive names.

    Raises:
        ScenarioError: it names none, or several, or one that is not registered.
    """
    return registered(cluster, directive, one_broker(directive))


def one_broker(directive: Directive) -> int:
    """The same, whether or not the controller knows it."""
    words = rest(directive, "a broker")
    if len(words) != 1:
        raise directive.error(f"{directive.name} takes one broker")
    return broker_id(directive, words[0])


def registered(cluster: SimulatedCluster, directive: Directive, number: int) -> int:
    """A broker that the controller knows.

    Raises:
        ScenarioError: it knows none of this id.
    """
    if number not in cluster.controller.brokers:
        raise _unknown(cluster, directive, number)
    return number


def existing(cluster: SimulatedCluster, directive: Directive, number: int) -> int:
    """A broker that the controller knows, or one whose registration was removed and whose disk still has logs.

    Raises:
        ScenarioError: there never was one of this id, or nothing is left of it.
    """
    holds_logs = any(number in logs.logs for logs in cluster.replication.values())
    if number not in cluster.controller.brokers and not holds_logs:
        raise _unknown(cluster, directive, number)
    return number


def _unknown(cluster: SimulatedCluster, directive: Directive, number: int) -> ScenarioError:
    there_are = ", ".join(map(str, sorted(cluster.controller.brokers)[:_NAMED])) or "none"
    add = f"; register {number} clean adds one" if number >= 0 else ""
    return directive.error(f"there is no broker {number}", next_step=f"registered are {there_are}{add}")


def replica(cluster: SimulatedCluster, directive: Directive, at: TopicPartition, number: int) -> int:
    """A replica of the partition.

    Raises:
        ScenarioError: it is none.
    """
    replicas = cluster.controller.partitions[at].replicas
    if number not in replicas:
        there_are = ", ".join(map(str, replicas[:_NAMED]))
        raise directive.error(f"{number} is no replica of {at}", next_step=f"its replicas are {there_are}")
    return number


def rules(directive: Directive, name: str) -> RuleSet:
    try:
        return rule_set(name)
    except ValueError as error:
        raise directive.error(str(error)) from None


def duration_ms(directive: Directive, text: str) -> int:
    """``5s`` or ``500ms``, in milliseconds.

    Raises:
        ScenarioError: it is neither, or longer than a day.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise directive.error(f"{cut(text)!r} is no time such as 5s or 500ms")
    milliseconds = directive.parsed_number(found[1]) * (1 if found[2] == "ms" else 1000)
    if milliseconds > _DAY_MS:
        raise directive.error(f"{cut(text)!r} is longer than a day")
    return milliseconds
