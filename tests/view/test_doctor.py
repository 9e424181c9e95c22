"""``kelr doctor`` on terminals and in pipes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pytest

from kelr.engine.checkup import cluster_checks
from kelr.engine.checkup.abilities import LogInfo, abilities
from kelr.engine.checkup.catalogue import BY_ID, CHECKS
from kelr.engine.checkup.rights import Allowed, all_rights
from kelr.engine.checkup.tally import Tallies
from kelr.model.checkup import Finding, NotChecked
from kelr.view.doctor import DoctorReport, Shell
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from tests.engine.checkups import CLUSTER, WELL


def printed(
    told: Sequence[Finding | NotChecked],
    *,
    width: int | None,
    color: bool = False,
    format: OutputFormat = OutputFormat.TABLE,
    following: tuple[str, ...] | None = None,
) -> str:
    stdout = io.StringIO()
    output = Output(stdout, io.StringIO(), format=format, width=width, color=color)
    tallies = Tallies(frozenset(BY_ID))
    report = DoctorReport(
        Shell(output, "--bootstrap-server kafka-1:9092"),
        CLUSTER,
        source="live",
        abilities=abilities(WELL, LogInfo()),
        surroundings=(("kelr", "1.0"), ("state directory", "/a/very/long/path " * 8)),
    )
    with report:
        report.add(tallies.take(told))
        rights = all_rights(Allowed(frozenset({"DESCRIBE"}), {f"topic-{one}": frozenset() for one in range(9)}))
        report.finish(tallies, partitions=3, topics=2, rights=rights, errors=(), following=following)
    return stdout.getvalue()


EVERYTHING = [
    one
    for check in CHECKS
    for one in (
        check.finding(
            f"{check.title} here",
            topic="orders",
            partitions=(0, 1),
            commands=[f"kafka-configs.sh {{stock}} {check.id}"],
            caution="mind this " * 12,
        ),
        check.finding("and there", topic="payments", partitions=(5,), commands=[("explain", "payments:5")]),
        check.not_checked("TOPIC_AUTHORIZATION_FAILED " * 6, "secret"),
    )
]


@pytest.mark.parametrize("format", [OutputFormat.TABLE, OutputFormat.WIDE])
@pytest.mark.parametrize("width", [80, 160, None])
def test_lines_fit_but_for_commands_which_are_copied_whole(width: int | None, format: OutputFormat) -> None:
    lines = printed(EVERYTHING, width=width, format=format).splitlines()
    commands = [line for line in lines if " kafka-configs.sh --bootstrap-server kafka-1:9092 " in line]
    assert len(commands) == len(CHECKS)
    assert {line.partition("kafka")[0].strip() for line in commands} == {"Fix:"}
    assert [line for line in lines if len(line) > (width or 80) and line not in commands] == []


def test_nothing_is_told_by_colour_alone() -> None:
    plain, colored = printed(EVERYTHING, width=80), printed(EVERYTHING, width=80, color=True)
    assert "\x1b[1;31mCRITICAL" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_a_cluster_that_is_well_in_a_pipe() -> None:
    first, *others = printed(list(cluster_checks(WELL)), width=None).splitlines()
    assert first == "No problem found; 35 of 35 checks complete."
    assert [line for line in others if line.startswith(("CRITICAL", "WARNING", "NOTE", "UNKNOWN"))] == []


def test_nothing_found_is_said_of_the_checks_that_were_made() -> None:
    first = printed([BY_ID["elr-off"].not_checked("no answer")], width=None).splitlines()[0]
    assert first == "No problem found by the 34 of 35 checks that are complete."


def test_the_verdict_counts_checks_by_severity_and_is_the_first_line() -> None:
    told = [BY_ID["rf-one"].finding("x"), BY_ID["rf-one"].finding("y"), BY_ID["rf-two"].finding("z")]
    lines = printed([*told, BY_ID["elr-off"].not_checked("no answer")], width=None).splitlines()
    assert lines[:4] == [
        "1 warning, 1 note; 34 of 35 checks complete.",
        "WARNING   x; y.  [rf-one]",
        "NOTE      Z.     [rf-two]",
        "UNKNOWN   1 check incomplete: no answer.  [elr-off]",
    ]


def test_of_many_topics_in_trouble_one_command_goes_through_all() -> None:
    told = [
        BY_ID["leaderless"].finding("x", topic=topic, partitions=(0, 1), commands=[("explain", topic)])
        for topic in ("orders", "payments")
    ]
    lines = printed(told, width=100, following=("explain",)).splitlines()
    assert lines[1:3] == [
        "CRITICAL  Partitions without a live leader: 4 partitions of 2 topics.  [leaderless]",
        "          Fix: kelr explain",
    ]
    assert "Fix: kelr explain" not in lines[3:]


def test_what_to_know_comes_before_the_command() -> None:
    told = BY_ID["elr-off"].finding("x", commands=["kafka-features.sh {stock} upgrade"], caution="stop the producers")
    assert printed([told], width=None).splitlines()[2:4] == [
        "          Mind: Stop the producers.",
        "          Fix: kafka-features.sh --bootstrap-server kafka-1:9092 upgrade",
    ]
    told = BY_ID["controllers-few"].finding("x", caution="add 2 controllers")
    assert printed([told], width=None).splitlines()[2] == "          Fix: Add 2 controllers."


def test_why_it_matters_and_the_facts_of_the_cluster_are_there_on_demand() -> None:
    short, wide = (
        printed([BY_ID["rf-one"].finding("x")], width=80),
        printed([BY_ID["rf-one"].finding("x")], width=80, format=OutputFormat.WIDE),
    )
    for text in ("Why: Without its broker", "metadata.version", "state directory", "PASSED    no-controller"):
        assert (text in wide, text in short) == (True, False), text


def test_a_hostile_name_drives_no_terminal() -> None:
    told = [BY_ID["rf-one"].finding("\x1b[2Jowned", topic="\x1b]0;x\x07", partitions=(0,))]
    assert "\x1b" not in printed(told, width=80)
