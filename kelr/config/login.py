"""The client properties by which a context logs in: the same that Kafka's own tools would be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from kelr.config.context import NO_CONTEXT, Context
from kelr.config.value import Kind, Value, readable_by_others
from kelr.errors import BadInputError, UsageError
from kelr.sources.properties import read_properties

JAAS_KEY = "sasl.jaas.config"
_PROTOCOL_KEY, _MECHANISM_KEY = "security.protocol", "sasl.mechanism"
_SECURITY = "org.apache.kafka.common.security"
_MODULES: Mapping[str, tuple[str, str, str]] = {
    "PLAIN": (f"{_SECURITY}.plain.PlainLoginModule", "username", "password"),
    "SCRAM-SHA-256": (f"{_SECURITY}.scram.ScramLoginModule", "username", "password"),
    "SCRAM-SHA-512": (f"{_SECURITY}.scram.ScramLoginModule", "username", "password"),
    "OAUTHBEARER": (f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule", "clientId", "clientSecret"),
}
"""For each mechanism: its login module, and what that calls who we are and the secret."""
PATH_ENDS = (".location", ".file")
"""How the names of properties end that are paths."""


class Login:
    """The properties of a context and of ``--command-property``, worked out once, when first needed.

    Only then are variables and files read and commands run. Secrets are in no repr.

    Args:
        context: the context that is in use.
        given: properties of the command line, which win.
    """

    def __init__(
        self, context: Context = NO_CONTEXT, given: Mapping[str, str] | None = None, *, environ: Mapping[str, str]
    ) -> None:
        self.context = context
        self.given: Mapping[str, str] = MappingProxyType(dict(given or {}))
        self._environ = environ

    def __repr__(self) -> str:
        return f"Login(context={self.context.name!r}, keys={list(self.keys)})"

    @property
    def keys(self) -> tuple[str, ...]:
        """The properties that it sets, sorted."""
        jaas = [JAAS_KEY] if self.context.username else []
        return tuple(sorted({*self.context.properties, *self.given, *jaas}))

    @property
    def servers(self) -> str | None:
        """`bootstrap.servers`, where a property says it in so many words."""
        held = self.context.properties.get("bootstrap.servers")
        written = held.text if held is not None and held.kind is Kind.HERE else None
        return self.given.get("bootstrap.servers") or written

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The properties, secrets included: not for printing.

        Raises:
            BadInputError: a secret is not where it should be, or a user name goes with no way to log in.
        """
        own = {key: self._property(key, value) for key, value in self.context.properties.items()}
        own |= self.given
        if self.context.username and JAAS_KEY not in self.given:
            own[JAAS_KEY] = self._jaas(own)
        return own

    @property
    def fetched(self) -> frozenset[str]:
        """The properties whose secret comes from a variable, a file or a command: it is taken as it is."""
        context = self.context
        keys = {key for key, value in context.properties.items() if value.kind is not Kind.HERE}
        if context.username and context.password is not None and context.password.kind is not Kind.HERE:
            keys.add(JAAS_KEY)
        return frozenset(keys.difference(self.given))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of how the secrets are kept, in sentences."""
        context = self.context
        found = []
        if context.password is not None and context.password.kind is Kind.HERE:
            found.append(
                f"context {context.name!r} holds its password in clear in {context.file}:"
                " password_env, password_file or password_command would keep it elsewhere"
            )
        values = [*([context.password] if context.password is not None else []), *context.properties.values()]
        found += [
            f"others may read {value.path}, from which context {context.name!r} takes a secret"
            for value in values
            if value.kind is Kind.FILE and readable_by_others(value.path)
        ]
        return tuple(found)

    def _property(self, key: str, value: Value) -> str:
        text = value.found(f"the property {key} of context {self.context.name!r}", self._environ)
        if key.endswith(PATH_ENDS) and text and value.base is not None and not text.startswith("${"):
            return str(value.base / Path(text).expanduser())
        return text

    def _jaas(self, own: Mapping[str, str]) -> str:
        context = self.context
        assert context.username is not None
        what = f"context {context.name!r}"
        if JAAS_KEY in own:
            raise BadInputError(
                f"{what} has username and the property {JAAS_KEY}: which of them counts?",
                next_step="keep one of them",
                code="login-incomplete",
            )
        config = read_properties(context.command_config) if context.command_config is not None else {}
        protocol, mechanism = (
            (own.get(key) or (config[key].value if key in config else "")).strip().upper()
            for key in (_PROTOCOL_KEY, _MECHANISM_KEY)
        )
        if not protocol.startswith("SASL_"):
            said = f"with {_PROTOCOL_KEY}={protocol}" if protocol else f"without {_PROTOCOL_KEY}"
            raise BadInputError(
                f"{what} has a username, and {said} there is no login",
                next_step=f'add "{_PROTOCOL_KEY}" = "SASL_SSL" to [contexts.{context.name}.properties]',
                code="login-incomplete",
            )
        if mechanism not in _MODULES:
            said = f"{_MECHANISM_KEY}={mechanism} takes none" if mechanism else f"no {_MECHANISM_KEY} says what for"
            raise BadInputError(
                f"{what} has a username, and {said}",
                next_step=f'add "{_MECHANISM_KEY}" = "SCRAM-SHA-512" (or PLAIN, SCRAM-SHA-256, OAUTHBEARER)'
                f" to [contexts.{context.name}.properties]",
                code="login-incomplete",
            )
        if context.password is None:
            raise BadInputError(
                f"{what} has a username and no password",
                next_step="add password_env, password_file or password_command to it",
                code="login-incomplete",
            )
        password = context.password.found(f"the password of {what}", self._environ)
        return jaas_config(mechanism, context.username, password, what)


def jaas_config(mechanism: str, username: str, password: str, what: str) -> str:
    """`sasl.jaas.config` for a mechanism that takes a name and a secret, as Kafka's JaasConfig reads it.

    That reads text between quotes as Java's StreamTokenizer does: a backslash takes the next character as it is, but
    for letters and digits, which no backslash goes before here.

    Raises:
        BadInputError: the name or the secret holds a line end or another control character; quotes nothing of it.
    """
    module, name_key, secret_key = _MODULES[mechanism]
    for kind, text in (("username", username), ("password", password)):
        lines = len(text.splitlines())
        if lines > 1:
            raise BadInputError(
                f"the {kind} of {what} has {lines} lines, and a {kind} is one",
                next_step="have only the secret printed, such as with: sh -c 'pass kafka/prod | head -n 1'",
                code="not-a-secret",
            )
        if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
            raise BadInputError(
                f"the {kind} of {what} holds a control character",
                next_step="look at what printed it, or how it is stored",
                code="not-a-secret",
            )
    return f'{module} required {name_key}="{_quoted(username)}" {secret_key}="{_quoted(password)}";'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def given_properties(texts: Sequence[str], flag: str = "--command-property") -> Mapping[str, str]:
    """``key=value`` texts as properties; of a key that comes twice, the last. Raises UsageError, quoting no value."""
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise UsageError(
                f"{flag} has to be KEY=VALUE, a key and a value with = between them",
                next_step=f"write {flag} security.protocol=SSL",
            )
        found[key.strip()] = value
    return found
