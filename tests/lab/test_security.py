"""The files of a lab with security, without a cluster."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest

from kelr.commands.lab import MechanismChoice, SecurityChoice
from kelr.commands.main import main
from kelr.errors import LabError, UsageError
from kelr.lab import LabSpec
from kelr.lab.security.access import Access, Authority
from kelr.lab.security.kinds import DEFAULT_MECHANISM, Mechanism, Security
from kelr.sources.connection import ConnectionSettings

OWN, CLIENTS = {100: 20100, 1: 20001}, {100: 21100, 1: 21001}


def access(
    tmp_path: Path, security: Security, mechanism: Mechanism | None = None, *, authorizer: bool = True
) -> Access:
    return Access(security, mechanism, authorizer, tmp_path)


def test_the_command_names_what_there_is() -> None:
    assert [str(one) for one in SecurityChoice] == [str(one) for one in Security]
    assert [str(one) for one in MechanismChoice] == [str(one) for one in Mechanism]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"security": "tls"}, "none of plaintext, ssl, mtls"),
        ({"security": "sasl_ssl", "sasl_mechanism": "GSSAPI"}, "none of PLAIN, SCRAM-SHA-256"),
        ({"security": "ssl", "sasl_mechanism": "PLAIN"}, "there is no login"),
    ],
)
def test_what_does_not_go_together_is_refused(wrong: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        LabSpec(**wrong)  # type: ignore[arg-type]
    assert caught.value.next_step


def test_a_simulated_lab_has_no_security(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "up", "--simulated", "--security", "ssl"]) == 2
    assert "a simulated lab has no --security" in capsys.readouterr().err


def test_a_login_has_a_mechanism_and_nothing_else_has() -> None:
    assert LabSpec(security="sasl_ssl").mechanism is DEFAULT_MECHANISM
    assert LabSpec(security="sasl_plaintext", sasl_mechanism="PLAIN").mechanism is Mechanism.PLAIN
    assert LabSpec(security="mtls").mechanism is None


def test_without_security_nothing_is_made(tmp_path: Path) -> None:
    plain = access(tmp_path, Security.PLAINTEXT, authorizer=False)
    assert plain.prepare("h:1") == {}
    assert plain.node_properties(OWN, {}, {}) == {100: {}, 1: {}}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mechanism", [Mechanism.PLAIN, Mechanism.SCRAM_512])
def test_passwords_are_random_and_for_their_owner_alone(tmp_path: Path, mechanism: Mechanism) -> None:
    made = access(tmp_path, Security.SASL_PLAINTEXT, mechanism)
    passwords = made.prepare("h:1")
    assert sorted(passwords) == ["guest", "kelr"]
    assert len({*passwords.values()}) == 2
    for user, name in (("kelr", "client.properties"), ("guest", "guest.properties")):
        file = tmp_path / name
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        login = ConnectionSettings.read(None, command_config=file).credentials
        assert login is not None
        assert (login.username, login.password) == (user, passwords[user])
    properties = made.node_properties(OWN, CLIENTS, passwords)
    assert properties[1]["listeners"] == "PLAINTEXT://127.0.0.1:20001,CLIENT://127.0.0.1:21001"
    assert properties[100]["controller.listener.names"] == "CONTROLLER,CLIENT"
    assert properties[1]["super.users"] == "User:ANONYMOUS;User:kelr"
    told = " ".join(properties[1].values())
    assert all((word in told) == (mechanism is Mechanism.PLAIN) for word in passwords.values())
    assert len(made.scram_arguments(passwords)) == (0 if mechanism is Mechanism.PLAIN else 4)


def test_certificates_that_both_sides_can_use(tmp_path: Path) -> None:
    made = access(tmp_path, Security.MTLS)
    made.prepare("h:1")
    for name in ("client.properties", "guest.properties"):
        context = ConnectionSettings.read(None, command_config=tmp_path / name).security().tls
        assert isinstance(context, ssl.SSLContext)
        (trusted,) = context.get_ca_certs()
        assert trusted["subject"] == ((("commonName", "kelr lab authority"),),)
    secret = [file for file in (tmp_path / "security").iterdir() if "PRIVATE KEY" in file.read_text()]
    assert len(secret) == 7
    assert {stat.S_IMODE(file.stat().st_mode) for file in secret} == {0o600}
    broker = made.node_properties(OWN, CLIENTS, {})[1]
    assert broker["listener.name.client.ssl.client.auth"] == "required"


def test_without_openssl_it_is_said_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="needs openssl") as caught:
        Authority.make(tmp_path / "ca")
    assert "sasl_plaintext" in (caught.value.next_step or "")
    assert not (tmp_path / "ca").exists()


def test_a_directory_with_an_odd_name(tmp_path: Path) -> None:
    odd = tmp_path / "läb = 1"
    odd.mkdir()
    made = access(odd, Security.SSL)
    made.prepare("h:1")
    text = (odd / "client.properties").read_text()
    assert text.isascii()  # Java reads it as Latin 1
    assert (
        ConnectionSettings.read(None, command_config=odd / "client.properties").tls.ca_path == odd / "security/ca.pem"
    )
