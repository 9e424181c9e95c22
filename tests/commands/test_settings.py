"""Where settings come from: flags, environment variables, contexts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelr.commands.session import Resolved, Session, Settings, open_source, resolve
from kelr.errors import BadInputError, KelrError, RefusedError, UsageError
from kelr.protocol.dialects import Dialect
from kelr.sources.connection import ConnectionSettings
from kelr.sources.log_info_key import LogInfoKey
from kelr.sources.memory import MemorySource
from kelr.view.formats import OutputFormat
from tests.commands.conftest import Kelr
from tests.incident import CLUSTER_ID, INCIDENT

CONTEXTS = """
[contexts.prod]
bootstrap_server = "prod:9092"
command_config = "prod.properties"
cluster_id = "4L6g3nShT-eMCtK--X86sw"

[contexts.other]
bootstrap_server = "other:9092"
cluster_id = "AAAAAAAAAAAAAAAAAAAAAA"
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment whose configuration directory holds two contexts."""
    (tmp_path / "contexts.toml").write_text(CONTEXTS, encoding="utf-8")
    return {"KELR_CONFIG_DIR": str(tmp_path)}


def test_flag_before_environment_before_context(environ: dict[str, str], tmp_path: Path) -> None:
    by_context = resolve(Settings(context="prod"), environ=environ)
    assert (by_context.bootstrap_server, by_context.command_config) == ("prod:9092", tmp_path / "prod.properties")
    assert by_context.cluster_id == CLUSTER_ID
    environ["KELR_BOOTSTRAP_SERVER"] = "env:9092"
    named = environ | {"KELR_CONTEXT": "prod"}
    assert resolve(Settings(), environ=named).bootstrap_server == "env:9092"
    given = resolve(Settings(context="prod", bootstrap_server="flag:9092"), environ=environ)
    assert given.bootstrap_server == "flag:9092"
    # The expected cluster is that of the context, whatever address leads to it.
    assert given.cluster_id == CLUSTER_ID


def test_no_variable_leads_a_context_that_was_named_elsewhere(environ: dict[str, str], tmp_path: Path) -> None:
    """`--context lab` while a variable still has production in it: nothing is asked of that, or changed there."""
    environ |= {
        "KELR_BOOTSTRAP_SERVER": "env:9092",
        "KELR_COMMAND_CONFIG": "env.properties",
        "KELR_BOOTSTRAP_CONTROLLER": "env:9093",
        "KELR_TIMEOUT": "7",
    }
    settings = resolve(Settings(context="prod"), environ=environ)
    assert (settings.bootstrap_server, settings.command_config) == ("prod:9092", tmp_path / "prod.properties")
    assert (settings.bootstrap_controller, settings.timeout_s) == (None, 7)


def test_servers_in_a_property_are_servers_that_a_flag_names(environ: dict[str, str]) -> None:
    for text in ("bootstrap.servers=given:1", " bootstrap.servers =given:1"):
        given = Settings(context="prod", command_property=(text,))
        assert resolve(given, environ=environ).bootstrap_server == "given:1"
        alone = Settings(command_property=(text,))
        current = environ | {"KELR_BOOTSTRAP_SERVER": "env:9092"}
        assert resolve(alone, environ=current).bootstrap_server == "given:1"
    both = Settings(bootstrap_server="flag:1", command_property=("bootstrap.servers=given:1",))
    assert resolve(both, environ=environ).bootstrap_server == "flag:1"


def test_environment_variables(environ: dict[str, str]) -> None:
    environ |= {
        "KELR_CONTEXT": "other",
        "KELR_OUTPUT": "JSON",
        "KELR_TIMEOUT": "2.5",
        "KELR_COMMAND_CONFIG": "env.properties",
    }
    settings = resolve(Settings(), environ=environ)
    assert settings.bootstrap_server == "other:9092"
    assert settings.format is OutputFormat.JSON
    assert settings.timeout_s == 2.5
    assert settings.command_config == Path("env.properties")
    assert settings.connection_flags == ()


def test_controllers_flag_before_environment_before_context(tmp_path: Path) -> None:
    text = f'{CONTEXTS}bootstrap_controller = "context:9093"\n[contexts.log]\nbootstrap_controller = "log:9093"\n'
    (tmp_path / "contexts.toml").write_text(text, encoding="utf-8")
    environ = {"KELR_CONFIG_DIR": str(tmp_path)}

    def found(given: Settings, **variables: str) -> tuple[str | None, str | None, bool]:
        settings = resolve(given, environ=environ | variables)
        return settings.bootstrap_controller, settings.bootstrap_server, settings.log_answers

    env = {"KELR_BOOTSTRAP_CONTROLLER": "env:9093"}
    assert found(Settings(context="other")) == ("context:9093", "other:9092", False)
    assert found(Settings(context="other"), **env) == ("context:9093", "other:9092", False)
    assert found(Settings(), KELR_CONTEXT="other", **env) == ("env:9093", "other:9092", False)
    assert found(Settings(context="other", bootstrap_controller="flag:1"), **env) == ("flag:1", "other:9092", False)
    # What is configured answers where no brokers are, and only stands beside them where they are.
    assert found(Settings(), **env) == ("env:9093", None, True)
    assert found(Settings(context="log")) == ("log:9093", None, True)
    assert found(Settings(bootstrap_server="flag:9092"), **env) == ("env:9093", "flag:9092", False)
    assert found(Settings(), KELR_BOOTSTRAP_SERVER="env:9092", **env) == ("env:9093", "env:9092", False)
    # A flag says what is meant, whatever brokers are configured.
    by_flag = Settings(bootstrap_controller="flag:1")
    assert found(by_flag, KELR_BOOTSTRAP_SERVER="env:9092", **env) == ("flag:1", None, True)
    # Files are meant where files are named.
    assert found(Settings(snapshot=Path("x.kelr")), **env) == (None, None, False)
    assert found(Settings(metadata_log=(Path("log"),)), **env) == (None, None, True)


def test_the_key_of_get_replica_log_info(tmp_path: Path) -> None:
    text = f"{CONTEXTS}log_info_api_key = 70\nlog_info_dialect = 'patch'\n"
    (tmp_path / "contexts.toml").write_text(text, encoding="utf-8")
    environ = {"KELR_CONFIG_DIR": str(tmp_path)}
    assert resolve(Settings(context="prod"), environ=environ).log_info is None
    assert resolve(Settings(context="other"), environ=environ).log_info == LogInfoKey(70, Dialect.PATCH)
    by_environment = resolve(Settings(context="prod"), environ=environ | {"KELR_LOG_INFO_API_KEY": "93"})
    assert by_environment.log_info == LogInfoKey(93, Dialect.PATCH)
    given = resolve(
        Settings(context="other"), environ=environ | {"KELR_LOG_INFO_API_KEY": "1234", "KELR_LOG_INFO_DIALECT": "kip"}
    )
    assert given.log_info == LogInfoKey(1234, Dialect.KIP)


def test_the_key_reaches_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[ConnectionSettings] = []
    monkeypatch.setattr("kelr.sources.live.LiveSource", found.append)
    open_source(resolve(Settings(bootstrap_server="a:1"), environ={"KELR_LOG_INFO_API_KEY": "70"}))
    assert [one.log_info for one in found] == [LogInfoKey(70, Dialect.KIP)]


def test_only_flags_that_were_given_are_repeated_in_the_next_command(environ: dict[str, str]) -> None:
    environ["KELR_COMMAND_CONFIG"] = "env.properties"
    settings = resolve(Settings(bootstrap_server="a:1", context="prod", timeout_s=5.0), environ=environ)
    assert settings.connection_flags == ("-b", "a:1", "--context", "prod", "--timeout", "5")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("KELR_OUTPUT", "xml", "KELR_OUTPUT is 'xml', which is no output format"),
        ("KELR_TIMEOUT", "soon", "KELR_TIMEOUT is 'soon', not a number of seconds"),
        ("KELR_TIMEOUT", "-1", "KELR_TIMEOUT is '-1', not a number of seconds"),
        ("KELR_CONTEXT", "nope", "no context 'nope'"),
        ("KELR_LOG_INFO_API_KEY", "seventy", "KELR_LOG_INFO_API_KEY is 'seventy', which is no API key"),
        ("KELR_LOG_INFO_API_KEY", "43", "cannot have the API key 43"),
    ],
)
def test_nonsense_in_the_environment(environ: dict[str, str], variable: str, value: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        resolve(Settings(), environ=environ | {variable: value})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[contexts.prod", "cannot be read"),
        ("contexts = 3", "contexts are tables"),
        ("[contexts.prod]\nbootstrap = 'x'", "has bootstrap, which kelr does not know"),
        ("[contexts.prod]\ncluster_id = 3", "cluster_id has to be text"),
        ("[contexts.prod]\nlog_info_api_key = '70'", "log_info_api_key has to be a number"),
        ("[contexts.prod]\nlog_info_api_key = true", "log_info_api_key has to be a number"),
        ("[contexts.prod]\nlog_info_dialect = 3", "log_info_dialect has to be text"),
    ],
)
def test_broken_contexts_files(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "contexts.toml").write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match=words):
        resolve(Settings(context="prod"), environ={"KELR_CONFIG_DIR": str(tmp_path)})


def test_no_contexts_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no contexts"):
        resolve(Settings(context="prod"), environ={"KELR_CONFIG_DIR": str(tmp_path)})


def test_another_cluster_than_the_context_expects_is_refused(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_source(_: Resolved) -> MemorySource:
        return MemorySource(INCIDENT)

    monkeypatch.setattr("kelr.commands.session.open_source", open_source)
    with Session(resolve(Settings(context="prod"), environ=environ)) as session:
        assert session.source().cluster().cluster_id == CLUSTER_ID
    with (
        pytest.raises(RefusedError, match="context 'other' is for cluster AAAAAAAAAAAAAAAAAAAAAA"),
        Session(resolve(Settings(context="other"), environ=environ)) as session,
    ):
        session.source()


def test_a_cluster_that_was_refused_stays_refused(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def open_source(_: Resolved) -> MemorySource:
        return MemorySource(INCIDENT)

    monkeypatch.setattr("kelr.commands.session.open_source", open_source)
    with Session(resolve(Settings(context="other"), environ=environ)) as session:
        for _ in range(2):
            with pytest.raises(RefusedError):
                session.source()


@pytest.mark.usefixtures("incident")
def test_options_stand_before_or_behind_the_command(kelr: Kelr) -> None:
    behind = kelr("describe", "orders:1", "-b", "kafka:9092", "-o", "csv")
    assert kelr("-b", "kafka:9092", "-o", "csv", "describe", "orders:1") == behind
    # The one behind wins.
    assert kelr("-o", "json", "-b", "kafka:9092", "describe", "orders:1", "-o", "csv") == behind


def test_every_error_class_has_its_documented_code() -> None:
    def below(cls: type[KelrError]) -> set[type[KelrError]]:
        return {cls}.union(*(below(sub) for sub in cls.__subclasses__()))

    codes = {cls.__name__: int(cls.exit_code) for cls in below(KelrError)}
    expected = {
        "KelrError": 2,
        "UsageError": 2,
        "BadInputError": 2,
        "ConnectError": 3,
        "AuthenticationError": 3,
        "NotAuthorizedError": 4,
        "UnsupportedError": 5,
        "LabError": 5,
        "RefusedError": 6,
        "PartlyDoneError": 7,
    }
    assert {name: codes[name] for name in expected} == expected


@pytest.mark.usefixtures("incident")
def test_verbose_says_where_the_answer_comes_from(kelr: Kelr) -> None:
    ran = kelr("describe", "orders:0", "--verbose", "-o", "csv")
    assert ran.err == "live: cluster 4L6g3nShT-eMCtK--X86sw, brokers by DescribeCluster v2\n"


def test_verbose_names_properties_that_are_not_used(kelr: Kelr, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("metadata.max.age.ms=5\nbootstrap.servers=127.0.0.1:1\n", encoding="utf-8")
    ran = kelr("describe", "--command-config", str(path), "--verbose", "--timeout", "2")
    assert ran.code == 3
    assert ran.err.startswith(f"not used of {path}: metadata.max.age.ms\n")


EMPTY = [
    (["describe", "-b", ""], "--bootstrap-server"),
    (["-b", "", "describe"], "--bootstrap-server"),
    (["describe", "-b", "", "-b", "kafka-1:9092"], "--bootstrap-server"),
    (["describe", "--bootstrap-server=", "-b", "kafka-1:9092"], "--bootstrap-server"),
    (["describe", "--bootstrap-servers="], "--bootstrap-server"),
    (["describe", "-c", " "], "--context"),
    (["describe", "--command-config", ""], "--command-config"),
    (["describe", "--command-property", "bootstrap.servers="], "--command-property bootstrap.servers"),
    (["describe", "--snapshot", ""], "--snapshot"),
    (["describe", "--metadata-log", "here", "--metadata-log", ""], "--metadata-log"),
    (["describe", "--bootstrap-controller", ""], "--bootstrap-controller"),
    (["describe", "orders:1", ""], "TARGET"),
    (["elect", "-e", "preferred", "--topic", ""], "--topic"),
    (["recover", "plan", "--logs", ""], "--logs"),
    (["recover", "undo", ""], "JOURNAL|PLAN"),
]


@pytest.mark.parametrize(("line", "named"), EMPTY, ids=[" ".join(line) for line, _ in EMPTY])
def test_an_empty_value_is_no_option_that_was_left_out(
    kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: list[str], named: str
) -> None:
    (tmp_path / "contexts.toml").write_text('current = "prod"\n' + CONTEXTS, encoding="utf-8")
    monkeypatch.setenv("KELR_CONFIG_DIR", str(tmp_path))

    def opened(_: Resolved) -> None:
        pytest.fail("the cluster of the current context was asked")

    monkeypatch.setattr("kelr.commands.session.open_source", opened)
    ran = kelr(*line)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {named} was given an empty value"), ran.err


def test_an_empty_variable_counts_as_not_set(environ: dict[str, str]) -> None:
    names = ("BOOTSTRAP_SERVER", "BOOTSTRAP_CONTROLLER", "COMMAND_CONFIG", "CONTEXT", "TIMEOUT", "OUTPUT")
    empty = {f"KELR_{name}": "" for name in (*names, "LOG_INFO_API_KEY", "LOG_INFO_DIALECT")}
    given = Settings(bootstrap_server="here:9092")
    assert resolve(given, environ=environ | empty) == resolve(given, environ=environ)
