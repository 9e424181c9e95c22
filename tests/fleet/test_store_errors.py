"""What the errors of stores become; none of them is a traceback, and none takes a quarter of an hour."""

from __future__ import annotations

import socket
import threading

import pytest

from kelr.errors import (
    AuthenticationError,
    BadInputError,
    ConnectError,
    KelrError,
    NotAuthorizedError,
    UnsupportedError,
)
from kelr.fleet import files, stores
from kelr.fleet.files import files_at
from kelr.fleet.stores import meant, not_written


class _Class:
    def __init__(self, name: str) -> None:
        self._name = name

    def getName(self) -> str:  # noqa: N802 - of Java
        return self._name


class _Java:
    """A Throwable."""

    def __init__(self, name: str, message: str | None, cause: _Java | None = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def getClass(self) -> _Class:  # noqa: N802 - of Java
        return _Class(self._name)

    def getMessage(self) -> str | None:  # noqa: N802 - of Java
        return self._message

    def getCause(self) -> _Java | None:  # noqa: N802 - of Java
        return self._cause


class _JavaError(Exception):
    def __init__(self, java: _Java) -> None:
        super().__init__("An error occurred while calling o1.exists.")
        self.java_exception = java


DENIED = 'Permission denied: user=nobody, access=WRITE, inode="/lake":root:supergroup:drwxr-xr-x'


@pytest.mark.parametrize(
    ("java", "kind", "words"),
    [
        (_Java("org.apache.hadoop.security.AccessControlException", DENIED), NotAuthorizedError, "user=nobody"),
        (_Java("org.apache.hadoop.fs.s3a.UnknownStoreException", "s3a://b/: bucket"), BadInputError, "no such bucket"),
        (
            _Java("java.nio.file.AccessDeniedException", "s3a://b/x: S3Exception: (InvalidAccessKeyId)"),
            AuthenticationError,
            "credentials are not taken",
        ),
        (_Java("java.net.ConnectException", "Call From a to b:1 failed"), ConnectError, "cannot be reached: Connect"),
        (
            _Java("java.io.IOException", "failed", _Java("java.net.UnknownHostException", "nowhere")),
            ConnectError,
            "UnknownHostException: nowhere",
        ),
        (_Java("java.io.IOException", None), BadInputError, "cannot be read: java.io.IOException"),
    ],
)
def test_what_an_error_means(java: _Java, kind: type[KelrError], words: str) -> None:
    found = meant(_JavaError(java), "store://lake", "cannot be read")
    assert type(found) is kind
    assert words in str(found)
    assert "store://lake" in str(found)
    assert "\n" not in str(found)


def test_what_s3_answers_is_told_alone() -> None:
    drawn = "\x1b[31m↳\x1b[0m"
    said = f"Generic S3 error\n  {drawn} Error performing GET http://h/b?prefix=lake%2F - 404 Not Found: <?xml?>\n"
    answer = "<Error><Code>NoSuchBucket</Code><Message>It is not there</Message><RequestId>Q</RequestId></Error>"
    assert str(meant(OSError(said + answer), "s3a://b/lake", "cannot be read")) == (
        "s3a://b/lake: there is no such bucket: NoSuchBucket: It is not there"
    )


def test_rows_that_are_not_written_for_another_reason_are_a_fault_of_ours() -> None:
    job = _Java("org.apache.spark.SparkException", "Job aborted\n\tat x.y.Z\nCaused by: AccessControlException: no")
    assert str(not_written(_JavaError(job), "store://lake")) == (
        "store://lake cannot be written: it is denied: Caused by: AccessControlException: no"
    )
    assert not_written(_JavaError(_Java("java.lang.ArithmeticException", "overflow")), "store://lake") is None


@pytest.mark.parametrize("scheme", ["hdfs", "s3a"])
def test_a_store_that_does_not_listen_is_said_soon(scheme: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        there = f"127.0.0.1:{taken.getsockname()[1]}"
        place = f"hdfs://{there}/lake" if scheme == "hdfs" else "s3a://nowhere/lake"
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_allow_http": "true", "max_retries": "1"}
        options = {**keys, "aws_endpoint": f"http://{there}", "aws_region": "us-east-1"} if scheme == "s3a" else {}
        with pytest.raises(ConnectError, match=f"^{place} cannot be reached: .*Connection refused") as raised:
            files_at(place, tuple(options.items()))
    assert "\x1b" not in str(raised.value)


def test_one_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(files, "ANSWERS_WITHIN_S", 0.05)
    monkeypatch.setattr(stores, "ask", lambda _place, _options: never.wait())
    with pytest.raises(ConnectError, match="no answer within"):
        files_at("hdfs://127.0.0.1:1/lake")
    never.set()


def test_a_store_that_has_no_client_is_named() -> None:
    with pytest.raises(UnsupportedError, match="has no client for this file system"):
        files_at("unheard-of://bucket/lake")
