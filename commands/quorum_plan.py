"""What ``kelr quorum plan``, ``apply`` and ``verify`` do once their options are read; loaded only when they run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kelr.commands.session import Session, now_ms
from kelr.errors import ExitCode
from kelr.lab.nodes import new_kafka_uuid
from kelr.model import Selection, Target
from kelr.quorum.apply import (
    Statement,
    apply_plan,
    archive_of,
    check_addresses,
    check_statement,
    check_target,
    copy_of,
    read_statement,
)
from kelr.quorum.assess import assess
from kelr.quorum.plan import (
    AddressRequest,
    PlanRequest,
    QuorumPlan,
    make_address_plan,
    make_plan,
    read_plan,
    write_plan,
)
from kelr.quorum.reading import Collected, read_collections
from kelr.quorum.restore import find_set_aside, may_be_needed, rename_back
from kelr.quorum.verify import Seen, ask_controllers, ask_quorum, check_rescue, log_is_same
from kelr.recovery.places import state_directory
from kelr.sources.disk import read_brokers
from kelr.sources.disk.names import Kind
from kelr.sources.live.diagnose import probe_address
from kelr.sources.live.failures import TOPIC_UNAUTHORIZED
from kelr.view.output import Output
from kelr.view.quorum_plan import show_applied, show_plan
from kelr.view.quorum_verify import show_restored, show_verified


def plan_rescue(
    output: Output, collections: Sequence[Path], request: PlanRequest | AddressRequest, out: Path, *, overwrite: bool
) -> None:
    """Plan, save and show a rescue."""
    collected = read_collections(collections)
    assessment = assess(collected.copies, collected.disks)
    if isinstance(request, AddressRequest):
        plan = make_address_plan(collected, assessment, request, now_ms=now_ms())
    else:
        plan = make_plan(collected, assessment, request, directory_id=new_kafka_uuid(), now_ms=now_ms())
    write_plan(plan, out, overwrite=overwrite)
    show_plan(output, plan, str(out), [str(path) for path in collections])


def apply_rescue(
    output: Output,
    plan_file: Path,
    collections: Sequence[Path],
    statement: Statement,
) -> None:
    """Check all that a rescue stands on, and make the directory."""
    plan = read_plan(plan_file)
    check_statement(plan, statement)
    archive, place = archive_of(plan, read_collections(collections))
    check_target(plan)
    check_addresses(plan, probe_address)
    applied = apply_plan(plan, archive, place, statement, state_directory=state_directory(), now_ms=now_ms())
    show_applied(output, plan, applied)


def verify_rescue(
    session: Session, plan_file: Path, collections: Sequence[Path], node_directories: Sequence[Path]
) -> ExitCode:
    """Look at the cluster, and at what of it is on this host; gives how the command ends."""
    plan, collected = read_plan(plan_file), read_collections(collections)
    archive, place = archive_of(plan, collected)
    image = copy_of(plan, collected).image
    source = session.source()
    topics: dict[str, str | None] = {}
    leaderless = 0
    for page in source.pages(Selection()):
        for state in page.partitions:
            topics[state.topic] = state.topic_id
            leaderless += state.leader is None
    unseen = tuple(Target(topic=one.name) for one in image.topics.values() if one.name not in topics)
    pages = source.pages(Selection(unseen)) if unseen else ()
    errors = [error for page in pages for error in page.topic_errors]
    settings = session.settings.connection()
    seen = Seen(
        quorum=ask_quorum(settings, clock_ms=now_ms()),
        controllers=ask_controllers(settings, plan.controller_addresses, clock_ms=now_ms()),
        cluster=source.cluster(),
        topics=topics,
        leaderless=leaderless,
        denied=frozenset(error.topic for error in errors if error.error == TOPIC_UNAUTHORIZED),
        stated=read_statement(plan, state_directory()),
        log_same=log_is_same(plan, archive, place),
        set_aside=_set_aside_since(plan, collected, node_directories) if node_directories else None,
    )
    checks = list(check_rescue(plan, image, seen))
    show_verified(session.output, checks, leaderless)
    if any(one.passed is False for one in checks):
        return ExitCode.FOUND
    return ExitCode.PARTLY_DONE if any(one.passed is None for one in checks) else ExitCode.DONE


def restore_set_aside(
    output: Output, plan_file: Path, collections: Sequence[Path], node_directories: Sequence[Path]
) -> ExitCode:
    """Rename back what a broker on this host has set aside; gives how the command ends."""
    plan, collected = read_plan(plan_file), read_collections(collections)
    directories = [path.absolute() for path in node_directories]
    found = find_set_aside(plan, collected, directories)
    rename_back(plan, found, directories, state_directory=state_directory(), now_ms=now_ms())
    left = may_be_needed(found, plan.verdict)
    show_restored(output, found, left)
    return ExitCode.PARTLY_DONE if left else ExitCode.DONE


def _set_aside_since(plan: QuorumPlan, collected: Collected, directories: Sequence[Path]) -> tuple[str, ...]:
    """Directories of replicas that brokers have renamed since they were collected; those of topics that were named
    when a stale copy was taken are expected."""
    before = {path for disk in collected.disks for path in disk.set_aside}
    disks = read_brokers([path.absolute() for path in directories], checksums=False, lineage=False, clock_ms=now_ms)
    found = (
        one.path
        for disk in disks
        for one in disk.unused
        if one.kind is not Kind.FUTURE and one.address.topic not in plan.stale_topics
    )
    known = {Path(path).name for path in before}
    return tuple(path for path in found if Path(path).name not in known)
