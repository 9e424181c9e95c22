"""``kelr watch`` in a pipe: a line for each change, on a simulated cluster to which things happen between the looks."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelr.commands.session import Settings, now_ms, resolve
from kelr.commands.watch_screen import OrderJob
from kelr.controller import Election, events
from kelr.errors import AuthenticationError, ConnectError
from kelr.model import PartitionState, Selection, TopicError, TopicPartition
from kelr.sources.base import Page, Source
from kelr.view.watch.model import Order, Trouble, late
from tests.commands.conftest import Kelr
from tests.recovery.simulated import SimulatedSource, World, leaderless, returns

WATCH = ("watch", "--interval", "0.1", "-b", "kafka-1:9092")
Happening = Callable[[], None]
TIME = r"\d\d:\d\d:\d\d"
DAY_MS = 86_400_000
WAITING = [f"orders:{number}: leader none, ISR - (waits for broker 1)" for number in range(4)]


UNSEEN = (
    "no partition was found; topics without DESCRIBE are not listed; check what this principal may read (kelr doctor"
    " --acls watch)"
)
DENIED = "TOPIC_AUTHORIZATION_FAILED"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine no look is late."""
    monkeypatch.setattr("kelr.commands.watching._LATE_MS", 600_000)


@pytest.fixture
def world() -> World:
    """``orders:0-3`` without a leader, waiting for broker 1; ``steady:0`` is led by 2."""
    return leaderless()


