"""ElectLeaders, versions 0 to 3."""

from __future__ import annotations

from kelr.lab.simulated.api import Api

APIS: tuple[Api, ...] = ()
