"""What kelr says, and with which exit code, when it is used wrongly or given something broken."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.conftest import Kelr, Ran

NOBODY = "127.0.0.1:1"
"""Port 1 (tcpmux): nobody listens there."""


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("explain", "--why"), "kelr explain"),
        (("-o", "json", "describe", "-b"), "kelr describe"),
        (("lab", "up", "--kafka"), "kelr lab up"),
        (("explain", "orders:1", "--bogus"), "kelr explain"),
        (("-b",), "kelr"),
    ],
)
def test_the_help_that_is_pointed_to_is_that_of_the_command(
    kelr: Kelr, arguments: tuple[str, ...], command: str
) -> None:
    ran = kelr(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[1] == f"  fix: {command} --help"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("orders:x", "target 'orders:x': 'x' is not a partition number"),
        ("orders:3-1", "target 'orders:3-1': the range '3-1' runs backwards"),
        (":3", "target ':3' names no topic"),
        ("or ders", "'or ders' is not a topic name"),
        ("/or(/", "target '/or(/' is not a regular expression"),
        ("orders:99999999999", "goes beyond what Kafka can have"),
    ],
)
@pytest.mark.usefixtures("incident")
def test_bad_targets(kelr: Kelr, target: str, words: str) -> None:
    ran = kelr("describe", target)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert words in ran.err
    assert ran.err.splitlines()[1].startswith("  fix: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "a", "b"], "targets, --topic and --all-topic-partitions are three ways to say one thing"),
        (["--partition", "3"], "--partition goes with exactly one --topic"),
        (["--cursor", "orders"], "--cursor 'orders' is not one partition"),
        (["--cursor", "orders:1-2"], "--cursor 'orders:1-2' is not one partition"),
        (["--timeout", "0"], "--timeout is 0, not a number of seconds"),
        (["--timeout", "nan"], "--timeout is nan, not a number of seconds"),
        (["--snapshot", "x", "-b", "y:1"], "--snapshot answers from a file"),
    ],
)
@pytest.mark.usefixtures("incident")
def test_contradictions(kelr: Kelr, arguments: list[str], message: str) -> None:
    ran = kelr("describe", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("arguments", "words", "hint"),
    [
        (["descrbe"], "no such command 'descrbe'", "kelr --help"),
        (["describe", "--nope"], "no such option: --nope", "kelr describe --help"),
        (
            ["explain", "--leaderless"],
            "no such option: --leaderless",
            "kelr explain alone explains every partition that needs action",
        ),
        (
            ["whatif", "--leaderless"],
            "no such option: --leaderless",
            "kelr whatif --help; --leaderless is an option of kelr describe",
        ),
        (
            ["explain", "--log-dir", "x"],
            "no such option: --log-dir",
            "kelr recover collect --log-dir DIR --out broker-1.kelr, then kelr explain --logs broker-1.kelr",
        ),
        (["describe", "-o", "xml"], "'xml' is not one of", "kelr describe --help"),
        (["describe", "--limit", "0"], "--limit", "kelr describe --help"),
        (["describe", "--situation", "fine"], "'fine' is not one of", "kelr describe --help"),
        (["snapshot"], "missing argument 'FILE'", "kelr snapshot --help"),
    ],
)
def test_usage_errors_point_to_the_help(kelr: Kelr, arguments: list[str], words: str, hint: str) -> None:
    ran = kelr(*arguments)
    assert (ran.code, ran.out) == (2, "")
    first, *_, last = ran.err.splitlines()
    assert first.startswith("error: ")
    assert words in ran.err
    assert last == f"  fix: {hint}"


def test_no_cluster_named(kelr: Kelr) -> None:
    ran = kelr("describe")
    assert ran.code == 2
    assert ran.err.startswith(
        "error: nothing says which cluster to ask [no-cluster-named]\n  fix: give --bootstrap-server"
    )


def process(*arguments: str) -> Ran:
    """Run kelr as a process of its own: what client libraries log must not reach the user either."""
    command = [sys.executable, "-m", "kelr", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def test_nobody_listens() -> None:
    ran = process("describe", "-b", NOBODY, "--timeout", "5", "-o", "json")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"error: {NOBODY} refused the connection [connection-refused]\n  why: ")


@pytest.fixture
def speaker() -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers every connection with the bytes that the test puts in the list."""
    says: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(says[0])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}", says
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(timeout=5)


