"""Key stores in Java's forms: read where `cryptography` is there, else refused with commands that really convert."""

from __future__ import annotations

import importlib.util
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from kelr.errors import BadInputError
from kelr.sources.connection import ConnectionSettings

PASSWORD = "hush-store"
HAS_CRYPTOGRAPHY = importlib.util.find_spec("cryptography") is not None
needs_java = pytest.mark.skipif(shutil.which("keytool") is None, reason="there is no keytool on the PATH")


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `key.pem` and `cert.pem`."""
    directory = tmp_path_factory.mktemp("stores")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kelr", "-days", "2"]
    run([*command, "-keyout", "key.pem", "-out", "cert.pem"], directory)
    pack = ["openssl", "pkcs12", "-export", "-in", "cert.pem", "-inkey", "key.pem", "-name", "kelr", "-out", "own.p12"]
    run([*pack, "-passout", f"pass:{PASSWORD}"], directory)
    return directory


def run(command: list[str], directory: Path, *, entered: str | None = None) -> None:
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=60, text=True, input=entered)


def read(tmp_path: Path, *lines: str) -> ConnectionSettings:
    file = tmp_path / "client.properties"
    file.write_text("\n".join(("security.protocol=SSL", *lines)))
    return ConnectionSettings.read("h:1", command_config=file)


def steps(error: BadInputError) -> tuple[list[str], list[str]]:
    """The commands of a next step, and the properties that it says to set."""
    text = str(error.next_step)
    commands, _, rest = text.removeprefix("convert it once: ").partition("; then set ")
    return commands.split("; then "), rest.split(", and ", maxsplit=1)[0].split(" and ")


@pytest.mark.skipif(HAS_CRYPTOGRAPHY, reason="cryptography reads it")
def test_pkcs12_is_refused_with_commands_that_convert_it(pems: Path, tmp_path: Path) -> None:
    store = tmp_path / "own.p12"
    store.write_bytes((pems / "own.p12").read_bytes())
    with pytest.raises(BadInputError, match="the Python package cryptography, which reads it") as caught:
        read(tmp_path, f"ssl.keystore.location={store}", "ssl.keystore.type=PKCS12")
    (command,), settings = steps(caught.value)
    words = command.split()
    assert words[:2] == ["openssl", "pkcs12"]
    # As typed, but for the prompts, which here get their answers beforehand.
    run([*words, "-passin", f"pass:{PASSWORD}", "-passout", "pass:hush-pem"], tmp_path)
    converted = read(tmp_path, *settings, "ssl.key.password=hush-pem")
    assert isinstance(converted.security().tls, ssl.SSLContext)
    assert PASSWORD not in f"{caught.value} {caught.value.next_step}"


@needs_java
@pytest.mark.longer
def test_a_java_trust_store_is_refused_with_a_command_that_converts_it(pems: Path, tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    add = ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(pems / "cert.pem"), "-keystore"]
    run([*add, str(store), "-storetype", "JKS", "-storepass", PASSWORD], tmp_path)
    with pytest.raises(BadInputError, match="a store of type JKS, which only Java reads") as caught:
        read(tmp_path, f"ssl.truststore.location={store}", f"ssl.truststore.password={PASSWORD}")
    (command,), settings = steps(caught.value)
    subprocess.run(
        f"{command.replace('keytool', f'keytool -storepass {PASSWORD}', 1)}",
        shell=True,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=60,
    )
    trusted = read(tmp_path, *settings).security().tls.get_ca_certs()
    assert [dict(pair for part in one["subject"] for pair in part)["commonName"] for one in trusted] == ["kelr"]


@needs_java
@pytest.mark.longer
def test_a_java_key_store_is_refused_with_commands_that_convert_it(pems: Path, tmp_path: Path) -> None:
    store = tmp_path / "own.jks"
    move = ["keytool", "-importkeystore", "-srckeystore", str(pems / "own.p12"), "-srcstorepass", PASSWORD]
    run([*move, "-destkeystore", str(store), "-deststoretype", "JKS", "-deststorepass", PASSWORD], tmp_path)
    with pytest.raises(BadInputError, match="only Java reads") as caught:
        read(tmp_path, f"ssl.keystore.location={store}")
    (first, second), settings = steps(caught.value)
    run([*first.split(), "-srcstorepass", PASSWORD, "-deststorepass", PASSWORD], tmp_path)
    run([*second.split(), "-passin", f"pass:{PASSWORD}", "-passout", "pass:hush-pem"], tmp_path)
    converted = read(tmp_path, *settings, "ssl.key.password=hush-pem")
    assert isinstance(converted.security().tls, ssl.SSLContext)


def test_pem_under_another_type_is_named(pems: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"is a PEM file, and ssl\.truststore\.type is JKS") as caught:
        read(tmp_path, f"ssl.truststore.location={pems / 'cert.pem'}")
    assert caught.value.next_step == "write ssl.truststore.type=PEM"


@pytest.mark.skipif(not HAS_CRYPTOGRAPHY, reason="cryptography is not installed")
@pytest.mark.parametrize("kind", ["PKCS12", "JKS", ""])
def test_pkcs12_reaches_both_clients(pems: Path, tmp_path: Path, kind: str) -> None:
    """Also where the type says JKS, or nothing: Java opens it all the same."""
    lines = [
        line
        for store in ("keystore", "truststore")
        for line in (
            f"ssl.{store}.location={pems / 'own.p12'}",
            f"ssl.{store}.password={PASSWORD}",
            *([f"ssl.{store}.type={kind}"] if kind else []),
        )
    ]
    settings = read(tmp_path, *lines)
    assert len(settings.security().tls.get_ca_certs()) == 1
    config = settings.confluent()
    assert config["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----")
    assert config["ssl.certificate.pem"].count("BEGIN CERTIFICATE") == 1
    assert config["ssl.ca.pem"].count("BEGIN CERTIFICATE") == 1
    assert "PRIVATE" not in repr(settings)


@pytest.mark.skipif(not HAS_CRYPTOGRAPHY, reason="cryptography is not installed")
def test_a_wrong_store_password_is_said(pems: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="wrong password, or not a PKCS12 file") as caught:
        read(tmp_path, f"ssl.keystore.location={pems / 'own.p12'}", "ssl.keystore.password=hush-other")
    assert "hush" not in f"{caught.value} {caught.value.next_step}"
