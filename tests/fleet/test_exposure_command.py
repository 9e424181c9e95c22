"""What `kelr fleet exposure` takes and shows, without Spark."""

from __future__ import annotations

import io
import json

import pytest

from kelr.commands.fleet_exposure import read_budgets
from kelr.controller import ELR_4_3
from kelr.controller import events as ev
from kelr.controller.machine import history
from kelr.controller.state import Configs, ControllerState
from kelr.errors import UsageError
from kelr.fleet.exposure.settings import ADVICE, Setting
from kelr.fleet.exposure.spells import TROUBLES
from kelr.model.exposed import ExposedName, FleetExposure, TroubleTime
from kelr.replay.history import Trouble
from kelr.view.fleet_exposure import exposure_view, notes_on, tail_of
from kelr.view.output import Output, OutputFormat

NONE = TroubleTime(0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, None, 0)
LEADERLESS = TroubleTime(2, 3, 125.0, 65.0, 0.0, 0.25, 0.0, 1, 1_793_577_600_000, 0)
UNKNOWN = TroubleTime(0, 0, 0.0, 0.0, 250.0, 0.0, 0.5, 0, None, 0)
ROW = ExposedName(
    "Zk3", "payments", "topic", "orders", 500.0, {"leaderless": LEADERLESS, "under-min-isr": UNKNOWN}, ("leaderless",)
)
FOUND = FleetExposure(3, 1, 4, 2, 5, 1, 1, 7)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("1h30m", 5400.0), ("250ms", 0.25), ("0s", 0.0), ("2d", 172_800.0)]
)
def test_a_budget_is_a_trouble_and_a_time(text: str, seconds: float) -> None:
    assert read_budgets([f"leaderless={text}", "elr-only=1s"]) == {"leaderless": seconds, "elr-only": 1.0}


@pytest.mark.parametrize("text", ["leaderless", "leaderless=", "leaderless=60", "dead=60s", "=60s", "leaderless=-1s"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--budget"):
        read_budgets([text])


def test_every_trouble_of_a_history_is_summed_up() -> None:
    assert set(TROUBLES) == {*map(str, Trouble), "min-isr-unknown"}


def test_every_setting_has_its_advice() -> None:
    assert list(ADVICE) == list(Setting)
    for advice in ADVICE.values():
        commands = [one for one in (advice.topic_command, advice.cluster_command) if one]
        assert commands
        assert all("{topic}" not in one for one in commands if one is advice.cluster_command)


@pytest.mark.parametrize("format", OutputFormat)
def test_every_format(format: OutputFormat) -> None:
    stdout, stderr = io.StringIO(), io.StringIO()
    output = Output.for_streams(stdout, stderr, format=format, environ={})
    head = {"lake": "lake", "by": "topic", "since_ms": None, "until_ms": None}
    with output.listing(exposure_view("topic"), head) as listing:
        listing.add([ROW])
        listing.finish({**tail_of(FOUND, 1), "next": "kelr fleet report"})
    shown = stdout.getvalue()
    assert "orders" in shown
    assert "payments" in shown
    if format.for_people:
        titles = ("TOPIC", "CLUSTER", "NO LEADER", "UNDER MIN ISR", "LAST REPLICA", "ELR ONLY", "NOT KNOWN")
        assert shown.splitlines()[0].split() == " ".join(titles).split()
        assert "3x 2m05s, 1 last" in shown
        assert " ? " in shown, "under min ISR is not known, which is not the same as never"
        assert "50%" in shown
    if format is OutputFormat.JSON:
        document = json.loads(shown)
        assert document["more"] == 3
        assert document["items"][0]["troubles"]["under-min-isr"]["unknown_seconds"] == 250.0
        assert document["items"][0]["over"] == ["leaderless"]


def test_notes_say_what_the_rows_do_not() -> None:
    assert list(notes_on(FOUND, 1)) == [
        "3 more; --top shows more",
        "2 over budget",
        "5 unclean elections: table unclean_elections",
        "1 election of which it is not told whether they were unclean",
        "1 broker restarted uncleanly again and again: table unclean_restarts",
        "7 risky settings: table risky_settings",
        "1 of 3 clusters known from snapshots alone: what was between two that differ is not known",
    ]
    assert list(notes_on(FleetExposure(1, 0, 0, 0, 0, 0, 0, 0), 0)) == [
        "no partition of these clusters was in trouble, as far as is on record"
    ]


@pytest.mark.parametrize(("min_isr", "most"), [(1, 1), (2, 2), (3, 3)])
def test_with_min_isr_1_an_elr_never_has_a_second_member(min_isr: int, most: int) -> None:
    """What `min-isr-1-with-elr` says of Kafka."""
    up = [one for broker in (1, 2, 3) for one in (ev.BrokerRegistered(broker, clean=False), ev.BrokerUnfenced(broker))]
    gone = [ev.BrokerFenced(broker) for broker in (1, 2, 3)]
    begun = ControllerState(ELR_4_3, cluster=Configs(min_isr=min_isr))
    steps = history(begun, [*up, ev.TopicCreated("orders", ((1, 2, 3),)), *gone])
    assert max(len(state.elr or ()) for step in steps for state in step.state.partitions.values()) == most
