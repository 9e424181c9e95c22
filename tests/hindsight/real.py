"""The same claims in the hindsight of real Kafka: an incident is played once, and goes on from its disks once for each
option.

    python -m tests.hindsight.real [--seed 966] [--rounds 5] [--partitions 12] [--both] [--keep DIR]

Incident, disks and brokers are those of `benchmarks.incidents`, with what `mishaps` adds; elections are carried out
with Kafka's own tools, and what each disk holds is read by kafka-dump-log.sh. Ends with 1 where a claim is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.incidents.chaos import ChaosStep, Deed, random_chaos
from benchmarks.incidents.disks import FIRST_MARKER, keys_on_disks
from benchmarks.incidents.frozen import Frozen
from benchmarks.incidents.ledger import Acked, Ledger
from benchmarks.incidents.play import Player, come_back, is_settled, wait_settled
from benchmarks.incidents.rounds import TOPIC
from benchmarks.incidents.site import Site
from kelr import read_snapshot
from kelr.engine.decide import decide_all
from kelr.lab import LabSpec
from kelr.lab.produce import Acks
from kelr.lab.spec import CONTROLLER_ID, DEFAULT_KAFKA
from kelr.model import ElectionType, PartitionState, PlannedElection, ReplicaLog, Snapshot, TopicPartition
from tests.hindsight.breakable import BreakableLab, TwoDirectories
from tests.hindsight.claims import Claim, Kind, claims_of_verification, option_of_planned
from tests.hindsight.hindsight import Happened, Log, Option, Truth
from tests.hindsight.judge import Judged, Verdict, judge
from tests.hindsight.mishaps import Affected, Setting, change_marks, reassign, setting, transactional
from tests.hindsight.run import claims_of, plans_of, seen_after, together

BROKERS = (3, 4, 5)
SETTLED_WITHIN_S = 90
WAIT_S = 3
NOT_OF_ONE_MOMENT = {Kind.RETURN_SETS}
"""What a leader changes again before anybody can look."""
OF_THE_END = {Kind.ALL_CLEAR, Kind.RESTORE}
"""What is judged by what is left once everybody is back."""
OF_ITS_END = {
    Kind.PROMISE,
    Kind.TOTAL,
    Kind.COMMITTED,
    Kind.UNCOMMITTED,
    Kind.RANGES,
    Kind.TRUNCATION,
    Kind.CONSENT,
    Kind.HOLD_ADVICE,
}
"""The same, where the replica that it is about was elected."""

Logs = Mapping[int, Mapping[int, Log]]
"""Partition to broker to offset to record."""


@dataclass(frozen=True)
class Moment:
    """The cluster when kelr is asked, which can be had again as often as wanted."""

    site: Site
    player: Witness
    logs: Logs
    """What every disk holds, also those that nobody can read."""

    def again(self) -> None:
        """The very same disks, and the same brokers back in the same order, with the same ending."""
        self.lab.mend()
        self.site.frozen.thaw()
        self.site.lose_unreadable_disks()
        come_back(self.lab, TOPIC, self.site.chaos.live, self.site.report)
        if text := self.player.affected.end(self.player.ending):
            self.site.report(text)

    @property
    def lab(self) -> BreakableLab:
        return self.player.affected.lab

    def truth(self, snapshot: Snapshot) -> Mapping[TopicPartition, Truth]:
        """What really is; of records with acks=1 it is left open whether they were ever visible (`judged_anyhow`)."""
        return {state.address: self._truth(snapshot, state) for state in snapshot.partitions}

    def _truth(self, snapshot: Snapshot, state: PartitionState) -> Truth:
        number, lab, player = state.partition, self.lab, self.player
        acked = [one for one in player.ledger.acked if one.partition == number]
        up = self.site.up
        logs = {replica: self.logs[number].get(replica, {}) for replica in state.replicas}
        markers = {record for log in logs.values() for record in log.values() if record >= FIRST_MARKER}
        offsets = {_id(one.key): one.offset for one in acked}
        offsets |= {record: offset for log in logs.values() for offset, record in log.items()}
        heard = [log for log in snapshot.logs.get(state.address, ()) if isinstance(log, ReplicaLog)]
        start = max((log.log_start or 0 for log in heard), default=0)
        deleted = frozenset(map(_id, player.affected.deleted.get(number, ())))
        told = frozenset(record for record in deleted if offsets.get(record, start) < start)
        return Truth(
            state=state,
            logs=logs,
            committed=frozenset(_id(one.key) for one in acked if one.acks is Acks.ALL),
            acknowledged=frozenset(_id(one.key) for one in acked if one.acks is Acks.LEADER) | markers,
            visible=frozenset(),
            deleted=told,
            deleted_unseen=deleted - told,
            given_up=frozenset(player.given_up.get(number, ())),
            clean={
                replica: (None if replica in lab.failed else True) if replica in up else lab.stopped_cleanly(replica)
                for replica in state.replicas
            },
            torn=frozenset(player.affected.torn.get(number, ())),
            marks={log.replica: log.high_watermark or 0 for log in heard},
            offsets=offsets,
            serving=state.leader if state.leader in up - lab.away else None,
        )

    def happen(
        self, chosen: Mapping[TopicPartition, Option], claims: Collection[Claim], planned: Collection[PlannedElection]
    ) -> tuple[Mapping[TopicPartition, Happened], Sequence[Claim]]:
        """Let these options happen, all with the same returns, and every broker that can come back do so after that:
        where what is left then decides on any of these claims.

        Returns:
            What became of each partition, and what kelr says of these elections once they are carried out.
        """
        self.again()
        (returns,) = {option.returns for option in chosen.values()}
        found: Mapping[int, PartitionState] = {}
        for broker in returns:
            self.site.lab.start(broker)
            time.sleep(WAIT_S)
            found = self.site.states()
        self._elect({address.partition: option for address, option in chosen.items()})
        if not returns:
            time.sleep(WAIT_S)
        leaders, active = (
            {number: state.leader for number, state in self.site.states().items()},
            frozenset(self.site.up - self.lab.away),
        )
        logs: Logs = {}
        ended: Mapping[int, PartitionState] = {}
        told: list[Claim] = []
        if any(hangs_on_the_end(claim, leaders) for claim in claims):
            told += self._verified(planned, "at once")
            self._return_all()
            told += self._verified(planned, "with everybody back")
            logs, ended = self.logs_of(self.site.up), self.site.states()
        return {
            address: Happened(
                option,
                found.get(address.partition),
                leaders[address.partition],
                active,
                logs.get(address.partition, {}),
                ended[address.partition].leader if ended else None,
            )
            for address, option in chosen.items()
        }, told

    def _verified(self, planned: Collection[PlannedElection], when: str) -> Iterator[Claim]:
        if planned:
            snapshot = taken(self.site, self._name("after", "kelr"))
            for one in planned:
                yield from claims_of_verification(one, seen_after(snapshot, one), when)

    def _elect(self, options: Mapping[int, Option]) -> None:
        """As an engineer has it without kelr: with Kafka's own tools, all partitions in one call of each."""
        replicas = {number: state.replicas for number, state in self.site.states().items()}
        designated = {n: one.desired for n, one in options.items() if one.election is ElectionType.DESIGNATION}
        first = {n: (desired, *(r for r in replicas[n] if r != desired)) for n, desired in designated.items()}
        reassign(self.player.affected, first)
        unclean = [n for n, one in options.items() if one.election is ElectionType.UNCLEAN]
        self._run_election("UNCLEAN", [*unclean, *designated])
        self._run_election("PREFERRED", [n for n, one in options.items() if one.election is ElectionType.PREFERRED])
        reassign(self.player.affected, {number: replicas[number] for number in first})

    def _run_election(self, kind: str, partitions: Sequence[int]) -> None:
        if partitions:
            file = self._file("election", {"partitions": [{"topic": TOPIC, "partition": n} for n in partitions]})
            # It ends with 1 where a partition has its leader already, or nobody can be elected.
            arguments = ("--election-type", kind, "--path-to-json-file", str(file))
            self.player.affected.stock("kafka-leader-election.sh", *arguments)

    def _file(self, name: str, content: object) -> Path:
        file = self._name(name, "json")
        file.write_text(json.dumps(content))
        return file

    def _name(self, name: str, suffix: str) -> Path:
        return self.site.work / f"{name}-{time.monotonic_ns()}.{suffix}"

    def _return_all(self) -> None:
        """Everybody who can comes back; until each partition stands still: nobody leads it, or all live ones follow."""
        lab, brokers = self.lab, self.site.startable()
        brokers += tuple(lab.away)
        lab.rejoin()
        for broker in brokers:
            lab.start(broker, wait=False)
        lab.wait_unfenced(*brokers)
        up = self.site.up - lab.failed
        lab.wait_partitions(
            TOPIC, "every partition stands still", lambda state: is_settled(state, up), timeout_s=SETTLED_WITHIN_S
        )

    def logs_of(self, brokers: Collection[int]) -> Logs:
        """Of brokers that are up as they are now, of the others as they were."""
        lab, up = self.lab, self.site.up
        disks = {one: lab.data_directory(one) if one in up else self.site.frozen.disk(one) for one in brokers}
        return self.player.logs_on(disks)


