"""Flush settings: what a power loss takes from a log, and what ELR gives beside them.

Source: UnifiedLog.append flushes when flush.messages records are unflushed, before the append is answered or fetched;
LogManager.flushDirtyLogs looks at flush.ms, first 30 s after the start and then each log.flush.scheduler.interval.ms,
by default never again. KIP-966, "Public-Facing Changes", on fsync users.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from kelr.controller import choose_rules
from kelr.engine.checkup import catalogue as of
from kelr.engine.checkup.nodes import broker_configs
from kelr.engine.words import agree, brokers
from kelr.model import Cluster
from kelr.model.checkup import CheckupFacts, ConfigRead, Finding, NotChecked

FLUSH_CONFIGS = ("log.flush.interval.messages", "log.flush.interval.ms", "log.flush.scheduler.interval.ms")
TOPIC_FLUSH_CONFIGS = ("flush.messages", "flush.ms")
_MESSAGES, _INTERVAL, _SCHEDULER = FLUSH_CONFIGS
_NEVER = 2**63 - 1
"""Kafka's default of all of them: nothing is flushed by count or time, and nobody looks."""


def flush_checks(
    facts: CheckupFacts, topics: Mapping[str, Mapping[str, str]], *, not_read: Sequence[NotChecked] = ()
) -> Iterator[Finding | NotChecked]:
    """What brokers, and topics by configs of their own, flush.

    Args:
        topics: topic to the values that are set on it, `TOPIC_FLUSH_CONFIGS` among them.
        not_read: why topics could not be looked at.
    """
    configs, silent = broker_configs(facts)
    for check in (of.FLUSHING, of.FLUSH_UNWATCHED):
        if silent is not None:
            yield check.not_checked(silent)
        for one in not_read:
            yield check.not_checked(one.why, *one.topics)
    alike: dict[tuple[int | None, int | None, int | None], list[int]] = {}
    for broker, known in sorted(configs.items()):
        told = (_number(known, _MESSAGES), _number(known, _INTERVAL), _number(known, _SCHEDULER))
        alike.setdefault(told, []).append(broker)
    looks = {told[2] for told in alike}
    for (messages, interval, scheduler), those in alike.items():
        where = f"on {brokers(those)}" + (", and not on the others" if len(those) < len(configs) else "")
        yield from _by_count(facts.cluster, f"{_MESSAGES} is {messages} {where}", messages, those)
        every, name = (interval, _INTERVAL) if interval else (scheduler, _SCHEDULER)
        yield from _by_time(facts.cluster, f"{name} is {every} {where}", every, {scheduler}, those)
    blind = sorted(broker for told, those in alike.items() if told[2] is None for broker in those)
    for topic, own in sorted(topics.items()):
        messages, every = (_flushing(own.get(name)) for name in TOPIC_FLUSH_CONFIGS)
        yield from _by_count(facts.cluster, f"flush.messages is {messages} for {topic}", messages, (), topic=topic)
        if configs:
            yield from _by_time(facts.cluster, f"flush.ms is {every} for {topic}", every, looks, blind, topic=topic)


def _number(known: Mapping[str, ConfigRead], name: str) -> int | None:
    config = known.get(name)
    return None if config is None else _flushing(config.value)


def _flushing(value: str | None) -> int | None:
    """A count or a time that flushes something; None for a default, and for what is no number."""
    number = int(value) if value is not None and value.isdecimal() else _NEVER
    return None if number >= _NEVER else number


def _by_count(
    cluster: Cluster, what: str, messages: int | None, those: Sequence[int], *, topic: str | None = None
) -> Iterator[Finding]:
    if messages is None:
        return
    lost = f"up to {messages - 1} acknowledged records of a log" if messages > 1 else "nothing that was acknowledged"
    text = f"{what}: {_power_loss(lost, 'flush.messages', topic)}"
    yield of.FLUSHING.finding(text, why=_beside(cluster), topic=topic, brokers=those)


def _power_loss(lost: str, config: str, topic: str | None) -> str:
    """What a power loss takes: of one topic, or by the settings of brokers, above which a topic may have its own."""
    where, unless = ("", "") if topic else (" there", f", unless a topic has its own {config}")
    return f"a power loss{where} takes {lost}{unless}"


def _by_time(
    cluster: Cluster,
    what: str,
    every_ms: int | None,
    looks_ms: Collection[int | None],
    those: Sequence[int],
    *,
    topic: str | None = None,
) -> Iterator[Finding]:
    """Args:
    looks_ms: how often brokers look whether the time is over; None among them: some never do.
    """
    if every_ms is None:
        return
    looks = [one for one in looks_ms if one is not None]
    if len(looks) == len(looks_ms):
        # What comes just after one look waits until the time is over, and then for the next look.
        lost = _power_loss(f"what came within some {every_ms + max(looks)} ms", "flush.ms", topic)
        yield of.FLUSHING.finding(f"{what}: {lost}", why=_beside(cluster), topic=topic, brokers=those)
        return
    yield of.FLUSH_UNWATCHED.finding(
        f"{what}, and {brokers(those)} {agree(len(those), 'does', 'do')} not look at it",
        topic=topic,
        brokers=those,
        caution=f"set {_SCHEDULER} in the files of those brokers, or rely on replication and ELR, as Kafka does",
    )


def _beside(cluster: Cluster) -> str:
    """What ELR gives those who flush ("For fsync users")."""
    rules = choose_rules(cluster.features).rules
    if not rules.elr:
        return "with ELR off the last replica in sync alone can lead again, flushed or not; with ELR on there are more"
    whole = "Kafka takes a broker out of the ELR after an unclean shutdown also where its logs are whole"
    if rules.recovers:
        return f"{whole}; then all members of LastKnownELR have to answer, and the best log is elected"
    return (
        f"ELR gives more replicas to elect while the last one in sync is down. {whole}; where ISR and ELR are both"
        " empty, it elects the last known leader once that is back"
    )
