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
            for own in self._directories_of(node):
                shutil.copytree(own, self._directory / str(node) / own.name)

    def disk(self, node: int) -> Path:
        """The copy of a node's disk, which only a round itself may change."""
        return self._directory / str(node) / self._lab.data_directory(node).name

    def thaw(self) -> None:
        """Halt the lab, put every disk back as it was, and start the controller; no broker runs then."""
        self._lab.halt()
        for node in (CONTROLLER_ID, *self._lab.brokers):
            for copy in (self._directory / str(node)).iterdir():
                own = self._lab.data_directory(node).with_name(copy.name)
                shutil.rmtree(own)
                shutil.copytree(copy, own)
        self._lab.start_controller()

    def _directories_of(self, node: int) -> list[Path]:
        """All of a node's log directories."""
        return [file.parent for file in self._lab.data_directory(node).parent.glob("*/meta.properties")]
