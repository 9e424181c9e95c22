"""A topic's or a broker's config, written for a while and written back, under a journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kelr.engine.planning import broker_config_change
from kelr.errors import ConnectError, UsageError
from kelr.model import BrokerStatus, ConfigSource, TopicConfig
from kelr.recovery.admin_client import NO_ERROR, NOT_REGISTERED, NOT_SENT, UNCERTAIN, UNKNOWN_TOPIC
from kelr.recovery.apply_context import Site
from kelr.recovery.journal import Journal
from kelr.recovery.progress import Stage
from kelr.recovery.requests import REPEATED
from kelr.recovery.written_config import WrittenConfig
from kelr.sources.live.failures import error_in_words

MIN_ISR = "min.insync.replicas"
CORDONED = "cordoned.log.dirs"
"""A broker's (KIP-1066): which of its log directories take no new replica."""


@dataclass(frozen=True, slots=True)
class ConfigBack:
    """How a topic's or a broker's config stands after it was written back."""

    topic: str
    """Empty for a broker's."""
    name: str
    old: str | None
    """The own value from before; None: it had none."""
    now: str | None
    restored: bool
    settled: bool
    """Nothing is left for kelr to do: restored, or changed by somebody else, or gone."""
    text: str = ""
    error: str | None = None
    broker: int | None = None
    """Whose it is; None: the topic's."""

    @property
    def whose(self) -> str:
        """The topic, or ``broker 2``, which no topic can be called."""
        return self.topic if self.broker is None else f"broker {self.broker}"

    @property
    def result(self) -> str:
        """For the audit log: ``done``; ``refused`` where it was left alone; ``failed``."""
        return "done" if self.restored else "refused" if self.settled else "failed"


