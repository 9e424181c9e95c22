"""Small pieces of English that several explanations share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def ids(replicas: Iterable[int] | None) -> str:
    """A replica list as people write it: ``[1, 2]``; ``unknown`` where it is not known."""
    return "unknown" if replicas is None else "[" + ", ".join(map(str, replicas)) + "]"


def brokers(replicas: Sequence[int]) -> str:
    """``broker 1``, ``brokers 1 and 2``, ``brokers 1, 2 and 3``."""
    return f"broker {replicas[0]}" if len(replicas) == 1 else f"brokers {joined(replicas)}"


def joined(items: Iterable[object], word: str = "and") -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``; ``none`` for nothing."""
    texts = [str(item) for item in items]
    if len(texts) < 2:
        return texts[0] if texts else "none"
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def holds_up_to(replica: int, log_end: int, high_watermark: int | None) -> str:
    """``2 holds up to offset 135 (HW 120)``."""
    known = "" if high_watermark is None else f" (HW {high_watermark})"
    return f"{replica} holds up to offset {log_end}{known}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def agree(count: int, singular: str, many: str) -> str:
    """The form of a verb for a number of subjects."""
    return singular if count == 1 else many
