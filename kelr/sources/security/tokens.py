"""Access tokens for OAUTHBEARER: one that is held until it is near its end, whoever asks and however often."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_SHARE_OF_LIFE = 0.8
"""A token is asked for anew after this part of its life, as Kafka's Java client does it
(sasl.login.refresh.window.factor)."""
UNKNOWN_LIFE_S = 60.0
"""How long a token is held that does not say when it ends, and whose issuer does not either."""


@dataclass(frozen=True, slots=True)
class Token:
    """An access token; its value is in no repr.

    Args:
        expires_s: when it ends, in seconds since 1970.
        principal: whom it is for, as far as it can be read; librdkafka wants a name.
        extensions: SASL extensions (RFC 7628) that go with it; may be secrets.
    """

    value: str = field(repr=False)
    expires_s: float
    principal: str
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


class TokenHolder:
    """Gives a token, and fetches another where the one it has is near its end. Safe for several threads.

    Args:
        fetch: gets a new token; raises KelrError, which whoever asks for the token sees.
        now_s: seconds since 1970.
    """

    def __init__(self, fetch: Callable[[], Token], *, now_s: Callable[[], float] = time.time) -> None:
        self._fetch = fetch
        self._now_s = now_s
        self._lock = threading.Lock()
        self._held: Token | None = None
        self._renew_s = 0.0

    def __repr__(self) -> str:
        return "TokenHolder()"

    def token(self) -> Token:
        """A token that is good for a while. Raises what `fetch` raises."""
        with self._lock:
            now = self._now_s()
            if self._held is None or now >= self._renew_s:
                self._held = self._fetch()
                self._renew_s = now + _SHARE_OF_LIFE * max(0.0, self._held.expires_s - now)
            return self._held


def token_of(
    value: str, *, now_s: float, life_s: float | None = None, extensions: Mapping[str, str] | None = None
) -> Token:
    """A token, with what can be read of it.

    Args:
        life_s: how long it is good, as its issuer said (`expires_in`); its own `exp` claim wins.
    """
    claims = _claims(value)
    end = claims.get("exp")
    life = UNKNOWN_LIFE_S if life_s is None else life_s
    expires_s = float(end) if isinstance(end, int | float) and not isinstance(end, bool) else now_s + life
    return Token(value, expires_s, str(claims.get("sub") or "unknown"), extensions or {})


def _claims(value: str) -> Mapping[str, Any]:
    """The claims of a JWT, unchecked: the broker checks them. Empty for a token of another kind."""
    parts = value.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, UnicodeDecodeError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def encoded(document: Mapping[str, Any]) -> str:
    """A part of a JWT: JSON in URL-safe base 64 without padding."""
    text = json.dumps(document, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
