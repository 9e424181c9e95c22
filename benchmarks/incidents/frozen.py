"""Every disk of a cluster at one moment, given back as often as wanted."""

from __future__ import annotations

import shutil
from pathlib import Path

from kelr.lab import Lab
from kelr.lab.spec import CONTROLLER_ID


class Frozen:
    """Copies of all nodes' data directories, taken while no node runs."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        """Halt the lab and copy its disks."""
        self._lab = lab
        self._directory = directory
        lab.halt()
        for node in (CONTROLLER_ID, *lab.brokers):
            shutil.copytree(lab.data_directory(node), self.disk(node))

    def disk(self, node: int) -> Path:
        """The copy of a node's disk; nobody writes to it."""
        return self._directory / str(node)

    def thaw(self) -> None:
        """Halt the lab, put every disk back as it was, and start the controller; no broker runs then."""
        self._lab.halt()
        for node in (CONTROLLER_ID, *self._lab.brokers):
            shutil.rmtree(self._lab.data_directory(node))
            shutil.copytree(self.disk(node), self._lab.data_directory(node))
        self._lab.start_controller()