def hangs_on_the_end(claim: Claim, leaders: Mapping[int, int | None]) -> bool:
    """Whether it takes the return of everybody to judge the claim, once these lead."""
    led = leaders[claim.address.partition]
    return claim.kind in OF_THE_END or (claim.kind in OF_ITS_END and led is not None and led == claim.about)


class Witness(Player):
    """Plays a script and its mishaps, and writes down what only somebody outside of the cluster can know."""

    def __init__(self, lab: BreakableLab, plan: Setting, report: Callable[[str], None]) -> None:
        super().__init__(lab, TOPIC, plan.chaos, report)
        self.ledger = Ledger(lab.bootstrap_servers, TOPIC, shared_keys=7 if plan.compacted else 0)
        self.affected = Affected(lab, TOPIC, plan.chaos.layouts, self.ledger, plan.compacted)
        self.ending = plan.ending
        self.given_up: dict[int, set[int]] = {}
        """By partition, records with acks=all that a leader lacked when it had been elected."""
        self._led: dict[int, tuple[int | None, int]] = {}
        self._due = {number: list(mishaps) for number, mishaps in plan.mishaps.items()}
        self._steps = 0

    @property
    def needed(self) -> int:
        return self.affected.needed

    @property
    def topic_config(self) -> Mapping[str, str]:
        if not self.affected.compacted:
            return super().topic_config
        # The segment that is being written is never cleaned: with the next record a new one is begun.
        own = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
        return {**super().topic_config, **own}

    def _prepare(self) -> None:
        """What only a healthy cluster can do."""
        if any(one.name == "transact" for due in self._due.values() for one in due):
            # Kafka makes the topic of transactions for the first one, where enough brokers are live for its replicas.
            transactional(self.affected.servers, "first")
        if self.affected.lab.directories == 2:
            self.affected.lab.gather_replicas(TOPIC)
            wait_settled(self._lab, TOPIC)

    def _do(self, step: ChaosStep) -> None:
        if self._steps == 0:
            self._prepare()
        if step.deed in {Deed.START, Deed.LAG}:
            self.affected.heal()
        super()._do(step)
        self._steps += 1
        if step.deed is Deed.CUT:
            for partition in step.partitions:
                self.affected.torn.setdefault(partition, set()).update(step.brokers)
        self._look_if_up()
        waiting = []
        for mishap in self._due.pop(self._steps, []):
            self.affected.heal()
            if (text := self.affected.befalls(mishap)) is None:
                waiting.append(mishap)
            else:
                self._report(text)
                self._look_if_up()
        self._due.setdefault(self._steps + 1, []).extend(waiting)

    def _look_if_up(self) -> None:
        if self.affected.up:
            self.look()

    def logs_on(self, disks: Mapping[int, Path]) -> Logs:
        """What is on these brokers' disks."""
        found: dict[int, dict[int, Log]] = {number: {} for number in range(len(self._chaos.layouts))}
        for broker, logs in keys_on_disks(self._lab, disks, TOPIC).items():
            for number, keys in logs.items():
                log = {offset: _id(key) for key, offset in keys.items()}
                acked = [one for one in self.ledger.acked if one.partition == number]
                found[number][broker] = uncleaned(log, acked) if self.affected.compacted else log
        return found

    def look(self) -> None:
        """See what leaders lack that were elected since."""
        elected = {}
        for address, state in self._lab.partitions(TOPIC).items():
            led = state.leader, state.leader_epoch
            if state.leader is not None and self._led.get(address.partition) != led:
                elected[address.partition] = state.leader
            self._led[address.partition] = led
        disks = {broker: self._lab.data_directory(broker) for broker in set(elected.values())}
        logs = self.logs_on(disks)
        for partition, leader in elected.items():
            holds = set(logs[partition].get(leader, {}).values())
            promised = {
                _id(one.key) for one in self.ledger.acked if one.partition == partition and one.acks is Acks.ALL
            }
            self.given_up.setdefault(partition, set()).update(promised - holds)