def test_a_port_that_is_no_broker(speaker: tuple[str, list[bytes]]) -> None:
    address, says = speaker
    says.append(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    ran = process("describe", "-b", address, "--timeout", "5")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (3, "", 2)
    assert address in ran.err
    assert "HTTP" in ran.err


def test_a_tls_port_without_tls(speaker: tuple[str, list[bytes]]) -> None:
    address, says = speaker
    # A TLS alert (type 21, fatal, unexpected message): what a TLS server says to bytes that are no handshake.
    says.append(bytes([21, 3, 3, 0, 2, 2, 10]))
    ran = process("describe", "-b", address, "--timeout", "5")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (3, "", 2)
    assert "TLS" in ran.err
    assert "security.protocol" in ran.err


def test_a_snapshot_that_is_not_there(kelr: Kelr) -> None:
    ran = kelr("describe", "--snapshot", "no-such-file")
    assert (ran.code, ran.out) == (2, "")
    assert "no-such-file" in ran.err


def test_a_truncated_snapshot(kelr: Kelr, snapshot_file: str) -> None:
    whole = Path(snapshot_file).read_bytes()
    Path("cut.kelr").write_bytes(whole[: len(whole) // 2])
    ran = kelr("describe", "--snapshot", "cut.kelr")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: cut.kelr was cut short")


def test_a_snapshot_of_a_newer_version(kelr: Kelr, snapshot_file: str) -> None:
    lines = gzip.decompress(Path(snapshot_file).read_bytes()).decode().splitlines()
    header = json.loads(lines[0])
    header["version"] = 99
    Path("newer.kelr").write_bytes(gzip.compress("\n".join([json.dumps(header), *lines[1:], ""]).encode()))
    ran = kelr("describe", "--snapshot", "newer.kelr")
    assert (ran.code, ran.out) == (2, "")
    assert "99" in ran.err
    assert "version" in ran.err


def test_something_that_is_no_snapshot(kelr: Kelr, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a snapshot at all\n", encoding="utf-8")
    ran = kelr("log-info", "orders", "--snapshot", str(path))
    assert (ran.code, ran.out) == (2, "")
    assert "notes.txt" in ran.err


def test_a_properties_file_that_is_not_there(kelr: Kelr) -> None:
    ran = kelr("describe", "-b", NOBODY, "--command-config", "none.properties")
    assert (ran.code, ran.out) == (2, "")
    assert "none.properties" in ran.err


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("describe", f"orders:{LONG}"), "goes beyond what Kafka can have"),
        (("describe", f"orders:0-{LONG}"), "goes beyond what Kafka can have"),
        (("describe", "--cursor", f"orders:{LONG}"), "--cursor: target "),
        (("describe", "--broker", LONG), "'--broker'"),
        (("whatif", "--kill", LONG), "--kill: '9999999"),
        (("whatif", "--restart", f"1,{LONG}"), "--restart: '9999999"),
        (("recover", "plan", "--gone", LONG), "--gone names '9999999"),
        (("metrics", "export", "--listen", f"127.0.0.1:{LONG}"), "is no address"),
        (("elect", "-e", "preferred", "--path-to-json-file", "FILE"), ", line 2: no election file: the number 9999"),
        (("recover", "verify", "FILE"), ", line 2: no plan: the number 9999"),
        (("recover", "apply", "FILE"), ", line 2: no plan: the number 9999"),
    ],
)
@pytest.mark.usefixtures("incident")
def test_a_number_of_thousands_of_digits_is_told_with_its_place(
    kelr: Kelr, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    file = tmp_path / "file.json"
    file.write_text(f'{{"partitions": [\n{{"topic": "orders", "partition": {LONG}}}]}}', encoding="utf-8")
    ran = kelr(*(str(file) if one == "FILE" else one for one in arguments), "-b", "kafka-1:9092")
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "4300" not in ran.err
