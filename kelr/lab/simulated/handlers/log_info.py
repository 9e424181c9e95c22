"""GetReplicaLogInfo, in the dialect and under the API key that the cluster was made with."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.lab.simulated.api import Api
from kelr.lab.simulated.spec import SimulatedSpec


def apis(_spec: SimulatedSpec) -> Sequence[Api]:
    """Its one entry; none where brokers do not speak it."""
    return ()
