"""Whether a file system of Spark's is reached, and what its errors mean in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kelr.apart import within
from kelr.errors import (
    AuthenticationError,
    BadInputError,
    ConnectError,
    KelrError,
    NotAuthorizedError,
    UnsupportedError,
)

T = TypeVar("T")
ANSWERS_WITHIN_S = 45.0
_SOON = {
    # As they are, connectors ask a host that does not answer for many minutes.
    "fs.s3a.attempts.maximum": "2",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.connection.establish.timeout": "10s",
    "fs.s3a.connection.timeout": "20s",
    "ipc.client.connect.max.retries": "2",
    "ipc.client.connect.max.retries.on.timeouts": "1",
    "ipc.client.connect.timeout": "10000",
    "dfs.client.failover.max.attempts": "4",
}
_NO_BUCKET = ("UnknownStoreException", "NoSuchBucket")
_CREDENTIALS = (
    *("NoAuthWithAWSException", "NoAwsCredentialsException", "CredentialInitializationException"),
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "Unable to load credentials"),
    *("GSSException", "LoginException", "KerberosAuthException", "authentication is not enabled"),
)
_DENIED = ("AccessControlException", "AccessDeniedException", "AccessDenied", "Permission denied", "Status Code: 403")
_SILENT = (
    *("UnknownHostException", "ConnectException", "ConnectTimeoutException", "SocketTimeoutException"),
    *("NoRouteToHostException", "ApiCallTimeoutException", "HttpHostConnectException", "Connection refused"),
    *("StandbyException", "Unable to execute HTTP request", "HttpConnectTimeoutException"),
)
_NO_ROOM = ("Mkdirs failed", "ParentNotDirectory", "No space left", "QuotaExceeded")
_SETTINGS = "check its address and its settings: --conf spark.hadoop.NAME=VALUE passes one on"
_reached: set[str] = set()
"""File systems that have answered."""


def file_system(jvm: Any, path: Any, configuration: Any, place: str) -> Any:
    """The file system of a path. The first time it is looked whether it answers: connectors themselves go on asking for
    a quarter of an hour.

    Raises:
        UnsupportedError: Spark has no connector for it.
        ConnectError: it does not answer within `ANSWERS_WITHIN_S`, or does not take the credentials.
        NotAuthorizedError: the folder may not be looked at.
        BadInputError: there is no such bucket.
    """
    name = f"{path.toUri().getScheme()}://{path.toUri().getAuthority()}"
    if name in _reached or name.startswith(("None:", "file:")):
        return _connector(path, configuration, place)
    system = _within(lambda: _answering(jvm, path, configuration, place), place)
    _reached.add(name)
    return system


def _connector(path: Any, configuration: Any, place: str) -> Any:
    try:
        return path.getFileSystem(configuration)
    except Exception as error:
        causes = _causes(error)
        if _said(causes, (*_CREDENTIALS, *_SILENT)):
            raise
        raise UnsupportedError(
            f"{place}: Spark does not reach this file system: {causes[0]}",
            next_step="give Spark its connector, such as --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:...",
        ) from error


def _answering(jvm: Any, path: Any, configuration: Any, place: str) -> Any:
    """The file system, after it has begun to list the folder, whether there is one or not."""
    system = _connector(path, configuration, place)
    impatient = jvm.org.apache.hadoop.conf.Configuration(configuration)
    for setting, value in _SOON.items():
        impatient.set(setting, value)
    asked = jvm.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), impatient)
    try:
        asked.listStatusIterator(path).hasNext()
    except Exception as error:
        # A bucket that is not there is a file that is not there, to Java.
        causes = _causes(error)
        if _said(causes, _NO_BUCKET) or not _said(causes, ("FileNotFoundException",)):
            raise
    finally:
        asked.close()
    return system


def _within(asked: Callable[[], T], place: str) -> T:
    """Ask, and wait for the answer for no longer than `ANSWERS_WITHIN_S`. Raises as `meant`."""
    try:
        return within(ANSWERS_WITHIN_S, asked)
    except KelrError:
        raise
    except TimeoutError:
        raise ConnectError(
            f"{place} cannot be reached: no answer within {ANSWERS_WITHIN_S:.0f} s", next_step=_SETTINGS
        ) from None
    except Exception as error:
        raise meant(error, place, "cannot be looked at") from error


def meant(error: Exception, place: str, what: str) -> KelrError:
    """What a file system's error means.

    Args:
        what: happened for want of a better word, such as "cannot be read".
    """
    causes = _causes(error)
    if said := _said(causes, _NO_BUCKET):
        return BadInputError(f"{place}: there is no such bucket: {said}", next_step="make it, or check its name")
    if said := _said(causes, _CREDENTIALS):
        return AuthenticationError(f"{place}: the credentials are not taken: {said}", next_step=_SETTINGS)
    if said := _said(causes, _DENIED):
        return NotAuthorizedError(
            f"{place} {what}: it is denied: {said}", next_step="check the credentials, and what they may do there"
        )
    if said := _said(causes, _SILENT):
        return ConnectError(f"{place} cannot be reached: {said}", next_step=_SETTINGS)
    return BadInputError(f"{place} {what}: {_said(causes, ('',))}")


def not_written(error: Exception, place: str) -> KelrError | None:
    """What it means that Spark did not write rows; None where the place has no part in it."""
    words = (*_NO_BUCKET, *_CREDENTIALS, *_DENIED, *_NO_ROOM)
    return meant(error, place, "cannot be written") if _said(_causes(error), words) else None


def _said(causes: Sequence[str], words: tuple[str, ...]) -> str | None:
    """The first line in which one of these words is."""
    return next((line for line in causes if any(word in line for word in words)), None)


def _causes(error: Exception) -> list[str]:
    """Classes and words of an error of Java's, and of its causes, by lines."""
    java = getattr(error, "java_exception", None)
    said = [str(error)] if java is None else []
    while java is not None and len(said) < _MOST_CAUSES:
        name, words = str(java.getClass().getName()), java.getMessage()
        said.append(name if words is None else f"{name.rpartition('.')[2]}: {words}")
        java = java.getCause()
    lines = [line.strip() for one in said for line in one.splitlines()]
    return [line for line in lines if line and not line.startswith("at ")] or [type(error).__name__]


_MOST_CAUSES = 10
