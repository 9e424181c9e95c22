"""``kelr config show``: every setting with who says so; and which context is in use at all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kelr.commands.session import Session, Settings, open_source, resolve
from kelr.commands.stock_tools import stock_connection
from kelr.errors import BadInputError, RefusedError, UsageError
from kelr.sources.connection import ConnectionSettings
from kelr.sources.jaas import Credentials
from tests.commands.conftest import Kelr

ROOT = Path(__file__).resolve().parents[2]
SECRET = "s3cret"
PROD = """\
current = "prod"
[contexts.prod]
bootstrap_server = "prod:9093"
timeout = 5
username = "ada"
password_command = "printf s3%s cret"
read_only = true
[contexts.prod.properties]
"security.protocol" = "SASL_PLAINTEXT"
"sasl.mechanism" = "PLAIN"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The contexts file, with one context that is the current one."""
    monkeypatch.setenv("KELR_CONFIG_DIR", str(tmp_path))
    path = tmp_path / "contexts.toml"
    path.write_text(PROD, encoding="utf-8")
    path.chmod(0o600)
    return path


def shown(kelr: Kelr, *arguments: str) -> dict[str, tuple[str | None, str]]:
    """Value and origin of each setting."""
    ran = kelr("config", "show", *arguments, "-o", "json")
    assert ran.code == 0, ran.err
    assert SECRET not in ran.out + ran.err
    items = json.loads(ran.out)["items"]
    return {one["setting"]: ("(hidden)" if one["hidden"] else one["value"], one["origin"]) for one in items}


def test_defaults(kelr: Kelr) -> None:
    found = shown(kelr)
    assert found["context"] == (None, "default")
    assert found["bootstrap_server"] == (None, "default")
    assert found["timeout"] == ("30", "default")
    assert found["output"] == ("json", "--output")
    assert found["read_only"] == ("false", "default")
    assert found["config directory"][1] == "KELR_CONFIG_DIR"
    assert found["cache directory"][1] in {"default", "KELR_CACHE_DIR"}
    assert "username" not in found


def test_the_current_context(kelr: Kelr, place: Path) -> None:
    found = shown(kelr)
    assert found["context"] == ("prod", f"{place}, line 1")
    assert found["bootstrap_server"] == ("prod:9093", f"{place}, line 3")
    assert found["timeout"] == ("5", f"{place}, line 4")
    assert found["username"] == ("ada", f"{place}, line 5")
    assert found["read_only"] == ("true", f"{place}, line 7")
    assert found["sasl.mechanism"] == ("PLAIN", f"{place}, line 10")


def test_the_password_is_not_looked_up(kelr: Kelr, place: Path) -> None:
    counted = place.parent / "counted"
    place.write_text(PROD.replace("printf s3%s cret", f"sh -c 'touch {counted}'"), encoding="utf-8")
    ran = kelr("config", "show")
    assert ran.code == 0
    assert f"password              command sh -c 'touch {counted}'" in ran.out
    assert not counted.exists()


def test_each_step_of_precedence(kelr: Kelr, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KELR_CONTEXT", "prod")
    monkeypatch.setenv("KELR_BOOTSTRAP_SERVER", "env:1")
    monkeypatch.setenv("KELR_TIMEOUT", "7")
    found = shown(kelr)
    assert found["context"] == ("prod", "KELR_CONTEXT")
    assert found["bootstrap_server"] == ("env:1", "KELR_BOOTSTRAP_SERVER")
    assert found["timeout"] == ("7", "KELR_TIMEOUT")
    found = shown(
        kelr, "-b", "flag:1", "--timeout", "9", "-c", "prod", "--command-property", "sasl.mechanism=SCRAM-SHA-256"
    )
    assert found["context"] == ("prod", "--context")
    assert found["bootstrap_server"] == ("flag:1", "--bootstrap-server")
    assert found["timeout"] == ("9", "--timeout")
    assert found["sasl.mechanism"] == ("SCRAM-SHA-256", "--command-property")
    assert found["security.protocol"] == ("SASL_PLAINTEXT", f"{place}, line 9")


def test_what_is_shown_beside_a_context_that_was_named(
    kelr: Kelr, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KELR_BOOTSTRAP_SERVER", "env:1")
    monkeypatch.setenv("KELR_COMMAND_CONFIG", "env.properties")
    found = shown(kelr, "-c", "prod")
    assert found["bootstrap_server"] == ("prod:9093", f"{place}, line 3")
    assert found["command_config"] == (None, "default")
    found = shown(kelr, "-c", "prod", "--command-property", "bootstrap.servers=given:1")
    assert found["bootstrap_server"] == ("given:1", "--command-property")


def test_a_secret_that_was_fetched_is_no_text_with_variables(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password may have ${env:HOME} in it; neither is that replaced, nor told in an error."""
    secret = "plan${env:HOME}t${env:NONE}${file:/x:y}"
    monkeypatch.setenv("PW", secret)
    providers = "org.apache.kafka.common.config.provider"
    place.write_text(
        PROD.replace('password_command = "printf s3%s cret"', 'password_env = "PW"')
        + f'"config.providers" = "env"\n"config.providers.env.class" = "{providers}.EnvVarConfigProvider"\n'
        + '"ssl.key.password" = { env = "PW" }\n"client.id" = "${env:HOME}"\n',
        encoding="utf-8",
    )
    connection = resolve(Settings(context="prod")).connection()
    assert connection.credentials == Credentials("ada", secret)
    assert connection.confluent()["sasl.password"] == secret
    given = Settings(context="prod", command_property=("ssl.key.password=${env:NONE}",))
    with pytest.raises(BadInputError, match="has no such value"):
        resolve(given).connection()


