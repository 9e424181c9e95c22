"""``kelr doctor`` on terminals and in pipes."""

from __future__ import annotations

import io
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


def printed(told: Sequence[Finding | NotChecked], *, width: int | None, color: bool = False) -> str:
    stdout = io.StringIO()
    output = Output(stdout, io.StringIO(), format=OutputFormat.TABLE, width=width, color=color)
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
        report.finish(tallies, partitions=3, topics=2, rights=rights, errors=(), following=None)
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


@pytest.mark.parametrize("width", [80, 160])
def test_lines_fit_but_for_commands_which_are_copied_whole(width: int) -> None:
    lines = printed(EVERYTHING, width=width).splitlines()
    assert [line for line in lines if len(line) > width and not line.startswith("      do  ")] == []
    assert sum(line.startswith("      do  kafka-configs.sh --bootstrap-server kafka-1:9092 ") for line in lines) == len(
        CHECKS
    )


def test_nothing_is_told_by_colour_alone() -> None:
    plain, colored = printed(EVERYTHING, width=80), printed(EVERYTHING, width=80, color=True)
    assert "\x1b[1;31mCRITICAL" in colored
    for code in ("\x1b[1;31m", "\x1b[35m", "\x1b[32m", "\x1b[1m", "\x1b[2m", "\x1b[0m"):
        colored = colored.replace(code, "")
    assert colored == plain


def test_a_cluster_that_is_well_in_a_pipe() -> None:
    last = printed(list(cluster_checks(WELL)), width=None).splitlines()[-1]
    assert last == "nothing was found (3 partitions of 2 topics)"


def test_the_verdict_counts_checks_by_severity() -> None:
    told = [BY_ID["rf-one"].finding("x"), BY_ID["rf-one"].finding("y"), BY_ID["rf-two"].finding("z")]
    last = printed([*told, BY_ID["elr-off"].not_checked("nobody tells")], width=None).splitlines()[-1]
    assert last == ("1 warning, 1 note; 1 check could not be made, or not everywhere (3 partitions of 2 topics)")


def test_a_hostile_name_drives_no_terminal() -> None:
    told = [BY_ID["rf-one"].finding("\x1b[2Jowned", topic="\x1b]0;x\x07", partitions=(0,))]
    assert "\x1b" not in printed(told, width=80)
