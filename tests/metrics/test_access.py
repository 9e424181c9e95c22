"""Who asks: secrets from files and the environment, and TLS with a real server on this machine."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from kelr.errors import BadInputError, UsageError
from kelr.metrics.endpoints import Access, Kind, endpoint_of, read_access
from kelr.metrics.reading import Heard, read_all

OPENSSL = shutil.which("openssl")


def access(environ: dict[str, str] | None = None, **given: object) -> Access:
    """The access that these options give."""
    options = dict.fromkeys(("user", "password_file", "token_file", "ca", "certificate", "key"))
    return read_access(**{**options, **given}, environ=environ or {})  # type: ignore[arg-type]


def test_where_secrets_come_from(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("  s3cr3t\n")
    environ = {"KELR_METRICS_TOKEN": "t", "KELR_METRICS_PASSWORD": "p"}
    assert access().headers() == {}
    assert access(token_file=secret).headers() == {"Authorization": "Bearer s3cr3t"}
    assert access(environ).headers() == {"Authorization": "Bearer t"}
    assert access(environ).basic() is None
    assert access(environ, token_file=secret).token == "s3cr3t"
    named = access(environ, user="ann")
    assert (named.basic(), named.headers()) == (("ann", "p"), {})
    assert access(user="ann", password_file=secret).basic() == ("ann", "s3cr3t")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"user": "ann"}, "no password for user ann"),
        ({"password_file": "secret"}, "--password-file says nothing without a user"),
        ({"user": "ann", "password_file": "secret", "token_file": "secret"}, "an endpoint takes one"),
        ({"key": "k.pem"}, "--key says nothing without a certificate"),
    ],
)
def test_contradictions(given: dict[str, str], words: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    paths = {name: value if name == "user" else tmp_path / value for name, value in given.items()}
    with pytest.raises(UsageError, match=words):
        access(**paths)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no secret"),
        (b" \n", "holds no secret"),
        (b"x" * 100_000, "holds no secret"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b"one\ntwo", "characters that no HTTP header takes"),
    ],
)
def test_files_that_hold_no_token(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(BadInputError, match=words):
        access(token_file=file)


# TLS.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an authority, a server's and a client's certificate, and another authority."""
    if OPENSSL is None:
        pytest.skip("openssl is not installed")
    directory = tmp_path_factory.mktemp("tls")

    def run(*words: str) -> None:
        subprocess.run([str(OPENSSL), *words], cwd=directory, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other"):
        run("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}", "-days", "2")
    (directory / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        run("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
        run("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    run("ec", "-in", "client.key", "-aes128", "-passout", "pass:x", "-out", "locked.key")
    return directory


class _Metrics(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = b"kafka_controller_kafkacontroller_offlinepartitionscount 3\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def https(certificates: Path) -> Iterator[str]:
    """A server that asks for a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    class Server(HTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Clients that are turned away are what is tested."""

    server = Server(("127.0.0.1", 0), _Metrics)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def heard(url: str, who: Access) -> Heard:
    [one] = read_all([endpoint_of(Kind.TEXT, url)], who, timeout_s=30)
    return one


CLIENT = {"ca": "ca.pem", "certificate": "client.pem", "key": "client.key"}


def test_an_authority_of_ones_own_is_taken_by_every_python(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of these tests, as `openssl req` makes it, says nothing of key usage; Python 3.13 asks for that unasked."""
    usual = ssl.create_default_context

    def strict(**given: Any) -> ssl.SSLContext:
        context = usual(**given)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    who = Access(**{name: certificates / file for name, file in CLIENT.items()})
    with https(certificates) as url:
        assert [one.value for one in heard(url, who).found.values] == [3.0]


def test_tls_with_a_client_certificate(certificates: Path) -> None:
    ca, pem, key = (certificates / name for name in ("ca.pem", "client.pem", "client.key"))
    with https(certificates) as url:
        good = heard(url, Access(ca=ca, certificate=pem, key=key))
        assert [one.value for one in good.found.values] == [3.0]
        assert heard(url, Access(ca=ca)).asked.problem is not None
        unknown = heard(url, Access(ca=certificates / "other.pem", certificate=pem, key=key))
        assert unknown.asked.problem is not None
        assert unknown.asked.problem.startswith("TLS failed: certificate verify failed")
        other_name = heard(url.replace("127.0.0.1", "localhost"), Access(ca=ca, certificate=pem, key=key))
        assert other_name.asked.problem is not None
        assert "certificate is not valid for 'localhost'" in other_name.asked.problem
        plain = heard(url.replace("https:", "http:"), Access())
        assert not plain.asked.heard


@pytest.mark.parametrize(
    ("ca", "certificate", "key"),
    [
        ("client.key", None, None),
        ("ca.pem", "client.pem", "server.key"),
        ("ca.pem", "client.pem", "locked.key"),
        ("ca.pem", "names", None),
    ],
)
def test_files_that_are_of_no_use(certificates: Path, ca: str, certificate: str | None, key: str | None) -> None:
    who = Access(
        ca=certificates / ca,
        certificate=None if certificate is None else certificates / certificate,
        key=None if key is None else certificates / key,
    )
    with pytest.raises(BadInputError, match="cannot be used for TLS"):
        who.tls()
