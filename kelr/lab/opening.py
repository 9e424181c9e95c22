"""The lab in a directory, whatever its kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kelr.errors import LabError
from kelr.lab.cluster import Lab
from kelr.lab.state import is_simulated

if TYPE_CHECKING:
    from kelr.lab.simulated.lab import SimulatedLab


def open_lab(directory: Path) -> Lab | SimulatedLab:
    """The lab that runs in this directory.

    Raises:
        LabError: there is none.
    """
    return _simulated(directory) if is_simulated(directory.absolute()) else Lab.open(directory)


def open_simulated(directory: Path, what: str) -> SimulatedLab:
    """The simulated lab that runs in this directory.

    Args:
        what: what is wanted of it, for the error, such as ``fault``.

    Raises:
        LabError: there is none, or the lab is a real one, which cannot do that.
    """
    if not is_simulated(directory.absolute()):
        raise LabError(
            f"{what} is for simulated labs, and the lab in {directory} runs real Kafka",
            next_step="start a simulated one beside it with 'kelr lab up --simulated --dir DIR'",
            code="not-simulated",
        )
    return _simulated(directory)


def _simulated(directory: Path) -> SimulatedLab:
    from kelr.lab.simulated.lab import SimulatedLab  # noqa: PLC0415 - a real lab does without

    return SimulatedLab.open(directory)
