"""What prints each output of ``kelr fleet``, without a fleet."""

from __future__ import annotations

from collections.abc import Mapping

from kelr.fleet.generate.truth import Happening, Truth, UncleanElection
from kelr.model.exposed import ExposedName, FleetExposure, TroubleTime
from kelr.model.fleet import ClusterTrend, FleetRun, IngestedCluster, IngestSummary, QuarantinedFile, TroubleCounts
from kelr.view.fleet_assess import ScenarioRow, assess_view
from kelr.view.fleet_exposure import exposure_view, tail_of
from kelr.view.fleet_generate import generated_view
from kelr.view.fleet_ingest import ingest_tail, ingested_view
from kelr.view.fleet_report import FixRow, fix_view
from kelr.view.fleet_run import run_tail, run_view
from kelr.view.whatif_words import SHAPES
from tests.view.printing import Printed, listed

AT_MS = 1_793_577_600_000
LOST = QuarantinedFile("/in/köln/00000000000000000000.log", "Zk3", "its checksum is wrong")
TAKEN = IngestedCluster("Zk3", "payments", 4, 120, 3, 117, 2, 9, AT_MS, AT_MS + 1, (LOST,), ("a torn tail",))
UNNAMED = IngestedCluster("Yq1", None, 1, 0, 0, 0, 0, 0, None, None)
SUMMARY = IngestSummary("lake", 2, True, (TAKEN, UNNAMED), (QuarantinedFile("/in/x", None, "unknown"),), 5, 1)
EXPOSED = ExposedName(
    "Zk3",
    None,
    "topic",
    "abrechnung",
    500.0,
    {
        "leaderless": TroubleTime(2, 3, 125.0, 65.5, 0.0, 0.25, 0.0, 1, AT_MS, 0),
        "under-min-isr": TroubleTime(0, 0, 0.0, 0.0, 250.0, None, None, 0, None, 1),
    },
    ("leaderless",),
)
FOUND = FleetExposure(3, 1, 4, 2, 5, 1, 1, 7)
RUN = FleetRun(
    lake="lake",
    version=12,
    done=("ingest", "report"),
    clusters=(
        ClusterTrend("Zk3", "payments", TroubleCounts(9, 2, 1, 3, 1, 0), TroubleCounts(9, 1, 0, 5, 1, 0)),
        ClusterTrend("Yq1", "Yq1", TroubleCounts(1, 0, 0, 0, 0, 0), None),
    ),
    new_files=5,
    quarantined=(LOST,),
    findings=4,
    written=("report/report.html",),
    compared_ms=AT_MS,
    unseen=("No partition was found of Yq1.",),
)
STANDINGS = {shape.name.replace("-", "_"): place for place, shape in enumerate(SHAPES)}


def scenario(name: str, kind: str, **more: object) -> ScenarioRow:
    values: dict[str, object] = {
        **{"cluster": "Zk3", "cluster_name": "payments", "rules": "elr-4.3", "rules_certain": True, "at_ms": AT_MS},
        **{"scenario": name, "kind": kind, "happens": name, "brokers": (), "racks": (), "partitions": 9, "touched": 3},
        **{"new": STANDINGS, "depends": 1, "worst_topics": ("orders",)},
        **more,
    }
    return ScenarioRow(**values)  # type: ignore[arg-type]


MADE = Truth(
    "Zk3", "payments", "4.3, ELR on", 27, "elr-4.3", "whole", partitions=9, leaderless=1, states=90, records=120
)
MADE.happenings.extend([Happening(AT_MS, 1, "incident")] * 2 + [Happening(AT_MS, 1, "killed")])
MADE.unclean_elections.extend([UncleanElection(AT_MS, 1, "orders", 0, 1, 2, None)] * 3)

FLEET_SAMPLES: Mapping[str, Printed] = {
    "fleet-generate": listed(
        generated_view(),
        [MADE],
        {},
        {"size_bytes": 5, "damages": [{"path": "a", "what": "torn"}], "next": "kelr fleet ingest fleet --out lake"},
    ),
    "fleet-ingest": listed(
        ingested_view(), SUMMARY.clusters, {}, ingest_tail(SUMMARY, "kelr fleet assess --lake lake")
    ),
    "fleet-assess": listed(
        assess_view(),
        [scenario("now", "now"), scenario("broker 1 killed", "broker", brokers=(1,), racks=("az1",))],
        {"lake": "lake"},
        {
            **{"patterns": 3, "scenarios": 2, "listed": 2, "unknown_clusters": ["Yq1"], "failed": None},
            **{"notes": ["one"], "next": "kelr fleet exposure --lake lake"},
        },
    ),
    "fleet-exposure": listed(
        exposure_view("cluster"),
        [EXPOSED],
        {"lake": "lake", "by": "cluster", "since_ms": None, "until_ms": AT_MS},
        {**tail_of(FOUND, 1), "next": "kelr fleet report --lake lake --out report"},
    ),
    "fleet-run": listed(run_view(), RUN.clusters, {}, run_tail(RUN)),
    "fleet-report": listed(
        fix_view(),
        [FixRow(1, "leaderless", "Zk3", "payments", "2 without leader", ("more",), ("why",), 2, "recorded", ("kelr",))],
        {"lake": "lake", "lake_version": 2},
        {"others": 0, "written": ["report/report.html"], "notes": []},
    ),
}
"""By output."""
