"""One module for each kind of request; each has a table `APIS` of what it answers."""

from __future__ import annotations

from kelr.errors import UsageError
from kelr.lab.simulated.api import Apis
from kelr.lab.simulated.handlers import (
    cluster,
    configs,
    elections,
    features,
    fetch,
    groups,
    log_info,
    of_brokers,
    produce,
    reassignments,
    topics,
)
from kelr.lab.simulated.spec import SimulatedSpec


def apis_of(spec: SimulatedSpec) -> Apis:
    """Everything that the nodes of such a cluster speak.

    Raises:
        UsageError: GetReplicaLogInfo is to have the key of another request.
    """
    modules = (cluster, configs, features, fetch, groups, of_brokers, produce, reassignments, topics)
    found = [*(api for module in modules for api in module.APIS), *elections.apis(spec)]
    taken = _with_versions({api.key: api for api in found})
    if spec.api_key is not None and spec.api_key in taken:
        raise UsageError(
            f"API key {spec.api_key} is that of {taken[spec.api_key].name}",
            next_step="leave out --log-info-api-key, or give one that no request has",
        )
    return _with_versions({api.key: api for api in (*found, *log_info.apis(spec))})


def _with_versions(table: Apis) -> Apis:
    return {**table, **{api.key: api for api in features.api_versions(table)}}
