"""From figures to findings: how clusters stand and are set up.

`happened` adds what they went through, `failing` what would happen. A finding is made where a figure asks for
somebody's work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kelr.fleet.report.figures import (
    BrokerRestarts,
    Cluster,
    Failures,
    Figures,
    RiskySetting,
    Scenario,
    Trouble,
    UncleanElections,
)
from kelr.fleet.report.findings import (
    TROUBLE_TITLES,
    TROUBLES,
    Certainty,
    Command,
    Evidence,
    Finding,
    Kind,
    connected,
    kelr,
    known_by,
    spread,
    stock,
    target,
    topic_configs,
)
from kelr.page.words import count, duration, full, listed, moment, number, sentence, share

AGAIN_AND_AGAIN = 2
"""So many unclean restarts of one broker are no accident."""
UNKNOWN_SHARE = 0.01
"""From this share of the partitions' time on, what is not known is a finding of its own."""
SETTINGS = (
    "unclean-enabled",
    "elr-off",
    "min-isr-1-with-elr",
    "static-min-isr-with-elr",
    "min-isr-is-rf",
    "min-isr-1",
    "rf-1",
    "rf-2",
    "elr-unknown",
    "min-isr-unknown",
)
"""The settings of `risky_settings`, the worst first; others come behind them."""
_TITLES = {
    "unclean-enabled": "unclean elections are allowed",
    "elr-off": "ELR is off",
    "min-isr-1-with-elr": "min ISR is 1, so that the ELR is always empty",
    "static-min-isr-with-elr": "min ISR is in brokers' files, where ELR does not look",
    "min-isr-is-rf": "min ISR asks for every replica",
    "min-isr-1": "min ISR is 1",
    "rf-1": "one replica alone",
    "rf-2": "two replicas",
    "elr-unknown": "whether ELR is on is not known",
    "min-isr-unknown": "min ISR is not known",
}
_SHOWN = 3


def judge(figures: Figures) -> list[Finding]:
    """All findings on a fleet, in no order.

    What the report lacks because a step was not run, or because files could not be read, is no finding: the report says
    it in front (`Figures.missing`, `Figures.quarantined`).
    """
    unclean_allowed = {one.cluster: one for one in figures.settings if one.setting == "unclean-enabled"}
    found: list[Finding] = []
    for cluster in figures.clusters:
        found += _leaderless(figures, cluster)
        found += _short_of_replicas(cluster)
        found += _not_known(figures, cluster)
        found += long(cluster, [one for one in figures.troubles if one.cluster == cluster.id])
    for held in figures.elections:
        cluster = figures.cluster(held.cluster)
        found.append(elections(cluster, held, unclean_allowed.get(cluster.id)))
    for broker in figures.restarts:
        if broker.unclean >= AGAIN_AND_AGAIN:
            found.append(restarts(figures.cluster(broker.cluster), broker))
    found += [_setting(figures.cluster(one.cluster), one) for one in figures.settings]
    found += failures(figures)
    return found


