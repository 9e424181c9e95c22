"""Directives about leaders: the ISR that they report, the elections that are asked for, what they look like."""

from __future__ import annotations

from dataclasses import replace

from kelr.controller import (
    ControllerFailedOver,
    Election,
    LogInfoAnswered,
    ManualRecovery,
    Stepped,
    events,
    recovery_metrics,
)
from kelr.controller.recovery.rules import recovery_of
from kelr.engine import decide
from kelr.model import ElectedBy, ElectionType, TopicPartition
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import (
    Directive,
    Result,
    Spec,
    address,
    addresses,
    brokers,
    cut,
    duration_ms,
    others,
    replica,
    rest,
    rules,
)
from kelr.simulation.replication import caught_up
from kelr.simulation.words import (
    FIELDS,
    NOTHING_CHANGES,
    answered_lines,
    change_lines,
    decision_lines,
    fields_line,
    log_line,
    outcome_lines,
    recovery_line,
    state_line,
)


def _isr(cluster: SimulatedCluster, directive: Directive) -> Result:
    asking, kept_out = _propose(cluster, directive)
    if asking is cluster:
        return cluster, kept_out
    after, handled = asking.deliver(address(cluster, directive))
    return after, (*kept_out, *outcome_lines(handled))


def _deliver(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    at = address(cluster, directive)
    leadership = cluster.replication[at].leadership
    if leadership is None or leadership.proposed is None:
        raise directive.error(f"no request of {at}'s leader is under way", next_step="propose an ISR first")
    after, handled = cluster.deliver(at)
    return after, outcome_lines(handled)


def _propose(cluster: SimulatedCluster, directive: Directive) -> Result:
    """The leader sends another ISR. It adds only followers that have caught up and that, by its metadata cache, the
    controller would let in; with nobody else to add or to drop it sends nothing."""
    directive.allow("epochs")
    if directive.options.get("epochs", "metadata") != "metadata":
        raise directive.error("epochs= says whose broker epochs are sent", next_step="epochs=metadata, or leave it out")
    of_fetches = "epochs" not in directive.options
    at = address(cluster, directive)
    isr = directive.parsed_ids(rest(directive, "an ISR")[0])
    leader = cluster.serving(at)
    if leader is None:
        raise directive.error(f"{at} has no leader, so none reports an ISR")
    logs, partition = cluster.replication[at], cluster.controller.partitions[at]
    for member in isr:
        behind = logs.written and member in logs.logs and not caught_up(logs, member)
        if behind and member not in partition.isr:
            raise directive.error(
                f"{member} has not caught up with leader {leader}", next_step=f"replicate {member} first"
            )
    asked = isr if of_fetches else ()
    kept_out = {one: why for one in asked if one not in partition.isr and (why := cluster.not_let_in(at, one))}
    lines = [f"leader {leader} does not propose {member}: it {why}" for member, why in kept_out.items()]
    left = tuple(member for member in isr if member not in kept_out)
    if kept_out and set(left) == set(partition.isr):
        return cluster, lines
    return cluster.propose(at, left, epochs_of_fetches=of_fetches), lines


def _elect(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("timeout")
    at, (kind, *more) = address(cluster, directive), rest(directive, "a type, such as unclean")
    after, done = cluster.after(_election(directive, at, kind, more))
    return after, answered_lines(done, by=ElectedBy.DESIGNATION if kind == "designation" else None)


def _election(
    directive: Directive, at: TopicPartition, kind: str, more: list[str]
) -> events.LeadersElected | ManualRecovery:
    """The request for this type of election; the last three only the whole of KIP-966 knows."""
    if kind in {Election.PREFERRED, Election.UNCLEAN}:
        return events.LeadersElected(Election(kind), (at,))
    timeout_ms = duration_ms(directive, directive.options.get("timeout", "60s"))
    if kind == "designation":
        if len(more) != 1:
            raise directive.error("say elect designation N")
        wanted = directive.parsed_number(more[0])
        return ManualRecovery(ElectionType.DESIGNATION, {at: wanted}, timeout_ms=timeout_ms)
    if kind not in _BY_LOG:
        kinds = ", ".join((Election.PREFERRED, Election.UNCLEAN, *_BY_LOG, "designation"))
        raise directive.error(f"there is no election {cut(kind)!r} to ask for", next_step=f"there are {kinds}")
    return ManualRecovery(_BY_LOG[kind], {at: None}, timeout_ms=timeout_ms)


_BY_LOG = {"balanced": ElectionType.LONGEST_LOG_BALANCED, "aggressive": ElectionType.LONGEST_LOG_AGGRESSIVE}


def _designate(cluster: SimulatedCluster, directive: Directive) -> Result:
    """As it is done on released Kafka: put the replica first, elect uncleanly, restore the order."""
    directive.allow()
    at = address(cluster, directive)
    first = replica(cluster, directive, at, directive.parsed_number(rest(directive, "a replica")[0]))
    before = cluster.controller.partitions[at]
    order = before.replicas
    reordered = (first, *(other for other in order if other != first))
    done: list[Stepped] = []
    for event in (
        events.Reassigned(at, reordered),
        events.LeadersElected(Election.UNCLEAN, (at,)),
        events.Reassigned(at, order),
    ):
        cluster, handled = cluster.after(event)
        done.append(handled)
    errors = [error for handled in (done[0], done[2]) for error in handled.answers.values() if error != "NONE"]
    after = cluster.controller.partitions[at]
    if replace(after, partition_epoch=before.partition_epoch) == before:
        return cluster, [*errors, NOTHING_CHANGES]
    return cluster, [*errors, *change_lines(change for handled in done for change in handled.changes)]


def _task(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    words = others(directive) or ("unclean",)
    if words[0] not in {"unclean", "preferred"}:
        raise directive.error(f"there is no periodic task {words[0]!r}; there are unclean and preferred")
    event = events.UncleanElectionTask() if words[0] == "unclean" else events.PreferredElectionTask()
    after, handled = cluster.after(event)
    return after, outcome_lines(handled)


def _state(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    return cluster, [state_line(cluster.controller.partitions[at]) for at in addresses(cluster, directive)]


def _show(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    words = others(directive) or FIELDS
    unknown = [word for word in words if word not in {*FIELDS, "logs"}]
    if unknown:
        raise directive.error(f"nothing to show is called {unknown[0]!r}; there are {', '.join(FIELDS)} and logs")
    fields = tuple(word for word in words if word != "logs")
    lines = []
    for at in addresses(cluster, directive):
        lines += [fields_line(cluster.controller.partitions[at], fields)] if fields else []
        if "logs" in words:
            lines += [log_line(number, log) for number, log in sorted(cluster.replication[at].logs.items())]
    return cluster, lines


def _decide(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("rules")
    state = cluster.controller.partitions[address(cluster, directive)]
    by = rules(directive, directive.options["rules"]) if "rules" in directive.options else cluster.controller.rules
    return cluster, list(decision_lines(decide(cluster.as_snapshot(), state, by)))


_LEADER_SPECS = (
    Spec("isr", "[TOPIC:P] 1,2", "the leader reports another ISR (AlterPartition), and is answered at once", _isr),
    Spec(
        "propose",
        "[TOPIC:P] 1,2 [epochs=metadata]",
        "the leader sends the same request, and it is under way: the high watermark waits for both ISRs' members."
        " epochs=metadata has it carry the registrations' broker epochs, not the fetches': what KIP-903 rejects",
        _propose,
    ),
    Spec("deliver", "[TOPIC:P]", "the request that is under way reaches the controller, and is answered", _deliver),
    Spec(
        "elect",
        "[TOPIC:P] preferred|unclean|balanced|aggressive|designation N [timeout=60s]",
        "ElectLeaders; prints Kafka's name of the answer first. The last three only the kip966 rules know, and they are"
        " answered once logs were compared",
        _elect,
    ),
    Spec(
        "designate",
        "[TOPIC:P] N",
        "as on released Kafka: puts N first, elects uncleanly, restores the order",
        _designate,
    ),
    Spec("task", "[unclean|preferred]", "the controller's periodic elections run once", _task),
    Spec("state", "[TOPIC:P]", "prints the state of every partition, or of one", _state),
    Spec(
        "show",
        "[TOPIC:P] [leader] [isr] [elr] [last-known-elr] [logs]",
        "the same as papers about the protocol write it; only the fields that are named",
        _show,
    ),
    Spec(
        "decide",
        "[TOPIC:P] [rules=RULES]",
        "prints what kelr says: whom each election would elect and lose, what each return would do, and the advice",
        _decide,
    ),
)


# Directives about the Unclean Recovery Manager of KIP-966: answers, time, failover, and where it stands.


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


_RECOVERY_SPECS = (
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
    Spec("failover", "", "another controller takes over, which knows none of the manager's answers", _failover),
    Spec("recovery", "[TOPIC:P]", "prints where the unclean recovery of each partition stands", _recovery),
    Spec("metrics", "", "prints the metrics that KIP-966 adds", _metrics),
)

SPECS = (*_LEADER_SPECS, *_RECOVERY_SPECS)
