"""What KIP-966 promises of committed records, in random lives of a partition with logs; and where each promise ends.

`docs/invariants.md` tells the same in words; its histories are those of `ENDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import Phase, find, given, settings

from kelr.controller import (
    ELR_4_3,
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    KRAFT,
    RULE_SETS,
    Change,
    LogInfo,
    RuleSet,
    best_log,
)
from kelr.model import ElectedBy
from tests.properties import examples
from tests.simulation.lives import (
    CONFIGS,
    DIRECTORIES,
    PARTITION,
    SHUTDOWNS,
    UNATTENDED,
    USUAL,
    WITH_MIN_ISR_WRITES,
    Life,
    Moment,
    Move,
    Setup,
    World,
    lives,
)

WITH_ELR = tuple(rules for rules in RULE_SETS.values() if rules.elr)
KIP966 = (KIP966_BALANCED, KIP966_AGGRESSIVE, KIP966_NONE)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "invariants.md"


def leader_holds_all(life: Life) -> bool:
    """A leader that serves holds everything promised, but for what an unclean election gave up."""
    for moment in life.moments:
        leader = moment.after.cluster.serving(PARTITION)
        if leader is not None and moment.after.lacks(leader):
            return False
    return True


def members_hold_all(life: Life) -> bool:
    """Every member of ISR and ELR holds everything below the high watermark, but for what an unclean election gave up.

    A broker whose disk lost records is struck off when it registers, so it is not looked at before that.
    """
    return not any(
        world.lacks(member) for world in _worlds(life) for member in _members(world) if member not in world.torn
    )


def unclean_are_out(life: Life) -> bool:
    """Whoever restarted uncleanly is in neither ISR nor ELR, and does not lead, until it has caught up with a leader or
    an unclean election took it."""
    unclean: set[int] = set()
    for moment in life.moments:
        registered = _registered_uncleanly(moment)
        if registered is not None:
            unclean.add(registered)
        # A leader lets in whoever holds what it holds itself below its high watermark.
        grown = set(moment.after.partition.isr) - set(moment.before.partition.isr)
        unclean -= {member for member in grown if moment.move.name in {"add", "deliver", "drop"}}
        unclean -= {change.after.leader for change in _elections(moment) if change.elected.unclean}
        if unclean & {moment.after.partition.leader, *_members(moment.after)}:
            return False
    return True


def quorum_has_min_isr_members(life: Life) -> bool:
    """When ISR and ELR are empty, LastKnownELR has min ISR members."""
    return all(
        bool(_members(world)) or len(world.partition.last_known_elr or ()) >= world.min_isr for world in _worlds(life)
    )


def few_lossy_shutdowns_lose_nothing(life: Life) -> bool:
    """A leader that serves holds everything acknowledged with acks=all if fewer than min ISR shutdowns lost records (of
    the lowest min ISR that there was)."""
    lowest = life.setup.world().min_isr
    for world in _worlds(life):
        lowest, leader = min(lowest, world.min_isr), world.cluster.serving(PARTITION)
        if leader is not None and world.lossy_shutdowns < lowest and world.logs.lost_by(leader):
            return False
    return True


def best_heard_log_is_elected(life: Life) -> bool:
    """A recovery elects the best of the logs that were heard of live replicas, and what was heard is still so."""
    for moment in life.moments:
        for change in _recoveries(moment):
            heard, logs = _heard(moment), moment.before.logs.logs
            live = [replica for replica in change.before.replicas if replica in change.ballot.electable]
            truth = {replica: LogInfo(logs[replica].last_epoch, logs[replica].end) for replica in heard}
            if change.after.leader != best_log(live, heard):
                return False
            if any(heard[replica] != truth[replica] for replica in heard if replica not in moment.before.torn):
                return False
    return True


def quorum_is_heard(life: Life) -> bool:
    """Balanced recovery elects nobody before every member of LastKnownELR was heard and is live."""
    for moment in life.moments:
        for change in _recoveries(moment):
            quorum = set(change.before.last_known_elr or ())
            if change.before.isr or change.before.elr or not quorum <= set(_heard(moment)) & change.ballot.electable:
                return False
    return True


def _worlds(life: Life) -> Iterator[World]:
    return (moment.after for moment in life.moments)


def _members(world: World) -> tuple[int, ...]:
    return (*world.partition.isr, *(world.partition.elr or ()))


def _elections(moment: Moment) -> Iterator[Change]:
    for done in moment.done:
        for change in done.changes:
            if change.after.leader is not None and change.after.leader != change.before.leader:
                yield change


def _recoveries(moment: Moment) -> Iterator[Change]:
    for change in _elections(moment):
        if change.elected.rule is not None and change.elected.rule.by is ElectedBy.LONGEST_LOG:
            yield change


def _heard(moment: Moment) -> dict[int, LogInfo]:
    """The answers that the manager has when it elects: those from before that still hold, and the one that came."""
    before, after = moment.before.cluster, moment.after.cluster.controller
    task = before.manager.tasks.get(PARTITION)
    same_epoch = task is not None and task.leader_epoch == moment.before.partition.leader_epoch
    heard = {
        replica: inquiry.log
        for replica, inquiry in (task.inquiries.items() if task is not None and same_epoch else ())
        if inquiry.log is not None and inquiry.broker_epoch == after.brokers[replica].epoch
    }
    broker = moment.move.broker
    if moment.move.name == "answer":
        before = before.reply(broker)
    came = before.replies.get(broker, ()) if moment.move.name in {"answer", "answer arrives"} else ()
    for answer, done in zip(came, moment.done, strict=True) if came else ():
        if PARTITION in answer.entries and PARTITION not in {refusal.address for refusal in done.refused}:
            heard[broker] = answer.entries[PARTITION].log
    return heard


def _registered_uncleanly(moment: Moment) -> int | None:
    broker = moment.move.broker
    came = moment.move.name in {"restart", "register"}
    return broker if came and broker not in moment.before.stopped_cleanly else None


@dataclass(frozen=True, slots=True)
class Promise:
    """A property, and the rule sets that keep it in lives in which nobody gives up records on purpose."""

    holds: Callable[[Life], bool]
    rules: tuple[RuleSet, ...]
    moves: tuple[str, ...] = UNATTENDED
    usual: tuple[str, ...] = USUAL

    def __str__(self) -> str:
        return self.holds.__name__


_WITH_CONFIGS = (*UNATTENDED, *CONFIGS)
PROMISES = (
    Promise(leader_holds_all, WITH_ELR),
    Promise(leader_holds_all, WITH_ELR, _WITH_CONFIGS, WITH_MIN_ISR_WRITES),
    Promise(members_hold_all, WITH_ELR),
    Promise(members_hold_all, WITH_ELR, _WITH_CONFIGS, WITH_MIN_ISR_WRITES),
    Promise(unclean_are_out, WITH_ELR, _WITH_CONFIGS),
    Promise(quorum_has_min_isr_members, KIP966),
    Promise(few_lossy_shutdowns_lose_nothing, (KIP966_BALANCED, KIP966_NONE)),
    Promise(few_lossy_shutdowns_lose_nothing, (KIP966_BALANCED, KIP966_NONE), _WITH_CONFIGS, WITH_MIN_ISR_WRITES),
    Promise(best_heard_log_is_elected, (KIP966_AGGRESSIVE, KIP966_BALANCED)),
    Promise(quorum_is_heard, (KIP966_BALANCED,)),
)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_promise_is_kept(promise: Promise) -> None:
    @examples(100)
    @given(lives(promise.rules, promise.moves, usual=promise.usual))
    def kept(life: Life) -> None:
        assert promise.holds(life), str(life)

    kept()


@pytest.mark.parametrize("rules", KIP966, ids=str)
def test_no_member_of_the_elr_lacks_what_a_lowered_min_isr_let_its_leader_commit_alone(rules: RuleSet) -> None:
    """Chance alone hardly comes to it: min ISR is lowered while nobody leads, and a member of the ELR returns."""
    names = ("fence 1", "fence 2", "fence 3", "min isr 1", "unfence 2", "produce 1", "fence 2", "unfence 3")
    moves = tuple(Move(name.rpartition(" ")[0], int(name[-1])) for name in names)
    life = Life(Setup(rules), moves)
    assert (len(life.moments), len(life.end.promised)) == (len(moves), 1)
    assert members_hold_all(life), str(life)
    assert leader_holds_all(life), str(life)


@dataclass(frozen=True, slots=True)
class End:
    """The shortest life known that breaks a promise."""

    id: str
    holds: Callable[[Life], bool]
    life: Life

    def __str__(self) -> str:
        return self.id


def _life(setup: Setup, *moves: Move) -> Life:
    return Life(setup, moves)


LAST_REPLICA_STANDING = End(
    "the last replica standing",
    few_lossy_shutdowns_lose_nothing,
    _life(
        Setup(KRAFT, replication_factor=2),
        Move("write"),
        Move("fence", 2),
        Move("lose power", 1),
        Move("restart", 1),
    ),
)
LAST_KNOWN_LEADER = End(
    "the last known leader",
    few_lossy_shutdowns_lose_nothing,
    _life(
        Setup(ELR_4_3, replication_factor=2),
        Move("write"),
        Move("crash", 2),
        Move("restart", 2),
        Move("lose power", 1),
        Move("restart", 1),
    ),
)
AGGRESSIVE = End(
    "aggressive does not wait",
    few_lossy_shutdowns_lose_nothing,
    _life(
        Setup(KIP966_AGGRESSIVE, replication_factor=2),
        Move("write"),
        Move("fence", 2),
        Move("lose power", 1),
        Move("restart", 1),
        Move("answer", 1),
        Move("wait"),
    ),
)
_ELR_OFF = End(
    "without ELR the last member of the ISR leads whatever its disk lost",
    few_lossy_shutdowns_lose_nothing,
    _life(
        Setup(KIP966_BALANCED, replication_factor=2),
        Move("write"),
        Move("elr off"),
        Move("fence", 2),
        Move("lose power", 1),
        Move("restart", 1),
    ),
)
ENDS = (
    LAST_REPLICA_STANDING,
    LAST_KNOWN_LEADER,
    AGGRESSIVE,
    End(
        "an empty directory in the place of a failed one",
        leader_holds_all,
        _life(
            Setup(ELR_4_3, replication_factor=2),
            Move("write"),
            Move("fail directory", 1),
            Move("assign directory", 1),
            Move("fence", 2),
        ),
    ),
    End(
        "the same by the KIP's rules",
        leader_holds_all,
        _life(
            Setup(KIP966_BALANCED, replication_factor=2),
            Move("write"),
            Move("fail directory", 1),
            Move("assign directory", 1),
            Move("fence", 2),
        ),
    ),
    _ELR_OFF,
)


@pytest.mark.parametrize("end", ENDS, ids=str)
def test_end_of_a_promise_breaks_it_and_nothing_in_it_is_superfluous(end: End) -> None:
    moves = end.life.moves
    assert not end.holds(end.life), str(end.life)
    assert len(end.life.moments) == len(moves)
    for left_out in range(len(moves)):
        shorter = Life(end.life.setup, moves[:left_out] + moves[left_out + 1 :])
        assert end.holds(shorter), f"{moves[left_out]} is not needed"


@pytest.mark.parametrize("end", [LAST_REPLICA_STANDING, LAST_KNOWN_LEADER], ids=str)
def test_hypothesis_finds_the_losses_that_are_known(end: End) -> None:
    """The lives are rich enough: what would break under these rules does."""
    searching = settings(examples(2_000), phases=(Phase.generate,), database=None)
    found = find(lives((end.life.setup.rules,), SHUTDOWNS), lambda life: not end.holds(life), settings=searching)
    assert not end.holds(found)


def test_hypothesis_finds_that_a_failed_directory_leaves_an_eligible_replica() -> None:
    searching = settings(examples(2_000), phases=(Phase.generate,), database=None)
    names = (*SHUTDOWNS, *DIRECTORIES)
    found = find(lives((ELR_4_3,), names), lambda life: not members_hold_all(life), settings=searching)
    assert not members_hold_all(found)


def test_page_tells_every_end() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for end in ENDS:
        assert f"{end.id}: {told(end.life)}" in page


def told(life: Life) -> str:
    """A life in one line."""
    setup, moves = life.setup, ", ".join(map(str, life.moves))
    return f"`{setup.rules.name}`, RF {setup.replication_factor}, min.insync.replicas {setup.min_isr}; {moves}."
