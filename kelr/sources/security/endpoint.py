"""Fetching a token from an OAuth token endpoint with client credentials (RFC 6749, section 4.4), over httpx.

Source of the request's form: ClientCredentialsJwtRetriever and ClientSecretRequestFormatter of Kafka 4.1 and newer.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode, urlsplit, urlunsplit

from kelr.apart import within
from kelr.errors import AuthenticationError, BadInputError, ConnectError, KelrError
from kelr.sources.security.tokens import Token, token_of

if TYPE_CHECKING:
    import httpx

    from kelr.sources.tls import TlsFiles

_MOST_BYTES = 1024 * 1024
_WORTH_ANOTHER_TRY = frozenset({429, 500, 502, 503, 504})
_TRIES = 3
_PAUSE_S = 0.1
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Whom to ask for tokens, and as whom; the secret is in no repr.

    Args:
        url: https, http, or file (a file that holds a token).
        tls: whom to trust there, and who we are; the options `ssl.*` of sasl.jaas.config.
        encode_header: whether id and secret are percent-encoded in the header (sasl.oauthbearer.header.urlencode).
        connect_s: how long connecting may take, in seconds; read_s: how long the answer may.
        timeout_s: how long all tries may take together.
    """

    url: str = field(repr=False)
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    tls: TlsFiles | None = None
    encode_header: bool = False
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    connect_s: float = 3.0
    read_s: float = 5.0
    timeout_s: float = 30.0

    @property
    def place(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.url)
        if parts.scheme == "file":
            return parts.path
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def fetch_token(
    endpoint: Endpoint, *, now_s: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep
) -> Token:
    """A new token.

    Raises:
        ConnectError: the endpoint cannot be reached, does not answer, or has trouble of its own.
        AuthenticationError: it refuses the client, or gives no token. No message quotes a secret or a token.
        BadInputError: a token file cannot be read.
    """
    if urlsplit(endpoint.url).scheme == "file":
        return _from_file(endpoint, now_s())
    failure: KelrError | None = None
    deadline = time.monotonic() + endpoint.timeout_s
    for attempt in range(_TRIES):
        if attempt:
            sleep(_PAUSE_S * 2**attempt)
        left_s = deadline - time.monotonic()
        if failure is not None and left_s <= 0:
            break
        try:
            # httpx bounds each read, and an endpoint may drip: status line and headers byte by byte, too.
            answer = within(min(left_s, endpoint.connect_s + endpoint.read_s), lambda: _answer(endpoint))
        except TimeoutError:
            answer = _late(endpoint)
        if isinstance(answer, KelrError):
            failure = answer
            continue
        status, body = answer
        if status not in _WORTH_ANOTHER_TRY:
            return _read(endpoint, status, body, now_s())
        failure = ConnectError(
            f"the token endpoint {endpoint.place} answers {status}{_said(endpoint, body)}",
            next_step="the identity provider has a problem: try again, or ask its operators",
        )
    raise failure or ConnectError(f"the token endpoint {endpoint.place} gave no answer")


def _from_file(endpoint: Endpoint, now_s: float) -> Token:
    path = Path(urlsplit(endpoint.url).path)
    try:
        value = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadInputError(
            f"cannot read the token in {path}: {why}", next_step="check sasl.oauthbearer.token.endpoint.url"
        ) from None
    return _usable(endpoint, token_of(value, now_s=now_s, extensions=dict(endpoint.extensions)), now_s)


def _answer(endpoint: Endpoint) -> tuple[int, bytes] | KelrError:
    """Status and body; an error where trying again may help."""
    import httpx  # noqa: PLC0415 - only for this login

    timeout = httpx.Timeout(endpoint.read_s, connect=endpoint.connect_s)
    try:
        # The environment names proxies, and the secret goes to nobody whom the properties do not name.
        with httpx.Client(verify=_trust(endpoint), timeout=timeout, follow_redirects=False, trust_env=False) as client:
            request: dict[str, Any] = {"content": _body(endpoint), "headers": _headers(endpoint)}
            with client.stream("POST", _without_user(endpoint.url), **request) as response:
                return response.status_code, _limited(response)
    except httpx.TimeoutException:
        return _late(endpoint)
    except httpx.TransportError as error:
        return _unreachable(endpoint, str(error))


def _late(endpoint: Endpoint) -> KelrError:
    return ConnectError(
        f"the token endpoint {endpoint.place} did not answer in time",
        next_step="check sasl.oauthbearer.token.endpoint.url, or give a longer sasl.login.read.timeout.ms",
    )


