"""Secrets are planted wherever kelr takes any, and looked for in everything that it prints, writes, or can be asked."""

from __future__ import annotations

import base64
import gc
import logging
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.errors import KelrError
from kelr.lab.simulated.lab import SimulatedLab
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.properties import PropertyReader, read_properties
from tests.cluster.secured import free_ports

PLANTED = "PLANTED"
"""In every secret, and in nothing else."""
MODULES = "org.apache.kafka.common.security"
LOGINS = {
    "plain": (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        f'sasl.jaas.config={MODULES}.plain.PlainLoginModule required username="alice" password="{PLANTED}-plain";',
    ),
    "scram over TLS": (
        "security.protocol=SASL_SSL",
        "sasl.mechanism=SCRAM-SHA-512",
        f'sasl.jaas.config={MODULES}.scram.ScramLoginModule required username="alice" password="{PLANTED}-scram";',
        f"ssl.key.password={PLANTED}-key-password",
        f"ssl.keystore.key=-----BEGIN ENCRYPTED PRIVATE KEY----- {PLANTED}-key -----END ENCRYPTED PRIVATE KEY-----",
        f"ssl.keystore.certificate.chain=-----BEGIN CERTIFICATE----- {PLANTED}-chain -----END CERTIFICATE-----",
    ),
    "tokens": (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=OAUTHBEARER",
        f'sasl.jaas.config={MODULES}.oauthbearer.OAuthBearerLoginModule required extension_x="{PLANTED}-extension";',
        f"sasl.oauthbearer.token.endpoint.url=http://me:{PLANTED}-userinfo@127.0.0.1:{{port}}/t?k={PLANTED}-query",
        "sasl.oauthbearer.client.credentials.client.id=alice",
        f"sasl.oauthbearer.client.credentials.client.secret={PLANTED}-client-secret",
    ),
    "unsecured tokens": (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=OAUTHBEARER",
        f"sasl.jaas.config={MODULES}.oauthbearer.OAuthBearerLoginModule required"
        f' unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_x="{PLANTED}-extension";',
    ),
    "what is refused": (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        f'sasl.jaas.config={MODULES}.scram.ScramLoginModule required password="{PLANTED}-other";',
    ),
    "what is broken": (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        f"sasl.jaas.config={PLANTED}-no-module-at-all",
    ),
}
UNUSED = (
    f"ssl.truststore.password={PLANTED}-trust",
    f"sasl.oauthbearer.assertion.private.key.passphrase={PLANTED}-assertion",
    f"schema.registry.basic.auth.user.info={PLANTED}-registry",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedLab]:
    directory = tmp_path_factory.mktemp("planted") / "lab"
    with SimulatedLab.up(SimulatedSpec(topics=1, rules="elr-4.3"), directory, owner_pid=os.getpid()) as made:
        yield made


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("KELR_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("KELR_SECRET", f"{PLANTED}-environment")
    monkeypatch.chdir(tmp_path)


def write(lines: tuple[str, ...], **values: object) -> str:
    file = Path("client.properties")
    file.write_text("".join(f"{line.format(**values) if '{port}' in line else line}\n" for line in lines))
    return str(file)


def nothing_planted(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> str:
    """All that was said, once it was looked through; and every file that was written."""
    told = capfd.readouterr()
    assert PLANTED not in told.out
    assert PLANTED not in told.err
    assert PLANTED not in caplog.text
    for file in Path().rglob("*"):
        if file.is_file() and file.name != "client.properties":
            assert PLANTED.encode() not in file.read_bytes(), file
    return told.out + told.err


@pytest.mark.parametrize("flag", ["", "--verbose", "--debug"])
@pytest.mark.parametrize("login", LOGINS)
def test_a_login_that_fails(
    login: str, flag: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (port,) = free_ports(1)
    config = write((*LOGINS[login], *UNUSED), port=port)
    given = f"ssl.keystore.password={PLANTED}-flag"
    flags = ["-b", f"127.0.0.1:{port}", "--command-config", config, "--command-property", given, "--timeout", "1"]
    code = main(["describe", "orders", *flags, *([flag] if flag else [])])
    assert code in {2, 3}
    said = nothing_planted(capfd, caplog)
    assert "error: " in said
    assert ("Traceback" in said) == (flag == "--debug")


def test_a_server_that_hears_everything_and_says_it_again(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A token endpoint that puts what it was sent into its error, as some do."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                heard = connection.recv(65536).decode()
                pair = base64.b64decode(heard.split("Authorization: Basic ")[1].split("\r\n")[0]).decode()
                body = f'{{"error": "invalid_client", "error_description": "{pair.partition(":")[2]}"}}'
                connection.sendall(f"HTTP/1.1 401 X\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        config = write(LOGINS["tokens"], port=listening.getsockname()[1])
        assert main(["describe", "-b", "127.0.0.1:1", "--command-config", config, "--debug"]) == 3
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)
    assert "invalid_client: ***" in nothing_planted(capfd, caplog)


def test_all_that_a_recovery_writes(
    lab: SimulatedLab, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Snapshot, plan, journal, audit log, report: made with a file full of secrets, which this cluster does not ask."""
    plain = ("security.protocol=PLAINTEXT", *LOGINS["plain"][1:], *LOGINS["scram over TLS"][3:], *UNUSED)
    flags = ["-b", lab.bootstrap_servers, "--command-config", write(plain), "--verbose"]
    secret = f"sasl.jaas.config=x.PlainLoginModule required username='a' password='{PLANTED}-flag';"
    flags += ["--command-property", secret]
    (at, *_) = lab.partitions()
    target = f"{at.topic}:{at.partition}"
    lab.stop(lab.partitions()[at].replicas[0])
    lab.restore()
    lab.wait_partitions(at.topic, "all in sync", lambda state: len(state.isr) == len(state.replicas))
    done = [
        main([*words, *flags])
        for words in (
            ["describe", target],
            ["snapshot", "saved.kelr", target],
            ["recover", "plan", target, "--election-type", "preferred", "--out", "plan.json"],
            ["recover", "apply", "plan.json", "--yes"],
            ["recover", "verify", "plan.json"],
            ["recover", "log"],
            ["doctor", target],
            ["explain", target, "-o", "json"],
        )
    ]
    assert done == [0] * len(done)
    written = {file.suffix for file in Path().rglob("*") if file.is_file()}
    assert {".kelr", ".json", ".jsonl"} <= written
    nothing_planted(capfd, caplog)


def failure(settings: ConnectionSettings, held: list[object]) -> KelrError | None:
    try:
        with LiveSource(settings) as source:
            held.append(source)
            source.cluster()
    except KelrError as error:
        return error
    return None


@pytest.mark.parametrize("login", ["plain", "tokens", "unsecured tokens"])
def test_no_object_on_the_way_shows_a_secret(login: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also with every log of every library turned on, up to where a connection would be."""
    caplog.set_level(logging.DEBUG)
    (port,) = free_ports(1)
    path = Path(write(LOGINS[login], port=port))
    properties = read_properties(path)
    settings = ConnectionSettings.read(f"127.0.0.1:{port}", command_config=path, timeout_s=1)
    held: list[object] = [properties, PropertyReader(properties, origin=str(path)), settings, settings.credentials]
    held += [settings.tokens, settings.tls, *properties.values()]
    error: BaseException | None = failure(settings, held)
    assert isinstance(error, KelrError)
    while error is not None:
        held.append(error)
        error = error.__cause__ or error.__context__
    gc.unfreeze()  # what was there before the tests began is looked at too
    everything = gc.get_objects()
    gc.freeze()
    ours = [one for one in everything if str(type(one).__module__).startswith(("kelr.sources", "kelr.errors"))]
    for one in (*held, *ours):
        assert PLANTED not in repr(one), type(one)
        assert PLANTED not in str(one), type(one)
    assert PLANTED not in caplog.text
