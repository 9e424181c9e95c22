"""Connection settings: what a client properties file means, for both clients, and that no secret gets out."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from kelr import __version__
from kelr.errors import BadInputError, UsageError
from kelr.sources.connection import ConnectionSettings, Security, address_text, parse_servers

PASSWORD = 'se"cr=et; \\ 7'
JAAS = 'org.apache.kafka.common.security.{} required username="alice" password="se\\\\"cr=et; \\\\\\\\ 7";'
PLAIN = JAAS.format("plain.PlainLoginModule")
SCRAM = JAAS.format("scram.ScramLoginModule")


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(certificate, key with certificate), self-signed."""
    directory = tmp_path_factory.mktemp("pem")
    certificate, key = directory / "ca.pem", directory / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=60)
    both = directory / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    return certificate, both


def _settings(tmp_path: Path, text: str, servers: str | None = "h:1") -> ConnectionSettings:
    file = tmp_path / "client.properties"
    file.write_text(text)
    return ConnectionSettings.read(servers, command_config=file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h:1", (("h", 1),)),
        ("h", (("h", 9092),)),
        (" a:1 , b:2,a:1,", (("a", 1), ("b", 2))),
        ("[::1]:9093", (("::1", 9093),)),
        ("[fe80::1%eth0]", (("fe80::1%eth0", 9092),)),
        ("SASL_SSL://h:1,PLAINTEXT://i", (("h", 1), ("i", 9092))),
    ],
)
def test_servers(text: str, expected: tuple[tuple[str, int], ...]) -> None:
    assert parse_servers(text) == expected


@pytest.mark.parametrize("text", ["", ",", "h:", "h:x", "h:0", "h:65536", "::1:9092", "h:1:2", "a b:1", "h:٣", "[h"])
def test_what_is_no_server(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_servers(text)
    assert caught.value.next_step


def test_addresses_print_as_they_are_written() -> None:
    assert [address_text("h", 1), address_text("::1", 2)] == ["h:1", "[::1]:2"]


def test_plaintext_without_a_file() -> None:
    settings = ConnectionSettings.read("h:1,i:2", timeout_s=5)
    assert settings.client_id == f"kelr/{__version__}"
    assert settings.security() == Security(None, None, None)
    assert settings.bootstrap_servers == (("h", 1), ("i", 2))
    assert settings.confluent()["bootstrap.servers"] == "h:1,i:2"


def test_servers_of_the_file_stand_in_for_the_flag(tmp_path: Path) -> None:
    assert _settings(tmp_path, "bootstrap.servers=f:3", None).bootstrap_servers == (("f", 3),)
    assert _settings(tmp_path, "bootstrap.servers=f:3", "h:1").bootstrap_servers == (("h", 1),)
    with pytest.raises(UsageError, match="no cluster"):
        _settings(tmp_path, "", None)


@pytest.mark.parametrize("timeout_s", [0, -1])
def test_no_time_is_refused(timeout_s: float) -> None:
    with pytest.raises(UsageError, match="timeout"):
        ConnectionSettings.read("h:1", timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("mechanism", "jaas"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM), ("plain", PLAIN)]
)
def test_sasl_reaches_both_clients_and_no_repr(tmp_path: Path, mechanism: str, jaas: str) -> None:
    settings = _settings(
        tmp_path, f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n"
    )
    own, confluent = settings.security(), settings.confluent()
    assert (own.mechanism, confluent["sasl.mechanism"]) == (mechanism.upper(), mechanism.upper())
    assert own.login is not None
    first = next(own.login("h"))
    assert first.startswith(b"n,,n=alice,r=") or first == f"\0alice\0{PASSWORD}".encode()
    assert settings.credentials is not None
    assert (settings.credentials.username, confluent["sasl.username"]) == ("alice", "alice")
    assert (settings.credentials.password, confluent["sasl.password"]) == (PASSWORD, PASSWORD)
    assert "cr=et" not in repr(settings) + repr(own)
    assert "alice" in repr(settings)


