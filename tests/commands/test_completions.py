"""What shells are told when Tab is pressed, and that they tell a person the same."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.commands.complete_cache import FAILED_S, FRESH_S, MOST_BYTES, MOST_FILES, STALE_S, Cache
from kelr.commands.complete_known import known_of
from kelr.commands.generate import SHELLS as FILES
from kelr.commands.main import main
from kelr.commands.settings import Settings
from kelr.model import Broker, BrokerStatus, PartitionState
from kelr.recovery.journal import JOURNAL_DIRECTORY
from kelr.sources.snapshot_file import write_snapshot
from tests.commands.shells import PATIENCE_S, Shell, program_in_path
from tests.incident import INCIDENT

BASH, ZSH, FISH = (shutil.which(name) for name in ("bash", "zsh", "fish"))
SCRIPTS = Path(__file__).resolve().parents[2] / "completions"
HOSTILE_RACK = "az 4; touch 'hostile' $(touch hostile) `touch hostile` \\ \"x\""


def _environ(tmp_path: Path) -> dict[str, str]:
    """Directories of its own, and nobody's connection."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KELR_")}
    places = {name: str(tmp_path / name) for name in ("KELR_CACHE_DIR", "KELR_CONFIG_DIR", "KELR_STATE_DIR")}
    return {**kept, **places, "LC_ALL": "C.UTF-8"}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return _environ(tmp_path)


def _saved(tmp_path: Path) -> str:
    """The incident in a file, with a rack of the worst kind."""
    brokers = (*INCIDENT.cluster.brokers, Broker(14, BrokerStatus.LIVE, "kafka-14", 9092, HOSTILE_RACK))
    states = (
        *(PartitionState("orders", number, 2, 1, (2,), (2,), (), ()) for number in range(12)),
        PartitionState("payments", 0, 2, 1, (2,), (2,), (), ()),
        PartitionState("__consumer_offsets", 0, 2, 1, (2,), (2,), (), ()),
    )
    path = tmp_path / "incident.kelr"
    snapshot = replace(
        INCIDENT, cluster=replace(INCIDENT.cluster, brokers=brokers), partitions=tuple(sorted(states, key=_address))
    )
    write_snapshot(snapshot, path)
    return str(path)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    return _saved(tmp_path)


@pytest.fixture(scope="module")
def read_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str]:
    """Directories in which the incident, and the file that it is in, are remembered: never changed by a test."""
    directory = tmp_path_factory.mktemp("known")
    environ, saved = _environ(directory), _saved(directory)
    remembered(environ, f"--snapshot {saved}")
    return environ, saved


@pytest.fixture
def known(read_once: tuple[dict[str, str], str]) -> tuple[dict[str, str], str]:
    """`read_once`, and as if read now: on a busy machine the module takes longer than an answer is fresh."""
    environ, saved = read_once
    for path in Path(environ["KELR_CACHE_DIR"]).rglob("*"):
        os.utime(path)
    return environ, saved


def _address(state: PartitionState) -> tuple[str, int]:
    return state.topic, state.partition


