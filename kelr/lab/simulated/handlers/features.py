"""UpdateFeatures: eligible.leader.replicas.version up and down, and metadata.version as KIP-966 has its downgrade.

Source: QuorumController.updateFeatures, FeatureControlManager.updateFeature and Feature.validateVersion of Apache Kafka
4.3.1 (checks, their order and words); KIP-966, "Compatibility, Deprecation, and Migration Plan" (MV downgrade, software
downgrade).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kelr.controller import NEEDED_FOR_ELR, events
from kelr.lab.simulated.api import (
    CLUSTER,
    DENIED,
    Api,
    Apis,
    Call,
    Message,
    Nodes,
    Problem,
    RefusedError,
    code,
    forwarded,
    words,
)
from kelr.lab.simulated.metadata_log import OLDEST_METADATA_VERSION, metadata_version
from kelr.lab.simulated.world import World
from kelr.model import ELR_FEATURE, LOG_INFO_FEATURE, METADATA_FEATURE, RECOVERY_FEATURE
from kelr.protocol.dialects import Dialect
from kelr.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

# ApiVersions: which requests a node takes, and the cluster's features.


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


UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_ALL_FAILED = "The update failed for all features since the following feature had an error: "
_NONE = Problem("NONE")


def update(call: Call) -> Message:
    """Change feature levels: all of them, or none."""
    if not call.world.allowed(CLUSTER, "ALTER"):
        return _answer(call, Problem(DENIED[CLUSTER], words(DENIED[CLUSTER])))
    try:
        for one in call.request.feature_updates:
            _check(call.world, one.feature, one.max_version_level, _kind(call, one))
    except RefusedError as refused:
        problem = refused.problem
        return _answer(call, Problem(problem.error, f"{_ALL_FAILED}{problem.message}"))
    if not (call.version >= 1 and call.request.validate_only):
        for one in call.request.feature_updates:
            _write(call.world, one.feature, one.max_version_level)
    return _answer(call, _NONE, [one.feature for one in call.request.feature_updates])


def timed_out(call: Call) -> Message:
    """What a broker answers that did not reach the controller."""
    return _answer(call, Problem("REQUEST_TIMED_OUT", words("REQUEST_TIMED_OUT")))


def _kind(call: Call, one: Message) -> int:
    if call.version >= 1:
        return int(one.upgrade_type)
    return SAFE_DOWNGRADE if one.allow_downgrade else UPGRADE


def _check(world: World, feature: str, level: int, kind: int) -> None:
    current, known = levels(world).get(feature, 0), supported(world).get(feature)
    if kind not in {UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE}:
        raise _refusal(feature, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _refusal(feature, level, "A feature version cannot be less than 0.")
    if known is None:
        raise _refusal(feature, level, f"Local controller {world.controller} does not support this feature.")
    if level and not known[0] <= level <= known[1]:
        only = f"{known[0]}-{known[1]}" if known[0] < known[1] else f"{known[0]}"
        raise _refusal(feature, level, f"Local controller {world.controller} only supports versions {only}")
    if level < current and kind == UPGRADE:
        without = "without setting the upgrade type to either safe or unsafe downgrade."
        raise _refusal(feature, level, f"Can't downgrade the version of this feature {without}")
    if level > current and kind != UPGRADE:
        raise _refusal(feature, level, "Can't downgrade to a newer version.")
    if feature == METADATA_FEATURE and level < current:
        _check_metadata_downgrade(world, level, kind)
    if feature == ELR_FEATURE and level and levels(world)[METADATA_FEATURE] < NEEDED_FOR_ELR:
        needed = f"it depends on {METADATA_FEATURE} level {NEEDED_FOR_ELR}"
        raise _refusal(feature, level, f"{ELR_FEATURE} could not be set to {level} because {needed}")
    if feature == RECOVERY_FEATURE and level != current:
        raise _refusal(feature, level, "The nodes' files switch it.")


def _check_metadata_downgrade(world: World, level: int, kind: int) -> None:
    """Released Kafka lowers metadata.version only where no metadata is lost by it; which levels those are is not played
    here. KIP-966 has the controller write what is left as a delta, for whoever asks for an unsafe downgrade."""
    text = "Refusing to perform the requested downgrade because it might delete metadata information."
    if kind == UNSAFE_DOWNGRADE and world.running.cluster.controller.rules.kip966:
        return
    if kind == UNSAFE_DOWNGRADE:
        text = "Unsafe metadata downgrade is not supported in this version."
    what = f"Unsupported {METADATA_FEATURE} downgrade from {world.metadata.level} to {level}"
    raise RefusedError("INVALID_UPDATE_VERSION", f"{what}. {text}")


def _refusal(feature: str, level: int, why: str) -> RefusedError:
    return RefusedError("INVALID_UPDATE_VERSION", f"Invalid update version {level} for feature {feature}. {why}")


def _write(world: World, feature: str, level: int) -> None:
    if level == levels(world).get(feature, 0):
        return
    if feature == ELR_FEATURE:
        world.running.ask(events.ElrFeature(on=bool(level)))
    elif feature == METADATA_FEATURE:
        world.running.ask(events.MetadataVersion(level))


def _answer(call: Call, problem: Problem, features: Sequence[str] = ()) -> Message:
    answer = UpdateFeaturesResponse(throttle_time_ms=0, error_code=problem.code, error_message=problem.message)
    if call.version <= 1:
        made = UpdateFeaturesResponse.UpdatableFeatureResult
        answer.results = [made(feature=one, error_code=0, error_message=None) for one in features]
    return answer


APIS: tuple[Api, ...] = (
    Api(UpdateFeaturesRequest, UpdateFeaturesResponse, (0, 2), forwarded(update, timed_out), Nodes.ALL),
)