def _unreachable(endpoint: Endpoint, words: str) -> KelrError:
    if "CERTIFICATE_VERIFY_FAILED" in words or "SSL" in words:
        # Asking again cannot help, and must not take the time of it.
        raise ConnectError(
            f"no secure connection to the token endpoint {endpoint.place}: {words}",
            next_step="name whom to trust in sasl.jaas.config: ssl.truststore.type=PEM ssl.truststore.location=...",
        )
    return ConnectError(
        f"the token endpoint {endpoint.place} cannot be reached: {words or 'connection closed'}",
        next_step="check sasl.oauthbearer.token.endpoint.url, and that this machine may reach it",
    )


def _trust(endpoint: Endpoint) -> Any:
    import httpx  # noqa: PLC0415 - only for this login

    if endpoint.tls is not None:
        return endpoint.tls.context()
    # Whom to trust may come from the environment: what is named there gets nothing.
    try:
        return httpx.create_ssl_context(trust_env=True)
    except OSError as error:
        raise BadInputError(
            f"what SSL_CERT_FILE or SSL_CERT_DIR names cannot be used: {error.strerror or error}",
            next_step="name a file, or a directory, of certificates in PEM there",
        ) from error


def _without_user(url: str) -> str:
    """httpx would log in as the user in an address, in place of the client; Java takes no notice of it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _pair(endpoint: Endpoint) -> str:
    ours = (endpoint.client_id, endpoint.client_secret)
    pair = ":".join(map(quote_plus, ours) if endpoint.encode_header else ours)
    return base64.b64encode(pair.encode()).decode()


def _headers(endpoint: Endpoint) -> dict[str, str]:
    return {
        "Authorization": f"Basic {_pair(endpoint)}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "Cache-Control": "no-cache",
    }


def _body(endpoint: Endpoint) -> bytes:
    form = {"grant_type": "client_credentials"}
    if endpoint.scope is not None:
        form["scope"] = endpoint.scope
    return urlencode(form).encode()


def _limited(response: httpx.Response) -> bytes:
    """The body, up to a size."""
    held = bytearray()
    for piece in response.iter_bytes():
        held += piece
        if len(held) > _MOST_BYTES:
            break
    return bytes(held[: _MOST_BYTES + 1])


def _read(endpoint: Endpoint, status: int, body: bytes, now_s: float) -> Token:
    if status != 200:
        raise AuthenticationError(
            f"the token endpoint {endpoint.place} refused client {endpoint.client_id!r}:"
            f" {status}{_said(endpoint, body)}",
            next_step="check client id, client secret and scope in the client properties",
        )
    document = _document(body)
    value = document.get("access_token") or document.get("id_token")
    if not isinstance(value, str) or not value.strip():
        raise AuthenticationError(
            f"the token endpoint {endpoint.place} answers 200, and there is no access_token in it",
            next_step="check that sasl.oauthbearer.token.endpoint.url is the token endpoint, and no other page",
        )
    life = document.get("expires_in")
    life_s = float(life) if isinstance(life, int | float) and not isinstance(life, bool) else None
    extensions = dict(endpoint.extensions)
    return _usable(endpoint, token_of(value.strip(), now_s=now_s, life_s=life_s, extensions=extensions), now_s)


def _usable(endpoint: Endpoint, token: Token, now_s: float) -> Token:
    if not token.value or not token.value.isascii() or any(char.isspace() or ord(char) < 32 for char in token.value):
        raise AuthenticationError(
            f"what {endpoint.place} gives as a token is none: it is empty, or holds other characters than a token may",
            next_step="check sasl.oauthbearer.token.endpoint.url",
        )
    if token.expires_s <= now_s:
        raise AuthenticationError(
            f"the token of {endpoint.place} ended {now_s - token.expires_s:.0f} s ago",
            next_step="get a new token, and check this machine's clock",
        )
    return token


def _said(endpoint: Endpoint, body: bytes) -> str:
    """OAuth's own words for an error (RFC 6749, section 5.2), without our secret; nothing of any other answer."""
    document = _document(body)
    words = [str(document[key]) for key in ("error", "error_description") if isinstance(document.get(key), str)]
    text = " ".join("".join(char if char.isprintable() else " " for char in ": ".join(words)).split())
    for secret in (endpoint.client_secret, quote_plus(endpoint.client_secret), _pair(endpoint)):
        text = text.replace(secret, "***") if secret else text
    return f" ({text[:_SHOWN]})" if text else ""


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
