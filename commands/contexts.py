"""Named clusters: ``contexts.toml`` in the user's configuration directory.

    [contexts.prod]
    bootstrap_server = "kafka-1:9092,kafka-2:9092"
    bootstrap_controller = "controller-1:9093"  # from which the metadata log is read
    command_config = "prod.properties"        # relative to this file
    cluster_id = "4L6g3nShT-eMCtK--X86sw"     # kelr refuses another cluster
    log_info_api_key = 70                     # brokers that speak GetReplicaLogInfo; no release does
    log_info_dialect = "kip"

KELR_CONFIG_DIR names another directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kelr.errors import BadInputError, UsageError

FILE_NAME = "contexts.toml"
_KEYS = (
    "bootstrap_server",
    "bootstrap_controller",
    "command_config",
    "cluster_id",
    "log_info_api_key",
    "log_info_dialect",
)
_NUMBERS = frozenset({"log_info_api_key"})


@dataclass(frozen=True, slots=True)
class Context:
    """A cluster as the user named it; None where the file does not say."""

    name: str | None = None
    bootstrap_server: str | None = None
    bootstrap_controller: str | None = None
    command_config: Path | None = None
    cluster_id: str | None = None
    log_info_api_key: int | None = None
    log_info_dialect: str | None = None


NO_CONTEXT = Context()


def contexts_file(environ: Mapping[str, str]) -> Path:
    """Where the contexts are looked for."""
    directory = environ.get("KELR_CONFIG_DIR")
    if directory:
        return Path(directory) / FILE_NAME
    import platformdirs  # noqa: PLC0415 - only where contexts are used

    return Path(platformdirs.user_config_dir("kelr", appauthor=False)) / FILE_NAME


def read_context(name: str, environ: Mapping[str, str]) -> Context:
    """The context of that name.

    Raises:
        UsageError: there is no such context.
        BadInputError: the file is no TOML, or holds something else than contexts.
    """
    path = contexts_file(environ)
    contexts = _read(path)
    if name not in contexts:
        known = f"it has {', '.join(sorted(contexts))}" if contexts else "it has none"
        raise UsageError(f"no context {name!r} in {path} ({known})", next_step=f"add [contexts.{name}] to that file")
    return _context(name, contexts[name], path)


def _read(path: Path) -> Mapping[str, Any]:
    import tomllib  # noqa: PLC0415 - only where contexts are used

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"there is no file {path}, so there are no contexts",
            next_step="give --bootstrap-server, or write that file (see docs/cli.md)",
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInputError(f"{path} cannot be read: {error}", next_step="correct that file") from error
    contexts = document.get("contexts", {})
    if not isinstance(contexts, dict) or not all(isinstance(value, dict) for value in contexts.values()):
        raise BadInputError(f"{path}: contexts are tables such as [contexts.prod]", next_step="correct that file")
    return contexts


def _context(name: str, values: Mapping[str, Any], path: Path) -> Context:
    unknown = sorted(set(values) - set(_KEYS))
    if unknown:
        raise BadInputError(
            f"{path}: context {name!r} has {', '.join(unknown)}, which kelr does not know",
            next_step=f"use only {', '.join(_KEYS)}",
        )
    for key, value in values.items():
        if key in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int)):
            raise BadInputError(f"{path}: context {name!r}: {key} has to be a number", next_step="correct that file")
        if key not in _NUMBERS and (not isinstance(value, str) or not value):
            raise BadInputError(
                f"{path}: context {name!r}: {key} has to be text in quotes", next_step="correct that file"
            )
    config = values.get("command_config")
    return Context(
        name=name,
        bootstrap_server=values.get("bootstrap_server"),
        bootstrap_controller=values.get("bootstrap_controller"),
        command_config=path.parent / Path(config).expanduser() if config else None,
        cluster_id=values.get("cluster_id"),
        log_info_api_key=values.get("log_info_api_key"),
        log_info_dialect=values.get("log_info_dialect"),
    )
