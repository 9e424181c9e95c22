"""Numbers as people and clusters write them."""

from __future__ import annotations

MAX_INT32 = 2**31 - 1


def whole_number(text: str, highest: int) -> int | None:
    """The number that ASCII digits spell; None where they spell none, or one above `highest`.

    Python's own `int` refuses thousands of digits, in words of its own, and takes digits of other scripts.
    """
    digits = text.lstrip("0") or text[:1]
    if not (text.isascii() and text.isdigit()) or len(digits) > len(str(highest)):
        return None
    number = int(digits)
    return number if number <= highest else None
