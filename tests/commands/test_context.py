"""``kelr context``: what is written, what is shown, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kelr.commands.session import Settings, resolve
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.sources.memory import MemorySource
from tests.commands.conftest import Kelr, Terminal
from tests.incident import CLUSTER_ID, INCIDENT

TWO = """\
current = "prod"

[contexts.prod]
bootstrap_server = "prod:9092"

[contexts.dev]   # mine
bootstrap_server = "dev:9092"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The contexts file of this test; not there yet."""
    monkeypatch.setenv("KELR_CONFIG_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "contexts.toml"


def write(place: Path, text: str = TWO) -> None:
    place.write_text(text, encoding="utf-8")
    place.chmod(0o600)


def test_from_nothing_to_a_context(kelr: Kelr, place: Path) -> None:
    assert kelr("context", "list").err == (
        f"there are no contexts in {place}\n  next: kelr context add prod -b HOST:PORT\n"
    )
    ran = kelr("context", "add", "prod", "-b", "kafka-1:9092,kafka-2:9092")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"added context prod in {place}\nprod is the current context now\n"
    ran = kelr("context", "add", "dev", "-b", "dev:9092", "--timeout", "2.5", "--read-only", "--cluster-id", "x")
    assert ran.err == f"added context dev in {place}\n"
    assert kelr("context", "list").out == (
        "   NAME  BOOTSTRAP SERVER           LOGIN  COMMAND CONFIG  CLUSTER ID  READ ONLY\n"
        "*  prod  kafka-1:9092,kafka-2:9092  -      -               -           no\n"
        "   dev   dev:9092                   -      -               x           yes\n"
    )
    assert kelr("context", "use", "dev").err == "dev is the current context now\n"
    assert resolve(Settings()).bootstrap_server == "dev:9092"
    assert resolve(Settings()).timeout_s == 2.5
    assert place.stat().st_mode & 0o777 == 0o600


def test_all_that_add_takes(kelr: Kelr, place: Path) -> None:
    (place.parent / "client.properties").write_text("sasl.mechanism=PLAIN\n", encoding="utf-8")
    ran = kelr(
        *("context", "add", "prod", "-b", "k:1", "--bootstrap-controller", "c:1"),
        *("--command-config", "client.properties", "--username", "ada", "--password-file", "secret"),
        *("--property", "security.protocol=SASL_SSL", "--property", "ssl.truststore.location=ca.pem"),
        *("--property-env", "ssl.key.password=KEY", "--property-file", "ssl.keystore.key=tls.key"),
        *("--property-command", "ssl.keystore.password=pass store"),
    )
    assert ran.code == 0, ran.err
    here = place.parent
    assert place.read_text(encoding="utf-8").split("\n", 3)[3] == (
        "[contexts.prod]\n"
        'bootstrap_server = "k:1"\n'
        'bootstrap_controller = "c:1"\n'
        f'command_config = "{here}/client.properties"\n'
        'username = "ada"\n'
        f'password_file = "{here}/secret"\n'
        "\n"
        "[contexts.prod.properties]\n"
        '"security.protocol" = "SASL_SSL"\n'
        f'"ssl.truststore.location" = "{here}/ca.pem"\n'
        '"ssl.key.password" = {env = "KEY"}\n'
        f'"ssl.keystore.key" = {{file = "{here}/tls.key"}}\n'
        '"ssl.keystore.password" = {command = "pass store"}\n'
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["prod"], "nothing says where the cluster is"),
        (["prod", "-b", "a:b:c"], "'a:b:c' is not the address of a server"),
        (["pr od", "-b", "a:1"], "'pr od' is no name for a context"),
        (["dev", "-b", "a:1"], "there is a context 'dev' already"),
        (["new", "-b", "a:1", "--command-config", "nope"], "cannot read "),
        (["new", "-b", "a:1", "--username", "ada"], "has a username, and without security.protocol there is no login"),
        (["new", "-b", "a:1", "--password-env", "X"], "password_env says nothing without username"),
        (["new", "-b", "a:1", "--property", "x"], "--property has to be KEY=VALUE"),
        (["new", "-b", "a:1", "--property", "x=1", "--property-env", "x=Y"], "the property x is given twice"),
        (["new", "-b", "a:1", "--property-env", "x="], "--property-env x= names nothing"),
        (["new", "-b", "a:1", "--property-command", "x='open"], "cannot be split into words"),
        (["new", "-b", "a:1", "--timeout", "0"], "timeout is 0, not a number of seconds"),
        (["new", "-b", "a:1", "--timeout", "inf"], "timeout is inf, not a number of seconds"),
        (["new", "-b", "a:1", "--timeout", "nan"], "timeout is nan, not a number of seconds"),
        (["new", "-b", "a:1", "--pin", "--cluster-id", "x"], "--pin asks the cluster for its id"),
    ],
)
def test_what_add_refuses(kelr: Kelr, place: Path, arguments: list[str], words: str) -> None:
    write(place)
    ran = kelr("context", "add", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "\n  fix: " in ran.err
    assert place.read_text(encoding="utf-8") == TWO


def test_a_secret_in_clear_is_warned_about_and_not_shown(kelr: Kelr, place: Path) -> None:
    ran = kelr("context", "add", "prod", "-b", "k:1", "--property", "ssl.key.password=s3cret")
    assert "ssl.key.password stands there in clear: " in ran.err
    for arguments in (["show"], ["show", "-o", "json"], ["list"], ["list", "-o", "yaml"]):
        shown = kelr("context", *arguments)
        assert "s3cret" not in ran.err + shown.out + shown.err
    assert "ssl.key.password  (hidden)  " in kelr("context", "show").out
    (item,) = [one for one in json.loads(kelr("context", "show", "-o", "json").out)["items"] if one["hidden"]]
    assert item == {
        "setting": "ssl.key.password",
        "value": None,
        "hidden": True,
        "origin": f"{place}, line 8",
    }


def test_show(kelr: Kelr, place: Path) -> None:
    write(
        place,
        TWO + 'username = "ada"\npassword_command = "pass kafka"\ntimeout = 2\n[contexts.dev.properties]\n'
        '"security.protocol" = "SASL_SSL"\nsasl.mechanism = "PLAIN"\n',
    )
    ran = kelr("context", "show", "dev")
    assert ran.err == f"context dev in {place}\n"
    assert ran.out == (
        "SETTING            VALUE               FROM\n"
        "bootstrap_server   dev:9092            contexts.toml, line 7\n"
        "username           ada                 contexts.toml, line 8\n"
        "password           command pass kafka  contexts.toml, line 9\n"
        "timeout            2                   contexts.toml, line 10\n"
        "security.protocol  SASL_SSL            contexts.toml, line 12\n"
        "sasl.mechanism     PLAIN               contexts.toml, line 13\n"
    )
    assert kelr("context", "show").out.startswith("SETTING           VALUE      FROM\nbootstrap_server  prod:9092")
    assert "did you mean prod?" in kelr("context", "show", "prodd").err


def test_a_broken_context_does_not_hide_the_others(kelr: Kelr, place: Path) -> None:
    write(place, f"{TWO}nope = 1\n")
    ran = kelr("context", "list")
    assert ran.code == 0
    assert "prod  prod:9092" in ran.out
    assert ran.err == f"{place}, line 8: context 'dev': has nope, which kelr does not know\n"


def test_use_and_remove(kelr: Kelr, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place)
    assert kelr("context", "use", "nope").code == 2
    assert kelr("context", "use").code == 2
    assert kelr("context", "use", "dev", "--none").code == 2
    monkeypatch.setenv("KELR_CONTEXT", "prod")
    assert (
        kelr("context", "use", "dev").err == "dev is the current context now\nKELR_CONTEXT is set, and wins over it\n"
    )
    monkeypatch.delenv("KELR_CONTEXT")
    for name in ("KELR_BOOTSTRAP_SERVER", "KELR_COMMAND_CONFIG", "KELR_BOOTSTRAP_CONTROLLER"):
        monkeypatch.setenv(name, "elsewhere:1")
        assert kelr("context", "use", "dev").err.endswith(f"now\n{name} is set, and wins over it\n")
        monkeypatch.delenv(name)
    assert kelr("context", "use", "--none").err == "no context is the current one now\n"
    assert place.read_text(encoding="utf-8") == TWO.removeprefix('current = "prod"\n\n')
    kelr("context", "use", "dev")
    ran = kelr("context", "remove", "dev")  # nobody is there to be asked
    assert ran.err == "removed context dev, and no context is the current one now\n"
    assert "dev" not in place.read_text(encoding="utf-8")
    assert kelr("context", "remove", "dev").code == 2


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 6), ("\n", 6), ("", 6)])
def test_remove_asks_on_a_terminal(
    kelr: Kelr, place: Path, terminal: Callable[[str | Terminal], None], typed: str, code: int
) -> None:
    write(place)
    terminal(typed)
    ran = kelr("context", "remove", "dev")
    assert ran.code == code
    assert f"Take context dev out of {place}? [y/N] " in ran.err
    assert ("dev" in place.read_text(encoding="utf-8")) is (code != 0)


def test_remove_yes_does_not_ask(kelr: Kelr, place: Path, terminal: Callable[[str | Terminal], None]) -> None:
    write(place)
    terminal("")
    assert kelr("context", "remove", "dev", "--yes").err == "removed context dev\n"


# Trying a context.


@pytest.fixture(scope="module")
def simulated() -> Iterator[SimulatedServer]:
    """A cluster that speaks Kafka's protocol."""
    with SimulatedServer() as lab:
        yield lab


