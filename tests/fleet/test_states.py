"""A log that is told in several runs is told as in one go."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import BadInputError
from kelr.fleet import telling
from kelr.fleet.states import State
from kelr.fleet.telling import HistoryBuilder, Openings, Told, tell
from kelr.replay import records as rec
from kelr.replay.history import History, Interest, Window, attribution
from tests.fleet.random_logs import BEGIN, TOPICS, logs
from tests.properties import examples

ORDERS = TOPICS["orders"]


@pytest.fixture(autouse=True, params=[10_000, 3], ids=["usual batches", "small batches"])
def full_batch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many records a batch has that may go on in the next one."""
    monkeypatch.setattr(attribution, "FULL_BATCH", request.param)
    monkeypatch.setattr(telling, "FULL_BATCH", request.param)


def kept(state: State | None) -> State | None:
    return None if state is None else State.unpacked(state.packed())


@examples(8)
@given(logs, st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_runs_that_go_on_tell_what_one_go_tells(batches: list[rec.RecordBatch], sizes: Sequence[int]) -> None:
    """Each run reads what the one before it did not tell, after something that it did."""
    whole = list(tell(batches))
    told: list[Told] = []
    state: State | None = None
    end = 0
    for piece in in_pieces(batches, sizes):
        end += len(piece)
        if batches[end - 1].of_checkpoint and end < len(batches) and batches[end].of_checkpoint:
            continue  # a checkpoint is read whole
        teller = HistoryBuilder(kept(state))
        start = 0 if state is None else state.next_offset
        for batch in batches[:end]:
            if telling.end_of(batch) > start or not batch.of_checkpoint:
                told += teller.take(batch)
        told += teller.finish()
        state = teller.state()
    ends = [one for one in told if one.row.get("event") == "end"]
    assert [one for one in told if one not in ends[:-1]] == whole


@examples(20)
@given(logs)
def test_no_state_is_kept_where_a_history_waits_for_more(batches: list[rec.RecordBatch]) -> None:
    history, openings = History(Interest(), Window()), Openings()
    for batch in batches:
        list(history.take(batch))
        opened = openings.take(batch)
        assert history.settled or opened


def in_pieces(batches: Sequence[rec.RecordBatch], sizes: Sequence[int]) -> Iterator[Sequence[rec.RecordBatch]]:
    at = 0
    for size in [*sizes, len(batches)]:
        if at < len(batches):
            yield batches[at : at + size]
        at += size


def made_state() -> State:
    builder = HistoryBuilder()
    list(builder.take(rec.RecordBatch(0, 1, 5_000, BEGIN)))
    state = builder.state()
    assert state is not None
    return state


def test_a_state_says_where_it_stands() -> None:
    state = made_state()
    assert state.next_offset == len(BEGIN)
    assert (state.at.epoch, state.at.timestamp_ms) == (1, 5_000)
    assert kept(state) == state


def test_records_that_are_missing_are_no_place_to_go_on() -> None:
    state, late = made_state(), rec.RecordBatch(100, 1, 6_000, (rec.TopicRemoved(ORDERS),))
    for begun, end in ((state, len(BEGIN)), (None, 0)):
        with pytest.raises(BadInputError, match=f"records {end} to 99 of the metadata log are missing"):
            list(tell([late], begun))


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("checkpoint", lambda data: data[:50], "is not whole"),
        ("checkpoint", lambda data: gzip.compress(gzip.decompress(data)[:-60]), "is not whole"),
        ("checkpoint", lambda _: None, "checkpoint is missing"),
        ("beside.json", lambda _: None, r"beside\.json is missing"),
        ("beside.json", lambda _: b"{", "is damaged"),
        ("beside.json", lambda _: b"[]", "it is none"),
        ("beside.json", lambda data: data.replace(b'"at"', b'"et"'), "'at'"),
        ("beside.json", lambda data: data.replace(b'"voters"', b'"waters"'), "'voters'"),
        ("beside.json", lambda data: data.replace(b'"reorders"', b'"borders"'), "'reorders'"),
        ("beside.json", lambda data: data.replace(b'"last_led"', b'"last_red"'), "'last_led'"),
        ("beside.json", lambda data: json.dumps(json.loads(data) | {"format_version": 2}).encode(), "version 2"),
    ],
)
def test_a_damaged_state_is_refused(name: str, change: Callable[[bytes], bytes | None], says: str) -> None:
    files: dict[str, bytes] = made_state().files()
    changed = change(files.pop(name))
    if changed is not None:
        files[name] = changed
    with pytest.raises(BadInputError, match=says):
        HistoryBuilder(State.read(files))
