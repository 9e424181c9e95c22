"""Logins over SASL, free of I/O: each is a generator that yields what to send and is sent what the broker answers.

Source: RFC 4616 (PLAIN), RFC 5802 (SCRAM), RFC 7628 (OAUTHBEARER), RFC 4752 (GSSAPI), and Kafka's own clients where
they are stricter or send less: PlainSaslClient, ScramSaslClient, OAuthBearerSaslClient.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kelr.sources.security import NO_TICKET

if TYPE_CHECKING:
    from kelr.sources.jaas import Credentials
    from kelr.sources.security.tokens import TokenHolder

Login = Generator[bytes, bytes, None]
"""Ends when the broker has nothing more to say and the login is done. Raises LoginError where it cannot be done, and
ValueError where the broker's answer makes no sense."""

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_LEAST_ITERATIONS, _MOST_ITERATIONS = 4096, 1_000_000
"""Kafka's clients refuse fewer (ScramMechanism); more take seconds of work for every connection."""
_AUTHENTICATION_ONLY = 1
"""Kafka's listeners have no security layer of GSSAPI's own."""


class LoginError(Exception):
    """A login that will not come about, in words for the user; never quotes a secret."""


def plain(credentials: Credentials) -> Login:
    """User name and password."""
    answer = yield b"\0".join((b"", credentials.username.encode(), credentials.password.encode()))
    if answer:
        raise LoginError("Failed to authenticate via SASL PLAIN")


def scram(credentials: Credentials, mechanism: str, *, nonce: Callable[[], str] = secrets.token_hex) -> Login:
    """A proof of the password, and of the broker that it knows it, too."""
    digest = _HASHES[mechanism]
    user = credentials.username.replace("=", "=3D").replace(",", "=2C")
    ours = nonce()
    bare = f"n={user},r={ours}"
    first = (yield f"n,,{bare}".encode()).decode()
    told = _attributes(first)
    both, salt, iterations = told.get("r", ""), base64.b64decode(told.get("s", "")), int(told.get("i", ""))
    if not both.startswith(ours) or both == ours:
        raise ValueError("its nonce is not ours and its own")
    if not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        raise ValueError(f"{iterations} iterations are none that SCRAM has")
    salted = hashlib.pbkdf2_hmac(digest, credentials.password.encode(), salt, iterations)
    final = f"c=biws,r={both}"
    proved = f"{bare},{first},{final}".encode()
    key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, key).digest(), proved, digest)
    proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    last = (yield f"{final},p={base64.b64encode(proof).decode()}".encode()).decode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), proved, digest)
    if not hmac.compare_digest(base64.b64decode(_attributes(last).get("v", "")), expected):
        raise ValueError("its signature is wrong: it does not know the password")


def oauthbearer(tokens: TokenHolder) -> Login:
    """An access token, with the extensions that go with it. Raises KelrError where there is none to be had."""
    token = tokens.token()
    pairs = "".join(f"\x01{key}={value}" for key, value in token.extensions.items())
    refusal = yield f"n,,\x01auth=Bearer {token.value}{pairs}\x01\x01".encode()
    if refusal:
        yield b"\x01"  # the broker ends it with an error now
        raise LoginError("Failed to authenticate via SASL OAUTHBEARER")


def gssapi(service: str, host: str) -> Login:
    """A Kerberos ticket for `service/host`; asks the KDC where the credentials cache has none yet, and waits for it."""
    import gssapi as package  # noqa: PLC0415 - only for this login: it loads the system's Kerberos libraries

    whom = f"{service}@{host}"
    with _in_words():
        name = package.Name(whom, name_type=package.NameType.hostbased_service)
        context = package.SecurityContext(name=name.canonicalize(package.MechType.kerberos), usage="initiate")
        token = context.step(None)
    while not context.complete:
        challenge = yield token or b""
        with _in_words():
            token = context.step(challenge)
    offer = yield token or b""
    with _in_words():
        layers: bytes = context.unwrap(offer).message
        if not layers:
            raise ValueError("it offers no security layer at all")
        choice = bytes((layers[0] & _AUTHENTICATION_ONLY,)) + layers[1:] + whom.encode()
        chosen = context.wrap(choice, False).message
    if (yield chosen):
        raise ValueError("it says more than the login has")


def _attributes(message: str) -> Mapping[str, str]:
    """``r=...,s=...,i=4096``. Raises ValueError where it is not of that form."""
    return dict(pair.split("=", 1) for pair in message.split(","))


@contextmanager
def _in_words() -> Iterator[None]:
    """What GSSAPI says is an error of the login, and of nothing that the broker sent."""
    from kelr.sources.security.kerberos import failure_words  # noqa: PLC0415 - only for this login

    try:
        yield
    except Exception as error:
        words: Any = failure_words(error)
        if words is None:
            raise
        raise LoginError(f"{NO_TICKET}: {words}") from error
