"""What ``kelr quorum plan`` and ``apply`` do once their options are read; loaded only when they run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from kelr.commands.session import now_ms
from kelr.lab.nodes import new_kafka_uuid
from kelr.quorum.apply import (
    Statement,
    apply_plan,
    archive_of,
    check_addresses,
    check_statement,
    check_target,
    probe_address,
)
from kelr.quorum.assess import assess
from kelr.quorum.plan import PlanRequest, make_plan, read_plan, write_plan
from kelr.quorum.reading import read_collections
from kelr.recovery.places import state_directory
from kelr.view.output import Output
from kelr.view.quorum_plan import show_applied, show_plan


def plan_rescue(
    output: Output, collections: Sequence[Path], request: PlanRequest, out: Path, *, overwrite: bool
) -> None:
    """Plan, save and show a rescue."""
    collected = read_collections(collections)
    assessment = assess(collected.copies, collected.disks)
    plan = make_plan(collected, assessment, request, directory_id=new_kafka_uuid(), now_ms=now_ms())
    write_plan(plan, out, overwrite=overwrite)
    show_plan(output, plan, str(out), [str(path) for path in collections])


def apply_rescue(
    output: Output,
    plan_file: Path,
    collections: Sequence[Path],
    *,
    never_start: Collection[int],
    missing: Collection[int],
) -> None:
    """Check all that a rescue stands on, and make the directory."""
    plan = read_plan(plan_file)
    check_statement(plan, Statement(never_start, missing))
    archive, place = archive_of(plan, read_collections(collections))
    check_target(plan)
    check_addresses(plan, probe_address)
    applied = apply_plan(plan, archive, place, state_directory=state_directory(), now_ms=now_ms())
    show_applied(output, plan, applied)
