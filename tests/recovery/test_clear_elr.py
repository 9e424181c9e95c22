"""A topic held by a write of its min.insync.replicas: the price, what is cleared, and the old value in the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.controller import Configs, events
from kelr.durable import AppendOnlyFile
from kelr.errors import NotAuthorizedError, RefusedError, UsageError
from kelr.model import (
    ClearedElr,
    ConfigSource,
    ElectionRequest,
    ElectionType,
    LossCertainty,
    Selection,
    TopicConfig,
    TopicPartition,
)
from kelr.model.plan import AcceptedLoss
from kelr.recovery import audit
from kelr.recovery.apply import apply_plan
from kelr.recovery.audited import recorded_clearings
from kelr.recovery.clear_elr import Clearing, ElrPrice, clear_elr, price_of_clearing
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_store import open_journals, refuse_open_journals
from kelr.recovery.mending import PutRight
from kelr.recovery.resume import resume
from kelr.recovery.undo import undo
from kelr.sources.decisions import decide_partitions
from kelr.sources.permissions import Permissions
from tests.recovery.simulated import (
    CLUSTER_ID,
    TOPIC,
    Fault,
    Killed,
    SimulatedAdminClient,
    SimulatedSource,
    World,
    leaderless,
    returns,
    silence,
    watch_files,
)

pytestmark = pytest.mark.usefixtures("quick")

OWN = pytest.mark.parametrize("own", [None, 2])
"""The topic's own min.insync.replicas; None: it takes that of the cluster."""


def _price(world: World) -> ElrPrice:
    return price_of_clearing(TOPIC, source=SimulatedSource(world), clock_ms=world.clock_ms)


def _hold(world: World, state: Path, price: ElrPrice | None = None, **more: object) -> Clearing:
    arguments = {"force_reason": "the machine of 1 is lost", **world.common(state), **more}
    return clear_elr(price or _price(world), **arguments)  # type: ignore[arg-type]


def _own(world: World) -> int | None:
    return world.cluster.controller.topics.get(TOPIC, Configs()).min_isr


@OWN
def test_both_sets_are_cleared_and_the_config_is_as_before(tmp_path: Path, own: int | None) -> None:
    world = leaderless(own=own)
    written: list[str | None] = []

    class Recorded(SimulatedAdminClient):
        def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
            written.append(value)
            return super().write_topic_config(topic, name, value)

    held = _hold(world, tmp_path, hand=Recorded(world))
    assert held.good
    assert written == (["2", None] if own is None else ["3", "2"])
    assert held.cleared == tuple(TopicPartition(TOPIC, number) for number in range(4))
    assert [(world.state(n).elr, world.state(n).last_known_elr) for n in range(4)] == [((), ())] * 4
    assert _own(world) == own
    returns(world, 1)
    assert [world.state(number).leader for number in range(4)] == [None] * 4, "its return elects it all the same"
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    (line,) = audit.read(tmp_path)
    assert (line.what, line.topic, line.partition, line.result) == ("hold", TOPIC, None, "done")
    assert line.force_reason == "the machine of 1 is lost"
    assert line.loss is not None
    before = {"leader": None, "leader_epoch": world.state(0).leader_epoch, "elr": [1], "last_known_elr": [1]}
    assert line.loss["cleared"][0] == {"partition": 0, **before}
    cleared = recorded_clearings([line])
    assert cleared == {at: ClearedElr(world.state(at.partition).leader_epoch, 2) for at in held.cleared}
    # Who finds the sets empty, and does not know that it was kelr, cannot know what min ISR was.
    assert _best_loss(world, cleared) == {LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR}
    assert _best_loss(world, {}) == {LossCertainty.UNKNOWN}


def _best_loss(world: World, cleared: Mapping[TopicPartition, ClearedElr]) -> set[LossCertainty]:
    """The grades of electing the most complete logs."""
    pages = decide_partitions(SimulatedSource(world), Selection(), clock_ms=world.clock_ms, cleared=cleared)
    balanced = (
        one.loss
        for page in pages
        for decision in page.decisions
        for one in decision.elections
        if one.election is ElectionType.LONGEST_LOG_BALANCED
    )
    return {loss.grade for loss in balanced if loss is not None}


