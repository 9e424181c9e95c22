"""The audit log: lines of several processes, whole and in order of writing."""

from __future__ import annotations

import json
import multiprocessing
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.durable import AppendOnlyFile
from kelr.errors import BadInputError
from kelr.model import LOG_DIRECTORY, ClearedElr, RecordedElection, TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery import audit
from kelr.recovery.audited import Recorded, recorded_clearings, recorded_elections
from kelr.recovery.places import audit_file
from tests.still_ground import StillGround


def _record(at_ms: int, topic: str = "orders", **more: object) -> AuditRecord:
    values = {
        "at_ms": at_ms,
        "what": AuditWhat.ELECTION,
        "command": "elect",
        "topic": topic,
        "partition": 0,
        "cluster_id": "c",
        "user": "ada",
        "host": "laptop",
        "principal": None,
        "result": "done",
        **more,
    }
    return AuditRecord(**values)  # type: ignore[arg-type]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    records = [_record(1, before={"leader": None}, evidence=({"replica": 1},)), _record(2, "payments", error="E")]
    audit.append(tmp_path, records[0])
    audit.append(tmp_path, records[1])
    read = list(audit.read(tmp_path))
    assert [(one.at_ms, one.topic, one.error) for one in read] == [(1, "orders", None), (2, "payments", "E")]
    assert read[0].before == {"leader": None}
    assert [one.at_ms for one in audit.read(tmp_path, since_ms=2)] == [2]
    assert [one.at_ms for one in audit.read(tmp_path, topics=["orders"])] == [1]
    line = json.loads(audit_file(tmp_path).read_text().splitlines()[0])
    assert line["when"] == "1970-01-01T00:00:00.001Z"
    assert stat.S_IMODE(audit_file(tmp_path).stat().st_mode) == 0o600


def test_no_log_yet(tmp_path: Path) -> None:
    assert list(audit.read(tmp_path)) == []


def _write(state: str, writer: int) -> None:
    for number in range(20):
        audit.append(Path(state), _record(writer * 100 + number), _record(writer * 100 + number, "payments"))


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(str(tmp_path), writer)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    lines = list(audit.read(tmp_path))
    assert len(lines) == 120
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    assert all(one.at_ms == other.at_ms for one, other in pairs), "what was appended together stands together"


def test_a_torn_line_is_no_line(tmp_path: Path) -> None:
    audit.append(tmp_path, _record(1))
    with audit_file(tmp_path).open("a") as file:
        file.write('{"at_ms":2,"wh')
    assert [one.at_ms for one in audit.read(tmp_path)] == [1]
    audit.append(tmp_path, _record(3))
    assert [one.at_ms for one in audit.read(tmp_path)] == [1, 3]


@pytest.mark.parametrize("line", ['{"at_ms":1}', '{"at_ms":"x","what":"election"}', '{"what":"dance"}', "[]", "{"])
def test_a_garbled_line_is_named(tmp_path: Path, line: str) -> None:
    audit.append(tmp_path, _record(1))
    with audit_file(tmp_path).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadInputError, match="line 2"):
        list(audit.read(tmp_path))


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("at_ms", 10**18, "no time since 1970"),
        ("at_ms", 10**400, "no time since 1970"),
        ("at_ms", -1, "no time since 1970"),
        ("at_ms", True, "no time since 1970"),
        ("at_ms", 1.5, "no time since 1970"),
        ("topic", 7, "topic is no text"),
        ("user", None, "user is no text"),
        ("result", ["done"], "result is no text"),
        ("cluster_id", 7, "cluster_id is no text"),
        ("error", {}, "error is no text"),
        ("partition", "0", "partition is no number"),
        ("wanted", 1.5, "wanted is no number"),
        ("before", [], "before is no object"),
        ("consent", None, "consent is no object"),
        ("loss", 7, "loss is no object"),
        ("asked", 1, "asked is neither true nor false"),
        ("evidence", {"replica": 1}, "evidence is no list of objects"),
        ("evidence", [1], "evidence is no list of objects"),
        ("what", [], "not an audit record"),
    ],
)
def test_a_field_of_another_kind_is_named_with_its_line(
    tmp_path: Path, field: str, value: object, problem: str
) -> None:
    audit.append(tmp_path, _record(1), _record(2))
    path = audit_file(tmp_path)
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{json.dumps({**json.loads(second), field: value})}\n")
    with pytest.raises(BadInputError, match="line 2: not an audit record") as caught:
        list(audit.read(tmp_path))
    assert problem in caught.value.message
    path.write_text(f"{first}\n")
    assert len(list(audit.read(tmp_path))) == 1


