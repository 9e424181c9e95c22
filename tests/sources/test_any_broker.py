"""Asking whichever broker answers: one that does not know a request, or is dead, does not speak for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kelr.errors import ConnectError
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.transport import Failure, FailureKind

TOO_OLD = Failure(FailureKind.UNSUPPORTED, "no version in common")
DEAD = Failure(FailureKind.UNREACHABLE, "connection refused")


class Nodes:
    """Nodes that always give the same answer."""

    def __init__(self, answers: Mapping[Any, Any]) -> None:
        self.answers = answers
        self.asked: list[Any] = []

    def exchange(self, node: Any, _request: Any, **_timeout: float | None) -> Any:
        self.asked.append(node)
        return self.answers[node]

    def pause(self, _seconds: float) -> None:
        pass


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


def test_nobody_answers() -> None:
    with pytest.raises(ConnectError, match="connection refused"):
        ask({1: DEAD, 2: DEAD}, timeout_s=0.2)
