"""What becomes of a command some of whose topics could not be described."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.errors import KelrError, NotAuthorizedError, PartlyDoneError, UsageError
from kelr.model import TopicError

_MOST = 5
_NO_SUCH = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"})
"""Errors that a name is to blame for; after the others it may well be right."""


def topics_failed(errors: Sequence[TopicError], *, some_worked: bool) -> KelrError:
    """The error that ends the command: done in part, or, where nothing worked, why.

    Args:
        some_worked: whether any partition was described.
    """
    no_such_partition = all(error.absent for error in errors)
    what = _absent(errors) if no_such_partition else _undescribed(errors)
    if some_worked:
        return PartlyDoneError(what, next_step="what is shown is right as far as it goes", code="some-topics-unread")
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
            next_step="ask again; the broker's log may say why",
            code="some-topics-unread",
        )
    return UsageError(
        what, next_step="check the spelling; `kelr describe` without a target lists every topic", code="topic-unknown"
    )


def _absent(errors: Sequence[TopicError]) -> str:
    """Of topics that are there: which of their partitions are not, and which are."""
    more = f"; and {len(errors) - _MOST} more such topics" if len(errors) > _MOST else ""
    return "; ".join(error.detail for error in errors[:_MOST]) + more


def _undescribed(errors: Sequence[TopicError]) -> str:
    names = sorted({error.topic for error in errors})
    first = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
    return f"{len(names)} topic{'s' if len(names) > 1 else ''} could not be described: {first}"
