"""Reading a Java properties file: the format of Kafka's `--command-config client.properties`.

Source: java.util.Properties.load. A line ends at a newline; blank lines and lines whose first visible character is
``#`` or ``!`` are comments; a line that ends in an odd number of backslashes goes on in the next one, whose leading
blanks are dropped; the key ends at the first unescaped ``=``, ``:`` or blank.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kelr.errors import BadInputError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_MAX_SIZE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Property:
    """One value and the line (from 1) that its key stands on. The value may be a secret: it is not in the repr."""

    value: str
    line: int

    def __repr__(self) -> str:
        return f"Property(line={self.line})"


def read_properties(path: Path) -> Mapping[str, Property]:
    """All properties of a file; of a key that comes twice, the last, as Java does it.

    Raises:
        BadInputError: the file cannot be read, is not text, or has a broken escape; names file and line.
    """
    try:
        if path.stat().st_size > _MAX_SIZE_BYTES:
            raise BadInputError(
                f"{path} is larger than {_MAX_SIZE_BYTES} bytes: not a client properties file",
                next_step="name the properties file that Kafka's own tools take as --command-config",
            )
        text = path.read_text(encoding="utf-8-sig")  # a mark of an editor is no part of the first key
    except OSError as error:
        raise BadInputError(
            f"cannot read {path}: {error.strerror or error}", next_step="check the path and its permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInputError(
            f"{path} is not a text file (byte {error.start} is not UTF-8)",
            next_step="name the properties file that Kafka's own tools take as --command-config",
        ) from error
    return parse_properties(text, name=str(path))


def parse_properties(text: str, *, name: str) -> Mapping[str, Property]:
    """The properties in `text`; `name` stands for the file in errors. Raises BadInputError as `read_properties`."""
    properties: dict[str, Property] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        properties[_unescape(key, name, number)] = Property(_unescape(value, name, number), number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, and the number of their first natural line; no comments, no blanks."""
    held, first = "", 0
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, natural in enumerate(lines, start=1):
        line = natural.lstrip(_BLANKS)
        if not first and (not line or line[0] in "#!"):
            continue
        first = first or number
        if _continues(line):
            held += line[:-1]
            continue
        yield first, held + line
        held, first = "", 0
    if first:
        yield first, held


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """The raw key and the raw value of a logical line."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str, name: str, line: int) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\" or at + 1 == len(text):
            parts.append(text[at] if text[at] != "\\" else "")
            at += 1
        elif text[at + 1] == "u":
            parts.append(_unicode(text[at + 2 : at + 6], name, line))
            at += 6
        else:
            parts.append(_ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2
    return "".join(parts)


def _unicode(digits: str, name: str, line: int) -> str:
    try:
        if len(digits) != 4:
            raise ValueError
        return chr(int(digits, 16))
    except ValueError:
        raise BadInputError(
            f"{name}, line {line}: \\u must be followed by four hexadecimal digits",
            next_step="write a backslash in a value as two backslashes",
        ) from None


class PropertyReader:
    """Properties by meaning, with errors that name the file and the line."""

    def __init__(self, properties: Mapping[str, Property], *, origin: str | None) -> None:
        self._properties = properties
        self.origin = origin

    def has(self, key: str) -> bool:
        """Whether the key is set at all, be it to nothing."""
        return key in self._properties

    def text(self, key: str) -> str | None:
        """The value without blanks around it; None where it is missing or empty."""
        held = self._properties.get(key)
        return (held.value.strip() or None) if held is not None else None

    def secret(self, key: str) -> str | None:
        """The value exactly as written: a password may begin or end with a blank."""
        held = self._properties.get(key)
        return (held.value or None) if held is not None else None

    def one_of(self, key: str, allowed: tuple[str, ...], *, default: str) -> str:
        """The value in capital letters. Raises BadInputError where it, or the default for it, is not allowed."""
        value = (self.text(key) or default).upper()
        if value not in allowed:
            given = f"{key}={value}" if self.text(key) else f"{key} is not set, which means {default}; that"
            raise self.error(key, f"{given} is not among what kelr can do", next_step=f"use {', '.join(allowed)}")
        return value

    def path(self, key: str) -> Path | None:
        """A file that exists. Raises BadInputError where it does not."""
        value = self.text(key)
        if value is None:
            return None
        path = Path(value).expanduser()
        if not path.is_file():
            raise self.error(key, f"{key} names {value}, which is not a file", next_step="check the path")
        return path

    def error(self, key: str, message: str, *, next_step: str) -> BadInputError:
        """An error about this key; the message must hold no secret."""
        return BadInputError(f"{self.where(key)}{message}", next_step=next_step)

    def where(self, key: str) -> str:
        held = self._properties.get(key)
        if held is None or not held.line or self.origin is None:
            return f"{self.origin}: " if self.origin is not None and held is None else ""
        return f"{self.origin}, line {held.line}: "


# Variables in client properties, such as ``${env:NAME}`` and ``${file:/path:key}``, as Kafka's clients resolve them.
#
# Sources: AbstractConfig.resolveConfigVariables, ConfigTransformer, and the three providers that Kafka ships
# (EnvVarConfigProvider, FileConfigProvider, DirectoryConfigProvider). `config.providers` lists names; each is a
# provider where `config.providers.NAME.class` says of which class, with `config.providers.NAME.param.*` as its
# parameters. What Kafka would pass on as it stands, a variable that nobody resolves, is refused here: it is no
# password.


PROVIDERS_KEY = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."
_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
"""ConfigTransformer.DEFAULT_PATTERN: ``${provider:[path:]key}``."""
_USUAL_NAMES = frozenset({"env", "file", "dir", "directory"})
_MAX_BYTES = 4 * 1024 * 1024

Lookup = Callable[[str, str], str | None]
"""A provider: what a path and a key stand for; None where it has no such key."""


def resolved(
    properties: Mapping[str, Property],
    *,
    origin: str | None,
    environ: Mapping[str, str] | None = None,
    literal: Collection[str] = (),
) -> Mapping[str, Property]:
    """The properties with all variables replaced, and without those that only set up the providers.

    Args:
        literal: keys whose values are secrets that were fetched already: what reads as a variable is part of them.

    Raises:
        BadInputError: a variable has no provider, or its provider has no such key; names file and line, never a value.
    """
    if not any("${" in held.value or key.startswith(PROVIDERS_KEY) for key, held in properties.items()):
        return properties
    variables = _Variables(PropertyReader(properties, origin=origin), os.environ if environ is None else environ)
    found = {}
    for key, held in properties.items():
        if key == PROVIDERS_KEY or key.startswith(f"{PROVIDERS_KEY}."):
            continue
        if key in literal:
            found[key] = held
            continue
        text = _VARIABLE.sub(lambda match, key=key: variables.value(key, match), held.value)  # type: ignore[misc]
        found[key] = Property(text, held.line)
    return found


class _Variables:
    """The providers that the properties set up, each made when a variable first names it."""

    def __init__(self, reader: PropertyReader, environ: Mapping[str, str]) -> None:
        self._reader = reader
        self._environ = environ
        # Not trimmed, as Kafka 4.3.1 does not: "env, file" has no provider called file.
        self._names = set((reader.text(PROVIDERS_KEY) or "").split(",")) - {""}
        self._made: dict[str, Lookup] = {}

    def value(self, key: str, match: re.Match[str]) -> str:
        """What the variable in the value of `key` stands for."""
        name, path, wanted = match[1], match[2] or "", match[3]
        if name not in self._names:
            if name not in _USUAL_NAMES:
                return match[0]  # as Kafka has it: not a variable at all
            # To Kafka it is mere text, and so may be part of a password: what stands behind the name is not told.
            raise self._reader.error(
                key,
                f"{key} holds a ${{{name}:...}}, and {PROVIDERS_KEY} names no provider {name!r}",
                next_step=f"add {PROVIDERS_KEY}={name} and {PROVIDERS_KEY}.{name}.class={_PACKAGE}{_class_for(name)}",
            )
        if name not in self._made:
            self._made[name] = self._provider(name)
        found = self._made[name](path, wanted)
        if found is None:
            raise self._reader.error(
                key,
                f"{key} holds {match[0]}, and the provider {name!r} has no such value",
                next_step="check the variable, the file and the key that it names",
            )
        return found

    def _provider(self, name: str) -> Lookup:
        class_key = f"{PROVIDERS_KEY}.{name}.class"
        kind = self._reader.text(class_key)
        if kind is None:
            raise self._reader.error(
                PROVIDERS_KEY,
                f"{PROVIDERS_KEY} names {name!r}, and {class_key} is missing",
                next_step=f"add {class_key}={_PACKAGE}{_class_for(name)}",
            )
        makers = {
            "EnvVarConfigProvider": self._environment,
            "FileConfigProvider": self._file,
            "DirectoryConfigProvider": self._directory,
        }
        maker = makers.get(kind.removeprefix(_PACKAGE))
        if maker is None or not kind.startswith(_PACKAGE):
            raise self._reader.error(
                class_key,
                f"{class_key} is {kind}, which only Java can load",
                next_step=f"use {', '.join(makers)} of {_PACKAGE.rstrip('.')}, or put the value in the file",
            )
        return maker(name)

    def _environment(self, name: str) -> Lookup:
        param = f"{PROVIDERS_KEY}.{name}.param.allowlist.pattern"
        try:
            allowed = re.compile(self._reader.text(param) or ".*")
        except re.error as error:
            raise self._reader.error(
                param, f"{param} is no regular expression: {error}", next_step="write one that Java and Python share"
            ) from error

        def look(path: str, key: str) -> str | None:
            if path:
                raise self._reader.error(
                    PROVIDERS_KEY,
                    f"${{{name}:{path}:{key}}} has a path, and environment variables have none",
                    next_step=f"write ${{{name}:{key}}}",
                )
            return self._environ.get(key) if allowed.fullmatch(key) else None

        return look

    def _file(self, name: str) -> Lookup:
        def look(path: str, key: str) -> str | None:
            if not path:
                return None
            held = read_properties(self._allowed(name, path)).get(key)
            return None if held is None else held.value

        return look

    def _directory(self, name: str) -> Lookup:
        def look(path: str, key: str) -> str | None:
            place = self._allowed(name, path) / key if path else None
            if place is None or os.sep in key or not place.is_file():
                return None
            try:
                if place.stat().st_size > _MAX_BYTES:
                    raise BadInputError(f"{place} is larger than {_MAX_BYTES} bytes", next_step="name another file")
                return place.read_bytes().decode()  # whole, its last line end included
            except (OSError, UnicodeDecodeError) as error:
                why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
                # Not chained: one of these errors holds the bytes.
                raise BadInputError(f"cannot read {place}: {why}", next_step="check that file") from None

        return look

    def _allowed(self, name: str, path: str) -> Path:
        """The path, where `allowed.paths` lets the provider go there."""
        param = f"{PROVIDERS_KEY}.{name}.param.allowed.paths"
        allowed = self._reader.text(param)
        if allowed is None:
            return Path(path)
        place = Path(os.path.normpath(path))
        if not any(place.is_relative_to(os.path.normpath(one)) for one in allowed.split(",")):
            raise self._reader.error(
                param,
                f"the provider {name!r} may not read {path}",
                next_step=f"add it to {param}, or name another file",
            )
        return place


def _class_for(name: str) -> str:
    return {"env": "EnvVarConfigProvider", "file": "FileConfigProvider"}.get(name, "DirectoryConfigProvider")
