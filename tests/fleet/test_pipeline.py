"""From made-up files to the report, by the commands, as somebody would type them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kelr.commands.main import main
from tests.view.test_schema import violations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GENERATE = [
    "--clusters",
    "3",
    "--partitions",
    "90",
    "--brokers",
    "6",
    "--weeks",
    "1",
    "--incidents",
    "2",
    "--seed",
    "11",
]
STEPS = {
    "generate": ["fleet", "generate", "fleet", *GENERATE, "--files", "copies,cut,snapshots", "--workers", "1"],
    "ingest": ["fleet", "ingest", "fleet", "--out", "lake", "--names-of-folders"],
    "assess": ["fleet", "assess", "--lake", "lake", "--scenarios", "now,each-broker"],
    "exposure": ["fleet", "exposure", "--lake", "lake"],
    "report": ["fleet", "report", "--lake", "lake", "--out", "report"],
}


@pytest.fixture(scope="module")
def documents(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each step printed, by its name."""
    place, printed = tmp_path_factory.mktemp("pipeline"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name, arguments in STEPS.items():
            with (place / f"{name}.json").open("w") as out:
                patch.setattr("sys.stdout", out)
                assert main([*arguments, "-o", "json"]) == 0, name
            printed[name] = json.loads((place / f"{name}.json").read_text())
    assert spark.range(1).count() == 1, "a session that was there before goes on"
    return {**printed, "place": place}


@pytest.mark.parametrize("name", STEPS)
def test_each_document_is_as_its_schema_says(documents: dict[str, Any], name: str) -> None:
    assert documents[name]["items"]
    assert violations(documents[name], f"fleet-{name}") == []


def test_every_step_names_the_next(documents: dict[str, Any]) -> None:
    names = list(STEPS)
    followed = [documents[name]["next"].split()[:3] for name in names[:-1]]
    assert followed == [["kelr", "fleet", step] for step in names[1:]]


def test_the_clusters_that_were_made_are_the_clusters_that_are_reported(documents: dict[str, Any]) -> None:
    made = {item["name"]: item["partitions"] for item in documents["generate"]["items"]}
    assert {item["name"]: item["partitions"] for item in documents["ingest"]["items"]} == made
    report = (documents["place"] / "report" / "report.md").read_text(encoding="utf-8")
    assert [name for name in made if name not in report] == []
    assert "Not told" not in report, "every step was run, on what is there now"


def test_a_second_ingest_finds_nothing_new(
    documents: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(documents["place"])
    before = sorted(Path("lake/runs").iterdir())
    assert main([*STEPS["ingest"], "-o", "json"]) == 0
    assert sorted(Path("lake/runs").iterdir()) == before
    assert "quarantine" not in capsys.readouterr().err
