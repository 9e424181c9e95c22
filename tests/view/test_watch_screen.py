"""The watch's screen, driven by Textual's pilot: whole, at several sizes (`--rewrite` writes what is drawn, for a
person to read), and by keys and mouse."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from textual.events import Key
from textual.pilot import Pilot

from kelr.engine.watching import Counts
from kelr.model import WORST_FIRST, ReplicaLog, Situation, TopicError, TopicPartition
from kelr.view.explain_columns import Explained
from kelr.view.log_bars import log_bars
from kelr.view.log_picture import picture_texts
from kelr.view.styled import plain, width_of, written
from kelr.view.watch.app import LiveApp, Pane, TableApp, TextScreen, WatchApp
from kelr.view.watch.head import first_line, head_lines
from kelr.view.watch.lines import WatchLine
from kelr.view.watch.model import Gaps, Order, Printed, RecoveryProgress, Shown, Silence, Trouble
from kelr.view.watch.rows import GAP, Sort, columns_that_fit, listed, row_cells
from tests.incident import INCIDENT
from tests.pictures import text_of
from tests.view.watched import BEGIN_MS, ORDERS_1, SECOND_MS, at_first, later

RECOVERY = RecoveryProgress("20231114-1", "recover apply", "ada@laptop", 40, 11, 1, SECOND_MS - 3000)
SILENT = Silence("no answer in time", BEGIN_MS)
NEVER_HEARD = Silence("no answer in time", None)
CANNOT = Trouble(SECOND_MS, "no broker answered any more within 10 s", "check that a broker is up")
T = TypeVar("T")
Does = Callable[[Pilot[bool]], Awaitable[None]]


class Fixed(WatchApp):
    """A screen that shows what it is given, once a key asks for it."""

    def __init__(self, shown: Shown) -> None:
        super().__init__()
        self.given = shown

    def step(self) -> float:
        self.show(replace(self.given, paused=self.paused))
        return 3600.0


async def settled(pilot: Pilot[bool]) -> None:
    """Everything that was asked for is on the screen."""
    for _ in range(3):
        await pilot.pause()


def played(app: LiveApp, width: int, height: int, does: Does | None = None) -> str:
    """The screen at this size, once this was done at it."""

    async def play() -> str:
        async with app.run_test(size=(width, height)) as pilot:
            await settled(pilot)
            if does is not None:
                await does(pilot)
                await settled(pilot)
            return text_of(app.export_screenshot())

    return asyncio.run(play())


def presses(*keys: str) -> Does:
    async def press(pilot: Pilot[bool]) -> None:
        for key in keys:
            await pilot.press(key)
            await settled(pilot)

    return press


def screen(shown: Shown, width: int, height: int, *keys: str) -> str:
    text = played(Fixed(shown), width, height, presses(*keys))
    lines = text.splitlines()
    assert len(lines) <= height
    assert max(map(width_of, lines), default=0) <= width
    return text


def screens(size: tuple[int, int], *shown: Shown) -> list[str]:
    """The screen of each, of one size, in one app: another one costs as much as ten keys."""
    app, found = Fixed(shown[0]), []

    async def show(pilot: Pilot[bool]) -> None:
        for app.given in shown:
            app.renew()
            await settled(pilot)
            found.append(text_of(app.export_screenshot()))

    played(app, *size, show)
    return found


def seen_after(app: Fixed, see: Callable[[], T], *steps: str) -> list[T]:
    """What is seen in the one app after the keys of each step."""
    found = []

    async def press(pilot: Pilot[bool]) -> None:
        for keys in steps:
            await presses(*keys.split())(pilot)
            found.append(see())

    played(app, 100, 30, press)
    return found


def after(app: Fixed, *keys: str) -> Fixed:
    """The app once these were pressed."""
    played(app, 100, 30, presses(*keys))
    return app


SCREENS: dict[str, tuple[Shown, int, int, tuple[str, ...]]] = {
    "begin-80x24": (at_first(), 80, 24, ()),
    "later-100x30": (later(at_first()), 100, 30, ("down",)),
    "later-160x50": (replace(later(at_first()), recovery=RECOVERY), 160, 50, ("s", "s")),
    "not-renewed-80x24": (replace(later(at_first()), trouble=CANNOT, now_ms=SECOND_MS + 65_000), 80, 24, ()),
    "no-controller-80x24": (replace(later(at_first()), silent=SILENT), 80, 24, ()),
    "no-controller-40x12": (replace(later(at_first()), silent=SILENT), 40, 12, ()),
    "filtered-120x20": (at_first(), 120, 20, ("slash", "p", "a", "y")),
    "help-80x30": (at_first(), 80, 30, ("question_mark",)),
    "explain-80x24": (at_first(), 80, 24, ("down", "enter", "down")),
}


@pytest.mark.parametrize("name", SCREENS)
def test_the_whole_screen(name: str, as_expected: Callable[[str, str], None]) -> None:
    shown, width, height, keys = SCREENS[name]
    as_expected(f"watch-{name}", screen(shown, width, height, *keys))


@pytest.mark.parametrize("keys", [(), ("enter",), ("question_mark",)])
def test_every_size_has_a_screen_that_fits(keys: tuple[str, ...]) -> None:
    app = Fixed(replace(later(at_first()), recovery=RECOVERY, trouble=CANNOT))

    async def resized(pilot: Pilot[bool]) -> None:
        await presses(*keys)(pilot)
        for width, height in ((1, 1), (10, 5), (39, 9), (40, 60), (80, 5), (400, 10), (79, 24), (200, 60)):
            await pilot.resize_terminal(width, height)
            await settled(pilot)
            lines = text_of(app.export_screenshot()).splitlines()
            assert len(lines) <= height
            assert max(map(width_of, lines)) <= width

    assert "kelr watch" in played(app, 80, 24, resized)


def test_the_explanation_is_that_of_kelr_explain() -> None:
    shown, (width, height) = at_first(), (100, 90)
    detail = shown.details[ORDERS_1]
    app = Fixed(shown)
    rooms: list[int] = []

    async def explain(pilot: Pilot[bool]) -> None:
        await presses("down", "enter")(pilot)
        rooms.append(app.screen.query_one(Pane).room)

    told = played(app, width, height, explain)
    block = replace(shown.explanation, width=rooms[0]).full().block
    assert block is not None
    lines = [
        written(line, color=False).rstrip()
        for line in block(Explained(detail.decision, detail.taken_at_ms, logs=detail.logs))
    ]
    assert "\n".join(lines[:60]).strip() in told


def explains(app: WatchApp) -> bool:
    """Whether there is a text in the place of the list."""
    return isinstance(app.screen, TextScreen)


def rows_of(text: str) -> list[str]:
    """The lines of the list, without what stands above and below it."""
    begin = next(at for at, line in enumerate(text.splitlines()) if line.startswith("PARTITION"))
    rows = text.splitlines()[begin + 1 :]
    return rows[: next(at for at, line in enumerate(rows) if not line[1:].startswith(("orders:", "pay", "secret:")))]


def test_what_may_be_out_of_date_is_marked_in_every_row() -> None:
    shown = at_first()
    failed, silent = replace(shown, trouble=CANNOT), replace(shown, silent=SILENT)
    hangs, still_fine = replace(shown, now_ms=BEGIN_MS + 8001), replace(shown, now_ms=BEGIN_MS + 8000)
    fine, *old = screens((100, 24), still_fine, failed, silent, hangs)
    assert "*" not in fine
    for text in old:
        assert len(rows_of(text)) == 4
        assert all(row[0] == "*" for row in rows_of(text))
        assert "* not renewed" in text


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
    shown = replace(at_first(), title=title, now_ms=BEGIN_MS + 3_723_000, paused=True)
    first = written(head_lines(shown, width)[0], color=False)
    assert first.endswith("  22:13:20 UTC, 1 h 02 m ago  PAUSED")
    assert first.startswith("kelr watch") is (width >= 60)
    assert (title in first) is (width == 200)
    assert width_of(first) <= width
    age = [*plain("  22:13:20 UTC, 5 s ago")]
    assert written(first_line("kelr describe --watch", title, age, width), color=False).endswith(age[0].text)


def test_a_topic_that_could_not_be_read_marks_its_rows_alone() -> None:
    shown = at_first()
    assert shown.story is not None
    sight = replace(
        shown.story.sight,
        not_renewed=frozenset({TopicPartition("payments", 0)}),
        topic_errors=(TopicError("payments", "TOPIC_AUTHORIZATION_FAILED"),),
    )
    text = screen(replace(shown, story=replace(shown.story, sight=sight)), 100, 24)
    assert [row.split()[0] for row in rows_of(text)] == ["orders:2", "orders:1", "*payments:0", "secret:0"]
    assert "not read: payments (TOPIC_AUTHORIZATION_FAILED)" in text


def test_logs_that_are_older_than_the_looks_say_so() -> None:
    late = replace(at_first(), now_ms=BEGIN_MS + 30_000)
    assert "* orders:2, logs as of 22:13:20, 30 s ago, not renewed since" in screen(late, 100, 24)
    assert rows_of(screen(late, 200, 24))[0].endswith("* as of 22:13:20")


def test_before_the_first_look_and_with_nothing_in_trouble() -> None:
    shown = at_first()
    assert shown.story is not None
    healthy = {at: replace(one, situation=Situation.HEALTHY) for at, one in shown.story.sight.partitions.items()}
    settled = {at: replace(one, state=replace(one.state, isr=one.state.replicas)) for at, one in healthy.items()}
    calm = replace(shown, story=replace(shown.story, sight=replace(shown.story.sight, partitions=settled)))
    silent = [replace(calm, silent=one, trouble=other) for one in (SILENT, NEVER_HEARD) for other in (None, CANNOT)]
    nothing, calm_one, failed, *out_of_date = screens(
        (80, 24), replace(shown, story=None, details={}), calm, replace(calm, trouble=CANNOT), *silent
    )
    assert "nothing was read so far" in nothing
    assert "nothing read yet, for 1 s" in nothing
    assert "\nnothing is leaderless or unsafe\n" in calm_one
    assert "\nnothing was leaderless or unsafe at 22:13:20; how it stands now is not known\n" in failed
    assert "nothing is leaderless" not in failed
    assert len(out_of_date) == 4
    for told in out_of_date:
        assert "\nnothing is leaderless or unsafe by what brokers told; it may be out of date\n" in told
        assert "nothing was leaderless" not in told
    # However narrow it is, what takes the sentence back is there, too.
    told = screen(silent[0], 40, 20)
    assert "\nnothing is leaderless or unsafe by what\nbrokers told; it may be out of date\n" in told
    assert "none of the 4 partitions here holds 'zzz'" in screen(at_first(), 80, 24, "slash", "z", "z", "z", "enter")


def test_of_what_nobody_read_it_is_not_said_that_it_is_healthy() -> None:
    shown, denied = at_first(), (TopicError("secret", "TOPIC_AUTHORIZATION_FAILED"),)
    assert shown.story is not None
    sight = replace(shown.story.sight, partitions={}, counts=Counts(read=0))
    cases = {
        "no partition was found; topics without DESCRIBE are not listed\n": sight,
        "no partition could be read\n": replace(sight, topic_errors=denied),
        " of what could be read": replace(sight, topic_errors=denied, counts=Counts(read=3)),
    }
    stories = [replace(shown, story=replace(shown.story, sight=one)) for one in cases.values()]
    troubles: tuple[dict[str, Any], ...] = ({}, {"trouble": CANNOT}, {"silent": NEVER_HEARD})
    told = screens((120, 24), *(replace(one, **changes) for changes in troubles for one in stories))
    for (says, of), text in zip([*cases.items()] * len(troubles), told, strict=True):
        read = of.counts.read
        assert says in text
        assert any(f"nothing {verb} leaderless or unsafe" in text for verb in ("is", "was")) is (read > 0)
        assert f"{read} partitions:  {'0' if read else '?'} leaderless" in text


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


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("situation", Situation)
def test_the_situation_has_a_column_beside_who_is_waited_for(width: int, situation: Situation) -> None:
    (cells,) = row_cells(later(at_first()), [ORDERS_1])
    row = {**cells, "PARTITION": plain(" a-topic-of-some-length:12"), "SITUATION": plain(situation)}
    row["WAITS FOR"] = plain("broker 1, 2 or 3")
    columns = columns_that_fit([row], width)
    assert columns["SITUATION"] >= len(situation)
    assert columns["WAITS FOR"] >= 14
    assert sum(columns.values()) + GAP * (len(columns) - 1) <= width


def many(number: int) -> Shown:
    """So many partitions in trouble."""
    shown = at_first()
    assert shown.story is not None
    sight, since = shown.story.sight, shown.story.since
    rows = [TopicPartition("orders", at) for at in range(100, 100 + number)]
    sight = replace(sight, partitions=dict.fromkeys(rows, sight.partitions[ORDERS_1]))
    return replace(shown, story=replace(shown.story, sight=sight, since=dict.fromkeys(rows, since[ORDERS_1])))


def test_no_list_is_cut_without_saying_so(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = at_first()
    lines = [WatchLine(BEGIN_MS + number, "", f"orders:{number}", ()) for number in range(50)]
    text = screen(replace(shown, log=lines, forgotten=7), 80, 24)
    assert "(7 earlier)" in text
    assert text.splitlines()[-2].endswith("orders:49:")
    assert "orders:0:" in screen(replace(shown, log=lines), 80, 24, "tab", "tab", "g")
    monkeypatch.setattr("kelr.view.watch.rows.MOST_ROWS", 1_500)
    shown = many(1_507)
    told = screen(shown, 80, 24, "end")
    assert " 1,507 partitions by situation, the first 1,500 of them " in told
    assert " orders:1599 " in told
    assert " 1 of 1,507 hold 's:1606' by situation " in screen(shown, 80, 24, "slash", "s", "colon", *"1606")


def test_rows_say_what_is_known_wherever_the_list_is_scrolled_and_whatever_it_was_before() -> None:
    """Of a long list only the rows on the screen have cells."""
    app = Fixed(many(400))
    story = app.given.story
    assert story is not None

    def shown(numbers: range) -> Shown:
        left = {at: one for at, one in story.sight.partitions.items() if at.partition in numbers}
        return replace(app.given, story=replace(story, sight=replace(story.sight, partitions=left)))

    def numbers() -> list[int]:
        rows = [line.split()[0] for line in text_of(app.export_screenshot()).splitlines() if line[1:8] == "orders:"]
        return [int(row.removeprefix("orders:")) for row in rows]

    async def scroll(pilot: Pilot[bool]) -> None:
        size = len(numbers())
        assert numbers() == list(range(100, 100 + size))
        await presses("end")(pilot)
        assert numbers() == list(range(500 - size, 500))
        app.given = shown(range(300, 500))
        app.renew()
        await settled(pilot)
        assert numbers() == list(range(500 - size, 500))
        await presses("home")(pilot)
        assert numbers() == list(range(300, 300 + size))
        app.given = shown(range(100, 600))
        app.renew()
        await settled(pilot)
        assert 300 in numbers()
        first = numbers()[0]
        assert numbers() == list(range(first, first + size))
        await presses("home")(pilot)
        assert numbers() == list(range(100, 100 + size))

    played(app, 80, 24, scroll)


def test_the_newest_change_is_told_however_long_it_is() -> None:
    lines = [
        WatchLine(BEGIN_MS, "", "orders:1", plain("short")),
        WatchLine(SECOND_MS, "", "", plain("long words " * 80 + "end")),
    ]
    app = Fixed(replace(at_first(), log=lines[:1]))

    async def told(_: Pilot[bool]) -> None:
        app.given = replace(app.given, log=lines)
        app.renew()

    assert played(app, 80, 24, told).splitlines()[-2].endswith("words end")


def test_what_comes_from_elsewhere_drives_no_terminal() -> None:
    shown = replace(
        at_first(), title="[bold]k[/]\x1b[2J:9092", log=[WatchLine(BEGIN_MS, "", "", plain("a\x1b[2Jb [red]\x07"))]
    )
    told = screen(shown, 100, 24, "slash", "left_square_bracket", "slash")
    assert "[bold]k[/]\\x1b[2J:9092" in told
    assert "a\\x1b[2Jb [red]\\x07" in told
    assert "0 of 4 hold '[/'" in told


@pytest.mark.parametrize("no_color", [None, "1"])
def test_colours_are_shown_unless_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch, no_color: str | None) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    app = Fixed(at_first())
    pictures: list[str] = []

    async def drawn(_: Pilot[bool]) -> None:
        pictures.append(app.export_screenshot())

    played(app, 80, 24, drawn)
    colours = [bytes.fromhex(one) for one in re.findall(r"\.\S+-r\d+ \{ fill: ?#(\w{6})", pictures[0])]
    assert any(max(one) - min(one) > 20 for one in colours) is (no_color is None)


# Keys and mouse.


def test_moving_stays_in_the_list() -> None:
    app = Fixed(many(100))
    chosen = {
        "": "orders:100",
        "up": "orders:100",
        "down j k": "orders:101",
        "end up": "orders:198",
        "g G k": "orders:198",
        "end down": "orders:199",
        "end pageup g": "orders:100",
        "end home": "orders:100",
    }
    *seen, by_page, by_space = seen_after(app, lambda: str(app.partitions.chosen), *chosen, "pagedown", "home space")
    assert seen == [*chosen.values()]
    assert by_page == by_space > "orders:104"


def test_the_chosen_row_stays_with_its_partition_and_its_line_and_then_with_its_place() -> None:
    app = Fixed(many(60))
    story = app.given.story
    assert story is not None

    def without(*numbers: int) -> Shown:
        left = {at: one for at, one in story.sight.partitions.items() if at.partition not in numbers}
        return replace(app.given, story=replace(story, sight=replace(story.sight, partitions=left)))

    async def come_and_go(pilot: Pilot[bool]) -> None:
        await presses("pagedown", "pagedown", "up")(pilot)
        chosen = app.partitions.chosen
        assert chosen is not None
        line = app.partitions.cursor_row - app.partitions.scroll_y
        for shown in (without(100, 101, chosen.partition + 1), without(), without(103)):
            app.given = shown
            app.renew()
            await settled(pilot)
            assert app.partitions.chosen == chosen
            assert app.partitions.cursor_row - app.partitions.scroll_y == line
        following = TopicPartition(chosen.topic, chosen.partition + 1)
        app.given = without(103, chosen.partition)
        app.renew()
        await settled(pilot)
        assert app.partitions.chosen == following
        app.given = without(*range(101, 200))
        app.renew()
        await settled(pilot)
        assert app.partitions.chosen == TopicPartition("orders", 100)

    played(app, 80, 24, come_and_go)


def test_sorting_comes_round_and_a_title_can_be_clicked() -> None:
    app = Fixed(at_first())

    def title() -> str:
        return next(word for word in text_of(app.export_screenshot()).split() if word.endswith("^"))

    titles = seen_after(app, title, "", *["s"] * len(Sort))
    assert titles[0] == titles[-1] == "SITUATION^"
    assert len(set(titles)) == len(Sort)

    async def clicked(pilot: Pilot[bool]) -> None:
        await pilot.click("#list", offset=(2, 1))

    assert "PARTITION^" in played(Fixed(at_first()), 100, 24, clicked)


def test_a_filter_is_typed_kept_and_ended() -> None:
    app = Fixed(at_first())
    typed = "slash p a x backspace q"
    seen = {
        typed: ("paq", True),
        "enter": ("paq", False),
        "escape": ("", False),
        f"{typed} escape": ("", False),
        f"{typed} enter slash z escape": ("paq", False),
        "slash ctrl+u enter": ("", False),
    }
    assert seen_after(app, lambda: (app.wanted, app.filter.display and app.filter.has_focus), *seen) == [*seen.values()]


def test_keys_may_come_faster_than_they_are_looked_at() -> None:
    app = Fixed(at_first())

    async def type_fast(pilot: Pilot[bool]) -> None:
        for key, character in (("slash", "/"), ("p", "p"), ("a", "a"), ("y", "y"), ("enter", "\r"), ("s", "s")):
            app.post_message(Key(key, character))
        await settled(pilot)

    assert "1 of 4 hold 'pay'" in played(app, 100, 24, type_fast)
    assert (app.wanted, app.filter.display, app.sort) == ("pay", False, Sort.WAITS_FOR)


def test_enter_explains_and_esc_goes_back() -> None:
    app = Fixed(at_first())

    async def explain(pilot: Pilot[bool]) -> None:
        await presses("down", "enter")(pilot)
        assert explains(app)
        assert app.on_screen == [ORDERS_1]
        await presses("down", "pagedown")(pilot)
        assert app.screen.query_one(Pane).scroll_y > 1
        # What is read while it is open is shown, and the list is as it was.
        app.given = replace(app.given, title="another:9092")
        app.renew()
        await settled(pilot)
        assert "another:9092" in text_of(app.export_screenshot())
        await presses("escape")(pilot)
        assert not explains(app)
        assert app.partitions.chosen == ORDERS_1
        await presses("question_mark", "question_mark")(pilot)
        assert not explains(app)

    assert "SITUATION^" in played(app, 80, 24, explain)


def test_a_click_chooses_and_another_one_explains() -> None:
    app = Fixed(at_first())

    async def click(pilot: Pilot[bool]) -> None:
        await pilot.click("#list", offset=(3, 3))
        await settled(pilot)
        assert app.partitions.chosen == ORDERS_1
        assert not explains(app)
        await pilot.click("#list", offset=(3, 4), times=2)
        await settled(pilot)
        assert explains(app)

    assert "payments:0" in played(app, 100, 30, click)


def test_pausing_looking_and_ending() -> None:
    app = Fixed(at_first())
    paused = seen_after(app, lambda: "PAUSED" in text_of(app.export_screenshot()), "p", "p", "r")
    assert paused == [True, False, False]
    assert app.look_asked
    for keys in ("q", "enter q", "ctrl+q", "slash ctrl+q"):
        assert after(Fixed(at_first()), *keys.split()).return_code == 0
    for keys in ("ctrl+c", "enter ctrl+c", "slash x ctrl+c", "question_mark ctrl+c"):
        assert after(Fixed(at_first()), *keys.split()).ended_by is not None


def test_the_drawing_is_that_of_kelr_explain() -> None:
    shown = at_first()
    detail = shown.details[ORDERS_1]
    grown = [
        replace(log, log_end=log.log_end + (20 if log.replica == 2 else 30), read_at_ms=SECOND_MS)
        for log in detail.logs
        if isinstance(log, ReplicaLog)
    ]
    shown = replace(shown, readings=shown.readings.with_answers({ORDERS_1: grown}))
    told = screen(shown, 100, 60, "down")
    assert "\nGrowth: 3 +15/s, level with 2 in 3 s; 2 +10/s\n" in told
    drawing = [
        written(line, color=False).rstrip()
        for line in picture_texts(log_bars(detail.decision, detail.logs), width=99, ink=shown.ink)
    ]
    assert "\n".join(drawing) in told


# kelr describe --watch.


class Table(TableApp):
    def __init__(self, lines: list[str], **changes: Any) -> None:
        super().__init__("kafka-1:9092")
        self.given = {"now_ms": SECOND_MS, "taken_at_ms": BEGIN_MS, "read": True, **changes}
        self.lines = lines

    def step(self) -> float:
        self.show(self.lines, **self.given)
        return 3600.0


def test_a_renewed_table_scrolls_and_says_how_old_it_is() -> None:
    rows = [f"\x1b[1mrow\x1b[0m {number}" for number in range(20)]
    told = played(Table(rows), 60, 8, presses("down", "down", "down")).splitlines()
    assert told[0] == "kelr describe --watch  kafka-1:9092  22:13:20 UTC, 2 s ago"
    assert [line[:6].rstrip() for line in told[1:7]] == [f"row {number}" for number in range(3, 9)]
    assert "row 19" in played(Table(rows), 60, 8, presses("G"))


def test_a_table_that_is_not_renewed_says_so_and_stays() -> None:
    told = played(Table(["row"], trouble=CANNOT), 80, 6, presses("p")).splitlines()
    assert told[0] == "kelr describe --watch  kafka-1:9092  22:13:20 UTC, 2 s ago  PAUSED"
    assert told[1:4] == [
        "NOT RENEWED since 22:13:22: no broker answered any more within 10 s; check that",
        "a broker is up",
        "row",
    ]
    silent = played(Table(["row"], silent=SILENT), 80, 6).splitlines()
    assert silent[1].startswith("NO CONTROLLER ANSWERS since 22:13:20 (no answer in time)")
    assert "nothing read yet, for 2 s" in played(Table([], read=False), 80, 6)


# Commands about the chosen partition.


class Orders(Fixed):
    """Keeps what is asked for, and what is to be applied."""

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self.orders: list[Order] = []
        self.applied: list[Path] = []

    def step(self) -> float:
        if self.ordered is not None:
            self.orders.append(self.ordered)
            self.ordered = None
        return super().step()

    def apply(self, plan: Path) -> None:
        self.applied.append(plan)

    def prints(self, *lines: str, plan: Path | None = None) -> None:
        self.printed = Printed(self.orders[-1], lines, plan)
        self.renew()


def test_a_plan_is_read_on_the_screen_and_applied_from_there_alone() -> None:
    app = Orders(at_first())

    def drawn() -> str:
        return text_of(app.export_screenshot())

    async def plan(pilot: Pilot[bool]) -> None:
        await presses("down", "a", "P")(pilot)
        (order,) = app.orders
        assert (order.command, order.at) == ("recover plan", ORDERS_1)
        assert "kelr recover plan orders:1\n\nthe cluster is being read\n" in drawn()
        await presses("a")(pilot)
        assert "apply" not in drawn()
        app.prints("\x1b[1mPlan\x1b[0m: 1 election", plan=Path("p.json"))
        await settled(pilot)
        assert "kelr recover plan orders:1\n\nPlan: 1 election\n" in drawn()
        assert "a apply (asks before it changes anything)" in drawn()
        assert app.applied == []
        await presses("a")(pilot)
        assert app.applied == [Path("p.json")]
        assert not explains(app)
        await presses("a")(pilot)
        assert app.applied == [Path("p.json")]

    played(app, 80, 24, plan)


def test_a_plan_that_waits_is_made_again_without_those_that_it_waits_for() -> None:
    app = Orders(at_first())

    async def plan(pilot: Pilot[bool]) -> None:
        await presses("P", "w")(pilot)
        app.printed = Printed(app.orders[0], ["No election planned."], awaited="1,2")
        app.renew()
        await settled(pilot)
        assert "w plan as if they never returned" in text_of(app.export_screenshot())
        await presses("w")(pilot)
        assert [(one.command, one.at, one.gone) for one in app.orders] == [
            ("recover plan", app.orders[0].at, ""),
            ("recover plan", app.orders[0].at, "1,2"),
        ]
        told = text_of(app.export_screenshot())
        assert "--gone 1,2\n\nthe cluster is being read" in told
        assert "No election" not in told
        app.prints("Plan: 1 election", plan=Path("p.json"))
        await presses("w", "a")(pilot)
        assert (len(app.orders), app.applied) == (2, [Path("p.json")])

    played(app, 80, 24, plan)


def test_a_plan_without_an_election_is_not_applied_and_that_of_another_is_not_shown() -> None:
    app = Orders(at_first())

    async def plan(pilot: Pilot[bool]) -> None:
        await presses("P")(pilot)
        app.prints("No election planned.")
        await settled(pilot)
        await presses("a", "escape", "down", "P")(pilot)
        text = text_of(app.export_screenshot())
        assert "No election" not in text
        assert "apply" not in text
        app.printed = Printed(app.orders[0], ["the first one's, late"], Path("p.json"))
        app.renew()
        await settled(pilot)
        await presses("a")(pilot)
        assert "late" not in text_of(app.export_screenshot())
        assert app.applied == []

    played(app, 80, 24, plan)


def test_a_history_that_was_laid_out_for_a_wider_screen_is_not_cut() -> None:
    app = Orders(at_first())

    async def history(pilot: Pilot[bool]) -> None:
        await presses("h")(pilot)
        assert app.orders[0].command == "history"
        app.prints(f"{'word ' * 20}end")
        await pilot.resize_terminal(60, 20)
        await settled(pilot)
        assert "end" in text_of(app.export_screenshot())
        await presses("escape")(pilot)
        assert not explains(app)

    played(app, 120, 24, history)


def test_how_many_controllers_follow_is_at_the_top_where_it_is_known() -> None:
    def top(controllers: Mapping[int, bool]) -> str:
        cluster = replace(INCIDENT.cluster, controllers=controllers)
        lines = head_lines(at_first(replace(INCIDENT, cluster=cluster)), 200)
        return "\n".join("".join(span.text for span in line) for line in lines)

    assert "controller" not in top({})
    assert "3 of 3 controllers follow  " in top(dict.fromkeys((100, 101, 102), True))
    assert "1 of 3 controllers follows  " in top({100: True, 101: False, 102: False})