def test_a_context_is_tried_and_pinned(kelr: Kelr, place: Path, simulated: SimulatedServer) -> None:
    kelr("context", "add", "lab", "-b", simulated.bootstrap_servers)
    ran = kelr("context", "test")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].startswith("context lab: connected in ")
    cluster_id = lines[1].split()[-1]
    assert lines[2] == "  brokers     3 live of 3"
    assert "  ELR         on" in lines
    assert "  security    PLAINTEXT" in lines
    assert any("eligible.leader.replicas.version 1" in line for line in lines)
    assert ran.err == "  next: kelr context test lab --pin\n"
    assert "cluster_id" not in place.read_text(encoding="utf-8")
    document = json.loads(kelr("context", "test", "lab", "--pin", "-o", "json").out)
    (item,) = document["items"]
    assert (item["cluster_id"], item["pinned"], item["elr"], item["live"]) == (cluster_id, True, True, 3)
    assert document["next"] == "kelr describe --leaderless --context lab"
    assert f'cluster_id = "{cluster_id}"' in place.read_text(encoding="utf-8")


def test_another_cluster_is_refused_and_not_pinned(kelr: Kelr, place: Path, simulated: SimulatedServer) -> None:
    kelr("context", "add", "lab", "-b", simulated.bootstrap_servers, "--cluster-id", "another")
    ran = kelr("context", "test", "lab", "--pin")
    assert (ran.code, ran.out) == (6, "")
    assert "context 'lab' is for cluster another, and this is cluster " in ran.err
    assert 'cluster_id = "another"' in place.read_text(encoding="utf-8")


