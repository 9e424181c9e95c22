"""What `explain` says would happen is made to happen, and Kafka does just that: same leader, same truncated offsets.

Each incident leaves six partitions, one for each order of three replicas. A third of them gets a stock unclean
election, a third the designation of the best live log, by public tools with the files and lines that a plan becomes for
them, and a third waits until the absent brokers are back.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ElectionType as Wire
from confluent_kafka import TopicPartition as WirePartition
from confluent_kafka.admin import AdminClient

from kelr.engine import agreement, rank_logs
from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.planning import KAFKA_PYTHON_CONNECTION, StockFiles, plan_of, stock_files
from kelr.lab import INCIDENTS, Action, IncidentReport, Lab, run_incident
from kelr.lab.observed import PATIENCE_S
from kelr.model import (
    AdviceAction,
    Decision,
    ElectionRequest,
    ElectionType,
    Forecast,
    Outcome,
    ReplicaLog,
    Situation,
    Snapshot,
    TopicPartition,
    select,
)
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.live import LiveSource
from tests.cluster.features import ELR, set_features
from tests.cluster.kafka_topics import assert_same_facts
from tests.cluster.settled import settled
from tests.differential.versions import rules_of

PROMISED = {
    "under-min-isr": {Situation.UNDER_MIN_ISR},
    "waiting-for-elr": {Situation.WAITING_FOR_ELR},
    # Kafka 4.0 elects the last known leader although it is dead (KAFKA-19522).
    "last-known-leader": {Situation.WAITING_FOR_LAST_KNOWN_LEADER, Situation.LEADER_NOT_LIVE},
    "needs-unclean-recovery": {Situation.WAITING_FOR_ELR, Situation.WAITING_FOR_ISR},
    "lossy-restart": {Situation.WAITING_FOR_ELR, Situation.WAITING_FOR_ISR},
    "rack-outage": {Situation.WAITING_FOR_ELR, Situation.WAITING_FOR_ISR},
}
_TRUNCATING = re.compile(r"Truncating partition (?P<partition>\S+) with TruncationState\(offset=(?P<offset>\d+)")


_WITHOUT_ELR = [name for name, incident in INCIDENTS.items() if not incident.needs_elr]


def _few(always: Collection[str], names: Sequence[str]) -> list[Any]:
    """Those that show best what this Kafka does otherwise; the others run with `make predictions`."""
    return [name if name in always else pytest.param(name, marks=pytest.mark.longer) for name in names]


@pytest.mark.parametrize(
    "incident", _few({"last-known-leader", "lossy-restart", "needs-unclean-recovery"}, sorted(INCIDENTS))
)
def test_predictions_come_true_on_4_3(lab_43: Lab, incident: str) -> None:
    _check_predictions(lab_43, incident, rules="elr-4.3")


@pytest.mark.longer
@pytest.mark.parametrize("incident", sorted(INCIDENTS))
def test_predictions_come_true_on_the_newest(lab_newest: Lab, incident: str) -> None:
    _check_predictions(lab_newest, incident, rules=rules_of(lab_newest.spec.kafka).name)


@pytest.mark.parametrize("incident", _few({"last-known-leader"}, sorted(INCIDENTS)))
def test_predictions_come_true_on_4_0(lab_40: Lab, incident: str) -> None:
    _check_predictions(lab_40, incident, rules="elr-4.0")


@pytest.mark.parametrize("incident", _few({"lossy-restart"}, sorted(_WITHOUT_ELR)))
def test_predictions_come_true_without_elr(lab_without_elr: Lab, incident: str) -> None:
    _check_predictions(lab_without_elr, incident, rules="kraft")


@pytest.fixture
def lab_without_elr(healthy_43: Lab) -> Iterator[Lab]:
    """The 4.3.1 lab while ELR is switched off."""
    set_features(healthy_43, {ELR: 0}, up=False)
    try:
        yield settled(healthy_43)
    finally:
        set_features(healthy_43, {ELR: 1}, up=True)


def _check_predictions(lab: Lab, incident: str, *, rules: str) -> None:
    report = run_incident(lab, incident)
    snapshot, decisions = _explain(lab, report.topic)
    assert len(decisions) == report.partitions
    assert {decision.rules for decision in decisions} == {rules}
    assert {decision.situation for decision in decisions} <= PROMISED[incident]
    if incident == "needs-unclean-recovery" and rules != "kraft":
        assert_same_facts(lab)
    if (incident, rules) == ("needs-unclean-recovery", "elr-4.3"):
        _check_recommendation(decisions)
    by_election = [decision for decision in decisions if decision.partition % 3 == 0]
    by_hand = [decision for decision in decisions if decision.partition % 3 == 1]
    by_return = [decision for decision in decisions if decision.partition % 3 == 2]
    with _truncations(lab) as truncations:
        _elect_uncleanly(lab, by_election)
        _designate_with_other_tools(lab, snapshot, by_hand)
        _check_truncations(
            snapshot, [_outcome(decision, ElectionType.UNCLEAN) for decision in by_election], by_election, truncations
        )
        _check_truncations(snapshot, [_best(decision) for decision in by_hand], by_hand, truncations)
    _return_absent(lab, report, by_return)


def _explain(lab: Lab, topic: str) -> tuple[Snapshot, list[Decision]]:
    source = LiveSource(ConnectionSettings.read(lab.bootstrap_servers))
    try:
        (page,) = decide_partitions(source, select([topic]), clock_ms=lambda: 0)
    finally:
        source.close()
    return page.snapshot, list(page.decisions)


def _outcome(decision: Decision, kind: ElectionType) -> Outcome:
    return next(outcome for outcome in decision.elections if outcome.election is kind)


def _best(decision: Decision) -> Outcome:
    return _outcome(decision, ElectionType.LONGEST_LOG_AGGRESSIVE)


def _leaders(lab: Lab, decisions: Sequence[Decision]) -> Sequence[Mapping[int, int | None]]:
    """As each broker that answers has them, equal ones once: what is asked next may go to any of them."""
    addresses = [TopicPartition(decision.topic, decision.partition) for decision in decisions]
    found = [{at.partition: view[at].leader for at in addresses} for view in lab.views(decisions[0].topic)]
    return [leaders for number, leaders in enumerate(found) if leaders not in found[:number]]


def _elect_uncleanly(lab: Lab, decisions: Sequence[Decision]) -> None:
    """A stock unclean election by confluent-kafka: Kafka elects whom the engine named, or says what it said."""
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers})
    wanted = [WirePartition(decision.topic, decision.partition) for decision in decisions]
    answers = admin.elect_leaders(Wire.UNCLEAN, wanted).result(30)
    errors = {key.partition: None if error is None else error.name() for key, error in answers.items()}
    for decision in decisions:
        outcome = _outcome(decision, ElectionType.UNCLEAN)
        if outcome.note.startswith("not needed"):
            assert errors[decision.partition] == "ELECTION_NOT_NEEDED"
        elif outcome.elected is None:
            assert errors[decision.partition] in outcome.note
        else:
            assert errors[decision.partition] is None
    predicted = {decision.partition: _outcome(decision, ElectionType.UNCLEAN).elected for decision in decisions}
    _wait_for_leaders(lab, decisions, predicted)


def _designate_with_other_tools(lab: Lab, snapshot: Snapshot, decisions: Sequence[Decision]) -> None:
    """A plan's lines for public tools, run as they stand, make the designated replicas the leaders."""
    best = {TopicPartition(decision.topic, decision.partition): _best(decision) for decision in decisions}
    plan = plan_of(
        snapshot,
        [d for d in decisions if d.leader is None and _best(d).elected is not None],
        lambda address: ElectionRequest(ElectionType.DESIGNATION, best[address].designate),
        now_ms=0,
        made_by="kelr/test",
    )
    assert plan.not_planned == ()
    _run_steps(lab, stock_files(plan))
    wanted = {one.partition: one.elect for one in plan.elections}
    _wait_for_leaders(lab, decisions, {decision.partition: decision.leader for decision in decisions} | wanted)
    states = lab.partitions(decisions[0].topic)
    for decision in decisions:
        assert states[TopicPartition(decision.topic, decision.partition)].replicas == decision.replicas


