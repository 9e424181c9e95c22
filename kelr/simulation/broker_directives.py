"""Directives about brokers: their processes, their sessions with the controller, their disks."""

from __future__ import annotations

from kelr.controller import events
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import Directive
from kelr.simulation.outcome import changed_logs, outcome_lines
from kelr.simulation.reading import (
    MAX_BROKERS,
    Result,
    Spec,
    addresses,
    broker,
    broker_id,
    brokers,
    existing,
    rest,
)
from kelr.simulation.words import NOTHING_CHANGES


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


SPECS = (
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
