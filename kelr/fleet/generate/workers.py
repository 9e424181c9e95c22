"""Several clusters at a time, each made by a process of its own.

A worker is this interpreter, started anew (see `kelr.sources.disk.processes`): it is told on its stdin which clusters
to make, and answers on its stdout.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

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
    try:
        yield from pool.map(partial(_made, out=out), plans)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _made(plan: ClusterPlan, out: Path) -> Truth:
    told = pickle.dumps(sys.path) + pickle.dumps((plan, out))
    done = subprocess.run([sys.executable, "-c", _START], input=told, capture_output=True, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise KelrError(f"the process that made {plan.name} failed: {last}", next_step="try it with --workers 1")
    answer = pickle.loads(done.stdout)
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