def _run_steps(lab: Lab, files: StockFiles) -> None:
    for step in files.steps:
        if step.file is not None:
            Path(lab.directory, step.file).write_text(step.text)
        for line in step.lines:
            placed = line.removesuffix(" &&").replace(STOCK_CONNECTION, f"--bootstrap-server {lab.bootstrap_servers}")
            placed = placed.replace(KAFKA_PYTHON_CONNECTION, f"-b {lab.bootstrap_servers}")
            _run_line(lab, placed if step.file is None else placed.replace(step.file, str(lab.directory / step.file)))


def _run_line(lab: Lab, line: str) -> None:
    tool, *arguments = shlex.split(line)
    if tool == "kafka-python":
        # In a shell: the line looks at the tool's answer, because its status is 0 even where Kafka refuses.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        shell = ["sh", "-c", line]
        done = subprocess.run(
            shell, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "PATH": path}
        )
    else:
        done = lab.stock_tool(tool, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT REORDERED" not in done.stdout, done.stdout + done.stderr


def _wait_for_leaders(lab: Lab, decisions: Sequence[Decision], predicted: Mapping[int, int | None]) -> None:
    if decisions:
        _until(lambda: _leaders(lab, decisions), [predicted])


def _return_absent(lab: Lab, report: IncidentReport, decisions: Sequence[Decision]) -> None:
    """The awaited brokers return one after the other; each time Kafka elects whom the forecast named."""
    for broker in report.awaited:
        _, before = _explain(lab, report.topic)
        before = [decision for decision in before if decision.partition in {d.partition for d in decisions}]
        predicted = {decision.partition: _after_return(decision, report, broker) for decision in before}
        heard = _logs(lab, report.topic)
        with _truncations(lab) as truncations:
            lab.start(broker)
            _wait_for_leaders(lab, before, predicted)
            after = _logs(lab, report.topic)
            _check_agreement(before, predicted, heard, after, truncations)


def _after_return(decision: Decision, report: IncidentReport, broker: int) -> int | None:
    forecast = _forecast(decision, broker, clean=_went_cleanly(report, broker))
    if forecast is None:
        assert decision.leader is not None, "only a partition that has a live leader needs no forecast"
        return decision.leader
    return forecast.elected


def _forecast(decision: Decision, broker: int, *, clean: bool) -> Forecast | None:
    return next((f for f in decision.forecasts if f.replica == broker and f.clean is clean), None)


def _went_cleanly(report: IncidentReport, broker: int) -> bool:
    last = [step for step in report.steps if broker in step.brokers and step.action in {Action.KILL, Action.STOP}][-1]
    failed = any(step.action is Action.FAIL_TO_START and broker in step.brokers for step in report.steps)
    return last.action is Action.STOP and not failed


def _logs(lab: Lab, topic: str) -> Mapping[tuple[int, int], ReplicaLog]:
    snapshot, _ = _explain(lab, topic)
    return {
        (state.partition, replica): log
        for state in snapshot.partitions
        for replica, log in rank_logs(state, snapshot.logs[state.address]).heard.items()
    }


Truncations = Callable[[], Mapping[tuple[int, str], int]]
"""(broker, topic-partition) to the lowest offset that the broker's own log says it truncated to since the start."""


@contextmanager
def _truncations(lab: Lab) -> Iterator[Truncations]:
    files = {broker: Path(lab.directory, f"broker-{broker}", "server.log") for broker in lab.brokers}
    starts = {broker: file.stat().st_size for broker, file in files.items()}

    def read() -> Mapping[tuple[int, str], int]:
        found: dict[tuple[int, str], int] = {}
        for broker, file in files.items():
            with file.open("rb") as stream:
                stream.seek(starts[broker])
                for match in _TRUNCATING.finditer(stream.read().decode()):
                    key, offset = (broker, match["partition"]), int(match["offset"])
                    found[key] = min(found.get(key, offset), offset)
        return found

    yield read


def _check_truncations(
    snapshot: Snapshot, outcomes: Sequence[Outcome], decisions: Sequence[Decision], truncations: Truncations
) -> None:
    """Every predicted truncation happens, to the very offset; a live log that was not to be cut is not cut."""
    for decision, outcome in zip(decisions, outcomes, strict=True):
        if outcome.loss is None or outcome.elected is None or decision.leader is not None:
            continue
        name = f"{decision.topic}-{decision.partition}"
        heard = rank_logs_of(snapshot, decision)
        expected = {(cut.replica, name): cut.from_offset for cut in outcome.loss.truncations}
        untouched = {(replica, name): log.log_end for replica, log in heard.items() if (replica, name) not in expected}
        _until(lambda expected=expected: {key: truncations().get(key) for key in expected}, expected)
        for key, log_end in untouched.items():
            assert truncations().get(key, log_end) >= log_end
        for cut in outcome.loss.truncations:
            assert cut.offsets == heard[cut.replica].log_end - cut.from_offset


def rank_logs_of(snapshot: Snapshot, decision: Decision) -> Mapping[int, ReplicaLog]:
    address = TopicPartition(decision.topic, decision.partition)
    state = next(state for state in snapshot.partitions if state.address == address)
    return rank_logs(state, snapshot.logs[address]).heard


def _check_agreement(
    decisions: Sequence[Decision],
    leaders: Mapping[int, int | None],
    before: Mapping[tuple[int, int], ReplicaLog],
    after: Mapping[tuple[int, int], ReplicaLog],
    truncations: Truncations,
) -> None:
    """Followers truncate to where their log and the returned leader's part, as the engine computes it."""
    for decision in decisions:
        leader = leaders[decision.partition]
        if leader is None or leader == decision.leader or (decision.partition, leader) not in after:
            continue
        name = f"{decision.topic}-{decision.partition}"
        for replica in decision.replicas:
            log = before.get((decision.partition, replica))
            if replica == leader or log is None:
                continue
            agreed = agreement(log, after[decision.partition, leader])
            assert agreed is not None
            if agreed < log.log_end:
                _until(lambda key=(replica, name): truncations().get(key), agreed)
            else:
                assert truncations().get((replica, name), log.log_end) >= log.log_end


def _until(read: Callable[[], object], expected: object, *, timeout_s: float = PATIENCE_S) -> None:
    deadline_s = time.monotonic() + timeout_s
    while (found := read()) != expected:
        assert time.monotonic() < deadline_s, f"expected {expected}, and after {timeout_s:.0f} s it is {found}"
        time.sleep(0.2)


def _check_recommendation(decisions: Sequence[Decision]) -> None:
    """It never loses more than the stock election, and here it loses less."""
    stock = [_lost(_outcome(decision, ElectionType.UNCLEAN)) for decision in decisions]
    best = [_lost(_best(decision)) for decision in decisions]
    assert all(mine <= theirs for mine, theirs in zip(best, stock, strict=True))
    assert sum(best) < sum(stock)
    assert {decision.advice.action for decision in decisions} == {AdviceAction.BRING_BACK}


def _lost(outcome: Outcome) -> int:
    assert outcome.loss is not None
    assert outcome.loss.total is not None
    return outcome.loss.total.at_least
