"""``kelr report`` on a real cluster: what it says was lost is what the audit log, the metadata log and the logs say."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.lab import Lab, run_incident


@pytest.mark.longer
def test_an_incident_from_its_begin_to_its_review(
    lab_43: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Broker 1 died as the last leader, with 10 records that 2 does not have; 3 misses 20 more. Stock elections follow
    the assignment, so that some partitions get 3."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("KELR_BOOTSTRAP_SERVER", lab_43.bootstrap_servers)
    monkeypatch.chdir(tmp_path)
    topic = run_incident(lab_43, "needs-unclean-recovery").topic
    log = str(lab_43.directory / "controller" / "data" / "__cluster_metadata-0")

    def kelr(*arguments: str) -> str:
        code = main(list(arguments))
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    kelr("snapshot", "then.kelr", topic)
    drawn = kelr("explain", f"{topic}:1", "--picture", "--election", "unclean")
    kelr("recover", "plan", topic, "--election-type", "unclean", "--out", "plan.json")
    kelr("recover", "apply", "plan.json", "--yes", "--accept-loss", "1000+", "-o", "json")
    # Of a partition that is not healthy again the table says that.
    lab_43.wait_partitions(topic, "both in sync", lambda state: len(state.isr) == 2)
    kelr("report", "all.html", topic, "--before", "then.kelr", "--plan", "plan.json", "--metadata-log", log)
    # Without the audit log the same comes from the logs in the snapshot and the elections in the metadata log.
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "elsewhere"))
    kelr("report", "logs.html", topic, "--before", "then.kelr", "--metadata-log", log)
    kelr("report", "twice.html", topic, "--before", "then.kelr")

    sums = [
        re.search(r"Committed offsets lost: .+? elections?; [^)]+\)\.", words(name))
        for name in ("all", "logs", "twice")
    ]
    found = [one[0] if one is not None else None for one in sums]
    assert len(set(found)) == 1, found
    # Each partition that 3 leads lost 20 committed offsets of those that 2 held.
    led_by_3 = len(re.findall(rf"{topic}:[0-5] healthy 3 ", words("all")))
    assert led_by_3 > 0
    # The log of broker 1 was not read, and may have held more.
    lost = f"UNKNOWN, at least {20 * led_by_3}"
    assert found[0] == f"Committed offsets lost: {lost}. Offsets lost in all: {lost} (6 elections; unknown: 6)."
    assert "came out as planned" in words("all")
    assert ("would truncate 20 offsets (20..39) to follow 3" in drawn) == ("3 live (elected)" in drawn)


def words(name: str) -> str:
    """The text of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", Path(f"{name}.html").read_text())).split())