def asking(environ: dict[str, str], line: str) -> dict[str, str]:
    """What fish sets when Tab is pressed behind this; it shows remarks, too."""
    variables = {"_KELR_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return environ | variables | {"_TYPER_COMPLETE_ARGS": f"kelr {line}"}


def ask(environ: dict[str, str], line: str) -> list[str]:
    """What one press of Tab is told, as a process of its own; it says nothing else and ends well."""
    command = [sys.executable, "-m", "kelr"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=asking(environ, line), timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


Press = Callable[[dict[str, str], str], list[str]]


@pytest.fixture
def press(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Press:
    """`ask`, in this process."""

    def press(environ: dict[str, str], line: str) -> list[str]:
        for name, value in asking(environ, line).items():
            monkeypatch.setenv(name, value)
        assert main([]) == 0
        said = capfd.readouterr()
        assert said.err == ""
        return said.out.splitlines()

    return press


def remembered(environ: dict[str, str], words: str) -> None:
    """Press Tab until the cluster, or the file, has been read."""
    deadline = time.monotonic() + PATIENCE_S
    while not ask(environ, f"describe {words} --broker "):
        assert time.monotonic() < deadline, "nothing was ever remembered"


def names(offers: list[str]) -> list[str]:
    return [offer.split("\t")[0] for offer in offers]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("describe ", ["orders", "payments"]),
        ("describe o", ["orders"]),
        ("describe orders pay", ["payments"]),
        ("describe __c", ["__consumer_offsets"]),
        ("describe orders:1", ["orders:1", "orders:10", "orders:11"]),
        ("describe orders:0,8-", ["orders:0,8-9", "orders:0,8-10", "orders:0,8-11"]),
        ("describe orders:0-9,", ["orders:0-9,10", "orders:0-9,11"]),
        ("describe 'orders:10", ["orders:10"]),
        ("describe unknown:", []),
        ("describe --cursor=pay", ["payments"]),
        ("elect --topic p", ["payments"]),
        ("recover clear-elr p", ["payments"]),
        ("rescue replay saved.kelr-rescue pay", ["payments"]),
        ("describe --broker 1", ["1", "14"]),
        ("elect --designate 1", ["1", "14"]),
        ("whatif --stop 2,1", ["2,1", "2,14"]),
        ("recover plan --gone 1,2,3,", ["1,2,3,14"]),
        ("describe --rack az", ["az1", "az2", "az3"]),
        ("elect --topic orders --partition 1", ["1", "10", "11"]),
        ("describe --topic payments --partition ", ["0"]),
    ],
)
def test_what_a_cluster_has_is_offered(
    known: tuple[dict[str, str], str], press: Press, line: str, expected: list[str]
) -> None:
    environ, saved = known
    assert names(press(environ, f"--snapshot {saved} {line}")) == expected
    command, _, rest = line.partition(" ")
    if command not in {"recover", "rescue"}:
        assert names(press(environ, f"{command} --snapshot={saved} {rest}")) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("describe --output y", ["yaml"]),
        ("describe --output=y", ["yaml"]),
        ("describe --situation no", ["no-live-replica"]),
        ("explain --rules au", ["auto"]),
        ("explain --rules elr-4.3", ["elr-4.3"]),
        ("explain --why lis", ["list"]),
        ("explain --election pre", ["preferred"]),
        ("elect -e des", ["designation"]),
        ("recover plan --election-type unc", ["unclean"]),
        ("whatif --keep m", ["min-isr"]),
        ("fleet exposure --by ra", ["rack"]),
        ("fleet assess --rules au", ["auto"]),
        ("lab up --simulated --rules kra", ["kraft"]),
        ("lab incident waiting", ["waiting-for-elr"]),
        ("schema log", ["log-info"]),
        ("errors plan-st", ["plan-stale"]),
        ("completion z", ["zsh"]),
        ("explain --rules kip966-a", ["kip966-aggressive"]),
        ("explain --why last", ["last-known-leader"]),
        ("-o y", ["yaml"]),
        ("describe --leaderl", ["--leaderless"]),
        ("describe --unavail", []),
        ("describe -b ", []),
        ("desc", ["describe"]),
        ("-b host:1 log", ["log-info"]),
        ("recover un", ["undo"]),
        ("metrics ex", ["export"]),
        ("metrics --jolo", ["--jolokia"]),
        ("metrics -b a:1 --output js", ["json"]),
        ("metrics export --jolo", []),
        ("--vers", ["--version"]),
        ("describe --limit x --rack=", []),
    ],
)
def test_what_kelr_has_is_offered(environ: dict[str, str], press: Press, line: str, expected: list[str]) -> None:
    assert names(press(environ, line)) == expected


