"""The watch's screen as text, whole, at several sizes; `--rewrite` writes what is drawn, for a person to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kelr.engine.watching import Counts
from kelr.model import WORST_FIRST, Situation, TopicError, TopicPartition
from kelr.view.styled import plain, width_of, written
from kelr.view.watch.gaps import Gaps
from kelr.view.watch.model import LogLine, RecoveryProgress, Shown, Silence, Trouble, listed
from kelr.view.watch.paint import cut
from kelr.view.watch.screen import Drawn, draw
from kelr.view.watch.state import Mode, Sort, WatchState
from kelr.view.watch.table import Renewed, table_screen
from tests.view.watched import BEGIN_MS, ORDERS_1, SECOND_MS, at_first, later

RECOVERY = RecoveryProgress("20231114-1", "recover apply", "ada@laptop", 40, 11, 1, SECOND_MS - 3000)
SILENT = Silence("no answer in time", BEGIN_MS)
NEVER_HEARD = Silence("no answer in time", None)
CANNOT = Trouble(SECOND_MS, "no broker answered any more within 10 s", "check that a broker is up")


def screen(shown: Shown, width: int, height: int, state: WatchState | None = None) -> str:
    drawn = drawn_at(shown, width, height, state)
    lines = [written(cut(line, width), color=False).rstrip() for line in drawn.lines]
    assert len(lines) == height
    assert max(map(width_of, lines)) <= width
    return "\n".join(lines) + "\n"


def drawn_at(shown: Shown, width: int, height: int, state: WatchState | None = None) -> Drawn:
    state = state or WatchState()
    return draw(shown, state, listed(shown.story, state.sort, state.wanted), width, height)


SCREENS: dict[str, tuple[Shown, int, int, WatchState]] = {
    "begin-80x24": (at_first(), 80, 24, WatchState()),
    "later-80x40": (later(at_first()), 80, 40, WatchState(selected=ORDERS_1)),
    "later-200x30": (replace(later(at_first()), recovery=RECOVERY), 200, 30, WatchState(sort=Sort.SINCE)),
    "not-renewed-80x24": (replace(later(at_first()), trouble=CANNOT, now_ms=SECOND_MS + 65_000), 80, 24, WatchState()),
    "no-controller-80x24": (replace(later(at_first()), silent=SILENT), 80, 24, WatchState()),
    "no-controller-40x10": (replace(later(at_first()), silent=SILENT), 40, 10, WatchState()),
    "filtered-120x20": (at_first(), 120, 20, WatchState(typing="pay")),
    "help-80x30": (at_first(), 80, 30, WatchState(mode=Mode.HELP)),
    "explain-80x24": (at_first(), 80, 24, WatchState(mode=Mode.EXPLAIN, selected=ORDERS_1, scroll=3)),
}


@pytest.mark.parametrize("name", SCREENS)
def test_the_whole_screen(name: str, as_expected: Callable[[str, str], None]) -> None:
    shown, width, height, state = SCREENS[name]
    as_expected(f"watch-{name}", screen(shown, width, height, state))


@pytest.mark.parametrize("mode", Mode)
def test_every_size_has_a_screen_that_fits(mode: Mode) -> None:
    shown = replace(later(at_first()), recovery=RECOVERY, trouble=CANNOT)
    for width in (1, 10, 39, 40, 60, 79, 80, 119, 200, 400):
        for height in (1, 5, 9, 10, 11, 14, 24, 25, 60):
            drawn = drawn_at(shown, width, height, WatchState(mode=mode, selected=ORDERS_1))
            assert len(drawn.lines) <= height, (width, height)


def test_the_explanation_is_that_of_kelr_explain() -> None:
    shown = at_first()
    block = replace(shown.explanation, width=100).full().block
    assert block is not None
    from kelr.view.explain_columns import Explained  # noqa: PLC0415

    detail = shown.details[ORDERS_1]
    told = [written(line, color=False).rstrip() for line in block(Explained(detail.decision, detail.taken_at_ms))]
    state = WatchState(mode=Mode.EXPLAIN, selected=ORDERS_1)
    assert "\n".join(told[:60]).strip() in screen(shown, 100, 90, state)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"trouble": CANNOT}, id="the look failed"),
        pytest.param({"silent": SILENT}, id="no controller answered"),
        pytest.param({"now_ms": BEGIN_MS + 8001}, id="a look hangs, or nobody looks"),
    ],
)
def test_what_may_be_out_of_date_is_marked_in_every_row(changes: dict[str, Any]) -> None:
    fine = screen(replace(at_first(), now_ms=BEGIN_MS + 8000), 100, 24)
    old = screen(replace(at_first(), **changes), 100, 24)
    assert "*" not in fine
    rows = [line for line in old.splitlines() if line[2:].startswith(("orders:", "payments:", "secret:"))]
    assert len(rows) == 4
    assert all(line[1] == "*" for line in rows)
    assert "* not renewed" in old.splitlines()[-1]


def test_a_look_that_takes_long_is_not_old_for_that() -> None:
    shown = replace(at_first(), now_ms=BEGIN_MS + 60_000)
    assert shown.story is not None
    assert shown.stale
    slow = replace(shown.story, sight=replace(shown.story.sight, took_ms=30_000))
    assert not replace(shown, story=slow).stale
    assert replace(shown, story=slow, now_ms=BEGIN_MS + 70_000).stale


@pytest.mark.parametrize("width", [40, 50, 60, 80, 200])
def test_the_age_is_never_cut_off(width: int) -> None:
    title = "kafka-1.europe-west.example.com:9092,... orders-* payments-*"
    shown = replace(at_first(), title=title, now_ms=BEGIN_MS + 3_723_000)
    first, *_ = screen(shown, width, 10, WatchState(paused=True)).splitlines()
    assert first.endswith("  22:13:20 UTC, 1 h 02 m ago  PAUSED")
    assert first.startswith("kelr watch") is (width >= 60)
    assert (title in first) is (width == 200)
    renewed = Renewed(title, BEGIN_MS + 5000, BEGIN_MS, [], read=True)
    (head, *_), _ = table_screen(renewed, 0, width, 10)
    assert written(head, color=False).endswith("  22:13:20 UTC, 5 s ago")


def test_a_topic_that_could_not_be_read_marks_its_rows_alone() -> None:
    shown = at_first()
    assert shown.story is not None
    sight = replace(
        shown.story.sight,
        not_renewed=frozenset({TopicPartition("payments", 0)}),
        topic_errors=(TopicError("payments", "TOPIC_AUTHORIZATION_FAILED"),),
    )
    text = screen(replace(shown, story=replace(shown.story, sight=sight)), 100, 24)
    assert " *payments:0" in text
    assert "> orders:2" in text
    assert "  orders:1" in text
    assert "not read: payments (TOPIC_AUTHORIZATION_FAILED)" in text


def test_logs_that_are_older_than_the_looks_say_so() -> None:
    late = replace(at_first(), now_ms=BEGIN_MS + 30_000)
    assert "* orders:2, logs as of 22:13:20, 30 s ago, not renewed since" in screen(late, 100, 24)
    row = next(line for line in screen(late, 200, 24).splitlines() if line.startswith(">*orders:2"))
    assert row.endswith("* as of 22:13:20")


def test_before_the_first_look_and_with_nothing_in_trouble() -> None:
    nothing = replace(at_first(), story=None, details={})
    assert "nothing was read so far" in screen(nothing, 80, 24)
    assert "nothing read yet, for 1 s" in screen(nothing, 80, 24)
    shown = at_first()
    assert shown.story is not None
    healthy = {at: replace(one, situation=Situation.HEALTHY) for at, one in shown.story.sight.partitions.items()}
    settled = {at: replace(one, state=replace(one.state, isr=one.state.replicas)) for at, one in healthy.items()}
    calm = replace(shown, story=replace(shown.story, sight=replace(shown.story.sight, partitions=settled)))
    assert "  nothing is leaderless or unsafe\n" in screen(calm, 80, 24)
    told = screen(replace(calm, trouble=CANNOT), 80, 24)
    assert "  nothing was leaderless or unsafe at 22:13:20; how it stands now is not known\n" in told
    assert "nothing is leaderless" not in told
    for silent in (SILENT, NEVER_HEARD):
        for trouble in (None, CANNOT):
            told = screen(replace(calm, silent=silent, trouble=trouble), 80, 24)
            assert "  nothing is leaderless or unsafe by what brokers told; it may be out of date\n" in told
            assert "nothing was leaderless" not in told
    # However narrow it is, what takes the sentence back is there, too.
    told = screen(replace(calm, silent=SILENT), 40, 16)
    assert "\n  nothing is leaderless or unsafe by\n  what brokers told; it may be out of\n  date\n" in told
    assert "no topic of the 4 partitions here holds 'zzz'" in screen(at_first(), 80, 24, WatchState(filter="zzz"))


@pytest.mark.parametrize("changes", [{}, {"trouble": CANNOT}, {"silent": NEVER_HEARD}])
@pytest.mark.parametrize(
    ("read", "denied", "says"),
    [
        (0, False, "  no partition was found; topics without DESCRIBE are not listed\n"),
        (0, True, "  no partition could be read\n"),
        (3, True, " of what could be read"),
    ],
)
def test_of_what_nobody_read_it_is_not_said_that_it_is_healthy(
    changes: dict[str, Any], read: int, *, denied: bool, says: str
) -> None:
    shown = at_first()
    assert shown.story is not None
    sight = replace(
        shown.story.sight,
        partitions={},
        counts=Counts(read=read),
        topic_errors=(TopicError("secret", "TOPIC_AUTHORIZATION_FAILED"),) if denied else (),
    )
    told = screen(replace(shown, story=replace(shown.story, sight=sight), **changes), 120, 24)
    assert says in told
    assert any(f"nothing {verb} leaderless or unsafe" in told for verb in ("is", "was")) is (read > 0)


def test_a_controller_that_no_look_has_heard_is_silent_since_nobody_knows_when() -> None:
    head = screen(replace(at_first(), silent=NEVER_HEARD), 120, 24)
    assert "NO CONTROLLER ANSWERS since the watch began or before (no answer in time): what brokers tell may" in head
    gaps = Gaps(steps=False)
    (begins,) = gaps.lines(None, NEVER_HEARD, BEGIN_MS)
    assert begins.text.startswith("no controller answers since the watch began or before (no answer in time): ")
    (ends,) = gaps.lines(None, None, SECOND_MS)
    assert (ends.what, ends.text) == ("controller-again", "a controller answers now")


def test_the_worst_situation_is_first_and_all_have_a_place() -> None:
    assert set(WORST_FIRST) == set(Situation)
    rows = listed(at_first().story, Sort.SITUATION, "").rows
    assert [str(at) for at in rows] == ["orders:2", "orders:1", "payments:0", "secret:0"]


def test_no_list_is_cut_without_saying_so() -> None:
    shown = at_first()
    lines = [LogLine(BEGIN_MS + number, f"orders:{number}", ()) for number in range(50)]
    text = screen(replace(shown, log=lines, forgotten=7), 80, 24)
    told = text.count("22:13:20 orders:")
    assert f"({50 - told + 7} earlier)" in text
    assert text.splitlines()[-2].endswith("orders:49:")


def test_the_newest_change_is_told_however_long_it_is() -> None:
    lines = [LogLine(BEGIN_MS, "orders:1", plain("short")), LogLine(SECOND_MS, "", plain("long words " * 80))]
    told = screen(replace(at_first(), log=lines), 80, 24).splitlines()
    (begin,) = (at for at, line in enumerate(told) if line.startswith("-- changes"))
    assert "(1 earlier)" in told[begin]
    assert told[begin + 1].startswith("22:13:22 long words long words")
    assert told[-2].endswith(">")


# kelr describe --watch.


def test_a_renewed_table_scrolls_and_says_how_old_it_is() -> None:
    rows = [plain(f"row {number}") for number in range(20)]
    renewed = Renewed("kafka-1:9092", SECOND_MS, BEGIN_MS, rows, read=True)
    lines, page = table_screen(renewed, 3, 60, 8)
    told = [written(line, color=False) for line in lines]
    assert page == 6
    assert told == [
        "kelr describe --watch  kafka-1:9092  22:13:20 UTC, 2 s ago",
        *(f"row {number}" for number in range(3, 9)),
        "q quit  up, down, PgUp, PgDn  p pause  r now  lines 4 to 9 of 20",
    ]
    end, _ = table_screen(renewed, 99, 60, 8)
    assert written(end[-2], color=False) == "row 19"


def test_a_table_that_is_not_renewed_says_so_and_stays() -> None:
    renewed = Renewed("c", SECOND_MS, BEGIN_MS, [plain("row")], read=True, trouble=CANNOT, paused=True)
    lines, page = table_screen(renewed, 0, 80, 6)
    told = [written(line, color=False) for line in lines]
    assert (page, told[0]) == (2, "kelr describe --watch  c  22:13:20 UTC, 2 s ago  PAUSED")
    silent, _ = table_screen(replace(renewed, trouble=None, silent=SILENT), 0, 80, 6)
    assert written(silent[1], color=False).startswith("NO CONTROLLER ANSWERS since 22:13:20 (no answer in time)")
    assert told[1:4] == [
        "NOT RENEWED since 22:13:22: no broker answered any more within 10 s; check that",
        "a broker is up",
        "row",
    ]
    nothing = Renewed("c", SECOND_MS, BEGIN_MS, [], read=False)
    assert "nothing read yet, for 2 s" in written(table_screen(nothing, 0, 80, 6)[0][0], color=False)
