"""Which values of client properties may be seen."""

from __future__ import annotations

import pytest

from kelr.config.contexts_file import HIDDEN, shown_value


@pytest.mark.parametrize(
    "key",
    [
        "sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.certificates",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.password",
        "sasl.oauthbearer.config",
        "vendor.api.key",
        "SASL.JAAS.CONFIG",
        "password",
        "",
    ],
)
def test_secrets_and_what_is_not_known_are_hidden(key: str) -> None:
    assert shown_value(key, "s3cret") == HIDDEN


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bootstrap.servers", "a:1,b:2"),
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("ssl.truststore.location", "/etc/ca.pem"),
        ("ssl.endpoint.identification.algorithm", ""),
        ("request.timeout.ms", "5"),
        ("client.id", "x"),
        ("config.providers.env.class", "org.apache.kafka.common.config.provider.EnvVarConfigProvider"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login/token"),
        ("sasl.oauthbearer.client.credentials.client.id", "kelr"),
    ],
)
def test_what_is_known_to_be_harmless_is_shown(key: str, value: str) -> None:
    assert shown_value(key, value) == value


def test_a_login_in_an_address_is_hidden() -> None:
    for url in ("https://ada:s3cret@login/token", "https://login/token?key=s3cret"):
        assert shown_value("sasl.oauthbearer.token.endpoint.url", url) == HIDDEN
