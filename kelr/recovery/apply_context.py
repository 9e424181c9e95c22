"""Where work on a cluster is done: what it is read and changed through, and how long each wait may be."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kelr.controller import RuleSet
from kelr.errors import RefusedError
from kelr.recovery.actor import Actor
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.progress import ApplyEvent, Report, silent
from kelr.sources.base import Source
from kelr.sources.ground import Ground


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for what, in seconds."""

    answer_s: float = 30.0
    """How long a request is repeated that Kafka did not answer, or asked to repeat."""
    settle_s: float = 15.0
    """How long until the brokers' answers show what the controller has done."""
    late_s: float = 75.0
    """How long a request without an answer may still take effect: a broker keeps what it has to pass on to the
    controller for 60 s while there is none (BrokerServer, clientToControllerChannelManager), and the controller has
    10 s (`kelr.sources.live.changes.LONGEST_REQUEST_S`)."""
    answered_s: float = 12.0
    """How long one request is waited for (`kelr.sources.live.changes`)."""
    step_s: float = 0.2
    """Between two looks."""

    @property
    def rival_s(self) -> float:
        """How long an order stands at most by which a kelr elects that does not share this state directory: the sum of
        what its batch may wait for between its reordering and its last restoring, in seconds.

        Every request may be repeated, answered late, and be seen late. One reorders, one elects for each of three kinds
        of election. Restoring waits for late elections, restores, looks for late reorderings for twice as long,
        restores in the last of these looks, and once after them; and Ctrl-C begins it again. What is read in between
        may take as long as four requests.
        """
        request_s = self.answer_s + self.answered_s + self.settle_s
        restoring_s = self.late_s + request_s + 2 * self.late_s + request_s + request_s
        return 4 * request_s + 2 * restoring_s + 4 * request_s


@dataclass(frozen=True, slots=True)
class Site:
    """One cluster, and what is at hand to work on it."""

    source: Source
    """Asked anew for every step: `Source.forget` is called before."""
    hand: AdminClient
    state_directory: Path
    ground: Ground
    who: Actor
    rules: RuleSet | None = None
    report: Report = silent
    patience: Timeouts = field(default_factory=Timeouts)

    def tell(self, event: ApplyEvent) -> None:
        """Report a moment. A report that fails, to a pipe that was closed or a terminal that is gone, stops nothing:
        orders have to be restored all the same."""
        with suppress(Exception):
            self.report(event)

    def require_live(self) -> None:
        """Raises RefusedError where the source answers from what was saved: nothing is changed on old knowledge."""
        if self.source.taken_at_ms is not None:
            raise RefusedError(
                f"{self.source.name} is a saved snapshot: a cluster is changed only on what it says just now",
                next_step="give --bootstrap-server or --context instead of --snapshot",
            )
