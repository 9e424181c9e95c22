"""Reading contexts.toml: what it means, and what is wrong with it, by line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kelr.config.contexts_file import read_contexts, read_contexts_file
from kelr.config.value import Kind, Value
from kelr.errors import BadInputError, RefusedError, UsageError
from kelr.sources.properties import read_properties

WHOLE = """
current = "prod"

[contexts.prod]
bootstrap_server = "kafka-1:9093"
bootstrap_controller = "controller-1:9093"
command_config = "prod.properties"
cluster_id = "4L6g3nShT-eMCtK--X86sw"
timeout = 2.5
read_only = true
username = "ada"
password_file = "prod.password"
log_info_api_key = 70
log_info_dialect = "kip"

[contexts.prod.properties]
"security.protocol" = "SASL_SSL"
sasl.mechanism = "PLAIN"
"ssl.key.password" = { env = "KEY_PASSWORD" }
ssl.truststore.password = { command = "pass truststore" }
"request.timeout.ms" = 5000
"enable.metrics.push" = false
sasl.oauthbearer.assertion.file = "assertion"

[contexts.dev]
"""


def write(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "contexts.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def test_everything(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    environ = {"KELR_CONFIG_DIR": str(tmp_path)}
    file = read_contexts(environ)
    assert (file.names, file.current, file.exists) == (("prod", "dev"), "prod", True)
    context = file.context("prod")
    assert context == file.current_context()
    assert (context.name, context.bootstrap_server, context.bootstrap_controller) == (
        "prod",
        "kafka-1:9093",
        "controller-1:9093",
    )
    assert context.command_config == tmp_path / "prod.properties"
    assert (context.cluster_id, context.timeout_s, context.read_only) == ("4L6g3nShT-eMCtK--X86sw", 2.5, True)
    assert (context.username, context.password) == ("ada", Value(Kind.FILE, "prod.password"))
    assert (context.log_info_api_key, context.log_info_dialect) == (70, "kip")
    assert context.properties == {
        "security.protocol": Value(Kind.HERE, "SASL_SSL"),
        "sasl.mechanism": Value(Kind.HERE, "PLAIN"),
        "ssl.key.password": Value(Kind.ENV, "KEY_PASSWORD"),
        "ssl.truststore.password": Value(Kind.COMMAND, "pass truststore"),
        "request.timeout.ms": Value(Kind.HERE, "5000"),
        "enable.metrics.push": Value(Kind.HERE, "false"),
        "sasl.oauthbearer.assertion.file": Value(Kind.HERE, "assertion"),
    }
    assert file.context("dev").logs_in is False
    assert file.line("prod", "username") == 11
    assert file.line("prod", "properties", "ssl", "truststore", "password") == 20


def test_no_file(tmp_path: Path) -> None:
    file = read_contexts({"KELR_CONFIG_DIR": str(tmp_path)})
    assert (file.exists, file.names, file.current) == (False, (), None)
    with pytest.raises(UsageError, match=r"there is no file .*contexts\.toml, so there are no contexts"):
        file.context("prod")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[contexts.prod\nx = 1", r"contexts\.toml cannot be read: .*line 1"),
        ("contexts = 3", "contexts are tables such as"),
        ("[contexts]\nprod = 3", "contexts are tables such as"),
        ("current = 3", "current has to be a name"),
        ("# x\ncurent = 'prod'", r"contexts.toml, line 2: curent is nothing that kelr knows; did you mean current\?"),
        ('[contexts."a b"]', "'a b' is no name for a context"),
        ('[contexts."-c"]', "'-c' is no name for a context"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        read_contexts_file(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("bootstrap_sever = 'x'", 3, r"has bootstrap_sever, which kelr does not know; did you mean bootstrap_server\?"),
        ("bootstrap-server = 'x'", 3, r"did you mean bootstrap_server\?"),
        ("cluster_id = 3", 3, "cluster_id has to be text in quotes"),
        ("cluster_id = ''", 3, "cluster_id has to be text in quotes"),
        ("timeout = '3'", 3, "timeout has to be a number"),
        ("timeout = true", 3, "timeout has to be a number"),
        ("timeout = 0", 3, "timeout is 0, not a number of seconds"),
        ("timeout = nan", 3, "timeout is nan, not a number of seconds"),
        ("read_only = 1", 3, "read_only has to be true or false"),
        ("log_info_api_key = 7.5", 3, "log_info_api_key has to be a number"),
        ("properties = 'x'", 3, "properties has to be a table"),
        ("properties = {x = [1]}", 3, "the property x has to be text in quotes"),
        (
            "username = 'a'\npassword = 'x'\npassword_env = 'X'",
            5,
            "password and password_env say where the password is",
        ),
        ("timeout = 1\npassword_env = 'X'", 4, "password_env says nothing without username"),
    ],
)
def test_a_context_that_is_none(tmp_path: Path, text: str, line: int, words: str) -> None:
    file = read_contexts_file(write(tmp_path, f"\n[contexts.prod]\n{text}\n[contexts.good]\n"))
    with pytest.raises(BadInputError, match=rf"contexts\.toml, line {line}: context 'prod': .*{words}"):
        file.context("prod")
    assert file.context("good").name == "good"


def test_a_context_that_is_not_there(tmp_path: Path) -> None:
    file = read_contexts_file(write(tmp_path, "current = 'gone'\n[contexts.production]\n[contexts.dev]\n"))
    with pytest.raises(
        UsageError, match=r"no context 'prodution' in .* \(it has dev, production\); did you mean production\?"
    ):
        file.context("prodution")
    with pytest.raises(UsageError, match=r"line 1: the current context is 'gone', and there is no such context"):
        file.current_context()


CLEAR = "[contexts.prod]\nusername = 'a'\npassword = 's3cret'\n"


@pytest.mark.parametrize(
    ("text", "mode", "refused"),
    [
        (CLEAR, 0o644, "holds password of context 'prod' in clear, and others may read it"),
        (CLEAR, 0o640, "others may read it"),
        (CLEAR, 0o600, None),
        (
            "[contexts.prod.properties]\n'ssl.key.password' = 'x'",
            0o644,
            "holds ssl.key.password of context 'prod' in clear",
        ),
        # What is not known may be a secret.
        ("[contexts.prod.properties]\n'vendor.key' = 'x'", 0o644, "holds vendor.key of context 'prod'"),
        ("[contexts.prod.properties]\n'security.protocol' = 'SSL'", 0o644, None),
        ("[contexts.prod.properties]\n'ssl.key.password' = '${env:X}'", 0o644, None),
        ("[contexts.prod]\nusername = 'a'\npassword_env = 'X'", 0o644, None),
        ("[contexts.prod]\nusername = 'a'\npassword_command = 'x'", 0o644, None),
        (
            "[contexts.prod]\nusername = 'a'\npassword_command = 'x'",
            0o664,
            "names a command that kelr runs .* others may write",
        ),
        ("[contexts.prod.properties]\n'a' = { command = 'x' }", 0o602, "others may write it"),
    ],
)
def test_modes(tmp_path: Path, text: str, mode: int, refused: str | None) -> None:
    path = write(tmp_path, text, mode)
    file = read_contexts_file(path)
    if refused is None:
        assert file.context("prod").name == "prod"
        return
    with pytest.raises(RefusedError, match=refused) as caught:
        file.context("prod")
    assert caught.value.next_step == f"chmod 600 {path}"


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    file = read_contexts_file(write(tmp_path, CLEAR + "[contexts.prod.properties]\n'ssl.key.password' = 's3cret'\n"))
    assert "s3cret" not in repr(file) + repr(file.context("prod")) + str(file.every())


def test_the_mark_of_an_editor_is_no_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "contexts.toml"
    path.write_bytes(b'\xef\xbb\xbf[contexts.dev]\r\nbootstrap_server = "a:1"\r\n')
    assert read_contexts_file(path).context("dev").bootstrap_server == "a:1"
    properties = tmp_path / "client.properties"
    properties.write_bytes(b"\xef\xbb\xbfsecurity.protocol=SASL_SSL\r\n")
    assert read_properties(properties)["security.protocol"].value == "SASL_SSL"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "contexts.toml")
    with pytest.raises(BadInputError, match=r"contexts\.toml is no file"):
        read_contexts_file(tmp_path / "contexts.toml")
