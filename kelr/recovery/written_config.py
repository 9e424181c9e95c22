"""A topic's config that kelr has written for a while: what may stand there now, by the writes and their answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from kelr.recovery.hand import NO_ERROR, NOT_SENT, UNCERTAIN

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
_REFUSALS = frozenset({
    "POLICY_VIOLATION",
    "INVALID_CONFIG",
    "INVALID_REQUEST",
    "UNSUPPORTED_VERSION",
    UNKNOWN_TOPIC,
    NOT_SENT,
})  # fmt: skip
"""Answers that prove that a write was not carried out, and never will be, as do those of the lack of an ACL. No other
does: a controller that resigns right after it has written answers NOT_CONTROLLER."""


@dataclass(slots=True)
class WrittenConfig:
    """One topic's config, as a journal tells of it or as it is being written."""

    topic: str
    name: str
    old: str | None
    """The topic's own value from before; None: it had none."""
    written: tuple[str | None, ...] = ()
    """The values that were written in its place."""
    restored: bool = False
    in_force: bool = False
    """Whether one of these may stand there: not where every write was refused, nor after the old value was written back
    and Kafka said so. What a broker tells does not count here: it may lag behind for as long as it is cut off."""
    sent_ms: int | None = None
    """When a write was sent that has no answer yet; None: all have one."""
    uncertain_ms: int | None = None
    """When an answer came after which a write may take effect yet; a later write's answer says nothing of that one."""
    _restores: bool = field(default=False, init=False, repr=False)
    _before: bool = field(default=False, init=False, repr=False)

    @property
    def loose_ms(self) -> int | None:
        """When the newest of the writes went off whose fate is not known; None: all are known."""
        return max((at for at in (self.sent_ms, self.uncertain_ms) if at is not None), default=None)

    def send(self, value: str | None, at_ms: int, *, restores: bool) -> None:
        """A write is about to be sent.

        Args:
            restores: it writes the old value back.
        """
        self.sent_ms, self._restores = at_ms, restores
        if not restores:
            self.written, self.restored = (*self.written, value), False
            self._before, self.in_force = self.in_force, True

    def answer(self, error: str, at_ms: int) -> None:
        """The answer to the write that was sent last; Kafka's name of the error."""
        self.sent_ms = None
        if error in UNCERTAIN:
            self.uncertain_ms = at_ms
        if self._restores:
            self.in_force = self.in_force and error != NO_ERROR
        elif error in _REFUSALS or error.endswith("_AUTHORIZATION_FAILED"):
            self.in_force = self._before

    def is_somebody_elses(self, value: str | None) -> bool:
        """Whether neither kelr nor who was there before has written this."""
        return value != self.old and value not in self.written
