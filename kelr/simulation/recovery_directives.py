"""Directives about the Unclean Recovery Manager of KIP-966: answers, time, failover, and where it stands."""

from __future__ import annotations

from dataclasses import replace

from kelr.controller import ControllerFailedOver, LogInfoAnswered, recovery_metrics
from kelr.controller.recovery.rules import recovery_of
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import Directive
from kelr.simulation.outcome import outcome_lines
from kelr.simulation.reading import Result, Spec, addresses, brokers, duration_ms, rest
from kelr.simulation.words import recovery_line


def _reply(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("error")
    for broker in brokers(cluster, directive):
        cluster = _replied(cluster, directive, broker)
    return cluster, ()


def _arrive(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    printed: list[str] = []
    for broker in brokers(cluster, directive):
        if broker not in cluster.replies:
            raise directive.error(f"no answer of {broker} is on its way", next_step=f"reply {broker} first")
        cluster, steps = cluster.arrive(broker)
        printed += outcome_lines(*steps)
    return cluster, printed


def _answer(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("error")
    printed: list[str] = []
    for broker in brokers(cluster, directive):
        cluster, steps = _replied(cluster, directive, broker).arrive(broker)
        printed += outcome_lines(*steps)
    return cluster, printed


def _replied(cluster: SimulatedCluster, directive: Directive, broker: int) -> SimulatedCluster:
    if broker in cluster.down:
        raise directive.error(f"broker {broker} does not run, so that it answers nothing")
    if not any(request.broker == broker for request in cluster.asked):
        raise directive.error(f"broker {broker} was not asked, or has answered already")
    after = cluster.reply(broker)
    error = directive.options.get("error")
    if error is None:
        return after
    before = cluster.replies.get(broker, ())
    failing = (_failing(answer, error) for answer in after.replies[broker][len(before) :])
    return replace(after, replies={**after.replies, broker: (*before, *failing)})


def _failing(answer: LogInfoAnswered, error: str) -> LogInfoAnswered:
    """The answer with an error for each partition in place of its log."""
    entries = {address: replace(entry, error=error) for address, entry in answer.entries.items()}
    return replace(answer, entries=entries)


def _no_answer(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    printed: list[str] = []
    for broker in brokers(cluster, directive):
        cluster, done = cluster.no_answer(broker)
        printed += outcome_lines(done)
    return cluster, printed


def _wait(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    after, done = cluster.wait(duration_ms(directive, rest(directive, "a time such as 5s")[0]))
    return after, outcome_lines(done)


def _failover(cluster: SimulatedCluster, directive: Directive) -> Result:
    """Questions and answers on their way die with the old controller's connections."""
    directive.allow()
    after, done = replace(cluster, asked=(), replies={}).after(ControllerFailedOver())
    return after, outcome_lines(done)


def _recovery(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    lines = []
    for at in addresses(cluster, directive):
        partition, task = cluster.controller.partitions[at], cluster.manager.tasks.get(at)
        heard = {} if task is None else task.heard
        asked_for = None if task is None else task.asked_for
        around = cluster.controller.around(partition)
        lines.append(recovery_line(at, recovery_of(partition, around, heard, asked_for=asked_for), heard))
    return cluster, lines


def _metrics(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    metrics = recovery_metrics(cluster.controller, cluster.manager)
    return cluster, [f"{name}={getattr(metrics, name)}" for name in metrics.__slots__]


SPECS = (
    Spec(
        "answer",
        "N... [error=NAME]",
        "each broker answers the Unclean Recovery Manager's question by its logs (GetReplicaLogInfo), or with an error",
        _answer,
    ),
    Spec("reply", "N... [error=NAME]", "the same, and the answer is on its way until `arrive`", _reply),
    Spec("arrive", "N...", "the answers that are on their way reach the controller", _arrive),
    Spec("no-answer", "N...", "no answer will come: the network failed, or the broker died", _no_answer),
    Spec("wait", "5s", "time passes for the Unclean Recovery Manager", _wait),
    Spec("failover", "", "another controller takes over, which knows nothing of what the manager had heard", _failover),
    Spec("recovery", "[TOPIC:P]", "prints where the unclean recovery of each partition stands", _recovery),
    Spec("metrics", "", "prints the metrics that KIP-966 adds", _metrics),
)
