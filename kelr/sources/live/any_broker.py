"""Asking the cluster as a whole: any broker will do, and when one dies another is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from kelr.errors import ConnectError, RefusedError
from kelr.sources.live.failures import ELSEWHERE, login_error
from kelr.sources.live.requests import api_versions
from kelr.sources.live.transport import Failure, FailureKind, Message, NodeId, Transport

CONTROLLER_TIMEOUT_S = 3.0
"""How long to wait for what only the controller knows, where `timeout_s` does not say less."""
OTHER_BROKER_TIMEOUT_S = 1.0
"""The same, where one broker has waited in vain already, which may be cut off from a controller that leads."""
AGREE = 2
"""How many brokers have to say that they do not know a request: one may be older than the others, or about to end."""
_OWN = frozenset({FailureKind.UNREACHABLE, FailureKind.AUTHENTICATION, FailureKind.GARBLED})
"""Failures of the broker that was asked, which tell nothing of the controller behind it."""
_WAITED = frozenset({FailureKind.TIMED_OUT})
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class AnyBroker:
    """Sends a request to the broker that answered last, or to the next one that does.

    Args:
        nodes: whom to ask, the favourite first.
        timeout_s: how long one question may take in all, other brokers and repetitions included.
    """

    def __init__(self, transport: Transport, nodes: Sequence[NodeId], *, timeout_s: float) -> None:
        self._transport = transport
        self._nodes = list(nodes)
        self._timeout_s = timeout_s

    @property
    def favourite(self) -> NodeId:
        return self._nodes[0]

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """Whom to ask, the favourite first."""
        return tuple(self._nodes)

    def learn(self, nodes: Sequence[NodeId]) -> None:
        """Further nodes to turn to."""
        self._nodes.extend(node for node in nodes if node not in self._nodes)

    def ask(
        self, request: Callable[[], Message], *, again: Callable[[Message], bool] | None = None
    ) -> Message | Failure:
        """One answer; a Failure only where brokers do not know the request (`FailureKind.UNSUPPORTED`): two of them, or
        all that can be asked.

        Args:
            request: makes the request, anew for each attempt, since its version is settled by the broker asked.
            again: tells of an answer whether it is worth asking again (a retriable error in it).

        Raises:
            AuthenticationError: the brokers that can be reached refuse the credentials.
            RefusedError: whoever answers is of another cluster, or another broker than the one that was meant.
            ConnectError: no broker answered within the timeout.
        """
        deadline = self._transport.ground.steady_s() + self._timeout_s
        pause_s, failures = _FIRST_PAUSE_S, dict[NodeId, Failure]()
        while True:
            left_s = deadline - self._transport.ground.steady_s()
            answer = self._transport.exchange(self.favourite, request(), timeout_s=self._share(left_s, len(failures)))
            failed = isinstance(answer, Failure)
            if not failed and (again is None or not again(answer)):
                return answer
            if failed:
                failures[self.favourite] = answer
            refused = [one for one in failures.values() if one.kind is FailureKind.UNSUPPORTED]
            if failed and refused and (len(refused) >= AGREE or len(failures) >= len(self._nodes)):
                return refused[0]
            left_s = deadline - self._transport.ground.steady_s()
            if left_s <= pause_s:
                return self._give_up(answer, failures)
            round_is_over = not failed or len(failures) >= len(self._nodes)
            self._nodes.append(self._nodes.pop(0))
            if round_is_over:
                failures.clear()
                self._transport.ground.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def ask_ahead(self, request: Message) -> None:
        """Let the broker that is asked next work on a request that `ask` will make."""
        self._transport.send_ahead(self.favourite, request)

    def ask_controller(self, *requests: Message) -> list[Message | Failure]:
        """The answers to requests that brokers pass on to the controller, sent together; Failures where it is silent.

        A broker keeps such a request until a controller is elected, for a minute if need be, and answers nothing else
        on that connection meanwhile. What the controller alone knows is not worth that wait: one broker that takes the
        requests is waited for, and one more after it, since the first may be cut off from a controller that leads. That
        one is the favourite then, as what the first one knows of the cluster is old. A broker that refuses, hangs up or
        makes no sense has not taken them, and the next is asked that answers at all; where none is left, those Failures
        are the answer.
        """
        wait_s = min(CONTROLLER_TIMEOUT_S, self._timeout_s / 2)
        deadline = self._transport.ground.steady_s() + self._timeout_s
        answers = self._transport.exchange_all(self.favourite, requests, timeout_s=wait_s)
        waited: tuple[NodeId, Sequence[Message | Failure]] | None = None
        for _ in self._nodes[1:]:
            if _failed(answers, _WAITED) and (waited is None or answers is waited[1]):
                waited = waited or (self.favourite, answers)
                wait_s = min(wait_s, OTHER_BROKER_TIMEOUT_S)
            elif not _failed(answers, _OWN):
                break
            self._nodes.append(self._nodes.pop(0))
            left_s = deadline - self._transport.ground.steady_s()
            if left_s <= 0:
                break
            # First something that it knows itself: else a broker that is not there would be the controller's silence.
            greeting = self._transport.exchange(self.favourite, api_versions(), timeout_s=min(wait_s, left_s))
            if not isinstance(greeting, Failure):
                answers = self._transport.exchange_all(self.favourite, requests, timeout_s=wait_s)
        if waited is not None and _failed(answers, _OWN | _WAITED):
            favourite, answers = waited
            self._nodes.remove(favourite)
            self._nodes.insert(0, favourite)
        return list(answers)

    def _share(self, left_s: float, failed: int) -> float:
        """A broker that hangs must leave time for the others."""
        waiting = max(1, len(self._nodes) - failed)
        return max(0.05, left_s if waiting == 1 else left_s / 2)

    def _give_up(self, answer: Message | Failure, failures: dict[NodeId, Failure]) -> Message | Failure:
        if not isinstance(answer, Failure):
            return answer
        unknown = [failure for failure in failures.values() if failure.kind is FailureKind.UNSUPPORTED]
        if unknown:
            return unknown[0]
        refused = [failure for failure in failures.values() if failure.kind is FailureKind.AUTHENTICATION]
        if refused:
            raise login_error("the brokers", refused[0])
        elsewhere = [failure for failure in failures.values() if failure.detail.startswith(ELSEWHERE)]
        if elsewhere and len(elsewhere) == len(failures):
            raise RefusedError(
                f"where the brokers of this cluster were there are others: {elsewhere[0].detail}",
                next_step="check that --bootstrap-server and advertised.listeners lead to one cluster, and ask again",
                code="wrong-cluster",
            )
        raise ConnectError(
            f"no broker answered any more within {self._timeout_s:g} s; the last one: {answer.detail}",
            next_step="check that a broker is up; give a longer --timeout if they are only slow",
            code="no-broker-answers",
        )


def _failed(answers: Sequence[Message | Failure], kinds: AbstractSet[FailureKind]) -> bool:
    return all(isinstance(answer, Failure) and answer.kind in kinds for answer in answers)
