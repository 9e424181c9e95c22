"""OAUTHBEARER as the properties have it, and the form in which librdkafka takes tokens."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode, urlsplit, urlunsplit

from kelr.apart import within
from kelr.errors import AuthenticationError, BadInputError, ConnectError, KelrError
from kelr.sources.jaas import KEY, as_reader, jaas_options
from kelr.sources.jaas import KEY as JAAS
from kelr.sources.properties import PropertyReader
from kelr.sources.security.tokens import Token, TokenHolder, encoded, token_of

if TYPE_CHECKING:
    import httpx

    from kelr.sources.tls import TlsFiles

# Fetching a token from an OAuth token endpoint with client credentials (RFC 6749, section 4.4), over httpx.
#
# Source of the request's form: ClientCredentialsJwtRetriever and ClientSecretRequestFormatter of Kafka 4.1 and newer.


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


# Tokens that nobody has signed, for clusters that believe what a client says: test clusters.
#
# Source: org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler.


PREFIX = "unsecuredLogin"
_STRING, _NUMBER, _LIST = f"{PREFIX}StringClaim_", f"{PREFIX}NumberClaim_", f"{PREFIX}ListClaim_"
_LIFETIME = f"{PREFIX}LifetimeSeconds"
_PRINCIPAL = f"{PREFIX}PrincipalClaimName"
_DEFAULT_LIFETIME_S = 3600
_RESERVED = ("iat", "exp")


def check_unsecured(options: Mapping[str, str], reader: PropertyReader) -> None:
    """Raises BadInputError where the options make no token."""
    _claims(options, reader)
    _lifetime_s(options, reader)
    principal = options.get(_PRINCIPAL) or "sub"
    if not options.get(f"{_STRING}{principal}"):
        raise reader.error(
            KEY,
            f"{KEY} says no {_STRING}{principal}: there would be no login",
            next_step=f'write {_STRING}{principal}="USER", or sasl.oauthbearer.token.endpoint.url for real tokens',
        )


def unsecured_token(options: Mapping[str, str], reader: PropertyReader, now_s: float) -> Token:
    """The token that these options of `sasl.jaas.config` make. Raises BadInputError as `check_unsecured`."""
    life_s = _lifetime_s(options, reader)
    claims = {"iat": now_s, "exp": now_s + life_s, **_claims(options, reader)}
    value = f"{encoded({'alg': 'none'})}.{encoded(claims)}."
    held = token_of(value, now_s=now_s, life_s=life_s, extensions=extensions_of(options, f"{PREFIX}Extension_"))
    principal = claims.get(options.get(_PRINCIPAL) or "sub")
    return Token(held.value, held.expires_s, str(principal), held.extensions)


def extensions_of(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The SASL extensions among the options."""
    return {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}


def _claims(options: Mapping[str, str], reader: PropertyReader) -> dict[str, Any]:
    claims: dict[str, Any] = {}
    for key, value in options.items():
        if key.startswith(_STRING):
            claims[key.removeprefix(_STRING)] = value
        elif key.startswith(_NUMBER):
            claims[key.removeprefix(_NUMBER)] = _number(key, value, reader)
        elif key.startswith(_LIST):
            # The first character says what stands between the values: "|one|two".
            claims[key.removeprefix(_LIST)] = value[1:].split(value[0]) if value else []
    for name in _RESERVED:
        claims.pop(name, None)
    return claims


def _lifetime_s(options: Mapping[str, str], reader: PropertyReader) -> float:
    return _number(_LIFETIME, options.get(_LIFETIME) or str(_DEFAULT_LIFETIME_S), reader)


def _number(option: str, value: str, reader: PropertyReader) -> float:
    try:
        return float(value)
    except ValueError:
        raise reader.error(KEY, f"{option} in {KEY} is not a number", next_step="write it in digits") from None


