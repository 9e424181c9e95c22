"""Where the named clusters are: ``contexts.toml``; see `kelr.config`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kelr.config.place import contexts_path


def contexts_file(environ: Mapping[str, str]) -> Path:
    """Where the contexts are looked for."""
    return contexts_path(environ)
