"""Plan files: what is written is read again, and anything edited or garbled is refused, with its place."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kelr.engine.planning import plan_id
from kelr.errors import BadInputError, UsageError
from kelr.model import ElectionRequest, ElectionType, Plan, Snapshot
from kelr.recovery.json_file import adapter
from kelr.recovery.plan_file import plan_document, read_plan, write_plan
from kelr.recovery.times import LAST_MS, from_iso, to_iso
from tests.engine.planned import asked, designated, incident, plan, planner, stopped
from tests.engine.snapshots import snapshots
from tests.properties import examples

OLDER = Path(__file__).parent / "plans"
"""Plans of older kelrs, each named after the last commit of the one that wrote it."""


def of_document(document: Any) -> Plan:
    """The plan of a file that holds this document."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "forged")
        file.write_text(json.dumps(document))
        return read_plan(file)


def planned() -> Plan:
    """Two elections, by a reordering and without, and a partition that is left alone."""
    made = plan(incident(), designated(2))
    other = replace(plan(incident(), asked(ElectionType.UNCLEAN)).elections[0], partition=1)
    left = replace(plan(incident()).not_planned[0], topic="payments")
    return replace(made, elections=(*made.elections, other), not_planned=(left,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    write_plan(planned(), file)
    return file


def edited(path: Path, edit: Callable[[dict[str, Any]], object]) -> Plan:
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    return read_plan(path)


def refused(path: Path, edit: Callable[[dict[str, Any]], object]) -> str:
    with pytest.raises(BadInputError) as caught:
        edited(path, edit)
    assert str(path) in str(caught.value)
    assert caught.value.next_step
    return str(caught.value).removeprefix(f"{path}: ")


def test_a_plan_is_read_as_it_was_written(path: Path) -> None:
    assert read_plan(path) == planned()
    assert json.loads(path.read_text())["plan_id"] == plan_id(planned())


@pytest.mark.parametrize("written", sorted(OLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_plan_of_an_older_kelr_keeps_its_name(written: Path, path: Path) -> None:
    """Fields that came later are neither in its hash nor in its file, nor in the journal of whoever applies it."""
    document = json.loads(written.read_text())
    made = read_plan(written)
    of_journal = adapter(Plan).validate_json(adapter(Plan).dump_json(made))
    assert plan_id(made) == plan_id(of_journal) == document["plan_id"]
    write_plan(made, path, overwrite=True)
    del document["signed_elections"]
    for election in document["elections"]:
        del election["digest"]
    assert json.loads(path.read_text()) == document
    document["not_planned"][0]["keep_down"] = [1]
    path.write_text(json.dumps(document))
    with pytest.raises(BadInputError, match="not the one that kelr wrote"):
        read_plan(path)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(stopped(), st.tuples(snapshots(), st.just(ElectionRequest()))))
def test_every_plan_can_be_written_and_read(both: tuple[Snapshot, ElectionRequest]) -> None:
    snapshot, wish = both
    made = planner(lambda _state: wish, snapshot, None)
    assert of_document(plan_document(made)) == made


def test_the_file_is_its_owners_alone_and_ends_with_a_line_end(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().endswith(b"}\n")


def test_a_file_that_is_there_is_not_replaced_unasked(path: Path) -> None:
    with pytest.raises(UsageError, match="exists already"):
        write_plan(planned(), path)
    write_plan(replace(planned(), cluster_id="other"), path, overwrite=True)
    assert read_plan(path).cluster_id == "other"


def test_a_plan_that_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    made = planned()
    with pytest.raises(BadInputError, match="expires_at: not after created_at"):
        write_plan(replace(made, expires_at_ms=made.created_at_ms), tmp_path / "plan.json")
    assert list(tmp_path.iterdir()) == []


def test_times_are_readable_and_hold_milliseconds(path: Path) -> None:
    document = json.loads(path.read_text())
    assert document["created_at"] == "1970-01-01T00:00:00.000Z"
    assert document["expires_at"] == "1970-01-01T01:00:01.000Z"
    assert not [key for key in document if key.endswith("_ms")]


@given(st.integers(0, LAST_MS))
def test_every_moment_comes_back(moment_ms: int) -> None:
    assert from_iso(to_iso(moment_ms)) == moment_ms


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [("2026-08-20T03:12:00Z", 1_787_195_520_000), ("2026-08-20T05:12+02:00", 1_787_195_520_000)],
)
def test_a_person_may_write_a_moment_in_another_way(text: str, moment_ms: int) -> None:
    assert from_iso(text) == moment_ms


# What a person has done to it


def test_blanks_and_line_ends_are_no_edit(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert read_plan(path) == planned()


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document["elections"].pop(0),
        lambda document: document.update(expires_at="1970-01-02T00:00:00Z"),
        lambda document: document["elections"][1].update(elect=1),
        lambda document: document["elections"][1]["loss"]["total"].update(at_least=0),
        lambda document: document["not_planned"].clear(),
    ],
)
def test_a_plan_that_was_edited_is_refused(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """What it says of loss and evidence was said of other elections."""
    assert refused(path, edit).startswith("garbled plan: ")


# What is refused


def first(document: dict[str, Any]) -> dict[str, Any]:
    election: dict[str, Any] = document["elections"][0]
    return election


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda d: first(d).update(elct=3), "elections[0].elct: no such field; did you mean 'elect'?"),
        (lambda d: first(d).update(zzzzzz=3), "elections[0].zzzzzz: no such field"),
        (lambda d: first(d).pop("elect"), "elections[0].elect: this field is missing"),
        (
            lambda d: first(d).update(elct=first(d).pop("elect")),
            "elections[0].elct: no such field; did you mean 'elect'?",
        ),
        (lambda d: first(d).pop("warnings"), "elections[0].warnings: this field is missing"),
        (lambda d: first(d)["loss"].pop("truncations"), "elections[0].loss.truncations: this field is missing"),
        (lambda d: first(d)["evidence"]["logs"][0].pop("log_end"), "elections[0].evidence.logs[0].log_end: this field"),
        (
            lambda d: first(d)["evidence"]["logs"][0].update(read_at=5),
            "elections[0].evidence.logs[0].read_at: not a text",
        ),
        (
            lambda d: first(d)["evidence"]["logs"][0].update(log_end=2**63),
            "elections[0].evidence.logs[0].log_end: more",
        ),
        (lambda d: d["not_planned"][0].update(command=["x" * 10_001]), "not_planned[0].command[0]: longer than 10000"),
        (lambda d: d.update(lacks=[]), "lacks: no such field"),
        (lambda d: first(d).update(elect="3"), "elections[0].elect: not a whole number"),
        (lambda d: first(d).update(elect=3.0), "elections[0].elect: not a whole number"),
        (lambda d: first(d).update(elect=True), "elections[0].elect: not a whole number"),
        (lambda d: first(d).update(elect=None), "elections[0].elect: not a whole number"),
        (lambda d: first(d).update(elect=-1), "elections[0].elect: less than 0"),
        (lambda d: first(d).update(elect=2**31), "elections[0].elect: more than 2147483647"),
        (lambda d: first(d).update(elect=7), "elections[0].elect: 7 is none of the replicas [3, 1, 2]"),
        (lambda d: first(d).update(order=[2, 3, 3]), "elections[0].order: a broker is listed twice"),
        (lambda d: first(d).update(order=[]), "elections[0].order: fewer entries than 1"),
        (lambda d: first(d).update(order=[2, 3, 4]), "elections[0].order: names others than the replicas"),
        (lambda d: first(d).update(order=[3, 1]), "elections[0].elect: 2 is not in the order [3, 1]"),
        (lambda d: first(d).update(topic="../etc"), "elections[0].topic: not of the form"),
        (lambda d: first(d).update(election="dirty"), "elections[0].election: not 'preferred', 'unclean'"),
        (lambda d: first(d).update(reason="\x1b[2J"), "elections[0].reason: has control characters"),
        (lambda d: first(d).update(reason="\u202eabc"), "elections[0].reason: has control characters"),
        (lambda d: first(d)["evidence"].update(live=[9]), "elections[0].evidence.live: names others than the replicas"),
        (lambda d: first(d)["evidence"]["logs"].pop(), "elections[0].evidence.logs: not one for each replica"),
        (lambda d: first(d)["evidence"]["logs"][1].update(log_end=5), "elections[0].evidence.logs[1]: not exactly one"),
        (lambda d: first(d)["evidence"].update(leader_epoch=-1), "elections[0].evidence.leader_epoch: less than 0"),
        (lambda d: d["elections"].reverse(), "elections[1]: orders:0 comes after orders:1: they are sorted"),
        (lambda d: d["elections"].insert(0, first(d)), "elections[1]: orders:0 stands there twice"),
        (lambda d: d["not_planned"][0].update(topic="orders"), "not_planned: orders:0 has an election, too"),
        (lambda d: d.update(expires_at="1969-12-31T00:00:00Z"), "expires_at: is not between the years 1970 and 9999"),
        (lambda d: d.update(expires_at="1970-01-01T00:00:00Z"), "expires_at: not after created_at"),
        (lambda d: d.update(expires_at="1970-01-02T00:00:00"), "expires_at: says no time zone: end it with Z for UTC"),
        (lambda d: d.update(expires_at="tomorrow"), "expires_at: not a moment such as 1970-01-01T00:00:00.000Z"),
        (lambda d: d.update(expires_at=5), "expires_at: not a text in quotes"),
        (lambda d: d.update(expires_at_ms=5), "expires_at_ms: no such field; did you mean 'expires_at'?"),
        (lambda d: d.update(plan_id="000000000000"), "plan_id: not the beginning of sha256"),
        (lambda d: d.update(sha256="0" * 63), "sha256: not of the form"),
        (lambda d: d.pop("elections"), "elections: this field is missing"),
        (lambda d: d.update(elections={}), "elections: not a list"),
        (lambda d: d.update(version="1"), "version: not 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    path: Path, edit: Callable[[dict[str, Any]], object], problem: str
) -> None:
    said = refused(path, edit)
    assert said.startswith(f"garbled plan: {problem}")
    assert len(said) < 500


def forged(made: Plan, tmp_path: Path) -> str:
    """A plan whose hashes are right and which is at odds with itself."""
    with pytest.raises(BadInputError) as caught:
        of_document(plan_document(made))
    assert tmp_path.is_dir()
    return str(caught.value).partition("forged: garbled plan: ")[2]


def test_right_hashes_do_not_make_up_for_a_plan_that_does_not_fit(tmp_path: Path) -> None:
    made = planned()
    one = made.elections[0]

    def with_one(**changes: object) -> Plan:
        return replace(made, elections=(replace(one, **changes), made.elections[1]))  # type: ignore[arg-type]

    assert forged(with_one(elect=3), tmp_path) == "elections[0].order: does not begin with 3, which is to lead"
    assert forged(with_one(elect=1), tmp_path).startswith("elections[0].elect: 1 was not live")
    assert forged(with_one(order=(2, 1)), tmp_path) == "elections[0].order: leaves out 3, which is live"
    unclean = replace(one, method=made.elections[1].method)
    assert forged(replace(made, elections=(unclean,)), tmp_path).startswith("elections[0].order: unclean changes no")
    kind = with_one(election=ElectionType.PREFERRED)
    assert forged(kind, tmp_path) == "elections[0].method: reorder does not carry out preferred"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "is empty: no plan"),
        (b"plan", "line 1, column 1: not JSON"),
        (b'{\n"format": "kelr-plan",\n"version": 1,,\n}', "line 3, column 14: not JSON"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"\xff\xfe{\0}\0", "byte order mark"),
        (b'{\n"a": "\xff"}', "line 2: not UTF-8 text"),
        (b"[" * 100_000, "nested deeper than any plan"),
        (b'{"a":' * 100_000, "nested deeper than any plan"),
        (b'{"format": "kelr-plan", "version": NaN}', "NaN is no number in JSON"),
        (b'{"format": "kelr-plan", "version": -Infinity}', "-Infinity is no number in JSON"),
        (b'{"format": "kelr-plan", "version": 1, "version": 1}', "the field 'version' is given twice"),
        (b'{"format": "kelr-plan", "version": ' + b"9" * 100_000 + b"}", "no plan"),
        (b"[]", "is not a plan"),
        (b"null", "is not a plan"),
        (b'{"format": "kelr-snapshot"}', "is not a plan"),
        (b'{"format": "kelr-plan", "version": 2}', "is of format version 2, and this kelr reads up to 1"),
        (b'{"format": "kelr-plan", "version": 1, "rules": "\\ud800"}', "garbled plan"),
        (b'{"format": "kelr-plan", "version": 1e400}', "garbled plan: version"),
        (b"\x1f\x8b\x08\x00", "not UTF-8 text"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: bytes, problem: str) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(text)
    with pytest.raises(BadInputError) as caught:
        read_plan(file)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(file))


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    with file.open("wb") as sparse:
        sparse.truncate(100 * 2**20)
    with pytest.raises(BadInputError, match="is larger than 64 MiB"):
        read_plan(file)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(BadInputError, match="is not a regular file"):
            read_plan(place)
    with pytest.raises(BadInputError, match="cannot read the plan"):
        read_plan(tmp_path / "nowhere.json")


