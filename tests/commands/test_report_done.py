"""What ``kelr report`` takes from kelr's own records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kelr.commands.reporting import read_done
from kelr.model import Selection
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery import audit
from kelr.recovery.places import state_directory
from kelr.rescue.known import DUMP, known_files
from tests.incident import CLUSTER_ID, INCIDENT
from tests.rescue.batches import batch
from tests.rescue.files import save, tail

AT_MS = INCIDENT.taken_at_ms
"""2023-11-14 22:13:20 UTC."""


def elected(at_ms: int, journal: str = "2026-1.journal") -> AuditRecord:
    who = (CLUSTER_ID, "ada", "laptop", None)
    return AuditRecord(at_ms, AuditWhat.ELECTION, "recover apply", "orders", 1, *who, "done", journal=journal)


@pytest.mark.parametrize(
    ("since", "until", "counted"),
    [
        (None, None, [AT_MS, AT_MS + 7_200_000]),
        ("2023-11-14T22:00Z", None, [AT_MS, AT_MS + 7_200_000]),
        # The repeat is later than the election, and is of no other.
        ("2023-11-14T22:30Z", None, [AT_MS + 7_200_000]),
        ("2023-11-14T22:30Z", "2023-11-14T23:30Z", []),
        (None, "2023-11-14T22:00Z", []),
    ],
)
def test_an_election_that_was_written_down_twice_is_of_the_time_of_its_first_line(
    since: str | None, until: str | None, counted: list[int]
) -> None:
    """`recover resume` writes the line again an hour later."""
    lines = elected(AT_MS), elected(AT_MS + 3_600_000), elected(AT_MS + 7_200_000, "2026-2.journal")
    audit.append(state_directory(), *lines)
    done, gaps = read_done(Selection(), since, until, cluster_id=CLUSTER_ID, told=None)
    assert gaps == []
    assert done is not None
    assert [row.at_ms for row in done.rows] == counted


def test_a_dump_is_evidence_and_no_change_and_one_that_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    here, gone = tmp_path / "here.kelr-rescue", tmp_path / "gone.kelr-rescue"
    manifest = save(here, [tail([batch(10, 5)], 10, 15)], cluster_id=CLUSTER_ID)
    (one,) = manifest.tails

    def dumped(path: Path) -> AuditRecord:
        evidence = [{"file": str(path), "sha256": path.name}]
        who = (CLUSTER_ID, "ada", "laptop", None)
        return AuditRecord(
            AT_MS, AuditWhat.RESCUE, DUMP, one.topic, one.partition, *who, "done", plan_id="p", evidence=evidence
        )

    by_name = replace(dumped(gone), evidence=[{"file": "older.kelr-rescue", "sha256": "0"}])
    garbled = replace(dumped(gone), evidence=[{"file": None}, {}])
    audit.append(state_directory(), elected(AT_MS), dumped(here), dumped(gone), by_name, garbled)
    done, gaps = read_done(Selection(), None, None, cluster_id=CLUSTER_ID, told=None)
    assert done is not None
    assert [row.what for row in done.rows] == [AuditWhat.ELECTION]
    assert [(log.file, log.replica, log.parts) for log in done.saved[one.address]] == [
        (str(here), one.replica, {(one.epochs[0].epoch, 10, 15)})
    ]
    assert [gap.text for gap in gaps] == [
        f"cannot read the rescue file {gone}: No such file or directory: what it holds counts for nothing"
    ]
    # Of another cluster it says nothing here.
    assert known_files([], [here], cluster_id="another") == ({}, [])
