"""What a directive's words mean in a cluster: partitions, brokers, rule sets; and what one directive is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kelr.controller import RuleSet, rule_set
from kelr.model import TopicPartition
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import Directive, ScenarioError, cut

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
