"""What a directive's words mean in a cluster: partitions, brokers, rule sets; and what one directive is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kelr.controller import RuleSet, rule_set
from kelr.model import TopicPartition
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import Directive, cut

Result = tuple[SimulatedCluster, Sequence[str]]
"""The cluster after a directive, and what the directive prints."""

MAX_BROKERS = 100
MAX_PARTITIONS = 200
MAX_RECORDS = 20_000
"""Records that a scenario may produce in all."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_DURATION = re.compile(r"([0-9]+)(ms|s)")
_DAY_MS = 86_400_000


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
    if parsed < 0:
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


def brokers(directive: Directive) -> tuple[int, ...]:
    """Brokers as arguments of their own: ``fence 1 2``."""
    return tuple(directive.parsed_number(word) for word in rest(directive, "a broker"))


def broker(directive: Directive) -> int:
    found = brokers(directive)
    if len(found) != 1:
        raise directive.error(f"{directive.name} takes one broker")
    return found[0]


def replica(cluster: SimulatedCluster, directive: Directive, at: TopicPartition, number: int) -> int:
    """A replica of the partition.

    Raises:
        ScenarioError: it is none.
    """
    if number not in cluster.controller.partitions[at].replicas:
        raise directive.error(f"{number} is no replica of {at}")
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