@examples(300)
@given(data=st.data())
def test_a_file_that_was_cut_or_damaged_is_read_whole_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """One byte changed, or the end cut off: the same plan, or an error."""
    file = tmp_path_factory.getbasetemp() / "damaged.json"
    write_plan(planned(), file, overwrite=True)
    whole = file.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        broken = whole[:at]
    else:
        broken = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
    file.write_bytes(broken)
    try:
        saved = read_plan(file)
    except BadInputError:
        return
    assert saved == planned()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@examples(300)
@given(data=st.data())
def test_any_value_in_any_place_is_taken_or_refused(data: st.DataObject) -> None:
    document = json.loads(json.dumps(plan_document(planned())))
    holder: Any = document
    while True:
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        key = data.draw(st.sampled_from(keys))
        if not holder[key] or not isinstance(holder[key], (dict, list)) or data.draw(st.booleans()):
            break
        holder = holder[key]
    holder[key] = data.draw(_JSON)
    try:
        saved = of_document(document)
    except BadInputError:
        return
    assert saved == planned()


@pytest.mark.parametrize(
    "text", [b'{"format": "kelr-plan", "vers', b'{"format": "kelr-plan",', b'{"elections": [{"elect": 1']
)
def test_a_plan_that_is_cut_short_is_said_to_be(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(text)
    with pytest.raises(BadInputError) as caught:
        read_plan(file)
    assert caught.value.next_step == "make the file again: it is cut short"
