"""Clearing a topic's ELR and LastKnownELR, so that Kafka elects no returning broker by itself.

On Kafka 4.x a write of the topic's min.insync.replicas does that (docs/election-rules.md). It is the way to keep off a
last known leader that cannot be kept down; it has a price, which `price_of_clearing` tells before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kelr.controller import RuleSet
from kelr.errors import KelrError, NotAuthorizedError, PartlyDoneError, RefusedError, UsageError
from kelr.interrupts import taken
from kelr.model import (
    Decision,
    ElectedBy,
    PartitionState,
    Selection,
    Target,
    TopicConfig,
    TopicError,
    TopicPartition,
)
from kelr.model.audit import AuditWhat
from kelr.recovery import audit
from kelr.recovery.acls import MissingAcl, permissions_of, refuse
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.apply_context import Site, Timeouts
from kelr.recovery.audited import config_line
from kelr.recovery.configs import MIN_ISR, ConfigBack, ConfigWriter, own_value
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal import Ending, Journal, cluster_lock, journal_path
from kelr.recovery.journal_store import refuse_open_journals
from kelr.recovery.progress import ApplyEvent, Report, Stage, silent
from kelr.recovery.reading import wait_until
from kelr.recovery.written_config import WrittenConfig
from kelr.sources.base import Source
from kelr.sources.decisions import decide_partitions
from kelr.sources.ground import Ground
from kelr.sources.live.failures import error_in_words

_UNCLEAN = "unclean.leader.election.enable"
_DEFECT = (
    "Kafka's controller keeps the cleared entries in its index (BrokersToElrs). If the topic is deleted later, a "
    "broker that was in one of these ELRs cannot register after an unclean shutdown: the controller fails at it "
    "(4.0.0 to 4.3.1). Stop those brokers cleanly. Delete the topic only when the controllers have written a metadata "
    "snapshot after this (each hour unless configured otherwise), and were restarted after that."
)


@dataclass(frozen=True, slots=True)
class ClearedPartition:
    """A partition whose sets go."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    clean: tuple[int, ...]
    """Members of the ELR that would be elected without loss if they came back after a clean shutdown."""
    cleared: bool | None = None
    """Whether both were read as empty afterwards; None: nothing was written."""

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class ElrPrice:
    """What clearing does and costs; two of the same price are equal."""

    topic: str
    cluster_id: str | None
    own_value: str | None
    """The topic's own min.insync.replicas; None: it takes that of the cluster."""
    writes: str
    """What is written for a moment."""
    leaderless: tuple[int, ...]
    """Partitions that it is done for."""
    cleared: tuple[ClearedPartition, ...]
    """Every partition of the topic that has an ELR or a LastKnownELR."""
    refusal: str | None
    """Why it is not done at all; None where it can be done."""
    needs_force: str | None
    """Why it takes --force; None where it does not."""
    producers: str
    """What producers with acks=all see meanwhile."""
    defect: str = _DEFECT
    """What Kafka makes of it later."""

    @property
    def min_isr(self) -> int:
        """The min.insync.replicas in force before it, and after it."""
        return int(self.writes) - (self.own_value is not None)


