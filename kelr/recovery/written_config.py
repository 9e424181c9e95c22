"""A topic's or a broker's config that kelr has written for a while: what may stand there now, by the writes and their
answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from kelr.recovery.admin_client import NO_ERROR, UNCERTAIN, is_refusal


@dataclass(slots=True)
class WrittenConfig:
    """One topic's or one broker's config, as a journal tells of it or as it is being written."""

    topic: str
    """Empty for a broker's."""
    name: str
    old: str | None
    """The topic's, or broker's, own value from before; None: it had none."""
    written: tuple[str | None, ...] = ()
    """The values that were written in its place."""
    broker: int | None = None
    """Whose it is; None: the topic's."""
    restored: bool = False
    in_force: bool = False
    """Whether one of these may stand there: not where every write was refused, nor after the old value was written back
    and Kafka said so. What a broker tells does not count here: it may lag behind for as long as it is cut off."""
    sent: bool = False
    """A write is on its way that has no answer yet."""
    uncertain: bool = False
    """A write before that may take effect yet: a later one's answer says nothing of it."""
    _restores: bool = field(default=False, init=False, repr=False)
    _before: bool = field(default=False, init=False, repr=False)

    @property
    def where(self) -> str:
        """``topic orders``, ``broker 2``."""
        return f"topic {self.topic}" if self.broker is None else f"broker {self.broker}"

    def send(self, value: str | None, *, restores: bool) -> None:
        """A write is about to be sent.

        Args:
            restores: it writes the old value back.
        """
        self.uncertain = self.sent or self.uncertain
        self.sent, self._restores = True, restores
        if not restores:
            self.written, self.restored = (*self.written, value), False
            self._before, self.in_force = self.in_force, True

    def answer(self, error: str) -> None:
        """The answer to the write that was sent last; Kafka's name of the error."""
        self.sent = False
        self.uncertain = self.uncertain or error in UNCERTAIN
        if self._restores:
            self.in_force = self.in_force and error != NO_ERROR
        elif is_refusal(error):
            self.in_force = self._before

    def is_somebody_elses(self, value: str | None) -> bool:
        """Whether neither kelr nor who was there before has written this."""
        return value != self.old and value not in self.written
