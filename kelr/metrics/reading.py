"""Asks many endpoints at once, some at a time, and comes back in time whatever they do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty, Queue
from typing import TYPE_CHECKING

from kelr.metrics.endpoints import Endpoint, Found, Kind, NotHeardError
from kelr.model.measured import AskedEndpoint

if TYPE_CHECKING:
    import ssl

    from kelr.metrics.endpoints import Access

AT_ONCE = 8
"""Endpoints that are asked at the same time."""
_MOST = 2.0**53
"""A count beyond that is none, and could not be told to the unit."""
_GRACE_S = 2.0
"""How long beyond its timeout a request may take to notice that, before it is left to itself."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One endpoint, what it said, and how that went."""

    endpoint: Endpoint
    asked: AskedEndpoint
    found: Found = field(default_factory=lambda: Found(()))
    next_step: str | None = None
    """What would make it usable, where it was not heard and that is known."""


def read_all(
    endpoints: Sequence[Endpoint], access: Access, *, timeout_s: float, at_once: int = AT_ONCE
) -> tuple[Heard, ...]:
    """Ask all endpoints; one that fails is a value among the others, in their order.

    A request that is held up in spite of all timeouts (headers that come a byte at a time) is left behind in its
    thread, which does not keep the process from ending.

    Raises:
        BadInputError: the files for TLS cannot be used.
    """
    tls = access.tls()
    waiting: Queue[tuple[int, Endpoint]] = Queue()
    done: Queue[tuple[int, Heard]] = Queue()
    for job in enumerate(endpoints):
        waiting.put(job)
    for _ in range(min(at_once, len(endpoints))):
        threading.Thread(
            target=_work, args=(waiting, done, access, tls, timeout_s), name="kelr-metrics", daemon=True
        ).start()
    heard: dict[int, Heard] = {}
    deadline = time.monotonic() + longest_s(len(endpoints), timeout_s, at_once=at_once)
    while len(heard) < len(endpoints):
        try:
            number, one = done.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        heard[number] = one
    late = NotHeardError(f"no answer within {timeout_s:g} s")
    return tuple(heard.get(number) or _failed(one, late, timeout_s) for number, one in enumerate(endpoints))


def longest_s(endpoints: int, timeout_s: float, *, at_once: int = AT_ONCE) -> float:
    """How long `read_all` may take, in seconds: those that wait for the cap of others need no more than those do."""
    return -(-endpoints // at_once) * (timeout_s + _GRACE_S)


def _work(
    waiting: Queue[tuple[int, Endpoint]],
    done: Queue[tuple[int, Heard]],
    access: Access,
    tls: ssl.SSLContext,
    timeout_s: float,
) -> None:
    while True:
        try:
            number, endpoint = waiting.get_nowait()
        except Empty:
            return
        done.put((number, _read(endpoint, access, tls, timeout_s)))


def _read(endpoint: Endpoint, access: Access, tls: ssl.SSLContext, timeout_s: float) -> Heard:
    began = time.monotonic()
    try:
        found = _counts(_reader(endpoint.kind)(endpoint, access, tls, timeout_s=timeout_s))
    except NotHeardError as error:
        told = NotHeardError(access.hidden(error.text), error.next_step)
        return _failed(endpoint, told, time.monotonic() - began)
    except Exception as error:  # a defect, in a thread that would swallow it: better a row than a hang
        defect = NotHeardError(f"its answer cannot be read ({type(error).__name__})")
        return _failed(endpoint, defect, time.monotonic() - began)
    took_s = time.monotonic() - began
    notes = tuple(map(access.hidden, found.notes))
    asked = AskedEndpoint(endpoint.shown, endpoint.kind, True, took_s, len(found.values), None, notes)
    return Heard(endpoint, asked, found)


def _counts(found: Found) -> Found:
    """What was found, without values that can be no counts."""
    kept = tuple(one for one in found.values if abs(one.value) <= _MOST and (one.increase or 0.0) <= _MOST)
    left_out = len(found.values) - len(kept)
    if not left_out:
        return found
    note = f"{left_out:,} of its values are too large for any count, and are left out"
    return replace(found, values=kept, notes=(*found.notes, note), partial=True)


def _reader(kind: Kind) -> Callable[..., Found]:
    if kind is Kind.SERVER:
        from kelr.metrics.prometheus_server import query_server  # noqa: PLC0415 - only what is asked for

        return query_server
    if kind is Kind.JOLOKIA:
        from kelr.metrics.process_endpoints import ask_jolokia  # noqa: PLC0415

        return ask_jolokia
    from kelr.metrics.process_endpoints import read_endpoint  # noqa: PLC0415

    return read_endpoint


def _failed(endpoint: Endpoint, error: NotHeardError, took_s: float) -> Heard:
    asked = AskedEndpoint(endpoint.shown, endpoint.kind, False, took_s, problem=error.text)
    return Heard(endpoint, asked, next_step=error.next_step)
