"""An identity provider on 127.0.0.1: a token endpoint for client credentials, and the keys that brokers check with."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from kelr.sources.security.tokens import encoded

AUDIENCE = "kafka"


@dataclass
class Issuer:
    """Gives tokens to the clients that it knows, for the user of the same name."""

    directory: Path
    clients: dict[str, str]
    asked: int = 0
    port: int = 0
    key_id: str = "one"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def token(self, client: str, *, life_s: int = 300) -> str:
        now = int(time.time())
        claims = {"sub": client, "aud": AUDIENCE, "iss": self.url, "iat": now, "exp": now + life_s, "scope": "kafka"}
        signed = f"{encoded({'alg': 'RS256', 'typ': 'JWT', 'kid': self.key_id})}.{encoded(claims)}"
        sign = ["openssl", "dgst", "-sha256", "-sign", "issuer.key"]
        done = subprocess.run(sign, cwd=self.directory, input=signed.encode(), capture_output=True, check=True)
        return f"{signed}.{_text(done.stdout)}"

    def keys(self) -> dict[str, object]:
        show = ["openssl", "rsa", "-in", "issuer.key", "-modulus", "-noout"]
        told = subprocess.run(show, cwd=self.directory, capture_output=True, text=True, check=True).stdout
        modulus = bytes.fromhex(told.strip().removeprefix("Modulus="))
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.key_id, "n": _text(modulus), "e": "AQAB"}
        return {"keys": [key]}

    def answer(self, authorization: str) -> tuple[int, dict[str, object]]:
        with self._lock:
            self.asked += 1
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        client, _, secret = pair.partition(":")
        if self.clients.get(client) != secret:
            return 401, {"error": "invalid_client", "error_description": f"wrong secret {secret}"}
        return 200, {"access_token": self.token(client), "token_type": "Bearer", "expires_in": 300}


@contextmanager
def issuer(directory: Path, clients: dict[str, str]) -> Iterator[Issuer]:
    """An issuer that runs until the block is left."""
    make = ["openssl", "genrsa", "-out", "issuer.key", "2048"]
    subprocess.run(make, cwd=directory, capture_output=True, check=True, timeout=60)
    made = Issuer(directory, clients)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, made.keys())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._send(*made.answer(self.headers["Authorization"]))

        def log_message(self, *_arguments: object) -> None:
            """Says nothing."""

        def _send(self, status: int, document: dict[str, object]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
