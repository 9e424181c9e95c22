"""Plans carried out on real Kafka: whole processes killed, two at once, a controller that goes away in the middle."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kelr import __version__
from kelr.engine.planning import plan_of
from kelr.errors import RefusedError
from kelr.lab import Lab, run_incident
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import (
    ConfigSource,
    ElectionRequest,
    ElectionType,
    Method,
    PartitionState,
    Plan,
    Selection,
    Target,
)
from kelr.model.plan import AcceptedLoss, Applied, ElectionResult
from kelr.recovery import audit
from kelr.recovery.actor import whoever_runs_this
from kelr.recovery.admin_client import AdminClient
from kelr.recovery.apply import apply_plan, check_plan
from kelr.recovery.apply_context import Timeouts
from kelr.recovery.clear_elr import clear_elr, price_of_clearing
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_store import open_journals
from kelr.recovery.progress import ApplyEvent, Stage
from kelr.recovery.resume import resume
from kelr.recovery.status import status
from kelr.recovery.undo import undo
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.ground import MACHINE
from kelr.sources.live import LiveSource
from kelr.sources.live.changes import LiveAdminClient
from tests.cluster.settled import settled

CONSENT = Confirmation(AcceptedLoss(100_000, unbounded=True), "a test")
SOON = Timeouts(late_s=3)
"""The controller is there all the time, so that what a killed process sent is done, or is not, at once."""
OUTLASTED = Timeouts(answer_s=1, answered_s=0.5, settle_s=0.5, late_s=0.5)
"""Where nobody else is at work any more: a kelr that waits as briefly has ended after half a minute."""
ROOT = Path(__file__).resolve().parents[2]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _source(lab: Lab, *, timeout_s: float = 20) -> LiveSource:
    return LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=timeout_s))


def _plan(lab: Lab, topic: str, wishes: Mapping[int, ElectionRequest]) -> Plan:
    with _source(lab) as source:
        selection = Selection((Target(topic=topic, partitions=tuple(sorted(wishes))),))
        (page,) = decide_partitions(source, selection, clock_ms=_now_ms)
    made_by = f"kelr/{__version__}"
    return plan_of(page.snapshot, page.decisions, lambda at: wishes[at.partition], now_ms=_now_ms(), made_by=made_by)


def _common(source: LiveSource, state: Path, hand: AdminClient | None = None) -> dict[str, Any]:
    return {
        "source": source,
        "hand": LiveAdminClient.of(source) if hand is None else hand,
        "state_directory": state,
        "ground": MACHINE,
        "who": whoever_runs_this(),
    }


def _apply(lab: Lab, plan: Plan, state: Path, **more: Any) -> tuple[Applied, ...]:
    with _source(lab) as source:
        return apply_plan(plan, **_common(source, state), consented=CONSENT, **more)


def _states(lab: Lab, topic: str) -> Mapping[int, PartitionState]:
    return {at.partition: state for at, state in settled(lab).partitions(topic).items()}


def _designate(broker: int, *partitions: int) -> dict[int, ElectionRequest]:
    return dict.fromkeys(partitions, ElectionRequest(ElectionType.DESIGNATION, broker))


@pytest.fixture(scope="module")
def leaderless(lab_43: Lab) -> tuple[Lab, str]:
    """24 partitions, six in a row for each order of 1, 2 and 3; 2 and 3 live, 2 holds more, nobody leads.

    The tests share them, each with six of its own; the one that brings broker 1 back is the last but one.
    """
    report = run_incident(lab_43, "needs-unclean-recovery", partitions=24)
    return lab_43, report.topic


def _driver(lab: Lab, plan: Plan, state: Path, *where: str) -> list[str]:
    state.mkdir(parents=True, exist_ok=True)
    plan_file = state / "plan.pickle"
    plan_file.write_bytes(pickle.dumps(plan))
    driver = [sys.executable, "-m", "tests.cluster.apply_driver"]
    return [*driver, lab.bootstrap_servers, str(plan_file), str(state), *where]


_PLACES = [(2, "after"), (3, "before"), (4, "after"), (5, "before"), (6, "after"), (8, "before")]
"""Lines of a journal with one reordering: begin, intent, answer (reorder), intent, answer (elect), intent, answer
(restore), restored, applied, end."""


def test_processes_killed_at_lines_of_the_journal(leaderless: tuple[Lab, str], tmp_path: Path) -> None:
    """One partition for each place; resumed or undone, in turn."""
    lab, topic = leaderless
    before = _states(lab, topic)
    wishes = {number: 3 if state.replicas.index(2) < state.replicas.index(3) else 2 for number, state in before.items()}
    for number, (line, when) in enumerate(_PLACES):
        plan = _plan(lab, topic, _designate(wishes[number], number))
        (planned,) = plan.elections
        assert planned.method is Method.REORDER
        state = tmp_path / str(number)
        driver = _driver(lab, plan, state, str(line), when)
        killed = subprocess.run(driver, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
        assert killed.returncode == -signal.SIGKILL, killed
        with _source(settled(lab)) as source:
            found = status(source, state, plan=plan)
            assert len(found.journals) == 1
            assert found.reordered == ((planned.address,) if line in {3, 4, 5, 6} else ())
            mend = resume if number % 2 else undo
            done = mend(found.journals[0].path, **_common(source, state), patience=SOON)
            assert done.good, done
            assert status(source, state, plan=plan).clean
        after = _states(lab, topic)[number]
        assert after.replicas == before[number].replicas
        assert after.leader in ({planned.elect} if mend is resume or line >= 5 else {None}), (line, when, after)


def test_two_processes_at_once(leaderless: tuple[Lab, str], tmp_path: Path) -> None:
    """With one state directory, one of them is refused; with two (as on two hosts), what they say is true."""
    lab, topic = leaderless
    before = _states(lab, topic)
    plans = _plan(lab, topic, _designate(2, *range(6, 12))), _plan(lab, topic, _designate(3, *range(6, 12)))
    states = tmp_path / "one", tmp_path / "other"
    running = [
        subprocess.Popen(_driver(lab, plan, state), stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for plan, state in zip(plans, states, strict=True)
    ]
    said = [process.communicate(timeout=200)[0].split("\n") for process in running]
    after = _states(lab, topic)
    assert {number: state.replicas for number, state in after.items()} == {
        number: state.replicas for number, state in before.items()
    }
    for plan, lines in zip(plans, said, strict=True):
        for planned, line in zip(plan.elections, lines, strict=False):
            name, ended, _ = line.split()
            assert name == str(planned.address)
            if ended == "done":
                assert after[planned.partition].leader == planned.elect, said
    assert all(after[number].leader is not None for number in range(6, 12)), said
    # Whoever cannot tell whether its order is back, since the other one moves it, says so and is resumed: until the
    # order has stood for longer than a kelr elects.
    deadline = time.monotonic() + 2 * OUTLASTED.rival_s
    for state in states:
        with _source(lab) as source:
            while (left := status(source, state).journals) and time.monotonic() < deadline:
                for journal in left:
                    resume(journal.path, **_common(source, state), patience=OUTLASTED)
    for state in states:
        with _source(lab) as source:
            found = status(source, state)
            assert found.clean, (said, found)
    assert {number: state.replicas for number, state in _states(lab, topic).items()} == {
        number: state.replicas for number, state in before.items()
    }


def test_the_controller_goes_away_in_the_middle(leaderless: tuple[Lab, str], tmp_path: Path) -> None:
    """It is killed right before the election is asked for, and back some seconds later: the answer never comes."""
    lab, topic = leaderless
    before = _states(lab, topic)
    number = next(number for number in range(12, 18) if before[number].replicas[:2] == (3, 2))
    plan = _plan(lab, topic, _designate(2, number))
    told: list[ApplyEvent] = []
    back = threading.Timer(6, lambda: lab._spawn(CONTROLLER_ID))

    def report(event: ApplyEvent) -> None:
        told.append(event)
        if event.stage is Stage.ELECT:
            pid = next(node.pid for node in lab.status().nodes if node.node == CONTROLLER_ID)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            back.start()

    try:
        with _source(lab, timeout_s=4) as source:
            (result,) = apply_plan(plan, **_common(source, tmp_path), consented=CONSENT, report=report)
    finally:
        back.join()
    assert result.ended is ElectionResult.DONE, (result, [event.text for event in told])
    after = _states(lab, topic)[number]
    assert (after.leader, after.replicas) == (2, before[number].replicas)
    assert Stage.REPEAT in {event.stage for event in told}
    assert open_journals(tmp_path, plan.cluster_id) == ()


def test_designations_and_unclean_elections(leaderless: tuple[Lab, str], tmp_path: Path) -> None:
    """Every partition is led by 2, most of which an unclean election alone would have given to 3."""
    lab, topic = leaderless
    before = _states(lab, topic)
    plan = _plan(lab, topic, {**_designate(2, 18, 19, 20, 22, 23), 21: ElectionRequest(ElectionType.UNCLEAN)})
    methods = [one.method for one in plan.elections]
    assert methods.count(Method.REORDER) >= 3
    assert Method.UNCLEAN in methods
    with _source(lab) as source:
        checked = check_plan(plan, source=source, ground=MACHINE)
        assert [result.ended for result in checked] == [ElectionResult.NOT_TRIED] * 6, checked
        results = apply_plan(plan, **_common(source, tmp_path), consented=CONSENT)
    assert [result.ended for result in results] == [ElectionResult.DONE] * 6, results
    after = _states(lab, topic)
    assert {number: state.replicas for number, state in after.items()} == {
        number: state.replicas for number, state in before.items()
    }
    wanted = {one.partition: one.elect for one in plan.elections}
    assert {number: after[number].leader for number in wanted} == wanted
    assert wanted == dict.fromkeys(range(18, 24), 2)
    assert [line.result for line in audit.read(tmp_path)] == ["done"] * 6
    # Again: nothing to do. Then the way back to the preferred leaders, once they are in sync.
    assert [result.ended for result in _apply(lab, plan, tmp_path)] == [ElectionResult.NOT_NEEDED] * 6
    lab.restore()
    lab.wait_partitions(topic, "all are in sync", lambda state: len(state.isr) == 3)
    plan = _plan(lab, topic, dict.fromkeys(range(18, 24), ElectionRequest(ElectionType.PREFERRED)))
    assert {one.method for one in plan.elections} == {Method.PREFERRED}
    assert {result.ended for result in _apply(lab, plan, tmp_path)} == {ElectionResult.DONE}
    after = _states(lab, topic)
    assert all(after[number].leader == after[number].replicas[0] for number in wanted)


def test_a_hold(lab_43: Lab, tmp_path: Path) -> None:
    """Broker 1 is the ELR and the last known leader of every partition; after the hold its return elects no leader, and
    all three logs can be looked at before one is designated."""
    lab = lab_43
    topic = run_incident(lab, "needs-unclean-recovery").topic
    assert all((state.elr, state.last_known_elr) == ((1,), (1,)) for state in _states(lab, topic).values())
    with _source(lab) as source:
        price = price_of_clearing(topic, source=source, clock_ms=_now_ms)
        assert (price.own_value, price.writes, price.leaderless) == (None, "2", tuple(range(6)))
        with pytest.raises(RefusedError, match="clearing throws that away"):
            clear_elr(price, **_common(source, tmp_path))
        held = clear_elr(price, **_common(source, tmp_path), force_reason="to compare the logs first")
        assert held.good, held
        config = source.topic_configs([topic])[topic]
    assert (config.min_insync_replicas, config.min_insync_replicas_source) == (2, ConfigSource.CLUSTER_DEFAULT)
    lab.start(1)
    lab.wait_partitions(topic, "broker 1 is back", lambda state: 1 not in (state.offline_replicas or ()))
    assert all(
        (state.leader, state.elr, state.last_known_elr) == (None, (), ()) for state in _states(lab, topic).values()
    )
    plan = _plan(lab, topic, _designate(1, *range(6)))
    assert {result.ended for result in _apply(lab, plan, tmp_path)} == {ElectionResult.DONE}
    assert all(state.leader == 1 for state in _states(lab, topic).values())