@pytest.mark.parametrize("answers", ["--metadata-log /mnt/log", "--bootstrap-controller controller-1:9093"])
def test_of_a_metadata_log_nothing_is_offered_and_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, press: Press, answers: str
) -> None:
    """The current cluster may be another one than the log's."""
    environ = {**_environ(tmp_path), "KELR_BOOTSTRAP_SERVER": "kafka-1:9092"}
    asked: list[object] = []
    monkeypatch.setattr("kelr.commands.complete_known._read_now", lambda *found: asked.append(found))
    assert press(environ, f"describe {answers} ") == []
    assert asked == []
    assert press(environ, f"describe {answers} -b kafka-1:9092 ") == []
    assert len(asked) == 1, "brokers that the line names are asked, whatever stands beside them"


def test_remarks_tell_what_a_broker_and_a_topic_are(known: tuple[dict[str, str], str]) -> None:
    environ, saved = known
    assert ask(environ, f"describe --snapshot {saved} --broker 2") == ["2\tlive, kafka-2:9092, rack az2"]
    assert ask(environ, f"describe --snapshot {saved} o") == ["orders\t12 partitions"]
    assert ask(environ, f"describe --snapshot {saved} --broker 14") == ["14"], "the remark has a hostile name"


def test_what_a_topic_cannot_be_called_is_not_offered(environ: dict[str, str], saved: str) -> None:
    remembered(environ, f"--snapshot {saved}")
    (path,) = Path(environ["KELR_CACHE_DIR"]).rglob("*.topics")
    head, _, rest = path.read_text(encoding="utf-8").partition("\n")
    bad = ["$(touch hostile)\t1", ";reboot\t1", "a b\t1", "a\x1b[2J\t1", "a\t-1", "a" * 250 + "\t1", "\t1", "good\t1"]
    path.write_text("\n".join([head, *bad, rest]), encoding="utf-8")
    assert names(ask(environ, f"describe --snapshot {saved} ")) == ["good", "orders", "payments"]
    assert ask(environ, f"describe --snapshot {saved} '$") == []


def test_contexts_and_journals_are_read_from_their_files(environ: dict[str, str]) -> None:
    config = Path(environ["KELR_CONFIG_DIR"])
    config.mkdir()
    text = '[contexts.prod]\nbootstrap_server = "kafka-1:9092"\n[contexts.test]\n[contexts."a b"]\n'
    text += '[contexts."\\u001b[2Jbad"]\n'
    (config / "contexts.toml").write_text(text, encoding="utf-8")
    assert ask(environ, "describe --context ") == ["prod\tkafka-1:9092", "test"]
    assert ask(environ, "context use p") == ["prod\tkafka-1:9092"]
    journals = Path(environ["KELR_STATE_DIR"]) / "clusters" / "abc" / JOURNAL_DIRECTORY
    journals.mkdir(parents=True)
    for name, second in (("old-1", 0), ("new-2", 86_400)):
        (journals / f"{name}.jsonl").touch()
        os.utime(journals / f"{name}.jsonl", (second, second))
    assert ask(environ, "recover undo ") == ["new-2\t1970-01-02 00:00:00Z", "old-1\t1970-01-01 00:00:00Z"]
    assert names(ask(environ, "recover resume o")) == ["old-1"]


