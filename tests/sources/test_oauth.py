"""Tokens: asked for as Kafka's own client does it, held until near their end, never shown."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import AuthenticationError, BadInputError, ConnectError, KelrError
from kelr.sources.connection import ConnectionSettings
from kelr.sources.security.oauth import Endpoint, fetch_token
from kelr.sources.security.tokens import UNKNOWN_LIFE_S, Token, TokenHolder, encoded, token_of
from tests.hostile import dripping_body, dripping_headers, hostile

NOW_S = 1_800_000_000.0
URL = "https://idp.example/realms/kafka/token"
SECRET = "hush:s+cret"
ENDPOINT = Endpoint(URL, "kelr@ops", SECRET, "kafka produce")


def jwt(**claims: object) -> str:
    return f"{encoded({'alg': 'RS256'})}.{encoded(claims)}.c2ln"


def fetch(endpoint: Endpoint = ENDPOINT) -> Token:
    return fetch_token(endpoint, now_s=lambda: NOW_S, sleep=lambda _seconds: None)


@respx.mock
def test_the_request_is_that_of_kafkas_own_client() -> None:
    route = respx.post(URL).respond(json={"access_token": jwt(sub="kelr", exp=NOW_S + 300), "expires_in": 60})
    token = fetch()
    assert (token.principal, token.expires_s) == ("kelr", NOW_S + 300)
    request = route.calls.last.request
    kind, _, pair = request.headers["Authorization"].partition(" ")
    assert (kind, base64.b64decode(pair).decode()) == ("Basic", f"kelr@ops:{SECRET}")
    assert parse_qs(request.content.decode()) == {"grant_type": ["client_credentials"], "scope": ["kafka produce"]}


@respx.mock
def test_id_and_secret_are_encoded_where_the_issuer_wants_it() -> None:
    route = respx.post(URL).respond(json={"access_token": "opaque"})
    token = fetch(Endpoint(URL, "kelr@ops", SECRET, encode_header=True))
    _, _, pair = route.calls.last.request.headers["Authorization"].partition(" ")
    assert base64.b64decode(pair).decode() == "kelr%40ops:hush%3As%2Bcret"
    assert parse_qs(route.calls.last.request.content.decode()) == {"grant_type": ["client_credentials"]}
    assert (token.principal, token.expires_s) == ("unknown", NOW_S + UNKNOWN_LIFE_S)


@respx.mock
@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            httpx.Response(401, json={"error": "invalid_client", "error_description": f"no client has {SECRET}"}),
            AuthenticationError,
            r"refused client 'kelr@ops': 401 \(invalid_client: no client has \*\*\*\)",
        ),
        (httpx.Response(400, text="<html>hush-page</html>"), AuthenticationError, r"refused client 'kelr@ops': 400$"),
        (httpx.Response(302, headers={"Location": "https://elsewhere/"}), AuthenticationError, "302"),
        (httpx.Response(200, text="hush-page"), AuthenticationError, "there is no access_token in it"),
        (httpx.Response(200, json=["hush"]), AuthenticationError, "there is no access_token in it"),
        (httpx.Response(200, json={"access_token": 7}), AuthenticationError, "there is no access_token in it"),
        (httpx.Response(200, json={"access_token": "hush token"}), AuthenticationError, "is none"),
        (httpx.Response(200, json={"access_token": jwt(exp=NOW_S - 60)}), AuthenticationError, "ended 60 s ago"),
        (httpx.Response(503, json={"error": "busy"}), ConnectError, r"answers 503 \(busy\)"),
        (httpx.ConnectError("connection refused"), ConnectError, "cannot be reached: connection refused"),
        (httpx.ReadTimeout(""), ConnectError, "did not answer in time"),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] x"), ConnectError, "no secure connection"),
    ],
)
def test_what_goes_wrong_is_said_in_words_without_secrets(
    answer: httpx.Response | Exception, kind: type[KelrError], words: str
) -> None:
    respx.post(URL).mock(side_effect=answer if isinstance(answer, Exception) else [answer] * 3)
    with pytest.raises(kind, match=words) as caught:
        fetch()
    assert caught.value.next_step
    assert "https://idp.example/realms/kafka/token" in str(caught.value)
    assert "hush" not in f"{caught.value} {caught.value.next_step}"


@respx.mock
def test_trouble_that_may_pass_is_tried_three_times() -> None:
    route = respx.post(URL).mock(
        side_effect=[httpx.Response(503), httpx.ConnectError("reset"), httpx.Response(200, json={"access_token": "t"})]
    )
    assert fetch().value == "t"
    assert route.call_count == 3


@respx.mock
def test_a_refusal_is_not_tried_again() -> None:
    route = respx.post(URL).respond(401)
    with pytest.raises(AuthenticationError):
        fetch()
    assert route.call_count == 1


@respx.mock
def test_an_answer_without_end_is_cut() -> None:
    respx.post(URL).respond(content=b'{"access_token": "' + b"x" * 3_000_000)
    with pytest.raises(AuthenticationError, match="no access_token"):
        fetch()


@pytest.mark.parametrize("drip", [dripping_headers, dripping_body])
def test_an_endpoint_that_drips_is_one_that_does_not_answer(drip: Callable[[socket.socket], None]) -> None:
    with hostile(drip) as url:
        endpoint = Endpoint(url, "kelr", SECRET, connect_s=0.2, read_s=0.3, timeout_s=1.0)
        began = time.monotonic()
        with pytest.raises(ConnectError, match="did not answer in time"):
            fetch(endpoint)
    assert time.monotonic() - began < 10


def test_the_secret_goes_to_no_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[socket.socket] = []
    with hostile(asked.append) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        for scheme in ("http", "https"):
            with pytest.raises(ConnectError, match="cannot be reached"):
                fetch(Endpoint(f"{scheme}://127.0.0.1:1/token", "kelr", SECRET))
    assert asked == []


def test_whom_to_trust_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(BadInputError, match="SSL_CERT_FILE or SSL_CERT_DIR names cannot be used: No such file"):
        fetch()


@respx.mock
def test_a_user_in_the_address_is_not_who_asks() -> None:
    route = respx.post("https://idp.example/t?k=1").respond(json={"access_token": "t"})
    fetch(Endpoint("https://me:other@idp.example/t?k=1", "kelr", SECRET))
    _, _, pair = route.calls.last.request.headers["Authorization"].partition(" ")
    assert base64.b64decode(pair).decode() == f"kelr:{SECRET}"


def test_secrets_in_the_address_are_not_shown() -> None:
    endpoint = Endpoint("https://me:hush-pw@[::1]:8443/token?key=hush-key", "kelr", SECRET)
    assert endpoint.place == "https://[::1]:8443/token"
    assert "hush" not in repr(endpoint)


def test_a_token_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    endpoint = Endpoint(f"file://{file}", "", "")
    with pytest.raises(BadInputError, match="No such file"):
        fetch(endpoint)
    file.write_text(jwt(sub="kelr", exp=NOW_S + 10) + "\n")
    assert (fetch(endpoint).principal, fetch(endpoint).expires_s) == ("kelr", NOW_S + 10)
    file.write_text("")
    with pytest.raises(AuthenticationError, match="it is empty"):
        fetch(endpoint)


def test_a_token_is_held_until_near_its_end() -> None:
    now, fetched = [NOW_S], []

    def get() -> Token:
        fetched.append(now[0])
        return Token(f"hush-{len(fetched)}", now[0] + 100, "kelr")

    holder = TokenHolder(get, now_s=lambda: now[0])
    for at in (0.0, 79.0, 80.0, 159.0, 160.0):
        now[0] = NOW_S + at
        holder.token()
    assert [at - NOW_S for at in fetched] == [0.0, 80.0, 160.0]
    assert "hush" not in repr(holder) + repr(holder.token())


def test_a_fetch_that_fails_is_tried_by_the_next_who_asks() -> None:
    answers: list[Token | KelrError] = [ConnectError("down"), Token("t", NOW_S + 9, "kelr")]

    def get() -> Token:
        answer = answers.pop(0)
        if isinstance(answer, KelrError):
            raise answer
        return answer

    holder = TokenHolder(get, now_s=lambda: NOW_S)
    with pytest.raises(ConnectError, match="down"):
        holder.token()
    assert holder.token().value == "t"


@given(st.text(), st.none() | st.floats(min_value=0, max_value=1e9))
def test_any_text_is_read_as_a_token_without_trouble(value: str, life_s: float | None) -> None:
    token = token_of(value, now_s=NOW_S, life_s=life_s)
    assert token.value == value


@respx.mock
def test_both_clients_are_fed_from_one_token(tmp_path: Path) -> None:
    route = respx.post(URL).respond(json={"access_token": jwt(sub="kelr", exp=4e9)})
    file = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={module} clientId="old" clientSecret="hush" scope="s" extension_pool="x";\n'
        f"sasl.oauthbearer.token.endpoint.url={URL}\n"
        "sasl.oauthbearer.client.credentials.client.id=new\n"
    )
    settings = ConnectionSettings.read("h:1", command_config=file)
    assert route.call_count == 0
    login, confluent = settings.security().login, settings.confluent()
    value, end_s, principal, extensions = confluent["oauth_cb"]("")
    assert (end_s, principal, extensions) == (4e9, "kelr", {"pool": "x"})
    assert login is not None
    assert next(login("h")) == f"n,,\x01auth=Bearer {value}\x01pool=x\x01\x01".encode()
    assert route.call_count == 1
    sent = route.calls.last.request
    assert base64.b64decode(sent.headers["Authorization"].split()[1]).decode() == "new:hush"
    assert b"scope=s" in sent.content
    assert "hush" not in repr(settings)


@respx.mock
def test_without_a_token_nothing_is_connected(tmp_path: Path) -> None:
    respx.post(URL).respond(401, json={"error": "invalid_client"})
    file = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={module} clientId="me" clientSecret="hush";\nsasl.oauthbearer.token.endpoint.url={URL}\n'
    )
    with pytest.raises(AuthenticationError, match="invalid_client"):
        ConnectionSettings.read("h:1", command_config=file).security()


def test_unsecured_claims_are_those_of_kafkas_own_handler(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    claims = (
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_level="4"'
        ' unsecuredLoginListClaim_scope="|a|b" unsecuredLoginLifetimeSeconds="60"'
        ' unsecuredLoginExtension_pool="x" unsecuredLoginStringClaim_exp="never"'
    )
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config={module} {claims};\n"
    )
    holder = ConnectionSettings.read("h:1", command_config=file).tokens
    assert holder is not None
    header, body, signature = holder.token().value.split(".")
    held = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert signature == ""
    assert (held["sub"], held["level"], held["scope"]) == ("alice", 4.0, ["a", "b"])
    assert held["exp"] - held["iat"] == 60
    assert holder.token().extensions == {"pool": "x"}
