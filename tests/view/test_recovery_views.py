"""What ``kelr recover`` and ``rescue`` print: verification, brokers in order, Markdown, what is left, the audit log."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.engine.planning.lost import Elected, lost_by
from kelr.engine.planning.verification import findings
from kelr.model import (
    AdviceAction,
    Bounds,
    Check,
    HoldDown,
    HoldReason,
    LogUnavailable,
    LogUnavailableReason,
    Loss,
    LossCertainty,
    NotPlanned,
    Plan,
    Situation,
    Unplanned,
)
from kelr.model.afterwards import CommittedOffset, CommittedOffsets
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery.status import ConfigStatus, JournalStatus, PartitionStatus, RecoveryStatus
from kelr.view.broker_order import Contested, broker_order, sections
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from kelr.view.plan_markdown import MOST_ROWS, plan_markdown
from kelr.view.recovery_status import Put, as_people_read, audit_view, show_put_right, show_status
from kelr.view.rescue import dump_view
from kelr.view.saved import Collected, show_collection
from kelr.view.verification import (
    Verified,
    show_verification,
    verified_in_words,
    waited_for_in_short,
    waited_for_in_words,
)
from tests.engine.cases import cluster_of, decision, leaderless, log_of, silent
from tests.recovery.aftermath import AT, LINEAGE, NOW_MS, PLAN, PLANNED, WELL, log, seen
from tests.view.samples import SAVED
from tests.view.test_schema import violations

SECOND = replace(PLANNED, partition=2)
BOTH = replace(PLAN, elections=(PLANNED, SECOND))
WRONG = seen(state={"isr": (2,)}, committed=CommittedOffsets({AT: (CommittedOffset("billing", 150, 3),)}, groups=1))
ONE_WRONG = Verified(BOTH, [*findings(PLANNED, WRONG), *findings(SECOND, WELL)], NOW_MS)
ALL_WELL = Verified(BOTH, [*findings(PLANNED, WELL), *findings(SECOND, WELL)], NOW_MS)


def shown(verified: Verified, *, width: int | None = None, format: OutputFormat = OutputFormat.TABLE) -> str:
    stdout = io.StringIO()
    output = Output(stdout, io.StringIO(), format=format, width=width, connection_flags=("-b", "k:1"))
    show_verification(output, verified, stock_connection="--bootstrap-server k:1", following=("recover", "verify", "p"))
    return stdout.getvalue()


# Verification.


def test_people_get_the_verdict_then_what_failed_and_the_rest_in_short() -> None:
    assert (
        shown(ONE_WRONG, width=80)
        == """\
Failed: 1 of 2 partitions passed; of 14 checks 1 failed, 1 not yet.
Failed   groups of orders:1: group billing has committed 150, beyond the log's
         end 140: it is sent to where auto.offset.reset says, or, once the log
         has grown, goes on past records that it never read; its members have to
         be stopped before it is reset
Not yet  isr of orders:1: the ISR is [2] of [1, 2, 3], under min ISR 2: acks=all
         is refused; broker 1 not live
Fix      kafka-consumer-groups.sh --bootstrap-server k:1 --group billing --topic orders:1 \
--reset-offsets --to-offset 135 --execute
Next     kelr recover verify p -b k:1

Passed   2 of 2: leader, order, truncated, logs, last-stable-offset
         1 of 2: isr, groups
