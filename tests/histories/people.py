"""Those who change the cluster: operators with their kelr, strangers with other tools, and what happens to brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from kelr.commands import electing
from kelr.commands.electing import Wanted, check_possible
from kelr.controller import Election, events
from kelr.engine.planning import plan_id
from kelr.errors import KelrError
from kelr.model import ElectionRequest, ElectionType, Plan, Selection, Target, TopicPartition
from kelr.model.plan import AcceptedLoss, Applied
from kelr.recovery.actor import Actor
from kelr.recovery.apply import DEFAULT_BATCH, apply_plan
from kelr.recovery.clear_elr import Clearing, clear_elr, price_of_clearing
from kelr.recovery.consent import Confirmation
from kelr.recovery.gather import WINDOW_S, PollInterval, gather, gather_until
from kelr.recovery.mending import PutRight
from kelr.recovery.plan_making import make_plan
from kelr.recovery.resume import resume
from kelr.recovery.undo import undo
from tests.histories.chance import Chance
from tests.histories.cluster import BROKERS, Cluster, Connection, HistoryAdminClient, HistorySource, config_event
from tests.histories.machines import Host, Killed, Process
from tests.histories.rescue import Dumped, Records, Replayed, dump_records, replay_records
from tests.recovery.simulated import STEADY, TOPIC


@dataclass
class Told:
    """What one command told whoever ran it."""

    process: Process
    result: tuple[Applied, ...] | PutRight | Clearing | Dumped | Replayed | None = None
    error: BaseException | None = None
    """How it ended, where it did not end well."""
    ended_s: float = 0.0

    @property
    def results(self) -> tuple[Applied, ...]:
        """What it told of elections."""
        if isinstance(self.result, PutRight):
            return self.result.applied
        if isinstance(self.result, tuple):
            return self.result
        return tuple(getattr(self.error, "results", ()))


@dataclass(eq=False)
class Operator:
    """Somebody with a kelr on a host: plans and applies, and puts right what was cut short."""

    who: Actor
    host: Host
    cluster: Cluster
    chance: Chance
    asked: Callable[[str, Process, Any], None]
    records: Records
    told: list[Told] = field(default_factory=list)

    def live(self) -> None:
        """Some commands, one after the other."""
        strength = self.chance.strength("seams")
        name = self.who.user
        for _ in range(self.chance.choose(f"{name}'s commands", lambda random: random.choice((1, 2, 3, 5))) or 1):
            pause_s = self.chance.choose(f"{name}'s pauses", lambda random: random.choice((None, 1, 10, 60, 300)))
            self.cluster.time.wait(pause_s or 0.1)
            self.next_command(strength)
            if self.told and self.told[-1].process.given_up:
                self._again(strength)

    def _again(self, strength: float) -> None:
        """Whoever did not wait for an answer goes on at once; somebody may set the clock right meanwhile."""
        name = self.who.user
        set_by_s = self.chance.choose(f"{name}'s clock", lambda random: random.choice((None, 90, 90, 3600, -90)))
        self.host.set_by_ms += (set_by_s or 0) * 1000
        self.cluster.time.wait(1)
        if self.told[-1].process.command == "rescue replay":
            self.replay()
            return
        mends = self.chance.choose(f"{name}'s mends", lambda random: random.choice((None, "undo")))
        self.put_right(undo if mends == "undo" else resume, strength)

    def next_command(self, strength: float) -> None:
        """Puts right what is open, or begins something."""
        left = self.host.journals()
        choice = self.chance.choose(f"{self.who.user}'s choice", self._draw_command)
        if left and choice not in {"hold", "apply all the same", "elect"}:
            self.put_right(undo if choice == "undo" else resume, strength)
        elif choice == "hold":
            self.run("recover clear-elr", self._hold, strength)
        elif choice == "elect":
            self.run("elect", self._elect_at_once, strength)
        elif choice == "replay" and self.host.saved:
            self.replay()
        else:
            self._plan_and_apply(strength)

    def put_right(self, mend: Callable[..., PutRight], strength: float) -> None:
        """Resume or undo the newest open journal."""
        command = f"recover {mend.__name__}"

        def work(process: Process) -> PutRight | None:
            left = self.host.journals()
            return mend(left[-1].path, **self._common(process)) if left else None

        self.run(command, work, strength)

    def run(self, command: str, work: Callable[[Process], Any], strength: float) -> Told:
        """One process: what it does, and how it ends."""
        time = self.cluster.time
        process = Process(
            self.host, self.who, command, self.chance, strength=strength, most_s=self.cluster.patience.rival_s
        )
        told = Told(process)
        self.told.append(told)
        time.note(process.name, "begins")
        try:
            told.result = work(process)
        except (Killed, KeyboardInterrupt, KelrError) as error:
            told.error = error
        finally:
            told.ended_s = time.now_s
            process.end()
        how = "well" if told.error is None else f"{type(told.error).__name__} {told.error}"
        time.note(process.name, f"ends: {how}; {[(one.partition, str(one.ended)) for one in told.results]}")
        return told

    def _plan_and_apply(self, strength: float) -> None:
        wishes = self._wishes()
        options = self.chance.choose(f"{self.who.user}'s options", _draw_options) or {}
        reason = f"{self.who.user}'s reason {len(self.told)}"
        plans: list[Plan] = []

        def plan(process: Process) -> None:
            selection = Selection(tuple(Target(topic=name) for name in sorted({at.topic for at in wishes})))
            source = HistorySource(Connection(self.cluster, process, self.asked))
            made = make_plan(source, selection, lambda at: wishes.get(at, ElectionRequest()), clock_ms=process.now_ms)
            plans.append(made.plan)

        def apply(process: Process) -> tuple[Applied, ...]:
            return apply_plan(
                plans[0],
                **self._common(process),
                consented=Confirmation(AcceptedLoss(1000, unbounded=True), reason, yes=True),
                batch=options.get("batch", 100),
                keep_order=options.get("keep_order", False),
            )

        self.run("recover plan", plan, strength)
        if plans and plans[0].elections:
            self.cluster.time.wait(options.get("reads", 1))
            dumps = self.chance.choose(f"{self.who.user}'s dumps", _draw_dump)
            if dumps is not None:
                self._dump(plans[0], strength)
            self.run("recover apply", apply, strength)
            if dumps == "then replay" and self.host.saved:
                self.replay()

    def _dump(self, plan: Plan, strength: float) -> None:
        """Save what the plan gives up."""
        path = self.host.rescues / f"{self.who.user}-{len(self.told)}.kelr-rescue"
        elects = {one.address: one.elect for one in plan.elections}

        def work(process: Process) -> Dumped:
            connection = Connection(self.cluster, process, self.asked)
            return dump_records(process, connection, self.records, path, elects=elects, plan_id=plan_id(plan))

        told = self.run("rescue dump", work, strength)
        if isinstance(told.result, Dumped) and told.result.manifest is not None:
            self.host.saved.append(path)

    def replay(self, path: Path | None = None) -> None:
        """Produce again what a rescue file holds, once followers had their time to catch up."""
        name = self.who.user
        self.records.replayed_from = self.records.replayed_from or self.host.name
        if self.records.replayed_from != self.host.name and not self.cluster.well:
            return
        left = self.chance.choose(f"{name}'s writes", lambda random: random.choice((None, None, 1, 4)))
        self.cluster.time.wait(self.chance.choose(f"{name}'s replays", _draw_before_replay) or 5)
        self.cluster.followers_catch_up(left or 0)
        path = path or self.host.saved[-1]

        def work(process: Process) -> Replayed:
            connection = Connection(self.cluster, process, self.asked)
            return replay_records(process, connection, self.records, path, partial(self._read, process))

        lost = None if self.cluster.well else self.chance.choose(f"{name}'s bad luck", _draw_bad_luck)
        if lost is not None:
            after_s, broker = lost
            self.cluster.time.at(self.cluster.time.now_s + after_s, partial(self.cluster.fence, broker))
        # Where commands before it are struck often, few histories come to a replay.
        self.run("rescue replay", work, 0.0 if self.cluster.well else self.chance.strength("seams of replays"))

    def _read(self, process: Process) -> None:
        """Look at what is shown, before saying yes to it."""
        takes_s = self.chance.choose(f"{self.who.user}'s reading", lambda random: random.choice((None, 10, 60)))
        if takes_s is not None:
            process.elapse(takes_s)

    def _wishes(self) -> Mapping[TopicPartition, ElectionRequest]:
        wishes = {STEADY: ElectionRequest(ElectionType.PREFERRED)}
        for at in sorted(self.cluster.now.controller.partitions):
            if at.topic == TOPIC:
                elect = self.chance.choose(f"{self.who.user}'s wishes", lambda random: random.choice((None, 1, 3, 0)))
                designated = ElectionRequest(ElectionType.DESIGNATION, elect or 2)
                wishes[at] = ElectionRequest(ElectionType.UNCLEAN) if elect == 0 else designated
        return wishes

    def _elect_at_once(self, process: Process) -> tuple[Applied, ...]:
        """As `kelr.commands.electing.carry_out` does it, without the showing and the asking."""
        common = self._common(process)
        wanted = self._wanted()
        source = common["source"]
        leave_out = electing._leave_out(wanted)
        found = gather(source, wanted.selection, clock_ms=process.now_ms, leave_out=leave_out)
        check_possible(wanted, found)
        owing = electing._owing(wanted)
        if owing is not None:
            rhythm = PollInterval(30.0, process, step_s=self.cluster.patience.step_s)
            found = gather_until(
                source, found, owing, rhythm=rhythm, clock_ms=process.now_ms, report=lambda _waiting: None
            )
        plan = electing._plan(source, wanted, found)
        return apply_plan(plan, **common, consented=wanted.given, batch=wanted.batch, keep_order=wanted.keep_order)

    def _wanted(self) -> Wanted:
        kind, *leader = self.chance.choose(f"{self.who.user}'s elections", _draw_election) or ["designation", 2]
        options = self.chance.choose(f"{self.who.user}'s options", _draw_options) or {}
        reason = f"{self.who.user}'s reason {len(self.told)}"
        election = ElectionType(kind)
        return Wanted(
            election,
            Selection((Target(topic=STEADY.topic if election is ElectionType.PREFERRED else TOPIC),)),
            named_one_by_one=options.get("batch") == 1,
            wishes={},
            wish=ElectionRequest(election, *leader),
            window_s=WINDOW_S,
            batch=options.get("batch", DEFAULT_BATCH),
            keep_order=options.get("keep_order", False),
            dry_run=False,
            given=Confirmation(AcceptedLoss(1000, unbounded=True), reason, yes=True),
            repeat=(),
        )

    def _hold(self, process: Process) -> Clearing:
        common = self._common(process)
        price = price_of_clearing(TOPIC, source=common["source"], clock_ms=process.now_ms)
        self._read(process)
        return clear_elr(price, **common, force_reason="it is to stay down")

    def _common(self, process: Process) -> dict[str, Any]:
        connection = Connection(self.cluster, process, self.asked)
        return {
            "source": HistorySource(connection),
            "hand": HistoryAdminClient(connection),
            "state_directory": self.host.state,
            "ground": process,
            "who": self.who,
            "patience": self.cluster.patience,
            "command": process.command,
        }

    @staticmethod
    def _draw_command(random: Random) -> str | None:
        return random.choice((None, None, "undo", "undo", "hold", "apply all the same", "elect", "replay"))


def _perhaps(strength: float, draw: Callable[[Random], list[Any]], random: Random) -> list[Any] | None:
    return draw(random) if random.random() < strength else None


def _draw_options(random: Random) -> dict[str, Any] | None:
    options = {"batch": 1, "keep_order": True, "reads": random.choice((10, 100, 1000))}
    return {name: value for name, value in options.items() if random.random() < 0.2} or None


def _draw_dump(random: Random) -> str | None:
    return random.choice((None, None, None, None, "then replay", "then replay", "then replay", "only"))


def _draw_before_replay(random: Random) -> float | None:
    return random.choice((None, None, 0.1, 60))


def _draw_bad_luck(random: Random) -> list[Any] | None:
    """A broker hangs right when a replay looks at its leader, is read, or produces."""
    if random.random() >= 0.3:
        return None
    return [random.choice((0.1, 0.3, 0.6, 5, 10.2, 10.5, 60.2, 60.5)), random.choice(BROKERS)]


def _draw_election(random: Random) -> list[Any] | None:
    kinds = (["designation", 1], ["designation", 3], ["unclean"], ["preferred"])
    return random.choice((None, *kinds, ["longest_log_balanced"], ["longest_log_aggressive"]))


@dataclass(eq=False)
class Fate:
    """What happens to brokers and controllers, and what strangers do."""

    cluster: Cluster
    chance: Chance
    orders: dict[TopicPartition, list[tuple[int, ...]]] = field(default_factory=dict)
    """Orders that strangers gave."""
    values: dict[str, list[str | None]] = field(default_factory=dict)
    """Configs that strangers wrote."""

    def live(self) -> None:
        """Some happenings, one after the other."""
        for name, draw in (("broker", self._draw_broker), ("stranger", self._draw_stranger)):
            strength = self.chance.strength(f"{name}s")
            for _ in range(6):
                happening = self.chance.choose(name, partial(_perhaps, strength, draw))
                if happening is not None:
                    when_s, what, *details = happening
                    self.cluster.time.at(when_s, lambda what=what, details=details: self.happens(what, details))

    def happens(self, what: str, details: list[Any]) -> None:
        cluster = self.cluster
        cluster.time.note("somebody", f"{what} {details}")
        getattr(self, f"_{what}")(*details)

    def all_well(self) -> None:
        """Every broker is back, and knows everything."""
        self.cluster.well = True
        for broker in BROKERS:
            self._returns(broker, False)

    def _dies(self, broker: int) -> None:
        if broker not in self.cluster.now.down:
            self.cluster.stop(broker)
            self.cluster.fence(broker)

    def _hangs(self, broker: int) -> None:
        if broker not in self.cluster.now.down:
            self.cluster.fence(broker)

    def _returns(self, broker: int, clean: bool) -> None:
        if broker in self.cluster.now.down:
            self.cluster.after(events.BrokerRegistered(broker, clean=clean))
        self.cluster.after(events.BrokerUnfenced(broker))

    def _lags(self, broker: int, lag_s: float) -> None:
        self.cluster.lag_s[broker] = lag_s

    def _controller(self, away_s: float) -> None:
        self.cluster.no_controller_until_s = self.cluster.time.now_s + away_s

    def _reorders(self, partition: int, order: list[int]) -> None:
        at = TopicPartition(TOPIC, partition)
        self.orders.setdefault(at, []).append(tuple(order))
        self.cluster.ask(events.Reassigned(at, tuple(order)), at, kind="reorder")

    def _elects(self, partition: int, unclean: bool) -> None:
        at = TopicPartition(TOPIC, partition)
        election = Election.UNCLEAN if unclean else Election.PREFERRED
        self.cluster.ask(events.LeadersElected(election, (at,)), at, kind="elect")

    def _configures(self, value: str | None) -> None:
        self.values.setdefault(TOPIC, []).append(value)
        self.cluster.ask(config_event(TOPIC, value), TopicPartition(TOPIC, -1), kind="config")

    def _deletes(self) -> None:
        self.cluster.after(events.TopicDeleted(TOPIC))

    @staticmethod
    def _draw_broker(random: Random) -> list[Any]:
        when_s, broker = round(random.choice((5, 60, 600)) * random.random(), 2), random.choice(BROKERS)
        kind = random.choice(("dies", "hangs", "returns", "returns", "lags", "lags", "controller"))
        if kind == "returns":
            return [when_s, kind, broker, random.random() < 0.5]
        if kind == "lags":
            return [when_s, kind, broker, random.choice((1, 4, 12))]
        if kind == "controller":
            return [when_s, kind, random.choice((3, 20, 50, 80))]
        return [when_s, kind, broker]

    @staticmethod
    def _draw_stranger(random: Random) -> list[Any]:
        when_s, partition = round(random.choice((5, 60, 600)) * random.random(), 2), random.choice((0, 1))
        kind = random.choice(("reorders", "reorders", "elects", "configures", "deletes"))
        if kind == "reorders":
            return [when_s, kind, partition, random.sample(BROKERS, len(BROKERS))]
        if kind == "elects":
            return [when_s, kind, partition, random.random() < 0.5]
        if kind == "configures":
            return [when_s, kind, random.choice((None, "1", "2", "3"))]
        return [when_s, kind]