def price_of_clearing(
    topic: str, *, source: Source, clock_ms: Callable[[], int], rules: RuleSet | None = None
) -> ElrPrice:
    """The price of clearing this topic's ELR and LastKnownELR, read now; nothing is changed.

    Raises:
        UsageError: there is no such topic, or its configs cannot be read.
        ConnectError, AuthenticationError: the cluster cannot be reached.
    """
    source.forget()
    cluster = source.cluster()
    states: list[PartitionState] = []
    decisions: dict[TopicPartition, Decision] = {}
    errors: list[TopicError] = []
    for page in decide_partitions(source, Selection((Target(topic=topic),)), clock_ms=clock_ms, rules=rules):
        states.extend(page.snapshot.partitions)
        decisions.update((TopicPartition(one.topic, one.partition), one) for one in page.decisions)
        errors.extend(page.snapshot.topic_errors)
    if errors or not states:
        raise _unreadable(topic, errors)
    config = source.topic_configs([topic])[topic]
    if config.error is not None or config.min_insync_replicas is None:
        raise UsageError(
            f"{MIN_ISR} of topic {topic} cannot be read: {config.error or 'it is hidden'}",
            next_step="the principal needs DESCRIBE_CONFIGS on the topic",
        )
    cleared = tuple(_cleared(state, decisions.get(state.address)) for state in states if _has_sets(state))
    leaderless = tuple(state.partition for state in states if state.leader is None)
    own = own_value(config)
    return ElrPrice(
        topic=topic,
        cluster_id=cluster.cluster_id,
        own_value=own,
        writes=str(config.min_insync_replicas + (own is not None)),
        leaderless=leaderless,
        cleared=cleared,
        refusal=_refusal(topic, cluster.features.elr_enabled, config, leaderless, cleared),
        needs_force=_needs_force(cleared),
        producers=_producers(config, states),
    )


def _unreadable(topic: str, errors: Sequence[TopicError]) -> KelrError:
    if errors and "AUTHORIZATION" in errors[0].error:
        return NotAuthorizedError(
            f"topic {topic} cannot be read: {errors[0].error}", next_step="the principal needs DESCRIBE on the topic"
        )
    why = (errors[0].detail or errors[0].error) if errors else "it has no partitions"
    return UsageError(
        f"topic {topic} cannot be read: {why}",
        next_step="check the spelling; `kelr describe` without a target lists every topic",
    )


_NAMED, _NUMBERED = 3, 10
"""So many partitions are named, or their numbers given; the others are counted."""


def _has_sets(state: PartitionState) -> bool:
    return bool(state.elr or state.last_known_elr)


def _cleared(state: PartitionState, decision: Decision | None) -> ClearedPartition:
    clean = (
        tuple(
            forecast.replica
            for forecast in decision.forecasts
            if forecast.clean and forecast.elected == forecast.replica and forecast.elected_by is ElectedBy.ELR
        )
        if decision is not None and state.leader is None
        else ()
    )
    return ClearedPartition(
        state.topic,
        state.partition,
        state.leader,
        state.leader_epoch,
        state.elr or (),
        state.last_known_elr or (),
        tuple(sorted(clean)),
    )


def _refusal(
    topic: str,
    elr_enabled: bool | None,
    config: TopicConfig,
    leaderless: Sequence[int],
    cleared: Sequence[ClearedPartition],
) -> str | None:
    if elr_enabled is not True:
        return "ELR is off in this cluster, or not known: a write of min.insync.replicas clears nothing"
    if config.unclean_leader_election_of_the_controller is not False:
        true = "is true" if config.unclean_leader_election_of_the_controller else "may be true"
        return (
            f"{_UNCLEAN} {true} for topic {topic}: Kafka elects a returning broker, or another live one, even then;"
            f" write {_UNCLEAN}=false to the topic first"
        )
    if not leaderless:
        return f"every partition of topic {topic} has a leader: no return elects one"
    if not any(one.leader is None for one in cleared):
        return f"no leaderless partition of topic {topic} has an ELR or LastKnownELR: there is nothing to clear"
    return None


def _needs_force(cleared: Sequence[ClearedPartition]) -> str | None:
    clean = [one for one in cleared if one.clean]
    if not clean:
        return None
    brokers = ", ".join(map(str, sorted({broker for one in clean for broker in one.clean})))
    left = len(clean) - _NAMED
    named = ", ".join(str(one.address) for one in clean[:_NAMED]) + (f" and {left} more" if left > 0 else "")
    return (
        f"broker {brokers} would lead {named} without loss of a committed record if it was shut down cleanly and comes"
        " back: clearing throws that away"
    )