@OWN
def test_a_broker_that_has_not_read_the_write_yet_does_not_say_that_it_is_restored(
    tmp_path: Path, own: int | None
) -> None:
    """It tells the old value for as long as it is cut off: taken for the truth, the topic would keep the hold's."""
    world = leaderless(own=own)
    before = SimulatedSource(world).topic_configs([TOPIC])
    written_ms: list[int] = []

    class AdminClient(SimulatedAdminClient):
        def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
            written_ms.append(world.clock_ms())
            return super().write_topic_config(topic, name, value)

    class Lagging(SimulatedSource):
        def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
            return before if len(written_ms) < 2 else super().topic_configs(topics)

    held = _hold(world, tmp_path, hand=AdminClient(world), source=Lagging(world))
    assert held.good
    assert held.config.restored
    assert _own(world) == own
    assert len(written_ms) == 2


@OWN
@pytest.mark.parametrize("answer", ["UNKNOWN_SERVER_ERROR", "NOT_CONTROLLER", "_BAD_MSG"])
def test_an_answer_that_proves_no_refusal_may_come_from_a_write_that_was_carried_out(
    tmp_path: Path, own: int | None, answer: str
) -> None:
    world = leaderless(own=own)
    world.faults["config"] = [Fault(answer, done=True)]
    held = _hold(world, tmp_path)
    assert held.config.restored
    assert _own(world) == own


def test_what_was_refused_is_not_written_back(tmp_path: Path) -> None:
    world = leaderless()
    world.faults["config"] = [Fault("POLICY_VIOLATION", done=False)]
    held = _hold(world, tmp_path)
    assert (held.error, held.good, held.config.restored) == ("POLICY_VIOLATION", False, True)
    assert world.moments.count("before config") == 1
    assert world.now_s < 5, "there is nothing to wait for"
    assert open_journals(tmp_path, CLUSTER_ID) == ()


@OWN
def test_a_write_under_way_at_an_interrupt_may_take_effect_for_a_while(tmp_path: Path, own: int | None) -> None:
    """Ctrl-C before the answer: the old value is written when no write can come after it."""
    world = leaderless(own=own)
    written: list[str | None] = []

    class Interrupted(SimulatedAdminClient):
        def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
            written.append(value)
            if len(written) > 1:
                return super().write_topic_config(topic, name, value)
            assert value is not None
            late = events.ConfigWritten(topic, min_isr=int(value))
            world.scheduled.append((world.now_s + 40, lambda: world.after(late)))
            raise KeyboardInterrupt

    held = _hold(world, tmp_path, hand=Interrupted(world))
    assert held.config.restored
    world.sleep(100)
    assert world.scheduled == []
    assert _own(world) == own


@OWN
def test_a_restoring_write_that_failed_restored_nothing_whatever_a_broker_tells(
    tmp_path: Path, own: int | None
) -> None:
    world = leaderless(own=own)
    before = SimulatedSource(world).topic_configs([TOPIC])
    written: list[str | None] = []

    class Failing(SimulatedAdminClient):
        def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
            written.append(value)
            return "UNKNOWN_SERVER_ERROR" if len(written) > 1 else super().write_topic_config(topic, name, value)

    class Lagging(SimulatedSource):
        def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
            return before if TOPIC in topics else {}

    held = _hold(world, tmp_path, hand=Failing(world), source=Lagging(world))
    assert (held.good, held.config.restored, held.config.settled) == (False, False, False)
    assert "it is not sure that it was: UNKNOWN_SERVER_ERROR" in held.config.text
    assert _own(world) != own
    # The journal is open still: what it says is enough to put it right, also from a broker that lags.
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert resume(journal.path, **{**world.common(tmp_path), "source": Lagging(world)}).good
    assert _own(world) == own
    assert open_journals(tmp_path, CLUSTER_ID) == ()


@OWN
def test_the_price(own: int | None) -> None:
    world = leaderless(own=own)
    price = _price(world)
    assert (price.own_value, price.writes) == ((None, "2") if own is None else ("2", "3"))
    assert price.leaderless == (0, 1, 2, 3)
    assert [(one.partition, one.elr, one.last_known_elr, one.clean) for one in price.cleared] == [
        (number, (1,), (1,), (1,)) for number in range(4)
    ]
    assert price.refusal is None
    assert price.needs_force is not None
    assert (
        "broker 1 would lead orders:0, orders:1, orders:2 and 1 more without loss of a committed record"
        in price.needs_force
    )
    assert price.producers == (
        "Producers see nothing: the value in force stays the same."
        if own is None
        else "Producers see nothing: no partition with a leader is at min ISR."
    )
    assert "BrokersToElrs" in price.defect


