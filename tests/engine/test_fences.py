"""What a plan stood on and is otherwise now: what matters is named, and what does not is let pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_0
from kelr.engine import decide
from kelr.engine.planning import after_reordering, differences, hands_over, leads_already
from kelr.model import (
    LOG_DIRECTORY,
    Broker,
    BrokerStatus,
    Consent,
    Difference,
    ElectionRequest,
    ElectionType,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    PlannedElection,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from tests.engine.cases import leaderless, log_of, silent
from tests.engine.planned import (
    all_heard,
    asked,
    designated,
    election,
    fields,
    incident,
    known,
    planner,
    stopped,
    with_cluster,
    with_logs,
    with_state,
)
from tests.properties import examples

Change = Callable[[Snapshot], Snapshot]
OTHER_TOPIC = "BBBBBBBBQACAAAAAAAAAAQ"
BALANCED = asked(ElectionType.LONGEST_LOG_BALANCED)
PREFERRED = asked(ElectionType.PREFERRED)


def found(planned: PlannedElection, snapshot: Snapshot) -> tuple[Difference, ...]:
    return differences(planned, snapshot, decide(snapshot, snapshot.partitions[0]))


def changed(snapshot: Snapshot, change: Change, wish: ElectionRequest) -> tuple[Difference, ...]:
    return found(election(snapshot, wish), change(snapshot))


def state(**changes: object) -> Change:
    return lambda snapshot: with_state(snapshot, **changes)


def logs(*answers: object) -> Change:
    return lambda snapshot: with_logs(snapshot, *answers)  # type: ignore[arg-type]


def config(**changes: object) -> Change:
    def change(snapshot: Snapshot) -> Snapshot:
        before = snapshot.configs["orders"]
        return replace(snapshot, configs={"orders": replace(before, **changes)})  # type: ignore[arg-type]

    return change


def broker(number: int, status: BrokerStatus | None = None, *, broker_epoch: int | None = None) -> Change:
    def change(snapshot: Snapshot) -> Snapshot:
        rest = [one for one in snapshot.cluster.brokers if one.id != number]
        before = snapshot.cluster.broker(number) or Broker(number, BrokerStatus.FENCED)
        after = replace(before, status=status or before.status, broker_epoch=broker_epoch)
        brokers = tuple(sorted((*rest, after), key=lambda one: one.id))
        return with_cluster(snapshot, replace(snapshot.cluster, brokers=brokers))

    return change


def gone(number: int) -> Change:
    def change(snapshot: Snapshot) -> Snapshot:
        brokers = tuple(one for one in snapshot.cluster.brokers if one.id != number)
        return with_cluster(snapshot, replace(snapshot.cluster, brokers=brokers))

    return change


def both(*changes: Change) -> Change:
    def change(snapshot: Snapshot) -> Snapshot:
        for one in changes:
            snapshot = one(snapshot)
        return snapshot

    return change


LIVE = BrokerStatus.LIVE
NOBODY_LED = leaderless((3, 1, 2))

# What forbids an election. The plan: replicas 3, 1, 2 without a leader; 2 and 3 live; 2 is designated by a reordering.
MATTERS = {
    "somebody leads": (state(leader=3, leader_epoch=6, isr=(3,), last_known_elr=()), "leader"),
    "the wanted replica leads": (state(leader=2, leader_epoch=6, isr=(2,), last_known_elr=()), "leader"),
    "there was an election": (state(leader_epoch=6), "leader_epoch"),
    "an older answer": (state(leader_epoch=4), "leader_epoch"),
    "a broker knows a newer epoch": (logs(log_of(3, (4, 116), leader_epoch=6)), "leader_epoch"),
    "a member joined the ISR": (state(isr=(1,)), "isr"),
    "a member joined the ELR": (state(elr=(1,)), "elr"),
    "the ELR is not known": (state(elr=None, last_known_elr=None), "elr"),
    "another was the last leader": (state(last_known_elr=(3,)), "last_known_elr"),
    "somebody wrote min.insync.replicas": (state(last_known_elr=()), "last_known_elr"),
    "its records are elsewhere now": (config(foreign="diskless.enable=true"), "foreign"),
    "somebody reordered": (state(replicas=(2, 3, 1)), "replicas"),
    "it was reassigned": (state(replicas=(3, 4, 2)), "replicas"),
    "a reassignment adds": (state(adding=(4,)), "adding"),
    "a reassignment removes": (state(removing=(3,)), "removing"),
    "reassignments are not known": (state(adding=None), "adding"),
    "it is another topic": (state(topic_id=OTHER_TOPIC), "topic_id"),
    "min ISR was changed": (config(min_insync_replicas=1), "min_isr"),
    "min ISR is not known": (config(min_insync_replicas=None), "min_isr"),
    "unclean elections were allowed": (config(unclean_leader_election=True), "unclean_leader_election"),
    "the wanted replica died": (broker(2, BrokerStatus.FENCED), "live"),
    "the wanted replica's directory failed": (state(offline_replicas=(1, 2)), "live"),
    "the wanted replica was restarted": (broker(2, broker_epoch=77), "broker_epoch of 2"),
    "its log is shorter": (logs(log_of(2, (4, 130), hw=120)), "log_end of 2"),
    "its log is longer": (logs(log_of(2, (4, 136), hw=120)), "log_end of 2"),
    "its log ends in another epoch": (logs(log_of(2, (3, 135), hw=120)), "last_epoch of 2"),
    "its log cannot be read": (
        logs(LogUnavailable(2, LogUnavailableReason.TIMED_OUT, "no answer in 5 s")),
        "log_end of 2",
    ),
    "another replica's log holds more": (logs(log_of(3, (4, 150), hw=116)), "loss"),
    "a dead replica's log was read and holds more": (logs(log_of(1, (4, 150), hw=120)), "loss"),
    "a better replica came back": (both(broker(1, LIVE), logs(log_of(1, (4, 150), hw=120))), "status of 1"),
    "a replica came back that nobody can read": (
        both(broker(1, LIVE), logs(LogUnavailable(1, LogUnavailableReason.NOT_AUTHORIZED, "READ"))),
        "status of 1",
    ),
    "whom Kafka elects came back": (broker(1, LIVE), "elects"),
    "a broker of the order is not registered": (gone(1), "order"),
}


def planned_on() -> Snapshot:
    """The incident, with broker epochs as a cluster tells them that has GetReplicaLogInfo."""
    return broker(2, broker_epoch=40)(incident())


@pytest.mark.parametrize("name", MATTERS)
def test_what_matters_is_named(name: str) -> None:
    change, field = MATTERS[name]
    seen = changed(planned_on(), change, designated(2))
    assert field in fields(seen)
    assert all(one.text.endswith(".") and one.planned != one.now for one in seen)


DOES_NOT_MATTER: dict[str, Change] = {
    "nothing": lambda snapshot: snapshot,
    "time": lambda snapshot: replace(snapshot, taken_at_ms=99, source="again"),
    "when and how logs were read": logs(replace(log_of(2, (4, 135), hw=120), source="other", read_at_ms=7)),
    "the order of the ISR and other sets": state(isr=(), elr=(), last_known_elr=(1,)),
    "another replica cannot be read any more": logs(silent(3)),
    "another replica died": broker(3, BrokerStatus.FENCED),
    "another replica's log is shorter": logs(log_of(3, (4, 100), hw=100)),
    "another replica's log was read and holds less": logs(log_of(1, (4, 120), hw=110)),
    "the wanted replica's high watermark": logs(log_of(2, (4, 135), hw=0)),
    "retention": logs(log_of(2, (4, 135), hw=120, start=50)),
    "another replica's broker epoch": broker(3, broker_epoch=50),
    "how clean-up works": config(cleanup_policy=("compact",)),
    "a rack": lambda snapshot: with_cluster(snapshot, replace(snapshot.cluster, controller=3)),
}


@pytest.mark.parametrize("name", DOES_NOT_MATTER)
def test_what_does_not_matter_is_let_pass(name: str) -> None:
    assert changed(planned_on(), DOES_NOT_MATTER[name], designated(2)) == ()


def test_a_broker_with_a_worse_log_may_come_back_where_the_reordering_still_elects_the_wanted_one() -> None:
    """Nobody is the last known leader, so that the return of 1 elects nobody."""
    snapshot = all_heard(state=NOBODY_LED)
    assert changed(snapshot, broker(1, LIVE), BALANCED) == ()


def test_an_unclean_election_is_lost_to_whoever_comes_back_before_the_wanted_replica() -> None:
    snapshot = incident(leaderless((1, 3, 2)), logs=(log_of(1, (4, 100)), log_of(3, (4, 116)), log_of(2, (4, 116))))
    seen = changed(snapshot, broker(1, LIVE), asked(ElectionType.UNCLEAN))
    assert fields(seen) == ["elects"]
    assert (seen[0].planned, seen[0].now) == ("3", "1")
    assert seen[0].text == "The planned requests would elect 1 now."


def test_a_better_log_that_was_known_of_may_not_come_to_life_unseen() -> None:
    """Its disk was read, so that the loss was planned; live it is the one to elect."""
    snapshot = with_logs(incident(NOBODY_LED), log_of(1, (4, 150), hw=120))
    seen = changed(snapshot, broker(1, LIVE), designated(2))
    assert fields(seen) == ["status of 1"]
    assert seen[0].text == "Broker 1 is live again, with a better log than 2: plan again."
    assert (seen[0].planned, seen[0].now) == ("not live", "live, log end 150")


def test_an_elected_elr_member_needs_no_other_log() -> None:
    """It holds all that was committed, whoever else is heard or not."""
    snapshot = incident(leaderless((3, 1, 2), isr=(1,), elr=(3,)), logs=(log_of(3, (4, 9)), silent(1), silent(2)))
    assert changed(snapshot, logs(silent(3)), designated(3)) == ()
    assert fields(changed(snapshot, logs(log_of(3, (4, 8))), designated(3))) == ["log_end of 3"]
    beyond = logs(log_of(2, (4, 30), hw=9))  # nothing committed, yet records that the plain yes did not cover
    assert fields(changed(snapshot, beyond, designated(3))) == ["loss"]
    assert fields(changed(with_logs(snapshot, silent(3)), both(beyond, logs(log_of(3, (4, 9)))), designated(3))) == [
        "loss"
    ]
    contradiction = logs(log_of(2, (4, 30), hw=20))
    assert fields(changed(snapshot, contradiction, designated(3))) == ["loss"]


def test_a_log_that_was_chosen_blindly_and_is_read_now_is_shown_first() -> None:
    snapshot = with_logs(incident(), silent(2))
    assert election(snapshot, designated(2)).consent is Consent.FORCE
    seen = changed(snapshot, logs(log_of(2, (4, 135), hw=120)), designated(2))
    assert fields(seen) == ["log_end of 2"]
    assert (seen[0].planned, seen[0].now) == ("unknown", "135")
    assert (
        seen[0].text == "The log of 2 was not read when the plan was made, and is now: plan again to see what is lost."
    )
    assert changed(snapshot, logs(LogUnavailable(2, LogUnavailableReason.TIMED_OUT)), designated(2)) == ()


def test_a_log_that_cannot_be_read_any_more_is_named_with_the_reason() -> None:
    mute, *_ = changed(
        incident(), logs(LogUnavailable(2, LogUnavailableReason.TIMED_OUT, "no answer in 5 s")), designated(2)
    )
    assert (mute.planned, mute.now) == ("135", "unknown")
    assert mute.text == "The log of 2, which is to lead, cannot be read now: no answer in 5 s."
    mute, *_ = changed(incident(), logs(LogUnavailable(2, LogUnavailableReason.TIMED_OUT)), designated(2))
    assert mute.text.endswith("cannot be read now: timed-out.")


def test_more_that_is_known_to_be_committed_is_a_greater_loss() -> None:
    snapshot = incident(NOBODY_LED)
    seen = changed(snapshot, logs(log_of(2, (4, 135), hw=130)), designated(3))
    assert fields(seen) == ["loss"]
    assert (seen[0].planned, seen[0].now) == ("4", "14")
    assert seen[0].text.startswith("Electing 3 would lose more offsets known to be committed now")


def test_where_more_is_lost_altogether_the_whole_is_named() -> None:
    snapshot = incident(NOBODY_LED)
    seen = changed(snapshot, logs(log_of(2, (4, 150), hw=130)), designated(3))
    assert fields(seen) == ["loss"]
    assert (seen[0].planned, seen[0].now) == ("at least 19", "at least 34")


def test_a_growing_loss_is_seen_although_a_log_that_was_counted_cannot_be_read_any_more() -> None:
    """Planned with 3's 50 offsets lost, 1 unheard; now 3 is silent and 1 turns out to hold 20 others."""
    replicas = leaderless((2, 1, 3))
    snapshot = incident(replicas, logs=(log_of(2, (2, 100)), silent(1), log_of(3, (2, 100), (3, 150))))
    now = both(logs(silent(3), log_of(1, (2, 100), (4, 120))))
    (more,) = changed(snapshot, now, designated(2))
    assert (more.field, more.planned, more.now) == ("loss", "0 of 1", "20 of 1")
    assert changed(snapshot, logs(silent(3)), designated(2)) == ()
    both_known = with_logs(snapshot, log_of(1, (2, 100), (4, 120)))
    assert changed(both_known, logs(silent(3)), designated(2)) == ()


