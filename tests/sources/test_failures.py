"""Client errors become values in one place, and all of them do."""

from __future__ import annotations

import errno
import ssl

import pytest

from kelr.protocol.error_codes import error_name
from kelr.sources.live.failures import RETRIABLE, failure_of
from kelr.sources.live.transport import FailureKind


@pytest.mark.parametrize(
    ("error", "kind", "detail"),
    [
        (OSError(errno.ECONNREFUSED, "Connection refused"), FailureKind.UNREACHABLE, "connection refused"),
        (OSError(errno.EHOSTUNREACH, "No route"), FailureKind.UNREACHABLE, "no route to host"),
        (OSError(errno.ENETUNREACH, "Network"), FailureKind.UNREACHABLE, "network unreachable"),
        (OSError(errno.ETIMEDOUT, "Connection timed out"), FailureKind.TIMED_OUT, "connection timed out"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), FailureKind.UNREACHABLE, "connection reset"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), FailureKind.UNREACHABLE, "Broken pipe"),
        (OSError(), FailureKind.UNREACHABLE, "connection closed"),
        (TimeoutError("timed out"), FailureKind.TIMED_OUT, "timed out"),
        (ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] no"), FailureKind.UNREACHABLE, None),
    ],
)
def test_what_an_error_of_a_socket_means(error: OSError, kind: FailureKind, detail: str | None) -> None:
    failure = failure_of(error)
    assert failure.kind is kind
    assert failure.detail == (str(error.strerror) if detail is None else detail)


def test_error_names_are_kafkas() -> None:
    assert error_name(0) == "NONE"
    assert error_name(6) == "NOT_LEADER_OR_FOLLOWER"
    assert error_name(45) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert error_name(966) == "REQUEST_LIMIT_REACHED"
    assert error_name(129) == "REBOOTSTRAP_REQUIRED"
    assert error_name(12345) == "ERROR_CODE_12345"


def test_retriable_errors_are_named_as_error_name_names_them() -> None:
    names = {error_name(code) for code in range(-1, 140)}
    assert names >= RETRIABLE