def test_a_variable_that_leads_a_context_elsewhere_is_said(
    kelr: Kelr, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.exists()
    monkeypatch.setenv("KELR_CONTEXT", "prod")
    monkeypatch.setenv("KELR_BOOTSTRAP_SERVER", "127.0.0.1:1")
    said = "context 'prod', which KELR_CONTEXT names, is used at 127.0.0.1:1, and not at its own address\n"
    ran = kelr("describe", "--timeout", "2")
    assert (ran.code, ran.err.count(said)) == (3, 1)
    monkeypatch.delenv("KELR_BOOTSTRAP_SERVER")
    assert said in kelr("describe", "-b", "127.0.0.1:1", "--timeout", "2").err
    meant = kelr("describe", "--context", "prod", "-b", "127.0.0.1:1", "--timeout", "2")
    assert (meant.code, said in meant.err) == (3, False)
    monkeypatch.setenv("KELR_BOOTSTRAP_SERVER", "prod:9093")
    assert not resolve(Settings()).led_elsewhere
    place.write_text(PROD.replace('bootstrap_server = "prod:9093"\n', ""), encoding="utf-8")
    assert not resolve(Settings()).led_elsewhere, "it has no address of its own"


def test_lines_of_a_properties_file(kelr: Kelr, place: Path) -> None:
    path = place.parent / "client.properties"
    path.write_text(
        "bootstrap.servers=f:1\nsecurity.protocol=SSL\nssl.key.password=s3cret\nvendor.x=s3cret\n"
        "ssl.keystore.password=${env:PW}\n",
        encoding="utf-8",
    )
    found = shown(kelr, "--command-config", str(path), "--command-property", "ssl.truststore.password=s3cret")
    assert found["command_config"] == (str(path), "--command-config")
    assert found["security.protocol"] == ("SSL", f"{path}, line 2")
    assert found["ssl.key.password"] == ("(hidden)", f"{path}, line 3")
    assert found["vendor.x"] == ("(hidden)", f"{path}, line 4")
    assert found["ssl.keystore.password"] == ("${env:PW}", f"{path}, line 5")
    assert found["ssl.truststore.password"] == ("(hidden)", "--command-property")


def test_one_login_is_shown_the_one_that_counts(kelr: Kelr, place: Path) -> None:
    """Not the credentials of a file beside the user that takes their place, nor that user beside the flag that does."""
    path = place.parent / "client.properties"
    path.write_text("sasl.jaas.config=x required username=file password=s3cret;\n", encoding="utf-8")
    place.write_text(PROD.replace("timeout = 5", 'command_config = "client.properties"'), encoding="utf-8")
    found = shown(kelr)
    assert found["username"] == ("ada", f"{place}, line 5")
    assert "sasl.jaas.config" not in found
    assert resolve(Settings(context="prod")).connection().credentials == Credentials("ada", "s3cret")
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="flag" password="s3cret";'
    given = ("--command-property", f"sasl.jaas.config={jaas}")
    found = shown(kelr, *given)
    assert found["sasl.jaas.config"] == ("(hidden)", "--command-property")
    assert {"username", "password"}.isdisjoint(found)
    assert resolve(Settings(context="prod", command_property=(given[1],))).connection().credentials == Credentials(
        "flag", "s3cret"
    )


def test_a_file_takes_the_place_of_the_whole_login(kelr: Kelr, place: Path) -> None:
    """Not the password of the context beside the protocol of the file."""
    path = place.parent / "client.properties"
    path.write_text("security.protocol=PLAINTEXT\n", encoding="utf-8")
    found = shown(kelr, "-c", "prod", "--command-config", str(path))
    assert found["security.protocol"] == ("PLAINTEXT", f"{path}, line 1")
    assert {"username", "password", "sasl.mechanism"}.isdisjoint(found)
    settings = resolve(Settings(context="prod", command_config=path))
    assert settings.connection().security_protocol == "PLAINTEXT"
    assert settings.connection().credentials is None


# Which context is in use.


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "given",
    [
        Settings(bootstrap_server="other:1"),
        Settings(command_config=Path("x.properties")),
        Settings(command_property=("bootstrap.servers=other:1",)),
        Settings(command_property=(" bootstrap.servers = other:1",)),
        Settings(bootstrap_controller="c:1"),
        Settings(metadata_log=(Path("log"),)),
        Settings(snapshot=Path("x.kelr")),
    ],
)
def test_the_current_context_never_stands_beside_what_names_a_cluster(given: Settings) -> None:
    """Its password would go elsewhere."""
    found = resolve(given)
    assert found.context is None
    assert found.login is None or found.login.context.name is None
    assert "--context" not in found.connection_flags


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", ["KELR_BOOTSTRAP_SERVER", "KELR_COMMAND_CONFIG", "KELR_BOOTSTRAP_CONTROLLER"])
def test_nor_beside_a_variable_that_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "other:1")
    assert resolve(Settings()).context is None


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "name", ["KELR_BOOTSTRAP_SERVER", "KELR_COMMAND_CONFIG", "KELR_BOOTSTRAP_CONTROLLER", "KELR_CONTEXT"]
)
def test_a_variable_that_is_set_and_empty_does_not_stand_for_the_current_context(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with ``-b ''``: who set it to what is not set meant another cluster."""
    monkeypatch.setenv(name, "")
    with pytest.raises(UsageError, match=f"{name} is set and empty"):
        resolve(Settings())
    assert resolve(Settings(context="prod")).context == "prod"
    assert resolve(Settings(bootstrap_server="other:1")).context is None


@pytest.mark.usefixtures("place")
def test_next_commands_name_the_current_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be another one when they are typed."""
    assert resolve(Settings()).connection_flags == ("--context", "prod")
    assert resolve(Settings(command_property=("sasl.mechanism=PLAIN", "ssl.key.password=s3cret"))).connection_flags == (
        *("--command-property", "sasl.mechanism=PLAIN", "--command-property", "ssl.key.password=(hidden)"),
        *("--context", "prod"),
    )
    monkeypatch.setenv("KELR_CONTEXT", "prod")
    assert resolve(Settings()).connection_flags == ()


def test_a_current_context_that_is_gone(place: Path) -> None:
    place.write_text('\ncurrent = "gone"\n[contexts.prod]\n', encoding="utf-8")
    with pytest.raises(UsageError, match="line 2: the current context is 'gone', and there is no such context"):
        resolve(Settings())
    assert resolve(Settings(), local=True).context is None
    assert resolve(Settings(bootstrap_server="x:1")).bootstrap_server == "x:1"


def test_a_broken_file_is_no_matter_where_it_is_not_read(place: Path) -> None:
    place.write_text("[", encoding="utf-8")
    with pytest.raises(BadInputError):
        resolve(Settings())
    assert resolve(Settings(bootstrap_server="x:1")).bootstrap_server == "x:1"


@pytest.mark.usefixtures("place")
def test_the_login_reaches_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[ConnectionSettings] = []
    monkeypatch.setattr("kelr.sources.live.LiveSource", found.append)
    open_source(resolve(Settings()))
    assert found[0].confluent()["sasl.password"] == SECRET
    assert found[0].credentials == Credentials("ada", SECRET)
    assert found[0].servers_text == "prod:9093"


@pytest.mark.usefixtures("place")
def test_controllers_are_reached_with_the_same_login() -> None:
    controllers = resolve(Settings()).connection("c:9093")
    assert (controllers.servers_text, controllers.confluent()["sasl.password"]) == ("c:9093", SECRET)


@pytest.mark.usefixtures("place")
def test_stock_tools_are_told_to_take_a_file() -> None:
    """They know no contexts, and the command line is no place for a password."""
    with Session(resolve(Settings())) as session:
        assert stock_connection(session) == "--bootstrap-server prod:9093 --command-config FILE"


def test_servers_may_be_a_property(place: Path) -> None:
    place.write_text('[contexts.p.properties]\n"bootstrap.servers" = "p:1"\n', encoding="utf-8")
    assert resolve(Settings(context="p")).bootstrap_server == "p:1"
    assert resolve(Settings(command_property=("bootstrap.servers=q:1",))).bootstrap_server == "q:1"


def test_a_file_that_others_may_read_is_refused(kelr: Kelr, place: Path) -> None:
    place.write_text(PROD.replace("password_command = ", "password = "), encoding="utf-8")
    place.chmod(0o644)
    ran = kelr("describe")
    assert (ran.code, ran.out) == (6, "")
    assert ran.err.startswith(f"error: {place} holds password of context 'prod' in clear, and others may read it [")
    assert f"  fix: chmod 600 {place}\n" in ran.err
    with pytest.raises(RefusedError):
        resolve(Settings(context="prod"))


# Variables.


def sources() -> str:
    return "".join(
        path.read_text(encoding="utf-8") for folder in ("kelr", "commands") for path in (ROOT / folder).rglob("*.py")
    )


def test_every_variable_is_in_the_document() -> None:
    named = set(re.findall(r'"(KELR_[A-Z_]+)"', sources())) | set(re.findall(r"env: (KELR_[A-Z_]+)", sources()))
    text = (ROOT / "docs" / "contexts.md").read_text(encoding="utf-8")
    table = re.search(r"<!-- variables -->\n\n(.*?)\n\n", text, re.DOTALL)
    assert table is not None
    assert named == set(re.findall(r"^\| `(KELR_[A-Z_]+)` \|", table[1], re.MULTILINE))


# Secrets.


@pytest.mark.parametrize(
    "arguments", [["describe"], ["describe", "--debug"], ["describe", "--verbose"], ["config", "show"]]
)
@pytest.mark.parametrize("how", ["password", "password_env", "password_file", "password_command"])
def test_planted_secrets_are_never_told(
    kelr: Kelr, place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], how: str
) -> None:
    (place.parent / "pw").write_text("s3cret-in-a-file\n", encoding="utf-8")
    monkeypatch.setenv("PW", "s3cret-in-a-variable")
    way = {
        "password": "s3cret-in-clear",
        "password_env": "PW",
        "password_file": "pw",
        "password_command": "printf s3%s cret-by-a-command",
    }[how]
    text = PROD.replace('password_command = "printf s3%s cret"', f'{how} = "{way}"').replace("prod:9093", "127.0.0.1:1")
    place.write_text(
        f'{text}"ssl.key.password" = "s3cret-property"\n"vendor.key" = "s3cret-vendor"\n', encoding="utf-8"
    )
    ran = kelr(*arguments, "--command-property", "ssl.keystore.password=s3cret-flag", "--timeout", "2")
    assert ran.code == (3 if arguments[0] == "describe" else 0), ran.err
    assert SECRET not in ran.out + ran.err
    assert ("holds its password in clear" in ran.err) is (how == "password")
    if "--debug" in arguments:
        assert "Traceback" in ran.err
    settings = resolve(Settings(command_property=("ssl.keystore.password=s3cret-flag",)))
    assert settings.login is not None
    assert any(SECRET in value for value in settings.login.properties.values())
    assert SECRET not in repr(settings) + repr(settings.login) + repr(settings.connection())


@pytest.mark.parametrize("arguments", [["--debug"], []])
def test_a_password_that_cannot_be_used_is_not_told_either(kelr: Kelr, place: Path, arguments: list[str]) -> None:
    place.write_text(PROD.replace("printf s3%s cret", "printf planted\\\\\\\\nsecret"), encoding="utf-8")
    ran = kelr("describe", *arguments)
    assert ran.code == 2
    assert "the password of context 'prod' has 2 lines" in ran.err
    assert SECRET not in ran.err
