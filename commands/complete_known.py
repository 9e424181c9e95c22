"""What completion knows of the cluster that a line names: what is remembered, or what can be read in no time."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from kelr.commands.complete_cache import FRESH_S, STALE_S, Cache, Known, cache_directory
from kelr.commands.settings import Settings

WAIT_S = 0.13
"""How long a reading that was just begun is waited for; with what Python takes to start, less than 0.3 s."""
_POLL_S = 0.004
_VARIABLES = ("KELR_BOOTSTRAP_SERVER", "KELR_COMMAND_CONFIG", "KELR_CONTEXT", "KELR_CONFIG_DIR")
_SECRET = re.compile(r"passw|secret|jaas|token|key", re.IGNORECASE)


def known_of(given: Settings, environ: Mapping[str, str]) -> Known | None:
    """What is remembered of the cluster that the line names, or can be learnt in no time; None: nothing."""
    if _a_log_answers(given):
        return None
    cache = Cache(cache_directory(environ), _named(given, environ))
    known = cache.read()
    if known is not None and known.age_s < FRESH_S:
        return known
    newer = None if cache.failed_lately() else _read_now(cache, given, environ)
    return newer or (known if known is not None and known.age_s < STALE_S else None)


def _read_now(cache: Cache, given: Settings, environ: Mapping[str, str]) -> Known | None:
    until = time.monotonic() + WAIT_S
    if not hasattr(os, "fork") or not _names_something(given, environ):
        return None
    lock = cache.lock()
    child = 0
    if lock is not None:
        known = _fresh(cache)  # whoever had the lock may have come to an end since that was looked up
        if known is not None:
            os.close(lock)
            return known
        from kelr.commands.complete_reading import read_apart  # noqa: PLC0415 - only where something has to be read

        child = read_apart(cache, lock, given, environ)
    while time.monotonic() < until:
        known = _fresh(cache)
        if known is not None:
            return known
        if child and os.waitpid(child, os.WNOHANG)[0]:
            return _fresh(cache)
        time.sleep(_POLL_S)
    return None


def _fresh(cache: Cache) -> Known | None:
    known = cache.read()
    return known if known is not None and known.age_s < FRESH_S else None


def _names_something(given: Settings, environ: Mapping[str, str]) -> bool:
    """Whether the line, a variable or the current context says whom to ask."""
    variables = (environ.get(name) for name in ("KELR_BOOTSTRAP_SERVER", "KELR_COMMAND_CONFIG", "KELR_CONTEXT"))
    named = (given.bootstrap_server, given.command_config, given.context, given.snapshot)
    return any(named) or any(variables) or isinstance(_document(environ).get("current"), str)


def _a_log_answers(given: Settings) -> bool:
    """Whether the command asks a metadata log and no brokers (`kelr.commands.settings`): those of the environment, or
    of the current context, may be another cluster's."""
    if given.bootstrap_server or given.context or given.snapshot:
        return False
    return bool((given.metadata_log and not given.command_config) or given.bootstrap_controller)


def _named(given: Settings, environ: Mapping[str, str]) -> list[object]:
    """Everything that says which cluster is meant, without secrets: their values are of no matter for that."""
    from kelr.config.contexts_file import contexts_path  # noqa: PLC0415 - not for other kinds

    properties = [
        (key, "" if _SECRET.search(key) else value)
        for key, _, value in (text.partition("=") for text in given.command_property or ())
    ]
    files = [given.command_config, given.snapshot, environ.get("KELR_COMMAND_CONFIG")]
    return [
        *(given.bootstrap_server, given.context, given.bootstrap_controller),
        sorted(properties),
        [environ.get(name) for name in _VARIABLES],
        [_state_of(path) for path in (*files, contexts_path(environ))],
    ]


def _state_of(path: Path | str | None) -> list[object]:
    """Where a file is, and a sign that it is another one than before."""
    if not path:
        return []
    whole = os.path.abspath(os.path.expanduser(path))
    try:
        status = os.stat(whole)
    except OSError:
        return [whole]
    return [whole, status.st_mtime_ns, status.st_size]


def _document(environ: Mapping[str, str]) -> Mapping[str, object]:
    import tomllib  # noqa: PLC0415 - only where contexts are read

    from kelr.config.contexts_file import contexts_path  # noqa: PLC0415

    try:
        with open(contexts_path(environ), "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return {}


def context_tables(environ: Mapping[str, str]) -> dict[str, Mapping[str, object]]:
    """The contexts by name, as the file has them; none where it cannot be read."""
    contexts = _document(environ).get("contexts")
    if not isinstance(contexts, dict):
        return {}
    return {name: values for name, values in contexts.items() if isinstance(values, dict)}