def test_records_of_one_cluster(tmp_path: Path) -> None:
    audit.append(tmp_path, _record(1), _record(2, cluster_id="other"), _record(3, cluster_id=None))
    assert [one.at_ms for one in audit.read(tmp_path, cluster_id="other")] == [2]
    assert [one.at_ms for one in audit.read(tmp_path)] == [1, 2, 3]


def test_fields_of_a_newer_kelr_are_left_out(tmp_path: Path) -> None:
    audit.append(tmp_path, _record(1))
    path = audit_file(tmp_path)
    path.write_text(path.read_text().replace('{"when"', '{"mood":"calm","when"'))
    assert [one.at_ms for one in audit.read(tmp_path)] == [1]


def test_a_lock_that_is_held_is_waited_for(tmp_path: Path) -> None:
    held = AppendOnlyFile(audit_file(tmp_path))

    class UntilGivenBack(StillGround):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            held.close()

    ground = UntilGivenBack()
    audit.append(tmp_path, _record(1), ground=ground)
    assert len(ground.slept) == 1
    assert [one.at_ms for one in audit.read(tmp_path)] == [1]


ORDERS_0 = TopicPartition("orders", 0)
EVIDENCE = (
    {"replica": 1, "unheard": "unreachable", "source": None},
    {"replica": 2, "unheard": None, "source": LOG_DIRECTORY},
    {"replica": 3, "unheard": None, "source": "ListOffsets+Fetch"},
)


def _election(at_ms: int, epoch: int, grade: str = "unknown", **more: object) -> AuditRecord:
    after = {"leader": 3, "leader_epoch": epoch}
    return _record(at_ms, after=after, evidence=EVIDENCE, loss={"grade": grade}, **more)


def test_elections_that_gave_something_up_stay_on_record_until_who_was_down_is_seen_in_sync() -> None:
    unclean = _election(1, 5)
    assert recorded_elections([unclean]) == {ORDERS_0: RecordedElection(3, 5, 1, clean=False, unread=(1, 2))}
    # One that came to nothing, and a later one that gave nothing up, change nothing.
    refused = _election(2, 6, result="refused", before={"isr": [1, 2]})  # the ISR is the plan's, from before
    for later in (refused, _election(2, 6, "proven-none")):
        assert recorded_elections([unclean, later])[ORDERS_0].unread == (1, 2)
    clean = recorded_elections([_election(1, 5, "proven-none")])[ORDERS_0]
    assert (clean.clean, clean.unread) == (True, ())
    # A replay after the return of 1, and then another unclean election with 2 down for as long.
    replay = _record(2, what=AuditWhat.RESCUE, before={"leader": 3, "isr": [3, 1]}, after={"records": 4})
    assert recorded_elections([unclean, replay])[ORDERS_0].unread == (2,)
    again = _election(3, 7, before={"isr": []})
    assert recorded_elections([unclean, replay, again])[ORDERS_0] == RecordedElection(
        3, 7, 3, clean=False, unread=(1, 2)
    )


def test_a_clearing_is_on_record_where_nobody_led_and_no_other_write_had_come_before() -> None:
    leaderless = {"partition": 0, "leader": None, "leader_epoch": 4, "elr": [], "last_known_elr": [1]}
    others = [{"partition": 1, "leader": 2}, {"last_known_elr": [-1]}, {"last_known_elr": []}]
    cleared = [leaderless, *({**leaderless, "partition": at, **one} for at, one in enumerate(others, 1))]
    line = _record(1, what=AuditWhat.HOLD, loss={"min_isr": 2, "cleared": cleared})
    assert recorded_clearings([line]) == {ORDERS_0: ClearedElr(4, 2)}
    for garbled in (None, {}, {"min_isr": 2}, {"cleared": cleared}, {"min_isr": 2, "cleared": [{"partition": 0}, 7]}):
        assert recorded_clearings([replace(line, loss=garbled)]) == {}
    assert recorded_clearings([replace(line, what=AuditWhat.ELECTION)]) == {}


def test_a_plan_that_is_tried_again_and_refused_does_not_undo_what_it_did_before() -> None:
    done = _election(1, 5, wanted=3, before={"leader_epoch": 4}, asked=True)
    again = _election(2, 5, wanted=3, before={"leader_epoch": 4}, result="refused", asked=False)
    known = Recorded.of([done, again])
    assert (list(known.elections.values()), known.newest) == ([done], {("orders", 0): 1})
    assert list(Recorded.of([again]).elections.values()) == [again]