def test_jaas_over_several_lines_with_single_quotes(tmp_path: Path) -> None:
    text = (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
        "  username='bob' \\\n  password='p w';\n"
    )
    credentials = _settings(tmp_path, text).credentials
    assert credentials is not None
    assert (credentials.username, credentials.password) == ("bob", "p w")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("security.protocol=TLS", r"line 1: security.protocol=TLS is not among"),
        ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism is not set, which means GSSAPI"),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=AWS_MSK_IAM",
            "line 2: sasl.mechanism=AWS_MSK_IAM is not among",
        ),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN", "sasl.jaas.config is missing"),
        (f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={SCRAM}", "line 3: .* is not for"),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            'sasl.jaas.config=a.b.PlainLoginModule required password="hush";',
            "line 3: sasl.jaas.config has no username",
        ),
        ("security.protocol=SSL\nssl.truststore.location=/nowhere/x.jks", "line 2: .* is not a file"),
        ("security.protocol=SSL\nssl.ca.location=/nowhere/ca.pem", "line 2: ssl.ca.location names"),
        ("security.protocol=SSL\nssl.keystore.key=abc", "belong together"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_without_secrets(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message) as caught:
        _settings(tmp_path, text)
    assert str(tmp_path) in str(caught.value)
    assert caught.value.next_step
    assert "hush" not in str(caught.value) + str(caught.value.next_step)


@pytest.mark.parametrize(
    ("kind", "store", "words"),
    [
        ("", "truststore", "keytool -list -rfc -keystore"),
        ("JKS", "keystore", "keytool -importkeystore"),
        ("PKCS12", "keystore", "keytool -importkeystore"),
    ],
)
def test_java_stores_are_refused_with_the_way_to_convert_them(
    tmp_path: Path, kind: str, store: str, words: str
) -> None:
    file = tmp_path / "store.bin"
    file.write_bytes(b"\xfe\xed\xfe\xed")
    text = f"security.protocol=SSL\nssl.{store}.location={file}\n" + (f"ssl.{store}.type={kind}\n" if kind else "")
    with pytest.raises(BadInputError, match="only Java reads") as caught:
        _settings(tmp_path, text)
    assert words in str(caught.value.next_step)
    assert f"ssl.{store}.type=PEM" in str(caught.value.next_step)


def test_pem_files_reach_both_clients(tmp_path: Path, pem: tuple[Path, Path]) -> None:
    certificate, both = pem
    settings = _settings(
        tmp_path,
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={certificate}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={both}\n",
    )
    context = settings.security().tls
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1
    confluent = settings.confluent()
    assert confluent["ssl.ca.location"] == str(certificate)
    assert confluent["ssl.certificate.location"] == confluent["ssl.key.location"] == str(both)


def test_pem_text_in_the_file_reaches_both_clients(tmp_path: Path, pem: tuple[Path, Path]) -> None:
    certificate, both = pem

    def inline(path: Path) -> str:
        return path.read_text().strip().replace("\n", "\\n")

    settings = _settings(
        tmp_path,
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.certificates={inline(certificate)}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.certificate.chain={inline(certificate)}\n"
        f"ssl.keystore.key={inline(both).split('-----BEGIN CERT')[0]}\n",
    )
    assert len(settings.security().tls.get_ca_certs()) == 1
    assert "BEGIN CERTIFICATE" in settings.confluent()["ssl.ca.pem"]
    assert "PRIVATE KEY" in settings.confluent()["ssl.key.pem"]
    assert "PRIVATE" not in repr(settings)


def test_what_is_no_pem_is_said(tmp_path: Path) -> None:
    garbage = tmp_path / "ca.pem"
    garbage.write_text("not a certificate")
    settings = _settings(tmp_path, f"security.protocol=SSL\nssl.ca.location={garbage}\n")
    with pytest.raises(BadInputError, match="cannot be used"):
        settings.security()


def test_an_empty_identification_algorithm_turns_the_host_name_check_off(tmp_path: Path) -> None:
    on = _settings(tmp_path, "security.protocol=SSL\n")
    off = _settings(tmp_path, "security.protocol=SSL\nssl.endpoint.identification.algorithm=\n")
    assert on.security().tls.check_hostname
    assert not off.security().tls.check_hostname
    assert off.security().tls.verify_mode is ssl.CERT_REQUIRED
    assert off.confluent()["ssl.endpoint.identification.algorithm"] == "none"


def test_keys_that_mean_nothing_here_are_named(tmp_path: Path) -> None:
    settings = _settings(tmp_path, "retries=3\nclient.dns.lookup=x\nsecurity.protocol=PLAINTEXT\nclient.id=y\n")
    assert settings.ignored == ("client.dns.lookup", "retries")


def test_properties_of_the_command_line_win(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    settings = ConnectionSettings.read("h:1", command_config=file, overrides={"security.protocol": "plaintext"})
    assert settings.security_protocol == "PLAINTEXT"


def test_librdkafka_takes_every_property(tmp_path: Path, pem: tuple[Path, Path]) -> None:
    """A property that librdkafka does not know, or material that it cannot load, raises here."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    certificate, both = pem
    texts = [
        f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={SCRAM}\nssl.ca.location={certificate}\n",
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={certificate}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={both}\nssl.endpoint.identification.algorithm=\n",
    ]
    for text in texts:
        AdminClient(_settings(tmp_path, text, "127.0.0.1:1").confluent())