def _leaderless(figures: Figures, cluster: Cluster) -> Iterator[Finding]:
    standing = cluster.standing
    if not standing.leaderless:
        return
    now = next((one for one in figures.scenarios if one.cluster == cluster.id and one.now), None)
    unproven = 0 if now is None else min(now.unproven, standing.leaderless)
    text = [f"As of {moment(cluster.ends)}."]
    if standing.elr_only:
        text.append(f"Of these, {number(standing.elr_only)} can only be led cleanly by a member of the ELR.")
    if unproven:
        text.append(
            f"Of {number(unproven)}, every replica that held all that was committed was down or killed before: whether"
            " their disks still hold it is UNKNOWN."
        )
    if cluster.down:
        text.append(f"Not live: {listed(_brokers(cluster.down), most=12)}. Ask kelr explain before any of them starts.")
    topics = tuple(f"{one.topic} ({one.partitions})" for one in cluster.leaderless_topics)
    if topics:
        text.append(f"Most of them in: {listed(topics, most=_SHOWN)}.")
    unknown = []
    if now is None:
        unknown.append("Whether a replica of each is proven complete: this cluster was not assessed.")
    elif now.uncertain:
        unknown.append(f"For {count(now.uncertain, 'partition')} something that is not known would decide who leads.")
    if standing.elr_unknown:
        unknown.append(f"The ELR of {count(standing.elr_unknown, 'partition')}.")
    evidence = [Evidence("partition_states", "valid_to is null and leader is null", standing.leaderless)]
    if unproven:
        evidence.append(Evidence("assessment_sums", "scenario = 'now'", 1))
    yield Finding(
        Kind.UNPROVEN if unproven else Kind.LEADERLESS,
        cluster.id,
        cluster.name,
        "now",
        f"{count(standing.leaderless, 'partition')} without leader"
        + (f", {number(unproven)} with no replica proven complete" if unproven else ""),
        tuple(text),
        standing.leaderless,
        (unproven, standing.leaderless),
        known_by(cluster),
        tuple(evidence),
        (
            kelr(cluster, "who would be elected, what is lost, what each return does", "explain"),
            kelr(cluster, "plan how they come back; it changes nothing", "recover", "plan", "--out", "plan.json"),
            kelr(cluster, "carry the reviewed plan out", "recover", "apply", "plan.json"),
        ),
        tuple(unknown),
    )


def _short_of_replicas(cluster: Cluster) -> Iterator[Finding]:
    """Partitions that refuse acks=all, or that the next failure stops; else brokers that are not live."""
    standing = cluster.standing
    led = "valid_to is null and leader is not null and size(isr)"
    counts = (
        (standing.under_min_isr, "under min ISR", f"{led} < min_isr"),
        (standing.last_replica, "on their last replica", f"{led} = 1 and size(replicas) > 1"),
    )
    short = [(value, words, where) for value, words, where in counts if value]
    down = len(cluster.down)
    if not short and (standing.leaderless or not down):
        return
    title = ", ".join(f"{count(value, 'partition')} {words}" for value, words, _ in short)
    yield Finding(
        Kind.UNDER_MIN_ISR if short else Kind.NOT_LIVE,
        cluster.id,
        cluster.name,
        "replicas",
        f"{title or count(down, 'broker') + ' not live'} as of {moment(cluster.ends)}",
        (f"Not live: {listed(_brokers(cluster.down), most=12)}.",) if down else (),
        max(standing.under_min_isr, standing.last_replica),
        (standing.under_min_isr, standing.last_replica, down),
        known_by(cluster),
        tuple(Evidence("partition_states", where, value) for value, _, where in short)
        or (Evidence("broker_events", "status is not 'live' in the newest of a broker", down),),
        (
            kelr(cluster, "which replicas are missing now", "describe", "--under-replicated"),
            kelr(cluster, "which brokers are not live now", "doctor"),
        ),
    )


def _brokers(ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"broker {id}" for id in ids)


def _setting(cluster: Cluster, found: RiskySetting) -> Finding:
    places = [place for place in found.examples if place.command is not None]
    concerned = count(found.partitions, "partition")
    text = [full(found.why), f"Source: {found.rule}."]
    topics = tuple(place.name for place in found.examples if place.scope == "topic")
    if topics:
        text.insert(1, f"Set for: {listed(topics, most=_SHOWN, of=max(found.topics, len(topics)))}.")
    text += dict.fromkeys(f"Mind: {place.caution}." for place in found.examples if place.caution)
    severity = SETTINGS.index(found.setting) if found.setting in SETTINGS else len(SETTINGS)
    not_known = found.setting.endswith("-unknown")
    return Finding(
        Kind.NOT_KNOWN if not_known else Kind.SETTING,
        cluster.id,
        cluster.name,
        found.setting,
        f"{sentence(_TITLES.get(found.setting, found.setting))} ({concerned})",
        tuple(text),
        found.partitions,
        (-severity, found.partitions),
        known_by(cluster),
        (Evidence("risky_settings", f"setting = '{found.setting}'", found.places),),
        tuple(
            Command(f"for {place.name}" if place.name else "for the cluster", connected(cluster, str(place.command)))
            for place in places[:_SHOWN]
        ),
    )