def uncleaned(log: Log, acked: Sequence[Acked]) -> Log:
    """A compacted log with the records that a log cleaner took: they were replaced on purpose, and are not lost.

    Which one was at an offset follows from the next that is left: ids grow with time.
    """
    candidates: dict[int, list[int]] = {}
    for one in acked:
        candidates.setdefault(one.offset, []).append(_id(one.key))
    found = dict(log)
    later = FIRST_MARKER
    for offset in range(max(log, default=-1), -1, -1):
        if offset not in found and (fitting := [one for one in candidates.get(offset, ()) if one < later]):
            found[offset] = max(fitting)
        if (record := found.get(offset, later)) < FIRST_MARKER:
            later = record
    return dict(sorted(found.items()))


def _id(key: str) -> int:
    return int(key[1:])


@dataclass
class Result:
    """What came of one round."""

    seed: str
    leaderless: int = 0
    judged: list[Judged] = field(default_factory=list)

    @property
    def wrong(self) -> Sequence[Judged]:
        return [one for one in self.judged if one.verdict is Verdict.WRONG]


def play_round(
    seed: str,
    *,
    brokers: int,
    partitions: int,
    kafka: str,
    work: Path,
    both: bool,
    keep: Path | None,
    report: Callable[[str], None],
) -> Result:
    """Start a cluster, play the incident of this seed, ask kelr, let each option happen, and judge.

    Args:
        both: whether elections are tried after returns, too.
        keep: where the snapshots go of a round with a wrong claim.
    """
    plan = setting(random_chaos(seed, brokers=brokers, partitions=partitions), brokers)
    chaos, spec = plan.chaos, LabSpec(brokers=brokers, kafka=kafka, elr=plan.elr, heap_mb=256)
    report(f"{len(chaos.layouts[0])} replicas, ELR {'on' if plan.elr else 'off'}{', compacted' * plan.compacted}")
    made = BreakableLab if plan.ending is None or plan.ending.name != "fail directory" else TwoDirectories
    with made.up(spec, work / "lab", report=report, owner_pid=os.getpid()) as lab:
        player = Witness(lab, plan, report)
        player.play()
        frozen = Frozen(lab, lab.directory / "frozen")
        if plan.changed_marks is not None:
            down = {broker: frozen.disk(broker) for broker in lab.brokers if broker not in chaos.live}
            report(change_marks(down, plan.changed_marks))
        site = Site(lab, TOPIC, chaos, frozen, lab.directory / "work", report)
        site.work.mkdir()
        moment = Moment(site, player, {})
        moment.again()
        player.look()
        moment = replace(moment, logs=moment.logs_of(lab.brokers))
        report(f"asked with {sorted(site.up)} up: {len(site.leaderless())} of {partitions} partitions have no leader")
        result = Result(seed, len(site.leaderless()))
        looks = snapshots(site, without_controller=plan.without_controller)
        asked = [(snapshot, moment.truth(snapshot)) for snapshot in looks]
        decided = [(snapshot, tuple(decide_all(snapshot)), truth) for snapshot, truth in asked]
        gone = frozenset(chaos.gone) - site.up
        planned = dict.fromkeys(
            found
            for snapshot, decisions, _ in decided
            for _, _, found in plans_of(snapshot, decisions, gone)
            if isinstance(found, PlannedElection) and found.evidence.leader is None
        )
        claims = []
        for snapshot, decisions, truth in decided:
            found = claims_of(snapshot, decisions, gone)
            tried = [(one, truth[one.address]) for one in found if possible(one, moment, truth[one.address], both=both)]
            if is_old(snapshot, lab):
                said = "it says that what brokers told may have been out of date, and it was"
                result.judged += [Judged(claim, Verdict.OPEN, said) for claim, _ in tried]
            else:
                claims += tried
        for chosen in together(claim for claim, _ in claims):
            options = Counter(map(str, chosen.values()))
            report(f"-- {', '.join(f'{option} ({count})' for option, count in sorted(options.items()))}")
            tried = [(claim, truth) for claim, truth in claims if claim.option == chosen.get(claim.address)]
            carried_out = [one for one in planned if option_of_planned(one) == chosen.get(one.address)]
            happened, told = moment.happen(chosen, [claim for claim, _ in tried], carried_out)
            tried += [(claim, asked[-1][1][claim.address]) for claim in told]
            result.judged += [judged_anyhow(claim, truth, happened[claim.address]) for claim, truth in tried]
        if keep is not None and result.wrong:
            for file in site.work.glob("*.kelr"):
                shutil.copy(file, keep / f"{seed}-{file.name}")
        return result


