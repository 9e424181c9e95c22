"""Directives about logs: what producers send, what followers fetch, what a disk keeps, what is said by hand."""

from __future__ import annotations

from itertools import pairwise

from kelr.model import EpochEnd, NotHeard, ReplicaLog, Unheard
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.language import Directive
from kelr.simulation.logs import Acks
from kelr.simulation.outcome import changed_logs
from kelr.simulation.reading import (
    MAX_RECORDS,
    Result,
    Spec,
    address,
    addresses,
    broker_id,
    brokers,
    one_broker,
    others,
    replica,
    rest,
)
from kelr.simulation.words import committed_line, log_text


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
        if unheard not in set(Unheard):
            raise directive.error(f"{unheard!r} is no reason; there are {', '.join(Unheard)}")
        return cluster.tell(at, NotHeard(number, Unheard(unheard))), ()
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


SPECS = (
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
