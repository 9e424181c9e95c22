"""Before a plan is carried out, the disks that it stands on are named with the age of their reading."""

from __future__ import annotations

import io
from dataclasses import replace

from kelr.commands.recovering import say_disks
from kelr.model import LOG_DIRECTORY, LogEvidence
from kelr.view.output import Output
from tests.view.plans import LOSSY, plan

READ_AT_MS = 14 * 3_600_000 + 3 * 60_000 + 10_000


def said(*logs: LogEvidence) -> str:
    stderr = io.StringIO()
    one = replace(LOSSY, evidence=replace(LOSSY.evidence, logs=logs))
    say_disks(Output(io.StringIO(), stderr), plan(one), READ_AT_MS + 25 * 60_000)
    return stderr.getvalue()


def test_a_disk_is_named_with_the_age_of_its_oldest_reading() -> None:
    disk = LogEvidence(1, 20, source=LOG_DIRECTORY, read_at_ms=READ_AT_MS)
    text = said(disk, LogEvidence(2, 30, source="ListOffsets+Fetch", read_at_ms=READ_AT_MS))
    assert text.startswith("the plan is based on the disk of broker 1, read at 14:03:10 UTC, 25 minutes ago.")
    assert "broker 2" not in text


def test_without_a_disk_nothing_is_said() -> None:
    assert said(LogEvidence(2, 30, source="ListOffsets+Fetch", read_at_ms=READ_AT_MS)) == ""