@dataclass(slots=True)
class ConfigWriter:
    """Writes min.insync.replicas of topics, or cordoned.log.dirs of brokers, and waits until it is read so."""

    site: Site
    journal: Journal
    tell: Callable[[Stage, str], None]
    late_s: float = 0.0
    """Until when (`Ground.steady_s`) a write may still take effect whose answer never came."""
    write_failure: UsageError | None = None
    """Why a line is missing that did not have to be written."""

    def write(self, config: WrittenConfig, value: str | None, *, restores: bool = False) -> str:
        """Write the own value, or with None remove it; Kafka's name of the error. Repeated without an answer.

        The line of a first write has to be there before it; a value is restored all the same.

        Raises:
            UsageError: the journal cannot be written; nothing was sent.
        """
        patience = self.site.patience
        deadline = self.site.ground.steady_s() + patience.answer_s
        while True:
            try:
                self.journal.intend_config(config, new=value, restores=restores)
            except UsageError as failure:
                if not restores:
                    raise
                self.write_failure = failure
            error = self._sent(config, value, restores=restores)
            self._note(partial(self.journal.answer_config, config, error))
            if error not in REPEATED or self.site.ground.steady_s() >= deadline:
                return error
            self.tell(Stage.REPEAT, f"{config.name} of {config.where}: {error}; writing again")
            self.site.ground.sleep(patience.step_s)

    def read(self, config: WrittenConfig) -> tuple[str, str | None]:
        """(Kafka's name of the error, the own value as text or None)."""
        try:
            if config.broker is not None:
                known, value = self.site.hand.read_broker_config(config.broker, config.name)
                if known:
                    return NO_ERROR, value
                return NOT_REGISTERED if self._is_unregistered(config.broker) else NOT_SENT, None
            self.site.source.forget()
            found = self.site.source.topic_configs([config.topic])[config.topic]
        except ConnectError:
            return NOT_SENT, None
        return found.error or NO_ERROR, own_value(found)

    def _is_unregistered(self, broker: int) -> bool:
        """Whether the controller lists the broker as one that is not registered."""
        self.site.source.forget()
        cluster = self.site.source.cluster()
        return cluster.controller_silence is None and cluster.status(broker) is BrokerStatus.UNREGISTERED

    def _wait_for(self, config: WrittenConfig, value: str | None) -> tuple[str, str | None]:
        """What is read as soon as the own value is this, or when the patience is at its end."""
        patience = self.site.patience
        deadline = self.site.ground.steady_s() + patience.settle_s
        while True:
            answer, now = self.read(config)
            if (answer == NO_ERROR and now == value) or self.site.ground.steady_s() >= deadline:
                return answer, now
            self.site.ground.sleep(patience.step_s)

    def put_back(self, config: WrittenConfig) -> ConfigBack:
        """Write the old value back, unless somebody else has written another one, or nothing of kelr's can stand there.

        That a broker tells the old value is no reason not to: it may not have read kelr's write yet.
        """
        self._outlast(config)
        read, now = self.read(config)
        if config.in_force and read == NO_ERROR and config.is_somebody_elses(now):
            # Somebody else's from before kelr's, where the broker does not know that one yet.
            read, now = self._wait_for(config, config.written[-1])
        known, error = read == NO_ERROR, None
        elsewhere = known and config.is_somebody_elses(now)
        if read != NOT_REGISTERED and not elsewhere and (config.in_force or (known and now != config.old)):
            error = self.write(config, config.old, restores=True)
            self._outlast(config)
            read, now = self._wait_for(config, config.old)
        return self._back(config, read, now, None if error == NO_ERROR else error)

    def _sent(self, config: WrittenConfig, value: str | None, *, restores: bool) -> str:
        """One sending. Until its answer is here, it counts as one that may take effect at any time."""
        before = self.late_s
        self._mark_late()
        config.send(value, restores=restores)
        try:
            hand = self.site.hand
            if config.broker is None:
                error = hand.write_topic_config(config.topic, config.name, value)
            else:
                error = hand.write_broker_config(config.broker, config.name, value)
        except ConnectError:
            error = NOT_SENT
        except BaseException:
            self._mark_late()  # the process may have been suspended before it was sent
            raise
        self.late_s = before
        if error in UNCERTAIN:
            self._mark_late()
        config.answer(error)
        return error

    def _mark_late(self) -> None:
        """A write that was sent just now may take effect for the whole time."""
        self.late_s = self.site.ground.steady_s() + self.site.patience.late_s

    def _note(self, write: Callable[[], None]) -> None:
        """Write a line of the journal that no request waits for."""
        try:
            write()
        except UsageError as error:
            self.write_failure = error

    def _outlast(self, config: WrittenConfig) -> None:
        if self.late_s > self.site.ground.steady_s():
            self.tell(
                Stage.LATE, f"a write of {config.name} went without an answer: waiting until it takes effect no more"
            )
            self.site.ground.sleep(self.late_s - self.site.ground.steady_s())

    def _back(self, config: WrittenConfig, read: str, now: str | None, error: str | None) -> ConfigBack:
        what, known = f"{config.name} of {config.where}", read == NO_ERROR
        why = "no reason is known" if error is None else error_in_words(error)
        if error == UNKNOWN_TOPIC or (read == UNKNOWN_TOPIC and not config.in_force):
            restored, settled, text = False, True, "there is no such topic any more"
        elif read == NOT_REGISTERED:
            restored, settled, text, error = False, True, _gone(config), error or read
        elif known and config.is_somebody_elses(now):
            restored, settled = False, True
            text = f"somebody else set {what} to {_value(now)} meanwhile: left alone"
        elif not known:
            restored, settled, text = False, False, f"{what} could not be read"
        elif now != config.old:
            restored, settled = False, False
            text = f"{what} is {now}, and {_value(config.old)} could not be restored: {why}"
        elif config.in_force:
            restored, settled = False, False
            text = f"{what} was to be restored to {_value(config.old)}, and it is not sure that it was: {why}"
        else:
            restored, settled, text = True, True, ""
        if settled and config.written:  # else the journal knows nothing of it: Ctrl-C came before its first line
            self._note(partial(self.journal.config_restored, config))
        return ConfigBack(config.topic, config.name, config.old, now, restored, settled, text, error, config.broker)


def own_value(config: TopicConfig) -> str | None:
    """The topic's own min.insync.replicas; None where it takes that of the cluster, or where nothing is known."""
    if config.min_insync_replicas_source is not ConfigSource.TOPIC or config.min_insync_replicas is None:
        return None
    return str(config.min_insync_replicas)


def _gone(config: WrittenConfig) -> str:
    """Kafka keeps the config of a broker that is unregistered (ReplicationControlManager.handleBrokerUnregistered), and
    takes no write of it (QuorumController.ConfigResourceExistenceChecker)."""
    gone = f"{config.where} is not registered any more"
    if not config.in_force or config.broker is None:
        return gone
    change = broker_config_change(config.broker, config.name, config.old)
    return (
        f"{gone}, and its {config.name} may still be what kelr wrote. If it comes back, give it {_value(config.old)}"
        f" again by hand: kafka-configs.sh {change}"
    )


def _value(own: str | None) -> str:
    return "no value of its own" if own is None else own
