"""What a context becomes: client properties, and with them the configuration of both clients."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.config.context import Context
from kelr.config.contexts_file import contexts_of
from kelr.config.login import Login, given_properties, jaas_config
from kelr.errors import BadInputError, UsageError
from kelr.sources.connection import ConnectionSettings
from kelr.sources.jaas import Credentials


def context(text: str, directory: Path = Path("/etc/kelr")) -> Context:
    return contexts_of(f"[contexts.prod]\n{text}", directory / "contexts.toml").every()[0]


def connection(text: str, *, given: dict[str, str] | None = None, **environ: str) -> ConnectionSettings:
    login = Login(context(text), given, environ=dict(os.environ) | environ)
    return ConnectionSettings.read("k:1", overrides=login.properties)


SASL = """
username = "ada"
password_env = "PW"
[contexts.prod.properties]
"security.protocol" = "{protocol}"
"sasl.mechanism" = "{mechanism}"
"""


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("password", ["secret", 'q"uote\\back', " blank ", "ünï", "$" + "{x}", "a;b=c'd"])
def test_names_and_passwords_in_both_clients(mechanism: str, password: str) -> None:
    settings = connection(SASL.format(protocol="SASL_PLAINTEXT", mechanism=mechanism), PW=password)
    librdkafka = settings.confluent()
    assert settings.security().mechanism == mechanism
    assert settings.credentials == Credentials("ada", password)
    assert (librdkafka["security.protocol"], librdkafka["sasl.mechanism"]) == ("SASL_PLAINTEXT", mechanism)
    assert (librdkafka["sasl.username"], librdkafka["sasl.password"]) == ("ada", password)


MODULES = {
    "PLAIN": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";',
    "SCRAM-SHA-256": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";',
    "SCRAM-SHA-512": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";',
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' clientId="a" clientSecret="b";',
}


@pytest.mark.parametrize("mechanism", MODULES)
def test_login_modules(mechanism: str) -> None:
    assert jaas_config(mechanism, "a", "b", "x") == MODULES[mechanism]


def java_reads(text: str) -> str:
    """What java.io.StreamTokenizer makes of text between double quotes, where no letter or digit is behind a
    backslash."""
    assert text[0] == text[-1] == '"'
    found, at, inner = [], 0, text[1:-1]
    while at < len(inner):
        assert inner[at] != '"'
        if inner[at] == "\\":
            at += 1
            assert inner[at] in '\\"'
        found.append(inner[at])
        at += 1
    return "".join(found)


@given(st.text(st.characters(codec="utf-8", min_codepoint=0x20, exclude_characters="\x7f\x85\u2028\u2029"), min_size=1))
def test_any_password_is_read_as_it_was(password: str) -> None:
    text = jaas_config("PLAIN", "ada", password, "x")
    head, _, tail = text.partition(" password=")
    assert head.endswith('username="ada"')
    assert java_reads(tail.removesuffix(";")) == password
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": text}
    if "${" not in password:
        assert ConnectionSettings.read("k:1", overrides=properties).confluent()["sasl.password"] == password


def test_properties_are_as_they_are_written(tmp_path: Path) -> None:
    for name in ("ca.pem", "key.pem"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    text = """
[contexts.prod.properties]
"security.protocol" = "SSL"
"ssl.truststore.location" = "ca.pem"
"ssl.truststore.type" = "PEM"
"ssl.keystore.location" = "key.pem"
"ssl.keystore.type" = "PEM"
"ssl.key.password" = { command = "printf s3cret" }
"ssl.endpoint.identification.algorithm" = ""
"request.timeout.ms" = 5
"""
    login = Login(context(text, tmp_path), environ=dict(os.environ))
    settings = ConnectionSettings.read("k:1", overrides=login.properties)
    found: dict[str, Any] = settings.confluent()
    assert found["ssl.ca.location"] == str(tmp_path / "ca.pem")
    assert found["ssl.key.location"] == str(tmp_path / "key.pem")
    assert found["ssl.key.password"] == "s3cret"
    assert found["ssl.endpoint.identification.algorithm"] == "none"
    assert settings.tls.key_password == "s3cret"
    assert "request.timeout.ms" in settings.ignored


def test_certificate_and_key_out_of_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_text("CHAIN\n", encoding="utf-8")
    (tmp_path / "tls.key").write_text("KEY\n", encoding="utf-8")
    text = """
