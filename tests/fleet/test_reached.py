"""What the errors of Hadoop's file systems become; none of them is a traceback, and none takes a quarter of an hour."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from kelr.errors import (
    AuthenticationError,
    BadInputError,
    ConnectError,
    KelrError,
    NotAuthorizedError,
    UnsupportedError,
)
from kelr.fleet import reached
from kelr.fleet.files import files_at
from kelr.fleet.reached import meant, not_written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def test_rows_that_are_not_written_for_another_reason_are_a_fault_of_ours() -> None:
    job = _Java("org.apache.spark.SparkException", "Job aborted\n\tat x.y.Z\nCaused by: AccessControlException: no")
    assert str(not_written(_JavaError(job), "store://lake")) == (
        "store://lake cannot be written: it is denied: Caused by: AccessControlException: no"
    )
    assert not_written(_JavaError(_Java("java.lang.ArithmeticException", "overflow")), "store://lake") is None


def test_a_name_node_that_does_not_listen_is_said_soon(spark: SparkSession) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"hdfs://127.0.0.1:{taken.getsockname()[1]}/lake"
        with pytest.raises(ConnectError, match=f"{place} cannot be reached: ConnectException"):
            files_at(place, spark)


def test_one_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(reached, "ANSWERS_WITHIN_S", 0.05)
    with pytest.raises(ConnectError, match="no answer within"):
        reached._within(never.wait, "store://lake")
    never.set()


def test_a_connector_that_spark_lacks_is_named(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError, match="does not reach this file system") as raised:
        files_at("s3a://bucket/lake", spark)
    assert "hadoop-aws" in str(raised.value.next_step)