def _producers(config: TopicConfig, states: Sequence[PartitionState]) -> str:
    if own_value(config) is None:
        return "Producers see nothing: the value in force stays the same."
    held = config.min_insync_replicas or 1
    at_limit = [
        state.partition for state in states if state.leader is not None and len(state.isr) == held < len(state.replicas)
    ]
    if not at_limit:
        return "Producers see nothing: no partition with a leader is at min ISR."
    left = len(at_limit) - _NUMBERED
    named = ", ".join(map(str, at_limit[:_NUMBERED])) + (f" and {left} more" if left > 0 else "")
    return (
        f"For a moment producers with acks=all are refused (NOT_ENOUGH_REPLICAS) at partitions {named}: their ISR has "
        f"{held} members, and {MIN_ISR} is {held + 1} until it is restored."
    )


@dataclass(frozen=True, slots=True)
class Clearing:
    """What clearing did."""

    topic: str
    cleared: tuple[TopicPartition, ...]
    """Partitions whose ELR and LastKnownELR were read as empty."""
    left: tuple[TopicPartition, ...]
    """Partitions where one of them was still there."""
    config: ConfigBack
    journal: str
    error: str | None = None
    """Kafka's name of the error that refused the write."""
    unrecorded: str = ""
    """Why a record of it could not be written; the journal is open then."""

    @property
    def good(self) -> bool:
        return self.error is None and not self.left and self.config.restored and not self.unrecorded


def clear_elr(
    price: ElrPrice,
    *,
    source: Source,
    hand: AdminClient,
    state_directory: Path,
    ground: Ground,
    who: Actor,
    force_reason: str | None = None,
    rules: RuleSet | None = None,
    report: Report = silent,
    command: str = "recover clear-elr",
    patience: Timeouts | None = None,
) -> Clearing:
    """Clear the topic's ELR and LastKnownELR at the price that was shown, and give min.insync.replicas its old value.

    Args:
        price: what was shown; it is worked out again, and refused where it has changed.
        force_reason: for the audit log; needed where a clean candidate is thrown away (`ElrPrice.needs_force`).

    Raises:
        RefusedError: a journal is open that concerns the topic, the price has changed, there is nothing to keep off,
            force is needed, or another kelr is at work. Nothing was changed.
        NotAuthorizedError, ConnectError, AuthenticationError: nothing was changed.
        UsageError: journal or audit log cannot be written. Nothing was changed.
    """
    site = Site(source, hand, state_directory, ground, who, rules, report, patience or Timeouts())
    site.require_live()
    refuse_open_journals(state_directory, source.cluster().cluster_id, (), topics=(price.topic,), files=ground.files)
    now = price_of_clearing(price.topic, source=source, clock_ms=ground.now_ms, rules=rules)
    _refuse(price, now, force_reason)
    _authorize(hand, price.topic)
    with cluster_lock(state_directory, now.cluster_id, ground.files):
        refuse_open_journals(state_directory, now.cluster_id, (), topics=(price.topic,), files=ground.files)
        audit.append(state_directory, ground=ground)
        path = journal_path(state_directory, now.cluster_id, f"hold-{price.topic}", ground.now_ms())
        with Journal.begin(
            path,
            ground,
            cluster_id=now.cluster_id,
            who=who,
            command=command,
            plan=None,
            plan_id=None,
            consented=Confirmation(force_reason=force_reason, yes=True),
        ) as journal:
            return _Attempt(site, journal, now, command, force_reason).all()


