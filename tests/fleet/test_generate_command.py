"""``kelr fleet generate``, whole outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.errors import ExitCode

SMALL = (
    "--clusters",
    "2",
    "--partitions",
    "12",
    "--brokers",
    "3",
    "--weeks",
    "1",
    "--incidents",
    "0",
    "--workers",
    "1",
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["fleet", "generate", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_people_see_what_was_made_and_what_comes_next(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "fleet", *SMALL, "--damage")

    assert code == ExitCode.DONE
    header, *rows = out.splitlines()
    assert header.split() == (
        ["CLUSTER", "KAFKA", "FILES", "PARTITIONS", "NO", "LEADER", "STATES", "RECORDS", "INCIDENTS", "UNCLEAN"]
    )
    assert [row.split()[0] for row in rows] == ["payments-eu-west", "orders-us-east"]
    total, *damages, following = err.splitlines()
    assert total.startswith("2 clusters, ")
    assert "torn tail: payments-eu-west/node-3000/__cluster_metadata-0/00000000000000000000.log" in damages
    assert following == "  next: kelr fleet ingest fleet --out fleet-lake"


def test_machines_get_the_same_with_the_truth_beside_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "fleet"
    code, text, _ = run(capsys, str(out), *SMALL, "--files", "cut,snapshots", "--seed", "4", "-o", "json")

    assert code == ExitCode.DONE
    told, truth = json.loads(text), json.loads((out / "truth.json").read_text())
    assert [one["shape"] for one in told["items"]] == ["cut", "snapshots"]
    for key in ("cluster_id", "partitions", "leaderless", "states", "records"):
        assert [one[key] for one in told["items"]] == [one[key] for one in truth["clusters"]]
    files = [path for path in out.rglob("*") if path.is_file() and path.name != "truth.json"]
    assert told["size_bytes"] == sum(path.stat().st_size for path in files)
    assert told["damages"] == truth["damages"] == []
    assert told["next"] == f"kelr fleet ingest {out} --out {out}-lake"
    assert told["complete"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--files", "whole,half"), "--files whole,half: there is no such shape"),
        (("--clusters", "9", "--partitions", "8"), "8 partitions"),
        (("--skew", "1.5"), "1.5 of the partitions"),
        (("--segment-mb", "0.001"), "1049 bytes a segment"),
    ],
)
def test_what_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = run(capsys, str(tmp_path / "fleet"), *arguments)

    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err
    assert "fix:" in err
    assert not (tmp_path / "fleet").exists()


def test_a_place_that_cannot_be_written_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    code, _, err = run(capsys, str(tmp_path / "file" / "fleet"), *SMALL)

    assert code == ExitCode.USAGE
    assert f"{tmp_path / 'file' / 'fleet'} cannot be written: Not a directory" in err
