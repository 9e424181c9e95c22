"""End a lab when its owner is gone: ``python -m kelr.lab.watch DIRECTORY OWNER_PID OWNER_START LAB_PROPERTY``.

A lab that a test run or a demo started must not outlive it, however that ends; a killed owner cannot clean up, so a
small process of its own waits for the owner's end. `Lab.down` ends this process like any other of the lab.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from kelr.errors import LabError
from kelr.lab import processes
from kelr.lab.state import ProcessRecord, lab_id_of
from kelr.lab.teardown import down

LOOK_EVERY_S = 0.5


def spawn_watch(directory: Path, lab_id: str, owner_pid: int) -> None:
    """Start the watch over a lab's owner.

    Raises:
        LabError: there is no such process.
    """
    started = processes.start_time(owner_pid)
    if started is None:
        raise LabError(f"no process {owner_pid} that could own the lab")
    arguments = (str(directory), str(owner_pid), repr(started), processes.lab_property(lab_id))
    processes.spawn((sys.executable, "-m", "kelr.lab.watch", *arguments), Path(os.devnull))


def main(directory: str, owner_pid: str, owner_started: str, lab_property: str) -> None:
    """Wait for the owner's end, then end the lab with this id, if it is there still."""
    owner = ProcessRecord(int(owner_pid), float(owner_started))
    while processes.runs(owner):
        time.sleep(LOOK_EVERY_S)
    with suppress(LabError):
        if processes.lab_property(lab_id_of(Path(directory))) == lab_property:
            down(Path(directory))


if __name__ == "__main__":
    main(*sys.argv[1:])
