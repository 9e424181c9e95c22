"""Cordons of brokers (KIP-1066), taken off while Kafka 4.4 is to take an order of replicas that names them.

The controller learns of a cordon, and of its end, by the broker's next heartbeat: only a running broker can be
uncordoned, and an order may be refused for another two seconds (broker.heartbeat.interval.ms).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kelr.errors import UsageError
from kelr.recovery.admin_client import NO_ERROR
from kelr.recovery.apply_context import Site
from kelr.recovery.configs import CORDONED, ConfigBack, ConfigWriter
from kelr.recovery.journal import Journal
from kelr.recovery.progress import Stage
from kelr.recovery.written_config import WrittenConfig
from kelr.sources.live.failures import error_in_words

NONE_CORDONED = ""
"""The value of cordoned.log.dirs that cordons nothing, whatever the broker's file or the cluster's default says."""


@dataclass(slots=True)
class Cordons:
    """Those that one batch takes off and puts back; both are journalled like every config."""

    site: Site
    journal: Journal
    tell: Callable[[Stage, str], None]
    _writer: ConfigWriter = field(init=False)
    _written: dict[int, WrittenConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._writer = ConfigWriter(self.site, self.journal, self.tell)

    @property
    def begun(self) -> bool:
        """Whether a write was asked for."""
        return bool(self._written)

    @property
    def taken_off(self) -> Collection[int]:
        """The brokers whose cordon is off, as Kafka took the write."""
        return {broker for broker, config in self._written.items() if config.in_force}

    @property
    def write_failure(self) -> UsageError | None:
        """Why a line of the journal is missing that did not have to be written."""
        return self._writer.write_failure

    def take_off(self, brokers: Iterable[int]) -> Mapping[int, str]:
        """Why a cordon could not be taken off, by broker; those that were are left out.

        Raises:
            UsageError: the journal cannot be written; nothing more was sent.
        """
        failed = {}
        for broker in sorted(brokers):
            known, old = self.site.hand.read_broker_config(broker, CORDONED)
            if not known:
                failed[broker] = f"{CORDONED} of broker {broker} could not be read"
                continue
            config = self._written.setdefault(broker, WrittenConfig("", CORDONED, old=old, broker=broker))
            answer = self._writer.write(config, NONE_CORDONED)
            if answer != NO_ERROR:
                failed[broker] = f"{CORDONED} of broker {broker} could not be emptied: {error_in_words(answer)}"
            if not config.in_force and self._writer.put_back(config).settled:
                del self._written[broker]  # refused: nothing was changed that could be restored or told
        return failed

    def put_back(self) -> tuple[ConfigBack, ...]:
        """How each of them stands, after its old value was written back."""
        return tuple(self._writer.put_back(config) for _, config in sorted(self._written.items()))

    def left(self) -> tuple[ConfigBack, ...]:
        """Those that stay off for now."""
        return tuple(stays_off(config) for _, config in sorted(self._written.items()))


def stays_off(config: WrittenConfig) -> ConfigBack:
    """A cordon that is not put back yet: an order is left to be restored, and Kafka would refuse it."""
    text = f"{config.name} of {config.where} stays empty until every order is restored"
    return ConfigBack(
        config.topic,
        config.name,
        config.old,
        NONE_CORDONED,
        restored=False,
        settled=False,
        text=text,
        broker=config.broker,
    )
