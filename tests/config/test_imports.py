"""Contexts of other tools: what is carried over, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelr.config.context import context_of
from kelr.config.imports import Tool, read_import
from kelr.config.imports.found import Found
from kelr.config.login import Login
from kelr.errors import BadInputError, UsageError
from kelr.sources.connection import ConnectionSettings

KAFKACTL = """
contexts:
  default:
    brokers:
      - localhost:9092
  remote-cluster:
    brokers: [remote-1:9092, remote-2:9092]
    tls:
      enabled: true
      ca: ca.pem
      cert: my.crt
      certKey: my.key
      certKeyPassphrase: s3cret-passphrase
      insecure: true
    sasl:
      enabled: true
      username: admin
      password: s3cret
      mechanism: scram-sha512
      version: v0
    kubernetes:
      enabled: true
      binary: kubectl
    clientID: my-client-id
    kafkaVersion: 1.1.1
    requestTimeout: 10s
    avro:
      jsonCodec: avro
  "with oauth":
    Brokers: o:1
    SASL: {Enabled: true, Mechanism: oauth, tokenprovider: {plugin: azure}}
  keyring:
    brokers: [k:1]
    sasl: {enabled: true, username: ada}
    tls: {enabled: false, ca: ca.pem}
  nowhere: {}
keyring:
  enabled: true
current-context: default
"""
RPK = """
version: 6
globals:
  command_timeout: 10s
current_profile: prod
profiles:
  - name: local
    description: mine
    kafka_api:
      brokers: [127.0.0.1:19092]
  - name: prod
    from_cloud: true
    kafka_api:
      brokers: [a:9092, b:9092]
      tls:
        ca_file: /etc/ca.pem
        cert_file: /etc/tls.crt
        key_file: /etc/tls.key
        insecure_skip_verify: true
      sasl:
        user: ada
        password: s3cret
    admin_api:
      addresses: [a:9644]
  - name: tls-only
    kafka_api: {brokers: [c:1], tls: {}, sasl: {user: x, password: y, mechanism: CLOUD_OIDC}}
  - name: nothing
