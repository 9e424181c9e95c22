"""Defects that are planted: a net that lets one of them through catches nothing.

Each is found within `MOST` histories. How many it takes is told by ``pytest -s``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from kelr.durable import AppendOnlyFile
from kelr.errors import RefusedError, UsageError
from kelr.model import PlannedElection
from kelr.model.plan import Applied
from kelr.recovery import audit, undo
from kelr.recovery.apply import Run
from kelr.recovery.batches import Batch
from kelr.recovery.configs import ConfigWriter
from kelr.recovery.journal import Journal
from kelr.recovery.requests import Requests
from tests.histories.files import MemoryFiles
from tests.histories.history import play

MOST = 1000

Patch = Callable[..., None]


def _no_cut_of_a_torn_line(patch: Patch) -> None:
    patch(AppendOnlyFile, "_cut_torn_line", _nothing)


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


DEFECTS = (
    _no_cut_of_a_torn_line,
    _no_line_before_an_election,
    _no_line_before_an_order,
    _no_line_before_a_config,
    _nothing_is_synced,
    _journal_before_audit,
    _no_wait_for_late_requests,
    _no_wait_for_late_configs,
    _interrupted_in_the_last_read,
    _undo_leaves_the_audit_line_out,
)


def _found(seeds: Iterator[int]) -> tuple[int, str] | None:
    return next(((seed, wrong[0]) for seed in seeds if (wrong := play(seed).wrong)), None)


@pytest.mark.parametrize("plant", DEFECTS, ids=lambda plant: plant.__name__.strip("_"))
def test_a_planted_defect_is_found(plant: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch.setattr)
    found = _found(iter(range(MOST)))
    print(plant.__name__, found)
    assert found is not None, f"none of {MOST} histories finds it"


def _nothing(*_: object, **__: object) -> None:
    pass
