"""Variables in client properties, as Kafka 4.3.1's own tools resolve them, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelr.errors import BadInputError
from kelr.sources.connection import ConnectionSettings
from kelr.sources.properties import parse_properties, resolved

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = f"""
config.providers=env,file,dir
config.providers.env.class={PACKAGE}.EnvVarConfigProvider
config.providers.file.class={PACKAGE}.FileConfigProvider
config.providers.dir.class={PACKAGE}.DirectoryConfigProvider
"""


def values(text: str, **environ: str) -> dict[str, str]:
    found = resolved(parse_properties(text, name="x"), origin="client.properties", environ=environ)
    return {key: held.value for key, held in found.items()}


def test_each_provider(tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text("a.b = from file\nu=\\u0041\n", encoding="utf-8")
    (tmp_path / "name").write_text("whole\n", encoding="utf-8")
    text = f"""{PROVIDERS}
one=${{env:PW}}
two=${{file:{tmp_path}/s.properties:a.b}} and ${{file:{tmp_path}/s.properties:u}}
three=${{dir:{tmp_path}:name}}
jaas=password="${{env:PW}}";
${{env\\:PW}}=a key is no value
"""
    assert values(text, PW="s3cret ${env:PW}") == {
        "one": "s3cret ${env:PW}",  # what was found is not looked at again
        "two": "from file and A",
        "three": "whole\n",
        "jaas": 'password="s3cret ${env:PW}";',
        "${env:PW}": "a key is no value",
    }


def test_lines_stay() -> None:
    properties = parse_properties(f"{PROVIDERS}\n\nx=${{env:PW}}\n", name="x")
    assert resolved(properties, origin=None, environ={"PW": "1"})["x"].line == 8


def test_without_providers_nothing_is_touched() -> None:
    properties = parse_properties("a=b\nc=$d {e}\n", name="x")
    assert resolved(properties, origin=None) is properties
    # To Kafka this is text, and it may be a password.
    assert values("a=${nope:x} ${no-colon} ${}") == {"a": "${nope:x} ${no-colon} ${}"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=${env:PW}", r"line 1: a holds a \$\{env:\.\.\.\}, and config.providers names no provider 'env'"),
        (PROVIDERS.replace("env,file", "env, file") + "a=${file:/x:y}", "names no provider 'file'"),
        (
            "config.providers=env\na=${env:PW}",
            "line 1: config.providers names 'env', and config.providers.env.class is missing",
        ),
        (
            "config.providers=v\nconfig.providers.v.class=com.vault.Provider\na=${v:PW}",
            "line 2: config.providers.v.class is com.vault.Provider, which only Java can load",
        ),
        (PROVIDERS + "a=${env:NOPE}", r"line 6: a holds \$\{env:NOPE\}, and the provider 'env' has no such value"),
        (PROVIDERS + "a=${env:path:PW}", "has a path, and environment variables have none"),
        (PROVIDERS + "a=${file::x}", "the provider 'file' has no such value"),
        (PROVIDERS + "a=${file:/nonexistent/x:y}", "cannot read /nonexistent/x"),
        (PROVIDERS + "a=${dir:/nonexistent:y}", "the provider 'dir' has no such value"),
        (PROVIDERS + "config.providers.env.param.allowlist.pattern=A.*\na=${env:PW}", "has no such value"),
        (PROVIDERS + "config.providers.env.param.allowlist.pattern=(\na=${env:PW}", "is no regular expression"),
        (
            PROVIDERS + "config.providers.file.param.allowed.paths=/etc\na=${file:/etc/../tmp/x:y}",
            "may not read /etc/../tmp/x",
        ),
    ],
)
def test_what_nobody_resolves_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words) as caught:
        values(text, PW="s3cret")
    assert "s3cret" not in caught.value.message
    assert caught.value.next_step


def test_a_directory_holds_no_way_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").write_text("x", encoding="utf-8")
    with pytest.raises(BadInputError, match="has no such value"):
        values(f"{PROVIDERS}a=${{dir:{tmp_path}/in:../out}}")


def test_what_is_no_text_is_in_no_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"s3cret\xff")
    with pytest.raises(BadInputError, match="it is not UTF-8") as caught:
        values(f"{PROVIDERS}a=${{dir:{tmp_path}:x}}")
    assert caught.value.__suppress_context__


def test_a_connection_has_them_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "client.properties"
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="${env:PW}";'
    path.write_text(
        f"{PROVIDERS}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PW", "s3cret")
    settings = ConnectionSettings.read("k:1", command_config=path)
    assert settings.confluent()["sasl.password"] == settings.credentials.password == "s3cret"
    assert settings.ignored == ()
    # What comes from the command line may name them too.
    overrides = {"security.protocol": "${env:PROTOCOL}"}
    monkeypatch.setenv("PROTOCOL", "PLAINTEXT")
    assert ConnectionSettings.read("k:1", command_config=path, overrides=overrides).security_protocol == "PLAINTEXT"