def test_producers_of_another_partition_are_told(tmp_path: Path) -> None:
    """While min.insync.replicas is one more, a partition whose ISR has just enough members refuses acks=all."""
    world = leaderless(own=2)
    state = world.state(3)
    world.cluster = world.cluster.placed(
        replace(state, leader=2, isr=(2, 3), elr=(), last_known_elr=(), leader_epoch=9)
    )
    assert _price(world).producers == (
        "For a moment producers with acks=all are refused (NOT_ENOUGH_REPLICAS) at partitions 3: their ISR has 2 "
        "members, and min.insync.replicas is 3 until it is restored."
    )
    assert _hold(world, tmp_path).good


def test_a_partition_without_more_replicas_refuses_no_producer(tmp_path: Path) -> None:
    """One more than min.insync.replicas is more than it has replicas: its leader asks for no more than those."""
    world = leaderless(own=2)
    well = replace(world.state(3), replicas=(2, 3), leader=2, isr=(2, 3), elr=(), last_known_elr=(), leader_epoch=9)
    world.cluster = world.cluster.placed(well)
    assert _price(world).producers == "Producers see nothing: no partition with a leader is at min ISR."
    assert _hold(world, tmp_path).good


def test_a_clean_candidate_is_thrown_away_only_with_force(tmp_path: Path) -> None:
    world = leaderless()
    with pytest.raises(RefusedError, match="clearing throws that away"):
        _hold(world, tmp_path, force_reason=None)
    assert world.moments == []


def test_without_a_clean_candidate_no_force_is_needed(tmp_path: Path) -> None:
    """The ELR is empty already: the last known leader alone is held off."""
    world = leaderless()
    for number in range(4):
        world.cluster = world.cluster.placed(replace(world.state(number), elr=()))
    assert _price(world).needs_force is None
    assert _hold(world, tmp_path, force_reason=None).good


def test_elr_is_off(tmp_path: Path) -> None:
    world = leaderless(((3, 1, 2),), rules="kraft")
    assert _price(world).refusal is not None
    with pytest.raises(RefusedError, match="ELR is off in this cluster"):
        _hold(world, tmp_path)


@pytest.mark.parametrize("cluster_wide", [False, True])
def test_where_kafka_elects_uncleanly_by_itself_a_hold_keeps_nobody_off(tmp_path: Path, cluster_wide: bool) -> None:
    """2 and 3 are down too. With its sets cleared the topic takes whoever returns first."""
    world = leaderless()
    price = _price(world)
    for broker in (2, 3):
        world.after(events.BrokerFenced(broker))
    world.after(events.ConfigWritten(None if cluster_wide else TOPIC, unclean_leader_election=True))
    with pytest.raises(RefusedError, match="enable is true for topic orders: Kafka elects"):
        _hold(world, tmp_path, price)
    assert world.moments == []
    world.after(events.ConfigWritten(TOPIC, min_isr=2))  # what a hold would do
    returns(world, 3, clean=False)
    assert {world.state(number).leader for number in range(4)} == {3}


def test_where_the_controllers_file_may_elect_uncleanly_nothing_is_held() -> None:
    """A broker's file has true: the controller's is told by no request."""
    world = leaderless()

    class Source(SimulatedSource):
        def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
            found = super().topic_configs(topics)
            static = ConfigSource.STATIC
            return {
                topic: replace(one, unclean_leader_election=True, unclean_leader_election_source=static)
                for topic, one in found.items()
            }

    price = price_of_clearing(TOPIC, source=Source(world), clock_ms=world.clock_ms)
    assert price.refusal is not None
    assert price.refusal.startswith("unclean.leader.election.enable may be true for topic orders")


def test_nobody_to_hold_off(tmp_path: Path) -> None:
    world = leaderless()
    price = _price(world)
    returns(world, 1, clean=True)
    with pytest.raises(RefusedError, match="every partition of topic orders has a leader"):
        _hold(world, tmp_path, price)
    assert world.moments == []


