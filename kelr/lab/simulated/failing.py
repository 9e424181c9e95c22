"""An answer whose every error code is the same: what a node says that will not do what it was asked.

It is made from the schema of the response. Topics and partitions that carry an error of their own are those of the
request, as in Kafka's `getErrorResponse`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kelr.lab.simulated.api import Message
from kelr.sources.live.failures import error_name

Field = Any
"""A field of kafka-python's schemas, which are not typed."""


def failed_answer(response: type[Message], request: Message, version: int, number: int) -> Message | None:
    """The answer to `request` with this error number wherever it has room for one; None where it has none, because
    the request names nothing (all topics) and the answer has no error code of its own."""
    filler = _Filler(version, number)
    message = filler.filled(response._struct, request, lambda **values: response(version=version, **values))
    return message if filler.errors else None


def with_errors(message: Message, number: int) -> bool:
    """Set every error code of an answer that is there; says whether it has any."""
    found = False
    for field in _fields(message._struct, message.version):
        value = getattr(message, field.name)
        if _is_code(field):
            setattr(message, field.name, number)
            found = True
        elif _is_message(field):
            setattr(message, field.name, error_name(number))
        elif field.is_struct_array():
            for one in value or ():
                found = with_errors(one, number) or found
        elif field.is_struct() and value is not None:
            found = with_errors(value, number) or found
    return found


class _Filler:
    """Fills a response; counts the error codes that it set."""

    def __init__(self, version: int, number: int) -> None:
        self._version = version
        self._number = number
        self.errors = 0

    def filled(self, struct: Field, asked: Any, make: Callable[..., Message]) -> Message:
        """A struct of the response; `asked` is what it answers: a struct of the request, or one number or name."""
        values: dict[str, Any] = {}
        for field in _fields(struct, self._version):
            if _is_code(field):
                values[field.name] = self._number
                self.errors += 1
            elif _is_message(field):
                values[field.name] = error_name(self._number)
            elif field.is_struct_array():
                values[field.name] = self._elements(field, asked)
            elif field.is_struct() and field.nullable_for_version_q(self._version):
                values[field.name] = None  # such as the cursor of a page
            elif field.is_struct() and field.tag is None:
                values[field.name] = self.filled(field, asked, self._maker(field))
            elif (copied := _same(field, struct, asked, self._version)) is not None:
                values[field.name] = copied
        return make(**values)

    def _elements(self, field: Field, asked: Any) -> list[Message]:
        if not _holds_code(field, self._version):
            return []
        return [self.filled(field, one, self._maker(field)) for one in _counterpart(field, asked, self._version)]

    def _maker(self, field: Field) -> Callable[..., Message]:
        return lambda **values: field.data_class(version=self._version, **values)


def _fields(struct: Field, version: int) -> list[Field]:
    return [field for field in struct.fields.values() if field.for_version_q(version)]


def _is_code(field: Field) -> bool:
    return bool(field.type_str == "int16" and (field.name == "error_code" or field.name.endswith("_error_code")))


def _is_message(field: Field) -> bool:
    return bool(field.name == "error_message")


def _holds_code(field: Field, version: int) -> bool:
    inner = _fields(field, version)
    return any(_is_code(one) or (one.is_struct_array() and _holds_code(one, version)) for one in inner)


def _counterpart(field: Field, asked: Any, version: int) -> Sequence[Any]:
    """The elements of the request that this array of the answer has one element each for."""
    if not hasattr(asked, "_struct"):
        return ()
    arrays = [one for one in _fields(asked._struct, version) if one.is_struct_array() or one.is_array()]
    same = [one for one in arrays if one.name == field.name] or arrays
    return () if not same else getattr(asked, same[0].name) or ()


def _same(field: Field, struct: Field, asked: Any, version: int) -> Any:
    """The value of the request that this field repeats: of the same name, kind of thing, or place."""
    if not hasattr(asked, "_struct"):
        return asked if field is _first_of_type(struct, type(asked), version) else None
    fields = [one for one in _fields(asked._struct, version) if one.type_str == field.type_str]
    for fits in (_same_name, _same_entity, _both_partitions):
        for one in fields:
            if fits(one, field):
                return getattr(asked, one.name)
    return None


def _first_of_type(struct: Field, wanted: type, version: int) -> Field | None:
    type_name = {int: "int32", str: "string"}.get(wanted, "uuid")
    return next((one for one in _fields(struct, version) if one.type_str == type_name), None)


def _same_name(one: Field, other: Field) -> bool:
    return bool(one.name == other.name)


def _same_entity(one: Field, other: Field) -> bool:
    return bool(one._entity_type is not None and one._entity_type == other._entity_type)


def _both_partitions(one: Field, other: Field) -> bool:
    names = {"partition", "partition_index", "partition_id", "index"}
    return one.name in names and other.name in names
