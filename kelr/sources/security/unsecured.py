"""Tokens that nobody has signed, for clusters that believe what a client says: test clusters.

Source: org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kelr.sources.jaas import KEY
from kelr.sources.properties import PropertyReader
from kelr.sources.security.tokens import Token, encoded, token_of

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