def test_the_price_has_changed_since_it_was_shown(tmp_path: Path) -> None:
    world = leaderless()
    price = _price(world)
    state = world.state(1)
    world.cluster = world.cluster.placed(replace(state, elr=(1, 2)))
    with pytest.raises(RefusedError, match="has changed since it was shown"):
        _hold(world, tmp_path, price)


def test_an_unknown_topic() -> None:
    world = leaderless()
    with pytest.raises(UsageError, match="topic nope cannot be read: this snapshot has no topic nope"):
        price_of_clearing("nope", source=SimulatedSource(world), clock_ms=world.clock_ms)


def test_a_missing_acl(tmp_path: Path) -> None:
    world = leaderless()

    class Restricted(SimulatedAdminClient):
        def permissions(self, topics: tuple[str, ...]) -> Permissions:
            return Permissions(frozenset({"ALTER"}), dict.fromkeys(topics, frozenset({"DESCRIBE", "READ"})))

    with pytest.raises(NotAuthorizedError, match="ALTER_CONFIGS on topic orders"):
        _hold(world, tmp_path, hand=Restricted(world))
    assert world.moments == []


@OWN
@pytest.mark.parametrize(
    ("number", "done", "late_s"), [(0, True, None), (0, False, 40.0), (1, True, None), (1, False, 40.0)]
)
def test_a_write_without_an_answer(
    tmp_path: Path, own: int | None, number: int, done: bool, late_s: float | None
) -> None:
    world = leaderless(own=own)
    fine = Fault("NONE", True)
    world.faults["config"] = [fine] * number + [silence(done=done, late_s=late_s)]
    held = _hold(world, tmp_path)
    assert held.good, held
    world.sleep(100)
    assert _own(world) == own


def test_a_write_that_is_refused(tmp_path: Path) -> None:
    world = leaderless()
    world.faults["config"] = [Fault("POLICY_VIOLATION", done=False)]
    held = _hold(world, tmp_path)
    assert (held.good, held.error) == (False, "POLICY_VIOLATION")
    assert world.state().elr == (1,)
    assert open_journals(tmp_path, CLUSTER_ID) == ()


@pytest.mark.parametrize("mend", [resume, undo])
@pytest.mark.parametrize("boot_id", ["first", None])
def test_a_write_of_a_killed_hold_is_outlasted_once(
    tmp_path: Path, mend: Callable[..., PutRight], boot_id: str | None
) -> None:
    """Also where nobody knows how old it is."""
    world = leaderless()
    world.boot_id = boot_id
    world.kill_at = 1
    with pytest.raises(Killed):
        _hold(world, tmp_path)
    world.revive()
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert mend(journal.path, **world.common(tmp_path)).good
    assert 75 <= world.now_s < 80


@OWN
@pytest.mark.parametrize("mend", [resume, undo])
def test_killed_at_any_moment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: int | None, mend: Callable[..., PutRight]
) -> None:
    """The old value is there in the end, also where resume or undo is killed, too."""
    pairs = 0
    for first in range(100):
        for second in range(100):
            world, state = leaderless(own=own), tmp_path / f"{first}-{second}"
            price = _price(world)
            with monkeypatch.context() as patch:
                watch_files(world, patch)
                world.kill_at = first
                try:
                    _hold(world, state, price)
                except Killed:
                    pass
                else:
                    assert first > 10
                    assert pairs > 50
                    return
                world.revive()
                world.kill_at = second
                struck = False
                try:
                    for journal in open_journals(state, CLUSTER_ID):
                        assert mend(journal.path, **world.common(state)).good
                except Killed:
                    struck = True
                world.revive()
            for journal in open_journals(state, CLUSTER_ID):
                assert mend(journal.path, **world.common(state)).good
            assert _own(world) == own, (first, second)
            assert open_journals(state, CLUSTER_ID) == ()
            pairs += struck
            if not struck:
                break


@OWN
@pytest.mark.parametrize("mend", [resume, undo])
def test_the_clock_is_set_before_what_a_killed_process_wrote_comes(
    tmp_path: Path, own: int | None, mend: Callable[..., PutRight]
) -> None:
    """What was written 5 s ago may take effect for 70 s yet, whatever the wall clock says."""
    world = leaderless(own=own)
    price = _price(world)
    world.scheduled.append((60.0, lambda: world.after(events.ConfigWritten(TOPIC, min_isr=int(price.writes)))))
    world.kill_at = 0
    with pytest.raises(Killed):
        _hold(world, tmp_path, price)
    world.revive()
    world.sleep(5)
    world.clock_set_by_s = 90
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert mend(journal.path, **world.common(tmp_path)).good
    world.sleep(100)
    assert world.scheduled == []
    assert _own(world) == own


