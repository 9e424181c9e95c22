"""The advice's own conditions: until when waiting is worth it, a leader that is not live, lines that may be typed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kelr.controller import ELR_4_0, ELR_4_3, KIP966_AGGRESSIVE, KIP966_BALANCED, KRAFT, RuleSet
from kelr.engine import decide
from kelr.engine.loss_words import cost_in_words
from kelr.model import (
    LOG_DIRECTORY,
    Advice,
    AdviceAction,
    Bounds,
    BrokerStatus,
    Cluster,
    ConfigSource,
    Decision,
    ElectionType,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    Loss,
    LossCertainty,
    PartitionState,
    Situation,
    TopicConfig,
)
from kelr.view.broker_order import unwelcome
from kelr.view.explain_columns import Explained
from kelr.view.explain_summary import what_to_do
from tests.engine.cases import and_unclean, cluster_of, decision, leaderless, log_of, silent, snapshot_of

WAITING = leaderless((3, 1, 2), elr=(1,), last_known=(1,))
LOGS = (log_of(3, (0, 116)), silent(1), log_of(2, (0, 135), hw=120))
ALIVE = cluster_of(live=(2, 3), fenced=(1,))


def advised(
    state: PartitionState, cluster: Cluster, logs: Iterable[LogAnswer], policy: tuple[str, ...] | None
) -> Advice:
    snapshot = snapshot_of(state, cluster, logs)
    config = replace(snapshot.configs[state.topic], cleanup_policy=policy)
    return decide(replace(snapshot, configs={state.topic: config}), state, ELR_4_3).advice


RETENTION = ", but retention, if the topic has any, still deletes old records on 2 and 3"
"""With retention.ms and retention.bytes at -1 a topic has none, and kelr reads neither."""


@pytest.mark.parametrize(
    ("policy", "retention"),
    [
        (("delete",), RETENTION),
        (("compact", "delete"), RETENTION),
        (("compact",), ""),
        ((), ""),
        (None, RETENTION),
    ],
)
def test_while_nobody_leads_nothing_is_written_and_retention_goes_on(
    policy: tuple[str, ...] | None, retention: str
) -> None:
    advice = advised(WAITING, ALIVE, LOGS, policy)
    assert advice.action is AdviceAction.BRING_BACK
    assert advice.until == f"Waiting: no new writes{retention}."


def test_where_nobody_can_be_designated_waiting_has_no_alternative() -> None:
    nobody = advised(WAITING, cluster_of(live=(), fenced=(1, 2, 3)), map(silent, (3, 1, 2)), ("delete",))
    assert nobody.action is AdviceAction.BRING_BACK
    # No replica is live that could delete anything.
    assert nobody.until == "Waiting: no new writes. No other choice is known."


def test_logs_that_were_not_read_are_no_lack_of_alternatives() -> None:
    unheard = advised(WAITING, ALIVE, map(silent, (3, 1, 2)), ("delete",))
    assert unheard.until == (
        f"Waiting: no new writes{RETENTION}. The loss if you elect 3 or 2 is"
        " UNKNOWN: their logs were not read. kelr log-info orders:0, asked of the cluster itself, reads them or says"
        " why not."
    )


@pytest.mark.parametrize(
    ("logs", "alternative"),
    [
        (
            (silent(3), silent(1), log_of(2, (0, 135))),
            "If 1 cannot return: start broker 2, which has the most complete log of those that were read.",
        ),
        (
            (log_of(3, (0, 116)), silent(1), log_of(2, (0, 135))),
            "If 1 cannot return: start broker 2, which has the most complete log of those that were read. If neither"
            " can be done: designate 3, which loses at least 19 offsets,",
        ),
        # The log of 1 was read from its disk: 2 has the best of the others.
        (
            (log_of(3, (0, 116)), log_of(1, (0, 150)), log_of(2, (0, 135))),
            "If 1 cannot return: start broker 2, which has the most complete log of the others that were read. If"
            " neither can be done: designate 3, which loses 34 offsets",
        ),
        (
            (log_of(3, (0, 135)), log_of(1, (0, 150)), log_of(2, (0, 135))),
            "If 1 cannot return: designate 3, which loses 15 offsets",
        ),
        ((log_of(3, (0, 135)), silent(1), log_of(2, (0, 116))), "If 1 cannot return: designate 3 (loss UNKNOWN)"),
    ],
)
@pytest.mark.parametrize("elr", [(1,), ()])
def test_an_absent_replica_with_the_best_log_is_an_alternative(
    elr: tuple[int, ...], logs: tuple[LogAnswer, ...], alternative: str
) -> None:
    state = leaderless((3, 1, 2), elr=elr, last_known=(1,))
    advice = advised(state, cluster_of(live=(3,), fenced=(1, 2)), logs, ("delete",))
    said = advice.alternative.replace(", or its log was cut", "")
    assert said.startswith(alternative)


def test_where_nobody_is_waited_for_the_next_best_absent_log_is_an_alternative_too() -> None:
    logs = (log_of(3, (0, 116)), log_of(1, (0, 150)), log_of(2, (0, 135)))
    advice = advised(leaderless((3, 1, 2)), cluster_of(live=(3,), fenced=(1, 2)), logs, ("delete",))
    assert (advice.action, advice.replica, advice.designate) == (AdviceAction.BRING_BACK, 1, 3)
    assert advice.alternative.startswith(
        "If 1 cannot return: start broker 2, which has the most complete log of the others that were read. If"
        " neither can be done: designate 3, which loses 34 offsets"
    )


@pytest.mark.parametrize(("live", "opening"), [((3,), "Start broker 2"), ((), "Start broker 2 first")])
def test_of_those_whom_kafka_would_elect_the_best_log_comes_first(live: tuple[int, ...], opening: str) -> None:
    """The first one back leads, and the other truncates to it; here they stand in the other order in the assignment."""
    state, down = leaderless((1, 2, 3), elr=(1, 2), last_known=(2,)), tuple({1, 2, 3} - set(live))
    logs = (log_of(1, (0, 35)), log_of(2, (0, 50)), log_of(3, (0, 20)))
    advice = advised(state, cluster_of(live=live, fenced=down), logs, ("delete",))
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 2)
    assert advice.text.startswith(opening)


def test_where_a_log_is_not_known_any_of_those_whom_kafka_would_elect_may_come_first() -> None:
    state = leaderless((1, 2, 3), elr=(1, 2), last_known=(2,))
    logs = (silent(1), log_of(2, (0, 50)), log_of(3, (0, 20)))
    advice = advised(state, cluster_of(live=(3,), fenced=(1, 2)), logs, ("delete",))
    assert advice.text.startswith("Start broker 1 or 2")


def test_a_dead_broker_that_is_about_to_be_elected_may_have_lost_its_log() -> None:
    dead = decision(leaderless(last_known=(1,)), cluster_of(live=(2, 3), fenced=(1,)), rules=ELR_4_0).advice
    assert (dead.action, dead.replica) == (AdviceAction.BRING_BACK, 1)
    assert "If its machine crashed or lost its disk, keep it down and read its disk first" in dead.text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", "grant DESCRIBE_CONFIGS on topic orders, and ask the cluster again."),
        ("REQUEST_TIMED_OUT", "see the notes for the reason."),
    ],
)
def test_an_unknown_min_isr_is_asked_for(error: str, words: str) -> None:
    snapshot = snapshot_of(PartitionState("orders", 0, 3, 5, (3, 2), (3,), (), ()), cluster_of(live=(2, 3)))
    snapshot = replace(snapshot, configs={"orders": TopicConfig(error=error)})
    advice = decide(snapshot, snapshot.partitions[0]).advice
    assert advice.text.endswith(words)
    assert advice.command == ("describe", "orders:0")


def test_an_unknown_elr_takes_another_broker() -> None:
    advice = decision(leaderless(elr=None), cluster_of(live=(2, 3), fenced=(1,))).advice
    assert "ask a broker that knows DescribeTopicPartitions" in advice.text


def test_without_the_elr_nothing_is_foretold_of_a_return() -> None:
    """A member of it would be elected: "its return elects no leader" would be a guess."""
    decided = decision(leaderless(elr=None), cluster_of(live=(), fenced=(1, 2, 3)))
    assert (decided.forecasts, decided.waits_for) == ((), ())
    assert decided.advice.action is AdviceAction.GET_MORE_INFORMATION
    assert "ask a broker that knows DescribeTopicPartitions" in decided.advice.text


def test_getting_more_information_is_waiting_too() -> None:
    advice = advised(leaderless((3, 1, 2)), ALIVE, LOGS, ("delete",))
    assert advice.action is AdviceAction.GET_MORE_INFORMATION
    assert advice.until == f"Waiting: no new writes{RETENTION}."


@pytest.mark.parametrize(
    ("state", "logs"),
    [
        (PartitionState("orders", 0, 2, 5, (1, 2, 3), (2, 3), (), ()), ()),
        (PartitionState("orders", 0, 2, 5, (1, 2, 3), (2,), (3,), ()), ()),
        (leaderless((1, 2, 3), last_known=(1,)), (log_of(1, (0, 50)), log_of(2, (0, 80)), log_of(3, (0, 60)))),
    ],
    ids=["healthy", "under-min-isr", "hold"],
)
def test_advice_that_waits_for_nobody_has_no_until(state: PartitionState, logs: Iterable[LogAnswer]) -> None:
    assert advised(state, ALIVE, logs, ("delete",)).until == ""


def test_a_silent_leader_is_waited_for_as_long_as_its_session_lasts() -> None:
    state = PartitionState("orders", 0, 2, 5, (2, 3), (2, 3), (), ())
    advice = advised(state, ALIVE, [LogUnavailable(2, LogUnavailableReason.TIMED_OUT), log_of(3, (0, 9))], None)
    assert advice.action is AdviceAction.WAIT
    assert "broker.session.timeout.ms" in advice.until


def test_a_pending_election_can_be_asked_for() -> None:
    """An unclean election asks the clean rules first."""
    pending = decision(leaderless((1, 2), elr=(2,)), cluster_of(live=(1, 2)), [log_of(1, (0, 9)), log_of(2, (0, 9))])
    assert (pending.situation, pending.elected) == (Situation.LEADER_PENDING, 2)
    assert pending.advice.action is AdviceAction.WAIT
    assert pending.advice.until == (
        "Waiting: a minute at most, since nothing shows when that event comes. Then run an unclean election: it elects"
        " 2 by the same rule (elr), which it asks first."
    )
    assert pending.advice.elect == ("elect", "--election-type", "unclean", "orders:0")
    unclean = next(o for o in pending.elections if o.election is ElectionType.UNCLEAN)
    assert (unclean.elected, unclean.elected_by) == (pending.elected, pending.elected_by)


def test_the_periodic_task_is_waited_for_where_it_elects_the_best_log() -> None:
    logs = [log_of(1, (0, 20)), log_of(2, (0, 10))]
    pending = decision(leaderless((1, 2)), cluster_of(live=(1, 2)), logs, unclean=True)
    assert (pending.advice.action, pending.advice.replica) == (AdviceAction.WAIT, 1)
    assert "unclean.leader.election.interval.ms" in pending.advice.until


def test_whom_the_periodic_task_would_elect_may_be_gone_where_it_did_not_answer() -> None:
    logs = [silent(1), log_of(2, (0, 10))]
    due = decision(leaderless((1, 2), elr=(3,)), cluster_of(live=(1,), fenced=(2, 3)), logs, unclean=True)
    assert due.elected == 1
    assert due.summary.endswith(
        "about to be elected (unclean), unless it is gone: it did not answer (connection refused)."
    )
    assert (due.advice.action, due.advice.replica) == (AdviceAction.WAIT, 1)
    assert "broker.session.timeout.ms" in due.advice.until


def test_the_periodic_task_is_not_said_to_elect_the_best_log_where_none_was_read() -> None:
    logs = [
        LogUnavailable(1, LogUnavailableReason.NOT_AUTHORIZED, "READ"),
        LogUnavailable(2, LogUnavailableReason.NOT_AUTHORIZED, "READ"),
    ]
    due = decision(leaderless((1, 2)), cluster_of(live=(1, 2)), logs, unclean=True)
    assert due.advice.action is AdviceAction.GET_MORE_INFORMATION
    assert due.advice.text.startswith(
        "Write unclean.leader.election.enable=false to the topic at once: else Kafka's periodic task elects 1 within"
        " minutes, and what that loses is not known. No live replica's log could be read"
    )


@pytest.mark.parametrize("ends", [(20, 10), (10, 20)])
def test_a_periodic_election_beside_a_dead_unread_replica_is_forbidden(ends: tuple[int, int]) -> None:
    """It was "look again", or to designate the better one of the live ones: as if nothing were known to be unknown."""
    logs = [log_of(1, (0, ends[0])), log_of(2, (0, ends[1])), silent(3)]
    due = decision(leaderless((1, 2, 3), elr=(3,)), cluster_of(live=(1, 2), fenced=(3,)), logs, unclean=True)
    assert (due.situation, due.elected) == (Situation.LEADER_PENDING, 1)
    advice = due.advice
    assert (advice.action, advice.until) == (AdviceAction.GET_MORE_INFORMATION, "")
    assert advice.text == (
        "Write unclean.leader.election.enable=false to the topic at once: else Kafka's periodic task elects 1 within"
        " minutes, and the log of broker 3 was not read, and may be better. Then run kelr explain again. Once it is"
        " led, write back what it was: the same command with --delete-config unclean.leader.election.enable in place"
        " of --add-config: the topic has none of its own now."
    )
    assert advice.stock == (
        "kafka-configs.sh {stock} --alter --entity-type topics --entity-name orders --add-config"
        " unclean.leader.election.enable=false"
    )
    assert advice.command == ("explain", "orders:0")
    best = 1 if ends[0] > ends[1] else 2
    assert advice.alternative.startswith(f"If that cannot be done: designate {best} (loss UNKNOWN)")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (ConfigSource.TOPIC, "with unclean.leader.election.enable=true, which the topic has of its own now."),
        (
            ConfigSource.CLUSTER_DEFAULT,
            "with --delete-config unclean.leader.election.enable in place of --add-config: the topic has none of its"
            " own now.",
        ),
        (
            ConfigSource.UNKNOWN,
            "with --delete-config unclean.leader.election.enable in place of --add-config, or with true where the topic"
            " has that of its own: which of the two was not read.",
        ),
    ],
)
@pytest.mark.parametrize("leader", [None, 1])
def test_a_config_that_is_written_for_a_while_is_written_back(
    source: ConfigSource, said: str, leader: int | None
) -> None:
    """Also where Kafka 4.0 recorded a dead leader (KAFKA-19522), whose advice named no command."""
    state, cluster = leaderless((1, 2, 3), elr=(3,)), cluster_of(live=(2,), fenced=(1, 3))
    if leader is not None:
        state = replace(state, leader=leader, isr=(leader,), elr=())
    asked = snapshot_of(state, cluster, [silent(1), log_of(2, (0, 10)), silent(3)], unclean=True)
    configs = {state.topic: replace(asked.configs[state.topic], unclean_leader_election_source=source)}
    advice = decide(replace(asked, configs=configs), state, ELR_4_0).advice
    assert advice.text.endswith(f" Once it is led, write back what it was: the same command {said}")
    assert advice.stock.endswith("--entity-name orders --add-config unclean.leader.election.enable=false")


@pytest.mark.parametrize("live", [(1,), ()])
def test_a_place_in_the_elr_proves_nothing_of_a_replica_that_a_reassignment_adds(live: tuple[int, ...]) -> None:
    """It may be from before another reassignment took the replica out, and its broker deleted the log: Kafka 4.3.1
    elects the empty log as a clean candidate (docs/election-rules.md)."""
    moved = replace(leaderless((2, 1), elr=(2,), last_known=(1,)), adding=(2,), removing=(1,))
    fenced = [one for one in (1, 2) if one not in live]
    logs = [log_of(1, (0, 3)) if live else silent(1), silent(2)]
    found = decision(moved, cluster_of(live=live, fenced=fenced), logs)
    clean = next(one for one in found.forecasts if one.replica == 2 and one.clean)
    assert clean.loss is not None
    assert (clean.elected, clean.loss.grade) == (2, LossCertainty.UNKNOWN)
    assert (found.advice.action, found.advice.keep_down) == (AdviceAction.GET_MORE_INFORMATION, (2,))
    assert found.advice.text.startswith(
        "Keep broker 2 down and read its disk first: after a clean shutdown Kafka elects it the moment it returns"
    )
    other = replace(moved, replicas=(2, 1, 3), elr=(2, 3))
    awaited = decision(other, cluster_of(live=live, fenced=(*fenced, 3)), [*logs, silent(3)]).advice
    assert (awaited.action, awaited.replica) == (AdviceAction.BRING_BACK, 3)
    up = decision(replace(moved, elr=(2,), isr=(3,), replicas=(2, 1, 3)), cluster_of(live=(2,), fenced=(1, 3)), logs)
    assert "so it holds all that was committed" not in up.advice.text


DEAD_LEADER = PartitionState("orders", 0, 1, 5, (3, 1, 2), (1,), (), ())


def led_by_the_dead(state: PartitionState, *, rules: RuleSet = ELR_4_0, logs: Iterable[LogAnswer] = LOGS) -> Decision:
    found = decision(state, ALIVE, logs, rules=rules)
    assert found.situation is Situation.LEADER_NOT_LIVE
    return found


def test_a_leader_that_is_not_live_is_displaced_by_the_reordering() -> None:
    """KAFKA-19522: an unclean election is refused as not needed, and the reordering makes it needed."""
    found = led_by_the_dead(DEAD_LEADER)
    unclean = next(o for o in found.elections if o.election is ElectionType.UNCLEAN)
    assert unclean.note == "not needed: recorded leader 1"
    designations = {o.designate: o.elected for o in found.elections if o.election is ElectionType.DESIGNATION}
    assert designations == {3: 3, 2: 2}
    advice = found.advice
    assert (advice.action, advice.replica) == (AdviceAction.WAIT, 1)
    assert "KAFKA-19522" in advice.text
    assert advice.alternative.startswith("If this stays and 1 cannot return: designate 2 (loss UNKNOWN)")
    assert "The reordering takes the leadership off 1" in advice.alternative
    assert advice.elect == ("elect", "--election-type", "designation", "--designate", "2", "orders:0")
    assert advice.command == ("describe", "orders:0", "--watch")


DOUBTED = LogUnavailable(
    1, LogUnavailableReason.DOUBTFUL, "its log is not used: what it holds of audit:0 is from before"
)


def test_a_disk_that_is_not_believed_takes_the_promise_of_its_place() -> None:
    """What its return loses is told as unknown, and the advice said that it loses nothing committed."""
    advice = decision(WAITING, ALIVE, (LOGS[0], DOUBTED, LOGS[2])).advice
    assert (
        "Start broker 1. In the ELR, but the loss is UNKNOWN: what was read of the disk of broker 1 is stale, or the"
        " log was cut or lacks a segment." in advice.text
    )
    # Whoever does line by line what is said has read it before it starts.
    assert advice.text.startswith("Read the disk of broker 1 again first: what was read contradicts what the")
    assert "nothing committed is lost" not in advice.text


def test_a_member_of_the_elr_whose_disk_is_not_believed_comes_after_one_that_nothing_contradicts() -> None:
    state = leaderless((3, 1, 2), elr=(1, 2), last_known=(1,))
    advice = decision(state, cluster_of(live=(3,), fenced=(1, 2)), (LOGS[0], DOUBTED, silent(2))).advice
    assert (advice.action, advice.start) == (AdviceAction.BRING_BACK, (2,))
    assert advice.text.startswith(
        "Start broker 2. After a clean shutdown, Kafka elects it and loses no committed record"
    )
    assert "Read the disk of broker 1 again before it starts: what was read contradicts" in advice.text
    assert advice.alternative.startswith("If 1 and 2 cannot return")


def test_a_dead_leader_may_be_none_once_it_is_back_where_unclean_elections_are_allowed() -> None:
    """After an unclean shutdown it leaves the ISR, and whoever is live leads (seed 91063 of make hindsight)."""
    for unclean in (False, True):
        found = decide(snapshot_of(DEAD_LEADER, ALIVE, LOGS, unclean=unclean), DEAD_LEADER, ELR_4_0).advice
        assert ("Write unclean.leader.election.enable=false to the topic before 1 is back" in found.text) is unclean


def test_what_a_dead_leader_loses_that_a_return_elects_is_not_known_where_another_may_lead_then() -> None:
    state = leaderless((1, 4), elr=(4,), last_known=(1,))
    crashed = replace(log_of(1, (0, 2)), source=LOG_DIRECTORY, unclean_shutdown=True)
    stopped = replace(crashed, unclean_shutdown=False)
    cluster = cluster_of(live=(2,), fenced=(1, 4))
    for unclean, disk, reason in (
        (True, crashed, "1 is down: after an unclean shutdown its return makes any live replica the leader"),
        (False, crashed, "the log of broker 4 was not read and may hold more"),
        (True, stopped, "the log of broker 4 was not read and may hold more"),
    ):
        found = decide(snapshot_of(state, cluster, (disk, silent(4)), unclean=unclean), state, ELR_4_0)
        (back,) = (one for one in found.forecasts if one.replica == 4 and not one.clean)
        assert back.elected == 1
        assert back.loss is not None
        assert (back.loss.reason, back.loss.total is None) == (reason, reason.startswith("1 is down"))


def test_a_dead_broker_that_kafka_4_0_is_about_to_elect_is_kept_down_where_its_disk_lacks_records() -> None:
    """It was to be brought back, unless its machine had crashed, whatever its disk showed (seed 22833)."""
    state = leaderless(last_known=(1,))
    cut = replace(log_of(1, (0, 40), hw=40), source=LOG_DIRECTORY, unclean_shutdown=True)
    found = decision(state, ALIVE, (LOGS[0], cut, LOGS[2]), rules=ELR_4_0)
    assert found.situation is Situation.LEADER_PENDING
    assert (found.advice.action, found.advice.replica) == (AdviceAction.HOLD, 1)
    assert "Keep broker 1 down" in found.advice.text
    assert "write another min.insync.replicas to the topic before anything else happens" in found.advice.text


def test_a_dead_leader_leads_whatever_its_log_still_holds() -> None:
    """Its broker may have died before it was elected, and its machine have crashed."""
    unread = led_by_the_dead(DEAD_LEADER).advice
    assert "start 1. If its machine crashed or lost its disk, read its disk first: it leads" in unread.text
    cut = replace(log_of(1, (0, 40)), source=LOG_DIRECTORY, unclean_shutdown=True)
    held = led_by_the_dead(DEAD_LEADER, logs=(log_of(3, (0, 116)), cut, log_of(2, (0, 135), hw=120))).advice
    assert (held.action, held.replica, held.designate) == (AdviceAction.HOLD, 1, 2)
    assert "Keep broker 1 down: it leads the moment it returns, and its log lacks 95 offsets that 2 holds." in held.text
    assert held.command == held.elect
    whole = replace(log_of(1, (0, 140)), source=LOG_DIRECTORY, unclean_shutdown=True)
    best = led_by_the_dead(DEAD_LEADER, logs=(log_of(3, (0, 116)), whole, log_of(2, (0, 135), hw=120))).advice
    assert "start 1. Its log was read from its disk and ends at 140, the most complete of all replicas." in best.text


LAST_OF_THE_ELR = leaderless((3, 1, 2), elr=(1,), last_known=(3,))


@pytest.mark.parametrize("live", [(2, 3), ()])
def test_the_last_of_the_elr_may_come_back_uncleanly_and_elect_the_last_known_leader(live: tuple[int, ...]) -> None:
    cluster = cluster_of(live=live, fenced={1, 2, 3} - {*live})
    logs = (log_of(3, (0, 116)), silent(1), log_of(2, (0, 135), hw=120))
    rules = ELR_4_3 if live else ELR_4_0  # which elects it although it is dead
    advice = decision(LAST_OF_THE_ELR, cluster, logs, rules=rules).advice
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 1)
    said = (
        "If 1 was not shut down cleanly, read its disk before it starts: its return ends its place in the ELR, and"
        " Kafka elects 3, which loses at least 19 offsets, 4 of them known to be committed; the log of broker 1 was not"
        " read."
    )
    assert said in advice.text
    assert ("Designate 2 first then." in advice.text) is bool(live)


def test_the_best_log_is_not_brought_back_where_that_elects_a_worse_one() -> None:
    read = replace(log_of(1, (0, 150)), source=LOG_DIRECTORY, unclean_shutdown=True)
    logs = (log_of(3, (0, 116)), read, silent(2))
    advice = decision(LAST_OF_THE_ELR, cluster_of(live=(3,), fenced=(1, 2)), logs).advice
    assert advice.action is AdviceAction.GET_MORE_INFORMATION
    assert "Start broker 2, or read its disk, before you choose: that elects no leader" in advice.text
    assert "Start 1" not in advice.text
    assert "If it returns: Kafka elects 3 the moment it returns, which loses at least 34 offsets" in advice.text
    assert advice.text.endswith(
        "Keep broker 1 down until all logs are known: its return may elect somebody before that." + and_unclean(1)
    )
    assert advice.keep_down == (1,)


def test_a_designation_that_comes_after_a_return_is_told_to_scripts_too() -> None:
    """The text said "then designate 1", and `designate` and `elect` were empty."""
    logs = (log_of(3, (0, 9)), cut_disk(1, 150), cut_disk(2, 20))
    state = leaderless((3, 1, 2), last_known=(2,))
    for live in ((3,), ()):
        advice = decision(state, cluster_of(live=live, fenced={1, 2, 3} - {*live}), logs).advice
        assert (advice.action, advice.replica, advice.designate) == (AdviceAction.HOLD, 2, 1)
        assert "Start 1 first: its return elects no leader, so then designate 1" in advice.text
        assert advice.elect == ("elect", "--election-type", "designation", "--designate", "1", "orders:0")
        assert advice.command == ("describe", "orders:0", "--watch")  # 1 is down yet


def test_where_elr_is_not_known_no_return_is_said_to_elect_nobody() -> None:
    """Found by `make hindsight` (8444): a live replica with an empty log was to be designated first, since 'a
    designation would not make' the best log's one the leader."""
    state = replace(leaderless((1, 3, 2), isr=(3,)), elr=None, last_known_elr=None)
    logs = (cut_disk(1, 5), cut_disk(3, 5), log_of(2))
    found = decision(state, cluster_of(live=(2,), fenced=(1, 3)), logs)
    assert found.forecasts == ()
    assert (found.advice.action, found.advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert "run kelr explain again then" in found.advice.text


def cut_disk(replica: int, end: int, *, hw: int | None = None) -> LogAnswer:
    return replace(log_of(replica, (0, end), hw=hw), source=LOG_DIRECTORY, unclean_shutdown=True)


def test_the_best_of_those_that_can_lead_comes_back_where_the_best_log_elects_a_worse_one() -> None:
    """Found by `make hindsight`: 3 is live and empty, and the last known leader; 1, the last of the ELR, holds most."""
    logs = (log_of(3), cut_disk(1, 11, hw=4), cut_disk(2, 5, hw=4))
    advice = decision(LAST_OF_THE_ELR, cluster_of(live=(3,), fenced=(1, 2)), logs).advice
    assert (advice.action, advice.replica, advice.keep_down) == (AdviceAction.BRING_BACK, 2, (1,))
    assert (
        "Start broker 2: its log (read from its disk) is the most complete of those that can lead; its return elects"
        " no leader, so then designate 2"
    ) in advice.text
    assert (
        "Keep broker 1 down until 2 leads, although its log is the most complete of all replicas: the moment it"
        " returns Kafka elects 3, which loses at least 11 offsets"
    ) in advice.text
    assert advice.alternative.startswith("If 2 cannot return: designate 3, which loses")
    assert "bring 1 back" not in advice.alternative
    assert advice.command == ("describe", "orders:0", "--watch")


def test_whose_return_elects_a_worse_one_stays_down_although_its_own_log_is_not_the_best() -> None:
    logs = (log_of(3), cut_disk(1, 5, hw=4), cut_disk(2, 11))
    advice = decision(LAST_OF_THE_ELR, cluster_of(live=(3,), fenced=(1, 2)), logs).advice
    assert (advice.action, advice.replica, advice.keep_down) == (AdviceAction.BRING_BACK, 2, (1,))
    assert "its log (read from its disk) is the most complete of all replicas" in advice.text
    assert "Keep broker 1 down until 2 leads: the moment it returns Kafka elects 3" in advice.text


def test_a_live_replica_is_designated_first_where_the_best_log_elects_a_worse_one() -> None:
    """Found by `make hindsight`: of the live, 3 is empty and the last known leader, and 2 holds what is committed."""
    logs = (log_of(3), cut_disk(1, 9, hw=4), log_of(2, (0, 4)))
    found = decision(LAST_OF_THE_ELR, ALIVE, logs)
    advice = found.advice
    assert (advice.action, advice.replica, advice.designate) == (AdviceAction.HOLD, 1, 2)
    assert advice.alternative == ""
    assert advice.text.endswith(
        "Keep broker 1 down until 2 leads, although its log is the most complete of all replicas: the moment it"
        " returns Kafka elects 3, which loses at least 9 offsets, 4 of them known to be committed; broker 3 has lost"
        " data, perhaps more than any log shows. Designate 2 first, which loses at least 5 offsets; broker 3 has lost"
        " data, perhaps more than any log shows." + and_unclean(1)
    )
    assert advice.command == advice.elect
    assert advice.rescue[:5] == ("rescue", "dump", "orders:0", "--elect", "2")


def test_two_whose_returns_together_elect_somebody_are_not_both_started_to_compare_logs() -> None:
    """Found by `make hindsight`: "Start broker 3: that elects no leader", and 1, the last of the ELR, too.
    With both back Kafka elects 3."""
    logs = (silent(3), cut_disk(1, 11), log_of(2, (0, 5), hw=4))
    advice = decision(LAST_OF_THE_ELR, cluster_of(live=(2,), fenced=(1, 3)), logs).advice
    assert (advice.action, advice.keep_down) == (AdviceAction.GET_MORE_INFORMATION, (3,))
    assert "Read the disk of broker 3 before you choose, and do not start it before that" in advice.text
    assert advice.text.endswith("Start 1: it has the most complete log of those that were read." + and_unclean(1))


@pytest.mark.parametrize(("others", "otherwise"), [((2,), "designate 2"), ((), "start broker 2")])
def test_a_live_last_known_leader_is_stopped_first_where_it_keeps_committed_records_from_leading(
    others: tuple[int, ...], otherwise: str
) -> None:
    """3 is empty, and leads by any election as long as it is live, the ELR being empty once 1 is back. It was to save
    what 1 holds, or to bring back the second best."""
    logs = (log_of(3), cut_disk(1, 11), log_of(2, (0, 5), hw=4) if others else cut_disk(2, 5, hw=4))
    live = (3, *others)
    advice = decision(LAST_OF_THE_ELR, cluster_of(live=live, fenced={1, 2, 3} - {*live}), logs).advice
    assert (advice.action, advice.replica, advice.stop, advice.keep_down) == (AdviceAction.BRING_BACK, 1, (3,), (3,))
    assert advice.text.startswith(
        "Stop broker 3 first: Kafka elects it as the last known leader the moment 1 is back, and its log lacks 11"
        " offsets that 1 holds. Look first what else that stops (whatif --stop 3), and save what is known now: once"
        " 3 is down kelr reads its log no more, and without that file (--logs) may advise to start it. Do not do"
        " that before 1 leads. Start broker 1: "
    )
    assert "while broker 3 is down, its return elects no leader, so then designate 1" in advice.text
    assert advice.text.endswith(
        "Keep broker 3 down until 1 leads: with it back, too, Kafka elects 3 at once." + and_unclean(1)
    )
    assert advice.alternative.startswith(f"If 3 cannot be stopped, or 1 cannot return: {otherwise}")
    summary = decision(LAST_OF_THE_ELR, cluster_of(live=live, fenced={1, 2, 3} - {*live}), logs).summary
    assert summary.endswith("; its ELR is [1], and no single return elects a member of it.")
    assert advice.command == ("snapshot", "before-stopping-3.kelr")  # no designation: 1 is down


def test_that_holds_for_a_return_that_may_be_unclean_too() -> None:
    """A mark whose broker epoch nothing confirms: the note says what would."""
    marked = replace(cut_disk(1, 9), unclean_shutdown=None, broker_epoch=77)
    found = decision(LAST_OF_THE_ELR, ALIVE, (log_of(3), marked, log_of(2, (0, 4))))
    advice = found.advice
    assert (advice.action, advice.replica, advice.stop, advice.keep_down) == (AdviceAction.BRING_BACK, 1, (3,), (3,))
    assert advice.text.startswith("Stop broker 3 first, unless 1 is known to have been shut down cleanly: ")
    assert advice.text.endswith(
        "after a clean shutdown Kafka elects it then, after an unclean one no leader, and you designate 1. Start 3"
        " again once 1 leads."
    )
    (note,) = [one for one in found.notes if "--bootstrap-controller HOST:PORT" in one]
    assert note.startswith("whether broker 1 was shut down cleanly is not known: its disk has the mark of it")
    known = tuple(replace(one, broker_epoch=77) for one in ALIVE.brokers)
    told = decision(LAST_OF_THE_ELR, replace(ALIVE, brokers=known), (log_of(3), marked, log_of(2, (0, 4))))
    assert not any("--bootstrap-controller" in one for one in told.notes)


@pytest.mark.parametrize("best", [1, 2])
def test_a_last_known_leader_that_is_about_to_be_elected_is_stopped_before_a_better_log(best: int) -> None:
    """It was "run kelr explain again in a few seconds"; no designation passes it over (`canElectLastKnownLeader`)."""
    logs = (log_of(3), cut_disk(1, 9 if best == 1 else 1), log_of(2, (0, 4)))
    found = decision(leaderless((3, 1, 2), last_known=(3,)), ALIVE, logs)
    assert (found.situation, found.elected) == (Situation.LEADER_PENDING, 3)
    designation = next(one for one in found.elections if one.designate == 2)
    assert designation.elected == 3
    advice = found.advice
    assert advice.stop == (3,)
    assert advice.text.startswith(
        "Stop broker 3 first: Kafka elects it as the last known leader at its next event for this partition, and its"
        f" log lacks {9 if best == 1 else 4} offsets that {best} holds."
    )
    assert advice.alternative.startswith("If 3 cannot be stopped, Kafka elects it, which loses at least")
    assert (advice.action, advice.designate) == (
        AdviceAction.BRING_BACK if best == 1 else AdviceAction.HOLD,
        best,
    )


def test_the_best_log_is_saved_first_where_another_is_elected_with_it_and_without_it() -> None:
    advice = decision(leaderless((3, 1), elr=(1,), last_known=(3,)), ALIVE, (log_of(3), cut_disk(1, 3, hw=0))).advice
    assert (advice.action, advice.replica, advice.designate) == (AdviceAction.HOLD, 1, 3)
    assert advice.text.endswith(
        "Keep broker 1 down until what it holds is saved: its log is the most complete of all replicas, and the"
        " moment it returns Kafka elects 3 even then. Designate 3, which loses 3 offsets." + and_unclean(1)
    )
    assert advice.rescue[:5] == ("rescue", "dump", "orders:0", "--elect", "3")


LACKING = LogUnavailable(1, LogUnavailableReason.LACKING, "its disk is not believed: it lacks 20 offsets")


@pytest.mark.parametrize(("elr", "last_known"), [((1,), (1,)), ((1,), ()), ((), (1,))])
@pytest.mark.parametrize("live", [(2, 3), ()])
def test_whose_disk_lacks_committed_records_stays_down_until_it_is_read_again(
    elr: tuple[int, ...], last_known: tuple[int, ...], live: tuple[int, ...]
) -> None:
    """Found by `make hindsight`: its place in the ELR was taken for more than what its disk shows. After an unclean
    shutdown the last known leader is elected alone."""
    logs = (log_of(3, (0, 116)), LACKING, log_of(2, (0, 135), hw=120))
    state = leaderless((3, 1, 2), elr=elr, last_known=last_known)
    advice = decision(state, cluster_of(live=live, fenced={1, 2, 3} - {*live}), logs).advice
    assert (advice.action, advice.keep_down) == (AdviceAction.GET_MORE_INFORMATION, (1,))
    elects = (
        "Kafka elects it the moment it returns"
        if last_known
        else "after a clean shutdown Kafka elects it the moment it returns"
    )
    assert advice.text == (
        f"Keep broker 1 down for now: {elects}, and what was read of its disk lacks records"
        " that another replica knows to be committed. Read the disk of broker 1 again first: what was read contradicts"
        " what the controller records, so that it is from before the broker last ran, or the log was cut or lacks a"
        " segment."
    )
    assert advice.command[:2] == ("recover", "collect")
    again = "If it has not run since it was read, its log was cut: "
    assert advice.alternative.startswith(f"{again}designate 2 (loss" if live else f"{again}start broker 2,")


@pytest.mark.parametrize("live", [(3,), ()])
def test_another_member_comes_back_before_one_whose_disk_lacks_committed_records(live: tuple[int, ...]) -> None:
    logs = (log_of(3, (0, 116)), LACKING, silent(2))
    state = leaderless((3, 1, 2), elr=(1, 2))
    advice = decision(state, cluster_of(live=live, fenced={1, 2, 3} - {*live}), logs).advice
    assert (advice.action, advice.replica, advice.keep_down) == (AdviceAction.BRING_BACK, 2, (1,))
    assert "Keep broker 1 down until " in advice.text


@pytest.mark.parametrize("elr", [(1,), (1, 2)])
def test_under_the_rules_of_the_kip_such_a_member_is_read_again_first_too(elr: tuple[int, ...]) -> None:
    """They said "bring broker 1 back first: in the ELR, so after a clean shutdown nothing committed is lost"."""
    logs = (log_of(3, (0, 116)), LACKING, silent(2))
    found = decision(leaderless((3, 1, 2), elr=elr), cluster_of(live=(3,), fenced=(1, 2)), logs, rules=KIP966_BALANCED)
    advice = found.advice
    assert advice.keep_down == (1,)
    assert "Read the disk of broker 1 again first" in advice.text
    if elr == (1,):
        assert advice.action is AdviceAction.GET_MORE_INFORMATION
        assert advice.text.startswith("Keep broker 1 down for now: after a clean shutdown Kafka elects it the moment")
        assert advice.command[:2] == ("recover", "collect")
        assert advice.alternative.startswith("If that cannot be done: longest_log_aggressive elects 3")
        assert (advice.designate, advice.elect) == (None, ())
    else:
        assert (advice.action, advice.replica, advice.start) == (AdviceAction.BRING_BACK, 2, (2,))
        assert "Keep broker 1 down until 2 leads: committed records are known that are missing there." in advice.text


def test_nobody_is_started_to_compare_logs_whom_kafka_elects_at_once() -> None:
    """The text had a broker started that `keep_down` kept down."""
    lacking = (log_of(3, (0, 116)), LACKING, silent(2))
    dead = cluster_of(live=(), fenced=(1, 2, 3))
    advice = decision(leaderless((3, 1, 2), elr=(1, 2)), dead, lacking).advice
    assert "If the machine of 2 crashed, start 3 first and compare." in advice.text
    anybody = decision(leaderless((3, 1, 2), elr=(2,)), dead, map(silent, (3, 1, 2)), unclean=True).advice
    assert "If the machine of 2 crashed, read its disk before it starts." in anybody.text


@pytest.mark.parametrize("rules", [ELR_4_3, KRAFT])
@pytest.mark.parametrize("read", [True, False])
def test_where_anybody_is_elected_a_member_of_isr_or_elr_starts_first(rules: RuleSet, *, read: bool) -> None:
    """With unclean elections allowed the first one back leads: it was the first of the assignment, or one that was shut
    down cleanly, whatever its place."""
    isr, elr = ((2,), ()) if rules is KRAFT else ((), (2,))
    clean = replace(log_of(3, (0, 116)), source=LOG_DIRECTORY, unclean_shutdown=False)
    logs = (clean if read else silent(3), silent(1), silent(2))
    dead = cluster_of(live=(), fenced=(1, 2, 3), elr=rules is ELR_4_3)
    found = decision(leaderless((3, 1, 2), isr=isr, elr=elr), dead, logs, rules=rules, unclean=True)
    assert {one.replica for one in found.forecasts if one.elected == one.replica} == {1, 2, 3}
    assert (found.advice.action, found.advice.replica) == (AdviceAction.BRING_BACK, 2)
    assert "Start broker 2 first" in found.advice.text


def test_a_live_replica_is_designated_once_no_member_of_the_elr_can_come_back() -> None:
    """Of 2 nobody knows how it stopped: 1, which is known to have stopped cleanly, comes first, and then 2."""
    clean = replace(log_of(1, (0, 135)), source=LOG_DIRECTORY, unclean_shutdown=False)
    logs = (log_of(3, (0, 116)), clean, silent(2))
    advice = decision(leaderless((3, 1, 2), elr=(1, 2)), cluster_of(live=(3,), fenced=(1, 2)), logs).advice
    assert (advice.replica, advice.start) == (1, (1,))
    assert advice.alternative.startswith("If 1 and 2 cannot return: designate 3, which loses at least 19 offsets")


def test_nobody_is_asked_to_bring_back_a_broker_that_is_up() -> None:
    logs = (log_of(3, (0, 116)), silent(1), LogUnavailable(2, LogUnavailableReason.TIMED_OUT, "no answer in time"))
    advice = advised(leaderless((3, 1, 2)), ALIVE, logs, ("delete",))
    assert advice.text.startswith("Start broker 1, or read its disk, before you choose: that elects no leader")
    assert "Broker 2 is up, but its log was not read: find out why, and run kelr explain again." in advice.text
    alone = advised(leaderless((3, 2)), ALIVE, logs[::2], ("delete",))
    assert (
        alone.text
        == "Broker 2 is up, but its log was not read: find out why, and run kelr explain again before you choose."
    )
    imagined = (logs[0], LogUnavailable(2, LogUnavailableReason.NOT_ASKED, "imagined: not read before it returned"))
    back = advised(leaderless((3, 2)), ALIVE, imagined, ("delete",))
    assert back.text == "Broker 2 is up, but its log was not read: run kelr explain again before you choose."


def test_where_another_isr_member_takes_over_by_itself_nobody_is_designated() -> None:
    found = led_by_the_dead(replace(DEAD_LEADER, isr=(1, 2)), rules=ELR_4_3)
    assert found.elected == 2
    assert (found.advice.action, found.advice.alternative, found.advice.elect) == (AdviceAction.WAIT, "", ())
    assert "KAFKA-19522" not in found.advice.text
    third = next(o for o in found.elections if o.designate == 3 and o.election is ElectionType.DESIGNATION)
    assert (third.elected, third.note) == (2, "Kafka would elect 2 instead")


def test_a_designation_names_the_recovery_that_it_stands_for() -> None:
    logs = [log_of(3, (0, 10)), log_of(1, (0, 30)), log_of(2, (0, 25))]
    advice = decision(leaderless((3, 1, 2)), cluster_of(live=(1, 2, 3)), logs).advice
    assert advice.action is AdviceAction.DESIGNATE
    assert advice.text.startswith(
        "Designate 1, as a balanced recovery would: of all replicas it has the most complete log, and it loses nothing"
    )
    assert advice.command == advice.elect
    assert advice.elect[-3:] == ("--designate", "1", "orders:0")


def without_broker_1(cluster: Cluster) -> Cluster:
    assert cluster.status(1) is BrokerStatus.FENCED
    return replace(cluster, brokers=tuple(broker for broker in cluster.brokers if broker.id != 1))


def test_a_broker_that_is_not_registered_is_left_out_of_the_order() -> None:
    """Kafka refuses an assignment that names it (INVALID_REPLICA_ASSIGNMENT, seen on 4.3.1)."""
    found = decision(WAITING, without_broker_1(ALIVE), LOGS)
    assert found.advice.designate == 2
    assert "Broker 1 is not registered, and Kafka takes no order that names such a broker" in found.advice.alternative
    best = next(o for o in found.elections if o.election is ElectionType.LONGEST_LOG_AGGRESSIVE)
    assert (best.designate, best.elected) == (2, 2)


def test_nothing_is_left_out_where_nothing_is_reordered() -> None:
    logs = [log_of(3, (0, 200)), silent(1), log_of(2, (0, 135))]
    found = decision(WAITING, without_broker_1(ALIVE), logs)
    assert found.advice.designate == 3
    assert "not registered, and Kafka" not in found.advice.alternative


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (None, "loses an UNKNOWN number of offsets"),
        (Loss(LossCertainty.UNKNOWN), "loses an UNKNOWN number of offsets"),
        (Loss(LossCertainty.BOUNDED, Bounds(0, 0), total=Bounds(0, 0)), "loses nothing of any log"),
        (
            Loss(LossCertainty.BOUNDED, Bounds(0), total=Bounds(0), unheard=(1,)),
            "loses an UNKNOWN number of offsets; the log of broker 1 was not read",
        ),
        (Loss(LossCertainty.BOUNDED, Bounds(0, 5), total=Bounds(5, 5)), "loses 5 offsets"),
        (
            Loss(LossCertainty.BOUNDED, Bounds(4), total=Bounds(5), unheard=(1, 3)),
            "loses at least 5 offsets, 4 of them known to be committed; the logs of brokers 1 and 3 were not read",
        ),
    ],
)
def test_the_cost_of_an_election_in_words(loss: Loss | None, words: str) -> None:
    assert cost_in_words(loss) == words


@pytest.mark.parametrize(
    ("logs", "warning"),
    [
        ({2: 9}, "Save what the disks of brokers 1 and 3 hold first: they truncate to 2's log on their return."),
        ({2: 9, 3: 5}, "Save what the disk of broker 1 holds first: it truncates to 2's log on its return."),
        ({1: 20, 2: 9, 3: 5}, "Save what the disk of broker 1 holds first: it truncates to 2's log on its return."),
        ({1: 9, 2: 9, 3: 5}, ""),
    ],
)
def test_whoever_is_away_and_may_truncate_on_return_is_warned_of(logs: dict[int, int], warning: str) -> None:
    """A log that was heard, and of which nothing would go, needs no saving."""
    answers = [log_of(replica, (0, logs[replica])) if replica in logs else silent(replica) for replica in (1, 2, 3)]
    found = decision(leaderless(elr=(1,), last_known=(1,)), cluster_of(live=(2,), fenced=(1, 3)), answers)
    assert found.advice.replica == 1
    text = found.advice.alternative
    assert "designate 2" in text
    assert text.endswith(warning) if warning else "truncate" not in text


# A log directory that has failed.


def storage_error(replica: int) -> LogUnavailable:
    return LogUnavailable(replica, LogUnavailableReason.STORAGE_ERROR, "KAFKA_STORAGE_ERROR")


@pytest.mark.parametrize("rules", [ELR_4_3, KIP966_BALANCED])
def test_a_member_without_its_log_directory_is_not_the_one_to_bring_back(rules: RuleSet) -> None:
    found = decision(
        leaderless(elr=(1, 2), last_known=(1,)),
        cluster_of(live=(3,), fenced=(1, 2)),
        [storage_error(1), silent(2), log_of(3, (4, 60))],
        rules=rules,
    )
    assert (found.advice.action, found.advice.replica) == (AdviceAction.BRING_BACK, 2)
    assert found.advice.text.startswith(
        "Start broker 2. After a clean shutdown, Kafka elects it and loses no committed record"
    )
    assert "Not broker 1 without its data: its log directory has failed." in found.advice.text
    forecast = next(one for one in found.forecasts if one.replica == 1 and one.clean)
    assert forecast.loss is not None
    assert (forecast.elected, forecast.loss.grade) == (1, LossCertainty.UNKNOWN)
    assert forecast.warning == (
        "although its log directory has failed: its log is empty if the disk was replaced; 3 holds up to offset 60 (HW"
        " 60) and would truncate to it"
    )


@pytest.mark.parametrize("rules", [ELR_4_3, KIP966_BALANCED])
def test_the_only_member_is_held_back_once_its_log_directory_has_failed(rules: RuleSet) -> None:
    found = decision(
        leaderless(elr=(1,), last_known=(1,)),
        cluster_of(live=(2, 3), fenced=(1,)),
        [storage_error(1), log_of(2, (4, 100)), log_of(3, (4, 60))],
        rules=rules,
    )
    assert (found.advice.action, found.advice.replica) == (AdviceAction.HOLD, 1)
    assert found.advice.text.startswith("Broker 1 must not return without its data: its log directory has failed")
    assert " elects 2, which" in found.advice.alternative or "designate 2 (loss" in found.advice.alternative


@pytest.mark.parametrize("rules", [ELR_4_3, KIP966_BALANCED])
def test_a_broker_that_is_up_without_its_log_directory_is_not_to_be_started_nor_stopped(rules: RuleSet) -> None:
    """It may lead other partitions, and with it down nobody else can lead this one."""
    state = replace(leaderless(replicas=(1,), elr=(1,), last_known=(1,)), offline_replicas=(1,))
    found = decision(state, cluster_of(live=(1, 2, 3), fenced=()), [storage_error(1)], rules=rules, min_isr=1)
    assert found.advice.text == (
        "Broker 1 is up, but its log directory has failed. Mend that disk, or copy its data to another one, and restart"
        " the broker with that. Without the data Kafka may elect it, with an empty log."
    )
    assert [damage.text for damage in found.damage] == [
        "Only the failed disk of broker 1 has these records. No election helps, and without the disk all of them are"
        " lost."
    ]
    assert list(unwelcome(found)) == []
    assert what_to_do(Explained(found, 0)) == "mend disk of 1"
    # Kafka waits for nobody's return, and broker 2 is down.
    nobody = replace(leaderless(replicas=(1, 2)), offline_replicas=(1, 2))
    mixed = decision(nobody, cluster_of(live=(1, 3), fenced=(2,)), [storage_error(1), silent(2)], rules=ELR_4_3)
    assert mixed.advice.text.startswith("Start any of broker 2, best all of them: Kafka elects none of them by itself")
    assert mixed.advice.text.endswith(
        " Broker 1 is up, but its log directory has failed. Mend that disk, or copy its"
        " data to another one, and restart the broker with that."
    )
    down = decision(state, cluster_of(live=(2, 3), fenced=(1,)), [storage_error(1)], rules=rules, min_isr=1)
    assert list(unwelcome(down)) == [1]
    assert what_to_do(Explained(down, 0)) == "keep 1 down"


@pytest.mark.parametrize(("elr", "advised"), [((1, 2), (AdviceAction.BRING_BACK, 2)), ((1,), (AdviceAction.HOLD, 1))])
def test_with_nobody_live_a_broker_without_its_log_directory_does_not_start_first(
    elr: tuple[int, ...], advised: tuple[AdviceAction, int]
) -> None:
    logs = [storage_error(1), silent(2), silent(3)]
    found = decision(leaderless(elr=elr), cluster_of(live=(), fenced=(1, 2, 3)), logs)
    assert found.situation is Situation.NO_LIVE_REPLICA
    assert (found.advice.action, found.advice.replica) == advised


def test_a_newer_epoch_that_began_below_committed_records_is_not_advised() -> None:
    """A last known leader whose log was cut led again: 1 lacks ten committed offsets, 2 lacks five."""
    logs = [log_of(1, (0, 10), (4, 15)), log_of(2, (0, 25), hw=20), log_of(3, (0, 5))]
    found = decision(leaderless((1, 2, 3)), cluster_of(live=(1, 2, 3)), logs)
    newest = next(o for o in found.elections if o.election is ElectionType.LONGEST_LOG_AGGRESSIVE)
    assert newest.elected == 1
    assert newest.loss is not None
    assert newest.loss.committed is not None
    assert newest.loss.committed.at_least == 10
    assert (found.advice.action, found.advice.designate) == (AdviceAction.DESIGNATE, 2)
    assert found.advice.text == (
        "Designate 2: it loses 5 offsets, all of them known to be committed. 1 has the newest leader epoch, which"
        " began below committed records: electing it loses 15 offsets, 10 of them known to be committed."
    )
    as_good = decision(
        leaderless((1, 2, 3)), cluster_of(live=(1, 2, 3)), [logs[0], replace(logs[1], high_watermark=15), logs[2]]
    )
    assert as_good.advice.designate == 1


def test_the_alternative_says_so_too_where_a_log_is_missing() -> None:
    logs = [log_of(1, (0, 10), (4, 15)), log_of(2, (0, 25), hw=20), silent(3)]
    found = decision(leaderless((1, 2, 3)), cluster_of(live=(1, 2), fenced=(3,)), logs)
    assert found.advice.designate == 2
    assert "designate 2, which loses at least 5 offsets, all of them known to be committed" in found.advice.alternative
    assert "1 has the newest leader epoch" in found.advice.alternative


# A broker that Kafka would elect on its return: held, or let return, by what its log lacks.

OF_TWO_AGES = leaderless((3, 1, 2), last_known=(1,))


def read_from_disk(replica: int, *ends: tuple[int, int], hw: int) -> LogAnswer:
    return replace(log_of(replica, *ends, hw=hw), source=LOG_DIRECTORY)


def test_a_newest_log_that_lacks_committed_records_of_a_live_one_is_kept_down() -> None:
    """1 led an epoch that began at 100, below records that 2 knows to be committed."""
    logs = (log_of(3, (1, 90)), read_from_disk(1, (1, 100), (3, 140), hw=100), log_of(2, (1, 120), hw=120))
    advice = advised(OF_TWO_AGES, ALIVE, logs, ("delete",))
    assert (advice.action, advice.replica, advice.designate) == (AdviceAction.HOLD, 1, 2)
    assert "its log lacks 20 offsets that 2 holds" in advice.text


def test_beside_a_live_replica_that_was_not_read_nobody_is_designated_and_the_worse_one_stays_down() -> None:
    """Found by `make hindsight`: 3 held what neither 1 nor 2 did."""
    logs = (silent(3), read_from_disk(1, (1, 100), (3, 140), hw=100), log_of(2, (1, 120), hw=120))
    advice = advised(OF_TWO_AGES, ALIVE, logs, ("delete",))
    assert (advice.action, advice.keep_down) == (AdviceAction.GET_MORE_INFORMATION, (1,))
    assert advice.command == ("log-info", "orders:0")
    assert "Broker 3 is up, but its log was not read: find out why, and run kelr explain again" in advice.text
    assert advice.alternative.startswith(
        "If that cannot be done: designate 2, which loses at least 40 offsets; the log of broker 3 was not read."
    )


NO_EPOCHS = replace(log_of(3, (1, 160)), last_epoch=None, lineage=None)


@pytest.mark.parametrize("unread", [silent(3), NO_EPOCHS])
@pytest.mark.parametrize("unclean", [True, False])
def test_a_last_known_leader_that_crashed_waits_for_the_logs_of_live_replicas(
    unread: LogAnswer, *, unclean: bool
) -> None:
    """Its log may have been cut, and Kafka elects it at once: the others truncate to it."""
    leader = replace(log_of(1, (1, 120), hw=120), source=LOG_DIRECTORY, unclean_shutdown=unclean)
    advice = advised(OF_TWO_AGES, ALIVE, (unread, leader, log_of(2, (1, 120), hw=120)), ("delete",))
    assert advice.action is (AdviceAction.GET_MORE_INFORMATION if unclean else AdviceAction.BRING_BACK)
    if unclean:
        assert advice.keep_down == (1,)
        assert advice.alternative == "If that cannot be done: start broker 1."


@pytest.mark.parametrize("hw", [120, 130])
def test_an_older_log_that_lacks_no_more_than_whom_would_be_designated_comes_back(hw: int) -> None:
    """3 has the newest epoch and lacks committed records; 1 holds all that 2 does, and 10 offsets more."""
    logs = (log_of(3, (1, 100), (3, 110), hw=100), read_from_disk(1, (1, 130), hw=hw), log_of(2, (1, 120), hw=120))
    advice = advised(OF_TWO_AGES, ALIVE, logs, ("delete",))
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert "it lacks 10 offsets that 3 holds, and none of them is known to be committed" in advice.text
    assert "If 1 cannot return: designate 2" in advice.alternative


def test_a_member_of_the_elr_that_is_known_to_lack_committed_records_is_promised_nothing() -> None:
    """The evidence contradicts the ELR, and designating 2 would lose more of what is known to be committed."""
    logs = (
        log_of(3, (1, 100), hw=100),
        read_from_disk(1, (1, 115), hw=115),
        log_of(2, (1, 105), (2, 107), hw=107),
    )
    advice = advised(leaderless((3, 1, 2), elr=(1,)), ALIVE, logs, ("delete",))
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert "committed records are known that 1 lacks, although it is in the ELR" in advice.text
    assert "nothing committed is lost" not in advice.text


@pytest.mark.parametrize("silence", [LogUnavailableReason.STORAGE_ERROR, LogUnavailableReason.UNREACHABLE])
@pytest.mark.parametrize(("elr", "last_known"), [((1,), (1,)), ((), (1,))])
def test_of_a_single_replica_no_others_truncate(
    silence: LogUnavailableReason, elr: tuple[int, ...], last_known: tuple[int, ...]
) -> None:
    state = leaderless((1,), elr=elr, last_known=last_known)
    for rules in (ELR_4_3, KRAFT, KIP966_AGGRESSIVE):
        alone = decision(state, cluster_of(live=(), fenced=(1,)), [LogUnavailable(1, silence)], rules=rules, min_isr=1)
        assert "others" not in alone.advice.text + alone.advice.alternative
    several = replace(state, replicas=(1, 2))
    both = decision(
        several, cluster_of(live=(2,), fenced=(1,)), [LogUnavailable(1, silence), log_of(2, (0, 20))], min_isr=1
    )

    assert "the others truncate to it" in both.advice.text


def test_a_periodic_election_is_forbidden_first_where_a_broker_that_is_down_has_the_better_log() -> None:
    """It elects whoever is live within minutes; that its log is the most complete of those that were read is not so."""
    better = replace(log_of(1, (0, 20)), source=LOG_DIRECTORY)
    for live in ((2,), (2, 3)):
        due = decision(
            leaderless((1, 2, 3)),
            cluster_of(live=live, fenced=tuple({1, 2, 3} - {*live})),
            [better, log_of(2, (0, 9)), log_of(3, (0, 12)) if 3 in live else silent(3)],
            unclean=True,
        )
        assert due.situation is Situation.LEADER_PENDING
        assert due.advice.text.startswith("Write unclean.leader.election.enable=false to the topic at once")
        assert due.advice.stock.endswith("unclean.leader.election.enable=false")
        assert (due.advice.action, due.advice.until) == (AdviceAction.GET_MORE_INFORMATION, "")
        assert "the log of broker 1, which is down, is better" in due.advice.text


def test_an_election_that_loses_fewer_offsets_but_an_older_epoch_is_told_with_the_reason() -> None:
    """A table said 45 of one and 60 of the other, and the advice named the latter without a word."""
    state = leaderless((4, 1, 3), elr=(3,), last_known=(3,))
    read = replace(log_of(3, (0, 30), (2, 100), hw=30), source=LOG_DIRECTORY, unclean_shutdown=True)
    logs = (log_of(4, (0, 90), hw=20), log_of(1, (0, 30), (1, 40), hw=20), read)
    advice = decision(state, cluster_of(live=(4, 1), fenced=(3,)), logs).advice
    assert advice.designate == 1
    assert "Designating 4 loses fewer offsets in all, but its log ends in an older epoch" in advice.alternative