def test_what_was_bounded_may_not_become_unknown() -> None:
    """Without lineages nobody knows where logs part that end in different epochs."""
    of_2, of_3 = (replace(log, lineage=None) for log in (log_of(2, (4, 135)), log_of(3, (3, 116))))
    snapshot = with_logs(incident(), of_2, silent(3))
    seen = changed(snapshot, logs(of_3), designated(2))
    assert fields(seen) == ["consent"]
    assert (seen[0].planned, seen[0].now) == ("loss", "force")


def test_a_loss_of_nothing_may_not_become_one_of_something() -> None:
    """All were heard, and a plain yes was given; then the rest of a log turns up."""
    snapshot = all_heard(state=NOBODY_LED)
    assert election(snapshot, BALANCED).consent is Consent.YES
    seen = changed(snapshot, logs(log_of(1, (4, 140), hw=120)), BALANCED)
    assert fields(seen) == ["loss"]
    assert (seen[0].planned, seen[0].now) == ("0", "5")
    assert changed(snapshot, logs(silent(1)), BALANCED) == ()


def test_as_many_logs_as_were_asked_for_have_to_be_heard_still() -> None:
    seen = changed(incident(), logs(silent(3)), designated(2, 2))
    assert fields(seen) == ["heard"]
    assert (seen[0].planned, seen[0].now) == ("2", "1")
    assert changed(incident(), logs(silent(3)), designated(2, 1)) == ()


