"""What may hang in spite of its own timeouts is done in a thread, and waited for no longer than was said.

A thread that is left behind keeps no process from ending.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Apart(Generic[T]):
    """Something that is being done in a thread of its own.

    Args:
        do: what.
    """

    def __init__(self, do: Callable[[], T]) -> None:
        self._do = do
        self._ended: queue.SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="kelr-apart", daemon=True).start()

    def result(self, timeout_s: float) -> T:
        """What it came to; to be asked once.

        Raises:
            TimeoutError: it has not ended within this time.
            BaseException: whatever it raised.
        """
        try:
            found, error = self._ended.get(timeout=max(0.0, timeout_s))
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
