"""A drill on real Kafka 4.3.1, judged by what became of it: RF 3, min ISR 2, both members of the recovery quorum cut by
a machine crash. Of partition 9 the offsets 101 to 162 had been confirmed with acks=all and were on no log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.model import Selection
from kelr.sources.base import take_snapshot
from kelr.sources.snapshot_file import SnapshotFileSource, write_snapshot
from tests.commands.conftest import Kelr
from tests.engine.cases import and_unclean

CASES = Path(__file__).with_name("cases")
CLUSTER = str(CASES / "quorum-cut.kelr")
WITH_LOGS = str(CASES / "quorum-cut-logs.kelr")
DISK = str(CASES / "quorum-cut-disk-4.kelr")
PLAN = ("recover", "plan", "drill-s2211-r1:9", "-e", "longest_log_aggressive")
GONE = "offsets 101..162 were committed and are on no usable log: they are lost whichever replica is elected"


def test_the_plan_names_what_is_on_no_log_and_takes_no_plain_yes(kelr: Kelr, tmp_path: Path) -> None:
    short = " ".join(kelr(*PLAN, "--snapshot", CLUSTER, "--logs", DISK, "--out", str(tmp_path / "p.json")).out.split())
    assert "Loss At least 62 offsets, 62 committed. More UNKNOWN" in short
    assert "brokers 4 and 2 lost committed data; offsets 101..162 on no usable log" in short
    assert "--accept-loss 62+" in short
    assert "Nothing is" not in short
    ran = kelr(*PLAN, "--full", "--snapshot", CLUSTER, "--logs", DISK)
    told = " ".join(ran.out.split())
    assert (
        "lost UNKNOWN, at least 62 offsets; at least 62 of them committed: brokers 4 and 2 have lost committed" in told
    )
    assert GONE in told
    assert (
        "The disk of broker 4 has saved the high watermark 163, and its log ends at 63: 100 committed offsets" in told
    )


def test_members_that_end_below_a_known_high_watermark_refute_the_promise_without_the_disks_checkpoint(
    kelr: Kelr,
) -> None:
    ran = kelr(*PLAN, "--snapshot", WITH_LOGS, "-o", "json")
    (item,) = json.loads(ran.out)["items"]
    loss = item["planned"]["loss"]
    assert (loss["grade"], loss["lost_data"], loss["total"]) == ("unknown", [4, 2], {"at_least": 0, "at_most": None})
    assert json.loads(ran.out)["accept_loss"] == "unknown"


def test_the_explanation_and_its_document_name_them_too(kelr: Kelr) -> None:
    explain = ("explain", "drill-s2211-r1:9", "--snapshot", CLUSTER, "--logs", DISK)
    assert "63  63 (saved 163)  " in kelr(*explain).out
    document = json.loads(kelr(*explain, "-o", "json").out)["items"][0]
    assert GONE in document["notes"]
    loss = document["elections"]["longest_log_aggressive"]["loss"]
    assert (loss["gone_ranges"], loss["committed"]["at_least"]) == ([[101, 162]], 62)
    assert [one["saved_high_watermark"] for one in document["candidates"]] == [163, None, None]
    assert "saved_high_watermark" in kelr("log-info", *explain[1:], "-o", "csv").out


def test_a_snapshot_keeps_what_a_disk_has_saved(kelr: Kelr, tmp_path: Path) -> None:
    kept = str(tmp_path / "kept.kelr")
    assert kelr("snapshot", kept, "--snapshot", CLUSTER, "--logs", DISK).code == 0
    assert GONE in " ".join(kelr("explain", "drill-s2211-r1:9", "--snapshot", kept).out.split())


def test_a_disk_that_was_cut_takes_the_promise_of_every_partition_on_it(kelr: Kelr) -> None:
    ran = kelr("recover", "plan", "--snapshot", CLUSTER, "--logs", DISK, "-o", "json")
    document = json.loads(ran.out)
    losses = {one["partition"]: one["planned"]["loss"] for one in document["items"] if one["planned"]}
    assert {number: loss["grade"] for number, loss in losses.items()} == dict.fromkeys(range(12), "unknown")
    assert all(loss["may_have_lost"] == [4] and loss["total"]["at_most"] is None for loss in losses.values())
    told = kelr("recover", "plan", "--snapshot", CLUSTER, "--logs", DISK)
    assert "none committed, if" not in told.out
    assert told.err.count("broker 4: 5 logs in") == 1


def test_a_snapshot_with_the_disks_logs_takes_the_promise_as_the_disk_itself_does(kelr: Kelr) -> None:
    """It was saved without what the disk's checkpoint holds: that the log of partition 9 ends below the high watermark
    which broker 3 knows tells of the disk, also where partition 9 is not asked for."""
    aggressive = ("-e", "longest_log_aggressive", "-o", "json")

    def asked_for(*arguments: str) -> dict[int, tuple[str, str, list[int]]]:
        items = json.loads(kelr("recover", "plan", *arguments, *aggressive).out)["items"]
        planned = {one["partition"]: one["planned"] for one in items}
        return {
            number: (one["consent"], one["loss"]["grade"], one["loss"]["may_have_lost"])
            for number, one in planned.items()
            if number in {0, 1, 3, 5, 8}
        }

    told = asked_for("--snapshot", WITH_LOGS)
    assert told == dict.fromkeys((0, 1, 3, 5, 8), ("loss", "unknown", [4]))
    assert told == asked_for("--snapshot", CLUSTER, "--logs", DISK)
    assert asked_for("drill-s2211-r1:3", "--snapshot", WITH_LOGS) == {3: told[3]}


def test_the_saved_high_watermarks_of_a_disk_are_told(kelr: Kelr) -> None:
    ran = kelr("log-info", "drill-s2211-r1", "--snapshot", CLUSTER, "--logs", DISK)
    assert "63 (saved 163)" in ran.out
    assert "drill-s2211-r1:2 at 150 of 186, drill-s2211-r1:4 at 0 of 111, drill-s2211-r1:6 at 92 of 227" in ran.err


def test_what_is_long_stands_below_the_tables(kelr: Kelr) -> None:
    logs = kelr("log-info", "drill-s2211-r1", "--snapshot", WITH_LOGS)
    assert "not read: connection refused\n" in logs.out
    assert max(map(len, logs.out.splitlines())) <= 160
    assert logs.err.count("lacks 75 offsets that 2 knows to be committed (high watermark 225)") == 1
    explained = kelr("explain", "drill-s2211-r1:2", "--snapshot", WITH_LOGS)
    table, _, below = explained.out.partition("\nEVENT ")
    assert "\nLog 4 not read: connection refused.\n" in table
    commands = ("        kelr ", "        kafka-")
    assert max(len(line) for line in explained.out.splitlines() if not line.startswith(commands)) <= 80
    assert "lacks 75 offsets that 2 knows to be committed" in " ".join(below.split())


@pytest.mark.parametrize("incident", [("--snapshot", WITH_LOGS), ("--snapshot", CLUSTER, "--logs", DISK)])
def test_one_disk_has_one_shutdown_whichever_of_its_logs_is_believed(kelr: Kelr, incident: tuple[str, ...]) -> None:
    """Broker 4 crashed. What its disk lacks of some partitions was cut with the rest, and its marks say so of all."""
    items = json.loads(kelr("explain", *incident, "-o", "json").out)["items"]
    assert len(items) == 12
    for one in items:
        assert [(back["clean"], back["elected"]) for back in one["forecasts"] if back["replica"] == 4] == [(False, 2)]
        assert and_unclean(4) in one["advice"]["text"]
    imagined = json.loads(kelr("explain", "drill-s2211-r1:2", "--if", "4 returns", *incident, "-o", "json").out)
    assert (len(imagined["assumptions"]), imagined["otherwise"]) == (1, [])
    assert "by its marks on disk the shutdown of 4 counts as unclean" in imagined["assumptions"][0]["notes"]


def test_where_partitions_disagree_over_a_broker_explain_says_once_which_of_them_come_first(
    kelr: Kelr, tmp_path: Path
) -> None:
    """Partition 9 is led worse if broker 4 is back first, and others wait for it: one followed would ruin the other.

    Nothing tells here how broker 4 was shut down.
    """
    saved = str(tmp_path / "no-marks.kelr")
    with SnapshotFileSource(Path(WITH_LOGS)) as source:
        snapshot = take_snapshot(source, Selection(), now_ms=0, with_logs=lambda _: True)
    logs = {at: tuple(replace(one, unclean_shutdown=None) for one in held) for at, held in snapshot.logs.items()}
    write_snapshot(replace(snapshot, logs=logs), Path(saved))
    summary = kelr("explain", "--snapshot", saved).out
    assert "\n  Keep 4 down " in summary
    assert "start broker 4" not in summary
    assert "in this order" not in summary
    ran = kelr("explain", "-o", "wide", "--snapshot", saved)
    said = [line for line in ran.err.splitlines() if line.startswith("Partitions disagree")]
    assert said == [
        "Partitions disagree over broker 4: keep it down until drill-s2211-r1:9 has a leader, since its return elects"
        " another one there, and start it then for drill-s2211-r1:0-8,10-11, which wait for it. The whole order:"
        f" kelr recover plan --snapshot {saved}"
    ]
    assert "disagree" not in kelr("explain", "--snapshot", CLUSTER).err


def test_each_partition_has_its_own_file_for_what_it_loses_to_the_same_leader(kelr: Kelr) -> None:
    explained = json.loads(kelr("explain", "--snapshot", CLUSTER, "-o", "json").out)["items"]
    files = [one["advice"]["rescue"].split("--out ")[1].split()[0] for one in explained if one["advice"]["rescue"]]
    assert len(files) > 1
    assert len(set(files)) == len(files)
