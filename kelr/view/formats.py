"""The names of the output formats; apart from the rest so that the command line can be read without it."""

from __future__ import annotations

from enum import StrEnum


class OutputFormat(StrEnum):
    """What ``--output`` takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    NDJSON = "ndjson"
    YAML = "yaml"
    CSV = "csv"

    @property
    def for_people(self) -> bool:
        return self in (OutputFormat.TABLE, OutputFormat.WIDE)

    @property
    def is_document(self) -> bool:
        """Whether head and tail (cluster id, errors, next command) are part of what is written to stdout."""
        return self in (OutputFormat.JSON, OutputFormat.YAML)