def _not_known(figures: Figures, cluster: Cluster) -> Iterator[Finding]:
    found = [
        one
        for one in figures.troubles
        if one.cluster == cluster.id and one.topic is None and (one.unknown_share or 0) >= UNKNOWN_SHARE
    ]
    if not found:
        return
    worst = max(found, key=lambda one: one.unknown_share or 0)
    text = tuple(
        f"{sentence(TROUBLE_TITLES.get(one.trouble, one.trouble))}: UNKNOWN for {share(one.unknown_share or 0)} of the"
        " time."
        for one in found
    )
    why = (
        "Its metadata log has gaps, or does not tell min.insync.replicas."
        if cluster.from_log
        else "It is known by snapshots alone: what happened between two of them is not."
    )
    yield Finding(
        Kind.NOT_KNOWN,
        cluster.id,
        cluster.name,
        "time",
        f"{share(worst.unknown_share or 0)} of the time is not known",
        (*text, why),
        cluster.standing.partitions,
        (0.0, worst.unknown_share or 0),
        known_by(cluster),
        (Evidence("exposure", "dimension = 'cluster' and unknown_seconds > 0", len(found)),),
        (
            Command(
                "add the cluster's metadata log, from any controller's disk",
                f"kelr fleet ingest CONTROLLER/__cluster_metadata-0 --out {figures.place}",
            ),
        ),
    )


# From figures to findings: one broker or one rack whose failure costs something.


SINGLE = ("broker", "rack")
"""Kinds of scenarios that are one failure; what takes two is in the figures, and no finding."""


def failures(figures: Figures) -> Iterator[Finding]:
    """A finding for each cluster and kind of single failure that may lose records, and one for those that stop
    partitions."""
    for counted in figures.failures:
        if counted.kind not in SINGLE:
            continue
        cluster = figures.cluster(counted.cluster)
        worst = sorted(
            (one for one in figures.scenarios if (one.cluster, one.kind) == (counted.cluster, counted.kind)),
            key=lambda one: (tuple(-count_ for count_ in one.severity), one.name),
        )
        losing = [one for one in worst if one.may_lose]
        if losing:
            yield _loses(cluster, counted, losing)
        stopping = sorted(
            (one for one in worst if one.leaderless or one.under_min_isr),
            key=lambda one: (-one.leaderless, -one.under_min_isr, one.name),
        )
        if stopping:
            yield _stops(cluster, counted, stopping)


def _loses(cluster: Cluster, counted: Failures, found: Sequence[Scenario]) -> Finding:
    worst = found[0]
    return _finding(
        Kind.FAILURE_LOSES,
        cluster,
        counted,
        found,
        title=f"{_what(worst)}: {count(worst.may_lose, 'partition')} may lose committed records",
        text=[
            "On the way a replica is elected that nothing proves to be complete."
            f" {_how_many(counted.losing, counted)} would do so.",
            *_others(found, lambda one: f"{number(one.may_lose)}"),
        ],
        weight=(worst.may_lose, counted.losing),
        partitions=worst.may_lose,
    )


def _stops(cluster: Cluster, counted: Failures, found: Sequence[Scenario]) -> Finding:
    worst = found[0]
    parts = []
    if worst.leaderless:
        parts.append(f"{count(worst.leaderless, 'partition')} without leader")
    if worst.under_min_isr:
        parts.append(f"{count(worst.under_min_isr, 'partition')} refusing acks=all")
    text = [f"{_how_many(counted.stopping, counted)} would stop partitions."]
    if worst.unproven:
        text.append(f"Of the leaderless, {number(worst.unproven)} would have no replica that is proven complete.")
    text += _others(
        found, lambda one: f"{number(one.leaderless)} without leader, {number(one.under_min_isr)} refusing acks=all"
    )
    return _finding(
        Kind.FAILURE_STOPS,
        cluster,
        counted,
        found,
        title=f"{_what(worst)}: {' and '.join(parts)}",
        text=text,
        weight=(worst.leaderless, worst.under_min_isr),
        partitions=max(worst.leaderless, worst.under_min_isr),
    )


