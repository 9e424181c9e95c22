"""Reading a JSON document that a person may have written or edited: every fault is said with its place."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from kelr.durable import LongNumberError, json_integer
from kelr.errors import BadInputError
from kelr.files import FILES, Files
from kelr.sources.field_problems import in_words

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import ErrorDetails

_LONGEST_PLACE = 300
_NO_FIELD = "unexpected_keyword_argument"
_Value = TypeVar("_Value")
STRICT = {"strict": True, "extra": "forbid"}
"""The `__pydantic_config__` of a file: nothing passes for another type, and no other field may be there."""
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def read_json(path: Path, what: str, *, max_bytes: int, files: Files = FILES) -> tuple[bytes, Any]:
    """The file's bytes and what they say.

    Stricter than `json.loads`: a key given twice, NaN and infinity are faults, since readers take them differently.

    Args:
        what: what the file is, for the words of an error: ``plan``, ``election file``.

    Raises:
        BadInputError: it cannot be read, is too large, is not UTF-8 or not JSON; names the line where there is one.
    """
    text = _bytes(path, what, max_bytes, files)
    if text.startswith(_BYTE_ORDER_MARKS):
        raise BadInputError(
            f"{path} begins with a byte order mark: a {what} is UTF-8 without one",
            next_step="save it as plain UTF-8",
        )
    try:
        return text, _DECODER.decode(text.decode())
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise BadInputError(
            f"{path}, line {line}: not UTF-8 text", next_step=f"give a file that holds the {what}"
        ) from error
    except json.JSONDecodeError as error:
        raise _not_json(path, what, error) from error
    except RecursionError as error:
        raise BadInputError(
            f"{path} is nested deeper than any {what}", next_step=f"give a file that holds the {what}"
        ) from error
    except LongNumberError as error:
        line = text.count(b"\n", 0, text.find(error.digits.encode())) + 1
        raise BadInputError(
            f"{path}, line {line}: no {what}: {error}", next_step="mend that place in the file, or make the file again"
        ) from error
    except ValueError as error:
        # A key given twice, or NaN.
        raise BadInputError(
            f"{path}: no {what}: {str(error)[:200]}", next_step="mend that place in the file, or make the file again"
        ) from error


@cache
def adapter(kind: type[_Value]) -> TypeAdapter[_Value]:
    """What reads values of this kind from JSON, and writes them."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - costs more than most commands take

    return TypeAdapter(kind)


def first_problem(error: ValidationError, kind: type[Any]) -> str:
    """The first thing that is wrong with what should be a value of this kind: its place as a JSON path, and what is
    wrong there; where a field is not known, the one that may have been meant.

    The input is not quoted: it may be huge.
    """
    from pydantic import TypeAdapter  # noqa: PLC0415 - as in `adapter`

    problems = error.errors(include_url=False, include_input=False)
    problem = problems[0]
    if problem["type"] == "missing":
        # A field that is misspelt is missing under its own name: what stands there says more.
        beside = [one for one in problems if one["type"] == _NO_FIELD and one["loc"][:-1] == problem["loc"][:-1]]
        wanted = [str(problem["loc"][-1])]
        problem = next((one for one in beside if _meant(one, wanted)), problem)
    place = json_path(problem["loc"])[:_LONGEST_PLACE]
    meant = _meant(problem, _fields(TypeAdapter(kind).json_schema())) if problem["type"] == _NO_FIELD else None
    words = in_words(problem) + (f"; did you mean {meant!r}?" if meant else "")
    return f"{place}: {words}" if place else words


def _fields(schema: dict[str, Any]) -> set[str]:
    """The names of all fields there are."""
    return {name for one in (schema, *schema.get("$defs", {}).values()) for name in one.get("properties", ())}


def _meant(problem: ErrorDetails, fields: Iterable[str]) -> str | None:
    """The field whose name is like that of one that there is not."""
    name = str(problem["loc"][-1])
    return next((one for one in difflib.get_close_matches(name, fields, n=1) if one != name), None)


def json_path(place: tuple[int | str, ...]) -> str:
    """``elections[3].evidence.isr``."""
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{part}"
    return path


def _bytes(path: Path, what: str, max_bytes: int, files: Files) -> bytes:
    try:
        if files.exists(path) and not files.is_file(path):
            raise BadInputError(f"{path} is not a regular file", next_step=f"give a file that holds the {what}")
        with files.reader(path) as file:
            text = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadInputError(
            f"cannot read the {what} {path}: {why}", next_step="check the path and its permissions"
        ) from error
    if len(text) > max_bytes:
        raise BadInputError(
            f"{path} is larger than {max_bytes // 2**20} MiB: no {what} that kelr writes or takes is",
            next_step=f"give a file that holds the {what}",
        )
    return text


def _not_json(path: Path, what: str, error: json.JSONDecodeError) -> BadInputError:
    if not error.doc.strip():
        return BadInputError(f"{path} is empty: no {what}", next_step="make the file again")
    cut_short = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
    return BadInputError(
        f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}",
        next_step="make the file again: it is cut short"
        if cut_short
        else "mend that place in the file, or make it again",
        code="not-json",
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the field {twice[:100]!r} is given twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number, parse_int=json_integer)
