"""``kelr metrics export``: a watcher and a server, until somebody ends them."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from kelr.commands.session import Session
from kelr.errors import ConnectError, UsageError
from kelr.metrics.access import Access
from kelr.metrics.asked import Endpoint
from kelr.metrics.exporter import serve
from kelr.metrics.watching import Watcher, recoveries_finished
from kelr.model.numbers import whole_number
from kelr.sources.base import Source

_STEP_S = 0.2
"""A signal that comes the moment before a wait does not wake it."""


def run_exporter(
    session: Session, *, listen: str, interval_s: float, most: int, endpoints: Sequence[Endpoint], access: Access
) -> None:
    """Look and serve until SIGTERM.

    Raises:
        UsageError: the address is none, or nothing says which cluster to watch.
        BadInputError, RefusedError: the cluster's settings are wrong. One that is only not reached is waited for.
    """
    host, port = listen_address(listen)
    if session.settings.saved is not None:
        raise UsageError(
            f"{session.settings.saved}, and nothing in it will change",
            next_step="give --bootstrap-server HOST:PORT",
            code="saved-does-not-change",
        )
    output = session.output
    try:
        session.source()
    except ConnectError as error:
        output.note(f"the cluster is not reached yet: {error.message}")

    @contextmanager
    def opened() -> Iterator[Source]:
        # A session of its own for each attempt: the thread's connections are nobody else's.
        with Session(session.settings, output=output) as one:
            yield one.source()

    watcher = Watcher(
        opened,
        interval_s=interval_s,
        most=most,
        recoveries_finished=lambda: recoveries_finished(endpoints, access),
        told=output.note,
    )
    exporter = serve(host, port, lambda: watcher.board, told=output.note)
    try:
        with _until_terminated() as ended:
            shown = f"[{host}]" if ":" in host else host
            output.note(f"serving http://{shown}:{exporter.port}/metrics, looking every {interval_s:g} s")
            watcher.start()
            while not ended:
                time.sleep(_STEP_S)
    finally:
        exporter.close()
        watcher.stop()


def listen_address(text: str) -> tuple[str, int]:
    """Host and port; ``[::1]:9966`` is an IPv6 address, ``:9966`` is every IPv4 one.

    Raises:
        UsageError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or whole_number(port, 65_535) is None or (":" in bare and bare == host):
        raise UsageError(f"--listen {text} is no address", next_step="give something like 127.0.0.1:9966")
    return bare or "0.0.0.0", int(port)


@contextmanager
def _until_terminated() -> Iterator[list[int]]:
    """A list that SIGTERM puts something into; the handler from before is put back."""
    ended: list[int] = []  # an Event's lock may be held by what the signal interrupts

    def end(number: int, _frame: FrameType | None) -> None:
        ended.append(number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield ended
    finally:
        signal.signal(signal.SIGTERM, before)
