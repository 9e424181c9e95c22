"""What a strict model found wrong, in words."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kelr.sources.field_problems import in_words


class _Inner(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Model(_Inner):
    number: Annotated[int, Field(ge=1, le=9)] = 1
    text: Annotated[str, Field(min_length=2, max_length=3)] = "ab"
    yes: bool = True
    many: Annotated[tuple[int, ...], Field(min_length=1, max_length=2)] = (1,)
    kind: Literal["a", "b"] = "a"
    inner: _Inner = _Inner()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"number": "1"}, "not a whole number"),
        ({"number": "x"}, "not a whole number"),
        ({"number": 1.5}, "not a whole number"),
        ({"number": None}, "not a whole number"),
        ({"number": 0}, "less than 1"),
        ({"number": 10}, "more than 9"),
        ({"text": 5}, "not a text in quotes"),
        ({"text": "a"}, "shorter than 2 characters"),
        ({"text": "abcd"}, "longer than 3 characters"),
        ({"yes": "true"}, "neither true nor false"),
        ({"many": {}}, "not a list"),
        ({"many": []}, "fewer entries than 1"),
        ({"many": [1, 2, 3]}, "more entries than 2"),
        ({"kind": "c"}, "not 'a' or 'b'"),
        ({"inner": []}, "not an object"),
        ({"other": 1}, "no such field"),
    ],
)
def test_every_kind_of_fault_has_words(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _Model.model_validate_json(json.dumps(given))
    assert in_words(caught.value.errors()[0]) == words
