"""Reads what completion remembers of a cluster, in a process of its own that the shell does not wait for.

It asks nobody anything: it has no terminal, and it starts no program. A context whose secret comes from a command
therefore gets nothing completed: such a command may open a password store, and nobody who presses Tab expects that.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kelr.commands.complete_cache import Cache
from kelr.commands.settings import Settings

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