def test_a_partition_that_is_gone_is_no_partition_to_elect() -> None:
    snapshot = incident()
    planned = election(snapshot, designated(2))
    decision = decide(snapshot, snapshot.partitions[0])
    assert fields(differences(planned, replace(snapshot, partitions=()), decision)) == ["partition"]
    other = replace(planned, partition=9)
    assert fields(differences(other, snapshot, decision)) == ["partition"]


def test_a_fence_by_other_rules_is_none() -> None:
    snapshot = incident()
    planned = election(snapshot, designated(2))
    seen = differences(planned, snapshot, decide(snapshot, snapshot.partitions[0], ELR_4_0))
    assert "rules" in fields(seen)


def test_a_reassignment_that_nobody_could_tell_of_and_is_known_to_be_none_now_changes_nothing() -> None:
    snapshot = with_state(incident(), adding=None, removing=None)
    assert changed(snapshot, state(adding=(), removing=()), designated(3)) == ()
    assert fields(changed(snapshot, state(adding=(2,), removing=()), designated(3))) == ["adding"]


# A live leader that hands over


def led() -> Snapshot:
    before = PartitionState("orders", 0, 2, 5, (1, 2, 3), (1, 2, 3), (), ())
    return incident(before, live=(1, 2, 3), fenced=(), logs=(log_of(1, (5, 90), hw=90), log_of(2, (5, 95), hw=91)))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (logs(log_of(1, (5, 100), hw=99), log_of(2, (5, 120), hw=110), silent(3)), []),
        (config(min_insync_replicas=1, unclean_leader_election=True), []),
        (state(elr=None, last_known_elr=None), []),
        (state(isr=(1, 2)), ["isr"]),
        (state(isr=(2, 3)), ["isr", "elects"]),
        (state(leader=3, leader_epoch=6), ["leader", "leader_epoch"]),
        (state(leader=1, leader_epoch=6), ["leader", "leader_epoch"]),
        (state(leader_epoch=6), ["leader_epoch"]),
        (state(replicas=(3, 1, 2)), ["replicas", "elects"]),
        (broker(1, BrokerStatus.FENCED), ["live", "elects"]),
    ],
)
def test_a_preferred_election_of_a_led_partition_stands_on_the_leader_and_its_isr(
    change: Change, named: list[str]
) -> None:
    assert hands_over(election(led(), PREFERRED))
    assert fields(changed(led(), change, PREFERRED)) == named


