"""What kelr says of clients: of transactions that stay open, and where consumer groups go on; and what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kelr.engine.planning.seen import Seen
from kelr.engine.planning.verification import findings
from kelr.model import (
    Check,
    DamageKind,
    Decision,
    ElectedBy,
    ElectionType,
    Finding,
    Passed,
    PlannedElection,
    ReplicaLog,
    Snapshot,
    TopicPartition,
)
from kelr.model.afterwards import CommittedOffsets
from kelr.simulation import SimulatedLog
from tests.hindsight.claims import Claim, Kind, option_of_planned
from tests.hindsight.clients import Transaction, committed, passed_over
from tests.hindsight.hindsight import TEN_MINUTES_MS, WAIT, Option, elect
from tests.hindsight.judge import Judged, Verdict
from tests.hindsight.world import World, everyone_back


def transactions_judged(world: World, snapshot: Snapshot, decisions: Sequence[Decision]) -> Iterator[Judged]:
    """Whose election loses the marker that ended a transaction, and what is open and ends by itself."""
    if not world.transactions:
        return
    for decision in decisions:
        address = TopicPartition(decision.topic, decision.partition)
        if world.transactions_of(address) and decision.leader is None:
            for outcome in decision.elections:
                if outcome.election is ElectionType.DESIGNATION and outcome.elected_by is ElectedBy.DESIGNATION:
                    yield from _of_designation(world, snapshot, decision, outcome.elected)


def _of_designation(world: World, snapshot: Snapshot, decision: Decision, elected: int | None) -> Iterator[Judged]:
    assert elected is not None
    address = TopicPartition(decision.topic, decision.partition)
    option = Option(election=ElectionType.DESIGNATION, desired=elected)
    hanging = _hanging(world, address, option)
    if hanging is None:
        return
    heard = {one.replica: one for one in snapshot.logs.get(address, ()) if isinstance(one, ReplicaLog)}
    logs = world.logs(address).logs
    named = [one for one in map(_lost_marker, _damages(decision, DamageKind.LOST_MARKER)) if elected in one[0]]
    shown = {one for one in hanging if any(logs[replica].ids & one.markers for replica in heard)}
    text = "; ".join(_damages(decision, DamageKind.LOST_MARKER))
    claim = Claim(Kind.LOST_MARKER, address, option, named, elected, text or "no marker is lost")
    certain = [start for _, sure, start in named if sure]
    stuck = {one.open_from(logs[elected], logs[elected].high_watermark) for one in hanging}
    if any(start not in stuck for start in certain):
        yield Judged(claim, Verdict.WRONG, f"nothing hangs from {certain} on, but from {stuck}")
    elif shown and not named and elected in heard:
        yield Judged(claim, Verdict.WRONG, f"transactions hang from {stuck} on, and a log shows their end")
    else:
        yield Judged(claim, Verdict.RIGHT if certain or not hanging else Verdict.UNKNOWN, "")
    said = _damages(decision, DamageKind.OPEN_TRANSACTION)
    best = next((one.loss.best for one in decision.elections if one.loss is not None), None)
    if said and best == elected:
        start = int(re.findall(r"offset (\d+)", said[0])[0])
        claim = Claim(Kind.OPEN_TRANSACTION, address, option, said, elected, said[0])
        text = f"it hangs from {stuck} on"
        # It says that a marker which is lost leaves it open for ever.
        yield Judged(claim, Verdict.UNKNOWN if start in stuck else Verdict.RIGHT, text)


def _damages(decision: Decision, kind: DamageKind) -> tuple[str, ...]:
    return tuple(one.text for one in decision.damage if one.kind is kind)


def _lost_marker(text: str) -> tuple[frozenset[int], bool, int | None]:
    """Whose election it is about, whether it is certain, and where the transaction begins, if that is known."""
    found = re.match(r"Electing (.*?) (loses|may lose) the marker that ended (?:the .*? offset (\d+) on)?", text)
    assert found is not None
    start = None if found[3] is None else int(found[3])
    return frozenset(map(int, re.findall(r"\d+", found[1]))), found[2] == "loses", start


def _hanging(world: World, address: TopicPartition, option: Option) -> list[Transaction] | None:
    """The transactions that never end, once somebody was elected and everybody is back; None where that one does not
    lead then."""
    fork = world.fork()
    if elect(fork, address, option) != option.desired:
        return None
    return _hang(fork, address)


def _hang(world: World, address: TopicPartition) -> list[Transaction] | None:
    leader = world.partitions[address].leader
    everyone_back(world)
    world.wait(TEN_MINUTES_MS)
    if leader is None or world.partitions[address].leader != leader:
        return None
    log = world.logs(address).logs[leader]
    return [one for one in world.transactions_of(address) if one.open_from(log, log.high_watermark) is not None]


# Afterwards.


def clients_judged(world: World, planned: PlannedElection, seen: Seen) -> Iterator[Judged]:
    """What a verification says of transactions and consumer groups at this moment."""
    address, leader = planned.address, world.running.cluster.serving(planned.address)
    if leader is None or seen.state is None:
        return
    log = world.logs(address).logs[leader]
    for found in findings(planned, seen):
        if found.check is Check.LAST_STABLE_OFFSET and world.transactions_of(address):
            yield _stable(world, planned, found)
    for one in committed(world.groups, address):
        alone = replace(seen, committed=CommittedOffsets({address: (one,)}, groups=1))
        for found in findings(planned, alone):
            if found.check is Check.GROUPS:
                yield _group(world, planned, found, one.group, log)


def _stable(world: World, planned: PlannedElection, found: Finding) -> Judged:
    claim = Claim(Kind.HANGING, planned.address, option_of_planned(planned), found, planned.elect, found.text)
    hanging = _hang(world.fork(), planned.address)
    if hanging is None or found.passed in {Passed.UNKNOWN, Passed.NOT_YET}:
        return Judged(claim, Verdict.OPEN if hanging is None else Verdict.UNKNOWN, "")
    if found.passed is Passed.YES:
        return Judged(claim, Verdict.WRONG if hanging else Verdict.RIGHT, f"{len(hanging)} transactions hang")
    among = re.search(r"among the \d+ offsets? from (\d+) to (\d+)", found.text)
    leader = world.partitions[planned.address].leader
    assert leader is not None
    log = world.logs(planned.address).logs[leader]
    first, last = (int(among[1]), int(among[2])) if among else (0, -1)
    records = {record for one in hanging for record in one.records}
    held = [at for at, record in enumerate(log.records, log.start) if record.id in records]
    outside = [at for at in held if not first <= at <= last]
    text = f"{len(hanging)} transactions hang; their records are at {held}"
    return Judged(claim, Verdict.RIGHT if hanging and not outside else Verdict.WRONG, text)


def _group(world: World, planned: PlannedElection, found: Finding, name: str, log: SimulatedLog) -> Judged:
    group = world.groups[name, planned.address]
    claim = Claim(Kind.GROUPS, planned.address, WAIT, found, planned.elect, found.text)
    skipped = passed_over(group, log, world.logs(planned.address).ledger.deleted)
    beyond = group.offset > log.end
    text = f"{name} is at {group.offset} of {log.end} and has not read {list(skipped)}"
    if found.passed is Passed.YES:
        return Judged(claim, Verdict.WRONG if skipped or beyond else Verdict.RIGHT, text)
    if found.passed is not Passed.NO:
        return Judged(claim, Verdict.UNKNOWN, text)
    back = re.search(r"--to-offset (\d+)", found.command)
    assert back is not None
    behind = [at for at in skipped if at < int(back[1])]
    right = (beyond or skipped) and not behind and int(back[1]) <= log.end
    return Judged(claim, Verdict.RIGHT if right else Verdict.WRONG, f"{text}; it is sent to {back[1]}")
