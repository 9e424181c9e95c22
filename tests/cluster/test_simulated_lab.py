"""The simulated lab beside real Kafka: the same incident leaves the same decisions behind, offset by offset."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kelr.lab import AnyLab, Lab, run_incident
from kelr.lab.simulated.lab import SimulatedLab
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.model import Candidate, Decision, select
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.live import LiveSource

RELEASED = SimulatedSpec(rules="elr-4.3", log_info=None)
"""What Kafka 4.3.1 is."""


def test_an_incident_leaves_the_same_behind_on_both(lab_43: Lab, tmp_path: Path) -> None:
    """Logs that were cut differ in end and high watermark; then the last leader returns, and all follow it."""
    with SimulatedLab.up(RELEASED, tmp_path / "lab", owner_pid=os.getpid()) as simulated:
        topic = "on-both"
        for lab in (lab_43, simulated):
            report = run_incident(lab, "lossy-restart", topic=topic)
            assert report.awaited == (1,)
        assert seen(simulated, topic) == seen(lab_43, topic)
        for lab in (lab_43, simulated):
            lab.start(1)
            lab.wait_partitions(topic, "1 leads, all in sync", led_by(1))
            # Asking writes nothing: the logs are as long as before.
            assert not any(map(lab.refuses_acks_all, lab.partitions(topic)))
        assert seen(simulated, topic) == seen(lab_43, topic)


def led_by(broker: int) -> Callable[[Any], bool]:
    return lambda state: state.leader == broker and len(state.isr) == 3


def seen(lab: AnyLab, topic: str) -> list[dict[str, Any]]:
    """What kelr reads and decides of each partition, over the wire."""
    source = LiveSource(ConnectionSettings.read(lab.bootstrap_servers))
    try:
        pages = decide_partitions(source, select([topic]), clock_ms=lambda: 0)
        return [told(decision) for page in pages for decision in page.decisions]
    finally:
        source.close()


def told(decision: Decision) -> dict[str, Any]:
    return {
        "partition": decision.partition,
        "situation": decision.situation,
        "leader": decision.leader,
        "leader_epoch": decision.leader_epoch,
        "replicas": decision.replicas,
        "isr": decision.isr,
        "elr": decision.elr,
        "last_known_elr": decision.last_known_elr,
        "min_isr": decision.min_isr,
        "elected": decision.elected,
        "waits_for": decision.waits_for,
        "logs": {candidate.replica: log(candidate) for candidate in decision.candidates},
        "elections": [(outcome.election, outcome.elected, outcome.loss) for outcome in decision.elections],
        "forecasts": decision.forecasts,
        "advice": decision.advice,
    }


def log(candidate: Candidate) -> tuple[Any, ...]:
    return (
        candidate.live,
        candidate.log_start,
        candidate.log_end,
        candidate.high_watermark,
        candidate.last_epoch,
        candidate.current_leader_epoch,
        candidate.behind_best,
        candidate.diverges_at,
    )