@pytest.mark.parametrize("words", ["", "-b nobody.invalid:1", "--snapshot /nowhere", "-c none"])
@pytest.mark.parametrize(
    "what",
    ["describe ", "describe orders:", "elect --partition ", "describe --broker ", "whatif --stop 1,", "recover undo "],
)
def test_silent_where_there_is_nothing(
    environ: dict[str, str], words: str, what: str, press: Press, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kelr.commands.complete_known.Cache.lock", lambda _: None)
    monkeypatch.setattr("kelr.commands.complete_known.WAIT_S", 0.0)
    config = Path(environ["KELR_CONFIG_DIR"])
    config.mkdir()
    (config / "contexts.toml").write_text("[[[", encoding="utf-8")
    assert press(environ, f"{words} {what}") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell", "nonsense"])
def test_silent_whatever_fails(shell: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        sys.stderr.write("this is broken\n")
        raise ValueError("broken")

    monkeypatch.setenv("_KELR_COMPLETE", f"complete_{shell}")
    main([])  # bash has set no line
    monkeypatch.setenv("COMP_WORDS", "kelr")
    monkeypatch.setenv("COMP_CWORD", "0")
    monkeypatch.setattr("kelr.commands.app.build", broken)
    main([])
    assert capfd.readouterr().err == ""


def test_a_variable_that_is_left_empty_asks_for_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """PowerShell's script leaves it so: kelr has to answer as ever in that shell."""
    monkeypatch.setenv("_KELR_COMPLETE", "")
    assert main(["--version"]) == 0
    assert capfd.readouterr().out.startswith("kelr ")


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_cluster_that_does_not_answer_is_not_waited_for(environ: dict[str, str], deaf: str) -> None:
    assert ask(environ, f"describe -b {deaf} ") == []  # and nobody holds the pipe any more
    cache = Path(environ["KELR_CACHE_DIR"]) / "completion"
    assert [path.suffix for path in cache.iterdir()] == [".lock"], "the reading, which takes seconds, has not ended"


def test_what_another_reading_has_just_brought_is_not_read_again(
    environ: dict[str, str], saved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one ends between the look at what is remembered and the right to read."""
    lock = Cache.lock

    def brought(cache: Cache) -> int | None:
        descriptor = lock(cache)
        cache.write([("payments", 1)], [])
        return descriptor

    def apart(*_: object) -> int:
        raise AssertionError("the cluster is read once more")

    monkeypatch.setattr("kelr.commands.complete_known.Cache.lock", brought)
    monkeypatch.setattr("kelr.commands.complete_known.read_apart", apart)
    for _ in range(2):  # the lock was given back
        known = known_of(Settings(snapshot=Path(saved)), environ)
        assert known is not None
        assert list(known.topics_with("")) == [("payments", 1)]
        (path,) = Path(environ["KELR_CACHE_DIR"]).rglob("*.topics")
        path.unlink()


def test_a_cluster_that_failed_is_left_alone_for_a_moment(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    deadline = time.monotonic() + PATIENCE_S
    directory = Path(environ["KELR_CACHE_DIR"]) / "completion"
    while not list(directory.glob("*.failed")):
        assert ask(environ, f"describe -b 127.0.0.1:{port} ") == []
        assert time.monotonic() < deadline
    (failed,) = directory.glob("*.failed")
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(0.0)
        os.utime(failed)  # just now, however long the looks at it took
        assert ask(environ, f"describe -b 127.0.0.1:{port} ") == []
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "secret",
    [
        'username = "ada"\npassword_command = "touch {marker}"\n'
        '[contexts.prod.properties]\n"security.protocol" = "SASL_PLAINTEXT"\n"sasl.mechanism" = "PLAIN"',
        '[contexts.prod.properties]\n"security.protocol" = "SASL_PLAINTEXT"\n"sasl.mechanism" = "PLAIN"\n'
        '"sasl.jaas.config" = {{ command = "touch {marker}" }}',
    ],
)
def test_no_password_command_is_run(environ: dict[str, str], tmp_path: Path, deaf: str, secret: str) -> None:
    config = Path(environ["KELR_CONFIG_DIR"])
    config.mkdir()
    marker = tmp_path / "was-run"
    text = f'current = "prod"\n[contexts.prod]\nbootstrap_server = "{deaf}"\n{secret.format(marker=marker)}\n'
    (config / "contexts.toml").write_text(text, encoding="utf-8")
    (config / "contexts.toml").chmod(0o600)
    deadline = time.monotonic() + PATIENCE_S
    while not list(Path(environ["KELR_CACHE_DIR"]).rglob("*.failed")):
        assert ask(environ, "describe ") == []
        assert time.monotonic() < deadline, "the reading has not ended"
    assert not marker.exists()
    # The command would be run by whoever asks the cluster: the test is about a context that has one.
    subprocess.run(
        [sys.executable, "-m", "kelr", "describe", "--timeout", "0.2"], env=environ, capture_output=True, check=False
    )
    assert marker.exists()


def test_what_is_remembered_loads_no_client(known: tuple[dict[str, str], str]) -> None:
    environ, saved = known
    program = "import sys; from kelr.commands.main import main; main([]); print(*sorted(sys.modules), sep='\\n')"
    line = asking(environ, f"describe --snapshot {saved} pay")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=line, check=True)
    offered, *loaded = done.stdout.splitlines()
    assert offered == "payments\t1 partition"
    assert {"kafka", "confluent_kafka", "kelr.sources.live", "kelr.recovery"}.isdisjoint(loaded)


def test_a_command_is_offered_without_its_module(environ: dict[str, str]) -> None:
    program = "import sys; from kelr.commands.main import main; main([]); print(*sorted(sys.modules), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=asking(environ, ""), check=True
    )
    assert "describe\tList partitions and their situation" in done.stdout
    assert not re.search(r"^kelr\.commands\.(describe|lab|recover)$", done.stdout, re.MULTILINE)


def test_no_secret_is_kept(environ: dict[str, str], deaf: str, tmp_path: Path) -> None:
    planted = "pl4nted-s3cret"
    properties = f"'sasl.jaas.config=x required password={planted};'"
    ask(environ, f"describe -b {deaf} --command-property {properties} ")
    first = {path.name for path in Path(environ["KELR_CACHE_DIR"]).rglob("*.lock")}
    ask(environ, f"describe -b {deaf} --command-property {properties.replace(planted, 'another')} ")
    assert {path.name for path in Path(environ["KELR_CACHE_DIR"]).rglob("*.lock")} == first, "the name depends on it"
    for path in tmp_path.rglob("*"):
        assert planted not in path.name
        assert not path.is_file() or planted.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "line",
    [
        "describe --snapshot {} pay",
        "describe --snapshot={} pay",
        "describe '--snapshot' '{}' pay",
        "--snapshot {} describe -o json pay",
        "--snapshot {} describe --bootstrap-servers= pay",
    ],
)
def test_the_cluster_is_found_however_it_is_named(
    known: tuple[dict[str, str], str], press: Press, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ, saved = known
    monkeypatch.setattr("kelr.commands.complete_known.WAIT_S", 0.0)  # nothing is read for it: it is remembered
    assert names(press(environ, line.format(saved))) == ["payments"]


class TestCache:
    @pytest.fixture
    def cache(self, tmp_path: Path) -> Cache:
        cache = Cache(str(tmp_path / "cache"), ["a cluster"])
        descriptor = cache.lock()
        assert descriptor is not None
        os.close(descriptor)
        return cache

    def test_what_is_written_is_read(self, cache: Cache) -> None:
        cache.write([("b", 2), ("a.b", 3), ("a", 1), ("ab", 4)], [{"id": 1}])
        known = cache.read()
        assert known is not None
        assert list(known.topics_with("")) == [("a", 1), ("a.b", 3), ("ab", 4), ("b", 2)]
        assert list(known.topics_with("a")) == [("a", 1), ("a.b", 3), ("ab", 4)]
        assert list(known.topics_with("c")) == []
        assert known.brokers() == [{"id": 1}]
        assert 0 <= known.age_s < FRESH_S

    def test_only_its_owner_reads_it(self, cache: Cache) -> None:
        cache.write([("a", 1)], [])
        assert stat.S_IMODE(os.stat(cache.path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(cache.directory).st_mode) == 0o700

    def test_nothing_is_left_of_a_write_that_failed(self, cache: Cache) -> None:
        with pytest.raises(OSError, match="too many"):
            cache.write([("a" * MOST_BYTES, 1)], [])
        assert cache.read() is None
        assert [name for name in os.listdir(cache.directory) if not name.endswith(".lock")] == []

    @pytest.mark.parametrize(
        "text", [b"", b"{", b"{}\n", b"[]\n", b'{"format":1}\na\t1', b'{"format":2}\na\t1\n', b"\xff\n"]
    )
    def test_a_garbled_file_is_nothing(self, cache: Cache, text: bytes) -> None:
        Path(cache.path).write_bytes(text)
        assert cache.read() is None

    def test_a_file_that_others_may_write_is_not_believed(self, cache: Cache) -> None:
        cache.write([("a", 1)], [])
        os.chmod(cache.path, 0o622)
        assert cache.read() is None

    def test_a_link_is_not_followed(self, cache: Cache, tmp_path: Path) -> None:
        cache.write([("a", 1)], [])
        os.rename(cache.path, tmp_path / "elsewhere")
        os.symlink(tmp_path / "elsewhere", cache.path)
        assert cache.read() is None

    def test_one_process_reads_at_a_time(self, cache: Cache) -> None:
        first = cache.lock()
        assert first is not None
        assert cache.lock() is None
        os.close(first)
        again = cache.lock()
        assert again is not None
        os.close(again)

    def test_a_failure_is_remembered_for_a_moment(self, cache: Cache) -> None:
        assert not cache.failed_lately()
        cache.remember_failure()
        assert cache.failed_lately()
        early = time.time() - FAILED_S - 1
        os.utime(cache.path + ".failed", (early, early))
        assert not cache.failed_lately()

    def test_the_directory_stays_small(self, cache: Cache) -> None:
        for number in range(MOST_FILES + 10):
            (Path(cache.directory) / f"{number}.topics").touch()
        cache.write([("a", 1)], [])
        assert len(os.listdir(cache.directory)) == MOST_FILES
        assert cache.read() is not None


@pytest.mark.parametrize(
    ("age_s", "offered"), [(0, True), (FRESH_S + 5, True), (STALE_S - 5, True), (STALE_S + 5, False)]
)
def test_old_names_are_better_than_none_for_a_while(
    environ: dict[str, str],
    saved: str,
    *,
    age_s: float,
    offered: bool,
    monkeypatch: pytest.MonkeyPatch,
    press: Press,
) -> None:
    remembered(environ, f"--snapshot {saved}")
    (path,) = Path(environ["KELR_CACHE_DIR"]).rglob("*.topics")
    then = time.time() - age_s
    os.utime(path, (then, then))
    monkeypatch.setattr("kelr.commands.complete_known.Cache.lock", lambda _: None)  # nobody reads it again
    monkeypatch.setattr("kelr.commands.complete_known.WAIT_S", 0.0)
    assert bool(press(environ, f"describe --snapshot {saved} pay")) is offered


ShellAt = Callable[[str | None], Shell]


@pytest.fixture
def shell(known: tuple[dict[str, str], str], tmp_path: Path) -> Iterator[ShellAt]:
    """Starts a shell in an empty directory, in which kelr knows the incident."""
    opened: list[Shell] = []

    def start(program: str | None) -> Shell:
        assert program is not None, "a shell that CI has"
        opened.append(Shell(program, known[0], tmp_path))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
    assert not (tmp_path / "hostile").exists(), "a name was run as a command"


SHELLS = [
    pytest.param(BASH, id="bash"),
    pytest.param(ZSH, id="zsh", marks=pytest.mark.skipif(ZSH is None, reason="zsh is not installed")),
]


@pytest.mark.parametrize("program", SHELLS)
def test_a_shell_completes_a_line(shell: ShellAt, program: str | None, known: tuple[dict[str, str], str]) -> None:
    here, saved = shell(program), known[1]
    before = f"kelr --snapshot {saved} describe"
    given = f"<--snapshot><{saved}><describe>"
    assert here.completed("kelr desc") == "<describe>"
    assert here.completed("kelr lab inc") == "<lab><incident>"
    assert here.completed("kelr describe --output ya") == "<describe><--output><yaml>"
    assert here.completed("kelr metrics --jolo") == "<metrics><--jolokia>", "of what runs where no command is named"
    assert here.completed("kelr metrics -b a:1 --output js") == "<metrics><-b><a:1><--output><json>"
    assert here.completed("kelr metrics export --inter") == "<metrics><export><--interval>", "it takes no argument"
    assert here.completed(f"{before} pay") == f"{given}<payments>"
    assert here.completed(f"{before} payments:") == f"{given}<payments:0>"
    assert here.completed(f"{before} orders:0,8-1") == f"{given}<orders:0,8-1>"
    assert here.completed(f"{before} orders:0-10,") == f"{given}<orders:0-10,11>"
    assert here.completed(f"{before} --broker 14") == f"{given}<--broker><14>"
    assert here.completed(f"{before} --topic payments --partition ") == f"{given}<--topic><payments><--partition><0>"
    assert sorted(here.offered(f"{before} orders:1", 3))[:1] in (["1"], ["orders:1"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kelr describe --output=ya", "<describe><--output=yaml>"),
        ("kelr -b here:9092,there:9092 desc", "<-b><here:9092,there:9092><describe>"),
        ("kelr --snapshot={0} describe --cursor=payments:", "<--snapshot={0}><describe><--cursor=payments:0>"),
        ("kelr --snapshot {0} describe 'payments:", "<--snapshot><{0}><describe><payments:0>"),
    ],
)
def test_bash_takes_words_apart(shell: ShellAt, known: tuple[dict[str, str], str], line: str, expected: str) -> None:
    assert shell(BASH).completed(line.format(known[1])) == expected.format(known[1])


@pytest.mark.parametrize("program", SHELLS)
def test_a_hostile_name_is_not_offered(shell: ShellAt, program: str | None, known: tuple[dict[str, str], str]) -> None:
    here, saved = shell(program), known[1]
    line = here.completed(f"kelr --snapshot {saved} describe --rack az")
    assert line == f"<--snapshot><{saved}><describe><--rack><az>", "az1, az2 and az3 begin alike"
    here.completed(f"kelr --snapshot {saved} describe --broker ")


@pytest.mark.parametrize("program", SHELLS)
def test_a_shell_shows_nothing_where_nothing_is_known(shell: ShellAt, program: str | None) -> None:
    heard = shell(program).silent("kelr -b 127.0.0.1:1 describe ord")
    others = [line for line in heard.splitlines() if line.strip() and "ord" not in line]
    assert others == ["$ "], "nothing but the line, what comes of it, and the next prompt"


@pytest.mark.parametrize("program", SHELLS)
def test_files_are_offered(shell: ShellAt, program: str | None, tmp_path: Path) -> None:
    here = shell(program)
    (tmp_path / "incident.kelr").touch()
    assert here.completed("kelr describe --snapshot in") == "<describe><--snapshot><incident.kelr>"


@pytest.mark.parametrize("program", SHELLS)
def test_every_help_text_can_be_shown(shell: ShellAt, program: str | None, tmp_path: Path) -> None:
    """zsh evaluates them."""
    here = shell(program)
    for command in ("describe", "explain", "elect", "recover plan", "metrics", "lab up", "fleet ingest"):
        here.completed(f"kelr {command} --")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(FISH is None, reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kelr desc", ["describe"]),
        ("kelr {} describe pay", ["payments"]),
        ("kelr {} describe orders:1", ["orders:1", "orders:10", "orders:11"]),
        ("kelr {} describe --broker ", ["1", "2", "3", "14"]),
        ("kelr {} describe --rack az1", ["az1"]),
        ("kelr lab inc", ["incident"]),
        ("kelr metrics --jolo", ["--jolokia"]),
        ("kelr metrics export --jolo", []),
        ("kelr describe --output y", ["yaml"]),
        ("kelr -b 127.0.0.1:1 describe ord", []),
    ],
)
def test_fish_completes_a_line(known: tuple[dict[str, str], str], line: str, expected: list[str]) -> None:
    environ, saved = known
    program = f"source {SCRIPTS / 'kelr.fish'}; complete -C '{line.format(f'--snapshot {saved}')}'"
    command = [str(FISH), "--no-config", "-c", program]
    with program_in_path(environ) as variables:
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=PATIENCE_S, check=True)
    assert names(done.stdout.splitlines()) == expected
    assert done.stderr == ""


@pytest.mark.parametrize("shell", FILES)
def test_a_script_is_printed_as_it_is_in_completions(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == (SCRIPTS / FILES[shell]).read_text(encoding="utf-8")


def test_an_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "choose one of bash, zsh, fish, powershell" in capsys.readouterr().err
