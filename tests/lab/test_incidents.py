"""Incidents before anything is killed: what they need, and which replicas they lay out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelr.errors import KelrError, LabError, UsageError
from kelr.lab import INCIDENTS, Lab, LabSpec, run_incident
from kelr.lab.incidents import _layouts, _rack_layouts, _three_racks
from kelr.lab.produce import Acks, _produced, _Tally
from kelr.lab.state import LabState


def lab(spec: LabSpec, directory: Path) -> Lab:
    """A lab on paper."""
    ports = {node: 20000 + node for node in (100, *spec.broker_ids)}
    return Lab(directory, LabState("lab", "cluster", spec, ports, "java", (), ""))


def test_the_promised_incidents_are_there() -> None:
    assert list(INCIDENTS) == [
        "under-min-isr",
        "waiting-for-elr",
        "last-known-leader",
        "needs-unclean-recovery",
        "lossy-restart",
        "rack-outage",
        "quorum-lost",
        "quorum-addresses",
        "quorum-disk",
    ]
    assert all(name == incident.name for name, incident in INCIDENTS.items())


@pytest.mark.parametrize(
    ("spec", "name", "kind", "message"),
    [
        (LabSpec(), "earthquake", UsageError, "no incident is called 'earthquake'"),
        (LabSpec(brokers=2), "lossy-restart", LabError, "lossy-restart needs 3 brokers, this lab has 2"),
        (LabSpec(racks=2), "rack-outage", LabError, "rack-outage needs 3 racks"),
        (LabSpec(elr=False), "waiting-for-elr", LabError, "waiting-for-elr needs ELR, and this lab has none"),
        (LabSpec(), "quorum-lost", LabError, "quorum-lost needs real Kafka with 3 controllers"),
    ],
)
def test_a_lab_that_cannot_have_an_incident_says_so(
    tmp_path: Path, spec: LabSpec, name: str, kind: type[KelrError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        run_incident(lab(spec, tmp_path), name)
    assert caught.value.next_step


@pytest.mark.parametrize("partitions", [0, 1001])
def test_the_number_of_partitions_is_bounded(tmp_path: Path, partitions: int) -> None:
    with pytest.raises(UsageError, match=f"{partitions} partitions, outside 1 to 1000"):
        run_incident(lab(LabSpec(), tmp_path), "lossy-restart", partitions=partitions)


def test_each_order_of_replicas_is_there_once_in_six_partitions() -> None:
    assert _layouts((1, 2, 3), 7) == [(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1), (1, 2, 3)]


def test_a_rack_holds_one_replica_of_each_partition(tmp_path: Path) -> None:
    spec = LabSpec(brokers=7, racks=3)
    racks = _three_racks(lab(spec, tmp_path))
    assert racks == ((1, 4, 7), (2, 5), (3, 6))
    layouts = _rack_layouts(racks, 12)
    assert all({spec.rack_of[broker] for broker in layout} == {"az1", "az2", "az3"} for layout in layouts)
    assert {broker for layout in layouts for broker in layout} == set(spec.broker_ids)


def test_what_was_produced_is_counted_from_the_answers() -> None:
    confirmed = _produced(3, Acks.LEADER, _Tally(offsets=[12, 10, 11]))
    assert (confirmed.acknowledged, confirmed.first_offset, confirmed.end_offset) == (3, 10, 13)
    refused = _produced(3, Acks.ALL, _Tally(errors=["NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS"]))
    assert (refused.refused, refused.error, refused.first_offset, refused.end_offset) == (
        2,
        "NOT_ENOUGH_REPLICAS",
        None,
        None,
    )


def test_a_gap_in_what_was_produced_is_an_error() -> None:
    with pytest.raises(LabError, match="not contiguous: 10 to 13"):
        _produced(3, Acks.ALL, _Tally(offsets=[10, 11, 13]))
