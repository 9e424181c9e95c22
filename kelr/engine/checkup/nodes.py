"""The checks of brokers and controllers: who is there, who follows, what was left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kelr.engine.checkup import catalogue as of
from kelr.engine.checkup import fixes
from kelr.engine.checkup.features import silent_words
from kelr.engine.words import agree, joined, length_of_time, plural
from kelr.engine.words import brokers as broker_words
from kelr.model import BrokerStatus, ConfigSource
from kelr.model.checkup import (
    BEHIND_MS,
    AddressState,
    BrokerFacts,
    CheckupFacts,
    ConfigRead,
    Finding,
    NotChecked,
    NotRead,
    Quorum,
    QuorumNode,
    Severity,
    all_cordoned,
)

CLOCK_MS = 5_000
"""How far clocks may be apart, round trip aside."""
FEWEST_CONTROLLERS = 3
OFTEN = 2
"""Unclean restarts of one broker that are no accident any more."""
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
"""The configs of topics that name throttled replicas."""
_REBALANCE = "auto.leader.rebalance.enable"
_STATIC_VOTERS, _BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
QUORUM_CONFIGS = (_STATIC_VOTERS, _BOOTSTRAP)
"""Where a broker's file says that controllers are."""
COLLECT = "kelr quorum collect HOST.kelr-quorum --node-dir PATH"
"""On each host, before anything is started that may have lost its disk."""


