"""The ranges of fields that files hold, as their types: pydantic refuses anything else where a file is read."""

from __future__ import annotations

import re
from typing import Annotated

from annotated_types import Ge, Le, Len, MaxLen, Predicate

from kelr.model.numbers import MAX_INT32

_TOPIC = r"^[A-Za-z0-9._-]{1,249}$"
_TOPIC_ID = r"^[A-Za-z0-9_-]{22}$"


def matching(pattern: str) -> Predicate:
    """A text of this form."""
    form = re.compile(pattern)

    def check(text: str) -> bool:
        if form.fullmatch(text) is None:
            raise ValueError(f"not of the form {pattern}")
        return True

    return Predicate(check)


def _unique(ids: tuple[int, ...]) -> bool:
    if len(set(ids)) != len(ids):
        raise ValueError("a broker is listed twice")
    return True


Int32 = Annotated[int, Ge(0), Le(MAX_INT32)]
Count = Annotated[int, Ge(1), Le(MAX_INT32)]
Offset = Annotated[int, Ge(0), Le(2**63 - 1)]
OffsetRange = tuple[Offset, Offset]
Brokers = Annotated[tuple[Int32, ...], MaxLen(10_000), Predicate(_unique)]
Replicas = Annotated[tuple[Int32, ...], Len(1, 10_000), Predicate(_unique)]
Seats = Annotated[tuple[Annotated[int, Ge(-1), Le(MAX_INT32)], ...], MaxLen(10_000), Predicate(_unique)]
"""Brokers; Kafka 4.0 can seat -1, "no leader", in the sets."""
Topic = Annotated[str, matching(_TOPIC)]
TopicId = Annotated[str, matching(_TOPIC_ID)]
