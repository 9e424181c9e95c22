"""One module for each kind of request; each has a table `APIS` of what it answers."""

from __future__ import annotations

from kelr.lab.simulated.api import Apis
from kelr.lab.simulated.handlers import (
    cluster,
    configs,
    elections,
    fetch,
    groups,
    log_info,
    produce,
    reassignments,
    topics,
    versions,
)
from kelr.lab.simulated.spec import SimulatedSpec


def apis_of(spec: SimulatedSpec) -> Apis:
    """Everything that the nodes of such a cluster speak."""
    modules = (cluster, configs, fetch, groups, produce, reassignments, topics)
    found = [*(api for module in modules for api in module.APIS), *elections.apis(spec), *log_info.apis(spec)]
    table = {api.key: api for api in found}
    return {**table, **{api.key: api for api in versions.api_versions(table)}}
