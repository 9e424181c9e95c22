"""Endpoints: their addresses, who asks them and over which TLS, one HTTP exchange, and what they said."""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kelr import __version__
from kelr.errors import BadInputError, UsageError
from kelr.metrics.catalog import Metric

if TYPE_CHECKING:
    import ssl

    import httpx


# Who asks endpoints, and over which TLS: user, password or token, authorities and a client certificate.


_LONGEST_SECRET = 65_536


@dataclass(frozen=True, slots=True)
class Access:
    """What is shown to endpoints. The secrets are in no repr, and nothing prints them."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca: Path | None = None
    """Authorities to trust instead of the system's, as PEM."""
    certificate: Path | None = None
    """The client's own certificate as PEM, with its key unless `key` names that."""
    key: Path | None = None

    @property
    def has_secrets(self) -> bool:
        return self.token is not None or self.password is not None

    def hidden(self, text: str) -> str:
        """What an endpoint says, without the secrets that it may say back."""
        for secret in (self.token, self._in_header, self.password):
            if secret:
                text = text.replace(secret, "***")
        return text

    @property
    def _in_header(self) -> str | None:
        """User and password as the header has them, which anybody can read back."""
        if self.user is None or not self.password:
            return None
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def headers(self) -> Mapping[str, str]:
        """The header that names who asks."""
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def basic(self) -> tuple[str, str] | None:
        """User and password."""
        return None if self.user is None else (self.user, self.password or "")

    def tls(self) -> ssl.SSLContext:
        """What TLS connections are checked by.

        Raises:
            BadInputError: a file is missing, is no PEM, or its key is encrypted.
        """
        try:
            context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        except (OSError, ssl.SSLError) as error:
            raise _bad(self.ca, error, "a PEM file with the certificates of the authorities") from error
        # Python 3.13 sets this, and so refuses authorities of one's own for extensions that nobody else asks for.
        # Connections to Kafka take them on every Python; who is trusted is the same.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.certificate is not None:
            try:
                # Without a callback OpenSSL would ask for the passphrase on the terminal, and wait.
                context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
            except (OSError, ssl.SSLError, ValueError) as error:
                raise _bad(self.certificate, error, "a PEM certificate, and its key without a passphrase") from error
        return context


def read_access(
    *,
    user: str | None,
    password_file: Path | None,
    token_file: Path | None,
    ca: Path | None,
    certificate: Path | None,
    key: Path | None,
    environ: Mapping[str, str] | None = None,
) -> Access:
    """The access that options, files and environment variables give.

    Passwords and tokens come from a file, or from KELR_METRICS_PASSWORD and KELR_METRICS_TOKEN, and never from the
    command line, where everybody on the machine can read them.

    Raises:
        UsageError: the options contradict each other.
        BadInputError: a file cannot be read, or holds no secret.
    """
    variables = os.environ if environ is None else environ
    token = _secret(token_file) or variables.get("KELR_METRICS_TOKEN") or None
    password = _secret(password_file) or variables.get("KELR_METRICS_PASSWORD") or None
    if user is not None and token is not None and token_file is None:
        token = None  # the environment's token is for other runs: a user was named for this one
    if user is not None and token is not None:
        raise UsageError("a user and a token were given; an endpoint takes one", next_step="leave one of them out")
    if password_file is not None and user is None:
        raise UsageError("--password-file says nothing without a user", next_step="give --user NAME as well")
    if user is not None and password is None:
        raise UsageError(
            f"no password for user {user}",
            next_step="give --password-file FILE, or set KELR_METRICS_PASSWORD",
            code="secret-not-there",
        )
    if key is not None and certificate is None:
        raise UsageError("--key says nothing without a certificate", next_step="give --cert FILE as well")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise BadInputError(
            "the token holds characters that no HTTP header takes", next_step="look at its file", code="not-a-secret"
        )
    return Access(user, password if user is not None else None, token, ca, certificate, key)


def _secret(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        with file.open("rb") as stream:
            content = stream.read(_LONGEST_SECRET + 1)
        text = content.decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise BadInputError(
            f"cannot read the secret in {file}: {reason}", next_step="name another file", code="secret-not-there"
        ) from error
    if not text or len(content) > _LONGEST_SECRET:
        raise BadInputError(
            f"{file} holds no secret", next_step="it should hold one line, and nothing else", code="secret-not-there"
        )
    return text


def _bad(file: Path | None, error: Exception, wanted: str) -> BadInputError:
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return BadInputError(
        f"{file} cannot be used for TLS: {reason}", next_step=f"give {wanted}", code="tls-file-unusable"
    )


# One HTTP exchange with an endpoint, bounded in time and size whatever the other side does.


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


# What is asked, and what comes back: addresses as they were given, and values as they were found.


class Kind(StrEnum):
    """How an endpoint is spoken to."""

    TEXT = "prometheus-text"
    SERVER = "prometheus-server"
    JOLOKIA = "jolokia"


_PATHS = {Kind.TEXT: "/metrics", Kind.SERVER: "", Kind.JOLOKIA: "/jolokia/"}
_OPTIONS = {Kind.TEXT: "--endpoint", Kind.SERVER: "--prometheus", Kind.JOLOKIA: "--jolokia"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address to ask."""

    kind: Kind
    url: str = field(repr=False)
    query_match: str | None = None
    """Label matchers that narrow what a Prometheus server is asked for."""

    @property
    def shown(self) -> str:
        """The address as it may be printed."""
        return address(self.url)


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a known metric, as an endpoint gave it."""

    metric: Metric
    value: float
    name: str
    labels: Mapping[str, str]
    at_ms: int | None = None
    old: bool = False
    attribute_said: bool = True
    increase: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """All that one endpoint had to say."""

    values: tuple[Value, ...]
    notes: tuple[str, ...] = ()
    partial: bool = False
    """Whether it said itself that something is missing."""


def endpoint_of(kind: Kind, given: str, query_match: str | None = None) -> Endpoint:
    """The endpoint that somebody means: ``host:9404`` is ``http://host:9404/metrics``.

    Raises:
        UsageError: it is no address, or has a password in it.
    """
    option = _OPTIONS[kind]
    url = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname or not given.isprintable():
        raise UsageError(
            f"{option} {address(given) or '...'} is no address that can be asked",
            next_step="give something like http://kafka-1:9404/metrics",
            code="bad-endpoint",
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"{option} {address(url)} was given with a user in the address, which everybody on this machine can read",
            next_step="leave it out, and give --user NAME with --password-file FILE",
            code="secret-in-address",
        )
    if parts.path in {"", "/"} and _PATHS[kind]:
        url = parts._replace(path=_PATHS[kind]).geturl()
    return Endpoint(kind, url, query_match)
