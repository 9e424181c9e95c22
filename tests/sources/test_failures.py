"""Client errors become values in one place, and all of them do."""

from __future__ import annotations

import ssl

import pytest
from kafka import errors

from kelr.sources.live.failures import RETRIABLE, error_name, failure_of
from kelr.sources.live.transport import FailureKind


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (errors.KafkaConnectionError("111 ECONNREFUSED"), FailureKind.UNREACHABLE, "connection refused"),
        (errors.KafkaConnectionError("113 EHOSTUNREACH"), FailureKind.UNREACHABLE, "no route to host"),
        (errors.KafkaConnectionError("socket disconnected"), FailureKind.UNREACHABLE, "connection closed"),
        (errors.KafkaConnectionError(), FailureKind.UNREACHABLE, "connection closed"),
        (errors.KafkaConnectionError("Connection timed out"), FailureKind.TIMED_OUT, "Connection timed out"),
        (errors.KafkaConnectionError(ssl.SSLError(1, "no")), FailureKind.UNREACHABLE, "no"),
        (errors.NodeNotReadyError("paused"), FailureKind.UNREACHABLE, "paused"),
        (errors.Cancelled(), FailureKind.UNREACHABLE, "connection closed"),
        (errors.KafkaTimeoutError("Timed out after 5 ms"), FailureKind.TIMED_OUT, "no answer in time"),
        (errors.RequestTimedOutError("Request timed out"), FailureKind.TIMED_OUT, "no answer in time"),
        (errors.SaslAuthenticationFailedError("bad: password"), FailureKind.AUTHENTICATION, "bad: password"),
        (errors.UnsupportedSaslMechanismError("none"), FailureKind.AUTHENTICATION, "none"),
        (
            errors.UnsupportedSaslMechanismError(),
            FailureKind.AUTHENTICATION,
            "the listener does not offer this sasl.mechanism",
        ),
        (errors.IncompatibleBrokerVersion("too old"), FailureKind.UNSUPPORTED, "too old"),
        (errors.InvalidReceiveError("Invalid frame length: 1213486160"), FailureKind.GARBLED, None),
        (errors.CorrelationIdError("mismatch"), FailureKind.GARBLED, None),
        (ConnectionResetError(104, "Connection reset by peer"), FailureKind.UNREACHABLE, None),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "bad"), FailureKind.GARBLED, None),
    ],
)
def test_what_an_exception_means(error: Exception, kind: FailureKind, detail: str | None) -> None:
    failure = failure_of(error)
    assert failure.kind is kind
    assert detail is None or failure.detail == detail
    assert failure.detail


def test_every_error_of_the_client_has_a_meaning() -> None:
    known = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.KafkaError)]
    assert len(known) > 100
    for kind in known:
        failure = failure_of(kind("words"))
        assert failure.kind in FailureKind
        assert "words" in failure.detail or kind in {*TIMEOUTS, errors.IllegalSaslStateError}


TIMEOUTS = (errors.KafkaTimeoutError, errors.RequestTimedOutError)


def test_error_names_are_kafkas() -> None:
    assert error_name(0) == "NONE"
    assert error_name(6) == "NOT_LEADER_OR_FOLLOWER"
    assert error_name(45) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert error_name(12345) == "ERROR_CODE_12345"


def test_retriable_errors_are_named_as_error_name_names_them() -> None:
    names = {error_name(code) for code in range(-1, 140)}
    assert names >= RETRIABLE
