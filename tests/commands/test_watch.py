"""``kelr watch`` in a pipe: a line for each change, on a simulated cluster to which things happen between the looks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pytest

from kelr.controller import Election, events
from kelr.errors import AuthenticationError, ConnectError
from kelr.model import PartitionState
from kelr.sources.base import Source
from tests.commands.conftest import Kelr
from tests.recovery.simulated import SimulatedSource, World, leaderless, returns

WATCH = ("watch", "--interval", "0.1", "-b", "kafka-1:9092")
Happening = Callable[[], None]
WAITING = [f"orders:{number}: leader none, ISR - (waits for broker 1)" for number in range(4)]


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
            if left:
                left.pop(0)()

    def opened(_: object) -> Source:
        return Watched(world)

    def plan(*happenings: Happening) -> None:
        left[:] = [nothing, *happenings]

    monkeypatch.setattr("kelr.commands.session.open_source", opened)
    return plan


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
    ran = kelr(*WATCH, target, "--for", "300ms")
    assert ran.code == 0
    assert "nothing is leaderless" not in ran.out


def test_it_ends_when_everything_is_healthy(kelr: Kelr, world: World, happen: Callable[..., None]) -> None:
    happen(nothing, lambda: returns(world, 1, clean=True), lambda: joins(world, 2), lambda: joins(world, 3))
    ran = kelr(*WATCH, "orders", "--until-healthy", "--for", "60s")
    assert (ran.code, ran.err) == (0, "")
    begin, *told = lines(ran.out)
    assert begin.endswith(
        "times are UTC: cluster 4L6g3nShT-eMCtK--X86sw, 2 of 3 brokers live; 4 leaderless, 0 unsafe,"
        " 4 under min ISR of 4 partitions"
    )
    away = "in ISR or ELR before it was away: clean only if its shutdown was"
    elected = f"leader none -> 1, {away}; ISR - -> 1; ELR 1 -> -; last known leader 1 -> -"
    assert told == [
        *WAITING,
        "broker 1: fenced -> live",
        *(f"orders:{number}: {elected} (1 in sync of 2 needed)" for number in range(4)),
        *(f"orders:{number}: ISR 1 -> 1,2 (healthy)" for number in range(4)),
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
    ran = kelr(*WATCH, "--until-healthy", "--for", "300ms")
    assert (ran.code, lines(ran.out)[-1]) == (1, "ended: the time is up")
    assert kelr(*WATCH, "--for", "300ms").code == 0


def test_a_cluster_that_is_away_for_a_while_is_waited_for(
    kelr: Kelr, world: World, happen: Callable[..., None]
) -> None:
    gone = ConnectError("no broker answered", next_step="check that one is up")
    expired = AuthenticationError("the brokers refused the credentials: token expired", next_step="get a new one")
    happen(fails(gone), fails(gone), fails(expired), nothing, lambda: returns(world, 1, clean=True), ends)
    ran = kelr(*WATCH, "orders")
    assert ran.code == 130, ran.err
    _, *told = lines(ran.out)
    assert told[:6] == [
        *WAITING,
        "the cluster cannot be read: no broker answered; check that one is up",
        "the cluster cannot be read: the brokers refused the credentials: token expired; get a new one",
    ]
    assert re.fullmatch(r"the cluster can be read again, after \d+ s in which nobody looked", told[6])
    assert told[7] == "broker 1: fenced -> live"


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
    assert f"kelr: error: {error}" in ran.err


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
    assert ran.err.count("not renewed: no broker answered\n") == 1


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
    assert "kelr: error: no broker answered" in ran.err
