"""Two drills on real Kafka 4.3.1, judged by what became of them: RF 3, min ISR 2, ELR on, brokers killed at random.

`both-cut`: both members of the ELR were cut by a machine crash; none of their returns elected anybody.
`killed-only`: the last leader's process was killed and its log is whole; its return lost the fewest acks=all records.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Kelr

CASES = Path(__file__).with_name("cases")
BOTH_CUT = [
    *("--snapshot", str(CASES / "both-cut.kelr")),
    *(part for broker in (2, 3) for part in ("--logs", str(CASES / f"both-cut-disk-{broker}.kelr"))),
]
KILLED_ONLY = [
    *("--snapshot", str(CASES / "killed-only.kelr")),
    *("--logs", str(CASES / "killed-only-disk-4.kelr")),
]
AGGRESSIVE = ("-e", "longest_log_aggressive")


def told(kelr: Kelr, *arguments: str) -> str:
    ran = kelr(*arguments)
    assert ran.code == 0, ran.err
    return " ".join(f"{ran.out} {ran.err}".split())


def items(kelr: Kelr, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(kelr(*arguments, "-o", "json").out)["items"]
    return found


def test_whom_its_return_does_not_elect_is_started_and_then_designated(kelr: Kelr) -> None:
    assert "then you designate 3 3 none* 64" in told(kelr, "explain", *BOTH_CUT)
    explained = told(kelr, "explain", *BOTH_CUT, "-o", "wide")
    assert "If broker 3 returns Kafka elects no leader; if it is designated then, 4 truncates 64 offsets" in explained
    advised = told(kelr, "recover", "plan", *BOTH_CUT)
    against = told(kelr, "recover", "plan", "--full", *AGGRESSIVE, *BOTH_CUT)
    way = "Start broker 3: its log (read from its disk) is the most complete of all replicas; while broker 2 is down,"
    for text in (explained, advised, against):
        assert f"{way} its return elects no leader, so then designate 3, which loses 64 offsets" in text
        assert "First save what the others truncate once broker 3 leads: 64 offsets of broker 4, from 129 on." in text
        assert "If broker 3 is back when the election runs, that elects it" not in text
    start = "Start broker 3: while broker 2 is down, its return elects no leader, so then designate it"
    assert f"{start}. Lost: 64 offsets" in against


def test_no_return_of_theirs_alone_elects_anybody_in_a_document(kelr: Kelr) -> None:
    (explained,) = items(kelr, "explain", *BOTH_CUT)
    assert [(one["replica"], one["elected"]) for one in explained["forecasts"]] == [(2, None), (3, None)]
    (planned,) = items(kelr, "recover", "plan", *BOTH_CUT)
    (start_2, start_3) = [one for one in planned["not_planned"]["alternatives"] if one["start"] is not None]
    assert [(one["start"], one["leader"], one["loss"]["total"]["at_most"]) for one in (start_2, start_3)] == [
        (2, 2, 113),
        (3, 3, 64),
    ]


def test_a_disk_that_a_snapshot_holds_is_not_to_be_read_again(kelr: Kelr, tmp_path: Path) -> None:
    """`kelr recover plan` had the log of a broker counted that it had just compared with the others."""
    saved, collect = tmp_path / "all.kelr", "kelr recover collect"
    told(kelr, "snapshot", str(saved), *BOTH_CUT)
    assert collect not in told(kelr, "recover", "plan", "--snapshot", str(saved))
    assert collect in told(kelr, "recover", "plan", *BOTH_CUT[:2])


@pytest.mark.parametrize("partition", [1, 2])
def test_a_plan_has_one_advice_with_a_type_and_without(kelr: Kelr, partition: int) -> None:
    where = f"drill-s7-r0:{partition}"
    advice = items(kelr, "explain", where, *KILLED_ONLY)[0]["advice"]
    assert (advice["action"], advice["replica"]) == ("bring-back", 4)
    (advised,) = items(kelr, "recover", "plan", where, *KILLED_ONLY)
    assert advised["planned"] is None
    assert advised["not_planned"]["reason"].startswith(advice["text"])
    (asked,) = items(kelr, "recover", "plan", where, *AGGRESSIVE, *KILLED_ONLY)
    assert asked["planned"]["against"]["text"] == advice["text"]
    text = told(kelr, "recover", "plan", where, "--full", *AGGRESSIVE, *KILLED_ONLY)
    assert f"Better {advice['text']}" in text
    assert "the advice is to bring it back instead; for this election keep it down until it is done" in text


def test_what_the_return_truncates_is_named_with_the_rescue_that_fits(kelr: Kelr) -> None:
    explain = ("explain", "drill-s7-r0:2", *KILLED_ONLY)
    explained = told(kelr, *explain, "-o", "wide")
    assert "If broker 4 returns 4 is elected as last known leader; 3 truncates 225 offsets from 160 on" in explained
    assert "First save what its return truncates: 225 offsets of broker 3, from 160 on." in explained
    (forecast,) = items(kelr, *explain)[0]["forecasts"]
    assert forecast["loss"]["truncations"] == [{"replica": 3, "from_offset": 160, "offsets": 225}]
    # Broker 4's log came from this file, which tells where it ends: its disk is not asked for.
    logs = " ".join(KILLED_ONLY[2:])
    rescue = f"kelr rescue dump drill-s7-r0:2 --elect 4 --out drill-s7-r0-2-lost-to-4.kelr-rescue {logs} -b HOST:PORT"
    plan = ("recover", "plan", *explain[1:])
    for command in (explain, plan, (*plan, "--full", *AGGRESSIVE)):
        assert rescue in told(kelr, *command)
