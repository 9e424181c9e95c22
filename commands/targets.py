"""Targets as the command line has them: kelr's words, or the flags of Kafka's own tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kelr.errors import UsageError
from kelr.model import Selection, TopicPartition, parse_target, select
from kelr.model.numbers import MAX_INT32, whole_number

if TYPE_CHECKING:
    from kelr.controller import RuleSet

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]+")


def read_selection(
    targets: Sequence[str], *, topics: Sequence[str] = (), partitions: str | None = None, everything: bool = False
) -> Selection:
    """The partitions that are named by targets, by ``--topic`` and ``--partition``, or all of them.

    Raises:
        UsageError: a target cannot be read, or more than one way is used at once.
    """
    if sum((bool(targets), bool(topics), everything)) > 1:
        raise UsageError(
            "targets, --topic and --all-topic-partitions are three ways to say one thing",
            next_step="use one of them",
        )
    if partitions is not None and len(topics) != 1:
        raise UsageError(
            "--partition goes with exactly one --topic", next_step="write TOPIC:3 or --topic TOPIC --partition 3"
        )
    texts = [_target_text(topic, partitions) for topic in topics] if topics else list(targets)
    try:
        return select(texts)
    except ValueError as error:
        raise UsageError(
            str(error), next_step="write TOPIC, TOPIC:3, TOPIC:0,4-7, a pattern in quotes, or a /regular expression/"
        ) from error


def read_cursor(text: str | None) -> TopicPartition | None:
    """``TOPIC:P``, where a listing goes on. Raises UsageError where it is something else."""
    if text is None:
        return None
    try:
        target = parse_target(text)
    except ValueError as error:
        raise UsageError(f"--cursor: {error}", next_step="write --cursor TOPIC:3") from error
    if target.topic is None or target.partitions is None or len(target.partitions) != 1:
        raise UsageError(f"--cursor {text!r} is not one partition", next_step="write --cursor TOPIC:3")
    return TopicPartition(target.topic, target.partitions[0])


def _target_text(topic: str, partitions: str | None) -> str:
    """kafka-topics.sh takes a regular expression for ``--topic``; a plain name is one that matches itself."""
    name = topic if _TOPIC_NAME.fullmatch(topic) else f"/{topic}/"
    return name if partitions is None else f"{name}:{partitions}"


def read_ids(flag: str, texts: Sequence[str], what: str = "broker") -> tuple[int, ...]:
    """The nodes of ``FLAG 1 --FLAG 2,3``, each once. Raises UsageError."""
    found = []
    for part in (part.strip() for text in texts for part in text.split(",")):
        number = whole_number(part, MAX_INT32)
        if number is None:
            raise UsageError(f"{flag}: {part[:40]!r} is no {what} id", next_step=f"write, for example, {flag} 1,2")
        found.append(number)
    return tuple(dict.fromkeys(found))


def read_rules(name: str) -> RuleSet | None:
    """The rule set of ``--rules``; None for what the cluster runs. Raises UsageError."""
    from kelr.controller import rule_set  # noqa: PLC0415 - few commands take it

    if name.lower() == "auto":
        return None
    try:
        return rule_set(name)
    except ValueError as error:
        raise UsageError(
            f"--rules: {error}", next_step="leave --rules out, or write auto, for what the cluster runs"
        ) from error