def test_a_variable_does_not_lead_the_trial_elsewhere(
    kelr: Kelr, place: Path, simulated: SimulatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place)
    kelr("context", "add", "lab", "-b", simulated.bootstrap_servers)
    monkeypatch.setenv("KELR_BOOTSTRAP_SERVER", "127.0.0.1:1")
    assert kelr("context", "test", "lab").code == 0


def test_add_and_pin_in_one(kelr: Kelr, place: Path, simulated: SimulatedServer) -> None:
    ran = kelr("context", "add", "lab", "-b", simulated.bootstrap_servers, "--pin")
    assert ran.code == 0, ran.err
    assert " (pinned)" in ran.out
    assert "cluster_id" in place.read_text(encoding="utf-8")


@pytest.mark.usefixtures("place")
def test_nobody_answers(kelr: Kelr) -> None:
    kelr("context", "add", "gone", "-b", "127.0.0.1:1")
    assert kelr("context", "test", "--timeout", "2").code == 3
    assert kelr("context", "add", "controllers", "--bootstrap-controller", "127.0.0.1:1").code == 0
    ran = kelr("context", "test", "controllers")
    assert (ran.code, "names controllers and no brokers" in ran.err) == (2, True)


def test_no_context_to_try(kelr: Kelr, place: Path) -> None:
    write(place, "")
    assert "no context is the current one" in kelr("context", "test").err


# Read-only contexts.


@pytest.mark.parametrize(
    "arguments",
    [
        ["elect", "--election-type", "unclean", "--all-topic-partitions", "--yes"],
        ["recover", "clear-elr", "orders", "--yes-clear-elr-of", "orders"],
        ["recover", "undo"],
        ["recover", "resume"],
    ],
)
def test_a_read_only_context_changes_nothing(
    kelr: Kelr, place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(INCIDENT))
    write(place, f'[contexts.prod]\nbootstrap_server = "p:1"\nread_only = true\ncluster_id = "{CLUSTER_ID}"\n')
    ran = kelr(*arguments, "--context", "prod")
    assert ran.code == 6, ran.err
    assert f"nothing was changed: context 'prod' is read_only ({place})" in ran.err
    assert kelr("describe", "--context", "prod").code == 0
