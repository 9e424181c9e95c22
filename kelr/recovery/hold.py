"""Clearing a topic's ELR and LastKnownELR, so that no returning broker is elected by itself.

On Kafka 4.x a write of the topic's min.insync.replicas does that (docs/election-rules.md). It is the way to hold a last
known leader off that cannot be kept down; it has a price, which `price_of_hold` tells before anything is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kelr.controller import RuleSet
from kelr.errors import NotAuthorizedError, PartlyDoneError, RefusedError, UsageError
from kelr.interrupts import taken
from kelr.model import PartitionState, TopicPartition
from kelr.model.audit import AuditWhat
from kelr.recovery import audit
from kelr.recovery.acls import MissingAcl, permissions_of, refuse
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.apply_context import Site, Timeouts
from kelr.recovery.audited import config_line
from kelr.recovery.configs import MIN_ISR, ConfigBack, ConfigWriter
from kelr.recovery.consent import Confirmation
from kelr.recovery.hold_price import Cleared, HoldPrice, price_of_hold
from kelr.recovery.journal import Ending, Journal, cluster_lock, journal_path
from kelr.recovery.journal_store import refuse_open_journals
from kelr.recovery.progress import ApplyEvent, Report, Stage, silent
from kelr.recovery.reading import wait_until
from kelr.recovery.written_config import WrittenConfig
from kelr.sources.base import Source
from kelr.sources.ground import Ground
from kelr.sources.live.failures import error_in_words


@dataclass(frozen=True, slots=True)
class Held:
    """What a hold did."""

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


def hold_topic(
    price: HoldPrice,
    *,
    source: Source,
    hand: AdminClient,
    state_directory: Path,
    ground: Ground,
    who: Actor,
    force_reason: str | None = None,
    rules: RuleSet | None = None,
    report: Report = silent,
    command: str = "recover hold",
    patience: Timeouts | None = None,
) -> Held:
    """Clear the topic's ELR and LastKnownELR at the price that was shown, and give min.insync.replicas its old value.

    Args:
        price: what was shown; it is worked out again, and refused where it has changed.
        force_reason: for the audit log; needed where a clean candidate is thrown away (`HoldPrice.needs_force`).

    Raises:
        RefusedError: a journal is open that concerns the topic, the price has changed, there is nothing to hold off,
            force is needed, or another kelr is at work. Nothing was changed.
        NotAuthorizedError, ConnectError, AuthenticationError: nothing was changed.
        UsageError: journal or audit log cannot be written. Nothing was changed.
    """
    site = Site(source, hand, state_directory, ground, who, rules, report, patience or Timeouts())
    site.require_live()
    refuse_open_journals(state_directory, source.cluster().cluster_id, (), topics=(price.topic,), files=ground.files)
    now = price_of_hold(price.topic, source=source, clock_ms=ground.now_ms, rules=rules)
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
            return _Holding(site, journal, now, command, force_reason).all()


@dataclass(slots=True)
class _Holding:
    site: Site
    journal: Journal
    price: HoldPrice
    command: str
    force_reason: str | None

    def all(self) -> Held:
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
        held = self._held(states, back, None if answer in {None, "NONE"} else answer)
        unrecorded = self._recorded(held, writer, ended=back.settled)
        if unrecorded:
            return replace(held, unrecorded=unrecorded)
        if held.error is not None and "AUTHORIZATION" in held.error:
            raise NotAuthorizedError(
                f"the principal may not write {MIN_ISR} of topic {topic}: {error_in_words(held.error)}",
                next_step="the principal needs ALTER_CONFIGS on the topic",
            )
        return held

    def _held(
        self, states: Mapping[TopicPartition, PartitionState] | None, back: ConfigBack, error: str | None
    ) -> Held:
        clear = {at for at, state in (states or {}).items() if _is_clear(state)}
        wanted = [one.address for one in self.price.cleared]
        return Held(
            topic=self.price.topic,
            cleared=tuple(at for at in wanted if at in clear),
            left=tuple(at for at in wanted if at not in clear),
            config=back,
            journal=self.journal.path.stem,
            error=error,
        )

    def _recorded(self, held: Held, writer: ConfigWriter, *, ended: bool) -> str:
        """Write down what was done; why that could not be, where it could not. The journal stays open then."""
        try:
            self._audit(held)
            if writer.write_failure is not None:
                return writer.write_failure.message
            if ended:
                self.journal.end(Ending.APPLIED)
        except (UsageError, RefusedError) as error:
            return error.message
        return ""

    def _audit(self, held: Held) -> None:
        price = self.price
        line = config_line(
            what=AuditWhat.HOLD,
            topic=price.topic,
            name=MIN_ISR,
            before=price.own_value,
            after=held.config.now,
            result="done" if held.good else "failed",
            at_ms=self.site.ground.now_ms(),
            who=self.site.who,
            command=self.command,
            cluster_id=price.cluster_id,
            journal=self.journal.path.name,
            price={"cleared": [_cleared(one) for one in price.cleared]},
            force_reason=self.force_reason,
            error=held.error,
            text=held.config.text,
        )
        audit.append(self.site.state_directory, line, ground=self.site.ground)

    def _tell(self, stage: Stage, text: str) -> None:
        self.site.tell(ApplyEvent(stage, text, 0, len(self.price.cleared)))


def _refuse(price: HoldPrice, now: HoldPrice, force_reason: str | None) -> None:
    if now.refusal is not None:
        raise RefusedError(now.refusal, next_step=f"look at it again: kelr explain {price.topic}")
    if now != price:
        raise RefusedError(
            f"what holding topic {price.topic} costs has changed since it was shown",
            next_step=f"look again: kelr recover hold --topic {price.topic}",
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


def _cleared(one: Cleared) -> dict[str, Any]:
    return {
        "partition": one.partition,
        "elr": list(one.elr),
        "last_known_elr": list(one.last_known_elr),
    }


__all__ = ["Cleared", "Held", "HoldPrice", "hold_topic", "price_of_hold"]
