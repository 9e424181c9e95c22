"""Random lives of a running cluster: what operators, networks and machines do to it, and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from kelr.controller import Configs, ControllerState, Election, LogInfoAnswered, LogInfoFailed, RuleSet, events
from kelr.model import TopicPartition
from kelr.simulation import Acks, started
from kelr.simulation.running import RunningCluster

CONTROLLER = 3000
BROKERS = (1, 2, 3, 4)
PARTITIONS = (TopicPartition("orders", 0), TopicPartition("orders", 1))

HARMLESS = (
    *("kill", "stop", "start", "start", "expire", "sever", "heal", "pause", "go on", "flush", "advance", "wait"),
    *("produce", "produce", "produce acks=1", "reassign", "elect preferred", "answer", "fail answers", "unregister"),
)
"""What never loses a record that was acknowledged with acks=all, but for aggressive recovery."""
LOSSY = ("lose power", "lose cache", "fail directory", "elect unclean")


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that is done; `one` and `other` are nodes where it needs them."""

    name: str
    one: int = 1
    other: int = 2


def running(rules: RuleSet, *, min_isr: int = 2, unclean: bool = False) -> RunningCluster:
    """Four brokers, and two partitions of three replicas."""
    state = ControllerState(rules, cluster=Configs(min_isr, unclean))
    cluster = RunningCluster(started(state, BROKERS), controller=CONTROLLER)
    cluster.ask(events.TopicCreated("orders", ((1, 2, 3), (2, 3, 4))))
    return cluster


def do(cluster: RunningCluster, verb: Verb) -> None:
    """Do it; what makes no sense at this moment does nothing."""
    _VERBS[verb.name](cluster, verb)


def _partition(verb: Verb) -> TopicPartition:
    return PARTITIONS[verb.other % 2]


def _lose_cache(cluster: RunningCluster, verb: Verb) -> None:
    if not cluster.runs(verb.one):
        cluster.lose_cache(verb.one)


def _reassign(cluster: RunningCluster, verb: Verb) -> None:
    """As many replicas as there are: with fewer for partition 0, min ISR would be another one."""
    wanted = tuple(broker for broker in BROKERS if broker != verb.one)
    cluster.ask(events.Reassigned(_partition(verb), wanted))


def _fail_directory(cluster: RunningCluster, verb: Verb) -> None:
    if cluster.cluster.running(verb.one):
        cluster.lose_directory(verb.one, [_partition(verb)])


_VERBS: Mapping[str, Callable[[RunningCluster, Verb], object]] = {
    "kill": lambda cluster, verb: cluster.kill(verb.one),
    "lose power": lambda cluster, verb: cluster.kill(verb.one, power_loss=True),
    "lose cache": _lose_cache,
    "stop": lambda cluster, verb: cluster.stop(verb.one),
    "start": lambda cluster, verb: cluster.start(verb.one),
    "expire": lambda cluster, verb: cluster.expire(verb.one),
    "sever": lambda cluster, verb: cluster.sever(verb.one, CONTROLLER if verb.other == verb.one else verb.other),
    "heal": lambda cluster, _verb: cluster.heal(),
    "pause": lambda cluster, verb: cluster.pause(verb.one),
    "go on": lambda cluster, verb: cluster.go_on(verb.one),
    "flush": lambda cluster, verb: cluster.flush(verb.one),
    "advance": lambda cluster, verb: cluster.advance(cluster.now_ms + 700 * verb.other),
    "wait": lambda cluster, _verb: cluster.advance(cluster.now_ms + 7_000),
    "produce": lambda cluster, verb: cluster.produce(_partition(verb), verb.one, Acks.ALL),
    "produce acks=1": lambda cluster, verb: cluster.produce(_partition(verb), verb.one, Acks.LEADER),
    "reassign": _reassign,
    "elect preferred": lambda cluster, _verb: cluster.ask(events.LeadersElected(Election.PREFERRED)),
    "elect unclean": lambda cluster, _verb: cluster.ask(events.LeadersElected(Election.UNCLEAN)),
    "answer": lambda cluster, _verb: answer_all(cluster),
    "fail answers": lambda cluster, _verb: answer_all(cluster, fail=True),
    "unregister": lambda cluster, verb: cluster.ask(events.BrokerUnregistered(verb.one)),
    "fail directory": _fail_directory,
}


def answer_all(cluster: RunningCluster, *, fail: bool = False) -> None:
    """Brokers that are in reach answer what the Unclean Recovery Manager asks them; the others do not."""
    for question in cluster.asked():
        broker, registration = question.broker, cluster.cluster.controller.brokers.get(question.broker)
        if fail or registration is None or not cluster.runs(broker) or not cluster.linked(broker, CONTROLLER):
            cluster.answered(LogInfoFailed(broker, question.id))
            continue
        known = [address for address in question.partitions if address in cluster.cluster.replication]
        entries = {address: cluster.cluster.log_info(address, broker) for address in known}
        cluster.answered(LogInfoAnswered(broker, registration.epoch, entries, question.id))


def verbs(names: tuple[str, ...]) -> st.SearchStrategy[list[Verb]]:
    verb = st.builds(Verb, st.sampled_from(names), st.sampled_from(BROKERS), st.sampled_from(BROKERS))
    return st.lists(verb, max_size=40)
