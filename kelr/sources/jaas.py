"""The user name and password in `sasl.jaas.config`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kelr.sources.properties import PropertyReader

_KEY = "sasl.jaas.config"
_MODULES = {"PLAIN": "PlainLoginModule", "SCRAM-SHA-256": "ScramLoginModule", "SCRAM-SHA-512": "ScramLoginModule"}
_OPTION = re.compile(
    r"""(?P<name>[A-Za-z0-9_.]+)\s*=\s*(?:"(?P<double>(?:\\.|[^"\\])*)"|'(?P<single>[^']*)'|(?P<bare>[^\s;"']+))"""
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and its password; the password is in no repr."""

    username: str
    password: str = field(repr=False)


def credentials(reader: PropertyReader, mechanism: str) -> Credentials:
    """What `sasl.jaas.config` holds for this mechanism.

    Raises:
        BadInputError: it is missing, is for another login module, or lacks one of the two; never quotes the value.
    """
    text = reader.secret(_KEY)
    module = _MODULES[mechanism]
    example = f'{_KEY}=org.apache.kafka.common.security...{module} required username="..." password="...";'
    if text is None:
        raise reader.error(_KEY, f"{_KEY} is missing, and {mechanism} needs it", next_step=f"write {example}")
    name = text.split(maxsplit=1)[0].rsplit(".", 1)[-1]
    if name != module:
        raise reader.error(_KEY, f"{_KEY} is not for {module}, which {mechanism} uses", next_step=f"write {example}")
    options = {match["name"]: _value(match) for match in _OPTION.finditer(text)}
    missing = [key for key in ("username", "password") if not options.get(key)]
    if missing:
        raise reader.error(_KEY, f"{_KEY} has no {' and no '.join(missing)}", next_step=f"write {example}")
    return Credentials(options["username"], options["password"])


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", r"\1", match["double"])
    return match["single"] if match["single"] is not None else match["bare"]