def _finding(
    kind: Kind,
    cluster: Cluster,
    counted: Failures,
    found: Sequence[Scenario],
    *,
    title: str,
    text: list[str],
    weight: tuple[float, ...],
    partitions: int,
) -> Finding:
    worst = found[0]
    if worst.worst_topics:
        text.append(f"Hit worst: {listed(worst.worst_topics, most=_SHOWN)}.")
    if worst.kind == "broker":
        text.append(
            "One broker does this where replicas are few or out of sync, or where min ISR asks for all of them."
        )
    elif cluster.down:
        text.append("Bring the brokers back that are not live before replicas are spread over the racks.")
    text.append("What is wrong already is not counted.")
    unknown = []
    if worst.uncertain:
        unknown.append(f"For {count(worst.uncertain, 'partition')} something that is not known would decide.")
    if not worst.rules_certain:
        unknown.append(f"Whether the cluster runs the rules {worst.rules}, by which this is computed.")
    return Finding(
        kind,
        cluster.id,
        cluster.name,
        counted.kind,
        title,
        tuple(text),
        partitions,
        weight,
        Certainty.COMPUTED,
        (Evidence("assessment_sums", f"kind = '{counted.kind}' and scenario = '{worst.name}'", 1),),
        (_again(cluster, worst), *_mending(cluster, worst)),
        tuple(unknown),
    )


def _what(scenario: Scenario) -> str:
    return f"If {scenario.happens}"


def _how_many(some: int, counted: Failures) -> str:
    noun = "failure of one broker" if counted.kind == "broker" else "failure of one rack"
    return f"{number(some)} of {number(counted.all)} scenarios ({noun}, clean or not)"


def _others(found: Sequence[Scenario], figure: Callable[[Scenario], str]) -> list[str]:
    others = tuple(f"{one.name} ({figure(one)})" for one in found[1:])
    return [f"Also: {listed(others, most=_SHOWN)}."] if others else []


def _mending(cluster: Cluster, scenario: Scenario) -> Iterator[Command]:
    """Replicas that are too close to each other are spread; for one broker, those that are missing are found."""
    topics = scenario.worst_topics[:_SHOWN]
    if scenario.kind == "rack" and not cluster.down:
        yield from spread(cluster, topics)
    else:
        yield kelr(
            cluster, "which replicas are out of sync already", "describe", *map(target, topics), "--under-replicated"
        )


def _again(cluster: Cluster, scenario: Scenario) -> Command:
    """The single-machine command that looks at the same failure, live."""
    why = "the same on the live cluster, partition by partition"
    if scenario.kind == "rack" and scenario.racks:
        clean = ("--clean",) if scenario.how == "stopped" else ()
        return kelr(cluster, why, "whatif", "--rack", scenario.racks[0], *clean)
    brokers = ",".join(map(str, scenario.brokers))
    if scenario.how == "back-unclean" and len(scenario.brokers) == 1:
        return kelr(cluster, why, "whatif", "--if", f"{brokers} fails, then {brokers} returns unclean")
    return kelr(cluster, why, "whatif", "--stop" if scenario.how == "stopped" else "--kill", brokers)


# From figures to findings: what clusters went through: unclean elections, long troubles, unclean restarts.


LONG_S = 600.0
"""A spell is long from here on: restarts are over sooner."""


