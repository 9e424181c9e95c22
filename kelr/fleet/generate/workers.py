"""Several clusters at a time, each made by a process of its own.

A worker is this interpreter, started anew (see `kelr.sources.disk.processes`): it is told on its stdin which clusters
to make, and answers on its stdout.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kelr.errors import KelrError

if TYPE_CHECKING:
    from kelr.fleet.generate.plan import ClusterPlan
    from kelr.fleet.generate.truth import Truth

_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer);"
    " from kelr.fleet.generate.workers import work; work()"
)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(plans: Sequence[ClusterPlan], out: Path, workers: int) -> Iterator[Truth]:
    """Make clusters; their truths come in order.

    Raises:
        KelrError: a worker failed.
        OSError: files cannot be written.
    """
    pool = ThreadPoolExecutor(max_workers=min(workers, len(plans)))
    running = _Running({}, threading.Event())
    try:
        yield from pool.map(partial(_made, out=out, running=running), plans)
    finally:
        running.over.set()
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running.processes.values()):
            process.kill()


class _Running(NamedTuple):
    """The workers, which do not outlive whoever waits for them."""

    processes: dict[str, subprocess.Popen[bytes]]
    over: threading.Event


def _made(plan: ClusterPlan, out: Path, running: _Running) -> Truth:
    told = pickle.dumps(sys.path) + pickle.dumps((plan, out))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _START], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        running.processes[plan.name] = process
        if running.over.is_set():
            process.kill()
        said, complained = process.communicate(told)
        del running.processes[plan.name]
    if process.returncode:
        last = complained.decode(errors="replace").strip().rpartition("\n")[2]
        raise KelrError(f"the process that made {plan.name} failed: {last}", next_step="try it with --workers 1")
    answer = pickle.loads(said)
    if isinstance(answer, OSError):
        raise answer
    truth: Truth = answer
    return truth


def work() -> None:
    """Make the cluster that stdin names: what a worker does."""
    from kelr.fleet.generate.making import make_cluster  # noqa: PLC0415 - which imports this module

    plan, out = pickle.load(sys.stdin.buffer)
    answer: Truth | OSError
    try:
        answer = make_cluster(plan, out)
    except OSError as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))
