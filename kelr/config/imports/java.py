"""A Java client properties file becomes a context that refers to it: the file stays the one place of its secrets."""

from __future__ import annotations

from pathlib import Path

from kelr.config.imports.found import Found, FoundContext
from kelr.errors import KelrError
from kelr.sources.connection import ConnectionSettings
from kelr.sources.properties import read_properties

_SOME_SERVER = "127.0.0.1:9092"
"""Where a file names none: nobody connects to it, only the other properties are looked at."""


def read_java(path: Path) -> Found:
    """The context of a properties file, called as the file is.

    Raises:
        BadInputError: it cannot be read; names file and line.
    """
    has_servers = bool(read_properties(path).get("bootstrap.servers"))
    left_out = [] if has_servers else ["bootstrap.servers: the file names none: give --bootstrap-server to the import"]
    try:
        settings = ConnectionSettings.read(None if has_servers else _SOME_SERVER, command_config=path)
    except KelrError as error:
        left_out.append(f"kelr cannot log in with it yet: {error.message}")
    else:
        left_out += [f"{key}: not used by kelr" for key in settings.ignored]
    values = {"command_config": str(path.absolute())}
    return Found("java", (FoundContext(path.stem, values, tuple(left_out)),))
