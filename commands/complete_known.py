"""What completion knows of the cluster that a line names: what is remembered, or what can be read in no time."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

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
        # An empty value names nothing, as everywhere.
        *(one or None for one in (given.bootstrap_server, given.context, given.bootstrap_controller)),
        sorted(properties),
        [environ.get(name) or None for name in _VARIABLES],
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


READING_S = 8.0
"""How long the cluster has for each answer."""
_ALARM_S = 15
"""When the reading is over, whatever it waits for."""
_OPEN_FILES = 64
_STARTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"}
)
"""Python's audit events of a program that is started."""


def read_apart(cache: Cache, lock: int, given: Settings, environ: Mapping[str, str]) -> int:
    """Start to read the cluster into the cache, and return the id of the process that does."""
    child = os.fork()
    if child:
        os.close(lock)
        return child
    try:
        signal.alarm(_ALARM_S)
        _leave_the_terminal(lock)
        try:
            sys.addaudithook(_start_no_program)
            brokers, topics = _read(given, environ)
            cache.write(topics, brokers)
        except BaseException:
            cache.remember_failure()
    finally:
        os._exit(0)


def _start_no_program(event: str, _: object) -> None:
    """For good, whoever would start one: secrets of contexts, or a library."""
    if event in _STARTS:
        raise PermissionError(f"no program is started to complete a line ({event})")


def _leave_the_terminal(lock: int) -> None:
    """The shell waits until nobody has its pipe any more, and a client library may ask a terminal for a pass phrase."""
    with contextlib.suppress(OSError):
        os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    for descriptor in range(3, _OPEN_FILES):
        if descriptor != lock:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _read(given: Settings, environ: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[tuple[str, int]]]:
    from kelr.commands.session import open_source, resolve  # noqa: PLC0415 - not for what is remembered
    from kelr.model import select  # noqa: PLC0415

    # Topics and brokers are the cluster's: no metadata log beside it is read for them.
    given = replace(given, timeout_s=READING_S, metadata_log=None, bootstrap_controller=None, at=None, verbose=False)
    counts: dict[str, int] = {}
    with open_source(resolve(given, environ=environ)) as source:
        brokers = [
            {
                "id": broker.id,
                "status": str(broker.status),
                "rack": broker.rack,
                "address": f"{broker.host}:{broker.port}" if broker.host else None,
            }
            for broker in source.cluster().brokers
        ]
        for page in source.pages(select([])):
            for state in page.partitions:
                counts[state.topic] = max(counts.get(state.topic, 0), state.partition + 1)
    return brokers, list(counts.items())
