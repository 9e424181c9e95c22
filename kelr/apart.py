"""What may hang in spite of its own timeouts is done in a thread, and waited for no longer than was said.

A thread that is left behind keeps no process from ending.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Arrivals(Generic[T]):
    """What other threads bring, for the one that waits for it.

    `queue.SimpleQueue.get` with a timeout waits for ever in CPython 3.11 where its thread is held up for longer than
    the time that it has: what is left is negative then, and taken for no limit. A lock's acquire looks at that.
    """

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[T] = queue.SimpleQueue()
        self._arrived = threading.Lock()
        self._arrived.acquire()

    def put(self, item: T) -> None:
        """Bring it."""
        self._items.put(item)
        with suppress(RuntimeError):  # it is told already that something is there
            self._arrived.release()

    def get(self, timeout_s: float = 0.0) -> T:
        """The next one. Raises queue.Empty where none comes within this time."""
        ends_s = time.monotonic() + timeout_s
        while True:
            try:
                return self._items.get_nowait()
            except queue.Empty:
                left_s = ends_s - time.monotonic()
                if left_s <= 0:
                    raise
            self._arrived.acquire(timeout=left_s)


class Apart(Generic[T]):
    """Something that is being done in a thread of its own.

    Args:
        do: what.
    """

    def __init__(self, do: Callable[[], T]) -> None:
        self._do = do
        self._ended: Arrivals[tuple[T, None] | tuple[None, BaseException]] = Arrivals()
        threading.Thread(target=self._run, name="kelr-apart", daemon=True).start()

    def result(self, timeout_s: float) -> T:
        """What it came to; to be asked once.

        Raises:
            TimeoutError: it has not ended within this time.
            BaseException: whatever it raised.
        """
        try:
            found, error = self._ended.get(timeout_s)
        except queue.Empty:
            raise TimeoutError from None
        if error is not None:
            raise error
        return found  # type: ignore[return-value]  # there is one where there is no error

    def _run(self) -> None:
        try:
            self._ended.put((self._do(), None))
        except BaseException as error:
            self._ended.put((None, error))


def within(timeout_s: float, do: Callable[[], T]) -> T:
    """Do it, and wait for it so long. Raises as `Apart.result`."""
    return Apart(do).result(timeout_s)
