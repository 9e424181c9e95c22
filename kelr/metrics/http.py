"""One HTTP exchange with an endpoint, bounded in time and size whatever the other side does."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kelr import __version__
from kelr.metrics.access import Access

if TYPE_CHECKING:
    import ssl

    import httpx

MOST_BYTES = 64 * 1024 * 1024
"""What an answer may be long at most; jmx_exporter writes some 150 bytes for each series."""
_CONNECT_S = 5.0


class NotHeardError(Exception):
    """An endpoint gave no usable answer; becomes a value in its row, and never ends the command.

    Args:
        next_step: what would make it usable, where that is known.
    """

    def __init__(self, text: str, next_step: str | None = None) -> None:
        super().__init__(text)
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


def ask(
    question: Question,
    access: Access,
    tls: ssl.SSLContext,
    *,
    timeout_s: float,
    accepted: frozenset[int] = frozenset(),
    most_bytes: int = MOST_BYTES,
) -> Answer:
    """Send a question and read its answer.

    Redirects are not followed, so that nobody is sent credentials who was not named. Proxies and .netrc of the
    environment are not used.

    Args:
        timeout_s: for all of it.
        accepted: statuses besides 200 whose content matters.

    Raises:
        NotHeardError: no usable answer.
    """
    import httpx  # noqa: PLC0415 - not for --help

    deadline = time.monotonic() + timeout_s
    limits = httpx.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s))
    # What is not compressed cannot grow on arrival.
    headers = {"User-Agent": f"kelr/{__version__}", "Accept-Encoding": "identity", **question.headers}
    with httpx.Client(verify=tls, trust_env=False, follow_redirects=False, timeout=limits) as client:
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
            raise NotHeardError(f"no answer within {round(timeout_s, 1):g} s") from error
        except httpx.TransportError as error:
            raise _transport(error, question.url) from error


def _check(response: httpx.Response, accepted: frozenset[int]) -> None:
    status = response.status_code
    if status == 200 or status in accepted:
        if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
            raise NotHeardError("it compresses its answer although it was asked not to")
        return
    said = f"HTTP {status} {response.reason_phrase}".strip()
    if response.is_redirect:
        where = address(str(response.headers.get("location", "")))
        raise NotHeardError(f"it redirects to {where or 'nowhere'}; ask that address if it is the one")
    if status in {401, 403}:
        raise NotHeardError(f"it does not let us in ({said})")
    raise NotHeardError(f"it answers {said}")


def _content(response: httpx.Response, deadline: float, timeout_s: float, most_bytes: int) -> bytes:
    content = bytearray()
    # Without a size: it would wait until so much is there, however long that takes.
    for part in response.iter_raw():
        content += part
        if len(content) > most_bytes:
            raise NotHeardError(f"its answer is longer than {most_bytes:,} bytes")
        if time.monotonic() > deadline:
            raise NotHeardError(f"its answer was not whole within {timeout_s:g} s")
    return bytes(content)


def _transport(error: httpx.TransportError, url: str) -> NotHeardError:
    # A query may hold a key.
    text = (" ".join(str(error).split()) or type(error).__name__).replace(url, address(url))
    if "SSL" in text or "certificate" in text.lower():
        return NotHeardError(f"TLS failed: {_tls_words(text)}")
    import httpx  # noqa: PLC0415

    if isinstance(error, httpx.ConnectError):
        return NotHeardError(f"cannot connect: {_without_number(text)}")
    if isinstance(error, httpx.UnsupportedProtocol | httpx.ProxyError):
        return NotHeardError(text)
    hint = "; does it speak TLS?" if url.startswith("http:") and isinstance(error, httpx.RemoteProtocolError) else ""
    return NotHeardError(f"the connection broke: {_without_number(text)}{hint}")


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


def read_json(content: bytes, what: str) -> Any:
    """A document.

    Raises:
        NotHeardError: it is none.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        start = content.lstrip()[:1]
        page = " but a web page" if start == b"<" else ""
        raise NotHeardError(f"its answer is not {what}{page}") from error


def number(value: Any) -> float | None:
    """A finite number; None for all else, truth values too."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) < float("inf") else None


def shortened(text: Any) -> str:
    """What the other side says, in one line of bearable length."""
    words = " ".join(str(text).split())
    return words if len(words) <= 200 else words[:200] + "..."
