"""What other threads bring is waited for so long, and no longer."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading

import pytest

from kelr.apart import Arrivals

HELD_UP = """
import queue
from kelr.apart import Arrivals
for _ in range(300_000):
    try:
        Arrivals().get(1e-9)
    except queue.Empty:
        pass
"""


def test_a_wait_whose_time_is_over_before_it_begins_ends() -> None:
    """SimpleQueue.get(timeout=1e-9) waited for ever once in some hundred thousand times (CPython 3.11)."""
    subprocess.run([sys.executable, "-c", HELD_UP], check=True, timeout=120)


def test_what_is_brought_comes_in_its_order_and_then_nothing() -> None:
    arrivals: Arrivals[int] = Arrivals()
    threads = [threading.Thread(target=arrivals.put, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    assert {arrivals.get(30) for _ in threads} == {0, 1, 2}
    for timeout_s in (0.0, -1.0, 0.01):
        with pytest.raises(queue.Empty):
            arrivals.get(timeout_s)
    arrivals.put(3)
    arrivals.put(4)
    assert [arrivals.get(), arrivals.get()] == [3, 4]