Note     broker 1 not live (orders:2)
"""
    )


@pytest.mark.parametrize("width", [80, 160, None])
def test_no_line_but_a_command_is_wider_than_the_terminal(width: int | None) -> None:
    lines = shown(ONE_WRONG, width=width, format=OutputFormat.WIDE).splitlines()
    assert all(len(line) <= (width or 80) for line in lines if "kafka-" not in line)
    assert sum(" of orders:" in line for line in lines) == 10


def test_the_same_words_about_many_partitions_are_said_once() -> None:
    many = replace(PLAN, elections=tuple(replace(PLANNED, partition=number) for number in range(50)))
    under = seen(state={"isr": (2,)})
    text = shown(Verified(many, [one for planned in many.elections for one in findings(planned, under)], NOW_MS))
    assert text.count("under min ISR 2") == 1
    assert "Not yet  isr of orders:0-49: the ISR" in text
    assert text.startswith("Not yet passed: 0 of 50 partitions passed; of 350 checks 50 not yet.\n")


def test_a_command_of_kelr_gets_the_connection_and_one_of_kafka_its_own() -> None:
    gone = findings(PLANNED, seen(state={"leader": None, "leader_epoch": 9}))
    text = shown(Verified(PLAN, gone, NOW_MS))
    assert "Fix      kelr explain orders:1 -b k:1\n" in text
    assert "{stock}" not in shown(ONE_WRONG)


def test_the_document_is_as_its_schema_says_and_counts_every_result() -> None:
    document = json.loads(shown(ONE_WRONG, format=OutputFormat.JSON))
    assert violations(document, "verification") == []
    counts = (document["good"], document["yes"], document["not-yet"], document["no"], document["unknown"])
    assert counts == (False, 12, 1, 1, 0)
    assert document["next"] == "kelr recover verify p -b k:1"
    rows = list(csv.DictReader(io.StringIO(shown(ONE_WRONG, format=OutputFormat.CSV))))
    assert [row["passed"] for row in rows if row["check"] == "groups"] == ["no", "yes"]


def test_what_is_waited_for_is_named_or_counted() -> None:
    assert waited_for_in_words(ONE_WRONG) == "isr of orders:1"
    assert waited_for_in_short(ONE_WRONG) == "isr 1"
    assert (waited_for_in_words(ALL_WELL), waited_for_in_short(ALL_WELL)) == ("", "")


BACK = seen(live=frozenset({1, 2, 3}), state={"isr": (3, 2, 1)}, logs=(log(1, *LINEAGE), *WELL.logs))
"""All three replicas are live, and in the ISR."""


def test_all_is_well_only_where_everything_was_looked_at() -> None:
    assert verified_in_words(Verified(PLAN, findings(PLANNED, BACK), NOW_MS)) == "Passed: 1 of 1 partition, 7 checks."
    hidden = Verified(PLAN, findings(PLANNED, seen(min_isr=None)), NOW_MS)
    assert (hidden.good, verified_in_words(hidden)) == (
        False,
        "UNKNOWN: 0 of 1 partition passed; of 7 checks 1 UNKNOWN.",
    )
    nobody = Verified(replace(PLAN, elections=()), (), 0)
    assert (nobody.good, verified_in_words(nobody)) == (False, "No election in the plan: nothing checked.")


def test_all_is_well_is_not_said_without_a_controller_or_where_something_was_lost() -> None:
    found = findings(PLANNED, BACK)
    silent = Verified(PLAN, found, NOW_MS, silence="REQUEST_TIMED_OUT")
    assert not silent.good
    assert verified_in_words(silent).startswith("UNKNOWN: 1 of 1 partition passed, 7 checks. All of it is what brokers")
    assert "no controller answers (REQUEST_TIMED_OUT)" in verified_in_words(silent)
    for loss, words in (
        (Loss(LossCertainty.BOUNDED, Bounds(0), None, Bounds(0), (1,)), "UNKNOWN."),
        (Loss(LossCertainty.UNKNOWN, None, None, Bounds(12), (1,)), "UNKNOWN, at least 12 offsets."),
        (Loss(LossCertainty.UNKNOWN, Bounds(4, 4), None, Bounds(4, 4)), "UNKNOWN, at least 4 offsets."),
        (Loss(LossCertainty.BOUNDED, Bounds(0, 6), None, Bounds(6, 6)), "6 offsets."),
        (Loss(LossCertainty.PROVEN_NONE, Bounds(0, 0), None, Bounds(0), (1,)), "no committed offset; others: UNKNOWN."),
        (
            Loss(LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, Bounds(0, 0), None, Bounds(0, 0), min_isr=2),
            "nothing of what was committed with min ISR 2, if fewer than 2 replicas lost data",
        ),
    ):
        planned = replace(PLANNED, loss=loss)
        one = lost_by(planned, BACK)
        assert one is not None
        verified = Verified(PLAN, findings(planned, BACK), NOW_MS, (one,))
        assert verified.good
        said = verified_in_words(verified)
        assert f"Passed: 1 of 1 partition, 7 checks. Lost by the elections: {words}" in said
        document = json.loads(shown(verified, format=OutputFormat.JSON))
        assert violations(document, "verification") == []
        assert document["lost"]["total"][1] == verified.in_all.total.at_most
    proven = replace(PLANNED, loss=Loss(LossCertainty.PROVEN_NONE, Bounds(0, 0), None, Bounds(0, 0)))
    nothing = lost_by(proven, BACK)
    assert nothing is not None
    assert verified_in_words(Verified(PLAN, found, NOW_MS, (nothing,))) == "Passed: 1 of 1 partition, 7 checks."


def test_what_was_not_read_before_the_elections_is_named_and_what_was_accepted_for_it() -> None:
    planned = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(0), None, Bounds(0), (1,)))
    one = lost_by(planned, BACK)
    away = lost_by(planned, seen())
    assert one is not None
    assert away is not None
    words = "--accept-loss 0+ by ada@laptop"
    text = " ".join(shown(Verified(PLAN, findings(planned, BACK), NOW_MS, (replace(one, accepted=words),))).split())
    assert "Lost UNKNOWN (1 election). The log of broker 1 was not read before the election." in text
    assert "Broker 1 follows the new leader. What only it held is gone, and no request tells how much it was." in text
    assert f"Accepted: {words}." in text
    text = " ".join(shown(Verified(PLAN, findings(planned, seen()), NOW_MS, (away,))).split())
    assert (
        "What only broker 1 held is lost once it follows the new leader. If it has not been back since, its disk may"
        " still tell: save it with kelr rescue dump --log-dir DIRECTORY before it starts."
    ) in text


def test_where_a_later_election_made_the_planned_replica_the_leader_it_says_that_the_planned_one_is_unknown() -> None:
    planned = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(4, 19), None, Bounds(19, 19)))
    later = seen(state={"leader_epoch": 6}, logs=tuple(replace(one, current_leader_epoch=6) for one in BACK.logs))
    one = lost_by(planned, later)
    assert one is not None
    verified = Verified(PLAN, findings(planned, later), NOW_MS, (one,))
    text = " ".join(shown(verified).split())
    assert (
        "Lost 0 to 19 offsets in all, of them committed: 0 to 19 (1 election). It is UNKNOWN whether the plan's"
        " election came about in orders:1. By its audit log, this machine did not ask for it. Another election may have"
        " chosen the leader."
    ) in text
    assert json.loads(shown(verified, format=OutputFormat.JSON))["lost"]["unsure"] == 1


def test_a_plan_that_another_election_came_before_was_not_carried_out_and_lost_nothing() -> None:
    assert BACK.state is not None
    led = replace(BACK, state=replace(BACK.state, leader=1))
    verified = Verified(PLAN, findings(PLANNED, led), NOW_MS, instead={AT: 1})
    text = " ".join(shown(verified).split())
    assert text.startswith(
        "Not carried out: broker 1 leads orders:1 by another election. Passed: 1 of 1 partition, 7 checks. "
    )
    assert "Lost none: no election of this plan is on record. Passed leader" in text
    assert "up to offset 135; it was elected, and 2 was not" in text
    part = Verified(BOTH, [*findings(PLANNED, led), *findings(SECOND, WELL)], NOW_MS, instead={AT: 1})
    assert verified_in_words(part).startswith(
        "Not carried out in 1 of 2 partitions: broker 1 leads orders:1 by another"
    )


def test_where_another_replica_led_first_and_the_plan_may_have_elected_it_what_was_lost_is_unknown() -> None:
    planned = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(0), None, Bounds(0), (1,)))
    assert BACK.state is not None
    led = replace(BACK, state=replace(BACK.state, leader=1))
    one = lost_by(planned, led)
    assert one is not None
    text = " ".join(shown(Verified(PLAN, findings(planned, led), NOW_MS, (one,))).split())
    assert text.startswith(
        "Not carried out as planned: broker 1 leads orders:1, by which election is UNKNOWN. Passed: 1 of 1 partition,"
        " 7 checks. Lost by the elections: UNKNOWN. Next kelr recover verify p -b k:1 Lost UNKNOWN (1"
        " election). Another replica than planned was elected first in"
        " orders:1. It is UNKNOWN whether a request of the plan elected it. It was in the ISR or ELR when planned: if"
        " Kafka elected it after a clean shutdown, no committed record was lost. A metadata log shows that: kelr"
        " history --bootstrap-controller HOST:PORT. By its audit log, this machine did not ask for it. Another election"
        " may have chosen the leader. Passed"
    )


def test_of_a_member_of_the_elr_that_led_first_it_is_said_that_a_clean_shutdown_would_have_lost_nothing_committed() -> (
    None
):
    planned = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(0), None, Bounds(0), (1,)))
    assert BACK.state is not None
    led = replace(BACK, state=replace(BACK.state, leader=1))
    clean = (
        "It was in the ISR or ELR when planned: if Kafka elected it after a clean shutdown, no committed record was"
        " lost."
    )

    def said(elr: tuple[int, ...]) -> str:
        of_elr = replace(planned, evidence=replace(planned.evidence, isr=(), elr=elr))
        one = lost_by(of_elr, led)
        assert one is not None
        assert one.of_committed.at_most is None, "whether its shutdown was clean is not known"
        return " ".join(shown(Verified(PLAN, findings(of_elr, led), NOW_MS, (one,))).split())

    assert f"{clean} A metadata log shows that: kelr history --bootstrap-controller HOST:PORT." in said((1,))
    assert clean not in said((3,))


@pytest.mark.parametrize(
    ("on_record", "words"),
    [
        (None, "By its audit log, this machine did not ask for it. Another election may have chosen the leader."),
        (
            Elected.NOBODY,
            "This machine's run of it elected no leader; one from elsewhere may have.",
        ),
        (Elected.PERHAPS_ANOTHER, "This machine asked for it, and did not see the planned replica elected."),
    ],
)
def test_nobody_is_said_to_have_followed_a_plan_that_may_not_have_been_carried_out(
    on_record: Elected | None, words: str
) -> None:
    planned = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(0), None, Bounds(0), (1, 3)))
    assert BACK.state is not None
    led = replace(BACK, state=replace(BACK.state, leader=1, leader_epoch=7))
    one = lost_by(planned, replace(led, logs=tuple(replace(log, current_leader_epoch=7) for log in BACK.logs)))
    assert one is not None
    told = (replace(one, on_record=on_record),)
    text = " ".join(shown(Verified(PLAN, findings(planned, led), NOW_MS, told)).split())
    assert words in text
    assert "Broker 3 follows the leader. Whether it gave anything up for the plan is UNKNOWN." in text
    assert "Broker 1 leads orders:1 now: whether it gave anything up before is UNKNOWN." in text
    assert "is gone" not in text
    assert "Broker 1 follows" not in text


def test_a_replica_that_is_away_is_named_though_all_is_well() -> None:
    text = shown(ALL_WELL)
    assert "Note     broker 1 not live (all of them)\n" in text
    assert text.splitlines()[0] == "Passed: 2 of 2 partitions, 14 checks; a replica is offline."
    unheard = replace(PLANNED, loss=replace(PLANNED.loss, unheard=(1,)))
    text = shown(Verified(replace(PLAN, elections=(unheard, SECOND)), findings(unheard, WELL), NOW_MS))
    told = "the log of broker 1 was not read: what only its disk holds is lost when it returns, unless saved first"
    assert told in " ".join(text.split())


def test_a_long_list_of_partitions_breaks_behind_commas() -> None:
    topic = "payments.settlement.authorisations.europe-west.v2-production"
    elections = tuple(replace(PLANNED, topic=topic, partition=2 * number) for number in range(100))
    many, under = replace(PLAN, elections=elections), seen(state={"isr": (2,)})
    verified = Verified(many, [one for planned in elections for one in findings(planned, under)], NOW_MS)
    for width in (80, 160, None):
        lines = shown(verified, width=width).splitlines()
        assert sum("production:0," in line for line in lines) == 1
        assert max(map(len, lines)) <= (width or 80)


def test_of_leader_epochs_alone_there_is_no_line_each() -> None:
    """Of sixty partitions there were sixty lines."""
    evidence = PLANNED.evidence
    elections = tuple(
        replace(PLANNED, partition=number, evidence=replace(evidence, leader_epoch=5 + number)) for number in range(4)
    )
    found = [
        one
        for planned in elections
        for one in findings(planned, seen(state={"leader": None, "leader_epoch": 20 + planned.partition}))
        if one.check is Check.LEADER
    ]
    text = " ".join(shown(Verified(replace(PLAN, elections=elections), found, NOW_MS)).split())
    assert "leader of orders:0-3: no leader (leader epoch 20-23, 5-8 in the plan): the leader elected since" in text
    assert text.count("no leader (") == 1


# Brokers.


def advised(partition: int, action: AdviceAction, *brokers: int) -> NotPlanned:
    return NotPlanned(
        "orders", partition, Unplanned.ADVISED, Situation.WAITING_FOR_ELR, "Because.", action=action, brokers=brokers
    )


HELD = replace(PLANNED, hold=(HoldDown(1, HoldReason.LAST_KNOWN_LEADER, "Broker 1 would be elected."),))
MIXED = replace(
    PLAN,
    elections=(HELD,),
    not_planned=(
        advised(5, AdviceAction.BRING_BACK, 4),
        advised(6, AdviceAction.BRING_BACK, 1),
        advised(7, AdviceAction.WAIT, 4),
        advised(8, AdviceAction.RESTORE_REPLICATION, 2, 3),
        advised(9, AdviceAction.HOLD, 5),
    ),
)


def test_a_broker_that_has_to_stay_down_is_started_after_the_elections() -> None:
    order = broker_order(MIXED)
    assert [(step.broker, [at.partition for at in step.partitions]) for step in order.keep_down] == [(1, [1]), (5, [9])]
    assert [(step.broker, [at.partition for at in step.partitions]) for step in order.bring_back] == [(4, [5, 7])]
    assert [(step.broker, [at.partition for at in step.partitions]) for step in order.start_after] == [(1, [6])]
    titles = [title for title, _ in sections(order)]
    assert titles == [
        "If these elections are carried out, keep broker 1 down until they are done",
        "Keep broker 5 down until these partitions have a leader",
        "Start broker 4",
        "Start broker 1 once all that is done, not before",
    ]


def test_a_log_directory_stays_offline_where_its_broker_is_up() -> None:
    up = HoldDown(6, HoldReason.ISR_OR_ELR, "Kafka would elect it.", directory=True)
    order = broker_order(replace(PLAN, elections=(HELD, replace(HELD, partition=2, hold=(up,))), not_planned=()))
    assert [(title, [step.broker for step in steps]) for title, steps in sections(order)] == [
        ("If these elections are carried out, keep broker 1 down until they are done", [1]),
        ("If these elections are carried out, leave the log directory of broker 6 offline until they are done", [6]),
    ]


def test_a_broker_that_one_partition_wants_back_and_another_keeps_down_is_not_among_those_to_bring_back() -> None:
    """Partition 6 waits for broker 1 or 2; in partition 5 broker 2 would be elected without what 1 holds."""
    beside = replace(advised(5, AdviceAction.BRING_BACK, 1), keep_down=(2,))
    order = broker_order(replace(PLAN, elections=(), not_planned=(beside, advised(6, AdviceAction.BRING_BACK, 1, 2))))
    assert [(title, [step.broker for step in steps]) for title, steps in sections(order)] == [
        ("Keep broker 2 down until these partitions have a leader", [2]),
        ("Start broker 1", [1]),
        ("Start broker 2 once all that is done, not before", [2]),
    ]


def test_where_each_of_two_brokers_spoils_the_others_partition_no_order_suits_both() -> None:
    one = replace(advised(5, AdviceAction.BRING_BACK, 1), keep_down=(2,))
    other = replace(advised(6, AdviceAction.BRING_BACK, 2), keep_down=(1,))
    order = broker_order(replace(PLAN, elections=(), not_planned=(one, other)))
    assert order.bring_back == ()
    titles = [title for title, _ in sections(order)]
    assert titles == [
        "Keep brokers 1 and 2 down until these partitions have a leader",
        "No order suits all: these are wanted back by some, and spoil others. Choose whose records count more",
    ]


def test_a_live_broker_that_is_in_the_way_is_stopped_first() -> None:
    stopped = replace(advised(5, AdviceAction.BRING_BACK, 1), keep_down=(3,), stop=(3,))
    for also, title in (((), "Stop broker 3, and keep it"), ((5,), "Stop broker 3, and keep brokers 3 and 5")):
        held = [advised(9, AdviceAction.HOLD, *also)] if also else []
        order = broker_order(replace(PLAN, elections=(), not_planned=(stopped, *held)))
        assert sections(order)[0][0] == f"{title} down until these partitions have a leader"


def test_a_broker_that_is_stopped_first_is_elected_elsewhere_after_that() -> None:
    """The plan elected 3 in one partition and had it stopped for another, and did not say which comes first."""
    stopped = replace(advised(5, AdviceAction.BRING_BACK, 1), keep_down=(3,), stop=(3,))
    order = broker_order(replace(PLAN, elections=(replace(HELD, elect=3, hold=()),), not_planned=(stopped,)))
    assert sections(order)[0][0] == (
        "Stop broker 3, and keep it down until these partitions have a leader. Elect broker 3 elsewhere only after"
        " that, started again"
    )


def test_whom_one_partition_wants_back_is_started_once_another_has_learnt_what_it_asks_for() -> None:
    """Found by `make hindsight`: partition 5 keeps broker 1 down until what live brokers hold is known."""
    asking = replace(advised(5, AdviceAction.GET_MORE_INFORMATION), keep_down=(1,))
    order = broker_order(replace(PLAN, elections=(), not_planned=(asking, advised(6, AdviceAction.BRING_BACK, 1))))
    assert [(title, [step.broker for step in steps]) for title, steps in sections(order)] == [
        ("Keep broker 1 down until it is known what the logs of these partitions hold", [1]),
        ("Start broker 1 once all that is done, not before", [1]),
    ]


def test_where_a_partition_keeps_a_broker_down_until_its_disk_is_read_no_leader_is_waited_for() -> None:
    """Partition 0 gets none while 1 is down and its disk is not read again; partition 1 waits for 1."""
    state, cluster = leaderless((3, 1, 2), elr=(1,)), cluster_of(live=(2, 3), fenced=(1,))
    lacking = LogUnavailable(1, LogUnavailableReason.LACKING, "its disk is not believed")
    live = (log_of(3, (0, 116)), log_of(2, (0, 135), hw=120))
    contested = Contested()
    contested.add(decision(state, cluster, (*live, lacking)))
    contested.add(replace(decision(state, cluster, (*live, silent(1))), partition=1))
    assert list(contested) == [
        "Partitions disagree over broker 1: keep it down until it is known what the logs of orders:0 hold, since its"
        " return may elect somebody there, and start it then for orders:1, which waits for it."
    ]


def test_a_plan_that_says_nothing_of_brokers_has_no_such_section() -> None:
    assert broker_order(PLAN).is_empty


# Markdown.


def test_markdown_shows_text_as_it_is() -> None:
    hostile = replace(PLANNED, reason="a | b\n# <img src=x> `c` *d* [e](f)")
    text = plan_markdown(replace(PLAN, elections=(hostile,)))
    assert r"- why: a \| b \# \<img src=x\> \`c\` \*d\* \[e\](f)" in text.splitlines()


def test_markdown_of_many_elections_shows_the_first_and_says_so() -> None:
    many = replace(PLAN, elections=tuple(replace(PLANNED, partition=number) for number in range(MOST_ROWS + 5)))
    lines = plan_markdown(many).splitlines()
    folded = lines.index("<details><summary>Details</summary>")
    assert sum(line.startswith("| orders:") for line in lines[:folded]) == MOST_ROWS
    assert "… and 5 more elections, in the details." in lines[:folded]
    assert sum(line.startswith("| orders:") for line in lines[folded:]) == MOST_ROWS + 5


def test_markdown_of_a_plan_without_elections_says_why() -> None:
    text = plan_markdown(replace(MIXED, elections=()))
    assert "- orders:5-9 (advised): Because." in text
    assert "<details>" not in text
    empty = plan_markdown(Plan(None, 0, 1, "elr-4.3", "kelr/1", ()))
    assert empty.startswith("**Recovery plan `")
    assert "cluster `unknown`" in empty


# Status, resume and undo.

LEFT = PartitionStatus(
    "orders",
    1,
    2,
    2,
    8,
    (2, 3, 1),
    (3, 1, 2),
    reordered=True,
    begun=True,
    ended=None,
    text="broker 2 leads; it still has the order of its election",
)
WELL_LED = replace(LEFT, order=(3, 1, 2), reordered=False, text="")
MIN_ISR_LEFT = ConfigStatus("orders", "min.insync.replicas", None, "3", left=True, text="not restored yet")
OPEN = JournalStatus(
    "j",
    Path("j.jsonl"),
    "recover apply",
    "ada",
    "laptop",
    1,
    2,
    "p",
    (LEFT,),
    (),
    "cut short: nothing was begun",
    "recover resume j",
)
STATUS = RecoveryStatus("c", at_work=False, journals=(OPEN,))


def status_of(status: RecoveryStatus, format: OutputFormat = OutputFormat.TABLE) -> str:
    stdout = io.StringIO()
    show_status(Output(stdout, io.StringIO(), format=format, width=100), status, following=("recover", "resume", "j"))
    return stdout.getvalue()


def test_what_is_left_is_shown_with_the_order_that_it_should_have() -> None:
    text = status_of(STATUS)
    assert text.startswith("journal j, recover apply by ada@laptop: cut short: nothing was begun.\n")
    assert "orders:1   left        2       2  2,3,1  3,1,2" in text
    assert "1 partition not as they should be" in text
    document = json.loads(status_of(STATUS, OutputFormat.JSON))
    assert violations(document, "recovery-status") == []
    assert document["items"][0]["order"] == [2, 3, 1]


def test_a_garbled_journal_and_another_kelr_are_said() -> None:
    text = status_of(replace(STATUS, journals=(), at_work=True, garbled=("x.jsonl, line 3: garbled",)))
    assert text == "Another kelr of this machine changes the cluster just now.\ngarbled: x.jsonl, line 3: garbled\n"


def test_nobody_who_leads_is_not_the_same_as_no_such_partition() -> None:
    nobody = replace(LEFT, leader=None)
    gone = replace(WELL_LED, partition=2, leader=None, order=None, text="there is no such partition any more")
    lines = status_of(replace(STATUS, journals=(replace(OPEN, partitions=(nobody, gone)),))).splitlines()
    assert [line.split()[:5] for line in lines if line.startswith("orders:")] == [
        ["orders:1", "left", "2", "none", "2,3,1"],
        ["orders:2", "gone", "2", "-", "-"],
    ]


@pytest.mark.parametrize(
    ("leader", "order", "state"),
    [(2, (3, 1, 2), "well"), (3, (3, 1, 2), "other leader"), (None, (3, 1, 2), "no leader"), (None, None, "gone")],
)
def test_a_partition_that_another_replica_leads_is_not_well(
    leader: int | None, order: tuple[int, ...] | None, state: str
) -> None:
    led = replace(WELL_LED, leader=leader, order=order)
    status = replace(STATUS, journals=(), plan_id="0123456789abcdef", plan_partitions=(led,))
    text = status_of(status)
    assert f"orders:1   {state} " in text
    if state == "well":
        assert text.endswith("\nNothing to repair.\n")
    else:
        assert text.endswith("\nNo order or config to repair; 1 partition not led as planned.\n")
    (item,) = json.loads(status_of(status, OutputFormat.JSON))["items"]
    assert item["state"] == state


def test_status_tells_what_the_plans_elections_lost_and_that_no_controller_answers() -> None:
    lost = lost_by(replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(0), None, Bounds(0), (1,))), BACK)
    assert lost is not None
    status = replace(STATUS, journals=(), plan_partitions=(WELL_LED,), lost=(lost,))
    assert "Lost by the plan's elections: UNKNOWN (1 election)." in status_of(status)
    document = json.loads(status_of(status, OutputFormat.JSON))
    assert violations(document, "recovery-status") == []
    assert document["lost"]["committed"] == [0, None]
    silent = status_of(replace(status, silence="REQUEST_TIMED_OUT"))
    assert "Nothing is left" not in silent
    assert "no controller answers (REQUEST_TIMED_OUT): the table is what brokers knew last." in silent


def test_a_config_is_no_partition() -> None:
    both = replace(OPEN, configs=(MIN_ISR_LEFT,)), replace(OPEN, name="k", partitions=(), configs=(MIN_ISR_LEFT,))
    assert "1 partition and 1 config not as they should be" in status_of(replace(STATUS, journals=both))
    assert "\n1 config not as they should be" in status_of(replace(STATUS, journals=both[1:]))


def test_what_was_put_right_says_whether_the_journal_is_closed() -> None:
    puts = [Put("order", "orders", 1, "not restored", False, "2,3,1", "3,1,2", "no answer", "NO_ANSWER")]
    stdout = io.StringIO()
    output = Output(stdout, io.StringIO(), width=100)
    show_put_right(output, puts, journal="j", plan_id="p", closed=False, following=("recover", "status"))
    assert "orders:1  order  not restored  2,3,1  3,1,2      no answer (NO_ANSWER)" in stdout.getvalue()
    assert stdout.getvalue().endswith("journal j: still open, something is left to repair.\n")


def test_where_nothing_was_changed_nothing_is_said_of_a_journal() -> None:
    stdout = io.StringIO()
    show_put_right(Output(stdout, io.StringIO()), [], journal="j", plan_id="p", closed=True, following=None)
    assert stdout.getvalue() == "Nothing to repair: no order and no config was changed.\n"


# The audit log.

RECORD = AuditRecord(
    at_ms=NOW_MS,
    what=AuditWhat.ELECTION,
    command="recover apply",
    topic="orders",
    partition=1,
    cluster_id="c",
    user="ada",
    host="laptop",
    principal=None,
    result="other-leader",
    wanted=2,
    election="designation",
    before={"leader": None},
    force_reason="it burned",
)


@pytest.mark.parametrize("format", list(OutputFormat))
def test_a_line_of_the_audit_log_in_every_format(format: OutputFormat) -> None:
    stdout = io.StringIO()
    with Output(stdout, io.StringIO(), format=format).listing(audit_view(), {"file": "audit.jsonl"}) as listing:
        listing.add([RECORD])
    assert ("2023-11-14T22:13:20Z" if format.for_people else "2023-11-14T22:13:20.000Z") in stdout.getvalue()
    assert "it burned" in stdout.getvalue()
    if format is OutputFormat.JSON:
        assert violations(json.loads(stdout.getvalue()), "audit-log") == []


def test_lines_of_the_audit_log_that_differ_in_the_partition_alone_are_one_for_people() -> None:
    election = replace(RECORD, what=AuditWhat.ELECTION, election="unclean", topic="orders", partition=0, result="done")
    lines = [replace(election, partition=number, at_ms=RECORD.at_ms + number) for number in (0, 1, 2, 7)]
    refused = replace(election, partition=8, result="refused")
    told = [(one.topic, one.partition, one.result) for one in as_people_read([*lines, refused, RECORD])]
    assert told == [
        ("orders:0-2,7", None, "done"),
        ("orders", 8, "refused"),
        (RECORD.topic, RECORD.partition, RECORD.result),
    ]


def test_what_the_audit_log_did_not_record_is_not_known() -> None:
    stdout = io.StringIO()
    with Output(stdout, io.StringIO(), format=OutputFormat.NDJSON).listing(audit_view()) as listing:
        listing.add([RECORD])
    item = json.loads(stdout.getvalue())
    assert (item["before"], item["after"], item["consent"]) == ({"leader": None}, None, None)


# Collections.


def test_a_broker_of_which_nobody_knows_whether_it_runs() -> None:
    parts = [Collected(None, 2, 0), Collected(1, 2, 0, clean_shutdown=False), Collected(2, 2, 1, running=True)]
    stdout = io.StringIO()
    output = Output(stdout, io.StringIO(), format=OutputFormat.TABLE)
    show_collection(output, "f", parts, notes=(), following=("explain",))
    assert (
        stdout.getvalue()
        == """\
BROKER       LOGS  UNREADABLE  CLEAN SHUTDOWN  RUNNING
the cluster     2           0  -               -        -
1               2           0  no              ?        -
2               2           1  ?               yes      -
"""
    )


# Rescue files.


def test_batches_without_an_epoch_are_told_beside_the_epochs() -> None:
    stdout = io.StringIO()
    with Output(stdout, io.StringIO(), format=OutputFormat.NDJSON).listing(dump_view()) as listing:
        listing.add([SAVED, replace(SAVED, epochs=(6, 7))])
    items = [json.loads(line) for line in stdout.getvalue().splitlines()]
    assert [(item["epochs"], item["without_epoch"]) for item in items] == [([6], True), ([6, 7], False)]
