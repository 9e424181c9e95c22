"""Who asks endpoints, and over which TLS: user, password or token, authorities and a client certificate."""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kelr.errors import BadInputError, UsageError

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