URL = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE = "sasl.oauthbearer.scope"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
ENCODE = "sasl.oauthbearer.header.urlencode"
CONNECT_MS, READ_MS = "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"
KEYS = frozenset({URL, CLIENT_ID, CLIENT_SECRET, SCOPE, RETRIEVER, ENCODE, CONNECT_MS, READ_MS})
"""The properties that are used for this mechanism alone."""
_RETRIEVERS = ("ClientCredentialsJwtRetriever", "DefaultJwtRetriever", "FileJwtRetriever")
_SCHEMES = ("https", "http", "file")


def token_holder(reader: PropertyReader, *, timeout_s: float) -> TokenHolder:
    """What gives tokens, as the properties say; nothing is fetched yet.

    Raises:
        BadInputError: something is missing, or asks for what kelr cannot do; never quotes a secret.
    """
    options = jaas_options(reader, "OAUTHBEARER")
    _check_retriever(reader)
    if reader.text(URL) is not None:
        endpoint = _endpoint(reader, options, timeout_s)
        return TokenHolder(lambda: fetch_token(endpoint))
    if any(key.startswith(PREFIX) for key in options):
        check_unsecured(options, reader)
        return TokenHolder(lambda: unsecured_token(options, reader, time.time()))
    raise reader.error(
        URL,
        f"OAUTHBEARER needs {URL}, and it is not set",
        next_step=f"write {URL}=https://..., {CLIENT_ID}=... and {CLIENT_SECRET}=...",
    )


def for_librdkafka(holder: TokenHolder) -> Callable[[str], tuple[str, float, str, Mapping[str, str]]]:
    """The holder as confluent-kafka's `oauth_cb`: value, end in seconds since 1970, principal, extensions."""

    def oauth_cb(_config: str) -> tuple[str, float, str, Mapping[str, str]]:
        token = holder.token()
        return token.value, token.expires_s, token.principal, dict(token.extensions)

    return oauth_cb


def _check_retriever(reader: PropertyReader) -> None:
    name = (reader.text(RETRIEVER) or _RETRIEVERS[0]).rsplit(".", 1)[-1]
    if name not in _RETRIEVERS:
        raise reader.error(
            RETRIEVER,
            f"{RETRIEVER}={name} runs in Java alone, or asks with an assertion, which kelr does not make",
            next_step="use client credentials (ClientCredentialsJwtRetriever), or a file with a token"
            f" ({URL}=file:///...)",
        )


def _endpoint(reader: PropertyReader, options: Mapping[str, str], timeout_s: float) -> Endpoint:
    from kelr.sources.tls import tls_files  # noqa: PLC0415 - only for this login

    url = reader.text(URL) or ""
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not (parts.hostname or parts.scheme == "file"):
        raise reader.error(URL, f"{URL} is no address", next_step="write https://HOST/PATH, or file:///PATH")
    client_id = reader.text(CLIENT_ID) or options.get("clientId") or ""
    client_secret = reader.secret(CLIENT_SECRET) or options.get("clientSecret") or ""
    if parts.scheme != "file":
        for key, option, value in ((CLIENT_ID, "clientId", client_id), (CLIENT_SECRET, "clientSecret", client_secret)):
            if not value:
                raise reader.error(
                    key,
                    f"{key} is not set, nor {option} in {JAAS}",
                    next_step=f"write {key}=..., as the issuer gave it",
                )
    inner = as_reader(options, reader)
    uses_tls = parts.scheme == "https" and any(key.startswith("ssl.") for key in options)
    return Endpoint(
        url,
        client_id,
        client_secret,
        reader.text(SCOPE) or options.get("scope") or None,
        tls_files(inner) if uses_tls else None,
        encode_header=(reader.text(ENCODE) or "false").lower() == "true",
        extensions=tuple(extensions_of(options, "extension_").items()),
        connect_s=_seconds(reader, CONNECT_MS, min(3.0, timeout_s)),
        read_s=_seconds(reader, READ_MS, min(5.0, timeout_s)),
        timeout_s=timeout_s,
    )


def _seconds(reader: PropertyReader, key: str, default_s: float) -> float:
    text = reader.text(key)
    if text is None:
        return default_s
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise reader.error(key, f"{key} is no number of milliseconds", next_step="write it in digits")
    return int(text) / 1000