def test_a_replica_that_joined_the_isr_is_no_obstacle() -> None:
    snapshot = with_state(led(), isr=(1, 2))
    assert changed(snapshot, state(isr=(2, 1, 3)), PREFERRED) == ()


def test_that_the_wanted_replica_leads_already_is_told_apart() -> None:
    planned = election(led(), PREFERRED)
    assert leads_already(planned, with_state(led(), leader=1).partitions[0])
    assert not leads_already(planned, led().partitions[0])
    seen = changed(led(), state(leader=1), PREFERRED)
    assert seen[0].text == "Broker 1, the wanted replica, leads already: nothing is left to do."


# Between reordering and election


def between(**changes: object) -> tuple[Difference, ...]:
    snapshot = incident()
    planned = election(snapshot, designated(2))
    after = replace(snapshot.partitions[0], replicas=planned.order)
    return after_reordering(planned, replace(after, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, []),
        ({"leader_epoch": 6}, []),
        ({"leader": 2, "leader_epoch": 6, "isr": (2,), "last_known_elr": ()}, []),
        ({"leader": 2, "leader_epoch": 7, "isr": (2,), "last_known_elr": ()}, []),
        ({"leader": 3, "leader_epoch": 6}, ["leader"]),
        ({"leader_epoch": 7}, ["leader_epoch"]),
        ({"leader_epoch": 4}, ["leader_epoch"]),
        ({"replicas": (3, 1, 2)}, ["replicas"]),
        ({"replicas": (3, 2, 1)}, ["replicas"]),
        ({"replicas": (2, 3, 1, 4)}, ["replicas"]),
        ({"adding": (4,)}, ["replicas"]),
        ({"removing": (3,)}, ["replicas"]),
        ({"isr": (1,)}, ["isr"]),
        ({"elr": (1,)}, ["elr"]),
        ({"elr": None}, ["elr"]),
        ({"last_known_elr": ()}, ["last_known_elr"]),
        ({"topic_id": OTHER_TOPIC}, ["topic_id"]),
    ],
)
def test_between_reordering_and_election_nothing_else_moves(changes: dict[str, object], named: list[str]) -> None:
    assert fields(between(**changes)) == named


