"""One HTTP exchange with an endpoint, bounded in time and size whatever the other side does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kelr import __version__
from kelr.metrics.access import Access

if TYPE_CHECKING:
    import ssl

    import httpx

MOST_BYTES = 64 * 1024 * 1024
"""What an answer may be long at most; jmx_exporter writes some 150 bytes for each series."""
ATTEMPTS = 3
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_CONNECT_S = 5.0
_WORTH_ANOTHER_TRY = frozenset({429, 502, 503, 504})


class Trouble(StrEnum):
    """Why an endpoint was not heard."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    REFUSED = "refused"
    """It does not accept who asks (401, 403)."""
    STATUS = "status"
    TOO_LARGE = "too-large"
    NOT_UNDERSTOOD = "not-understood"
    SEVERAL_CLUSTERS = "several-clusters"


class NotHeardError(Exception):
    """An endpoint gave no usable answer; becomes a value in its row, and never ends the command.

    Args:
        next_step: what would make it usable, where that is known.
    """

    def __init__(self, trouble: Trouble, text: str, next_step: str | None = None) -> None:
        super().__init__(text)
        self.trouble = trouble
        self.text = text
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint answered."""

    status: int
    content: bytes
    content_type: str
    date_s: float | None = None
    """What its clock says, in seconds since 1970 UTC; None where it does not say."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is sent to an endpoint."""

    method: str
    url: str
    headers: Mapping[str, str]
    form: Mapping[str, str] | None = None
    json: Any = None


class _TryAgainError(Exception):
    """A failure that may pass by itself."""

    def __init__(self, error: NotHeardError, wait_s: float | None = None) -> None:
        super().__init__(error.text)
        self.error = error
        self.wait_s = wait_s


def ask(
    question: Question,
    access: Access,
    tls: ssl.SSLContext,
    *,
    timeout_s: float,
    accepted: frozenset[int] = frozenset(),
    most_bytes: int = MOST_BYTES,
) -> Answer:
    """Send a question and read its answer, again after a pause where that may help.

    Redirects are not followed, so that nobody is sent credentials who was not named. Proxies and .netrc of the
    environment are not used.

    Args:
        timeout_s: for all tries and pauses together.
        accepted: statuses besides 200 whose content matters.

    Raises:
        NotHeardError: no usable answer.
    """
    import httpx  # noqa: PLC0415 - not for --help

    deadline = time.monotonic() + timeout_s
    limits = httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
    with httpx.Client(verify=tls, trust_env=False, follow_redirects=False, timeout=limits) as client:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return _once(client, question, access, deadline, timeout_s, accepted=accepted, most_bytes=most_bytes)
            except _TryAgainError as again:
                pause = _FIRST_PAUSE_S * 2 ** (attempt - 1) if again.wait_s is None else again.wait_s
                if attempt == ATTEMPTS or pause > _LONGEST_PAUSE_S or time.monotonic() + pause >= deadline:
                    raise again.error from None
                time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _once(
    client: httpx.Client,
    question: Question,
    access: Access,
    deadline: float,
    timeout_s: float,
    *,
    accepted: frozenset[int],
    most_bytes: int,
) -> Answer:
    import httpx  # noqa: PLC0415

    # What is not compressed cannot grow on arrival.
    headers = {"User-Agent": f"kelr/{__version__}", "Accept-Encoding": "identity", **question.headers}
    try:
        with client.stream(
            question.method,
            question.url,
            headers={**headers, **access.headers()},
            auth=access.basic(),
            data=question.form,
            json=question.json,
        ) as response:
            _check(response, accepted)
            content = _content(response, deadline, timeout_s, most_bytes)
            date_s = _date_s(response.headers.get("date"))
            return Answer(response.status_code, content, response.headers.get("content-type", ""), date_s)
    except httpx.TimeoutException as error:
        raise NotHeardError(Trouble.TIMEOUT, f"no answer within {timeout_s:g} s") from error
    except httpx.TransportError as error:
        raise _transport(error, question.url) from error


def _check(response: httpx.Response, accepted: frozenset[int]) -> None:
    status = response.status_code
    if status == 200 or status in accepted:
        if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
            raise NotHeardError(Trouble.NOT_UNDERSTOOD, "it compresses its answer although it was asked not to")
        return
    said = f"HTTP {status} {response.reason_phrase}".strip()
    if response.is_redirect:
        where = address(str(response.headers.get("location", "")))
        raise NotHeardError(Trouble.STATUS, f"it redirects to {where or 'nowhere'}; ask that address if it is the one")
    if status in {401, 403}:
        raise NotHeardError(Trouble.REFUSED, f"it does not let us in ({said})")
    error = NotHeardError(Trouble.STATUS, f"it answers {said}")
    if status in _WORTH_ANOTHER_TRY:
        raise _TryAgainError(error, _retry_after(response.headers.get("retry-after")))
    raise error


def _content(response: httpx.Response, deadline: float, timeout_s: float, most_bytes: int) -> bytes:
    content = bytearray()
    # Without a size: it would wait until so much is there, however long that takes.
    for part in response.iter_raw():
        content += part
        if len(content) > most_bytes:
            raise NotHeardError(Trouble.TOO_LARGE, f"its answer is longer than {most_bytes:,} bytes")
        if time.monotonic() > deadline:
            raise NotHeardError(Trouble.TIMEOUT, f"its answer was not whole within {timeout_s:g} s")
    return bytes(content)


def _transport(error: httpx.TransportError, url: str) -> Exception:
    # A query may hold a key.
    text = (" ".join(str(error).split()) or type(error).__name__).replace(url, address(url))
    if "SSL" in text or "certificate" in text.lower():
        return NotHeardError(Trouble.TLS, f"TLS failed: {_tls_words(text)}")
    import httpx  # noqa: PLC0415

    if isinstance(error, httpx.ConnectError):
        # A port that nobody listens on stays so for the second that we would wait.
        return NotHeardError(Trouble.UNREACHABLE, f"cannot connect: {_without_number(text)}")
    if isinstance(error, httpx.UnsupportedProtocol | httpx.ProxyError):
        return NotHeardError(Trouble.UNREACHABLE, text)
    hint = "; does it speak TLS?" if url.startswith("http:") and isinstance(error, httpx.RemoteProtocolError) else ""
    return _TryAgainError(NotHeardError(Trouble.UNREACHABLE, f"the connection broke: {_without_number(text)}{hint}"))


def _tls_words(text: str) -> str:
    if "WRONG_VERSION_NUMBER" in text or "RECORD_LAYER_FAILURE" in text:
        return "the port does not speak TLS; try http:// instead"
    return text.split("] ", 1)[-1].split(" (_ssl", 1)[0]


def _without_number(text: str) -> str:
    return text.split("] ", 1)[1] if text.startswith("[Errno") and "] " in text else text


def _date_s(text: str | None) -> float | None:
    try:
        return None if text is None else parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _retry_after(text: str | None) -> float | None:
    """The pause that the endpoint asks for, where it is a number of seconds."""
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def address(url: str) -> str:
    """A URL as it may be shown: without user, password, query and fragment, any of which may be a secret."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
        host = parts.hostname or ""
    except ValueError:
        return ""
    shown = f"[{host}]" if ":" in host else host
    start = f"{parts.scheme}://" if parts.scheme else ""
    return f"{start}{shown}{port}{parts.path}"