@dataclass(slots=True)
class _Attempt:
    site: Site
    journal: Journal
    price: ElrPrice
    command: str
    force_reason: str | None

    def all(self) -> Clearing:
        topic, price = self.price.topic, self.price
        writer = ConfigWriter(self.site, self.journal, self._tell)
        self._tell(Stage.ELECT, f"writing {MIN_ISR}={price.writes} of topic {topic}")
        config = WrittenConfig(topic, MIN_ISR, old=price.own_value)
        states: Mapping[TopicPartition, PartitionState] | None = None
        answer: str | None = None
        try:
            answer = writer.write(config, price.writes)
            if answer == "NONE":
                addresses = [one.address for one in price.cleared]
                states = wait_until(self.site, addresses, _is_clear, patience_s=self.site.patience.settle_s)
        except KeyboardInterrupt:
            taken()
            self._tell(Stage.INTERRUPTED, f"interrupted: restoring {MIN_ISR} first")
        self._tell(Stage.RESTORE, f"restoring {MIN_ISR} of topic {topic}")
        try:
            back = writer.put_back(config)
        except KeyboardInterrupt:
            what = f"interrupted while {MIN_ISR} of topic {topic} was being restored"
            raise PartlyDoneError(what, next_step="kelr recover resume") from None
        done = self._outcome(states, back, None if answer in {None, "NONE"} else answer)
        unrecorded = self._recorded(done, writer, ended=back.settled)
        if unrecorded:
            return replace(done, unrecorded=unrecorded)
        if done.error is not None and "AUTHORIZATION" in done.error:
            raise NotAuthorizedError(
                f"the principal may not write {MIN_ISR} of topic {topic}: {error_in_words(done.error)}",
                next_step="the principal needs ALTER_CONFIGS on the topic",
            )
        return done

    def _outcome(
        self, states: Mapping[TopicPartition, PartitionState] | None, back: ConfigBack, error: str | None
    ) -> Clearing:
        clear = {at for at, state in (states or {}).items() if _is_clear(state)}
        wanted = [one.address for one in self.price.cleared]
        return Clearing(
            topic=self.price.topic,
            cleared=tuple(at for at in wanted if at in clear),
            left=tuple(at for at in wanted if at not in clear),
            config=back,
            journal=self.journal.path.stem,
            error=error,
        )

    def _recorded(self, done: Clearing, writer: ConfigWriter, *, ended: bool) -> str:
        """Write down what was done; why that could not be, where it could not. The journal stays open then."""
        try:
            self._audit(done)
            if writer.write_failure is not None:
                return writer.write_failure.message
            if ended:
                self.journal.end(Ending.APPLIED)
        except (UsageError, RefusedError) as error:
            return error.message
        return ""

    def _audit(self, done: Clearing) -> None:
        price = self.price
        line = config_line(
            what=AuditWhat.HOLD,
            topic=price.topic,
            name=MIN_ISR,
            before=price.own_value,
            after=done.config.now,
            result="done" if done.good else "failed",
            at_ms=self.site.ground.now_ms(),
            who=self.site.who,
            command=self.command,
            cluster_id=price.cluster_id,
            journal=self.journal.path.name,
            price={"min_isr": price.min_isr, "cleared": [_as_json(one) for one in price.cleared]},
            force_reason=self.force_reason,
            error=done.error,
            text=done.config.text,
        )
        audit.append(self.site.state_directory, line, ground=self.site.ground)

    def _tell(self, stage: Stage, text: str) -> None:
        self.site.tell(ApplyEvent(stage, text, 0, len(self.price.cleared)))


def _refuse(price: ElrPrice, now: ElrPrice, force_reason: str | None) -> None:
    if now.refusal is not None:
        raise RefusedError(now.refusal, next_step=f"look at it again: kelr explain {price.topic}")
    if now != price:
        raise RefusedError(
            f"what clearing the ELR of topic {price.topic} costs has changed since it was shown",
            next_step=f"look again: kelr recover clear-elr --topic {price.topic}",
        )
    if now.needs_force and not (force_reason or "").strip():
        raise RefusedError(
            f"{now.needs_force}", next_step="bring that broker back instead, or give --force with a reason"
        )


def _authorize(hand: AdminClient, topic: str) -> None:
    granted = permissions_of(hand, (topic,)).topics.get(topic)
    if granted is not None and "ALTER_CONFIGS" not in granted:
        refuse((MissingAcl("ALTER_CONFIGS", f"topic {topic}", "IncrementalAlterConfigs"),))


def _is_clear(state: PartitionState) -> bool:
    return not state.elr and not state.last_known_elr


def _as_json(one: ClearedPartition) -> dict[str, Any]:
    return {
        "partition": one.partition,
        "leader": one.leader,
        "leader_epoch": one.leader_epoch,
        "elr": list(one.elr),
        "last_known_elr": list(one.last_known_elr),
    }
