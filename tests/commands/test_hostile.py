"""Nothing that a cluster, a file or the environment says drives a terminal, whichever way it is printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.commands import running
from kelr.model import (
    Broker,
    BrokerStatus,
    ConfigSource,
    LogUnavailable,
    LogUnavailableReason,
    Snapshot,
    TopicConfig,
    TopicError,
    TopicPartition,
)
from tests.commands.conftest import Kelr
from tests.incident import CLUSTER, INCIDENT, LOGS

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnihton\r\n\x08error: all is well\x7f"
DRIVES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for the line's end, and marks that turn the direction of what stands beside them."""
FORMATS = ("table", "wide", "json", "ndjson", "yaml", "csv")
CONNECTION = ("-b", "kafka-1:9092")

BROKERS = tuple(
    Broker(number, status, f"kafka-{number}{HOSTILE}", 9092, f"az{HOSTILE}")
    for number, status in ((1, BrokerStatus.FENCED), (2, BrokerStatus.LIVE), (3, BrokerStatus.LIVE))
)
SAID: Snapshot = replace(
    INCIDENT,
    cluster=replace(
        CLUSTER,
        cluster_id=f"id{HOSTILE}",
        brokers=BROKERS,
        features=replace(CLUSTER.features, finalized={**CLUSTER.features.finalized, f"feature{HOSTILE}": 1}),
        brokers_source=f"DescribeCluster{HOSTILE}",
        partitions_source=f"DescribeTopicPartitions{HOSTILE}",
    ),
    configs={
        **INCIDENT.configs,
        "orders": TopicConfig(2, ConfigSource.TOPIC, cleanup_policy=(f"delete{HOSTILE}",)),
        "secret": TopicConfig(error=f"ERROR{HOSTILE}"),
    },
    logs={
        **LOGS,
        TopicPartition("orders", 1): (
            *LOGS[TopicPartition("orders", 1)][:1],
            LogUnavailable(1, LogUnavailableReason.UNREACHABLE, f"refused{HOSTILE}"),
            LogUnavailable(2, LogUnavailableReason.UNREACHABLE, f"failed{HOSTILE}"),
        ),
    },
    topic_errors=(TopicError("other", f"ERROR{HOSTILE}", f"detail{HOSTILE}"),),
    source=f"live{HOSTILE}",
)


def without_carriage(text: str, format: str) -> str:
    """CSV ends its lines with both characters; a record's own are between quotes."""
    return text.replace("\r\n", "\n") if format == "csv" else text


@pytest.fixture(autouse=True)
def _here(cluster: Callable[[Snapshot], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster(SAID)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "command",
    [
        "describe",
        "describe --summary",
        "log-info orders",
        "log-info orders --lineage",
        "explain",
        "explain orders:1",
        "explain --if fails(3)",
        "explain --rules elr-4.0",
        "whatif",
        "whatif --kill 2",
        "whatif --any 2",
        "whatif --restart 3",
        "whatif --restart-order",
        "doctor",
        "metrics",
        "elect -e unclean orders:1 --dry-run",
        "recover plan orders payments -e longest_log_aggressive --full",
        "recover plan",
        "snapshot saved.kelr --overwrite",
    ],
)
def test_every_command_in_every_format(kelr: Kelr, command: str, format: str) -> None:
    words = [one.replace("fails(3)", "3 fails") for one in command.split()]
    ran = kelr(*words, "-o", format, *CONNECTION)
    assert "internal error" not in ran.err
    assert DRIVES.search(without_carriage(ran.out, format)) is None, ran.out
    assert DRIVES.search(ran.err) is None, ran.err


@pytest.mark.parametrize("what", ["orders payments -e longest_log_aggressive", "orders", ""])
def test_a_plan_as_markdown_and_for_kafkas_own_tools(kelr: Kelr, what: str) -> None:
    ran = kelr("recover", "plan", *what.split(), "--markdown", "--export", "files", *CONNECTION)
    assert "**Recovery plan" in ran.out
    written = [path.read_text(encoding="utf-8") for path in Path("files").iterdir()] if Path("files").exists() else []
    for text in (ran.out, ran.err, *written):
        assert DRIVES.search(text) is None, text


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_an_error_with_its_traceback(kelr: Kelr, monkeypatch: pytest.MonkeyPatch, debug: tuple[str, ...]) -> None:
    def broken(_: object) -> None:
        raise ValueError(HOSTILE)

    monkeypatch.setattr("kelr.commands.session.open_source", broken)
    ran = kelr("describe", *debug, *CONNECTION)
    assert (ran.code, bool(debug)) == (running.INTERNAL_ERROR, "Traceback" in ran.err)
    assert DRIVES.search(ran.err) is None, ran.err


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_words_of_the_command_line_and_of_files(kelr: Kelr, debug: tuple[str, ...]) -> None:
    Path("plan.json").write_text('{"format": "' + HOSTILE.replace("\r\n", "") + '"}', encoding="utf-8")
    Path(f"odd{HOSTILE.replace('/', '')}").write_text("kelr", encoding="utf-8")
    for words in (
        ["describe", f"orders{HOSTILE}"],
        ["describe", f"--{HOSTILE}"],
        [f"nothing{HOSTILE}"],
        ["recover", "verify", "plan.json"],
        ["simulate", f"odd{HOSTILE}"],
        ["recover", "clear-elr", "orders", "--force", HOSTILE],
    ):
        ran = kelr(*words, *debug, *([] if words[0] == "simulate" else CONNECTION))
        assert ran.code != 0
        for text in (ran.out, ran.err):
            assert DRIVES.search(text) is None, (words, text)
