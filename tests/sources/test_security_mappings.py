"""Java client properties, and what each of the two Kafka clients gets for them."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kelr.errors import BadInputError, UnsupportedError
from kelr.sources.connection import ConnectionSettings
from kelr.sources.jaas import Credentials
from tests.sources import fake_gssapi

_SECURITY = "org.apache.kafka.common.security"
PLAIN = f'{_SECURITY}.plain.PlainLoginModule required username="alice" password="hush-pw";'
SCRAM = f'{_SECURITY}.scram.ScramLoginModule required username="alice" password="hush-pw";'
OAUTH = f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true"
URL = "sasl.oauthbearer.token.endpoint.url"
ID, SECRET = "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret"
HANDLER = "sasl.login.callback.handler.class"

USER = Credentials("alice", "hush-pw")
TABLE: Mapping[str, tuple[list[str], str | None, Credentials | None, dict[str, Any]]] = {
    "plaintext": ([], None, None, {"security.protocol": "PLAINTEXT"}),
    "plain": (
        ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.jaas.config={PLAIN}"],
        "PLAIN",
        USER,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "hush-pw",
        },
    ),
    "scram-256": (
        ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256", f"sasl.jaas.config={SCRAM}"],
        "SCRAM-SHA-256",
        USER,
        {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "alice", "sasl.password": "hush-pw"},
    ),
    "scram-512 over TLS, no host name check": (
        [
            "security.protocol=SASL_SSL",
            "sasl.mechanism=SCRAM-SHA-512",
            f"sasl.jaas.config={SCRAM}",
            "ssl.endpoint.identification.algorithm=",
        ],
        "SCRAM-SHA-512",
        USER,
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": "hush-pw",
            "ssl.endpoint.identification.algorithm": "none",
        },
    ),
    "unsecured tokens": (
        [
            "security.protocol=SASL_PLAINTEXT",
            "sasl.mechanism=OAUTHBEARER",
            f'sasl.jaas.config={OAUTH} unsecuredLoginStringClaim_sub="alice";',
        ],
        "OAUTHBEARER",
        None,
        {"sasl.mechanism": "OAUTHBEARER"},
    ),
}


def read(tmp_path: Path, *lines: str) -> ConnectionSettings:
    file = tmp_path / "client.properties"
    file.write_text("\n".join(lines))
    return ConnectionSettings.read("h:1", command_config=file)


@pytest.mark.parametrize("case", TABLE)
def test_both_clients_get_the_same(tmp_path: Path, case: str) -> None:
    lines, mechanism, user, confluent = TABLE[case]
    settings = read(tmp_path, *lines)
    own, other = settings.security(), settings.confluent()
    assert own.mechanism == mechanism
    assert (own.tls is not None) == settings.security_protocol.endswith("SSL")
    assert settings.credentials == user
    assert {key: other[key] for key in confluent} == confluent
    assert settings.ignored == ()
    assert "hush" not in repr(settings)


def test_tls_context_and_librdkafka_agree_on_the_host_name(tmp_path: Path) -> None:
    for value, checks in (("https", True), ("", False)):
        settings = read(tmp_path, "security.protocol=SSL", f"ssl.endpoint.identification.algorithm={value}")
        context = settings.security().tls
        assert (context.check_hostname, context.verify_mode) == (checks, ssl.CERT_REQUIRED)
        algorithm = settings.confluent()["ssl.endpoint.identification.algorithm"]
        assert algorithm == ("https" if checks else "none")


def test_an_unsecured_token_reaches_both_clients(tmp_path: Path) -> None:
    settings = read(tmp_path, *TABLE["unsecured tokens"][0])
    login = settings.security().login
    value, end_s, principal, extensions = settings.confluent()["oauth_cb"]("")
    assert login is not None
    assert next(login("h")) == f"n,,\x01auth=Bearer {value}\x01\x01".encode()
    assert (principal, extensions) == ("alice", {})
    assert end_s > 0


@pytest.mark.parametrize("lines", [("sasl.mechanism=GSSAPI",), ()], ids=["named", "by default"])
def test_kerberos_is_for_kelrs_own_connections_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]
) -> None:
    tickets = fake_gssapi.installed(monkeypatch)
    settings = read(
        tmp_path,
        "security.protocol=SASL_PLAINTEXT",
        *lines,
        "sasl.kerberos.service.name=broker",
        f"sasl.jaas.config={KERBEROS};",
    )
    assert (settings.security().mechanism, settings.kerberos_service) == ("GSSAPI", "broker")
    assert [name.partition("@")[0] for name in tickets.asked] == ["broker"]
    # The wheels of confluent-kafka are built without libsasl2.
    assert not settings.librdkafka_logs_in
    with pytest.raises(UnsupportedError, match="producing needs librdkafka") as raised:
        settings.confluent()
    assert raised.value.code == "librdkafka-without-kerberos"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"q\nw\tz"', "q\nw\tz"),
        (r'"\101\7x\400"', "A\x07x 0"),
        (r"""'s\"i\nq'""", 's"i\nq'),
        (r'"\q\\e"', r"q\e"),
        (r'"a\"b;c=d"', 'a"b;c=d'),
        ("bare-pw", "bare-pw"),
    ],
)
def test_a_password_in_quotes_is_what_java_takes_it_for(tmp_path: Path, written: str, meant: str) -> None:
    """What java.io.StreamTokenizer made of the same text, set up as Kafka's JaasConfig does it."""
    module = f"{_SECURITY}.plain.PlainLoginModule"
    text = f"{module} required username=a password={written};".replace("\\", "\\\\")
    lines = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", f"sasl.jaas.config={text}")
    credentials = read(tmp_path, *lines).credentials
    assert credentials is not None
    assert credentials.password == meant


