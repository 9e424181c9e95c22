"""What `sasl.jaas.config` holds: a login module and its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kelr.sources.properties import Property, PropertyReader

# Properties that name Java classes: Kafka's own whose work kelr does itself, and others, which cannot run here.


_OWN: Mapping[str, tuple[str, ...]] = {
    "sasl.login.callback.handler.class": (
        "OAuthBearerLoginCallbackHandler",
        "OAuthBearerUnsecuredLoginCallbackHandler",
    ),
    "sasl.client.callback.handler.class": ("SaslClientCallbackHandler", "OAuthBearerSaslClientCallbackHandler"),
    "sasl.login.class": ("DefaultLogin", "KerberosLogin", "OAuthBearerRefreshingLogin"),
    "ssl.engine.factory.class": ("DefaultSslEngineFactory",),
}
_WHY: Mapping[str, str] = {
    "sasl.login.callback.handler.class": "it would find the credentials",
    "sasl.client.callback.handler.class": "it would give the credentials",
    "sasl.login.class": "it would do the login",
    "ssl.engine.factory.class": "it would hold the keys and decide whom to trust",
}
_INSTEAD: Mapping[str, str] = {
    "ssl.engine.factory.class": "give the keys as ssl.keystore.* and ssl.truststore.* in PEM form",
}
SASL_KEYS = frozenset(key for key in _OWN if key.startswith("sasl."))
SSL_KEYS = frozenset(key for key in _OWN if key.startswith("ssl."))


def check_classes(reader: PropertyReader, *, sasl: bool, tls: bool) -> None:
    """Raises BadInputError for a class that is not Kafka's own: leaving it out would be another login, or none."""
    for key in sorted((SASL_KEYS if sasl else frozenset()) | (SSL_KEYS if tls else frozenset())):
        name = reader.text(key)
        if name is not None and name.rsplit(".", 1)[-1] not in _OWN[key]:
            raise reader.error(
                key,
                f"{key}={name} is a Java class that only Java runs: {_WHY[key]}",
                next_step=_INSTEAD.get(key, "write the credentials in sasl.jaas.config, and leave this property out"),
            )


KEY = "sasl.jaas.config"
MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
    "GSSAPI": "Krb5LoginModule",
}
"""Mechanism to the login module that is for it, without its package."""
_OPTION = re.compile(
    r"""(?P<name>[A-Za-z0-9_.]+)\s*=\s*"""
    r"""(?:"(?P<double>(?:\\.|[^"\\])*)"|'(?P<single>(?:\\.|[^'\\])*)'|(?P<bare>[^\s;"']+))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and its password; the password is in no repr."""

    username: str
    password: str = field(repr=False)


def credentials(reader: PropertyReader, mechanism: str) -> Credentials:
    """What `sasl.jaas.config` holds for a mechanism with passwords.

    Raises:
        BadInputError: it is missing, is for another login module, or lacks one of the two; never quotes the value.
    """
    options = jaas_options(reader, mechanism)
    if options.get("tokenauth", "false").lower() == "true":
        raise reader.error(
            KEY,
            f"{KEY} has tokenauth=true: a delegation token, which neither Kafka client of kelr can log in with",
            next_step="log in as the user, with the password",
        )
    missing = [key for key in ("username", "password") if not options.get(key)]
    if missing:
        raise reader.error(KEY, f"{KEY} has no {' and no '.join(missing)}", next_step=f"write {_example(mechanism)}")
    return Credentials(options["username"], options["password"])


def jaas_options(reader: PropertyReader, mechanism: str) -> Mapping[str, str]:
    """The options of the login module, which may be secrets.

    Raises:
        BadInputError: `sasl.jaas.config` is missing, or is for another login module; never quotes the value.
    """
    text, module = reader.secret(KEY), MODULES[mechanism]
    if text is None or not text.strip():
        raise reader.error(KEY, f"{KEY} is missing, and {mechanism} needs it", next_step=f"write {_example(mechanism)}")
    name = text.split(maxsplit=1)[0].rsplit(".", 1)[-1].removesuffix(";")
    if name != module:
        raise reader.error(
            KEY, f"{KEY} is not for {module}, which {mechanism} uses", next_step=f"write {_example(mechanism)}"
        )
    return {match["name"]: _value(match) for match in _OPTION.finditer(text)}


def as_reader(options: Mapping[str, str], reader: PropertyReader) -> PropertyReader:
    """Options read as properties, such as the `ssl.*` ones of a token endpoint; errors name the file."""
    return PropertyReader({key: Property(value, 0) for key, value in options.items()}, origin=reader.origin)


def _example(mechanism: str) -> str:
    module = MODULES[mechanism]
    options = {
        "OAUTHBEARER": 'clientId="..." clientSecret="..."',
        "GSSAPI": 'useTicketCache=true serviceName="kafka"',
    }.get(mechanism, 'username="..." password="..."')
    package = "com.sun.security.auth.module" if mechanism == "GSSAPI" else "org.apache.kafka.common.security..."
    return f"{KEY}={package}{'.' if mechanism == 'GSSAPI' else ''}{module} required {options};"


def _value(match: re.Match[str]) -> str:
    """As Kafka's JaasConfig has it, by java.io.StreamTokenizer: escapes in quotes of either kind, octal ones too."""
    quoted = match["double"] if match["double"] is not None else match["single"]
    return match["bare"] if quoted is None else _ESCAPE.sub(_unescaped, quoted)


def _unescaped(match: re.Match[str]) -> str:
    text = match[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _CONTROLS.get(text, text)
