"""Defects that are planted: a net that lets one of them through catches nothing.

Each is found within `MOST` histories; ``pytest -s`` tells by which. And each history that is kept goes
wrong again where what mended it is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from kelr import durable
from kelr.durable import AppendOnlyFile
from kelr.errors import RefusedError, UsageError
from kelr.model import PlannedElection, TopicPartition
from kelr.model.plan import Applied
from kelr.recovery import (
    admin_client,
    apply,
    audit,
    clear_elr,
    configs,
    journal_reader,
    mending,
    restoring,
    resume,
    undo,
)
from kelr.recovery.apply import Run
from kelr.recovery.apply_context import Site
from kelr.recovery.batches import Batch
from kelr.recovery.configs import ConfigBack, ConfigWriter
from kelr.recovery.journal import Journal, JournalStep
from kelr.recovery.journal_reader import Journalled
from kelr.recovery.reading import States
from kelr.recovery.requests import Requests
from kelr.recovery.restoring import Back, order_of
from kelr.recovery.written_config import WrittenConfig
from tests.histories.files import MemoryFiles
from tests.histories.found import FOUND
from tests.histories.history import play

MOST = 1000

Patch = Callable[..., None]


def _no_cut_of_a_torn_line(patch: Patch) -> None:
    patch(durable, "is_torn", lambda _: False)


def _no_line_before_an_election(patch: Patch) -> None:
    patch(Journal, "intend_election", _nothing)


def _no_line_before_an_order(patch: Patch) -> None:
    patch(Journal, "intend_orders", _nothing)


def _no_line_before_a_config(patch: Patch) -> None:
    patch(Journal, "intend_config", _nothing)


def _nothing_is_synced(patch: Patch) -> None:
    patch(MemoryFiles, "fsync", _nothing)


def _journal_before_audit(patch: Patch) -> None:
    def record(run: Run, part: Sequence[PlannedElection], new: Sequence[Applied]) -> UsageError | RefusedError | None:
        try:
            run.journal.applied(new)
            audit.append(run.site.state_directory, *run._lines(part, new), ground=run.site.ground)
        except (UsageError, RefusedError) as error:
            return error
        return None

    patch(Run, "record", record)


def _no_wait_for_late_requests(patch: Patch) -> None:
    patch(Requests, "late_until", _nothing)


def _no_wait_for_late_configs(patch: Patch) -> None:
    patch(ConfigWriter, "_outlast", _nothing)


def _interrupted_in_the_last_read(patch: Patch) -> None:
    """It was told that nothing had begun."""
    patch(Batch, "begun", False)
    patch(Batch, "_to_its_end", lambda _batch, work: work())


def _undo_leaves_the_audit_line_out(patch: Patch) -> None:
    patch(undo, "_record", lambda *_: "")


def _no_refusal_of_open_journals(patch: Patch) -> None:
    patch(apply, "refuse_open_journals", _nothing)
    patch(clear_elr, "refuse_open_journals", _nothing)


def _a_lagging_broker_is_believed_about_orders(patch: Patch) -> None:
    """An order that is shown as the old one was taken for restored."""
    back, restore = restoring._back, restoring._restore

    def believed(requests: Requests, planned: PlannedElection, states: States | None, error: str | None) -> Back:
        state = None if states is None else states.get(planned.address)
        if state is not None and order_of(planned, state) == planned.restores:
            requests.moved.discard(planned.address)
        return back(requests, planned, states, error)

    patch(restoring, "_back", believed)
    patch(restoring, "_restore", lambda requests, moved, **_: restore(requests, moved, also_old=False))
    patch(restoring, "_look_for_rivals", _nothing)


def _ages_by_the_wall_clock(patch: Patch) -> None:
    """What the run before sent was taken to be as old as its last line."""

    requests_of, config_late_s = mending.requests_of, mending._config_late_s

    def age_s(site: Site, journalled: Journalled) -> float:
        return (site.ground.now_ms() - journalled.last_ms) / 1000

    def requests(site: Site, journal: Journal, journalled: Journalled) -> Requests:
        found = requests_of(site, journal, journalled)
        found.late = {sent: until - age_s(site, journalled) for sent, until in found.late.items()}
        return found

    patch(resume, "requests_of", requests)
    patch(undo, "requests_of", requests)
    patch(mending, "_config_late_s", lambda site, journalled: config_late_s(site, journalled) - age_s(site, journalled))


def _what_is_not_described_is_gone(patch: Patch) -> None:
    patch(States, "why_unread", lambda *_: None)


DEFECTS: Mapping[Callable[[Patch], None], int] = {
    _no_cut_of_a_torn_line: 318,
    _no_line_before_an_election: 0,
    _no_line_before_an_order: 1,
    _no_line_before_a_config: 3,
    _nothing_is_synced: 0,
    _journal_before_audit: 45,
    _no_wait_for_late_requests: 162,
    _no_wait_for_late_configs: 13,
    _interrupted_in_the_last_read: 45,
    _undo_leaves_the_audit_line_out: 23,
    _no_refusal_of_open_journals: 24,
    _a_lagging_broker_is_believed_about_orders: 523,
    _ages_by_the_wall_clock: 13,
    _what_is_not_described_is_gone: 2970073,
}
"""The seed that found each last: it is played first, and all up to `MOST` where it no longer does."""


def _a_config_is_restored_that_no_line_names(patch: Patch) -> None:
    back = ConfigWriter._back

    def told(writer: ConfigWriter, config: WrittenConfig, *read: Any) -> ConfigBack:
        found = back(writer, config, *read)
        if found.settled and not config.written:
            writer.journal.config_restored(config)
        return found

    patch(ConfigWriter, "_back", told)


def _a_topic_that_is_gone_is_one_that_cannot_be_read(patch: Patch) -> None:
    patch(configs, "UNKNOWN_TOPIC", "")


def _a_lagging_broker_is_believed_about_configs(patch: Patch) -> None:
    wait_for = ConfigWriter._wait_for

    def wait(writer: ConfigWriter, config: WrittenConfig, value: str | None) -> tuple[str, str | None]:
        return wait_for(writer, config, value) if value == config.old else writer.read(config)

    patch(ConfigWriter, "_wait_for", wait)


def _nobody_else_elects_by_the_old_order(patch: Patch) -> None:
    patch(restoring, "_elected_by_the_old_order", lambda *_: {})


def _a_result_of_the_run_before_is_that_of_the_election(patch: Patch) -> None:
    intent = journal_reader._intent

    def kept(found: Journalled, line: Mapping[str, Any]) -> None:
        before = {at: (one.applied, one.audited) for at, one in found.partitions.items()}
        intent(found, line)
        for at, (applied, audited) in before.items():
            found.partitions[at].applied, found.partitions[at].audited = applied, audited

    patch(journal_reader, "_intent", kept)


def _what_is_found_is_taken_to_be_on_the_disk(patch: Patch) -> None:
    patch(AppendOnlyFile, "_write_again", _nothing)


def _a_request_counts_from_when_it_was_written_down(patch: Patch) -> None:
    def mark(requests: Requests, step: JournalStep, asked: Iterable[TopicPartition]) -> None:
        until = requests.site.ground.steady_s() + requests.site.patience.late_s
        for at in asked:
            requests.late.setdefault((step, at), until)

    patch(Requests, "_mark", mark)


def _an_order_that_was_restored_is_believed(patch: Patch) -> None:
    patch(apply, "refuse_restored_orders", _nothing)


def _a_lagging_broker_is_believed_about_a_third_order(patch: Patch) -> None:
    patch(restoring, "_outlast_older_orders", _nothing)


def _an_unknown_topic_was_never_elected_for(patch: Patch) -> None:
    patch(admin_client, "_REFUSALS", admin_client._REFUSALS | {admin_client.UNKNOWN_TOPIC})


def _how_long_an_order_stands_is_not_counted_anew(patch: Patch) -> None:
    patch(restoring, "_seen_before", lambda *_: {})


MENDED = (
    _a_config_is_restored_that_no_line_names,
    _a_topic_that_is_gone_is_one_that_cannot_be_read,
    _a_lagging_broker_is_believed_about_configs,
    _nobody_else_elects_by_the_old_order,
    _a_result_of_the_run_before_is_that_of_the_election,
    _what_is_found_is_taken_to_be_on_the_disk,
    _ages_by_the_wall_clock,
    _a_request_counts_from_when_it_was_written_down,
    _an_order_that_was_restored_is_believed,
    _a_lagging_broker_is_believed_about_a_third_order,
    _an_unknown_topic_was_never_elected_for,
    _how_long_an_order_stands_is_not_counted_anew,
)
"""What was wrong before each of `FOUND` was mended, in their order."""


def _found(seeds: Iterator[int]) -> tuple[int, str] | None:
    return next(((seed, wrong[0]) for seed in seeds if (wrong := play(seed).wrong)), None)


@pytest.mark.parametrize("plant", DEFECTS, ids=lambda plant: plant.__name__.strip("_"))
def test_a_planted_defect_is_found(plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch.setattr)
    found = _found(iter((DEFECTS[plant], *range(MOST))))
    print(plant.__name__, found)
    assert found is not None, f"none of {MOST} histories finds it"


@pytest.mark.parametrize(("name", "plant"), list(zip(FOUND, MENDED, strict=True)), ids=list(FOUND))
def test_what_went_wrong_once_does_without_its_mending(
    name: str, plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch.setattr)
    assert play(*FOUND[name]).wrong


def _nothing(*_: object, **__: object) -> None:
    pass
