"""What becomes of a command some of whose topics could not be described."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.errors import KelrError, NotAuthorizedError, PartlyDoneError, UsageError
from kelr.model import TopicError


def topics_failed(errors: Sequence[TopicError], *, some_worked: bool) -> KelrError:
    """The error that ends the command: done in part, or, where nothing worked, why.

    Args:
        some_worked: whether any partition was described.
    """
    failed = len({error.topic for error in errors})
    what = f"{failed} topic{'s' if failed > 1 else ''} could not be described: {_first(errors)}"
    if some_worked:
        return PartlyDoneError(what, next_step="what is shown is right as far as it goes")
    if all("AUTHORIZATION" in error.error for error in errors):
        return NotAuthorizedError(what, next_step="the principal needs DESCRIBE on these topics")
    return UsageError(what, next_step="check the spelling; `kelr describe` without a target lists every topic")


def _first(errors: Sequence[TopicError]) -> str:
    names = sorted({error.topic for error in errors})
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
