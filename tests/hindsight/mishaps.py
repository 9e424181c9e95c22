"""What happens to a real cluster besides the steps of its script: what an administrator changes, damage to disks.

Drawn from the seed of the incident, before anything happens. What makes no sense when it is due waits until it does.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.incidents.chaos import MIN_ISR, REPLICAS, Chaos
from benchmarks.incidents.disks import keys_on_disks
from benchmarks.incidents.ledger import Ledger, settings
from benchmarks.incidents.play import Fencings, come_back, has_left, wait_settled
from kelr.lab.disk import CLEAN_SHUTDOWN_FILE, read_batches
from kelr.lab.produce import Acks
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import PartitionState
from tests.hindsight.breakable import BreakableLab

_QUIET: Mapping[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}


@dataclass(frozen=True, slots=True)
class Mishap:
    """One of `MISHAPS`, with the seed of its own chances."""

    name: str
    seed: int


@dataclass(frozen=True, slots=True)
class Setting:
    """How the cluster of an incident is made, and what happens to it."""

    chaos: Chaos
    """The script, with as many replicas as this topic has."""
    elr: bool
    mishaps: Mapping[int, Sequence[Mishap]]
    """By the number of the step after which they are due."""
    compacted: bool
    ending: Mishap | None
    """One of `ENDINGS`: what one of the brokers suffers that is up when kelr is asked."""
    changed_marks: int | None
    """The seed of what is done to marks of clean shutdowns on disks of brokers that are down then."""
    without_controller: bool
    """Whether kelr is asked once more when there is no controller."""


def setting(chaos: Chaos, brokers: int) -> Setting:
    """What belongs to the incident of this script."""
    chance = random.Random(f"{chaos.seed} setting")
    factor = min(chance.choice((*[REPLICAS] * 5, 4, 2, 1)), brokers)
    layouts = []
    for layout in chaos.layouts:
        others = [broker for broker in range(1, brokers + 1) if broker not in layout]
        layouts.append((*layout, *chance.sample(others, len(others)))[:factor])
    mishaps: dict[int, list[Mishap]] = {}
    for name in chance.sample([*sorted(MISHAPS), *["transact"] * 4], chance.choice((2, 3, 4))):
        mishaps.setdefault(chance.randrange(1, len(chaos.steps)), []).append(Mishap(name, chance.getrandbits(32)))
    elr = chance.random() < 0.8
    # Somebody has to be left who tells what became of the others.
    name = chance.choice((None, *(ENDINGS if len(chaos.live) > 1 else ["fail directory"])))
    ending = None if name is None else Mishap(name, chance.getrandbits(32))
    marks = chance.choice((None, chance.getrandbits(32)))
    compacted, without_controller = chance.random() < 0.3, chance.random() < 0.4
    if name == "fail directory":
        # A replica that is made later may be in the other directory.
        mishaps = {at: [one for one in due if one.name != "reassign"] for at, due in mishaps.items()}
    return Setting(replace(chaos, layouts=tuple(layouts)), elr, mishaps, compacted, ending, marks, without_controller)


@dataclass
class Affected:
    """A cluster, and what mishaps have done to it that nobody in it knows."""

    lab: BreakableLab
    topic: str
    layouts: Sequence[Sequence[int]]
    ledger: Ledger
    compacted: bool
    min_isr: int = MIN_ISR
    """The topic's min.insync.replicas as it is now."""
    torn: dict[int, set[int]] = field(default_factory=dict)
    """By partition, replicas whose log lost something on its disk."""
    deleted: dict[int, set[str]] = field(default_factory=dict)
    """By partition, the keys of records that were deleted on purpose."""

    def befalls(self, mishap: Mishap) -> str | None:
        """Let it happen; returns what it did, None where it made no sense."""
        return MISHAPS[mishap.name](self, random.Random(mishap.seed))

    @property
    def needed(self) -> int:
        """In-sync replicas without which acks=all is refused."""
        return min(self.min_isr, len(self.layouts[0]))

    @property
    def up(self) -> list[int]:
        """Brokers that run, and that are not away."""
        return [one for one in self.lab.brokers if one not in self.lab.away and self.lab.is_running(one)]

    def heal(self) -> None:
        """All reach each other again, and who is up follows."""
        if not self.lab.network.is_whole:
            self.lab.network.heal()
            if self.up:
                wait_settled(self.lab, self.topic)

    def end(self, ending: Mishap | None) -> str | None:
        """Let it happen, for good; returns what it did."""
        return None if ending is None else ENDINGS[ending.name](self, random.Random(ending.seed))

    def wait_left(self, broker: int) -> None:
        self.lab.wait_partitions(
            self.topic, f"{broker} has left", lambda state: has_left(state, {broker}), timeout_s=60
        )

    @property
    def servers(self) -> str:
        return ",".join(f"127.0.0.1:{self.lab.port(broker)}" for broker in self.up)

    def states(self) -> Sequence[PartitionState]:
        return tuple(self.lab.partitions(self.topic).values())

    def crashed_disk(self, chance: random.Random) -> tuple[int, list[tuple[int, Path]]] | None:
        """A broker that is down and was not shut down cleanly, since only such a disk can have lost anything, and some
        of its replicas: partition and directory."""
        data = self.lab.data_directory
        dead = [one for one in self.lab.brokers if not self.lab.is_running(one)]
        crashed = [one for one in dead if not (data(one) / CLEAN_SHUTDOWN_FILE).exists()]
        if not crashed:
            return None
        broker = chance.choice(crashed)
        places = [(number, data(broker) / f"{self.topic}-{number}") for number in range(len(self.layouts))]
        return broker, [place for place in places if place[1].is_dir() and chance.random() < 0.6]

    def stock(self, tool: str, *arguments: str) -> str:
        done = self.lab.stock_tool(tool, "--bootstrap-server", self.servers, *arguments, timeout_s=120)
        return f"{done.stdout}{done.stderr}".strip()


