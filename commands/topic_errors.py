"""What becomes of a command some of whose topics could not be described."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice

import typer

from kelr.errors import ExitCode, KelrError, NotAuthorizedError, PartlyDoneError, UsageError
from kelr.model import Selection, TopicError
from kelr.sources.base import Source

_MOST = 5
_PAGES = 10
"""So much of the cluster is read for topics of a name like the one that was typed: some 20,000 partitions."""
_NO_SUCH = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"})
"""Errors that a name is to blame for; after the others it may well be right."""


def topics_failed(errors: Sequence[TopicError], *, some_worked: bool, source: Source | None = None) -> KelrError:
    """The error that ends the command: done in part, or, where nothing worked, why.

    Args:
        some_worked: whether any partition was described.
        source: where topics of similar names can be looked for.
    """
    no_such_partition = all(error.absent for error in errors)
    what = _absent(errors) if no_such_partition else _undescribed(errors)
    if some_worked:
        meant = _meant(errors, source)
        return PartlyDoneError(
            what,
            next_step=f"{meant} What is shown is right" if meant else "what is shown is right as far as it goes",
            code="some-topics-unread",
        )
    if no_such_partition:
        return UsageError(
            what,
            next_step="name partitions that are there, or the topic alone for all of them",
            code="partition-unknown",
        )
    if all("AUTHORIZATION" in error.error for error in errors):
        return NotAuthorizedError(what, next_step="the principal needs DESCRIBE on these topics")
    failed = sorted({error.error for error in errors} - _NO_SUCH)
    if failed:
        return PartlyDoneError(
            f"{what} ({', '.join(failed)})",
            next_step="check the names, and that the principal has DESCRIBE on these topics"
            if all("AUTHORIZATION" in error for error in failed)
            else "ask again; the broker's log may say why",
            code="some-topics-unread",
        )
    meant = _meant(errors, source) or "check the spelling;"
    return UsageError(
        what, next_step=f"{meant} `kelr describe` without a target lists every topic", code="topic-unknown"
    )


def _meant(errors: Sequence[TopicError], source: Source | None) -> str:
    """What may have been meant by names that no topic has; empty where nothing is like them."""
    wrong = [error.topic for error in errors if error.error in _NO_SUCH and not error.absent]
    topics = _topics(source) if wrong else ()
    near = list(dict.fromkeys(one for name in wrong for one in _near(name, topics)))
    return f"did you mean {', '.join(near[:_MOST])}?" if near else ""


def _near(name: str, topics: Collection[str]) -> Iterator[str]:
    """Kafka's directories and metrics name a partition ``orders-1``, and people type ``orders 1``."""
    topic, dash, number = name.rpartition("-")
    if dash and number.isdecimal() and topic in topics:
        yield f"{topic}:{number}"
    elif name.isdecimal():
        yield f"TOPIC:{name}"
    else:
        yield from get_close_matches(name, topics, n=3)


def _topics(source: Source | None) -> Collection[str]:
    try:
        pages = () if source is None else islice(source.pages(Selection()), _PAGES)
        return {state.topic for page in pages for state in page.partitions}
    except KelrError:
        return ()


def _absent(errors: Sequence[TopicError]) -> str:
    """Of topics that are there: which of their partitions are not, and which are."""
    more = f"; and {len(errors) - _MOST} more such topics" if len(errors) > _MOST else ""
    return "; ".join(error.detail for error in errors[:_MOST]) + more


def _undescribed(errors: Sequence[TopicError]) -> str:
    names = sorted({error.topic for error in errors})
    first = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
    return f"{len(names)} topic{'s' if len(names) > 1 else ''} could not be described: {first}"


def sees_any(source: Source, selection: Selection) -> bool:
    """Whether there is any such partition: brokers leave topics that a principal may not describe out without a
    word."""
    return any(page.partitions for page in source.pages(selection))


def fail_unseen(*, seen: bool) -> None:
    """End the command with 1 where no partition was seen, after that was said."""
    if not seen:
        raise typer.Exit(ExitCode.FOUND)