def node_checks(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    """Brokers, controllers, directories, restarts and journals."""
    yield from _controller(facts)
    yield from _fenced(facts)
    yield from _quorum(facts)
    yield from _directories(facts)
    yield from _cordons(facts)
    yield from _rebalance(facts)
    yield from _restarts(facts)
    yield from _journals(facts)
    yield from _unsaved(facts)


def _controller(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    """Without a controller brokers tell of no death since: that nothing was found then is no all-clear."""
    silence = facts.cluster.controller_silence
    if silence is None:
        if facts.cluster.controller is None:
            for check in (of.NO_CONTROLLER, of.QUORUM_LOST):
                yield check.not_checked("no broker told which controller leads")
        return
    seen = facts.controllers
    accept = [address for address, state in seen.items() if state is AddressState.OPEN]
    majority = len(seen) // 2 + 1
    enough = bool(seen) and len(accept) >= majority
    voters = isinstance(facts.brokers, tuple) and _controllers_named(facts.brokers)[0] == _STATIC_VOTERS
    many = plural(len(seen), "controller" if voters else "controller endpoint")
    these = f"{len(accept)} of {many} {agree(len(accept), 'accepts', 'accept')} connections"
    yield of.NO_CONTROLLER.finding(
        f"no controller answers ({silence})",
        caution=f"{these} from here: see in the controllers' server logs why they elect no leader. kelr quorum explain"
        " says whether addresses, a disk or more is lost"
        if enough
        else "look at the controllers' server logs, and start them until a majority runs",
    )
    if all(state is AddressState.SILENT for state in seen.values()):
        yield of.QUORUM_LOST.not_checked(
            f"no response from {joined(seen)}: hosts that are down, or a firewall"
            if seen
            else "no broker says where controllers are"
        )
    elif not enough:
        states = joined(f"{address} ({_ANSWERS[state]})" for address, state in seen.items())
        yield of.QUORUM_LOST.finding(
            f"{these} from here{f', and a majority takes {majority}' if voters else ''}: {states}",
            commands=[COLLECT],
            caution="start the stopped controllers whose disks are whole; where they have other addresses now, see kelr"
            " quorum plan --voter. If the disks of a majority are lost, start"
            " none: keep brokers up, collect on each host, controllers and brokers, then kelr quorum explain",
        )
    elif not voters:
        yield of.QUORUM_LOST.not_checked(
            f"{these}; {_BOOTSTRAP} may name some of the controllers, or a load balancer: how many run is not known"
        )
    for check in (of.LEADERLESS, of.UNDER_MIN_ISR, of.UNDER_REPLICATED, of.BROKER_FENCED):
        yield check.not_checked(f"no controller answers ({silence}): brokers tell what they knew last")


_ANSWERS = {
    AddressState.OPEN: "accepts connections",
    AddressState.REFUSED: "connection refused",
    AddressState.SILENT: "no response",
}


def controller_addresses(brokers: Sequence[BrokerFacts]) -> tuple[str, ...]:
    """``HOST:PORT`` of each controller that brokers' files name: voters where any file has them."""
    return _controllers_named(brokers)[1]


def _controllers_named(brokers: Sequence[BrokerFacts]) -> tuple[str | None, tuple[str, ...]]:
    """The config that names controllers, and the addresses. Only that of static voters names them all, and nothing
    else: the other may name a load balancer."""
    configs = [one.configs for one in brokers if not isinstance(one.configs, NotRead)]
    for name in QUORUM_CONFIGS:
        named = ",".join(_value(one, name) or "" for one in configs).split(",")
        found = {text.strip().rpartition("@")[2] for text in named} - {""}
        if found:
            return name, tuple(sorted(found))
    return None, ()


def _fenced(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    cluster = facts.cluster
    away = [broker.id for broker in cluster.brokers if broker.status is not BrokerStatus.LIVE]
    if away:
        is_, its = agree(len(away), "is", "are"), agree(len(away), "its", "their")
        statuses = joined(dict.fromkeys(str(cluster.status(broker)) for broker in away))
        yield of.BROKER_FENCED.finding(
            f"{broker_words(away)} {is_} {statuses}",
            brokers=away,
            commands=[("explain",)],
            caution=f"read {its} server logs before you start {agree(len(away), 'it', 'them')}",
        )
    if not cluster.lists_fenced_brokers:
        yield of.BROKER_FENCED.not_checked(f"{cluster.brokers_source} lists live brokers alone")


def _quorum(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    checks = (of.CONTROLLERS_FEW, of.QUORUM_AT_RISK, of.METADATA_BEHIND, of.CLOCK_OFF)
    quorum = facts.quorum
    if isinstance(quorum, NotRead):
        for check in checks:
            yield check.not_checked(quorum.why)
        return
    count = len(quorum.voters)
    if count < FEWEST_CONTROLLERS:
        yield of.CONTROLLERS_FEW.finding(
            f"{plural(count, 'controller')} ({_ids(quorum.voters)}): no failover",
            brokers=[voter.node for voter in quorum.voters],
            caution=f"add {plural(FEWEST_CONTROLLERS - count, 'controller')} (KIP-853: kafka-metadata-quorum.sh"
            " add-controller, on the new node)",
        )
    now_ms = quorum.now_ms
    if now_ms is None:
        for check in checks[1:]:
            yield check.not_checked("the active controller tells no times (DescribeQuorum v0)")
        return
    yield from _followers(facts, quorum, now_ms)
    yield from _clock(quorum, now_ms)


def _followers(facts: CheckupFacts, quorum: Quorum, now_ms: int) -> Iterator[Finding | NotChecked]:
    behind = [voter for voter in quorum.voters if not quorum.following[voter.node]]
    if behind:
        following = len(quorum.voters) - len(behind)
        majority = len(quorum.voters) // 2 + 1
        margin = following - majority
        left = f"{following} of {len(quorum.voters)} follow, and a majority takes {majority}"
        more = f"{margin} more may go" if margin > 0 else "none may go any more"
        yield of.QUORUM_AT_RISK.finding(
            f"{_nodes('controller', behind)} {_standing(behind, now_ms)}; {left}: {more}",
            severity=Severity.WARNING if margin > 0 else Severity.CRITICAL,
            brokers=[voter.node for voter in behind],
            caution="look at its server log, and start it where it is down",
        )
    live = facts.cluster.live
    late = [one for one in quorum.observers if one.node in live and one.is_behind(now_ms)]
    if late:
        yield of.METADATA_BEHIND.finding(
            f"{_nodes('broker', late)} {_standing(late, now_ms)}", brokers=[one.node for one in late]
        )


def _clock(quorum: Quorum, now_ms: int) -> Iterator[Finding | NotChecked]:
    if quorum.asked_ms is None or quorum.answered_ms is None:
        yield of.CLOCK_OFF.not_checked("the time of the request was not noted")
        return
    # The controller wrote its time between asking and answer, whatever it was doing.
    off_ms = max(quorum.asked_ms - now_ms, now_ms - quorum.answered_ms, 0)
    if off_ms > CLOCK_MS:
        behind = "behind" if now_ms < quorum.asked_ms else "ahead of"
        yield of.CLOCK_OFF.finding(
            f"the clock of controller {quorum.leader} is {length_of_time(off_ms)} {behind} this machine's",
            brokers=[quorum.leader],
            caution="which of the two is right is not known",
        )


def _standing(nodes: Sequence[QuorumNode], now_ms: int) -> str:
    """What is known of nodes that do not follow."""
    times = [one.last_fetch_ms for one in nodes]
    has, have = agree(len(nodes), "has", "have"), "not fetched"
    if any(one is None for one in times):
        return f"{has} {have} since the active controller took over"
    longest = max(now_ms - one for one in times if one is not None)
    if longest > BEHIND_MS:
        return f"{has} {have} for {length_of_time(longest)}"
    return f"{agree(len(nodes), 'fetches', 'fetch')} and {agree(len(nodes), 'does', 'do')} not catch up"


def _nodes(what: str, nodes: Sequence[QuorumNode]) -> str:
    return f"{what if len(nodes) == 1 else what + 's'} {_ids(nodes)}"


def _ids(nodes: Sequence[QuorumNode]) -> str:
    return joined(sorted(one.node for one in nodes))


def _directories(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    if isinstance(facts.brokers, NotRead):
        yield of.LOG_DIR_OFFLINE.not_checked(facts.brokers.why)
        return
    silent = []
    for one in facts.brokers:
        if isinstance(one.directories, NotRead):
            silent.append((one, one.directories.why))
            continue
        failed = [directory for directory in one.directories if directory.error is not None]
        if failed:
            shown = joined(f"{directory.path} ({directory.error})" for directory in failed)
            yield of.LOG_DIR_OFFLINE.finding(
                f"broker {one.broker}: {shown}",
                brokers=[one.broker],
                commands=[("describe", "--offline", "--broker", str(one.broker))],
                caution="replace the disk and restart the broker: it copies the replicas anew from their leaders; kelr"
                " explain shows first whether a partition has other replicas",
            )
    if silent:
        yield of.LOG_DIR_OFFLINE.not_checked(silent_words([one for one, _ in silent], [why for _, why in silent]))


def _cordons(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    """A broker that tells its directories and not whether they are cordoned knows no cordons."""
    known = {broker.id: broker.cordoned for broker in facts.cluster.brokers if broker.cordoned is not None}
    silent = []
    for one in () if isinstance(facts.brokers, NotRead) else facts.brokers:
        if not isinstance(one.directories, NotRead):
            known[one.broker] = bool(all_cordoned(one.directories))
        elif one.broker not in known:
            silent.append((one, one.directories.why))
    which = sorted(broker for broker, cordoned in known.items() if cordoned)
    if which:
        yield of.BROKER_CORDONED.finding(
            f"{broker_words(which)}: all log directories are cordoned (cordoned.log.dirs)",
            brokers=which,
            caution="as it should be while a broker is drained. Take the cordon off before the broker stops: once it is"
            " down the cordon stays, and Kafka refuses every order that names it",
        )
    if isinstance(facts.brokers, NotRead):
        yield of.BROKER_CORDONED.not_checked(facts.brokers.why)
    elif silent:
        yield of.BROKER_CORDONED.not_checked(silent_words([one for one, _ in silent], [why for _, why in silent]))


def _rebalance(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    configs, silent = broker_configs(facts)
    on = [broker for broker, known in configs.items() if _value(known, _REBALANCE) == "true"]
    if on:
        yield of.AUTO_REBALANCE.finding(
            f"{_REBALANCE} is true on {broker_words(sorted(on))}",
            brokers=sorted(on),
            caution="the controllers go by their own files, which no request shows; the default is true. kelr restores"
            " the order of replicas after a designation, so that this moves the leader back once that one is in sync",
        )
    if silent is not None:
        yield of.AUTO_REBALANCE.not_checked(silent)


def broker_configs(facts: CheckupFacts) -> tuple[Mapping[int, Mapping[str, ConfigRead]], str | None]:
    """The configs of each broker that told them, and why others did not; None where all did."""
    if isinstance(facts.brokers, NotRead):
        return {}, facts.brokers.why
    known = {one.broker: one.configs for one in facts.brokers if not isinstance(one.configs, NotRead)}
    silent: list[tuple[BrokerFacts, str]] = [
        (one, one.configs.why) for one in facts.brokers if isinstance(one.configs, NotRead)
    ]
    words = silent_words([one for one, _ in silent], [why for _, why in silent]) if silent else None
    return known, words


def throttle_checks(
    facts: CheckupFacts,
    topics: Mapping[str, Mapping[str, str]],
    *,
    moving: bool | None,
    not_read: Sequence[NotChecked] = (),
) -> Iterator[Finding | NotChecked]:
    """Throttles that nothing needs any more.

    Args:
        topics: topic to the values that are set on it, `THROTTLED` among them.
        moving: whether a reassignment is under way; None: not known.
        not_read: why topics could not be looked at.
    """
    configs, silent = broker_configs(facts)
    named = {topic: [name for name in THROTTLED if name in own] for topic, own in topics.items()}
    named = {topic: keys for topic, keys in named.items() if keys}
    rates: dict[int, list[str]] = {
        broker: [name for name in RATES if _dynamic(known.get(name))] for broker, known in sorted(configs.items())
    }
    rates = {broker: names for broker, names in rates.items() if names}
    shared = [] if isinstance(facts.defaults, NotRead) else [name for name in RATES if name in facts.defaults]
    if silent is not None:
        yield of.THROTTLE_LEFT.not_checked(silent)
    yield from not_read
    if moving is None and (rates or shared or named):
        yield of.THROTTLE_LEFT.not_checked("throttles are set; whether a reassignment is under way is not known")
    if moving is not False:
        return
    if shared:
        yield of.THROTTLE_LEFT.finding(
            f"{joined(shared)} is set for all brokers, and no reassignment is under way",
            commands=[fixes.default_configs_gone(*shared)],
        )
    for broker, names in rates.items():
        shown = joined(f"{name} ({_value(configs[broker], name)} B/s)" for name in names)
        yield of.THROTTLE_LEFT.finding(
            f"broker {broker} has {shown}, and no reassignment is under way",
            brokers=[broker],
            commands=[fixes.broker_configs_gone(broker, *names)],
        )
    for topic, keys in named.items():
        yield of.THROTTLE_LEFT.finding(
            f"topic {topic} has {joined(keys)}, and no reassignment is under way",
            severity=of.THROTTLE_LEFT.severity if rates or shared else Severity.NOTE,
            topic=topic,
            commands=[fixes.topic_configs_gone(topic, *keys)],
        )


def _dynamic(config: ConfigRead | None) -> bool:
    return config is not None and config.source is ConfigSource.BROKER and config.value is not None


def _value(known: Mapping[str, ConfigRead], name: str) -> str | None:
    found = known.get(name)
    return None if found is None else found.value


def _restarts(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    history = facts.restarts
    if isinstance(history, NotRead):
        yield of.UNCLEAN_RESTARTS.not_checked(history.why)
        return
    window = f"within {length_of_time(history.until_ms - history.since_ms)} of the metadata log"
    for one in history.brokers:
        if len(one.unclean_ms) >= OFTEN:
            unsure = (
                f"; of {plural(one.not_shown, 'more restart')} it does not show what was before"
                if one.not_shown
                else ""
            )
            times = plural(len(one.unclean_ms), "unclean shutdown")
            yield of.UNCLEAN_RESTARTS.finding(
                f"broker {one.broker} came back from {times} {window}{unsure}",
                brokers=[one.broker],
                commands=[("history", "--broker", str(one.broker))],
                caution="look for the out-of-memory killer, a stop timeout too short for a clean shutdown, and disks",
            )


def _unsaved(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    if isinstance(facts.unsaved, NotRead):
        yield of.UNSAVED.not_checked(facts.unsaved.why)
        return
    topics: dict[str, dict[int, tuple[int, ...]]] = {}
    for at, left in sorted(facts.unsaved.items()):
        topics.setdefault(at.topic, {})[at.partition] = left
    for topic, partitions in topics.items():
        away = sorted({one for left in partitions.values() for one in left})
        yield of.UNSAVED.finding(
            f"{agree(len(away), 'the disk', 'the disks')} of {broker_words(away)} may hold records of"
            f" {plural(len(partitions), 'partition')} of {topic} that no live log has",
            topic=topic,
            partitions=partitions,
            brokers=away,
            commands=[("explain", f"{topic}:{','.join(map(str, partitions))}")],
            caution="save them before any of these brokers starts: it truncates to the leader's log then",
        )


def _journals(facts: CheckupFacts) -> Iterator[Finding | NotChecked]:
    if isinstance(facts.left_behind, NotRead):
        yield of.REORDERED.not_checked(facts.left_behind.why)
        return
    for one in facts.left_behind:
        reordered = f"; reordered: {joined(one.reordered[:5])}" if one.reordered else ""
        more = f" and {len(one.reordered) - 5} more" if len(one.reordered) > 5 else ""
        yield of.REORDERED.finding(
            f"journal {one.journal} is open: {one.text}{reordered}{more}",
            commands=[one.following] if one.following else [],
        )