# What an administrator does. Each needs a broker that answers.


def _write_config(one: Affected, name: str, value: str) -> None:
    from confluent_kafka.admin import (  # noqa: PLC0415
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, one.topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": one.servers, **_QUIET})
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(30)


def _write_min_isr(one: Affected, chance: random.Random) -> str | None:
    if not one.up:
        return None
    one.min_isr = chance.choice((1, 1, 3))
    _write_config(one, "min.insync.replicas", str(one.min_isr))
    return f"min.insync.replicas={one.min_isr} was written"


def _allow_unclean(one: Affected, _chance: random.Random) -> str | None:
    if not one.up:
        return None
    _write_config(one, "unclean.leader.election.enable", "true")
    wait_settled(one.lab, one.topic)
    return "unclean.leader.election.enable=true was written"


def _switch_elr_off(one: Affected, _chance: random.Random) -> str | None:
    if not one.up:
        return None
    said = one.stock("kafka-features.sh", "downgrade", "--feature", "eligible.leader.replicas.version=0")
    return f"ELR was switched off: {said}"


def _elect_uncleanly(one: Affected, _chance: random.Random) -> str | None:
    """Somebody ran the stock tool before anybody looked."""
    if not one.up:
        return None
    leaderless = [state.partition for state in one.states() if state.leader is None]
    if not leaderless:
        return None
    file = one.lab.directory / "elect-uncleanly.json"
    file.write_text(json.dumps({"partitions": [{"topic": one.topic, "partition": number} for number in leaderless]}))
    one.stock("kafka-leader-election.sh", "--election-type", "UNCLEAN", "--path-to-json-file", str(file))
    wait_settled(one.lab, one.topic)
    return f"an unclean election was run for partitions {leaderless}"


def _reassign(one: Affected, chance: random.Random) -> str | None:
    """Another assignment of as many replicas for some partitions; a dead one keeps it from completing."""
    if not one.up:
        return None
    wanted = {
        state.partition: tuple(chance.sample(one.lab.brokers, len(state.replicas)))
        for state in one.states()
        if chance.random() < 0.3
    }
    reassign(one, wanted)
    time.sleep(1)
    wait_settled(one.lab, one.topic)
    return f"a reassignment was begun: {wanted}"


def reassign(one: Affected, wanted: Mapping[int, Sequence[int]]) -> None:
    """Through kafka-python: kafka-reassign-partitions.sh takes no order that names a broker that is down."""
    from kafka import TopicPartition as Named  # noqa: PLC0415
    from kafka.admin import KafkaAdminClient  # noqa: PLC0415

    if not wanted:
        return
    admin = KafkaAdminClient(bootstrap_servers=one.servers.split(","), request_timeout_ms=20_000)
    try:
        orders = {Named(one.topic, number): list(order) for number, order in sorted(wanted.items())}
        refused = {at: error for at, error in admin.alter_partition_reassignments(orders).items() if error}
    finally:
        admin.close()
    if refused:
        raise RuntimeError(f"not reassigned: {refused}")


def _delete_records(one: Affected, chance: random.Random) -> str | None:
    """Up to the high watermark at most."""
    from confluent_kafka import TopicPartition as Named  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    if not one.up or one.compacted:
        return None  # of a compacted topic Kafka deletes none
    led = {state.partition: state.leader for state in one.states() if state.leader is not None}
    chosen = {number: leader for number, leader in led.items() if chance.random() < 0.5}
    marks = {broker: one.lab.saved_high_watermarks(broker, one.topic) for broker in set(chosen.values())}
    before = {number: chance.randint(0, marks[leader].get(number, 0)) for number, leader in chosen.items()}
    wanted = {number: offset for number, offset in before.items() if offset > 0}
    if not wanted:
        return None
    logs = keys_on_disks(one.lab, {broker: one.lab.data_directory(broker) for broker in marks}, one.topic)
    admin = AdminClient({"bootstrap.servers": one.servers, **_QUIET})
    for answer in admin.delete_records(
        [Named(one.topic, number, offset) for number, offset in wanted.items()]
    ).values():
        answer.result(30)
    for number, offset in wanted.items():
        keys = logs[chosen[number]].get(number, {})
        one.deleted.setdefault(number, set()).update(key for key, at in keys.items() if at < offset)
    return f"records were deleted, up to {wanted}"


# What clients do.


def _transact(one: Affected, chance: random.Random) -> str | None:
    """Transactions: one after the other is begun, and ended or left open."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    states = [s for s in one.states() if s.leader is not None and len(s.isr) >= one.needed] if one.up else []
    if not states:
        return None
    done = []
    for number, fate in enumerate(chance.sample(("committed", "aborted", "left open"), chance.choice((1, 2, 3)))):
        try:
            producer = transactional(one.servers, f"{chance.getrandbits(32)}-{number}")
        except KafkaException:
            continue  # its coordinator is down
        some = [state for state in states if chance.random() < 0.5] or states[:1]
        producer.begin_transaction()
        one.ledger.produce(some, chance.randint(1, 2), Acks.ALL, producer=producer)
        try:
            if fate == "committed":
                producer.commit_transaction(15)
            elif fate == "aborted":
                producer.abort_transaction(15)
        except KafkaException as error:
            done.append(f"not {fate} ({error.args[0].name()})")
        else:
            done.append(fate)
    return f"transactions: {', '.join(done)}" if done else None


def transactional(servers: str, name: str) -> Any:
    """A producer of transactions, which nobody but itself ends.

    Raises:
        KafkaException: its coordinator does not answer.
    """
    from confluent_kafka import Producer  # noqa: PLC0415

    own = {"enable.idempotence": True, "transactional.id": name, "transaction.timeout.ms": 900_000}
    producer = Producer({**settings(servers, Acks.ALL), **own})
    producer.init_transactions(15)
    return producer


# What happens to brokers, which are up again after it.


def _cut_off(one: Affected, chance: random.Random) -> str | None:
    """A broker that does not reach the controller is fenced, leads on by what it knows, and takes records."""
    if (text := _leave_cut_off(one, chance)) is None:
        return None
    (broker,) = one.lab.away
    led = [state for state in one.lab.view_of(broker, one.topic).values() if state.leader == broker]
    if led:
        one.ledger.produce(led, 1, Acks.LEADER, servers=f"127.0.0.1:{one.lab.port(broker)}")
    one.lab.rejoin()
    one.lab.wait_unfenced(broker)
    wait_settled(one.lab, one.topic)
    return f"{text}, and is back"


def _isolate(one: Affected, chance: random.Random) -> str | None:
    """Two brokers do not reach each other, until somebody has to follow: one of them never catches up."""
    if len(one.up) < 2:
        return None
    pair = set(chance.sample(one.up, 2))

    def follows(state: PartitionState) -> bool:
        return state.leader in pair and pair <= set(state.isr)

    hit = [state for state in one.states() if follows(state)]
    if not hit:
        return None
    one.lab.network.part(*pair)
    # A follower at the end of a log to which nobody writes counts as in sync.
    one.ledger.produce(hit, 1, Acks.LEADER)
    one.lab.wait_partitions(one.topic, "they do not follow", lambda state: not follows(state), timeout_s=60)
    return f"brokers {sorted(pair)} do not reach each other"


def _no_controller(one: Affected, chance: random.Random) -> str | None:
    """A broker dies when there is no controller; the others lead on."""
    if len(one.up) < 2:
        return None
    broker = chance.choice(one.up)
    one.lab.kill_controller(CONTROLLER_ID)
    one.lab.kill(broker)
    led = [state for state in one.states() if state.leader in one.up and chance.random() < 0.6]
    if led:
        one.ledger.produce(led, 1, Acks.LEADER)
    one.lab.start_controller()
    one.lab.wait_fenced(broker)
    one.wait_left(broker)
    one.lab.start(broker)
    wait_settled(one.lab, one.topic)
    return f"broker {broker} was killed when there was no controller, and is back"


def _stand_still(one: Affected, chance: random.Random) -> str | None:
    """A broker stops answering for so long that it is fenced, and then goes on."""
    if len(one.up) < 2:
        return None
    broker = chance.choice(one.up)
    one.lab.pause(broker)
    try:
        one.wait_left(broker)
    finally:
        one.lab.go_on(broker)
    one.lab.wait_unfenced(broker)
    wait_settled(one.lab, one.topic)
    return f"broker {broker} stood still until it was fenced"


def _power_cut(one: Affected, chance: random.Random) -> str | None:
    """All brokers die at once, and come back one after the other."""
    brokers = one.up
    if len(brokers) < 2:
        return None
    fenced = Fencings(one.lab)
    for broker in brokers:
        one.lab.kill(broker)
    one.lab.wait_until("all are fenced", lambda: fenced.has_seen(brokers))
    order = chance.sample(brokers, len(brokers))
    come_back(one.lab, one.topic, order, lambda _line: None)
    return f"brokers {brokers} were killed at once, and came back in the order {order}"


# What happens to the disk of a machine that crashed.


def _tear(one: Affected, chance: random.Random) -> str | None:
    """The last batch of a log is there in part."""
    if (found := one.crashed_disk(chance)) is None:
        return None
    broker, places = found
    torn = []
    for number, directory in places:
        last = max(directory.glob("*.log"))
        if batches := list(read_batches(last)):
            with last.open("r+b") as stream:
                stream.truncate(chance.randrange(batches[-1].position + 1, last.stat().st_size))
            torn.append(number)
            one.torn.setdefault(number, set()).add(broker)
    return f"the last batches of partitions {torn} are torn on broker {broker}'s disk" if torn else None


def _empty(one: Affected, chance: random.Random) -> str | None:
    """Logs are gone from a disk."""
    if (found := one.crashed_disk(chance)) is None:
        return None
    broker, places = found
    for number, directory in places:
        shutil.rmtree(directory)
        one.torn.setdefault(number, set()).add(broker)
    return f"broker {broker}'s logs of partitions {[number for number, _ in places]} are gone" if places else None


def _lose_high_watermarks(one: Affected, chance: random.Random) -> str | None:
    if (found := one.crashed_disk(chance)) is None:
        return None
    (one.lab.data_directory(found[0]) / "replication-offset-checkpoint").unlink(missing_ok=True)
    return f"broker {found[0]}'s saved high watermarks are gone"


def _lose_epochs(one: Affected, chance: random.Random) -> str | None:
    """Checkpoints of leader epochs are gone, or lack their last entry."""
    if (found := one.crashed_disk(chance)) is None:
        return None
    broker, places = found
    for _, directory in places:
        file = directory / "leader-epoch-checkpoint"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        if len(lines) > 2 and chance.random() < 0.5:
            kept = lines[2:-1]
            file.write_text("\n".join([lines[0], str(len(kept)), *kept, ""]))
    return f"broker {broker}'s checkpoints of leader epochs of partitions {[at for at, _ in places]} are gone"


def change_marks(disks: Mapping[int, Path], seed: int) -> str:
    """Marks of clean shutdowns are made another life's, no life's, garbled or missing."""
    chance = random.Random(seed)
    done = {}
    for broker, disk in sorted(disks.items()):
        mark = disk / CLEAN_SHUTDOWN_FILE
        if mark.exists():
            own = json.loads(mark.read_text())
            texts = {
                "of another life": json.dumps({**own, "brokerEpoch": own["brokerEpoch"] - 1}),
                "-1": json.dumps({**own, "brokerEpoch": -1}),
                "garbled": mark.read_text()[:-4],
                "missing": None,
            }
            done[broker] = name = chance.choice(sorted(texts))
            mark.unlink()
            if (text := texts[name]) is not None:
                mark.write_text(text)
    return f"marks of clean shutdowns: {done or 'there are none'}"


# What a broker suffers that is up when kelr is asked.


def _leave_cut_off(one: Affected, chance: random.Random) -> str | None:
    """A broker reaches neither the controller nor, perhaps, the others."""
    if len(one.up) < 2:
        return None
    broker = chance.choice(one.up)
    alone = chance.random() < 0.5
    for other in (CONTROLLER_ID, *(one.lab.brokers if alone else ())):
        if other != broker:
            one.lab.network.part(broker, other)
    one.lab.away.add(broker)
    one.lab.wait_fenced(broker)
    one.wait_left(broker)
    return f"broker {broker} is cut off from the controller{' and all others' if alone else ''}"


def _leave_standing(one: Affected, chance: random.Random) -> str | None:
    if len(one.up) < 2:
        return None
    broker = chance.choice(one.up)
    one.lab.pause(broker)
    one.lab.away.add(broker)
    one.lab.wait_fenced(broker)
    one.wait_left(broker)
    return f"broker {broker} stands still"


def _fail_directory(one: Affected, chance: random.Random) -> str | None:
    if not one.up:
        return None
    broker = chance.choice(one.up)
    one.lab.fail_directory(broker)
    one.lab.wait_partitions(
        one.topic,
        f"{broker}'s replicas are offline",
        lambda state: broker not in state.replicas or broker in (state.offline_replicas or ()),
        timeout_s=60,
    )
    one.wait_left(broker)
    return f"broker {broker}'s log directory failed"


ENDINGS: Mapping[str, Callable[[Affected, random.Random], str | None]] = {
    "cut off": _leave_cut_off,
    "freeze": _leave_standing,
    "fail directory": _fail_directory,
}
MISHAPS: Mapping[str, Callable[[Affected, random.Random], str | None]] = {
    "write min ISR": _write_min_isr,
    "allow unclean": _allow_unclean,
    "switch ELR off": _switch_elr_off,
    "elect uncleanly": _elect_uncleanly,
    "reassign": _reassign,
    "delete records": _delete_records,
    "transact": _transact,
    "cut off": _cut_off,
    "isolate": _isolate,
    "no controller": _no_controller,
    "stand still": _stand_still,
    "power cut": _power_cut,
    "tear": _tear,
    "empty": _empty,
    "lose high watermarks": _lose_high_watermarks,
    "lose epochs": _lose_epochs,
}
