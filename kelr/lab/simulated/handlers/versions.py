"""ApiVersions: which requests a node takes, and the cluster's features."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kelr.lab.simulated.api import Api, Apis, Call, Message, Nodes, code
from kelr.lab.simulated.metadata_records import OLDEST_METADATA_VERSION, metadata_version
from kelr.lab.simulated.world import World
from kelr.model import ELR_FEATURE, LOG_INFO_FEATURE, METADATA_FEATURE, RECOVERY_FEATURE
from kelr.protocol.dialects import Dialect
from kelr.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(table: Apis) -> Sequence[Api]:
    """ApiVersions itself, which tells of the whole table."""

    def handle(call: Call) -> Message:
        if call.version >= 3 and not _says_who_it_is(call.request):
            return ApiVersionsResponse(throttle_time_ms=0, error_code=code("INVALID_REQUEST"), api_keys=[])
        kind = Nodes.CONTROLLERS if call.node in call.world.controllers else Nodes.BROKERS
        spoken = {**table, own.key: own}
        answer = ApiVersionsResponse(
            throttle_time_ms=0,
            error_code=0,
            api_keys=[
                ApiVersionsResponse.ApiVersion(api_key=key, min_version=api.versions[0], max_version=api.versions[1])
                for key, api in sorted(spoken.items())
                if kind in api.nodes
            ],
        )
        if call.version >= 3:
            _features(answer, call.world)
        return answer

    own = Api(ApiVersionsRequest, ApiVersionsResponse, (0, 4), handle, Nodes.ALL)
    return (own,)


def _says_who_it_is(request: Message) -> bool:
    """Whether the client names its software as KIP-511 has it (ApiVersionsRequest.isValid)."""
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name or "") for name in names)


def levels(world: World) -> Mapping[str, int]:
    """The finalized levels of all features that there are, 0 included."""
    rules = world.running.cluster.controller.rules
    found = {METADATA_FEATURE: world.metadata.level, ELR_FEATURE: int(rules.elr)}
    if rules.kip966:
        found[RECOVERY_FEATURE] = int(rules.recovers)
    return found


def supported(world: World) -> Mapping[str, tuple[int, int]]:
    """The lowest and the highest level of each of them that the software has."""
    newest = {METADATA_FEATURE: (OLDEST_METADATA_VERSION, metadata_version(world.spec.rules))}
    return {name: newest.get(name, (0, 1)) for name in levels(world)}


def _features(answer: Message, world: World) -> None:
    known, finalized = ApiVersionsResponse.SupportedFeatureKey, ApiVersionsResponse.FinalizedFeatureKey
    answer.supported_features = [
        known(name=name, min_version=low, max_version=high) for name, (low, high) in supported(world).items()
    ]
    if world.spec.api_key is not None:
        low = 0 if world.spec.log_info is Dialect.KIP else 1
        answer.supported_features.append(known(name=LOG_INFO_FEATURE, min_version=low, max_version=world.spec.api_key))
    answer.finalized_features_epoch = 1
    answer.finalized_features = [
        finalized(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels(world).items()
        if level
    ]
