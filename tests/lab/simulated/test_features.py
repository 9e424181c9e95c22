"""UpdateFeatures on the simulated cluster: upgrade and downgrade are rehearsed."""

from __future__ import annotations

from typing import Any

import pytest

from kelr.controller import events
from kelr.lab.simulated.world import Denied, World
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import ELR_FEATURE, METADATA_FEATURE, RECOVERY_FEATURE, TopicPartition
from kelr.protocol.messages import ApiVersionsRequest, UpdateFeaturesRequest
from tests.lab.simulated.asking import ask, name, world

UPGRADE, SAFE, UNSAFE = 1, 2, 3
ORDERS = TopicPartition("orders", 0)
FAILED = "The update failed for all features since the following feature had an error: "


def asked(*levels: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> Any:
    made = UpdateFeaturesRequest.FeatureUpdateKey
    updates = [
        made(feature=feature, max_version_level=level, upgrade_type=kind, allow_downgrade=kind > 1)
        for feature, level, kind in levels
    ]
    return UpdateFeaturesRequest(version=version, timeout_ms=1000, feature_updates=updates, validate_only=validate_only)


def update(cluster: World, *levels: tuple[str, int, int], node: int = 1, **how: Any) -> tuple[str, str | None]:
    answer = ask(cluster, asked(*levels, **how), node=node)
    return name(answer.error_code), answer.error_message


def finalized(cluster: World) -> dict[str, int]:
    question = ApiVersionsRequest(version=4, client_software_name="kelr", client_software_version="1")
    return {one.name: one.max_version_level for one in ask(cluster, question).finalized_features}


def under_min_isr(**spec: Any) -> World:
    """Broker 1 leads alone, and 2 is in the ELR."""
    cluster = world((1, 2, 3), **spec)
    for broker in (3, 2):
        cluster.running.ask(events.BrokerFenced(broker))
    assert state(cluster).elr == (2,)
    return cluster


def state(cluster: World) -> Any:
    return cluster.running.cluster.controller.partitions[ORDERS]


@pytest.mark.parametrize("node", [1, CONTROLLER_ID])
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("rules", ["elr-4.3", "kip966-balanced"])
def test_elr_is_switched_off_and_on_again(rules: str, version: int, node: int) -> None:
    cluster = under_min_isr(rules=rules)
    assert finalized(cluster)[ELR_FEATURE] == 1
    assert update(cluster, (ELR_FEATURE, 0, SAFE), version=version, node=node) == ("NONE", None)
    assert ELR_FEATURE not in finalized(cluster)
    assert not cluster.running.cluster.controller.rules.elr
    # KIP-966, "MV downgrade": what is there goes with the partition's next change.
    assert state(cluster).elr == (2,)
    assert update(cluster, (ELR_FEATURE, 1, UPGRADE), version=version, node=node) == ("NONE", None)
    assert finalized(cluster)[ELR_FEATURE] == 1


def test_what_is_only_validated_changes_nothing() -> None:
    cluster = world((1, 2, 3))
    assert update(cluster, (ELR_FEATURE, 0, SAFE), validate_only=True) == ("NONE", None)
    assert finalized(cluster)[ELR_FEATURE] == 1


@pytest.mark.parametrize(
    ("update_of", "why"),
    [
        (
            (ELR_FEATURE, 0, UPGRADE),
            f"Invalid update version 0 for feature {ELR_FEATURE}. Can't downgrade the version of this feature without"
            " setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            (ELR_FEATURE, 2, UPGRADE),
            f"Invalid update version 2 for feature {ELR_FEATURE}. Local controller {CONTROLLER_ID} only supports"
            " versions 0-1",
        ),
        (
            ("nonsense", 1, UPGRADE),
            f"Invalid update version 1 for feature nonsense. Local controller {CONTROLLER_ID} does not support this"
            " feature.",
        ),
        (
            (ELR_FEATURE, -1, SAFE),
            f"Invalid update version -1 for feature {ELR_FEATURE}. A feature version cannot be less than 0.",
        ),
        (
            (METADATA_FEATURE, 22, UNSAFE),
            "Unsupported metadata.version downgrade from 33 to 22. Unsafe metadata downgrade is not supported in this"
            " version.",
        ),
        (
            (METADATA_FEATURE, 29, SAFE),
            "Unsupported metadata.version downgrade from 33 to 29. Refusing to perform the requested downgrade because"
            " it might delete metadata information.",
        ),
    ],
)
def test_what_released_kafka_refuses(update_of: tuple[str, int, int], why: str) -> None:
    """In the words of 4.3.1 and 4.4.0; one bad feature refuses all of a request."""
    cluster = world((1, 2, 3))
    assert update(cluster, (ELR_FEATURE, 0, SAFE), update_of) == ("INVALID_UPDATE_VERSION", FAILED + why)
    assert finalized(cluster)[ELR_FEATURE] == 1


def test_who_may_change_features() -> None:
    cluster = world((1, 2, 3))
    cluster.denied |= {Denied("cluster", "ALTER")}
    assert update(cluster, (ELR_FEATURE, 0, SAFE))[0] == "CLUSTER_AUTHORIZATION_FAILED"


def test_a_software_downgrade_by_the_kip_leaves_no_elr_in_any_record() -> None:
    """KIP-966, "Software downgrade": "After the MV version is downgraded, a metadata delta will be generated to capture
    the current status. Then the user can start the software downgrade." """
    cluster = under_min_isr(rules="kip966-balanced")
    epoch, before = state(cluster).partition_epoch, cluster.metadata.end
    [refusal] = [update(cluster, (METADATA_FEATURE, 22, SAFE))]
    assert refusal[0] == "INVALID_UPDATE_VERSION"
    assert "might delete metadata information" in str(refusal[1])
    assert update(cluster, (METADATA_FEATURE, 22, UNSAFE)) == ("NONE", None)
    assert finalized(cluster) == {METADATA_FEATURE: 22, RECOVERY_FEATURE: 1}
    assert (state(cluster).elr, state(cluster).last_known_elr, state(cluster).leader) == ((), (), 1)
    assert state(cluster).partition_epoch == epoch + 1
    # metadata.version, ELR's feature, the partition.
    assert cluster.metadata.end - before == 3
    # Below its metadata.version ELR cannot be switched on; once that is raised again it can.
    refused = update(cluster, (ELR_FEATURE, 1, UPGRADE))
    why = f"{ELR_FEATURE} could not be set to 1 because it depends on metadata.version level 23"
    assert refused[1] == f"{FAILED}Invalid update version 1 for feature {ELR_FEATURE}. {why}"
    assert update(cluster, (METADATA_FEATURE, 30, UPGRADE)) == ("NONE", None)
    assert update(cluster, (ELR_FEATURE, 1, UPGRADE)) == ("NONE", None)
    assert finalized(cluster)[ELR_FEATURE] == 1
