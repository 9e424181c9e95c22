"""What every folder does, wherever it is: of a lake, of inputs, of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Listed:
    """A file."""

    path: str
    """As Spark takes it."""
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    """Relative to the table, as the file system has it."""
    size_bytes: int = field(compare=False)
    modified_ms: int = field(compare=False)
    values: Mapping[str, str | None] = field(compare=False)
    """Of the partition columns, as text."""


class Files(Protocol):
    """A folder and everything below it. Paths are relative to it, with ``/``.

    Whatever is done there raises, where the file system does not do it: BadInputError, NotAuthorizedError (it is
    denied), or ConnectError (it does not answer, or does not take the credentials).
    """

    @property
    def place(self) -> str:
        """The folder as Spark takes it."""

    def exists(self) -> bool:
        """Whether there is such a folder, or file."""

    def list(self, below: str = "") -> Iterator[Listed]:
        """All files below a folder, sorted; none where there is no such folder. Hidden ones (``_x``, ``.x``) are among
        them."""

    def read(self, path: str) -> bytes:
        """A small file. Raises FileNotFoundError."""

    def write(self, path: str, content: bytes) -> None:
        """A file that appears whole, in place of the one that is there."""

    def delete(self, path: str) -> None:
        """Delete a file; it is well if there is none."""

    def delete_below(self, folder: str) -> None:
        """Delete a folder with all that is in it; it is well if there is none."""


def relative(place: str, path: str) -> str:
    """A path that a listing of a folder gave, relative to it.

    Raises:
        ValueError: it is not below it.
    """
    root = place.rstrip("/") + "/"
    if not path.startswith(root):
        raise ValueError(f"{path} is not below {place}")
    return path[len(root) :]
