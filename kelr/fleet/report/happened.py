"""From figures to findings: what clusters went through: unclean elections, long troubles, unclean restarts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.fleet.report.figures import BrokerRestarts, Cluster, RiskySetting, Trouble, UncleanElections
from kelr.fleet.report.findings import Certainty, Command, Evidence, Finding, Kind, known_by
from kelr.fleet.report.lines import connected, kelr, stock, target, topic_configs
from kelr.fleet.report.words import TROUBLE_TITLES, TROUBLES
from kelr.page.words import count, duration, listed, moment, number, sentence, share

LONG_S = 600.0
"""A spell is long from here on: restarts are over sooner."""
_SHOWN = 3


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
            kelr(cluster, "where the replicas' logs part", "log-info", target(topics[0]), "--lineage"),
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
        f"{sentence(TROUBLE_TITLES[one.trouble])}: for {share(one.unknown_share)} of the time nobody can tell."
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
