"""What each thing that is seen after an election means: well, not yet, not well, or not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kelr.engine.planning.verification import Seen
from kelr.model import Check, LogEvidence, LogUnavailable, LogUnavailableReason, Loss, LossCertainty, Passed, Truncation
from kelr.model.afterwards import CommittedOffset, CommittedOffsets, Coordinated, OpenTransaction, Unread
from tests.recovery.aftermath import AT, LINEAGE, NOW_MS, PLANNED, WELL, judged, log, result, seen

YES, NOT_YET, NO, UNKNOWN = Passed.YES, Passed.NOT_YET, Passed.NO, Passed.UNKNOWN
STRAYED = ((2, 110), (4, 130))
"""A log that went another way from 110 on."""


def test_what_is_well_passes_every_check_once() -> None:
    found = judged(WELL)
    assert list(found) == list(Check)
    assert {one.passed for ones in found.values() for one in ones} == {YES}
    assert all(len(ones) == 1 for ones in found.values())


@pytest.mark.parametrize(
    ("found", "passed", "words"),
    [
        (seen(state={"leader": None, "leader_epoch": 4}), NOT_YET, "not applied yet"),
        (seen(state={"leader": None, "leader_epoch": 6}), NO, "no leader (leader epoch 6, 4 in the plan)"),
        (seen(live=frozenset({3})), NOT_YET, "2 is the leader on record (leader epoch 5), and its broker is not live"),
        (WELL, YES, "2 leads, in leader epoch 5"),
        # The preferred leader took over afterwards, with everything that the plan was to keep.
        (seen(state={"leader": 3}), YES, "3 leads (leader epoch 5), planned 2: its log holds all of 2's"),
        (seen(state={"leader": 3}, logs=(log(3, (2, 116), (5, 140)), log(2, *LINEAGE))), NO, "has them up to 116"),
        (seen(state={"leader": 3, "isr": (3,)}), NOT_YET, "nothing that 2 held is missing, but 2 is not in the ISR"),
        (seen(state={"leader": 3, "isr": (3,)}, live=frozenset({3})), NOT_YET, "in the ISR: its broker is not live"),
        (seen(state={"leader": 3}, logs=(LogUnavailable(3, LogUnavailableReason.TIMED_OUT),)),
         NOT_YET, "cannot be told"),
        (seen(state={"leader": 3}, logs=(LogUnavailable(3, LogUnavailableReason.NOT_AUTHORIZED),)),
         UNKNOWN, "cannot be told"),
        (seen(state={"leader": 3}, logs=(log(3, *LINEAGE, lineage=None),)), UNKNOWN, "cannot be told"),
        # By retention, or since it was emptied as a follower that began beyond its leader's end.
        (seen(state={"leader": 3}, logs=(log(3, (5, 140), log_start=135),)), UNKNOWN, "cannot be told from its log"),
        (seen(state={"topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}), NO, "deleted and made again"),
        (Seen(None, error="UNKNOWN_TOPIC_OR_PARTITION"), UNKNOWN, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)  # fmt: skip
def test_the_leader(found: Seen, passed: Passed, words: str) -> None:
    came_out, text = result(found, Check.LEADER)
    assert (came_out, words in text) == (passed, True), text


def test_a_partition_that_nobody_leads_has_an_order_and_nothing_else_to_look_at() -> None:
    assert list(judged(seen(state={"leader": None}))) == [Check.LEADER, Check.ORDER]
    assert list(judged(seen(live=frozenset()))) == [Check.LEADER, Check.ORDER]
    assert list(judged(Seen(None, error="X"))) == [Check.LEADER]


@pytest.mark.parametrize(
    ("state", "changed", "passed", "words"),
    [
        ({"isr": (3, 2)}, {}, YES, "every live replica; broker 1 not live"),
        ({"isr": (3, 1, 2)}, {"live": frozenset({1, 2, 3})}, YES, "[1, 2, 3] of [1, 2, 3]: every live replica"),
        ({"isr": (2,)}, {}, NOT_YET, "under min ISR 2: acks=all is refused"),
        ({"isr": (2,)}, {"live": frozenset({2})}, NOT_YET, "under min ISR 2: acks=all is refused; brokers 3 and 1 not"),
        ({"isr": (2,)}, {"min_isr": 1}, NOT_YET, "broker 3 catching up"),
        ({"isr": (3, 2)}, {"min_isr": None}, UNKNOWN, "min.insync.replicas is not"),
        ({"isr": (2,)}, {"min_isr": None}, NOT_YET, "min.insync.replicas is not"),
        ({"isr": (3, 1, 2)}, {"min_isr": None, "live": frozenset({1, 2, 3})}, YES, "every live replica"),
    ],
)
def test_the_isr(state: dict[str, Any], changed: dict[str, Any], passed: Passed, words: str) -> None:
    came_out, text = result(seen(state=state, **changed), Check.ISR)
    assert (came_out, words in text) == (passed, True), text


@pytest.mark.parametrize(
    ("state", "passed", "words"),
    [
        ({}, YES, "the order from before, [3, 1, 2]"),
        ({"replicas": (2, 3, 1)}, NO, "--keep-order"),
        ({"replicas": (1, 2, 3)}, NO, "somebody else changed them"),
        ({"replicas": (3, 1, 2, 4), "adding": (4,)}, UNKNOWN, "reassignment is under way (adding [4], removing [])"),
    ],
)
def test_the_order(state: dict[str, Any], passed: Passed, words: str) -> None:
    came_out, text = result(seen(state=state), Check.ORDER)
    assert (came_out, words in text) == (passed, True), text


def test_an_order_without_replicas_that_had_to_leave_is_as_planned() -> None:
    left = replace(PLANNED, order=(2, 3))
    came_out, text = result(seen(state={"replicas": (3, 2)}), Check.ORDER, planned=left)
    assert (came_out, "without broker 1 as planned" in text) == (YES, True)
    assert result(seen(state={"replicas": (3, 1, 2)}), Check.ORDER, planned=left)[0] is NO


@pytest.mark.parametrize(
    ("truncations", "logs", "passed", "words"),
    [
        ((), WELL.logs, YES, "no replica had anything to give up"),
        ((Truncation(3, 110, 6),), WELL.logs, YES, "3 gave up its log from 110 on"),
        ((Truncation(3, 110, 6),), (log(3, *STRAYED), log(2, *LINEAGE)), NOT_YET, "diverges from the leader's at 110"),
        ((Truncation(1, 110, 6),), WELL.logs, YES, "to give up; 1 is not live: it truncates 6 offsets"),
        (
            (Truncation(3, 110, 6),),
            (LogUnavailable(3, LogUnavailableReason.STALE, "old"), log(2, *LINEAGE)),
            NOT_YET,
            "not read: old",
        ),
        (
            (Truncation(3, 110, 6),),
            (LogUnavailable(3, LogUnavailableReason.NOT_AUTHORIZED, "READ"), log(2, *LINEAGE)),
            UNKNOWN,
            "not read: READ",
        ),
        ((Truncation(2, 120, 4),), WELL.logs, YES, "no replica had anything to give up"),
    ],
)
def test_what_followers_were_to_give_up(truncations: Any, logs: Any, passed: Passed, words: str) -> None:
    planned = replace(PLANNED, loss=replace(PLANNED.loss, truncations=truncations))
    came_out, text = result(seen(logs=logs), Check.TRUNCATED, planned=planned)
    assert (came_out, words in text) == (passed, True), text


@pytest.mark.parametrize(
    ("logs", "passed", "words"),
    [
        (WELL.logs, YES, "its log was not compared with that of 2 before the election"),
        ((log(3, *STRAYED), log(2, *LINEAGE)), NOT_YET, "3 still holds what the leader lacks"),
    ],
)
def test_where_the_elected_log_was_not_read_anybody_may_give_something_up(
    logs: Any, passed: Passed, words: str
) -> None:
    planned = replace(PLANNED, loss=Loss(LossCertainty.UNKNOWN, unheard=(2,)))
    came_out, text = result(seen(logs=logs), Check.TRUNCATED, planned=planned)
    assert (came_out, words in text) == (passed, True), text
    assert "the log of broker 1 was not compared with that of 2: what only its disk holds is lost" in text


@pytest.mark.parametrize(
    ("changed", "passed", "words"),
    [
        ({}, YES, "ends at 140, and 3 agrees with it"),
        ({"logs": (log(3, *STRAYED), log(2, *LINEAGE))}, NO, "and its log diverges from the leader's at 110"),
        ({"logs": (log(3, (2, 110), (3, 135)), log(2, *LINEAGE))}, NOT_YET, "135, below the high watermark 138"),
        ({"logs": (log(3, (2, 110), (3, 135), (5, 138)), log(2, *LINEAGE))}, YES, "3 agrees"),
        # It was truncated to before what it had on its disk, and the rest is in remote storage (seen on 4.4.0).
        (
            {"logs": (log(3, (5, 140), log_start=135, local_start=135), log(2, *LINEAGE, local_start=135))},
            NO,
            "the log of 3 begins at 135, and that of 2, which leads, at 0: if 3 leads, Kafka deletes",
        ),
        ({"logs": (log(3, (5, 140), log_start=135), log(2, *LINEAGE))}, YES, "3 agrees"),
        (
            {"logs": (LogUnavailable(3, LogUnavailableReason.UNREACHABLE, "refused"), log(2, *LINEAGE))},
            NOT_YET,
            "3's log was not read",
        ),
        (
            {"logs": (log(3, *LINEAGE), LogUnavailable(2, LogUnavailableReason.NOT_AUTHORIZED, "READ"))},
            UNKNOWN,
            "2's log was not read",
        ),
        ({"logs": (log(3, *LINEAGE, last_epoch=None, last_epoch_error="READ"), log(2, *LINEAGE))}, UNKNOWN, "READ"),
        # The leader lost records of the epoch that the plan stood on.
        ({"logs": (log(3, (2, 110), (3, 130), (5, 140)), log(2, (2, 110), (3, 130), (5, 140)))}, NO, "more was lost"),
        ({"logs": (log(3, (2, 110), (5, 140)), log(2, (2, 110), (5, 140)))}, NO, "what is below 110 is in the log now"),
        ({"logs": (log(3, *LINEAGE), log(2, *LINEAGE, lineage=None))}, UNKNOWN, "holds all of that is not known"),
    ],
)  # fmt: skip
def test_the_logs(changed: dict[str, Any], passed: Passed, words: str) -> None:
    came_out, text = result(seen(**changed), Check.LOGS)
    assert (came_out, words in text) == (passed, True), text


def test_what_retention_took_since_the_election_was_not_lost_by_it() -> None:
    logs = tuple(log(replica, (5, 140), log_start=137) for replica in (3, 2))
    assert result(seen(logs=logs), Check.LOGS)[0] is YES
    logs = tuple(log(replica, (3, 135), (5, 140), log_start=120) for replica in (3, 2))
    assert result(seen(logs=logs), Check.LOGS)[0] is YES


@pytest.mark.parametrize("evidence", [(), (LogEvidence(2, None, None, None, None),)])
def test_of_an_elected_log_that_nobody_had_read_it_is_not_known_whether_all_is_there(evidence: Any) -> None:
    planned = replace(PLANNED, evidence=replace(PLANNED.evidence, logs=evidence))
    came_out, text = result(seen(), Check.LOGS, planned=planned)
    assert (came_out, "2's log was not read before the election" in text) == (UNKNOWN, True), text


def test_a_replica_that_was_elected_empty_has_nothing_to_be_held_against() -> None:
    for evidence in (LogEvidence(2, 0, None, 0, 0), LogEvidence(2, 50, None, 50, 50)):
        planned = replace(PLANNED, evidence=replace(PLANNED.evidence, logs=(evidence,)))
        logs = tuple(log(replica, (5, evidence.log_end + 3)) for replica in (3, 2))  # type: ignore[operator]
        assert result(seen(logs=logs, earlier_high_watermark=0), Check.LOGS, planned=planned)[0] is YES


# Transactions.


def transaction(coordinated: Coordinated, **changed: Any) -> OpenTransaction:
    return replace(OpenTransaction(7, 1, 130, NOW_MS - 1000, coordinated, "tx", "Ongoing"), **changed)


HELD_BACK = (log(3, *LINEAGE), log(2, *LINEAGE, last_stable_offset=130))


@pytest.mark.parametrize(
    ("transactions", "passed", "words"),
    [
        ((), NOT_YET, "the transaction that held it back has just ended"),
        ((transaction(Coordinated.UNDER_WAY),), YES, "its coordinator has it under way"),
        (
            (transaction(Coordinated.UNDER_WAY, started_at_ms=NOW_MS - 20_000, timeout_ms=60_000),),
            YES,
            "aborts it in 40 s",
        ),
        (
            (transaction(Coordinated.UNDER_WAY, started_at_ms=NOW_MS - 80_000, timeout_ms=60_000),),
            NOT_YET,
            "should have aborted it 20 s ago",
        ),
        ((transaction(Coordinated.ENDING, state="PrepareCommit"),), NOT_YET, "(PrepareCommit) is sending the marker"),
        ((transaction(Coordinated.FORGOTTEN, state="CompleteCommit"),), NO, "has it as CompleteCommit, without this"),
        ((transaction(Coordinated.FORGOTTEN, state=None, transactional_id=None),), NO, "knows no such producer"),
        (
            (transaction(Coordinated.UNKNOWN, unread=Unread("X", "DESCRIBE on transactional id tx")),),
            UNKNOWN,
            "is not known: X (needs DESCRIBE on transactional id tx)",
        ),
        ((transaction(Coordinated.UNKNOWN, unread=Unread("X", passing=True)),), NOT_YET, "is not known: X"),
        (Unread("TOPIC_AUTHORIZATION_FAILED", "READ on topic orders"), UNKNOWN, "(needs READ on topic orders)"),
        (Unread("NOT_LEADER_OR_FOLLOWER", passing=True), NOT_YET, "NOT_LEADER_OR_FOLLOWER"),
        # The worst of several counts.
        (
            (transaction(Coordinated.UNDER_WAY), transaction(Coordinated.FORGOTTEN, start_offset=133)),
            NO,
            "open from offset 133 on, and hangs",
        ),
    ],
)
def test_what_holds_the_last_stable_offset_back(transactions: Any, passed: Passed, words: str) -> None:
    came_out, text = result(seen(logs=HELD_BACK, transactions=transactions), Check.LAST_STABLE_OFFSET)
    assert (came_out, words in text) == (passed, True), text
    assert "the last stable offset is 130, the high watermark 140" in text


def test_a_transaction_that_hangs_comes_with_the_command_that_ends_it_and_its_price() -> None:
    hanging = (transaction(Coordinated.FORGOTTEN), transaction(Coordinated.FORGOTTEN, start_offset=133))
    (one,) = judged(seen(logs=HELD_BACK, transactions=hanging))[Check.LAST_STABLE_OFFSET]
    abort = "kafka-transactions.sh {stock} abort --topic orders --partition 1 --start-offset"
    assert one.command == f"{abort} 130 && {abort} 133"
    assert "where the lost marker was a commit, these were committed" in one.text


def test_a_log_without_open_transactions_needs_no_word_of_the_coordinators() -> None:
    unread = Unread("TOPIC_AUTHORIZATION_FAILED", "READ on topic orders")
    assert result(seen(transactions=unread), Check.LAST_STABLE_OFFSET)[0] is YES
    not_replicated = (log(3, *LINEAGE), log(2, *LINEAGE, high_watermark=135, last_stable_offset=135))
    assert result(seen(logs=not_replicated, transactions=unread), Check.LAST_STABLE_OFFSET)[0] is UNKNOWN
    silent = (log(3, *LINEAGE), log(2, *LINEAGE, last_stable_offset=None))
    assert result(seen(logs=silent), Check.LAST_STABLE_OFFSET)[0] is UNKNOWN


# Consumer groups.


def committed(*offsets: CommittedOffset, **changed: Any) -> CommittedOffsets:
    return replace(CommittedOffsets({AT: offsets}, groups=3), **changed)


@pytest.mark.parametrize(
    ("offset", "passed", "words"),
    [
        (CommittedOffset("g", 140, 5), YES, "1 of 3 groups have committed here, none beyond the log's end 140"),
        (CommittedOffset("g", 141), NO, "has committed 141, beyond the log's end 140"),
        # It read records of epoch 3 up to 138; the log holds that epoch up to 135 only.
        (CommittedOffset("g", 138, 3), NO, "what was written since from 135 to 138 it never read"),
        (CommittedOffset("g", 138, 4), NO, "from 135 to 138"),
        (CommittedOffset("g", 135, 3), YES, "none beyond"),
        (CommittedOffset("g", 138, 5), YES, "none beyond"),
        (CommittedOffset("g", 138, None), YES, "none beyond"),
        # Nothing tells where what it read in an epoch of which the log holds no record parts from older records.
        (CommittedOffset("g", 138, 9), UNKNOWN, "whether it has read what the log holds from 120 to 138 is not known"),
        (CommittedOffset("g", 120, 9), YES, "none beyond"),
        # Epoch 2 ends at 110, below the high watermark that the elected log had: what was committed there is all there.
        (CommittedOffset("g", 138, 2), YES, "none beyond"),
        (CommittedOffset("g", 115, 2), YES, "none beyond"),
    ],
)
def test_what_a_group_has_committed(offset: CommittedOffset, passed: Passed, words: str) -> None:
    came_out, text = result(seen(committed=committed(offset)), Check.GROUPS)
    assert (came_out, words in text) == (passed, True), text


@pytest.mark.parametrize(
    "one", [CommittedOffset("g", 138, 4), CommittedOffset("g", 150, 9), CommittedOffset("g", 138, 9)]
)
def test_a_group_of_whose_epoch_the_log_holds_nothing_goes_back_to_what_is_sure(one: CommittedOffset) -> None:
    """Seed 34401 of the hindsight: it had read another leader's records from the log's start on, and the log held older
    ones there."""
    (found,) = judged(seen(committed=committed(one)))[Check.GROUPS]
    assert found.command.endswith("--to-offset 120 --execute")
    assert "whether it has read what the log holds from 120" in found.text


def test_where_no_high_watermark_was_known_every_committed_epoch_counts() -> None:
    (first, second, third) = PLANNED.evidence.logs
    logs = (first, second, replace(third, high_watermark=None))
    planned = replace(PLANNED, evidence=replace(PLANNED.evidence, logs=logs))
    found = seen(committed=committed(CommittedOffset("g", 115, 2)))
    assert "from 110 to 115 it never read" in result(found, Check.GROUPS, planned=planned)[1]
    assert result(found, Check.GROUPS)[0] is YES


def test_without_the_logs_epochs_it_is_not_known_what_a_group_has_read() -> None:
    logs = (log(3, *LINEAGE), log(2, *LINEAGE, lineage=None))
    for offset, passed in ((121, UNKNOWN), (120, YES), (141, NO)):
        found = seen(logs=logs, committed=committed(CommittedOffset("g", offset, 3)))
        assert result(found, Check.GROUPS)[0] is passed


def test_each_group_that_goes_wrong_is_a_finding_with_the_offset_to_go_back_to() -> None:
    wrong = committed(CommittedOffset("it's", 150, 3), CommittedOffset("b", 150), CommittedOffset("c", 1))
    found = judged(seen(committed=wrong))[Check.GROUPS]
    assert [one.passed for one in found] == [NO, NO]
    reset = "--topic orders:1 --reset-offsets --to-offset"
    assert found[0].command == f"kafka-consumer-groups.sh {{stock}} --group 'it'\"'\"'s' {reset} 135 --execute"
    # Without an epoch it may have read none of what is there from the elected log's high watermark on.
    assert found[1].command == f"kafka-consumer-groups.sh {{stock}} --group b {reset} 120 --execute"
    assert "whether it has read what the log holds from 120 on is not known" in found[1].text


@pytest.mark.parametrize(
    ("answer", "passed", "words"),
    [
        (Unread("_TIMED_OUT", passing=True), NOT_YET, "consumer groups could not be read: _TIMED_OUT"),
        (committed(unread={"g": Unread("X", "DESCRIBE on the group")}), UNKNOWN, "X (needs DESCRIBE on the group)"),
        (committed(not_listed=Unread("hidden", "DESCRIBE on the cluster")), UNKNOWN, "groups that were not seen"),
        (CommittedOffsets(groups=0), YES, "no consumer group has committed here"),
    ],
)  # fmt: skip
def test_groups_that_could_not_be_read_are_never_passed(answer: Any, passed: Passed, words: str) -> None:
    came_out, text = result(seen(committed=answer), Check.GROUPS)
    assert (came_out, words in text) == (passed, True), text


def test_a_group_that_goes_wrong_is_told_beside_those_that_could_not_be_read() -> None:
    both = committed(CommittedOffset("g", 150), unread={"h": Unread("GROUP_AUTHORIZATION_FAILED")})
    assert [one.passed for one in judged(seen(committed=both))[Check.GROUPS]] == [NO, UNKNOWN]


def test_a_loss_without_truncations_and_a_leader_that_is_not_heard() -> None:
    planned = replace(PLANNED, loss=Loss(PLANNED.loss.grade))
    silent = seen(logs=(log(3, *LINEAGE), LogUnavailable(2, LogUnavailableReason.TIMED_OUT, "no answer in time")))
    found = {check: one.passed for check, (one,) in judged(silent, planned=planned).items()}
    assert found == {
        Check.LEADER: YES,
        Check.ISR: YES,
        Check.ORDER: YES,
        Check.TRUNCATED: NOT_YET,
        Check.LOGS: NOT_YET,
        Check.LAST_STABLE_OFFSET: UNKNOWN,
        Check.GROUPS: UNKNOWN,
    }
