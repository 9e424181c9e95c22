"""Which partitions a command is about: ``TOPIC``, ``TOPIC:3``, ``TOPIC:0,4-7``, ``orders-*``, ``/regex/``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kelr.model.numbers import MAX_INT32, whole_number
from kelr.model.partition import TopicPartition

_LEGAL_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_GLOB_CHARACTERS = frozenset("*?[]")
_MAX_RANGE = 1_000_000
_LONGEST_QUOTED = 80


@dataclass(frozen=True, slots=True)
class Target:
    """A topic, or a pattern of topics, and which of its partitions.

    Exactly one of `topic`, `glob` and `regex` is set. `partitions` is sorted; None means all of them.
    """

    topic: str | None = None
    glob: str | None = None
    regex: str | None = None
    partitions: tuple[int, ...] | None = None

    def __str__(self) -> str:
        name = self.topic or self.glob or f"/{self.regex}/"
        return name if self.partitions is None else f"{name}:{_compact(self.partitions)}"

    @property
    def is_pattern(self) -> bool:
        return self.topic is None

    def matches_topic(self, topic: str) -> bool:
        if self.topic is not None:
            return self.topic == topic
        if self.glob is not None:
            return fnmatchcase(topic, self.glob)
        return re.fullmatch(self.regex or "", topic) is not None

    def matches(self, topic: str, partition: int) -> bool:
        return (self.partitions is None or partition in self.partitions) and self.matches_topic(topic)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions to read: every partition that any target matches; no targets means all of the cluster."""

    targets: tuple[Target, ...] = ()

    @classmethod
    def of(cls, addresses: Iterable[TopicPartition]) -> Selection:
        """These partitions and no others."""
        by_topic: dict[str, list[int]] = {}
        for at in sorted(addresses):
            by_topic.setdefault(at.topic, []).append(at.partition)
        return cls(tuple(Target(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()))

    @property
    def is_everything(self) -> bool:
        return not self.targets

    @property
    def has_patterns(self) -> bool:
        return any(target.is_pattern for target in self.targets)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that are named outright, sorted and without repeats."""
        return tuple(sorted({target.topic for target in self.targets if target.topic is not None}))

    def matches_topic(self, topic: str) -> bool:
        return self.is_everything or any(target.matches_topic(topic) for target in self.targets)

    def matches(self, topic: str, partition: int) -> bool:
        return self.is_everything or any(target.matches(topic, partition) for target in self.targets)

    def named_partitions(self) -> frozenset[tuple[str, int]]:
        """The (topic, partition) pairs that are named outright, so that a missing one can be reported."""
        return frozenset(
            (target.topic, partition)
            for target in self.targets
            if target.topic is not None and target.partitions is not None
            for partition in target.partitions
        )


def _quoted(text: str) -> str:
    """What was typed, as far as a message has room for it."""
    return repr(text) if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]!r}..."


def parse_target(text: str) -> Target:
    """Read one target as the command line has it.

    Raises:
        ValueError: naming the text and what is wrong with it.
    """
    if text.startswith("/"):
        return _parse_regex(text)
    name, colon, rest = text.partition(":")
    partitions = _parse_partitions(rest, text) if colon else None
    if not name:
        raise ValueError(f"target {_quoted(text)} names no topic; write TOPIC, TOPIC:3 or TOPIC:0,4-7")
    if _GLOB_CHARACTERS & set(name):
        return Target(glob=name, partitions=partitions)
    if not _LEGAL_TOPIC.fullmatch(name) or name in {".", ".."}:
        raise ValueError(
            f"target {_quoted(text)}: {_quoted(name)} is not a topic name (up to 249 of letters, digits, '.', '_' and"
            " '-') nor a pattern ('*' and '?', or a /regular expression/)"
        )
    return Target(topic=name, partitions=partitions)


def select(texts: Iterable[str]) -> Selection:
    """Read several targets. Raises ValueError as `parse_target` does."""
    return Selection(tuple(parse_target(text) for text in texts))


def _parse_regex(text: str) -> Target:
    body, slash, rest = text[1:].rpartition("/")
    if not slash or (rest and not rest.startswith(":")):
        raise ValueError(
            f"target {_quoted(text)}: a regular expression stands between slashes: /like.*this/ or /this/:0-3"
        )
    try:
        re.compile(body)
    except re.error as error:
        raise ValueError(f"target {_quoted(text)} is not a regular expression: {error}") from error
    return Target(regex=body, partitions=_parse_partitions(rest[1:], text) if rest else None)


def _parse_partitions(text: str, target: str) -> tuple[int, ...]:
    partitions: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", part.strip(), re.ASCII)
        if match is None:
            raise ValueError(
                f"target {_quoted(target)}: {_quoted(part.strip())} is not a partition number or a range such as 4-7"
            )
        first, last = (whole_number(one, MAX_INT32) for one in (match[1], match[2] or match[1]))
        if first is None or last is None or last - first >= _MAX_RANGE:
            raise ValueError(f"target {_quoted(target)}: {_quoted(part.strip())} goes beyond what Kafka can have")
        if first > last:
            raise ValueError(f"target {_quoted(target)}: the range {_quoted(part.strip())} runs backwards")
        partitions.update(range(first, last + 1))
    return tuple(sorted(partitions))


def _compact(partitions: tuple[int, ...]) -> str:
    runs: list[list[int]] = []
    for partition in partitions:
        if runs and partition == runs[-1][1] + 1:
            runs[-1][1] = partition
        else:
            runs.append([partition, partition])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
