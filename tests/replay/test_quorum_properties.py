"""The recovery quorum of a metadata log against what only somebody outside of the cluster can know: who holds what."""

from __future__ import annotations

from hypothesis import given

from kelr.controller import LogInfo, rule_set
from kelr.model import RecoveryQuorum
from tests.replay.written import Writer
from tests.simulation.lives import PARTITION, UNATTENDED, Life, World, lives

RELEASED = tuple(rule_set(name) for name in ("elr-4.3", "elr-4.1", "elr-4.1.0"))
WHOLE = tuple(rule_set(name) for name in ("kip966-balanced", "kip966-none", "kip966-aggressive"))
WITH_OPERATOR = (*UNATTENDED, "elect unclean")


def _quorums(life: Life) -> list[tuple[World, RecoveryQuorum]]:
    """The quorum after each move."""
    world = life.setup.world()
    writer = Writer(min_isr=life.setup.min_isr)
    writer.brokers(world.cluster.controller)
    writer.topic(world.partition)
    found = []
    for moment in life.moments:
        state = moment.before.cluster.controller
        for done in moment.done:
            writer.follows(done.changes, state, done.controller.state)
            state = done.controller.state
        quorum = writer.tracker.quorum(PARTITION)
        assert quorum is not None
        assert writer.image.partition(PARTITION) is not None
        found.append((moment.after, quorum))
    return found


@given(lives((*RELEASED, *WHOLE), WITH_OPERATOR, length=60))
def test_members_hold_everything_committed_unless_they_lost_data(life: Life) -> None:
    for world, quorum in _quorums(life):
        if quorum.doubt is None:
            assert len(quorum.members) >= quorum.min_isr
            for member in quorum.members:
                if member not in quorum.restarted and member not in world.torn:
                    assert not world.lacks(member), (str(life), member, quorum)


@given(lives((*RELEASED, *WHOLE), WITH_OPERATOR, length=60))
def test_the_best_log_of_the_quorum_holds_everything_if_fewer_than_min_isr_members_lost_data(life: Life) -> None:
    for world, quorum in _quorums(life):
        lossy = sum(bool(world.lacks(member)) for member in quorum.members)
        if quorum.doubt is None and lossy < quorum.min_isr:
            logs = world.logs.logs
            best = max(quorum.members, key=lambda member: LogInfo(logs[member].last_epoch, logs[member].end).rank)
            assert not world.lacks(best), (str(life), best, quorum)


@given(lives(WHOLE, WITH_OPERATOR, length=60))
def test_last_known_elr_is_the_one_that_a_controller_with_the_whole_kip_keeps(life: Life) -> None:
    for world, quorum in _quorums(life):
        assert set(quorum.last_known_elr) == set(world.partition.last_known_elr or ()), (str(life), quorum)


@given(lives(RELEASED, length=60))
def test_who_is_lost_to_released_kafka_is_in_the_true_last_known_elr(life: Life) -> None:
    for world, quorum in _quorums(life):
        state = world.partition
        if len(state.isr) < quorum.min_isr:
            places = {*state.isr, *(state.elr or ())}
            assert not places & {*quorum.last_known_elr}
            if quorum.doubt is None:
                assert places <= {*quorum.members}
                assert {*quorum.members} - places <= {*quorum.last_known_elr}
