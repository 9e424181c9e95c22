"""OAUTHBEARER as the properties have it, and the form in which librdkafka takes tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from kelr.sources.jaas import KEY as JAAS
from kelr.sources.jaas import as_reader, jaas_options
from kelr.sources.properties import PropertyReader
from kelr.sources.security.endpoint import Endpoint, fetch_token
from kelr.sources.security.tokens import TokenHolder
from kelr.sources.security.unsecured import PREFIX, check_unsecured, extensions_of, unsecured_token

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
