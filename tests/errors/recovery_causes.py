"""How the errors come about that stand before a change, and after one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelr.commands.consent import read_reason
from kelr.commands.recover_plan import refuse_the_live
from kelr.durable import AppendOnlyFile
from kelr.errors import UsageError
from kelr.model import ElectionRequest, ElectionType, TopicPartition
from kelr.model.plan import AcceptedLoss, Consent
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.recovery.election_file import read_election_file
from kelr.recovery.journal import JOURNAL_DIRECTORY, cluster_lock
from kelr.recovery.journal_reader import read_journal
from kelr.recovery.journal_store import find_journal, journal_files
from kelr.recovery.places import cluster_directory
from kelr.recovery.resume import resume
from kelr.recovery.undo import undo_plan
from kelr.rescue.archive import open_dump
from kelr.rescue.preparing import Preparing
from kelr.rescue.replay_plan import ReplayOptions
from kelr.rescue.target import refuse_internal
from tests.errors.ground import CONNECTION, Cause, Causes, Ground
from tests.incident import CLUSTER
from tests.recovery import simulated
from tests.recovery.simulated import CLUSTER_ID, TOPIC, Killed, SimulatedAdminClient, leaderless, watch_files
from tests.rescue.batches import batch
from tests.rescue.fake_cluster import FakeCluster, orders
from tests.rescue.files import save, tail

AT = TopicPartition(TOPIC, 0)
DESIGNATE_2 = {AT: ElectionRequest(ElectionType.DESIGNATION, 2)}
ANY_LOSS = Confirmation(AcceptedLoss(1000, unbounded=True))
OTHER_CLUSTER = "another-cluster-entirel"


def applied(given: Confirmation, consent: Consent) -> Cause:
    """A plan that wants this consent, and is given that."""

    def cause(ground: Ground) -> None:
        world = leaderless()
        plan = world.plan(DESIGNATE_2)
        wanting = replace(plan, elections=tuple(replace(one, consent=consent) for one in plan.elections))
        apply_plan(wanting, **world.common(ground.path), consented=given)

    return cause


def answered(ground: Ground) -> None:
    ground.planned()
    ground.typed("no\n")
    ground.run("recover", "apply", "plan.json", *CONNECTION)


def not_asked(ground: Ground) -> None:
    ground.world()
    ground.run("recover", "clear-elr", "--topic", TOPIC, "--force", "its disk is lost", *CONNECTION)


def dry_run(before: Callable[[Any], object], *words: str) -> Cause:
    """A saved plan, after something has happened."""

    def cause(ground: Ground) -> None:
        before(ground.planned())
        ground.run("recover", "apply", "plan.json", "--dry-run", *words, *CONNECTION)

    return cause


def later(world: Any) -> None:
    world.now_s += 3 * 3600


def reordered(world: Any) -> None:
    SimulatedAdminClient(world).reorder({TopicPartition(TOPIC, 1): (3, 1, 2)})


def another_cluster(ground: Ground) -> None:
    ground.planned()
    ground.patch.setattr(simulated, "CLUSTER_ID", OTHER_CLUSTER)
    ground.run("recover", "apply", "plan.json", *CONNECTION)


def plan_file(content: str) -> Cause:
    def cause(ground: Ground) -> None:
        ground.world()
        ground.file("plan.json", content)
        ground.run("recover", "apply", "plan.json", *CONNECTION)

    return cause


def edited_plan(ground: Ground) -> None:
    ground.planned()
    path = ground.path / "plan.json"
    path.write_text(path.read_text().replace('"partition": 0', '"partition": "none"', 1))
    ground.run("recover", "apply", "plan.json", *CONNECTION)


def dead_candidates(ground: Ground) -> None:
    ground.world()
    wishes = ("--election-type", "designation", "--designate", "1")
    ground.run("recover", "plan", "orders", *wishes, "--out", "plan.json", *CONNECTION)
    ground.run("recover", "apply", "plan.json", *CONNECTION)


def at_once(ground: Ground) -> None:
    with cluster_lock(ground.path, CLUSTER_ID), cluster_lock(ground.path, CLUSTER_ID):
        raise AssertionError("both had it")


def cut_short(ground: Ground) -> tuple[Any, Path]:
    """A run that was killed with the partition reordered, and its journal."""
    world = leaderless()
    with pytest.MonkeyPatch.context() as patch:
        watch_files(world, patch)
        world.kill_at = 6
        with pytest.raises(Killed):
            apply_plan(world.plan(DESIGNATE_2), **world.common(ground.path), consented=ANY_LOSS)
    world.revive()
    (journal,) = journal_files(ground.path, CLUSTER_ID)
    return world, journal


def applied_again(ground: Ground) -> None:
    world, _ = cut_short(ground)
    apply_plan(world.plan({AT: ElectionRequest(ElectionType.UNCLEAN)}), **world.common(ground.path), consented=ANY_LOSS)


def applied_in_a_restored_order(ground: Ground) -> None:
    world = leaderless()
    plan = world.plan(DESIGNATE_2)
    for one in (plan, simulated.planned_in_its_order(plan)):
        apply_plan(one, **world.common(ground.path), consented=ANY_LOSS)


def undone_where_the_topic_is_hidden(ground: Ground) -> None:
    world = leaderless()
    plan = world.plan(DESIGNATE_2)
    world.hidden[TOPIC] = "TOPIC_AUTHORIZATION_FAILED"
    undo_plan(plan, **world.common(ground.path))


def journal_of_another(ground: Ground) -> None:
    world, journal = cut_short(ground)
    ground.patch.setattr(simulated, "CLUSTER_ID", OTHER_CLUSTER)
    resume(journal, **world.common(ground.path))


def garbled_journal(ground: Ground) -> None:
    _, journal = cut_short(ground)
    first, *rest = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([first, b'{"line":"nonsense"}\n', *rest]))
    read_journal(journal)


def named(name: str | None, *journals: str) -> Cause:
    """A journal is looked for by this name among those."""

    def cause(ground: Ground) -> None:
        directory = cluster_directory(ground.path, CLUSTER_ID) / JOURNAL_DIRECTORY
        directory.mkdir(parents=True)
        for one in journals:
            (directory / one).write_text('{"line":"begin"}\n')
        find_journal(ground.path, CLUSTER_ID, name)

    return cause


def not_recorded(ground: Ground) -> None:
    world = leaderless()
    append = AppendOnlyFile.append

    def full(file: AppendOnlyFile, *records: Any) -> None:
        if records and file.path.name == "audit.jsonl":
            raise UsageError("cannot write: No space left on device")
        append(file, *records)

    ground.patch.setattr(AppendOnlyFile, "append", full)
    apply_plan(world.plan(DESIGNATE_2), **world.common(ground.path), consented=ANY_LOSS)


def replayed(ground: Ground) -> None:
    path = ground.path / "lost.kelr-rescue"
    save(path, [tail([batch(0, 10, epoch=4)], 0, 10, state=orders())], cluster_id=OTHER_CLUSTER)
    with open_dump(path) as dump:
        preparing = Preparing(dump, FakeCluster(), ReplayOptions(), timeout_s=0.5)  # type: ignore[arg-type]
        preparing.prepare(dump.manifest.tails, lambda *_: None)  # type: ignore[arg-type]


RECOVERY_CAUSES: Causes = {
    "loss-not-accepted": applied(Confirmation(yes=True), Consent.LOSS),
    "evidence-contradictory": applied(Confirmation(AcceptedLoss(9), yes=True), Consent.FORCE),
    "consent-missing": applied(Confirmation(), Consent.YES),
    "answer-was-no": answered,
    "no-terminal": not_asked,
    "reason-missing": lambda _: read_reason("REASON"),
    "broker-not-gone": lambda _: refuse_the_live(frozenset({2}), CLUSTER),
    "plan-other-cluster": another_cluster,
    "plan-expired": dry_run(later),
    "plan-stale": dry_run(reordered),
    "plan-garbled": edited_plan,
    "not-a-plan": plan_file('{"partitions": []}'),
    "not-json": plan_file("{,}"),
    "election-file": lambda ground: read_election_file(ground.file("elections.json", '{"topics": []}')),
    "every-choice-refused": dead_candidates,
    "another-kelr": at_once,
    "journal-open": applied_again,
    "order-restored": applied_in_a_restored_order,
    "orders-not-known": undone_where_the_topic_is_hidden,
    "no-open-journal": named(None),
    "journal-unknown": named("nobody", "abc-1.jsonl"),
    "journal-ambiguous": named("abc", "abc-1.jsonl", "abc-2.jsonl"),
    "journal-other-cluster": journal_of_another,
    "journal-garbled": garbled_journal,
    "internal-topic": lambda _: refuse_internal("__consumer_offsets"),
    "rescue-other-cluster": replayed,
    "not-recorded": not_recorded,
}