@pytest.fixture
def happen(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets these things happen, one before each look from the second on; after the last one nothing does."""
    left: list[Happening] = []

    class Watched(SimulatedSource):
        def forget(self) -> None:
            super().forget()
            # What asks for logs beside the looks changes nothing.
            if left and threading.current_thread().name == "look":
                left.pop(0)()

    def opened(_: object) -> Source:
        return Watched(world)

    def plan(*happenings: Happening) -> None:
        left[:] = [nothing, *happenings]

    monkeypatch.setattr("kelr.commands.session.open_source", opened)
    return plan


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Topics without DESCRIBE: brokers leave them out of a list of all topics, and deny them by name."""
    names: set[str] = set()
    pages = SimulatedSource.pages

    def seen(self: SimulatedSource, selection: Selection, **rest: Any) -> Iterator[Page]:
        denied = tuple(TopicError(one, DENIED) for one in sorted(names.intersection(selection.topics)))
        for page in pages(self, selection, **rest):
            kept = tuple(one for one in page.partitions if one.topic not in names)
            first = {topic: count for topic, count in page.first_partition_replicas.items() if topic not in names}
            errors = tuple(one for one in page.topic_errors if one.topic not in names)
            yield replace(page, partitions=kept, first_partition_replicas=first, topic_errors=(*errors, *denied))

    monkeypatch.setattr(SimulatedSource, "pages", seen)
    return names


def nothing() -> None:
    """A look at which nothing has changed."""


def ends() -> None:
    """Somebody presses Ctrl-C."""
    raise KeyboardInterrupt


def fails(error: Exception) -> Happening:
    def fail() -> None:
        raise error

    return fail


def lines(out: str) -> Sequence[str]:
    """The lines without their times."""
    assert all(re.match(r"\d\d:\d\d:\d\d ", line) for line in out.splitlines()), out
    return [line[9:] for line in out.splitlines()]


@pytest.mark.parametrize("target", ["ordres-*", "/^x/"])
def test_of_no_partition_it_is_not_said_that_it_is_healthy(
    kelr: Kelr, happen: Callable[..., None], target: str
) -> None:
    happen()
    ran = kelr(*WATCH, target, "--until-healthy", "--for", "60s")
    assert (ran.code, ran.out) == (2, "")
    assert "no partition was found to watch" in ran.err
    ran = kelr(*WATCH, target, "--for", "2s")
    assert ran.code == 0
    begin, unread, ended = lines(ran.out)
    assert begin.endswith("2 of 3 brokers live; no partition was found")
    assert unread == UNSEEN
    assert ended == "ended: the time is up"
    items = [json.loads(line) for line in kelr(*WATCH, target, "--for", "2s", "-o", "ndjson").out.splitlines()]
    assert [(one["leaderless"], one["unsafe"], one["under_min_isr"], one["read"]) for one in items] == [
        (None, None, None, 0)
    ] * 3


def test_it_ends_when_everything_is_healthy(kelr: Kelr, world: World, happen: Callable[..., None]) -> None:
    happen(nothing, lambda: returns(world, 1, clean=True), lambda: joins(world, 2), lambda: joins(world, 3))
    ran = kelr(*WATCH, "orders", "--until-healthy", "--for", "60s")
    assert (ran.code, ran.err) == (0, "")
    begin, *told = lines(ran.out)
    assert begin.endswith(
        "times are UTC: cluster 4L6g3nShT-eMCtK--X86sw, 2 of 3 brokers live; 4 leaderless, 4 leaderless or unsafe,"
        " 4 under min ISR of 4 partitions"
    )
    away = "in ISR or ELR before it was away: clean only if its shutdown was"
    elected = f"leader none -> 1, {away}; ISR - -> 1; ELR 1 -> -; last known leader 1 -> -"
    assert told == [
        *WAITING,
        "broker 1: fenced -> live",
        *(f"orders:{number}: {elected} (1 in sync of 2 needed)" for number in range(4)),
        *(f"orders:{number}: ISR 1 -> 1,2 (under-replicated)" for number in range(4)),
        "nothing is leaderless or unsafe",
        "ended: nothing is leaderless or unsafe",
    ]


def joins(world: World, broker: int) -> None:
    """The broker joins the ISR of every partition of orders."""
    for number in range(4):
        state: PartitionState = world.state(number)
        assert state.leader is not None
        world.after(events.PartitionAltered(state.address, state.leader, (*state.isr, broker)))


def test_time_that_runs_out_is_told_by_the_exit_code(kelr: Kelr, happen: Callable[..., None]) -> None:
    happen()
    ran = kelr(*WATCH, "--until-healthy", "--for", "2s")
    assert (ran.code, lines(ran.out)[-1]) == (1, "ended: the time is up")
    assert kelr(*WATCH, "--for", "2s").code == 0


def test_a_cluster_that_is_away_for_a_while_is_waited_for(
    kelr: Kelr, world: World, happen: Callable[..., None]
) -> None:
    gone = ConnectError("no broker answered", next_step="check that one is up")
    expired = AuthenticationError("the brokers refused the credentials: token expired", next_step="get a new one")

    def returns_unseen() -> None:
        returns(world, 1, clean=True)
        raise gone

    happen(fails(gone), fails(expired), fails(gone), returns_unseen, nothing, ends)
    ran = kelr(*WATCH, "orders")
    assert ran.code == 130, ran.err
    _, *told = lines(ran.out)
    assert told[:4] == WAITING
    # Each reason once; and that there was a gap comes before what changed in it.
    expected = [
        rf"the cluster cannot be read, and was last at {TIME}: no broker answered; check that one is up",
        rf"the cluster cannot be read, and was last at {TIME}: the brokers refused .*: token expired; get a new one",
        r"the cluster can be read again, after \d+ s in which nothing was seen",
        r"broker 1: fenced -> live",
    ]
    assert len(told) == 4 + len(expected) + 4
    for pattern, line in zip(expected, told[4:], strict=False):
        assert re.fullmatch(pattern, line), line


def test_a_controller_that_is_gone_for_a_while(
    kelr: Kelr, world: World, monkeypatch: pytest.MonkeyPatch, happen: Callable[..., None]
) -> None:
    """Brokers go on telling what they knew: it may be out of date, and is never taken for healthy."""
    silence: list[str | None] = [None]
    monkeypatch.setattr(SimulatedSource, "controller_silence", property(lambda _: silence[0]), raising=False)

    def gone() -> None:
        silence[0] = "no answer in time"
        returns(world, 1, clean=True)

    def joined() -> None:
        joins(world, 2)
        joins(world, 3)

    def back() -> None:
        silence[0] = None

    happen(gone, joined, nothing, nothing, back)
    ran = kelr(*WATCH, "orders", "--until-healthy", "--for", "60s")
    assert (ran.code, ran.err) == (0, "")
    _, *told = lines(ran.out)
    assert told[:4] == WAITING
    assert re.fullmatch(
        rf"no controller answers since {TIME} \(no answer in time\): what brokers tell may be out of date;"
        r" check that most controllers are up \(kelr doctor\)",
        told[4],
    )
    assert told[5] == "broker 1: fenced -> live"
    *_, healthy, again, left, ended = told
    assert healthy == "orders:3: ISR 1 -> 1,2,3 (healthy)"
    assert re.fullmatch(r"a controller answers again, after \d+ s", again)
    assert (left, ended) == ("nothing is leaderless or unsafe", "ended: nothing is leaderless or unsafe")


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes ten times too fast, from a second before midnight: looks that are 2 s apart come five times a
    second, and their times of day begin anew in between."""
    begun_ms: list[int] = []

    def hurried_ms() -> int:
        begun_ms.append(now_ms())
        before_midnight_ms = begun_ms[0] - begun_ms[0] % DAY_MS + DAY_MS - 1000
        return before_midnight_ms + 10 * (begun_ms[-1] - begun_ms[0])

    for module in ("watching", "watch_lines", "watch_telling"):
        monkeypatch.setattr(f"kelr.commands.{module}.now_ms", hurried_ms)


@pytest.mark.usefixtures("hurried")
def test_since_when_is_the_last_look_that_learnt_something(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, happen: Callable[..., None]
) -> None:
    silence: list[str | None] = [None]
    monkeypatch.setattr(SimulatedSource, "controller_silence", property(lambda _: silence[0]), raising=False)

    def gone() -> None:
        silence[0] = "no answer in time"

    happen(gone, nothing, fails(ConnectError("no broker answered", next_step="")), ends)
    ran = kelr("watch", "steady", "--interval", "2s", "-b", "kafka-1:9092")
    begin, *_, silent, missing = (
        line for line in ran.out.splitlines() if "healthy" not in line and "nothing" not in line
    )
    times = [seconds(told) for line in (begin, silent, missing) for told in re.findall(TIME, line)]
    # The first look's beginning is the earliest of them: all are told from there, over midnight too.
    seen, silent_seen, heard, missed, read = ((time - times[2]) * 1000 % DAY_MS for time in times)
    # Two seconds lie between the beginnings of two looks.
    assert heard <= seen < silent_seen <= read < missed < DAY_MS / 2


def test_a_look_that_hangs_is_told_before_it_fails(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, happen: Callable[..., None]
) -> None:
    told = threading.Event()

    def told_late(*arguments: int) -> Trouble:
        told.set()
        return late(*arguments)

    def hangs() -> None:
        assert told.wait(30)

    monkeypatch.setattr("kelr.commands.watching.late", told_late)
    monkeypatch.setattr("kelr.commands.watching._LATE_MS", 100)
    happen(hangs, nothing, ends)
    ran = kelr(*WATCH, "orders")
    assert ran.code == 130, ran.err
    _, *waiting, missing, again = lines(ran.out)
    assert waiting == WAITING
    assert re.fullmatch(
        f"the cluster cannot be read, and was last at {TIME}: a look began at {TIME} and has not come through so far",
        missing,
    )
    assert again.startswith("the cluster can be read again, after ")


def seconds(time: str) -> int:
    """``00:01:05`` as 65."""
    hours, minutes, rest = map(int, time.split(":"))
    return 3600 * hours + 60 * minutes + rest


def test_without_a_controller_it_does_not_end_as_healthy(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, happen: Callable[..., None]
) -> None:
    monkeypatch.setattr(SimulatedSource, "controller_silence", "REQUEST_TIMED_OUT", raising=False)
    happen()
    ran = kelr(*WATCH, "steady", "--until-healthy", "--for", "400ms", "-o", "ndjson")
    assert ran.code == 1, ran.err
    items = [json.loads(line) for line in ran.out.splitlines()]
    assert [item["what"] for item in items] == ["begin", "no-controller", "end"]
    assert items[1]["text"].startswith("no controller answers since the watch began or before (REQUEST_TIMED_OUT): ")
    assert (items[0]["leaderless"], items[0]["unsafe"], items[0]["under_min_isr"], items[0]["read"]) == (
        None,
        None,
        None,
        1,
    )
    assert items[-1]["read"] is None
    happen()
    begin, *_ = lines(kelr(*WATCH, "--for", "2s").out)
    assert begin.endswith(
        "? of 3 brokers live; 4 leaderless, 4 leaderless or unsafe, 4 under min ISR of 5 partitions, as brokers knew it"
        " last: no controller answers (REQUEST_TIMED_OUT)"
    )
    happen()
    begin, *_ = lines(kelr(*WATCH, "steady", "--for", "2s").out)
    assert "; ? leaderless, ? leaderless or unsafe, ? under min ISR of 1 partition, as brokers knew" in begin


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConnectError("nobody there", next_step="check"), 3), (AuthenticationError("no", next_step="check"), 3)],
)
def test_a_first_look_that_fails_ends_it(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: fails(error)())
    ran = kelr(*WATCH)
    assert (ran.code, ran.out) == (code, "")
    assert f"error: {error}" in ran.err


def test_a_defect_in_a_thread_is_told_as_one(kelr: Kelr, happen: Callable[..., None]) -> None:
    happen(fails(ZeroDivisionError("oh")))
    ran = kelr(*WATCH)
    assert (ran.code, "internal error: ZeroDivisionError: oh" in ran.err) == (70, True)


def test_items_for_machines(kelr: Kelr, world: World, happen: Callable[..., None]) -> None:
    happen(lambda: returns(world, 1, clean=False), ends)
    ran = kelr(*WATCH, "orders:0", "-o", "ndjson")
    assert ran.code == 130, ran.err
    begin, found, broker, elected = map(json.loads, ran.out.splitlines())
    assert (begin["what"], begin["leaderless"], begin["read"]) == ("begin", 1, 1)
    assert (found["before"], found["after"]["situation"]) == (None, "waiting-for-elr")
    assert found["after"]["waits_for"] == [1]
    assert (broker["broker"], broker["before"], broker["after"]) == (1, {"status": "fenced"}, {"status": "live"})
    # Its unclean shutdown took it out of the ELR, and it was elected as the last known leader, which no look shows.
    assert (elected["topic"], elected["partition"], elected["after"]["leader"]) == ("orders", 0, 1)
    assert elected["election"] == "returned"


def test_a_topic_that_is_deleted_and_one_that_is_unknown(kelr: Kelr, world: World, happen: Callable[..., None]) -> None:
    happen(lambda: world.after(events.TopicDeleted("orders")), ends)
    ran = kelr(*WATCH)
    assert ran.code == 130, ran.err
    assert lines(ran.out)[-5:-1] == [f"orders:{number}: is not there any more" for number in range(4)]
    none = kelr(*WATCH, "nope")
    assert none.code == 2
    assert "nope" in none.err


ONE_UNREAD = "1 topic could not be described: steady; the principal needs DESCRIBE on these topics"
ALL_READ = "every watched topic can be read now"


@pytest.mark.parametrize("target", ["", "steady", "st*"])
def test_a_healthy_topic_that_may_not_be_read_any_more_is_no_all_clear(
    kelr: Kelr, world: World, happen: Callable[..., None], hidden: set[str], target: str
) -> None:
    """Also where it is deleted meanwhile, as nobody can tell."""

    def deleted() -> None:
        world.after(events.TopicDeleted("steady"))

    happen(lambda: hidden.add("steady"), nothing, hidden.clear, lambda: hidden.add("steady"), deleted, nothing, ends)
    ran = kelr(*WATCH, *target.split(), "-o", "ndjson")
    assert ran.code == 130, ran.err
    items = [json.loads(line) for line in ran.out.splitlines()]
    told = [(one["what"], one["text"]) for one in items if one["what"] not in {"begin", "partition"}]
    healthy = [("healthy", "nothing is leaderless or unsafe")] if target else []
    assert told == [
        *healthy,
        ("not-read", ONE_UNREAD),
        ("read-again", ALL_READ),
        *healthy,
        ("not-read", ONE_UNREAD),
    ]
    assert [(one["unsafe"], one["read"]) for one in items if one["what"] == "not-read"] == [
        (None, 0 if target else 4)
    ] * 2


@pytest.mark.parametrize("targets", ["", "orders steady"])
def test_until_healthy_does_not_end_while_a_topic_may_not_be_read(
    kelr: Kelr, world: World, happen: Callable[..., None], hidden: set[str], targets: str
) -> None:
    def heals() -> None:
        hidden.add("steady")
        returns(world, 1, clean=True)
        joins(world, 2)

    happen(heals)
    ran = kelr(*WATCH, *targets.split(), "--until-healthy", "--for", "2s")
    assert (ran.code, lines(ran.out)[-1]) == (1, "ended: the time is up")
    assert ONE_UNREAD in lines(ran.out)
    assert "nothing is leaderless" not in ran.out
    hidden.clear()
    happen(lambda: joins(world, 3))
    ran = kelr(*WATCH, *targets.split(), "--until-healthy", "--for", "60s")
    assert (ran.code, lines(ran.out)[-1]) == (0, "ended: nothing is leaderless or unsafe")


def test_what_to_do_about_a_name_that_is_wrong_beside_one_that_is_denied(
    kelr: Kelr, happen: Callable[..., None], hidden: set[str]
) -> None:
    happen(lambda: hidden.add("steady"), ends)
    ran = kelr(*WATCH, "orders:0", "steady", "typo")
    assert [one for one in lines(ran.out) if "could not be described" in one] == [
        "1 topic could not be described: typo; check the spelling; `kelr describe` without a target lists every topic",
        f"2 topics could not be described: steady, typo ({DENIED}); check the names, and that the principal has"
        " DESCRIBE on these topics",
    ]


def test_nothing_that_is_left_to_read_is_no_all_clear(
    kelr: Kelr, world: World, happen: Callable[..., None], hidden: set[str]
) -> None:
    happen(lambda: hidden.update(("orders", "steady")), ends)
    ran = kelr(*WATCH)
    assert lines(ran.out)[-1] == (
        "2 topics could not be described: orders, steady; the principal needs DESCRIBE on these topics"
    )
    hidden.clear()
    happen(lambda: world.after(events.TopicDeleted("steady")), nothing, ends)
    ran = kelr(*WATCH, "steady")
    assert lines(ran.out)[2:] == ["topic steady: not there any more", UNSEEN]


def test_a_topic_that_is_deleted_is_no_alarm_for_ever(
    kelr: Kelr, world: World, happen: Callable[..., None], hidden: set[str]
) -> None:
    """It is told as gone, and what is left is judged without it."""

    def heals() -> None:
        hidden.clear()
        world.after(events.TopicDeleted("steady"))
        returns(world, 1, clean=True)
        joins(world, 2)
        joins(world, 3)

    happen(lambda: hidden.add("steady"), heals)
    ran = kelr(*WATCH, "orders", "steady", "--until-healthy", "--for", "60s")
    assert (ran.code, ran.err) == (0, "")
    told = [one for one in lines(ran.out) if not one.startswith(("orders:", "broker "))]
    assert told[1:] == [
        ONE_UNREAD,
        "topic steady: not there any more",
        ALL_READ,
        "nothing is leaderless or unsafe",
        "ended: nothing is leaderless or unsafe",
    ]


def test_what_cannot_be_watched_is_refused(kelr: Kelr, snapshot_file: str) -> None:
    ran = kelr("watch", "--snapshot", snapshot_file)
    assert ran.code == 2
    assert "it does not change, so there is nothing to watch" in ran.err
    for interval in ("0", "x", "10ms", "-1s", "1e9"):
        refused = kelr("watch", "--interval", interval, "-b", "kafka-1:9092")
        assert (refused.code, "--interval" in refused.err) == (2, True), interval


def test_a_leader_that_was_never_in_the_isr_is_not_clean(kelr: Kelr, world: World, happen: Callable[..., None]) -> None:
    def elects_uncleanly() -> None:
        state = world.state(0)
        world.after(events.LeadersElected(Election.UNCLEAN, (state.address,)))

    happen(elects_uncleanly, ends)
    ran = kelr(*WATCH, "orders:0")
    assert "leader none -> 3, not clean: it was in neither ISR nor ELR" in ran.out, ran.out


# kelr describe --watch.

DESCRIBE = ("describe", "orders:0", "--watch", "--interval", "0.1", "-b", "kafka-1:9092")


def test_describe_prints_its_table_anew_when_it_has_changed(
    kelr: Kelr, world: World, happen: Callable[..., None]
) -> None:
    gone = ConnectError("no broker answered", next_step="check that one is up")
    happen(nothing, nothing, lambda: returns(world, 1, clean=True), fails(gone), fails(gone), nothing, ends)
    ran = kelr(*DESCRIBE)
    assert ran.code == 130
    # A table, another one when broker 1 leads again, and nothing where nothing changed.
    tables = ran.out.split("\n\n")[:-1]
    assert [table.splitlines()[2].split()[:3] for table in tables] == [
        ["orders:0", "none", "2"],
        ["orders:0", "1", "3"],
    ]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d UTC", table.splitlines()[0]) for table in tables)
    # On stderr, with times: that it is out of date, and that it is not any more, although the table is the same.
    missing, again = ran.err.splitlines()[:2]
    last = tables[1].splitlines()[0].removesuffix(" UTC")
    assert (
        missing[9:] == f"the cluster cannot be read, and was last at {last}: no broker answered; check that one is up"
    )
    assert re.fullmatch(r"the cluster can be read again, after \d+ s in which nothing was seen", again[9:])


def test_describe_says_that_no_controller_answers(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, happen: Callable[..., None]
) -> None:
    silence: list[str | None] = ["NOT_CONTROLLER"]
    monkeypatch.setattr(SimulatedSource, "controller_silence", property(lambda _: silence[0]), raising=False)
    happen(nothing, lambda: silence.clear() or silence.append(None), nothing, ends)
    ran = kelr(*DESCRIBE)
    assert ran.code == 130
    missing, again, *_ = ran.err.splitlines()
    assert "no controller answers since the watch began or before (NOT_CONTROLLER): what brokers tell may be" in missing
    assert again[9:] == "a controller answers now"
    assert ran.out.count("PARTITION") == 1


def test_describe_with_filters_is_watched_with_them(kelr: Kelr, happen: Callable[..., None]) -> None:
    happen(ends)
    ran = kelr("describe", "--leaderless", "--limit", "2", "--watch", "--interval", "0.1", "-b", "kafka-1:9092")
    assert (ran.code, ran.out.count("orders:"), "steady" in ran.out) == (130, 3, False)
    assert "cut by --limit after 2 partitions" in ran.out
    happen(ends)
    assert "waiting-for-elr           4" in kelr("describe", "--summary", *DESCRIBE[2:]).out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--watch", "--check"), "--check ends after one look"),
        (("--watch", "-o", "json"), "-o json is one document"),
        (("--interval", "2s"), "add --watch, or leave it out"),
        (("--watch", "--interval", "never"), "not a length of time"),
    ],
)
def test_describe_refuses_what_cannot_be_watched(
    kelr: Kelr, happen: Callable[..., None], arguments: tuple[str, ...], why: str
) -> None:
    happen()
    ran = kelr("describe", *arguments, "-b", "kafka-1:9092")
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err


def test_describe_fails_where_its_first_look_does(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ConnectError("no broker answered", next_step="check that one is up")
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: fails(gone)())
    ran = kelr(*DESCRIBE)
    assert (ran.code, ran.out) == (3, "")
    assert "error: no broker answered" in ran.err


# kelr describe, once.


def test_a_check_finds_nothing_healthy_while_no_controller_answers(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, happen: Callable[..., None]
) -> None:
    silence: list[str | None] = ["no answer in time"]
    monkeypatch.setattr(SimulatedSource, "controller_silence", property(lambda _: silence[0]), raising=False)
    happen()
    for filters in ((), ("--leaderless",)):
        ran = kelr("describe", "steady", "--check", *filters, "-b", "kafka-1:9092")
        assert ran.code == 1
        assert ran.out.startswith("No controller answers (no answer in time): what brokers tell may be out of date")
    assert kelr("describe", "steady", "-b", "kafka-1:9092").code == 0
    silence[0] = None
    ran = kelr("describe", "steady", "--check", "--leaderless", "-b", "kafka-1:9092")
    assert (ran.code, ran.err) == (0, "no partition to show; 1 looked at\n")


@pytest.mark.parametrize("command", [("explain", "--full"), ("log-info",), ("recover", "plan"), ("snapshot", "FILE")])
def test_every_reading_command_says_that_no_controller_answers(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, happen: Callable[..., None], tmp_path: Path, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(SimulatedSource, "controller_silence", "no answer in time", raising=False)
    happen()
    words = [str(tmp_path / "now.kelr") if word == "FILE" else word for word in command]
    ran = kelr(*words, "steady", "-b", "kafka-1:9092")
    said = "o controller answers (no answer in time): what brokers tell may be out of date. No leader is elected now"
    assert (ran.out + ran.err).count(said) == 1
    assert ran.out.startswith(f"N{said}")


def test_a_report_says_that_no_controller_answered(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, happen: Callable[..., None], tmp_path: Path
) -> None:
    monkeypatch.setattr(SimulatedSource, "controller_silence", "no answer in time", raising=False)
    happen()
    assert kelr("report", str(tmp_path / "now.md"), "steady", "-b", "kafka-1:9092").code == 0
    assert "Not told: No controller answered (no answer in time)" in (tmp_path / "now.md").read_text()


# Commands that somebody at the screen asks for.


def test_a_command_that_fails_on_the_screen_says_why_and_leaves_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ConnectError("no broker answered", next_step="check that one is up")
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: fails(gone)())
    monkeypatch.setattr("kelr.commands.telling.opened_log", lambda *_, **__: fails(gone)())
    job = OrderJob(resolve(Settings(bootstrap_server="kafka-1:9092"), environ={}), color=False)
    for command in ("recover plan", "history"):
        printed = job(Order(command, TopicPartition("orders", 0), 80))
        assert printed.plan is None
        assert printed.lines == ["error: no broker answered", "  fix: check that one is up"]


def test_a_plan_on_the_screen_is_that_of_recover_plan(kelr: Kelr, happen: Callable[..., None]) -> None:
    happen()
    job = OrderJob(resolve(Settings(bootstrap_server="kafka-1:9092"), environ={}), color=False)
    printed = job(Order("recover plan", TopicPartition("orders", 0), 80))
    assert printed.plan is None  # broker 1 is waited for
    ran = kelr("recover", "plan", "orders:0", "--full", "-b", "kafka-1:9092")
    assert set(ran.out.splitlines()) <= set(printed.lines)
    assert "broker 1" in "\n".join(printed.lines)
