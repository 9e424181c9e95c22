"""``kelr fleet run``: what a file may say, and what a run does, does again, and compares."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.errors import BadInputError, ExitCode
from kelr.fleet.run import RunConfig, read_config
from kelr.model.fleet import ClusterTrend, FleetRun, TroubleCounts
from kelr.view.fleet_run import changes_of, in_a_line
from tests.view.fleet_samples import LOST, RUN

CONFIG = """
lake = "lake"
inputs = ["in"]
report = "report"
names_of_folders = true
scenarios = ["now", "each-broker"]
"""


def written(place: Path, text: str) -> Path:
    path = place / "fleet.toml"
    path.write_text(text)
    return path


def test_paths_are_those_of_the_files_folder(tmp_path: Path) -> None:
    told = read_config(
        written(
            tmp_path,
            'lake = "s3a://ops/lake"\ninputs = ["in", "/collected"]\nscenarios = ["now", "mine.yaml"]\n'
            '[clusters]\nnode-1 = "id"\n[names]\nid = "payments"\n[spark]\n"spark.driver.memory" = "4g"\n',
        )
    )
    assert told == RunConfig(
        "s3a://ops/lake",
        (str(tmp_path / "in"), "/collected"),
        scenarios=("now", str(tmp_path / "mine.yaml")),
        clusters={str(tmp_path / "node-1"): "id"},
        names={"id": "payments"},
        spark={"spark.driver.memory": "4g"},
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lake", "is no TOML"),
        ('lake = "l"', "inputs: Field required"),
        ('lake = "l"\ninputs = ["i"]\nlakes = 1', "lakes: Unexpected keyword argument"),
        ('lake = "l"\ninputs = "i"', "inputs: Input should be a valid tuple"),
        ('lake = "l"\ninputs = []', "inputs: none is named"),
        ('lake = "l"\ninputs = ["i"]\ntop = "many"', "top: Input should be a valid integer"),
        ('lake = "l"\ninputs = ["i"]\n[names]\na = 1', "names.a: Input should be a valid string"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInputError, match=f"fleet.toml:? {said}" if "TOML" in said else said):
        read_config(written(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be read: No such file"):
        read_config(tmp_path / "fleet.toml")


def test_a_line_and_what_moved() -> None:
    assert in_a_line(RUN) == (
        "lake version 12; did ingest, report; 2 clusters, 10 partitions; 2 leaderless, 3 under min ISR (UNKNOWN of 1);"
        " 4 findings, not everything was looked at; 1 file in quarantine"
    )
    since = "since 2026-11-02 00:00:00.000Z"
    assert [line.partition(" since")[0] for line in changes_of(RUN)] == [
        "payments: partitions without a leader 1 -> 2, worse",
        "payments: partitions with an ELR alone 0 -> 1, worse",
        "payments: partitions under min ISR 5 -> 3, better",
        "Yq1: not in the lake then",
    ]
    assert next(changes_of(RUN)).endswith(since)
    same = TroubleCounts(9, 0, 0, 0, 0, 0)
    still = FleetRun("lake", 1, (), (ClusterTrend("a", "a", same, same),), 0, (LOST,), 0, (), RUN.compared_ms)
    assert list(changes_of(still)) == [f"the same as {since.removeprefix('since ')}"]
    assert in_a_line(still).startswith("lake version 1; nothing new; 1 cluster, 9 partitions;")


@pytest.mark.parametrize("unseen", [(), ("No partition was found of Yq1.",)])
def test_check_fails_where_not_everything_was_looked_at(
    unseen: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = replace(RUN, quarantined=(), findings=0, unseen=unseen)
    monkeypatch.setattr("kelr.fleet.run.run", lambda *_, **__: found)
    code = main(["fleet", "run", "--config", str(written(tmp_path, CONFIG)), "--check", "-o", "json"])
    assert (code, json.loads(capsys.readouterr().out)["unseen"]) == (len(unseen), list(unseen))


@pytest.mark.usefixtures("spark")
def test_it_does_what_there_is_to_do_and_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = ("--clusters", "2", "--partitions", "12", "--brokers", "4", "--weeks", "1", "--seed", "5", "--workers", "1")
    assert main(["fleet", "generate", str(tmp_path / "fleet"), *shape, "--files", "cut,snapshots"]) == 0
    (tmp_path / "in").mkdir()
    first, second = sorted(path for path in (tmp_path / "fleet").iterdir() if path.is_dir())
    shutil.copytree(first, tmp_path / "in" / "one")
    config = str(written(tmp_path, CONFIG))

    def document(*more: str, code: int = 0) -> dict[str, object]:
        capsys.readouterr()
        assert main(["fleet", "run", "--config", config, "-o", "json", *more]) == code
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    made = document()
    assert made["done"] == ["ingest", "assess", "exposure", "report"]
    assert (tmp_path / "report" / "report.html").exists()
    then = time.time()
    before = sorted((tmp_path / "lake" / "runs").iterdir()), (tmp_path / "report" / "report.html").stat().st_mtime_ns
    assert main(["fleet", "run", "--config", config]) == 0
    assert f"lake version {made['version']}; nothing new; 1 cluster, " in capsys.readouterr().out
    after = sorted((tmp_path / "lake" / "runs").iterdir()), (tmp_path / "report" / "report.html").stat().st_mtime_ns
    assert after == before

    shutil.copytree(second, tmp_path / "in" / "two")
    Path(tmp_path, "in", "broken.checkpoint").write_text("nothing")
    more = document("--since", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(then + 1)), code=ExitCode.PARTLY_DONE)
    one, two = more["items"]  # type: ignore[misc]
    assert more["done"] == made["done"]
    assert one["leaderless"] == one["before_leaderless"] is not None
    assert two["before_leaderless"] is None

    capsys.readouterr()
    assert main(["fleet", "run", "--config", config, "--since", "9999d"]) == ExitCode.USAGE
    assert "no run is on record to compare with: the first ended at" in capsys.readouterr().err