"""
KCL = """
current_profile = "prod"
[profiles.prod]
seed_brokers = ["a:1", "b:2"]
broker_timeout = "5s"
[profiles.prod.tls]
ca_cert_path = "/etc/ca.pem"
client_cert_path = "/etc/tls.crt"
client_key_path = "/etc/tls.key"
insecure = true
server_name = "kafka"
min_version = "1.3"
[profiles.prod.sasl]
method = "scram-sha-256"
user = "ada"
pass = "s3cret"
is_token = true
[profiles.msk]
seed_brokers = ["m:1"]
sasl = { method = "aws_msk_iam" }
[profiles.empty]
"""
NOT_USED = "not carried over: kelr has no use for it"


def imported(directory: Path, name: str, text: str, tool: Tool | None = None) -> Found:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    found = read_import(path, tool)
    for context in found.contexts:
        context_of(context.name, context.values, directory / "contexts.toml")  # every one of them is a context
    assert "s3cret" not in repr(found)
    return found


def test_kafkactl(tmp_path: Path) -> None:
    found = imported(tmp_path, "config.yml", KAFKACTL)
    assert (found.tool, found.current) == ("kafkactl", "default")
    assert found.left_out == (f"keyring: {NOT_USED}", "nowhere: it names no brokers")
    by_name = {context.name: context for context in found.contexts}
    assert list(by_name) == ["default", "remote-cluster", "with-oauth", "keyring"]
    assert by_name["default"].values == {"bootstrap_server": "localhost:9092"}
    assert by_name["default"].left_out == ()
    remote = by_name["remote-cluster"]
    assert remote.values == {
        "bootstrap_server": "remote-1:9092,remote-2:9092",
        "username": "admin",
        "password": "s3cret",
        "properties": {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": str(tmp_path / "ca.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": {"file": str(tmp_path / "my.crt")},
            "ssl.keystore.key": {"file": str(tmp_path / "my.key")},
            "ssl.key.password": "s3cret-passphrase",
            "sasl.mechanism": "SCRAM-SHA-512",
        },
    }
    assert [one.partition(":")[0] for one in remote.left_out] == [
        "tls.insecure",
        "sasl.version",
        "kubernetes",
        "clientID",
        "requestTimeout",
        "kafkaversion",
        "avro",
    ]
    oauth = by_name["with-oauth"]
    assert oauth.values == {
        "bootstrap_server": "o:1",
        "properties": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"},
    }
    assert [one.partition(":")[0] for one in oauth.left_out] == ["name", "sasl.tokenprovider"]
    keyring = by_name["keyring"]
    assert keyring.values["properties"] == {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    assert keyring.left_out == (
        "sasl.password: not in the file (kafkactl asks its keyring): add password_env, _file or _command",
    )


def test_kafkactl_keeps_the_current_context_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "current-context.yml").write_text("current-context: with oauth\n", encoding="utf-8")
    assert imported(tmp_path, "config.yml", KAFKACTL).current == "with-oauth"
    (tmp_path / "current-context.yml").write_text("current-context: nowhere\n", encoding="utf-8")
    assert imported(tmp_path, "config.yml", KAFKACTL).current is None
    (tmp_path / "current-context.yml").write_text("[", encoding="utf-8")
    assert imported(tmp_path, "config.yml", KAFKACTL).current is None


def test_rpk(tmp_path: Path) -> None:
    found = imported(tmp_path, "rpk.yaml", RPK)
    assert (found.tool, found.current) == ("rpk", "prod")
    assert found.left_out == (f"globals: {NOT_USED}", "nothing: it names no brokers")
    local, prod, tls_only = found.contexts
    assert local.values == {"bootstrap_server": "127.0.0.1:19092"}
    assert local.left_out == ("description: not carried over: write it as a comment",)
    assert prod.values == {
        "bootstrap_server": "a:9092,b:9092",
        "username": "ada",
        "password": "s3cret",
        "properties": {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": "/etc/ca.pem",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": {"file": "/etc/tls.crt"},
            "ssl.keystore.key": {"file": "/etc/tls.key"},
            "sasl.mechanism": "SCRAM-SHA-256",
        },
    }
    assert [one.partition(":")[0] for one in prod.left_out] == [
        "kafka_api.tls.insecure_skip_verify",
        "from_cloud",
        "admin_api",
    ]
    assert tls_only.values["properties"] == {"security.protocol": "SASL_SSL"}
    assert tls_only.left_out == ("kafka_api.sasl.mechanism: not carried over: kelr does not know CLOUD_OIDC",)


def test_kcl(tmp_path: Path) -> None:
    found = imported(tmp_path, "config.toml", KCL)
    assert (found.tool, found.current, found.left_out) == ("kcl", "prod", ("empty: it names no seed_brokers",))
    prod, msk = found.contexts
    assert prod.values["bootstrap_server"] == "a:1,b:2"
    assert (prod.values["username"], prod.values["password"]) == ("ada", "s3cret")
    assert prod.values["properties"]["security.protocol"] == "SASL_SSL"
    assert prod.values["properties"]["sasl.mechanism"] == "SCRAM-SHA-256"
    assert [one.partition(":")[0] for one in prod.left_out] == [
        "tls.insecure",
        "tls.server_name",
        "tls.min_version",
        "sasl.is_token",
        "broker_timeout",
    ]
    assert msk.values == {"bootstrap_server": "m:1"}
    assert msk.left_out == ("sasl.method: not carried over: kelr does not know aws_msk_iam",)


def test_kcl_without_profiles(tmp_path: Path) -> None:
    found = imported(tmp_path, "config.toml", 'seed_brokers = ["a:1"]\n')
    assert [(one.name, one.values) for one in found.contexts] == [("kcl", {"bootstrap_server": "a:1"})]


def test_java(tmp_path: Path) -> None:
    text = "bootstrap.servers=a:1\nsecurity.protocol=SSL\nmetadata.max.age.ms=5\n"
    found = imported(tmp_path, "prod.properties", text)
    (context,) = found.contexts
    assert (found.tool, context.name) == ("java", "prod")
    assert context.values == {"command_config": str(tmp_path / "prod.properties")}
    assert context.left_out == ("metadata.max.age.ms: not used by kelr",)
    (context,) = imported(tmp_path, "other.conf", "security.protocol=NOPE\n").contexts
    assert context.left_out[0].startswith("bootstrap.servers: the file names none")
    assert context.left_out[1].startswith("kelr cannot log in with it yet: ")


def test_what_was_imported_logs_in_on_both_clients(tmp_path: Path) -> None:
    """From another tool's file to the arguments of the client libraries."""
    for name in ("ca.pem", "my.crt", "my.key"):
        (tmp_path / name).write_text(f"{name}\n", encoding="utf-8")
    found = imported(tmp_path, "config.yml", KAFKACTL)
    context = context_of("x", found.contexts[1].values, tmp_path / "contexts.toml")
    settings = ConnectionSettings.read(context.bootstrap_server, overrides=Login(context, environ={}).properties)
    librdkafka = settings.confluent()
    assert librdkafka["bootstrap.servers"] == "remote-1:9092,remote-2:9092"
    assert (librdkafka["sasl.username"], librdkafka["sasl.password"]) == ("admin", "s3cret")
    assert librdkafka["ssl.ca.location"] == str(tmp_path / "ca.pem")
    assert (librdkafka["ssl.certificate.pem"], librdkafka["ssl.key.pem"]) == ("my.crt", "my.key")
    assert librdkafka["ssl.key.password"] == "s3cret-passphrase"
    assert librdkafka["ssl.endpoint.identification.algorithm"] == "https"
    assert (settings.sasl_mechanism, settings.security_protocol) == ("SCRAM-SHA-512", "SASL_SSL")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.yml", "contexts: [", "config.yml, line 2: no YAML|config.yml, line 1: no YAML"),
        ("config.yml", "- a", "holds no settings"),
        ("config.yml", "x: 1", "has no contexts as kafkactl keeps them"),
        ("config.yml", "contexts:\n  a: {}\n  b: {}\n  a: {}", "config.yml, line 4: a comes twice"),
        ("config.yml", "contexts: {a b: {brokers: [x]}, a-b: {brokers: [y]}}", "two contexts would be called a-b"),
        ("config.yml", "contexts: !!python/object/apply:os.system [ls]", "no YAML"),
        ("rpk.yaml", "profiles: [{name: a}, {name: a}]", "has two profiles called a"),
        ("rpk.yaml", "profiles: [{}]", "has no profiles as rpk keeps them"),
        ("config.toml", "x = \ny = 1", "no TOML: .*line 1"),
        ("config.toml", "x = 1", "has neither profiles nor seed_brokers"),
        ("x.properties", "a=\\u12", "line 1"),
        ("missing.yml", "", "cannot read .*missing.yml: No such file"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = tmp_path / name
    if text:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match=words):
        read_import(path)


def test_a_file_whose_tool_cannot_be_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot tell whose file") as caught:
        read_import(tmp_path / "config")
    assert caught.value.next_step == "say so with --from java|kafkactl|rpk|kcl"
    assert imported(tmp_path, "config", KCL, Tool.KCL).tool == "kcl"


@pytest.mark.parametrize("text", [KAFKACTL, RPK])
def test_secrets_are_in_no_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yml"
    path.write_text(text.replace("s3cret\n", "s3cret\n   bad: : indentation\n"), encoding="utf-8")
    with pytest.raises(BadInputError) as caught:
        read_import(path)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__