def snapshots(site: Site, *, without_controller: bool) -> Iterator[Snapshot]:
    """What kelr reads: the live brokers alone, and the disks that can be read as well; and that once more, without a
    controller, which stays away."""
    disks = [part for disk in site.readable_disks().values() for part in ("--log-dir", str(disk))]
    for name, more in (("live", []), ("disks", disks)) if disks else (("live", []),):
        yield taken(site, site.work / f"{name}.kelr", *more)
    if without_controller:
        site.lab.kill_controller(CONTROLLER_ID)
        yield taken(site, site.work / "without-controller.kelr", *disks)


def is_old(snapshot: Snapshot, lab: BreakableLab) -> bool:
    """Whether kelr was told by a broker that is cut off, and says that no controller answered: it has that one live."""
    return snapshot.cluster.controller_silence is not None and bool(snapshot.cluster.live & lab.away)


def taken(site: Site, file: Path, *more: str) -> Snapshot:
    """What `kelr snapshot` with these arguments writes."""
    command = [sys.executable, "-m", "kelr", "snapshot", str(file), TOPIC, "-b", site.lab.bootstrap_servers, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"kelr snapshot ended with {done.returncode}: {done.stderr}")
    return read_snapshot(file)


def possible(claim: Claim, moment: Moment, truth: Truth, *, both: bool) -> bool:
    """Whether the claim's option can be tried here: brokers that can start, replicas that are live; returns and
    elections apart from each other, unless `both`."""
    option, site = claim.option, moment.site
    up = site.up - moment.lab.away - moment.lab.failed
    if claim.kind in NOT_OF_ONE_MOMENT or (option.returns and option.election is not None and not both):
        return False
    if option.election is ElectionType.DESIGNATION:
        # Another order of the replicas would end a reassignment that is under way; kelr itself refuses that.
        moving = truth.state.adding or truth.state.removing
        if moving or option.desired not in (up | set(option.returns)) & set(truth.state.replicas):
            return False
    return set(option.returns) <= set(site.startable())