def test_kerberos_without_its_package_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(UnsupportedError, match="package gssapi"):
        read(tmp_path, "security.protocol=SASL_SSL", f'sasl.jaas.config={KERBEROS} serviceName="kafka";')


@pytest.mark.parametrize(
    ("lines", "words", "step"),
    [
        ((f"sasl.jaas.config={KERBEROS};", "sasl.mechanism=GSSAPI"), "sasl.kerberos.service.name is not set", "=kafka"),
        (
            (
                'sasl.jaas.config=x.Krb5LoginModule required useKeyTab=true keyTab="/k.tab" principal="me@X"'
                ' serviceName="kafka";',
            ),
            "wants the key table /k.tab",
            "kinit -kt /k.tab me@X",
        ),
        ((f"sasl.jaas.config={PLAIN}",), "sasl.mechanism is not set, which means GSSAPI", "SCRAM-SHA-512"),
        (
            (f"sasl.jaas.config={SCRAM[:-1]} tokenauth=true;", "sasl.mechanism=SCRAM-SHA-256"),
            "a delegation token",
            "the password",
        ),
        (("sasl.mechanism=OAUTHBEARER", f"sasl.jaas.config={OAUTH};"), f"needs {URL}", ID),
        (("sasl.mechanism=OAUTHBEARER", f"sasl.jaas.config={OAUTH};", f"{URL}=idp/token"), "is no address", "https://"),
        (
            ("sasl.mechanism=OAUTHBEARER", f"sasl.jaas.config={OAUTH};", f"{URL}=http://idp/t"),
            f"{ID} is not set, nor clientId",
            ID,
        ),
        (
            ("sasl.mechanism=OAUTHBEARER", f'sasl.jaas.config={OAUTH} clientId="me";', f"{URL}=http://idp/t"),
            f"{SECRET} is not set, nor clientSecret",
            SECRET,
        ),
        (
            ("sasl.mechanism=OAUTHBEARER", f'sasl.jaas.config={OAUTH} unsecuredLoginStringClaim_name="x";'),
            "there would be no login",
            "unsecuredLoginStringClaim_sub",
        ),
        (
            (
                "sasl.mechanism=OAUTHBEARER",
                f'sasl.jaas.config={OAUTH} unsecuredLoginStringClaim_sub="x" unsecuredLoginLifetimeSeconds="soon";',
            ),
            "unsecuredLoginLifetimeSeconds in sasl.jaas.config is not a number",
            "digits",
        ),
        (
            (
                "sasl.mechanism=OAUTHBEARER",
                f"sasl.jaas.config={OAUTH};",
                f"{URL}=https://idp/t",
                "sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.x.JwtBearerJwtRetriever",
            ),
            "JwtBearerJwtRetriever runs in Java alone",
            "ClientCredentialsJwtRetriever",
        ),
        (
            (
                "sasl.mechanism=OAUTHBEARER",
                f'sasl.jaas.config={OAUTH} clientId="me" clientSecret="hush";',
                f"{URL}=https://idp/t",
                "sasl.login.read.timeout.ms=long",
            ),
            "no number of milliseconds",
            "digits",
        ),
        (
            ("sasl.mechanism=PLAIN", f"sasl.jaas.config={PLAIN}", f"{HANDLER}=com.acme.VaultHandler"),
            "com.acme.VaultHandler is a Java class that only Java runs: it would find the credentials",
            "sasl.jaas.config",
        ),
        (
            ("sasl.mechanism=PLAIN", f"sasl.jaas.config={PLAIN}", "sasl.login.class=com.acme.Login"),
            "it would do the login",
            "sasl.jaas.config",
        ),
        (("ssl.engine.factory.class=com.acme.Hsm", "security.protocol=SSL"), "hold the keys", "PEM form"),
    ],
)
def test_what_is_refused_is_named_with_its_line_and_the_way_out(
    tmp_path: Path, lines: tuple[str, ...], words: str, step: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        read(tmp_path, "security.protocol=SASL_PLAINTEXT", *lines)
    said = str(caught.value)
    assert words in said
    assert step in str(caught.value.next_step)
    assert str(tmp_path / "client.properties") in said
    assert "hush" not in said + str(caught.value.next_step)


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    ],
)
def test_kafkas_own_handlers_are_no_obstacle(tmp_path: Path, name: str) -> None:
    lines = TABLE["unsecured tokens"][0]
    assert read(tmp_path, *lines, f"{HANDLER}={name}").ignored == ()


def test_what_does_not_matter_to_the_protocol_is_not_refused(tmp_path: Path) -> None:
    settings = read(tmp_path, f"{HANDLER}=com.acme.Handler", "ssl.engine.factory.class=com.acme.Hsm", "retries=3")
    assert settings.ignored == ("retries",)
