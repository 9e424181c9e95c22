"""Properties that name Java classes: Kafka's own whose work kelr does itself, and others, which cannot run here."""

from __future__ import annotations

from collections.abc import Mapping

from kelr.sources.properties import PropertyReader

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
