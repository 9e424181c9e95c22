"""Failure scenarios: what files and names say, and what they come to in a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.errors import BadInputError, UsageError
from kelr.fleet.assess.contexts import Context
from kelr.fleet.assess.deciding import counts_written
from kelr.fleet.assess.scenarios import read_scenarios, wanted_scenarios
from kelr.fleet.assess.shapes import HAPPENINGS, blow_code, blow_of
from kelr.fleet.assess.spreading import spread
from kelr.model import Broker, BrokerStatus, Cluster

CLUSTER = Cluster(
    "id-1",
    (
        Broker(1, BrokerStatus.LIVE, rack="az1"),
        Broker(2, BrokerStatus.LIVE, rack="az1"),
        Broker(3, BrokerStatus.LIVE, rack="az2"),
        Broker(4, BrokerStatus.FENCED, rack="az2"),
    ),
    brokers_source="metadata log",
)
CONTEXT = Context("id-1", "payments", "log", 0, True, CLUSTER)


def scenario_file(tmp_path: Path, text: str, name: str = "failures.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_each_line_is_a_scenario_with_a_name_or_without(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, '# two\n\nboth: 1 fails, rack az2 stops\n3 returns unclean\nrack "a:b" fails\n')
    found = read_scenarios(path)
    assert [(one.name, one.where) for one in found] == [
        ("both", f"{path}:3"),
        ("3 returns unclean", f"{path}:4"),
        ('rack "a:b" fails', f"{path}:5"),
    ]
    assert found[0].assumptions == (Assumption(Happening.FAILS, broker=1), Assumption(Happening.STOPS, rack="az2"))


@pytest.mark.parametrize(
    "text",
    [
        "scenarios:\n  two: {happens: '1 fails, 2 fails', at-once: true, clusters: pay*}\n",
        "- name: two\n  happens: 1 fails, 2 fails\n  at-once: true\n  clusters: pay*\n",
        '{"two": {"happens": "1 and 2 fail", "at-once": true, "clusters": "pay*"}}',
    ],
)
def test_yaml_says_the_same_in_its_ways(tmp_path: Path, text: str) -> None:
    (found,) = read_scenarios(scenario_file(tmp_path, text, "failures.yaml"))
    assert (found.name, found.at_once, found.clusters) == ("two", True, "pay*")
    scenario = found.of(CLUSTER, "payments")
    assert scenario is not None
    assert (str(scenario.outage), scenario.how) == ("brokers 1 and 2 are killed at once", "killed")
    assert found.of(CLUSTER, "orders") is None


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "x: 1 fails\ny: 1 explodes\n", r"a\.txt:2: '1 explodes' is nothing that can be imagined"),
        ("a.txt", "x: unclean election\n", r"a\.txt:1: .* is no outage"),
        ("a.txt", "# nothing\n", r"a\.txt has no scenario"),
        ("a.txt", "now: 1 fails\n", r"a\.txt:1: 'now' is the name"),
        ("a.txt", ": 1 fails\n", r"a\.txt:1: the scenario has no name"),
        ("a.yaml", "- happens: 1 fails\n  when: later\n", r"a\.yaml:1: 'when' says nothing here"),
        ("a.yaml", "x:\n- 1 fails\n", r"a\.yaml:2: a scenario is a text"),
        ("a.yaml", "x: 1 fails\nx: 2 fails\n", r"a\.yaml:2: 'x' stands here for the second time"),
        ("a.yaml", "x: [1 fails\n", r"a\.yaml:2: no YAML"),
        ("a.yaml", "- {happens: '1 fails, 1 returns', at-once: true}\n", r"a\.yaml:1: at once only one thing"),
        ("a.yaml", "- {happens: 1 fails, at-once: perhaps}\n", r"a\.yaml:1: at-once is 'perhaps'"),
        ("a.yaml", "- name: x\n", r"a\.yaml:1: what happens is missing"),
        ("a.yaml", "just words", r"a\.yaml:1: no list of scenarios"),
    ],
)
def test_what_is_no_scenario_is_named_with_its_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        read_scenarios(scenario_file(tmp_path, text, name))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x: 1 fails\n\xff")
    with pytest.raises(BadInputError, match="byte 11 is no UTF-8"):
        read_scenarios(path)


def test_names_are_built_in_or_files(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "x: 1 fails\n")
    found = wanted_scenarios(["each-pair", str(path)])
    assert (found.builtin, [one.name for one in found.written]) == (("now", "each-pair"), ["x"])
    assert wanted_scenarios([]) == wanted_scenarios(["builtin"])
    with pytest.raises(UsageError, match="neither a file nor built in"):
        wanted_scenarios(["each-planet"])
    with pytest.raises(BadInputError, match="two scenarios are called 'x'"):
        wanted_scenarios([str(path), str(path)])


def test_brokers_that_are_down_do_not_go_and_racks_go_whole() -> None:
    plan = spread([CONTEXT], wanted_scenarios(["each-broker,each-rack"]), [None])
    happens = {one.name: str(one.outage) for one in plan.scenarios["id-1"]}
    assert list(happens) == [
        *(f"broker {broker} {how}" for broker in (1, 2, 3) for how in ("stopped", "killed", "back-unclean")),
        *(f"rack {rack} {how}" for rack in ("az1", "az2") for how in ("stopped", "killed", "back-unclean")),
    ]
    assert happens["rack az2 killed"] == "brokers 3 and 4 are killed at once"
    assert happens["rack az1 back-unclean"] == (
        "broker 1 is killed, then broker 2 is killed, then broker 1 returns unclean, then broker 2 returns unclean"
    )
    assert list(plan.joint("id-1")) == []


def test_pairs_and_racks_while_another_broker_restarts() -> None:
    plan = spread([CONTEXT], wanted_scenarios(["each-pair,rack-while-rolling"]), [None])
    joint = {both.name: str(both.outage) for both, _, _ in plan.joint("id-1")}
    assert len([name for name in joint if "rack" not in name]) == 6
    assert joint["broker 1 stopped + broker 3 stopped"] == "brokers 1 and 3 are stopped cleanly at once"
    assert {name for name in joint if "rack" in name} == {
        "broker 1 stopped + rack az2 killed",
        "broker 2 stopped + rack az2 killed",
        "broker 3 stopped + rack az1 killed",
    }


def test_a_scenario_for_nobody_is_an_error(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "x: 77 fails\n")
    with pytest.raises(BadInputError, match=r"failures\.txt:1: no cluster has the brokers and racks of 'x'"):
        spread([CONTEXT], wanted_scenarios([str(path)]), [None])


def test_two_things_at_once_to_one_broker_are_refused(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, "- {name: x, happens: 'rack az1 fails, 2 stops', at-once: true}\n", "a.yaml")
    with pytest.raises(BadInputError, match=r"a\.yaml:1: in cluster payments two things happen to a broker at once"):
        spread([CONTEXT], wanted_scenarios([str(path)]), [None])


def test_a_return_of_which_nothing_tells_how_is_not_taken_for_clean(tmp_path: Path) -> None:
    (found,) = read_scenarios(scenario_file(tmp_path, "back: 1 fails, 1 returns\n"))
    assert found.assumptions[1] == Assumption(Happening.RETURNS, broker=1)


def test_a_blow_is_one_number_and_counts_are_words() -> None:
    for happening in HAPPENINGS:
        blow = Assumption(happening, broker=2**31 - 1)
        assert blow_of(blow_code(blow)) == blow
    assert counts_written("grade.proven-none=2 then.leaderless=-1") == {"grade.proven-none": 2, "then.leaderless": -1}