def test_a_replica_that_had_to_be_left_out_is_on_its_way_out() -> None:
    snapshot = incident(NOBODY_LED, fenced=())
    planned = election(snapshot, designated(2))
    after = replace(snapshot.partitions[0], replicas=(2, 3, 1), removing=(1,), leader_epoch=6)
    assert after_reordering(planned, after) == ()
    assert after_reordering(planned, replace(after, replicas=(2, 3), removing=())) == ()
    assert fields(after_reordering(planned, replace(after, removing=(1, 3)))) == ["replicas"]


def test_a_leader_that_the_reordering_takes_off_may_become_the_last_known_one() -> None:
    snapshot = incident(replace(leaderless((1, 2, 3), isr=(1,)), leader=1))
    planned = election(snapshot, designated(2))
    after = replace(snapshot.partitions[0], leader=None, replicas=(2, 1, 3), leader_epoch=6, last_known_elr=(1,))
    assert after_reordering(planned, after) == ()
    assert fields(after_reordering(planned, replace(after, last_known_elr=(3,)))) == ["last_known_elr"]


# Properties

_FIELDS: dict[str, st.SearchStrategy[object]] = {
    "leader_epoch": st.sampled_from((0, 4, 6, 9)),
    "isr": st.sampled_from(((), (1,), (2, 3), (4,))),
    "elr": st.sampled_from((None, (), (1,), (2, 3), (4,))),
    "last_known_elr": st.sampled_from((None, (), (1,), (2,), (3,), (4,))),
    "replicas": st.permutations((1, 2, 3, 4)).map(tuple),
    "adding": st.sampled_from((None, (4,))),
    "removing": st.sampled_from((None, (1,))),
    "topic_id": st.just(OTHER_TOPIC),
}


