"""What ``kelr whatif`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kelr.commands.session import Session
from kelr.commands.targets import read_ids, read_rules
from kelr.controller import ChosenRules, RuleSet, choose_rules
from kelr.engine.outages.reading import Seen
from kelr.engine.outages.restart_plan import Action, Keep, RestartPlan
from kelr.engine.outages.restarts import Restarts
from kelr.engine.outages.scenario import BLOWS, Outage, outage
from kelr.engine.outages.standing import UNCERTAIN, Standing
from kelr.engine.outages.tally import Tally
from kelr.engine.outages.told import PartitionFate, partition_fate
from kelr.engine.outages.worst import MOST_SETS, AnyBrokers, SetCounts
from kelr.engine.what_if.assumptions import Assumption, AssumptionError, Happening, parse_assumptions, rack_named
from kelr.engine.words import agree, joined, plural
from kelr.errors import UsageError
from kelr.model import BrokerStatus, Cluster, Selection, TopicError
from kelr.sources.outages import CasePage, read_cases
from kelr.view.describe import why_min_isr_is_unknown
from kelr.view.whatif import OutageReport
from kelr.view.whatif_any import AnyReport, show_any
from kelr.view.whatif_restart import show_restarts

LISTED = 20
"""So many partitions or sets people are shown unless they ask for more."""


@dataclass(frozen=True, slots=True)
class Question:
    """The options of ``kelr whatif``, read."""

    stop: tuple[int, ...] = ()
    kill: tuple[int, ...] = ()
    racks: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    any_size: int | None = None
    clean: bool = False
    restart: tuple[int, ...] = ()
    restart_order: bool = False
    keep: Keep = Keep.MIN_ISR
    controller: int | None = None
    rules: RuleSet | None = None
    """None: what the cluster runs."""
    limit: int | None = None
    everything: bool = False
    keep_flags: tuple[str, ...] = ()
    """The flags that a next ``kelr whatif`` has to repeat."""

    def shown(self, *, for_people: bool) -> int | None:
        """How many rows to show; None for all."""
        if self.everything:
            return None
        return self.limit if self.limit is not None else LISTED if for_people else None


def read_question(
    *,
    stop: Sequence[str],
    kill: Sequence[str],
    racks: Sequence[str],
    assume: Sequence[str],
    any_: int | None,
    clean: bool,
    restart: Sequence[str],
    restart_order: bool,
    keep: str,
    controller: int | None,
    rules: str,
    limit: int | None,
    everything: bool,
) -> Question:
    """Read the options. Raises UsageError where one says nothing that there is, or two contradict each other."""
    ways = (
        ("--stop, --kill and --rack", bool(stop or kill or racks)),
        ("--if", bool(assume)),
        ("--any", any_ is not None),
        ("--restart", bool(restart)),
        ("--restart-order", restart_order),
    )
    chosen = [name for name, given in ways if given]
    if len(chosen) > 1:
        raise UsageError(
            f"{joined(chosen)} ask different questions", next_step="ask one at a time; --if takes several events"
        )
    if clean and not (racks or any_ is not None or not chosen):
        raise UsageError("--clean goes with --rack or --any", next_step="write --stop for brokers that stop cleanly")
    if limit is not None and everything:
        raise UsageError("--limit and --all contradict each other", next_step="leave one of them out")
    if controller is not None and not restart_order:
        raise UsageError("--controller goes with --restart-order", next_step="leave it out")
    flags = ("--rules", rules) if rules.lower() != "auto" else ()
    return Question(
        stop=read_ids("--stop", stop),
        kill=read_ids("--kill", kill),
        racks=tuple(racks),
        assumptions=tuple(one for text in assume for one in _assumptions(text)),
        any_size=any_ if any_ is not None else None if chosen else 1,
        clean=clean,
        restart=read_ids("--restart", restart),
        restart_order=restart_order,
        keep=_keep(keep),
        controller=controller,
        rules=read_rules(rules),
        limit=limit,
        everything=everything,
        keep_flags=flags,
    )


def _assumptions(text: str) -> tuple[Assumption, ...]:
    try:
        found = parse_assumptions(text)
    except AssumptionError as error:
        raise UsageError(f"--if: {error}", next_step='write, for example, --if "3 stops, then 1 fails"') from error
    other = next((one for one in found if one.happening not in BLOWS), None)
    if other is not None:
        verbs = joined((str(happening) for happening in Happening if happening in BLOWS), "or")
        raise UsageError(
            f"--if: {str(other)!r} is no outage: a broker or rack {verbs}", next_step="kelr explain --if takes it"
        )
    return found


def _keep(text: str) -> Keep:
    try:
        return Keep(text.strip().lower())
    except ValueError:
        raise UsageError(f"--keep: {text!r} is nothing to keep", next_step=f"write {' or '.join(Keep)}") from None


_WHO = "kelr describe -o wide shows brokers and racks"


@dataclass
class Answer:
    """What came of it."""

    safe: bool = True
    """Whether every partition keeps what it has to, and that is certain."""
    read: int = 0
    errors: list[TopicError] = field(default_factory=list)
    config_errors: dict[str, str] = field(default_factory=dict)

    def page(self, page: CasePage) -> None:
        self.read += page.read
        self.errors.extend(page.topic_errors)
        self.config_errors.update(page.config_errors)

    @property
    def notes(self) -> tuple[str, ...]:
        """Why something is not known."""
        return (why_min_isr_is_unknown(self.config_errors),) if self.config_errors else ()


def answer(session: Session, selection: Selection, question: Question) -> Answer:
    """Compute and show what was asked."""
    session.learn_cordons()
    cluster = session.source().cluster()
    rules = choose_rules(cluster.features)
    if question.rules is not None:
        rules = ChosenRules(question.rules, "as asked for", certain=True)
    if question.restart or question.restart_order:
        ask = _restarts
    elif question.any_size is not None:
        ask = _any
    else:
        ask = _outage
    found = ask(session, selection, question, cluster, rules)
    # Of a metadata log that cannot be read to its end nobody knows what came later.
    found.safe = found.safe and not getattr(session.source(), "cut_short", False)
    # Without a controller nobody knows how it stands now.
    found.safe = found.safe and cluster.controller_silence is None
    return found


# One outage.


def _outage(session: Session, selection: Selection, question: Question, cluster: Cluster, rules: ChosenRules) -> Answer:
    happens = _outage_of(question, cluster)
    tally, found = Tally(happens), Answer()
    shown = question.shown(for_people=session.output.format.for_people)
    source = session.source()
    report = OutageReport(session.output, cluster, source=source.name, rules=rules, tally=tally, limit=shown)
    worst_of = _Worst()
    try:
        for page in read_cases(source, selection, rules.rules):
            found.page(page)
            for seen, count in page.cases.counted():
                tally.add(seen, count)
            changed = page.cases.partitions(lambda seen: tally.fates(seen).changes)
            fates = [partition_fate(state, seen, happens) for state, seen in changed]
            for fate in fates:
                worst_of.see(fate)
            report.add(fates)
    except BaseException as error:
        report.failed(error)
        raise
    forbidden = [flag for flag in Standing if flag & question.keep.forbids]
    found.safe = not any(tally.then[flag] for flag in forbidden) and not tally.doubts and tally.partitions > 0
    report.finish(found.errors, found.notes, _after_outage(question, selection, happens, worst_of.fate))
    return found


@dataclass
class _Worst:
    """The partition that comes off worst."""

    fate: PartitionFate | None = None
    value: int = int(Standing.LEADER_MOVES | Standing.CHANGED)
    """Less than that needs no explanation."""

    def see(self, fate: PartitionFate) -> None:
        if int(fate.new) > self.value:
            self.fate, self.value = fate, int(fate.new)


def _after_outage(question: Question, selection: Selection, happens: Outage, worst: PartitionFate | None) -> list[str]:
    if worst is not None:
        order = [broker for broker in worst.worst.order if broker in happens.brokers]
        blows = [blow for broker in order for blow in happens.blows if blow.broker == broker]
        text = ", then ".join(map(str, blows if happens.at_once else happens.blows))
        return ["explain", str(worst.before.address), "--if", text, *question.keep_flags]
    gone = happens.gone
    targets = [str(target) for target in selection.targets]
    return [
        "whatif",
        *targets,
        *(("--restart", ",".join(map(str, gone))) if gone else ("--any", "2")),
        *question.keep_flags,
    ]


def _outage_of(question: Question, cluster: Cluster) -> Outage:
    """The outage, with racks as the brokers that they are."""
    if question.assumptions:
        blows = [blow for assumption in question.assumptions for blow in _one_by_one(assumption, cluster)]
        return Outage(tuple(blows), at_once=False)
    _check(cluster, (*question.stop, *question.kill))
    both = sorted(set(question.stop) & set(question.kill))
    if both:
        raise UsageError(f"broker {both[0]} is both stopped and killed", next_step="choose one")
    members = [broker for rack in question.racks for broker in _members(rack, cluster)]
    if question.clean:
        return outage(stopped=(*question.stop, *members), killed=question.kill)
    return outage(stopped=question.stop, killed=(*question.kill, *members))


def _one_by_one(assumption: Assumption, cluster: Cluster) -> Iterator[Assumption]:
    if assumption.rack is not None:
        yield from (Assumption(assumption.happening, broker=broker) for broker in _members(assumption.rack, cluster))
    elif assumption.broker is not None:
        _check(cluster, (assumption.broker,))
        yield assumption


def _members(name: str, cluster: Cluster) -> tuple[int, ...]:
    """The brokers of a rack, in order of their ids. Raises UsageError where there is none."""
    racks = sorted({broker.rack for broker in cluster.brokers if broker.rack is not None})
    rack = rack_named(name, racks)
    if rack is None:
        known = f"there are {joined(racks)}" if racks else "no broker tells its rack"
        raise UsageError(f"there is no rack {name!r}; {known}", next_step=_WHO)
    return tuple(sorted(broker.id for broker in cluster.brokers if broker.rack == rack))


def _check(cluster: Cluster, brokers: Iterable[int]) -> None:
    """Refuse a broker that the cluster does not list.

    Where it lists live brokers only, others may be fenced.
    """
    for broker in brokers:
        if cluster.broker(broker) is None and cluster.lists_fenced_brokers:
            there_are = joined(sorted(one.id for one in cluster.brokers))
            raise UsageError(f"broker {broker} is not registered; {there_are} are", next_step=_WHO)
        if cluster.broker(broker) is None:
            there_are = joined(sorted(one.id for one in cluster.brokers))
            raise UsageError(f"broker {broker} is not live; {there_are} are", next_step=_WHO)


# Any k brokers.


def _any(session: Session, selection: Selection, question: Question, cluster: Cluster, rules: ChosenRules) -> Answer:
    size, live = question.any_size or 1, sorted(cluster.live)
    if size > len(live):
        raise UsageError(
            f"--any {size}: there {agree(len(live), 'is', 'are')} {plural(len(live), 'live broker')}",
            next_step="ask for fewer",
        )
    counting = AnyBrokers(live, size, clean=question.clean)
    if counting.sets > MOST_SETS:
        raise UsageError(
            f"--any {size}: {len(live)} brokers have {counting.sets:,} sets of {size}, and at most {MOST_SETS:,} are"
            " looked at, since a search that leaves some out names no worst one",
            next_step="ask for fewer, or name the brokers with --kill",
            code="too-many-sets",
        )
    found = Answer()
    source = session.source()
    for page in read_cases(source, selection, rules.rules):
        found.page(page)
        for seen, count in page.cases.counted():
            counting.add(seen, count)
    shown = question.shown(for_people=session.output.format.for_people)
    report = _counted(session, counting, question, shown)
    kept = not any(report.now[flag] for flag in Standing if flag & question.keep.forbids)
    found.safe = kept and not report.harmful and not report.uncertain and report.partitions > 0
    show_any(
        session.output,
        report,
        cluster,
        source=source.name,
        rules=rules,
        errors=found.errors,
        notes=found.notes,
        next_command=_after_any(question, selection, report, len(live)),
    )
    return found


def _counted(session: Session, counting: AnyBrokers, question: Question, shown: int | None) -> AnyReport:
    harmful, uncertain, everything = 0, 0, list[tuple[tuple[int, ...], SetCounts]]()
    heap: list[tuple[tuple[int, ...], tuple[int, ...], SetCounts]] = []
    forbidden = [flag for flag in Standing if flag & question.keep.forbids]
    certain = [Standing.UNPROVEN, *(flag for flag in forbidden if not flag & UNCERTAIN)]
    with session.progress("sets of brokers looked at") as progress:
        for counts in counting.counts(progress):
            if any(counts.new[flag] for flag in certain):
                harmful += 1
            elif any(counts.new[flag] for flag in forbidden):
                uncertain += 1
            if shown is None:
                everything.append((counts.severity, counts))
                continue
            item = (counts.severity, tuple(-one for one in counts.brokers), counts)
            (heapq.heappush if len(heap) < shown else heapq.heappushpop)(heap, item)
    kept = everything or [(severity, counts) for severity, _, counts in heap]
    worst = sorted(kept, key=lambda one: (tuple(-count for count in one[0]), one[1].brokers))
    return AnyReport(
        size=counting.size,
        clean=question.clean,
        partitions=counting.partitions,
        sets=counting.sets,
        keep=question.keep,
        harmful=harmful,
        uncertain=uncertain,
        worst=[counts for _, counts in worst],
        now=counting.now(),
    )


def _after_any(question: Question, selection: Selection, report: AnyReport, live: int) -> list[str]:
    targets = [str(target) for target in selection.targets]
    if not report.worst or not any(report.worst[0].severity):
        if report.size == live:
            return ["describe", *targets, "--leaderless"]
        return ["whatif", *targets, "--any", str(report.size + 1), *question.keep_flags]
    flag = "--stop" if question.clean else "--kill"
    return ["whatif", *targets, flag, ",".join(map(str, report.worst[0].brokers)), *question.keep_flags]


# Restarts.


def _restarts(
    session: Session, selection: Selection, question: Question, cluster: Cluster, rules: ChosenRules
) -> Answer:
    named = (*question.restart, *(() if question.controller is None else (question.controller,)))
    _check(cluster, named)
    restarts, found = Restarts(cluster, question.keep), Answer()
    source = session.source()
    for page in read_cases(source, selection, rules.rules):
        found.page(page)
        for state, seen in page.cases.partitions(_every):
            restarts.add(seen, 1, (state.address,))
    if question.restart_order:
        everybody = [broker.id for broker in cluster.brokers if broker.status is not BrokerStatus.UNREGISTERED]
        if not everybody:
            raise UsageError("the cluster has no broker that could be restarted", next_step=_WHO)
        plan = restarts.safe_order(sorted(everybody), controller=_active_controller(question, cluster))
    else:
        plan = restarts.in_order(question.restart)
    found.safe = plan.safe
    if found.errors or getattr(source, "cut_short", False):
        plan = replace(plan, steps=tuple(replace(step, known=False) for step in plan.steps))
    show_restarts(
        session.output,
        plan,
        cluster,
        source=source.name,
        rules=rules,
        errors=found.errors,
        notes=(*found.notes, *_restart_notes(question, cluster)),
        next_command=_after_restarts(question, selection, plan),
        limit=question.shown(for_people=True),
    )
    return found


def _active_controller(question: Question, cluster: Cluster) -> int | None:
    """As somebody says, or as the cluster does (DescribeQuorum, or the metadata log); None where neither tells."""
    return cluster.controller if question.controller is None else question.controller


def _every(_seen: Seen) -> bool:
    return True


def _restart_notes(question: Question, cluster: Cluster) -> Iterator[str]:
    if question.restart_order and _active_controller(question, cluster) is None:
        yield "which controller is active is not known: where it is one of these brokers, --controller N puts it last"
    if question.restart_order and not cluster.lists_fenced_brokers:
        yield "this cluster lists live brokers only: those that are down are not among the steps"


def _after_restarts(question: Question, selection: Selection, plan: RestartPlan) -> list[str]:
    targets = [str(target) for target in selection.targets]
    keep = ("--keep", str(question.keep)) if question.keep is not Keep.MIN_ISR else ()
    blocked = next((step for step in plan.steps if step.blocked), None)
    first = next((step for step in plan.steps if not step.blocked), None)
    if blocked is not None and (first is None or not question.restart_order):
        one = blocked.blocked[0]
        name = str(one.examples[0]) if one.examples else ""
        if name and blocked.action is Action.START:
            return ["explain", name, "--if", f"{blocked.broker} returns unclean", *question.keep_flags]
        if one.already and name:
            return ["explain", name, *question.keep_flags]
        return ["whatif", *targets, "--stop", str(blocked.broker), *question.keep_flags]
    if blocked is None and plan.unhealthy:
        return ["explain", str(plan.unhealthy[0].examples[0]), *question.keep_flags]
    if question.restart_order and first is not None:
        return ["whatif", *targets, "--restart", str(first.broker), "--check", *keep, *question.keep_flags]
    return ["describe", *targets, "--under-replicated"]