def elections(cluster: Cluster, found: UncleanElections, allowed: RiskySetting | None) -> Finding:
    """Elections of replicas that nothing proves to be complete.

    Args:
        allowed: where unclean elections are allowed in this cluster; None: nowhere, or not known.
    """
    text = [
        f"From {moment(found.first)} to {moment(found.last)}."
        if found.first != found.last
        else f"At {moment(found.last)}."
    ]
    if found.last_known_leader:
        text.append(f"{number(found.last_known_leader)} elected the last known leader, which no config prevents.")
    if found.designated:
        text.append(f"{number(found.designated)} elected a replica that had just been put first in the assignment.")
    if found.at_stake is not None:
        text.append(f"The best known logs went {count(found.at_stake, 'offset')} further than the elected ones.")
    topics = tuple(one.topic for one in found.topics)
    text.append(f"Most of them in: {listed(topics, most=_SHOWN)}." if topics else "")
    unknown = []
    if found.at_stake_unknown:
        unknown.append(f"What {count(found.at_stake_unknown, 'election')} cost: no log that was read shows it.")
    unknown.append("How much of what is at stake was committed: logs alone do not tell.")
    if found.not_told:
        unknown.append(f"Whether {count(found.not_told, 'election')} more were clean: the log does not tell.")
    commands: list[Command] = [kelr(cluster, "each of these elections, and why it was held", "history", "--unclean")]
    if topics:
        commands += (
            kelr(cluster, "where the replicas' logs diverge", "log-info", target(topics[0]), "--lineage"),
            kelr(
                cluster,
                "save what other replicas still hold",
                *("rescue", "dump", target(topics[0]), "--out", f"{topics[0]}.kelr-rescue"),
            ),
        )
    if allowed is not None:
        commands += _disallow(cluster, allowed, topics)
    certain = found.sure > 0
    return Finding(
        Kind.UNCLEAN_ELECTIONS if certain else Kind.NOT_KNOWN,
        cluster.id,
        cluster.name,
        "elections",
        (
            f"{count(found.sure, 'unclean election')} in {count(found.partitions, 'partition')}:"
            " committed records may be lost"
            if certain
            else f"{count(found.not_told, 'election')} of which it is not told whether they were unclean"
        ),
        tuple(one for one in text if one),
        found.partitions,
        (found.sure, found.at_stake or 0) if certain else (0.0, found.not_told),
        known_by(cluster),
        (Evidence("unclean_elections", "", found.all),),
        tuple(commands),
        tuple(unknown),
    )


def _disallow(cluster: Cluster, allowed: RiskySetting, topics: Sequence[str]) -> Iterator[Command]:
    """Turn unclean elections off, first where they happened."""
    off = "unclean.leader.election.enable=false"
    places = [place for place in allowed.examples if place.scope == "topic" and place.name in topics]
    for place in places[:1] or list(allowed.examples[:1]):
        if place.command is not None:
            yield Command("no more unclean elections by config", connected(cluster, place.command))
        elif place.scope == "topic":
            yield topic_configs(cluster, "no more unclean elections by config", place.name, off)


