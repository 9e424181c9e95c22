"""kafka-leader-election.sh's JSON file with the KIP's fields: taken, or refused with the place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import BadInputError
from kelr.model import ElectionRequest, ElectionType, TopicPartition
from kelr.recovery.election_file import ElectionEntry, read_election_file


def written(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "elections.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def refused(tmp_path: Path, text: str | bytes) -> str:
    file = written(tmp_path, text)
    with pytest.raises(BadInputError) as caught:
        read_election_file(file)
    assert caught.value.message.startswith(str(file))
    return caught.value.message.removeprefix(str(file)).lstrip(":, ")


def test_kafkas_own_file(tmp_path: Path) -> None:
    """As kafka-leader-election.sh --help has it."""
    file = written(
        tmp_path, '{"partitions":\n\t[{"topic": "foo", "partition": 1},\n\t {"topic": "foobar", "partition": 2}]\n}'
    )
    assert read_election_file(file) == {
        TopicPartition("foo", 1): ElectionEntry(),
        TopicPartition("foobar", 2): ElectionEntry(),
    }


def test_the_fields_of_the_kip(tmp_path: Path) -> None:
    entries = [
        {"topic": "b", "partition": 0, "desiredLeader": 2},
        {"topic": "a", "partition": 7, "minimalReplicas": 3},
        {"topic": "a", "partition": 1, "desiredLeader": None},
    ]
    found = read_election_file(written(tmp_path, json.dumps({"partitions": entries})))
    assert list(found.items()) == [
        (TopicPartition("b", 0), ElectionEntry(desired_leader=2)),
        (TopicPartition("a", 7), ElectionEntry(minimal_replicas=3)),
        (TopicPartition("a", 1), ElectionEntry()),
    ]
    assert found[TopicPartition("b", 0)].wish(ElectionType.DESIGNATION) == ElectionRequest(ElectionType.DESIGNATION, 2)
    balanced = found[TopicPartition("a", 7)].wish(ElectionType.LONGEST_LOG_BALANCED)
    assert balanced == ElectionRequest(ElectionType.LONGEST_LOG_BALANCED, None, 3)


def test_the_version_that_older_tools_write_says_nothing(tmp_path: Path) -> None:
    text = '{"version": 1, "partitions": [{"topic": "a", "partition": 0}]}'
    assert list(read_election_file(written(tmp_path, text))) == [TopicPartition("a", 0)]


@pytest.mark.parametrize(
    ("partitions", "problem"),
    [
        (
            '{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}',
            "partitions[1]: replica election data contains",
        ),
        ("", "replica election data is empty: it lists no partition"),
        ('{"topic": "a"}', "partitions[0].partition: this field is missing"),
        ('{"partition": 0}', "partitions[0].topic: this field is missing"),
        ('{"topic": "a", "partition": "0"}', "partitions[0].partition: not a whole number"),
        ('{"topic": "a", "partition": 0.0}', "partitions[0].partition: not a whole number"),
        ('{"topic": "a", "partition": true}', "partitions[0].partition: not a whole number"),
        ('{"topic": "a", "partition": -1}', "partitions[0].partition: less than 0"),
        ('{"topic": "a", "partition": 2147483648}', "partitions[0].partition: more than 2147483647"),
        ('{"topic": "a b", "partition": 0}', "partitions[0].topic: not of the form"),
        ('{"topic": "", "partition": 0}', "partitions[0].topic: not of the form"),
        ('{"topic": 5, "partition": 0}', "partitions[0].topic: not a text in quotes"),
        (
            '{"topic": "a", "partition": 0, "desiredLeder": 2}',
            "partitions[0].desiredLeder: no such field; did you mean 'desiredLeader'?",
        ),
        ('{"topic": "a", "partition": 0, "desired_leader": 2}', "partitions[0].desired_leader: no such field; did you"),
        (
            '{"topic": "a", "partition": 0, "desiredLeader": "2"}',
            "partitions[0].desiredLeader: not a whole number",
        ),
        ('{"topic": "a", "partition": 0, "desiredLeader": -1}', "partitions[0].desiredLeader: less than 0"),
        (
            '{"topic": "a", "partition": 0, "minimalReplicas": 0}',
            "partitions[0].minimalReplicas: less than 1",
        ),
        ('{"topic": "a", "topic": "b", "partition": 0}', "no election file: the field 'topic' is given twice"),
        ("5", "partitions[0]: not an object"),
    ],
)
def test_entries_that_are_wrong_are_refused_with_their_place(tmp_path: Path, partitions: str, problem: str) -> None:
    assert refused(tmp_path, f'{{"partitions": [{partitions}]}}').startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty: no election file"),
        ("{}", 'replica election data is missing the "partitions" field'),
        ("[]", 'replica election data is missing the "partitions" field'),
        ('{"partitons": []}', 'replica election data is missing the "partitions" field'),
        ('{"partitions": {}}', "partitions: not a list"),
        ('{"partitions": null}', "partitions: not a list"),
        ('{"partitions": [], "throttle": 5}', "throttle: no such field"),
        ('{"partitions": [{"topic": "a", "partition": NaN}]}', "no election file: NaN is no number in JSON"),
        ("[" * 100_000, "is nested deeper"),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str | bytes, problem: str) -> None:
    assert refused(tmp_path, text).startswith(problem)


def test_a_hundred_thousand_partitions_are_taken(tmp_path: Path) -> None:
    entries = [{"topic": f"topic-{at % 100}", "partition": at // 100} for at in range(100_000)]
    assert len(read_election_file(written(tmp_path, json.dumps({"partitions": entries})))) == 100_000


@given(st.dictionaries(st.tuples(st.from_regex(r"[a-z.]{1,8}", fullmatch=True), st.integers(0, 99)), st.integers(0, 9)))
def test_what_is_listed_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, wanted: dict[tuple[str, int], int]
) -> None:
    entries = [{"topic": t, "partition": p, "desiredLeader": leader} for (t, p), leader in wanted.items()]
    file = tmp_path_factory.getbasetemp() / "listed.json"
    file.write_text(json.dumps({"partitions": entries}))
    if not wanted:
        with pytest.raises(BadInputError, match="is empty"):
            read_election_file(file)
        return
    found = read_election_file(file)
    assert {(at.topic, at.partition): entry.desired_leader for at, entry in found.items()} == wanted