@examples(400)
@given(stopped(), st.sampled_from(sorted(_FIELDS)), st.data())
def test_a_field_that_changes_is_always_named(
    both: tuple[Snapshot, ElectionRequest], field: str, data: st.DataObject
) -> None:
    snapshot, wish = both
    for planned in planner(lambda _state: wish, snapshot, None).elections:
        value = data.draw(_FIELDS[field])
        before = getattr(snapshot.partitions[0], field)
        same = value == before or (field != "replicas" and _set(value) == _set(before))
        if same or hands_over(planned):
            continue
        now = with_state(snapshot, **{field: value})
        assert field in fields(found(planned, now))


@examples(300)
@given(stopped(), st.integers(1, 4), st.sampled_from(list(BrokerStatus)), st.booleans())
def test_no_election_passes_that_would_elect_another_or_lose_more(
    both: tuple[Snapshot, ElectionRequest], number: int, status: BrokerStatus, silenced: bool
) -> None:
    """Whatever becomes of one broker: without a difference, the planned replica is elected and nothing more is lost."""
    snapshot, wish = both
    for planned in planner(lambda _state: wish, snapshot, None).elections:
        now = broker(number, status)(snapshot)
        if silenced:
            now = with_logs(now, silent(number))
        decision = decide(now, now.partitions[0])
        if differences(planned, now, decision):
            continue
        outcomes = [one for one in decision.elections if one.elected == planned.elect]
        assert outcomes
        lost = outcomes[0].loss
        if lost is not None and lost.total is not None and planned.loss.total is not None:
            assert lost.total.at_least <= planned.loss.total.at_least


def _set(value: object) -> object:
    return frozenset(value) if isinstance(value, tuple) else value


def test_addresses_are_told_apart() -> None:
    snapshot = incident()
    assert snapshot.partitions == (known(leaderless((3, 1, 2), last_known=(1,))),)
    assert snapshot.partitions[0].address == TopicPartition("orders", 0)
    assert snapshot.configs["orders"] != TopicConfig()


# Disks that the plan stands on, read again.


def with_disk(*ends: tuple[int, int]) -> Snapshot:
    """The incident with broker 1's log as its disk has it."""
    disk = replace(log_of(1, *ends, hw=120), source=LOG_DIRECTORY, current_leader_epoch=None)
    return incident(logs=(log_of(3, (4, 116), hw=116), disk, log_of(2, (4, 135), hw=120)))


@pytest.mark.parametrize("ends", [((4, 131),), ((4, 129),), ((3, 130),)])
def test_a_disk_that_holds_something_else_than_when_the_plan_was_made_refuses(
    ends: tuple[tuple[int, int], ...],
) -> None:
    planned = election(with_disk((4, 130)), designated(2))
    said = {one.field: one.text for one in found(planned, with_disk(*ends))}
    assert said["log_end of 1"] == (
        "The disk of broker 1 holds another log than the plan stands on: plan again with the newer reading."
    )


def test_the_same_disk_read_again_is_let_pass() -> None:
    assert found(election(with_disk((4, 130)), designated(2)), with_disk((4, 130))) == ()


def test_a_disk_that_is_not_believed_any_more_refuses() -> None:
    doubt = LogUnavailable(1, LogUnavailableReason.DOUBTFUL, "its disk is not believed: why")
    logs = (log_of(3, (4, 116), hw=116), doubt, log_of(2, (4, 135), hw=120))
    (difference,) = found(election(with_disk((4, 130)), designated(2)), incident(logs=logs))
    assert (difference.field, difference.now) == ("log_end of 1", "unknown")
    assert "its disk is not believed: why" in difference.text