def long(cluster: Cluster, troubles: Sequence[Trouble]) -> Iterator[Finding]:
    """Troubles of which a spell lasted `LONG_S` or more."""
    whole = {one.trouble: one for one in troubles if one.topic is None and one.longest_seconds >= LONG_S}
    found = [whole[trouble] for trouble in TROUBLES if trouble in whole]
    if not found:
        return
    text = [_spells(one) for one in found]
    topics = _worst_topics(troubles, {one.trouble for one in found})
    if topics:
        text.append("Worst: " + "; ".join(f"{one.topic} {_short(one)}" for one in topics) + ".")
    unknown = [
        f"{sentence(TROUBLE_TITLES[one.trouble])}: UNKNOWN for {share(one.unknown_share)} of the time."
        for one in found
        if one.unknown_share
    ]
    unsure = sum(one.unsure_spells for one in found)
    if unsure:
        unknown.append(f"When {count(unsure, 'spell')} began or ended, to the minute.")
    names = [one.topic for one in topics if one.topic is not None]
    commands = [kelr(cluster, "each partition's spells", "history", *map(target, names[:_SHOWN]), "--summary")]
    if any(one.lasting for one in found):
        commands.append(kelr(cluster, "who is missing now", "describe", "--under-replicated"))
        commands.append(
            stock(
                cluster,
                "the same by Kafka's own tool",
                "kafka-topics.sh",
                "--describe",
                "--under-replicated-partitions",
            )
        )
    commands.append(kelr(cluster, "an order of restarts that keeps min ISR", "whatif", "--restart-order"))
    worst = max(found, key=lambda one: one.longest_seconds)
    # A partition is in several troubles at once: their times do not add up.
    most = max(found, key=lambda one: one.seconds)
    yield Finding(
        Kind.LONG_TROUBLE,
        cluster.id,
        cluster.name,
        "troubles",
        f"{duration(worst.longest_seconds)} {TROUBLE_TITLES[worst.trouble]} at a stretch;"
        f" all partitions together {duration(most.seconds)} {TROUBLE_TITLES[most.trouble]}",
        tuple(text),
        max(one.partitions for one in found),
        (sum(one.seconds for one in found), worst.longest_seconds),
        known_by(cluster),
        (Evidence("exposure", "dimension = 'cluster' and week is null", len(found)),),
        tuple(commands),
        tuple(unknown),
    )


def _spells(one: Trouble) -> str:
    lasting = f"; {number(one.lasting)} still" if one.lasting else ""
    return (
        f"{sentence(TROUBLE_TITLES[one.trouble])}: {count(one.partitions, 'partition')},"
        f" {count(one.spells, 'spell')}, {duration(one.seconds)} together,"
        f" the longest {duration(one.longest_seconds)}{lasting}."
    )


def _short(one: Trouble) -> str:
    return f"({duration(one.seconds)} {TROUBLE_TITLES[one.trouble]})"


def _worst_topics(troubles: Sequence[Trouble], kinds: set[str]) -> list[Trouble]:
    """Of each topic the trouble that took longest, the worst topics first."""
    best: dict[str, Trouble] = {}
    for one in troubles:
        if one.topic is not None and one.trouble in kinds:
            known = best.get(one.topic)
            if known is None or one.seconds > known.seconds:
                best[one.topic] = one
    return sorted(best.values(), key=lambda one: (-one.seconds, str(one.topic)))[:_SHOWN]


def restarts(cluster: Cluster, broker: BrokerRestarts) -> Finding:
    """A broker that came back unclean again and again."""
    unknown = []
    if broker.not_shown:
        unknown.append(f"{count(broker.not_shown, 'more restart')} may have been unclean too: nothing shows it.")
    where = "" if broker.rack is None else f", rack {broker.rack}"
    host = "" if broker.host is None else f" ({broker.host}{where})"
    id = str(broker.broker)
    return Finding(
        Kind.UNCLEAN_RESTARTS,
        cluster.id,
        cluster.name,
        f"broker {id}",
        f"Broker {id} came back unclean {number(broker.unclean)} times of {number(broker.all)}",
        (
            f"Broker {id}{host} came back without a clean shutdown, the last time at {moment(broker.last_unclean)}.",
            "Each time it left every ISR and ELR. Look whether it is killed before its shutdown has ended (a service"
            " manager's limit, the kernel's out-of-memory killer), and at its disks.",
        ),
        0,
        (broker.unclean, broker.not_shown),
        Certainty.RECORDED,
        (Evidence("unclean_restarts", f"broker = {id} and week is null", 1),),
        (
            kelr(cluster, "when it went and came, and what that did", "history", "--broker", id),
            stock(
                cluster,
                "whether it may shut down in order, and what its log recovery is given",
                "kafka-configs.sh",
                *("--describe", "--all", "--entity-type", "brokers", "--entity-name", id),
            ),
            kelr(cluster, "whether its next restart is safe", "whatif", "--restart", id),
        ),
        tuple(unknown),
    )
