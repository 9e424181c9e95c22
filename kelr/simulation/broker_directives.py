"""Directives about brokers: their processes, their sessions with the controller, their disks."""

from __future__ import annotations

from itertools import pairwise

from kelr.controller import events
from kelr.model import EpochEnd, LogUnavailable, LogUnavailableReason, ReplicaLog
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import (
    MAX_BROKERS,
    MAX_RECORDS,
    Directive,
    Result,
    Spec,
    address,
    addresses,
    broker,
    broker_id,
    brokers,
    existing,
    one_broker,
    others,
    replica,
    rest,
)
from kelr.simulation.logs import Acks
from kelr.simulation.words import NOTHING_CHANGES, changed_logs, committed_line, log_text, outcome_lines


def _fence(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    printed: list[str] = []
    for fenced in brokers(cluster, directive):
        cluster, handled = cluster.after(events.BrokerFenced(fenced))
        printed += outcome_lines(handled)
    return cluster, printed


def _unfence(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    unfenced = broker(cluster, directive)
    if unfenced in cluster.down:
        raise directive.error(f"broker {unfenced} does not run", next_step=f"restart {unfenced} clean, or unclean")
    cluster, handled = cluster.after(events.BrokerUnfenced(unfenced))
    return cluster, outcome_lines(handled)


def _register(cluster: SimulatedCluster, directive: Directive) -> Result:
    cluster, handled = cluster.after(_registration(cluster, directive))
    return cluster, outcome_lines(handled)


def _restart(cluster: SimulatedCluster, directive: Directive) -> Result:
    event = _registration(cluster, directive)
    existing(cluster, directive, event.broker)
    cluster, registered = cluster.after(event)
    cluster, unfenced = cluster.after(events.BrokerUnfenced(event.broker))
    return cluster, outcome_lines(registered, unfenced)


def _registration(cluster: SimulatedCluster, directive: Directive) -> events.BrokerRegistered:
    directive.allow()
    words = rest(directive, "a broker")
    if len(words) != 2 or words[1] not in {"clean", "unclean"}:
        raise directive.error(f"say {directive.name} N clean, or unclean")
    number = broker_id(directive, words[0])
    if number not in cluster.controller.brokers and len(cluster.controller.brokers) >= MAX_BROKERS:
        raise directive.error(f"a scenario has no more than {MAX_BROKERS} brokers")
    if number < 0:
        raise directive.error("a broker's id is 0 or more")
    clean = words[1] == "clean"
    if clean and number in cluster.crashed:
        next_step = f"write {directive.name} {number} unclean, or shutdown in place of crash"
        raise directive.error(f"broker {number} crashed, so it cannot be back cleanly", next_step=next_step)
    return events.BrokerRegistered(number, clean=clean)


def _shutdown(cluster: SimulatedCluster, directive: Directive) -> Result:
    """Controlled shutdown to its end; where the broker still leads something, its session expires in the end."""
    directive.allow()
    printed: list[str] = []
    for stopping in brokers(cluster, directive):
        steps = (
            events.ControlledShutdown(stopping),
            events.ControlledShutdown(stopping),
            events.BrokerFenced(stopping),
        )
        handled = []
        for step in steps:
            cluster, one = cluster.after(step)
            handled.append(one)
            if one.error != "NONE":
                break
        cluster = cluster.shut_down(stopping)
        printed += outcome_lines(*handled)
    return cluster, printed


def _crash(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("loses")
    words = rest(directive, "a broker")
    power = "power" in words
    crashed = tuple(existing(cluster, directive, broker_id(directive, word)) for word in words if word != "power")
    loses = directive.options.get("loses")
    reached = addresses(cluster, directive)
    after = cluster
    for number in crashed:
        after = after.stopped(number, power_loss=power)
        for at in reached if loses is not None else ():
            log = after.replication[at].logs.get(number)
            if log is not None:
                end = log.start if loses == "all" else log.end - directive.number("loses", 0)
                after = after.cut(at, number, max(end, log.start))
    lost = changed_logs(cluster, after, sorted(cluster.replication))
    return after, ["nothing is lost"] if lost == [NOTHING_CHANGES] else lost


def _unregister(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    cluster, handled = cluster.after(events.BrokerUnregistered(broker(cluster, directive)))
    return cluster, outcome_lines(handled)


def _lose_directory(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    reached = frozenset(addresses(cluster, directive))
    cluster, handled = cluster.after(events.DirectoryFailed(broker(cluster, directive), reached))
    return cluster, outcome_lines(handled)


def _assign_directory(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    assigned, handled = broker(cluster, directive), []
    for at in addresses(cluster, directive):
        cluster, one = cluster.after(events.DirectoryAssigned(assigned, at))
        handled.append(one)
    return cluster, outcome_lines(*handled)


_BROKER_SPECS = (
    Spec(
        "fence",
        "N...",
        "the brokers' sessions expire, one after the other: for the controller they are dead, and they neither lead nor"
        " fetch until they are back",
        _fence,
    ),
    Spec("unfence", "N", "a fenced broker is back without a restart, or has caught up after `register`", _unfence),
    Spec(
        "crash",
        "N... [TOPIC:P] [power] [loses=COUNT|all]",
        "the processes die; the controller learns of it by `fence` or `register`. power takes what was not flushed,"
        " loses= the last records of each log, or of one partition's",
        _crash,
    ),
    Spec(
        "shutdown", "N...", "controlled shutdown: leaders move away, everything is flushed, the process ends", _shutdown
    ),
    Spec(
        "restart",
        "N clean|unclean",
        "the broker registers again, after a clean or an unclean shutdown, and is unfenced",
        _restart,
    ),
    Spec("register", "N clean|unclean", "it registers and stays fenced; a broker that is new is added", _register),
    Spec("unregister", "N", "an operator removes its registration", _unregister),
    Spec(
        "lose-directory",
        "N [TOPIC:P]",
        "the log directory of its replicas, or of one, fails; the broker stays live",
        _lose_directory,
    ),
    Spec(
        "assign-directory",
        "N [TOPIC:P]",
        "the broker puts its replicas, or one, into a directory that works",
        _assign_directory,
    ),
)


# Directives about logs: what producers send, what followers fetch, what a disk keeps, what is said by hand.


def _produce(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("acks")
    at, (word, *_) = address(cluster, directive), rest(directive, "how many records")
    count = directive.parsed_number(word)
    acks = directive.choice("acks", *Acks) or Acks.ALL
    if count < 1 or cluster.next_record + count > MAX_RECORDS:
        raise directive.error(f"a scenario produces 1 to {MAX_RECORDS} records in all")
    after, produced = cluster.produce(at, count, Acks(acks))
    return after, changed_logs(cluster, after, (at,)) if produced.error == "NONE" else [produced.error]


def _fetch(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("max")
    at, limit = address(cluster, directive), directive.optional("max")
    if limit is not None and limit < 0:
        raise directive.error("max is 0 or more")
    after = cluster
    for word in rest(directive, "a replica"):
        follower = replica(cluster, directive, at, broker_id(directive, word))
        after = after.fetch(at, follower, limit=limit)
    return after, changed_logs(cluster, after, (at,))


def _replicate(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    reached = addresses(cluster, directive)
    words = others(directive)
    after = cluster
    for at in reached:
        followers = tuple(replica(cluster, directive, at, broker_id(directive, word)) for word in words)
        after = after.replicate(at, followers or None)
    return after, changed_logs(cluster, after, reached)


def _flush(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    for flushing in brokers(cluster, directive):
        cluster = cluster.flushed(flushing)
    return cluster, ()


def _delete_records(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("before")
    at, offset = address(cluster, directive), directive.optional("before")
    if offset is None:
        raise directive.error("say before=OFFSET")
    if offset < 0:
        raise directive.error("before is 0 or more")
    after = cluster.delete_before(at, offset)
    return after, changed_logs(cluster, after, (at,))


def _logs(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    return cluster, [
        log_text(at, number, log)
        for at in addresses(cluster, directive)
        for number, log in sorted(cluster.replication[at].logs.items())
    ]


def _committed(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    return cluster, [committed_line(at, cluster.replication[at]) for at in addresses(cluster, directive)]


def _log(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("end", "epoch", "hw", "start", "lineage", "current", "unheard")
    at = address(cluster, directive)
    number = replica(cluster, directive, at, one_broker(directive))
    unheard = directive.options.get("unheard")
    if unheard is not None:
        if unheard not in set(LogUnavailableReason):
            raise directive.error(f"{unheard!r} is no reason; there are {', '.join(LogUnavailableReason)}")
        return cluster.tell(at, LogUnavailable(number, LogUnavailableReason(unheard))), ()
    end = directive.number("end", -1)
    if end < 0:
        raise directive.error("a log has an end")
    lineage = _lineage(directive)
    log = ReplicaLog(
        replica=number,
        log_end=end,
        last_epoch=lineage[-1].epoch if lineage else directive.optional("epoch"),
        current_leader_epoch=directive.optional("current"),
        high_watermark=directive.optional("hw"),
        log_start=directive.number("start", 0),
        lineage=lineage,
        source="scenario",
    )
    return cluster.tell(at, log), ()


def _lineage(directive: Directive) -> tuple[EpochEnd, ...] | None:
    text = directive.options.get("lineage")
    if text is None:
        return None
    pairs = [part.split(":") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise directive.error("a lineage is EPOCH:END,EPOCH:END,...")
    ends = tuple(EpochEnd(directive.parsed_number(epoch), directive.parsed_number(end)) for epoch, end in pairs)
    ordered = all(one.epoch < next_.epoch and one.end_offset <= next_.end_offset for one, next_ in pairwise(ends))
    if not ordered:
        raise directive.error("a lineage has its epochs in order, each ending where the next begins")
    return ends


_LOG_SPECS = (
    Spec(
        "produce",
        "[TOPIC:P] COUNT [acks=all|1|0]",
        "producers send records to the leader; with acks=all they are acknowledged once the high watermark has passed"
        " them",
        _produce,
    ),
    Spec(
        "fetch",
        "[TOPIC:P] N... [max=COUNT]",
        "each follower fetches once: the leader learns where its log ended before, the follower gets the next records",
        _fetch,
    ),
    Spec(
        "replicate",
        "[TOPIC:P] [N...]",
        "followers, all of them unless named, fetch until they have everything and know the high watermark",
        _replicate,
    ),
    Spec("flush", "N...", "the brokers write their logs to the disk, so that a power loss cannot take them", _flush),
    Spec(
        "delete-records",
        "[TOPIC:P] before=OFFSET",
        "the leader deletes records, up to its high watermark",
        _delete_records,
    ),
    Spec(
        "logs", "[TOPIC:P]", "prints every replica's log: end, high watermark, and where each leader epoch ends", _logs
    ),
    Spec(
        "committed",
        "[TOPIC:P]",
        "prints what became of the records acknowledged with acks=all: how many the leader's log lacks (lost), how many"
        " no log holds any more (gone), how many each replica lacks",
        _committed,
    ),
    Spec(
        "log",
        "[TOPIC:P] N end=OFFSET [epoch=N] [hw=OFFSET] [start=OFFSET] [lineage=EPOCH:END,...] [current=EPOCH]",
        "says by hand what is known of a log, for `decide`; `unheard=REASON` instead: nothing is",
        _log,
    ),
)

SPECS = (*_BROKER_SPECS, *_LOG_SPECS)
