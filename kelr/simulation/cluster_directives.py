"""Directives that set up a cluster, its configs and its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kelr.controller import Configs, ControllerState, RecoveryStrategy, events, strategy_named
from kelr.model import PartitionState
from kelr.simulation.cluster import SimulatedCluster, started
from kelr.simulation.language import (
    MAX_PARTITIONS,
    MAX_REPLICAS,
    Directive,
    Result,
    Spec,
    address,
    argument,
    cut,
    duration_ms,
    named,
    rest,
    rules,
    topic,
)
from kelr.simulation.words import answered_lines, outcome_lines, state_line


def cluster(directive: Directive) -> SimulatedCluster:
    """A new cluster, as the directive describes it; its configs are the cluster-wide ones."""
    directive.allow("rules", "brokers", "min-isr", "unclean", "high-watermark", "flush")
    configs = Configs(directive.number("min-isr", 1), bool(directive.flag("unclean")))
    _positive(directive, configs.min_isr)
    controller = ControllerState(rules(directive, directive.options.get("rules", "elr")), cluster=configs)
    if not directive.ids("brokers"):
        raise directive.error("a cluster has brokers", next_step="write brokers=1,2,3")
    advance = directive.choice("high-watermark", "min-isr", "any-isr")
    made = started(controller, directive.ids("brokers"), high_watermark_needs_min_isr=advance != "any-isr")
    messages, ms = _flushing(directive)
    return replace(made, flush_messages=messages, flush_ms=ms)


def _flushing(directive: Directive) -> tuple[int | None, int | None]:
    """When brokers write to their disks: after so many records, or every so many ms. Without a word nobody does."""
    text = directive.options.get("flush")
    if text is None:
        return None, None
    if text == "every-write":
        return 1, None
    if not text.isdecimal():
        return None, _above_0(directive, duration_ms(directive, text))
    return _above_0(directive, directive.parsed_number(text)), None


def _above_0(directive: Directive, value: int) -> int:
    if not value:
        raise directive.error("brokers flush after at least one record, and after some time", next_step="write flush=1")
    return value


def _rules(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    chosen = rules(directive, argument(directive, "a rule set"))
    return replace(cluster, controller=replace(cluster.controller, rules=chosen)), ()


def _feature(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("elr", "metadata.version")
    on, level = directive.choice("elr", "on", "off"), directive.optional("metadata.version")
    if (on is None) is (level is None):
        raise directive.error("say feature elr=on, elr=off, or metadata.version=N")
    after, handled = cluster.after(events.ElrFeature(on == "on") if level is None else events.MetadataVersion(level))
    return after, outcome_lines(handled)


def _config(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("min-isr", "unclean", "strategy", "recovery-timeout")
    name = topic(directive, directive.arguments[0]) if directive.arguments else None
    if name is not None and "recovery-timeout" in directive.options:
        raise directive.error("unclean.recovery.timeout.ms is the controller's, and no topic's")
    taken_back = {option for option in directive.options if directive.options[option] == "default"}
    if taken_back:
        deleted = events.ConfigDeleted(
            name,
            "min-isr" in taken_back,
            "unclean" in taken_back,
            "strategy" in taken_back,
            "recovery-timeout" in taken_back,
        )
        if taken_back != directive.options.keys():
            raise directive.error("take configs back in one directive, and write others in the next")
        after, handled = cluster.after(deleted)
        return after, outcome_lines(handled)
    min_isr = _positive(directive, directive.optional("min-isr"))
    strategy, timeout = _strategy(directive), directive.options.get("recovery-timeout")
    timeout_ms = None if timeout is None else duration_ms(directive, timeout)
    written = events.ConfigWritten(name, min_isr, directive.flag("unclean"), strategy, timeout_ms)
    after, handled = cluster.after(written)
    # A value that a topic has already is not written again; otherwise it is worth saying that nothing was cleared.
    silent = not (handled.changes or handled.requests) and (min_isr is None or after.controller == cluster.controller)
    return after, () if silent and handled.error == "NONE" else outcome_lines(handled)


def _strategy(directive: Directive) -> RecoveryStrategy | None:
    text = directive.options.get("strategy")
    if text is None:
        return None
    found = strategy_named(text)
    if found is None:
        raise directive.error(f"there is no strategy {cut(text)!r}", next_step="it is none, balanced or aggressive")
    return found


def _topic(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("replicas")
    name = topic(directive, argument(directive, "a name"))
    if "replicas" not in directive.options:
        raise directive.error(
            "a topic has replicas", next_step="write replicas=1,2,3 or, for two partitions, 1,2,3/2,3,1"
        )
    groups = directive.options["replicas"].split("/", MAX_PARTITIONS)
    assignment = tuple(directive.parsed_ids(group) for group in groups[:MAX_PARTITIONS])
    _room(cluster, directive, len(groups), sum(map(len, assignment)))
    after, handled = cluster.after(events.TopicCreated(name, assignment))
    created = [state_line(after.controller.partitions[at]) for at in after.controller.of_topic(name)]
    return after, created if handled.error == "NONE" else [handled.error]


def _delete(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    after, handled = cluster.after(events.TopicDeleted(topic(directive, argument(directive, "a topic"))))
    return after, () if handled.error == "NONE" else [handled.error]


def _partition(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow("replicas", "leader", "isr", "elr", "last", "epoch", "adding", "removing")
    at = named(directive, argument(directive, "a partition such as orders:0"))
    replicas = directive.ids("replicas")
    if not replicas:
        raise directive.error("a partition has replicas", next_step="write replicas=1,2,3")
    there = cluster.controller.partitions.get(at)
    _room(cluster, directive, 1 - (there is not None), len(replicas) - (0 if there is None else len(there.replicas)))
    isr = directive.ids("isr", replicas)
    leader = _leader(directive, isr)
    lists = {"isr": isr, "adding": directive.ids("adding"), "removing": directive.ids("removing")}
    _only_replicas(directive, replicas, {**lists, "leader": () if leader is None else (leader,)})
    state = PartitionState(
        topic=at.topic,
        partition=at.partition,
        leader=leader,
        leader_epoch=directive.number("epoch", 0),
        replicas=replicas,
        isr=isr,
        elr=directive.ids("elr"),
        last_known_elr=directive.ids("last"),
        partition_epoch=0,
        adding=lists["adding"],
        removing=lists["removing"],
    )
    return cluster.placed(state), [state_line(state)]


def _only_replicas(
    directive: Directive, replicas: tuple[int, ...], named_by_option: Mapping[str, tuple[int, ...]]
) -> None:
    """Refuse a state that no controller writes. In ELR and LastKnownELR brokers that are no replica do occur."""
    for option, members in named_by_option.items():
        strangers = [member for member in members if member not in replicas]
        if strangers:
            there_are = ",".join(map(str, replicas))
            next_step = f"the replicas are {there_are}; only elr= and last= may name others"
            raise directive.error(f"{option} names {strangers[0]}, which is no replica", next_step=next_step)


def _leader(directive: Directive, isr: tuple[int, ...]) -> int | None:
    """The leader as the directive says; without a word the first ISR member leads."""
    word = directive.options.get("leader")
    if word is None:
        return isr[0] if isr else None
    return None if word == "none" else directive.parsed_number(word)


def _reassign(cluster: SimulatedCluster, directive: Directive) -> Result:
    directive.allow()
    at, (word, *_) = address(cluster, directive), rest(directive, "the new replicas, or cancel")
    replicas = None if word == "cancel" else directive.parsed_ids(word)
    _room(cluster, directive, 0, len({*(replicas or ())} - {*cluster.controller.partitions[at].replicas}))
    after, handled = cluster.after(events.Reassigned(at, replicas))
    return after, answered_lines(handled)


def _room(cluster: SimulatedCluster, directive: Directive, partitions: int, replicas: int) -> None:
    """Refuse so many more partitions, or replicas, where a scenario would have too many."""
    there = cluster.controller.partitions.values()
    if len(there) + partitions > MAX_PARTITIONS:
        raise directive.error(f"a scenario has no more than {MAX_PARTITIONS} partitions")
    if sum(len(partition.replicas) for partition in there) + replicas > MAX_REPLICAS:
        raise directive.error(f"a scenario has no more than {MAX_REPLICAS} replicas")


def _positive(directive: Directive, min_isr: int | None) -> int | None:
    if min_isr is not None and min_isr < 1:
        raise directive.error("min-isr is 1 or more")
    return min_isr


def _cluster_again(_: SimulatedCluster, directive: Directive) -> Result:
    return cluster(directive), ()


SPECS = (
    Spec(
        "cluster",
        "rules=RULES brokers=1,2,3 [min-isr=N] [unclean=true] [high-watermark=any-isr] [flush=every-write|N|10ms]",
        "starts afresh with live brokers; the configs are the cluster-wide ones. any-isr is how Kafka before 3.7"
        " advanced the high watermark. flush= is when each broker writes a log to its disk: with every write, once N"
        " records are not there, or every so often while time passes (`wait`); without it, by `flush` alone",
        _cluster_again,
    ),
    Spec("rules", "RULES", "the same cluster, run by another Kafka from now on", _rules),
    Spec(
        "feature",
        "elr=on|off | metadata.version=N",
        "eligible.leader.replicas.version is set to 1, or to 0; or metadata.version to a level: by KIP-966's rules one"
        " below 23 (4.0-IV1) ends ELR, and a metadata delta takes its fields from every partition",
        _feature,
    ),
    Spec(
        "config",
        "[TOPIC] [min-isr=N|default] [unclean=true|false|default] [strategy=none|balanced|aggressive|default]"
        " [recovery-timeout=300s|default]",
        "writes configs of a topic or, without one, the cluster-wide ones; default takes the value back."
        " recovery-timeout is cluster-wide alone",
        _config,
    ),
    Spec("topic", "NAME replicas=1,2,3[/2,3,1]...", "creates a topic; a slash begins the next partition", _topic),
    Spec("delete", "TOPIC", "deletes a topic", _delete),
    Spec(
        "partition",
        "TOPIC:P replicas=1,2,3 [leader=N|none] [isr=] [elr=] [last=] [epoch=N] [adding=] [removing=]",
        "puts a partition into a state; healthy where nothing else is said, and its logs empty. - is an empty list",
        _partition,
    ),
    Spec(
        "reassign",
        "[TOPIC:P] 4,5,6|cancel",
        "AlterPartitionReassignments: other replicas, or the end of the reassignment that is under way",
        _reassign,
    ),
)