def test_somebody_else_has_set_the_config_since(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = leaderless(own=2)
    price = _price(world)
    with monkeypatch.context() as patch:
        watch_files(world, patch)
        world.kill_at = 5
        with pytest.raises(Killed):
            _hold(world, tmp_path, price)
    world.revive()
    assert _own(world) == 3
    world.after(events.ConfigWritten(TOPIC, min_isr=1))
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    done = undo(journal.path, **world.common(tmp_path))
    assert (done.closed, done.good) == (True, False)
    (config,) = done.configs
    assert config.text == "somebody else set min.insync.replicas of topic orders to 1 meanwhile: left alone"
    assert _own(world) == 1


# Cut short, and a full disk.


@OWN
def test_a_hold_that_was_cut_short_is_named_before_another_one(tmp_path: Path, own: int | None) -> None:
    """Its config is written and its sets are empty: without the journal the second one would find nothing to do."""
    world = leaderless(own=own)
    price = _price(world)
    world.kill_at = 1  # right after the write
    with pytest.raises(Killed):
        _hold(world, tmp_path, price)
    world.revive()
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    with pytest.raises(RefusedError) as caught:
        _hold(world, tmp_path, price)
    assert journal.path.stem in caught.value.message
    assert "topic orders" in caught.value.message
    assert "kelr recover resume" in (caught.value.next_step or "")
    with pytest.raises(RefusedError, match="concerns topic orders"):
        refuse_open_journals(tmp_path, CLUSTER_ID, [TopicPartition(TOPIC, 3)])
    refuse_open_journals(tmp_path, CLUSTER_ID, [TopicPartition("other", 3)], topics=("another",))
    assert resume(journal.path, **world.common(tmp_path)).good
    assert _own(world) == own
    refuse_open_journals(tmp_path, CLUSTER_ID, [TopicPartition(TOPIC, 3)], topics=(TOPIC,))


def test_a_run_of_elections_that_was_cut_short_forbids_a_hold_of_its_topic(tmp_path: Path) -> None:
    world = leaderless()
    plan = world.plan({TopicPartition(TOPIC, 0): ElectionRequest(ElectionType.DESIGNATION, 2)})
    world.kill_at = 1
    accepted = Confirmation(AcceptedLoss(1000, unbounded=True))
    with pytest.raises(Killed):
        apply_plan(plan, **world.common(tmp_path), consented=accepted)
    world.revive()
    with pytest.raises(RefusedError, match=r"concerns orders:0: journal .* is open \(recover apply\)"):
        _hold(world, tmp_path)
    assert world.state(1).elr == (1,)


@pytest.mark.parametrize("room", range(6))
@OWN
def test_a_disk_that_is_full_after_some_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: int | None, room: int
) -> None:
    """Nothing is written to the cluster without its line; the old value is restored all the same, and all is told."""
    world = leaderless(own=own)
    append, before, written = AppendOnlyFile.append, world.cluster, [0]

    def limited(file: AppendOnlyFile, *records: Mapping[str, object]) -> None:
        if records and written[0] >= room:
            raise UsageError("no space left")
        written[0] += bool(records)
        append(file, *records)

    with monkeypatch.context() as patch:
        patch.setattr(AppendOnlyFile, "append", limited)
        if room < 2:
            with pytest.raises(UsageError):
                _hold(world, tmp_path)
        else:
            held = _hold(world, tmp_path)
            assert (held.good, held.unrecorded, len(held.cleared)) == (False, "no space left", 4)
    assert _own(world) == own
    if room < 2:
        assert world.cluster == before
        return
    (journal,) = open_journals(tmp_path, CLUSTER_ID)
    assert resume(journal.path, **world.common(tmp_path)).closed
    assert open_journals(tmp_path, CLUSTER_ID) == ()
    assert _own(world) == own
    lines = [(line.what, line.topic, line.result) for line in audit.read(tmp_path)]
    assert lines in ([("hold", TOPIC, "done")], [("config", TOPIC, "done")]), lines
