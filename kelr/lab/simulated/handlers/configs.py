"""DescribeConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

from kelr.lab.simulated.api import Api

APIS: tuple[Api, ...] = ()