[contexts.prod.properties]
"security.protocol" = "SSL"
"ssl.keystore.type" = "PEM"
"ssl.keystore.certificate.chain" = { file = "tls.crt" }
"ssl.keystore.key" = { file = "tls.key" }
"""
    login = Login(context(text, tmp_path), environ={})
    found = ConnectionSettings.read("k:1", overrides=login.properties).confluent()
    assert (found["ssl.certificate.pem"], found["ssl.key.pem"]) == ("CHAIN", "KEY")


def test_the_command_line_wins() -> None:
    text = SASL.format(protocol="SASL_SSL", mechanism="PLAIN")
    settings = connection(text, given={"security.protocol": "SASL_PLAINTEXT"}, PW="x")
    assert settings.security_protocol == "SASL_PLAINTEXT"
    # A jaas config that is given is the whole login: the context's password is not even looked for.
    jaas = jaas_config("PLAIN", "bob", "b", "x")
    settings = connection(text, given={"sasl.jaas.config": jaas, "security.protocol": "SASL_PLAINTEXT"})
    assert settings.confluent()["sasl.username"] == "bob"


def test_the_mechanism_may_stand_in_the_properties_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n", encoding="utf-8")
    login = Login(
        context('command_config = "client.properties"\nusername = "ada"\npassword_env = "PW"', tmp_path),
        environ={"PW": "s3cret"},
    )
    settings = ConnectionSettings.read("k:1", command_config=path, overrides=login.properties)
    assert settings.credentials == Credentials("ada", "s3cret")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('username = "a"\npassword_env = "PW"', "has a username, and without security.protocol there is no login"),
        (
            'username = "a"\npassword_env = "PW"\nproperties = {"security.protocol" = "SSL"}',
            "and with security.protocol=SSL there is no login",
        ),
        (
            'username = "a"\npassword_env = "PW"\nproperties = {"security.protocol" = "SASL_SSL"}',
            "has a username, and no sasl.mechanism says what for",
        ),
        (
            'username = "a"\npassword_env = "PW"\n'
            'properties = {"security.protocol" = "SASL_SSL", "sasl.mechanism" = "GSSAPI"}',
            "and sasl.mechanism=GSSAPI takes none",
        ),
        (
            'username = "a"\nproperties = {"security.protocol" = "SASL_SSL", "sasl.mechanism" = "PLAIN"}',
            "has a username and no password",
        ),
        (
            'username = "a"\npassword_env = "PW"\nproperties = {"sasl.jaas.config" = "x"}',
            "has username and the property sasl.jaas.config",
        ),
    ],
)
def test_a_user_name_that_goes_with_nothing(text: str, words: str) -> None:
    with pytest.raises(BadInputError, match=f"context 'prod' .*{words}|context 'prod' {words}") as caught:
        _ = Login(context(text), environ={"PW": "s3cret"}).properties
    assert "s3cret" not in repr(caught.value)
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("one\ntwo", "has 2 lines, and a password is one"),
        ("a\tb", "control character"),
        ("a\x00b", "control character"),
    ],
)
def test_passwords_that_are_none(password: str, words: str) -> None:
    with pytest.raises(BadInputError, match=f"the password of context 'prod'.*{words}") as caught:
        jaas_config("PLAIN", "ada", password, "context 'prod'")
    assert password not in caught.value.message


def test_secrets_are_looked_for_once_and_late(tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    text = SASL.format(protocol="SASL_PLAINTEXT", mechanism="PLAIN").replace(
        'password_env = "PW"', f"""password_command = "sh -c 'echo x >> {counted}; echo s3cret'" """
    )
    login = Login(context(text), environ=dict(os.environ))
    assert login.keys == ("sasl.jaas.config", "sasl.mechanism", "security.protocol")
    assert login.warnings == ()
    assert "s3cret" not in repr(login)
    assert not counted.exists()
    assert login.properties is login.properties
    assert counted.read_text(encoding="utf-8") == "x\n"
    assert "s3cret" not in repr(login)


def test_warnings(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x", encoding="utf-8")
    secret.chmod(0o644)
    clear = Login(context('username = "a"\npassword = "s3cret"'), environ={})
    (warning,) = clear.warnings
    assert warning.startswith("context 'prod' holds its password in clear in /etc/kelr/contexts.toml")
    assert "s3cret" not in warning
    (warning,) = Login(context('username = "a"\npassword_file = "secret"', tmp_path), environ={}).warnings
    assert warning == f"others may read {secret}, from which context 'prod' takes a secret"
    secret.chmod(0o600)
    assert Login(context('username = "a"\npassword_file = "secret"', tmp_path), environ={}).warnings == ()


def test_servers_out_of_properties() -> None:
    text = '[contexts.prod.properties]\n"bootstrap.servers" = "p:1"'
    assert Login(context(text), environ={}).servers == "p:1"
    assert Login(context(text), {"bootstrap.servers": "q:1"}, environ={}).servers == "q:1"
    assert Login(context(text.replace('"p:1"', '{ env = "X" }')), environ={}).servers is None


def test_properties_of_the_command_line() -> None:
    assert given_properties(["a=b=c", " d = e ", "f="]) == {"a": "b=c", "d": " e ", "f": ""}
    for text in ("novalue", "=x", ""):
        with pytest.raises(UsageError, match="--command-property has to be KEY=VALUE") as caught:
            given_properties([text])
        assert "novalue" not in caught.value.message
