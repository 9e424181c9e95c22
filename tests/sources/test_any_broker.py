"""Asking whichever broker answers: one that does not know a request, or is dead, does not speak for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kelr.errors import ConnectError
from kelr.sources.live.any_broker import CONTROLLER_TIMEOUT_S, OTHER_BROKER_TIMEOUT_S, AnyBroker
from kelr.sources.live.requests import api_versions
from kelr.sources.live.transport import Failure, FailureKind
from tests.still_ground import StillGround

TOO_OLD = Failure(FailureKind.UNSUPPORTED, "no version in common")
DEAD = Failure(FailureKind.UNREACHABLE, "connection refused")


class Nodes:
    """Nodes that always give the same answer."""

    def __init__(self, answers: Mapping[Any, Any]) -> None:
        self.answers = answers
        self.asked: list[Any] = []
        self.ground = StillGround()

    def exchange(self, node: Any, _request: Any, **_timeout: float | None) -> Any:
        self.asked.append(node)
        return self.answers[node]


def ask(answers: Mapping[Any, Any], *, timeout_s: float = 30.0) -> tuple[Any, list[Any]]:
    nodes = Nodes(answers)
    brokers = AnyBroker(nodes, list(answers), timeout_s=timeout_s)  # type: ignore[arg-type]
    return brokers.ask(lambda: "question"), nodes.asked


def test_a_broker_that_does_not_know_a_request_does_not_speak_for_one_that_does() -> None:
    assert ask({"bootstrap-0": TOO_OLD, 1: "answer"}) == ("answer", ["bootstrap-0", 1])


def test_two_that_do_not_know_it_do() -> None:
    assert ask({1: TOO_OLD, 2: TOO_OLD, 3: "answer"}) == (TOO_OLD, [1, 2])


@pytest.mark.parametrize("others", [{}, {2: DEAD}, {2: DEAD, 3: DEAD}])
def test_one_does_where_no_other_answers(others: Mapping[Any, Any]) -> None:
    assert ask({1: TOO_OLD, **others}) == (TOO_OLD, [1, *others])
    assert ask({**others, 1: TOO_OLD}) == (TOO_OLD, [*others, 1])


class Controllers(Nodes):
    """Nodes whose answers are to what they pass on; those that are there greet."""

    def exchange(self, node: Any, request: Any, **_timeout: float | None) -> Any:
        assert request == api_versions()
        self.asked.append(("greet", node))
        return self.answers[node] if self.answers[node] in {DEAD, GONE} else "greeting"

    def exchange_all(self, node: Any, requests: Any, *, timeout_s: float) -> Any:
        waited = [one for one in self.asked if self.answers.get(one) == SILENT]
        assert timeout_s == (OTHER_BROKER_TIMEOUT_S if waited else CONTROLLER_TIMEOUT_S)
        self.asked.append(node)
        answer = SILENT if self.answers[node] == GONE else self.answers[node]
        return [answer for _ in requests]


GONE = Failure(FailureKind.TIMED_OUT, "connection timed out")
SILENT = Failure(FailureKind.TIMED_OUT, "no answer in time")
REFUSED = Failure(FailureKind.AUTHENTICATION, "no Kerberos ticket: Ticket expired")


@pytest.mark.parametrize(
    ("answers", "asked", "found"),
    [
        ({1: "answer", 2: "answer"}, [1], "answer"),
        # A broker that was there a moment ago and takes the question waits for a controller, or is cut off from it.
        ({1: SILENT, 2: "answer"}, [1, ("greet", 2), 2], "answer"),
        ({1: SILENT, 2: SILENT, 3: "answer"}, [1, ("greet", 2), 2], SILENT),
        ({1: SILENT, 2: GONE, 3: "answer"}, [1, ("greet", 2), ("greet", 3), 3], "answer"),
        ({1: SILENT, 2: GONE, 3: DEAD}, [1, ("greet", 2), ("greet", 3)], SILENT),
        ({1: DEAD, 2: SILENT, 3: "answer"}, [1, ("greet", 2), 2, ("greet", 3), 3], "answer"),
        ({1: SILENT}, [1], SILENT),
        ({1: TOO_OLD, 2: "answer"}, [1], TOO_OLD),
        # One that dies over it does not, and neither does one that cannot be reached at all.
        ({1: DEAD, 2: "answer"}, [1, ("greet", 2), 2], "answer"),
        ({1: REFUSED, 2: REFUSED, 3: "answer"}, [1, ("greet", 2), 2, ("greet", 3), 3], "answer"),
        ({1: DEAD, 2: GONE, 3: "answer"}, [1, ("greet", 2), ("greet", 3), 3], "answer"),
        ({1: DEAD, 2: GONE, 3: DEAD}, [1, ("greet", 2), ("greet", 3)], DEAD),
        ({1: DEAD}, [1], DEAD),
    ],
)
def test_who_is_asked_to_pass_on_a_question(answers: Mapping[Any, Any], asked: list[Any], found: Any) -> None:
    nodes = Controllers(answers)
    brokers = AnyBroker(nodes, list(answers), timeout_s=30.0)  # type: ignore[arg-type]
    assert brokers.ask_controller("who leads", "what moves") == [found, found]
    assert nodes.asked == asked
    assert found == DEAD or answers[brokers.favourite] == found


def test_one_of_two_answers_is_one() -> None:
    nodes = Controllers({1: "-", 2: "-"})
    nodes.exchange_all = lambda *_, **__: [DEAD, "answer"]  # type: ignore[method-assign]
    brokers = AnyBroker(nodes, [1, 2], timeout_s=30.0)  # type: ignore[arg-type]
    assert brokers.ask_controller("who leads", "what moves") == [DEAD, "answer"]
    assert nodes.asked == []


def test_nobody_answers() -> None:
    with pytest.raises(ConnectError, match="connection refused"):
        ask({1: DEAD, 2: DEAD}, timeout_s=0.2)
