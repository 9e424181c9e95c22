"""What a strict model found wrong with a field, in words of JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Context = Mapping[str, Any]
_LONGEST = 300


def _whole_number(_context: Context) -> str:
    return "not a whole number"


def _text(_context: Context) -> str:
    return "not a text in quotes"


_WORDS: Mapping[str, Callable[[Context], str]] = {
    "missing": lambda _: "this field is missing",
    "extra_forbidden": lambda _: "no such field",
    "missing_keyword_only_argument": lambda _: "this field is missing",
    "unexpected_keyword_argument": lambda _: "no such field",
    "int_type": _whole_number,
    "int_parsing": _whole_number,
    "int_parsing_size": _whole_number,
    "int_from_float": _whole_number,
    "float_type": lambda _: "not a number",
    "bool_type": lambda _: "neither true nor false",
    "string_type": _text,
    "list_type": lambda _: "not a list",
    "tuple_type": lambda _: "not a list",
    "dict_type": lambda _: "not an object",
    "model_type": lambda _: "not an object",
    "dataclass_type": lambda _: "not an object",
    "model_attributes_type": lambda _: "not an object",
    "literal_error": lambda context: f"not {context['expected']}",
    "enum": lambda context: f"not {context['expected']}",
    "none_required": lambda _: "not null",
    "greater_than_equal": lambda context: f"less than {context['ge']}",
    "greater_than": lambda context: f"not more than {context['gt']}",
    "less_than_equal": lambda context: f"more than {context['le']}",
    "less_than": lambda context: f"not less than {context['lt']}",
    "string_too_short": lambda context: f"shorter than {context['min_length']} characters",
    "string_too_long": lambda context: f"longer than {context['max_length']} characters",
    "string_pattern_mismatch": lambda context: f"not of the form {context['pattern']}",
    "too_short": lambda context: f"fewer entries than {context['min_length']}",
    "too_long": lambda context: f"more entries than {context['max_length']}",
}


def in_words(problem: Mapping[str, Any]) -> str:
    """One of the errors of pydantic's `ValidationError`, without its place: ``not a whole number``. The input is not
    quoted: it may be huge.

    A problem that there are no words for keeps the library's.
    """
    words = _WORDS.get(str(problem["type"]))
    text = str(problem["msg"]).removeprefix("Value error, ") if words is None else words(problem.get("ctx", {}))
    return text[:_LONGEST]
