"""Numbers as people write them."""

from __future__ import annotations

import pytest

from kelr.model.numbers import MAX_INT32, whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("000", 0),
        ("7", 7),
        ("0" * 5000 + "7", 7),
        (str(MAX_INT32), MAX_INT32),
        (str(MAX_INT32 + 1), None),
        ("9" * 5000, None),
        ("", None),
        ("-1", None),
        ("1_0", None),
        ("\u0661", None),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole_number(text, MAX_INT32) == number
