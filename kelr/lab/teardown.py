"""End a lab: its processes, and then its directory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.errors import LabError
from kelr.lab import processes
from kelr.lab.spec import CONTROLLER_ID, MOST_CONTROLLERS
from kelr.lab.state import STATE_FILE, lab_id_of

if TYPE_CHECKING:
    import psutil


def down(directory: Path, *, keep_data: bool = False, force: bool = False) -> None:
    """End the lab in a directory, whatever state it is in: up, starting, killed while starting, or half dead.

    Args:
        keep_data: leave the nodes' files where they are.
        force: also where lab.json is damaged; goes by the directory in the processes' command lines then.

    Raises:
        LabError: there is no lab, or its lab.json is damaged and `force` was not given.
    """
    processes.require_psutil()
    directory = directory.absolute()
    if force and (directory / STATE_FILE).exists():
        take_down(directory, lambda: processes.all_under(directory), keep_data=keep_data)
    else:
        lab_id = lab_id_of(directory)
        take_down(directory, lambda: processes.all_of(lab_id), keep_data=keep_data)


def take_down(directory: Path, find: Callable[[], list[psutil.Process]], *, keep_data: bool) -> None:
    """End the processes that `find` finds, and delete the directory unless `keep_data`."""
    # A broker's clean shutdown needs the controller, which therefore goes last. Data that will be deleted needs no
    # clean shutdown, only a short chance for one.
    ask_first_s = 30 if keep_data else 1
    running = find()
    ids = range(CONTROLLER_ID, CONTROLLER_ID + MOST_CONTROLLERS)
    controllers = [process for process in running if any(processes.is_node(process, node) for node in ids)]
    processes.end([process for process in running if process not in controllers], ask_first_s=ask_first_s)
    processes.end(controllers, ask_first_s=ask_first_s)
    try:
        _put_away(directory, keep_data=keep_data)
    except LabError:
        late = find()
        if not late:
            raise
        # A node that was being started meanwhile wrote into what was being deleted.
        processes.end(late, ask_first_s=0)
        _put_away(directory, keep_data=keep_data)
    # Whoever was starting a node meanwhile finds no lab.json any more; what it had started by then is ended here.
    processes.end(find(), ask_first_s=0)


def _put_away(directory: Path, *, keep_data: bool) -> None:
    with file_errors(directory):
        if keep_data:
            (directory / STATE_FILE).rename(directory / "ended-lab.json")
        elif directory.exists():
            # lab.json last: without it nobody could go on where this is cut short.
            for path in sorted(directory.iterdir(), key=lambda path: path.name == STATE_FILE):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            directory.rmdir()


@contextmanager
def file_errors(directory: Path) -> Iterator[None]:
    """A file that cannot be written or removed, as an error that names it."""
    try:
        yield
    except OSError as error:
        raise LabError(
            f"cannot use {error.filename or directory} for the lab ({error.strerror or error})",
            next_step="free some space or correct the rights there, or give another directory with --dir",
        ) from error
