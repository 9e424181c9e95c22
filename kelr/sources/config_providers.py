"""Variables in client properties, such as ``${env:NAME}`` and ``${file:/path:key}``, as Kafka's clients resolve them.

Sources: AbstractConfig.resolveConfigVariables, ConfigTransformer, and the three providers that Kafka ships
(EnvVarConfigProvider, FileConfigProvider, DirectoryConfigProvider). `config.providers` lists names; each is a provider
where `config.providers.NAME.class` says of which class, with `config.providers.NAME.param.*` as its parameters. What
Kafka would pass on as it stands, a variable that nobody resolves, is refused here: it is no password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from kelr.errors import BadInputError
from kelr.sources.properties import Property, PropertyReader, read_properties

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