def judged_anyhow(claim: Claim, truth: Truth, happened: Happened) -> Judged:
    """The verdict, wrong only where it is wrong wherever the true high watermark may have been.

    Nobody sees how far a dead leader's high watermark had come: records with acks=1 up to any offset may have been
    visible, and so committed.
    """
    offsets = {record: offset for log in truth.logs.values() for offset, record in log.items()}
    one_acked = sorted(truth.acknowledged, key=lambda record: offsets.get(record, truth.offsets.get(record, 0)))
    wrong = []
    for number in range(len(one_acked) + 1):
        found = judge(claim, replace(truth, visible=frozenset(one_acked[:number])), happened)
        if found.verdict is not Verdict.WRONG:
            return found
        wrong.append(found)
    return wrong[0]


def table(results: Sequence[Result]) -> str:
    """By kind of claim how many were right, unknown, wrong, and open."""
    counts = Counter((one.claim.kind, one.verdict) for result in results for one in result.judged)
    lines = [f"| claim | {' | '.join(Verdict)} |", "|---" * (len(Verdict) + 1) + "|"]
    for kind in Kind:
        row = [counts[kind, verdict] for verdict in Verdict]
        if any(row):
            lines.append(f"| {kind} | {' | '.join(f'{count:,}' for count in row)} |")
    return "\n".join(lines)


def main() -> int:
    chosen = _arguments()
    started = time.monotonic()
    results = []
    for number in range(chosen.first, chosen.first + chosen.rounds):
        seed, brokers = f"{chosen.seed}-{number}", BROKERS[number % len(BROKERS)]
        _say(f"== round {seed}: {brokers} brokers")
        with tempfile.TemporaryDirectory(prefix="kelr-hindsight-") as directory:
            result = play_round(
                seed,
                brokers=brokers,
                partitions=chosen.partitions,
                kafka=chosen.kafka,
                work=Path(directory),
                both=chosen.both,
                keep=chosen.keep,
                report=lambda line: _say(f"{time.monotonic() - started:7.1f} s  {line}"),
            )
        results.append(result)
        for one in result.wrong:
            what = f"{one.claim.address} [{one.claim.kind}] {one.claim.option}"
            _say(f"WRONG {seed} {what}\n  {one.claim.sentence}\n  {one.truth}")
    leaderless = sum(result.leaderless for result in results)
    print(f"Kafka {chosen.kafka}, seed {chosen.seed}, {len(results)} rounds, {leaderless} partitions without leader\n")
    print(table(results))
    return 1 if any(result.wrong for result in results) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hindsight.real", description=__doc__)
    parser.add_argument("--seed", default="966")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="the number of the first round, to repeat one")
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--kafka", default=DEFAULT_KAFKA)
    parser.add_argument("--both", action="store_true", help="try elections after a broker's return, too")
    parser.add_argument("--keep", type=Path, help="an empty directory for what kelr read in rounds with a wrong claim")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
