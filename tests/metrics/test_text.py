"""The text formats: what is read of them, and that nothing in them breaks the reader."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.samples import Sample

from kelr.metrics.reading import parse_line, read_text

BODIES = Path(__file__).parent / "bodies"
OFFLINE = "kafka_controller_kafkacontroller_offlinepartitionscount"


def body(name: str) -> bytes:
    return (BODIES / name).read_bytes()


def test_what_jmx_exporter_really_writes() -> None:
    read = read_text(body("controller-no-rules.txt"))
    found = {(one.name, one.labels.get("name")): one.value for one in read.samples}
    assert found["kafka_controller_ControllerStats_Count", "UncleanLeaderElectionsPerSec"] == 6.0
    assert found["kafka_controller_KafkaController_Value", "ActiveControllerCount"] == 1.0
    assert (read.unreadable, read.is_metrics, read.cut_short) == (0, True, False)


def test_open_metrics_says_the_same_and_has_an_end_mark() -> None:
    plain = read_text(body("controller-no-rules.txt"))
    read = read_text(body("controller-openmetrics.txt"), open_metrics=True)
    assert {(one.name, *one.labels.values()) for one in read.samples} == {
        (one.name, *one.labels.values()) for one in plain.samples
    }
    assert not read.cut_short
    assert read_text(body("controller-openmetrics.txt")[:-7], open_metrics=True).cut_short


@pytest.mark.parametrize(
    ("line", "sample"),
    [
        (f"{OFFLINE} 3", Sample(OFFLINE, {}, 3.0)),
        (f"{OFFLINE}  3.0e1  1700000000000", Sample(OFFLINE, {}, 30.0, 1_700_000_000)),
        (f'{OFFLINE}{{a="b"}}3', Sample(OFFLINE, {"a": "b"}, 3.0)),
        (
            f'{OFFLINE}{{ a = "b" , c="}}, \\"x\\" \\\\ \\n", }} 3',
            Sample(OFFLINE, {"a": "b", "c": '}, "x" \\ \n'}, 3.0),
        ),
        (f"{OFFLINE}{{}} +Inf", Sample(OFFLINE, {}, math.inf)),
    ],
)
def test_lines(line: str, sample: Sample) -> None:
    assert parse_line(line) == sample


@pytest.mark.parametrize(
    "line",
    [
        OFFLINE,
        f"{OFFLINE} ",
        f"{OFFLINE} three",
        f"{OFFLINE} 1_000",
        f'{OFFLINE}{{a="b" 3',
        f'{OFFLINE}{{a="b}} 3',
        f"{OFFLINE}{{a=b}} 3",
        f'{OFFLINE}{{a="b",a="c"}} 3',
        f'{OFFLINE}{{a="b"c="d"}} 3',
        "3",
    ],
)
def test_lines_that_are_none(line: str) -> None:
    assert parse_line(line) is None


def test_open_metrics_counts_time_in_seconds() -> None:
    line = f"{OFFLINE} 3 1700000000.5"
    sample = parse_line(line, open_metrics=True)
    assert sample is not None
    assert (sample.value, float(sample.timestamp or 0)) == (3.0, 1_700_000_000.5)


def test_a_garbled_line_costs_that_line_alone() -> None:
    read = read_text(f'{OFFLINE}{{a="b 3\nkafka_server_replicamanager_leadercount 5\n'.encode())
    assert [one.value for one in read.samples] == [5.0]
    assert read.unreadable == 1


def test_an_answer_that_breaks_off_is_said_to() -> None:
    assert read_text(f"{OFFLINE} 3\nkafka_server_replicamanager_lea".encode()).cut_short
    assert not read_text(f"{OFFLINE} 3\n".encode()).cut_short


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"<!DOCTYPE html>\n<html>login</html>\n", b'{"status": "UP"}\n', b"\0" * 99]
)
def test_what_is_no_metrics(content: bytes) -> None:
    assert not read_text(content).is_metrics


def test_a_line_without_end_is_not_parsed() -> None:
    read = read_text(OFFLINE.encode() + b'{a="' + b"x" * 1_000_000 + b'"} 3\n')
    assert (read.samples, read.unreadable) == ([], 1)


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_read_without_an_exception(tail: bytes, open_metrics: bool) -> None:
    read = read_text(f"{OFFLINE} 3\n{OFFLINE}".encode() + tail, open_metrics=open_metrics)
    assert read.samples[0] == Sample(OFFLINE, {}, 3.0)


LABELS = st.dictionaries(
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(lambda name: name != "__name__"),
    st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r\x85\x1c\x1d\x1e\x0b\x0c\u2028\u2029")),
    max_size=3,
)


@given(LABELS, st.floats(allow_nan=False), st.none() | st.integers(0, 10**13))
def test_what_is_written_is_read_back(labels: dict[str, str], value: float, stamp: int | None) -> None:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")

    inside = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
    said = {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, repr(value))
    line = f"{OFFLINE}{{{inside}}} {said}{'' if stamp is None else f' {stamp}'}"
    read = read_text((line + "\n").encode())
    assert read.samples == [Sample(OFFLINE, labels, value, None if stamp is None else stamp / 1000)]
