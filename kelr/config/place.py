"""Where kelr's own configuration lives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DIRECTORY_VARIABLE = "KELR_CONFIG_DIR"
FILE_NAME = "contexts.toml"


def config_directory(environ: Mapping[str, str]) -> Path:
    """``KELR_CONFIG_DIR``, else the platform's configuration directory for kelr."""
    directory = environ.get(DIRECTORY_VARIABLE)
    if directory:
        return Path(directory)
    import platformdirs  # noqa: PLC0415 - only where contexts are used

    return Path(platformdirs.user_config_dir("kelr", appauthor=False))


def contexts_path(environ: Mapping[str, str]) -> Path:
    """The file that names clusters."""
    return config_directory(environ) / FILE_NAME
