"""How a plan looks: what somebody has to know before saying yes is all there, at any width and in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine.advice.commands import topic_config
from kelr.engine.loss_words import loss_in_words
from kelr.model import (
    Advice,
    AdviceAction,
    Bounds,
    Consent,
    ElectionType,
    Loss,
    LossCertainty,
    Method,
    NotPlanned,
    Plan,
    PlannedElection,
    RescueStep,
    Situation,
    Target,
    TopicError,
    TopicPartition,
    Unplanned,
    select,
)
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from kelr.view.plan import show_plan, show_question
from kelr.view.plan_document import PlanContext
from kelr.view.plan_left import next_of
from kelr.view.plan_words import named, targets_of, totals_in_words
from tests.view.plans import LOSSY, MIXED, NINETEEN_LOST, NOT_NEEDED, NOTHING_LOST, PREFERRED, REFUSED, UNCOUNTED, plan
from tests.view.test_schema import violations

STOCK = PlanContext("--bootstrap-server kafka-1:9092")


def shown(
    what: Plan,
    *,
    format: OutputFormat = OutputFormat.TABLE,
    width: int | None = None,
    color: bool = False,
    context: PlanContext = STOCK,
    full: bool = False,
) -> str:
    out = io.StringIO()
    output = Output(
        out, io.StringIO(), format=format, width=width, color=color, connection_flags=("-b", "kafka-1:9092")
    )
    show_plan(output, what, context=context, full=full)
    return out.getvalue()


LOSSY_LINES = [
    "Plan: 1 election in topic orders. Nothing changed.",
    "",
    "Loss    At least 19 offsets, 4 committed. More UNKNOWN: the log of broker 1 was",
    "        not read.",
    "Better  Bring broker 1 back: its log is the best of all.",
    "Do      1. Save what broker 2 truncates at once, and keep broker 1 down until",
    "           its disk is saved. On the host of broker 1, with --log-dir for each",
    "           log directory (without --log-dir where no disk can be read):",
    "           kelr rescue dump orders:1 --elect 3 --log-dir DIRECTORY --out orders-1-lost-to-3.kelr-rescue"
    " -b kafka-1:9092",
    "        2. Keep broker 1 down until step 3 ends. (Starting broker 1 instead:",
    "           loses less.)",
    "        3. By 23:13 UTC: kelr recover apply plan.json --accept-loss 19+ -b kafka-1:9092",
    "Else    Count what the disk of a broker that is down holds first, on its host:",
    "        kelr recover collect --log-dir DIRECTORY --out broker-1.kelr",
    "",
    "PARTITIONS  LEADER  COMMITTED LOSS  TOTAL LOSS  LOGS READ",
    "orders:1         3  4+              19+         2 of 3",
    "",
    "At stake  A transaction is open below the high watermark.",
]
SAVED = PlanContext(
    "--bootstrap-server kafka-1:9092",
    carry_out=("recover", "apply", "plan.json", "--accept-loss", "19+"),
    collect=(("recover", "collect", "--log-dir", "DIRECTORY", "--out", "broker-1.kelr"),),
)


@pytest.mark.parametrize("width", [80, None])
def test_a_plan_begins_with_what_it_costs_and_what_to_do(width: int | None) -> None:
    hint = ["Each partition with its notes: -o wide"]
    assert shown(plan(LOSSY), width=width, context=SAVED).splitlines() == LOSSY_LINES + hint


def test_an_election_is_told_in_sentences_on_demand() -> None:
    assert shown(plan(LOSSY), width=100, full=True).splitlines()[12:] == [
        "",
        "orders:1: elect broker 3 (designation)",
        "  why       Somebody designated broker 3. Broker 2 has the better log.",
        "  lost      UNKNOWN, at least 19 offsets (116..134); at least 4 of them committed: the log of broker",
        "            1 was not read and may hold more.",
        "  how       Give its replicas the order 3,1,2, ElectLeaders UNCLEAN, then the order 1,2,3 again. No",
        "            data moves.",
        "  returns   Keep broker 1 down: its return elects it by itself.",
        "  note      Broker 2 truncates 19 offsets when 3 leads.",
        "  at stake  A transaction is open below the high watermark.",
        "  then      kafka-transactions.sh --bootstrap-server kafka-1:9092 find-hanging --topic orders --partition 1",
        "  instead   Broker 2 (longest_log_aggressive). Lost: nothing. Keeps offsets 116..134.",
        "            kelr elect --election-type longest_log_aggressive orders:1 -b kafka-1:9092",
        "  instead   longest_log_balanced: elects no leader now. Waits for the log of 1.",
        "            kelr elect --election-type longest_log_balanced orders:1 -b kafka-1:9092",
        "  instead   Start broker 1: its return elects no leader, so then designate it. Lost: 5 offsets; 0 to",
        "            5 of them committed. It truncates 5 offsets of broker 2, from 130 on: save them first.",
        "            kelr rescue dump orders:1 --elect 1 --out orders-1-lost-to-1.kelr-rescue -b kafka-1:9092",
        "            kelr elect --election-type designation --designate 1 orders:1 -b kafka-1:9092",
    ]


def test_a_start_instead_is_told_of_the_partitions_that_it_is_about() -> None:
    """A partition without a replica there is as it is; where the start loses more, that is said, and not UNKNOWN."""
    (*_, start), few = LOSSY.alternatives, Loss(LossCertainty.BOUNDED, Bounds(0, 2), total=Bounds(2, 2))
    elsewhere = replace(LOSSY, partition=2, evidence=replace(LOSSY.evidence, replicas=(2, 3, 4)), alternatives=())
    worse = replace(LOSSY, partition=3, loss=few)
    unknown = replace(LOSSY, partition=4, alternatives=(replace(start, loss=None),))
    expected = {
        (LOSSY,): "loses less.)",
        (LOSSY, elsewhere): "loses less on 1 partition.)",
        (LOSSY, worse): "loses less on 1 partition, more in all on 1.)",
        (LOSSY, elsewhere, worse, unknown): "loses less on 1 partition, more in all on 1, UNKNOWN on 1.)",
    }
    for elections, told in expected.items():
        text = " ".join(shown(plan(*elections), context=SAVED).split())
        assert f"(Starting broker 1 instead: {told}" in text, text
    assert "instead" not in shown(plan(elsewhere, worse, unknown), context=SAVED)


def test_the_question_says_whom_at_what_cost_and_what_would_be_better() -> None:
    out = io.StringIO()
    output = Output(out, io.StringIO(), connection_flags=("-b", "kafka-1:9092"))
    show_question(output, plan(LOSSY), replace(SAVED, carry_out=(), collect=(), all_saved=True))
    assert out.getvalue().splitlines() == [
        "Elect broker 3 for orders:1?",
        "Loss    At least 19 offsets, 4 committed. More UNKNOWN: the log of broker 1 was",
        "        not read.",
        "Better  Bring broker 1 back: its log is the best of all.",
        "Do      Keep broker 1 down until the election is done. (Starting broker 1",
        "        instead: loses less.)",
        "",
        "At stake  A transaction is open below the high watermark.",
    ]


def test_what_cannot_be_read_from_the_network_is_read_on_the_brokers_host() -> None:
    (step,) = LOSSY.rescue
    down = replace(LOSSY, rescue=(replace(step, reachable=False),))
    text = shown(plan(down))
    told = "Keep brokers 1 and 2 down until their disks are saved. On the host of brokers 1 and 2, with --log-dir for"
    assert told in " ".join(text.split())
    assert rescues_in(text)[0].startswith("kelr rescue dump orders:1 --elect 3 --log-dir DIRECTORY --out")


def test_elections_with_the_same_leader_and_kind_of_loss_are_a_row() -> None:
    lines = shown(MIXED).splitlines()
    assert lines[lines.index("PARTITIONS  LEADER  COMMITTED LOSS  TOTAL LOSS  LOGS READ") :] == [
        "PARTITIONS  LEADER  COMMITTED LOSS  TOTAL LOSS  LOGS READ",
        "orders:0         2  0               0           2",
        "orders:1         3  4+              19+         2 of 3",
        "payments:0       3  UNKNOWN [1]     UNKNOWN     1 of 2",
        "[1] The log of 3 was not read.",
        "",
        "At stake  A transaction is open below the high watermark. (orders:1)",
        "Each partition with its notes: -o wide",
        "",
        "not needed: orders:2: broker 2 leads",
        "",
        "refused: 2 partitions, orders:3-4: no replica is live",
        "  kelr explain orders:3-4 -b kafka-1:9092",
    ]
    losses = [replace(NINETEEN_LOST, committed=Bounds(least), total=Bounds(least + 9)) for least in (1, 4)]
    unsure = replace(NINETEEN_LOST, committed=None, total=None)
    together = [replace(LOSSY, partition=number, loss=loss) for number, loss in enumerate((*losses, unsure))]
    assert "orders:0-1       3  1+ each         10+ each    2 of 3" in shown(plan(*together))
    assert "orders:2         3  UNKNOWN [1]     UNKNOWN     2 of 3" in shown(plan(*together))


def test_where_a_reason_has_to_be_given_the_step_says_why() -> None:
    text = " ".join(shown(MIXED, context=SAVED).split())
    assert (
        "3. By 23:13 UTC, with --force REASON (what 1 election loses cannot be counted):"
        " kelr recover apply plan.json --accept-loss 19+ -b kafka-1:9092" in text
    )


PROMISED: dict[str, Any] = {"grade": LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, "min_isr": 2}


def test_a_promise_is_a_footnote() -> None:
    promised = replace(PREFERRED, loss=replace(PREFERRED.loss, **PROMISED))
    lines = shown(plan(promised), width=120).splitlines()
    assert "Loss  None of what was committed with min ISR 2, if fewer than 2 replicas lost data." in lines
    assert "orders:0         2  0*              0           2" in lines
    assert "* Of what was committed with min ISR 2, if fewer than 2 replicas lost data." in lines


def test_a_promise_of_several_min_isrs_names_none_of_them() -> None:
    promised = [replace(PREFERRED.loss, **{**PROMISED, "min_isr": number}) for number in (1, 2)]
    both = plan(*(replace(PREFERRED, partition=at, loss=loss) for at, loss in enumerate(promised)))
    lines = shown(both, width=120).splitlines()
    words = "of what was committed with the present min ISR, if fewer than min ISR replicas lost data."
    assert f"Loss  None {words}" in lines
    assert [line for line in lines if line.startswith("* ")] == [f"* O{words[1:]}"]


@pytest.mark.parametrize("width", [40, 80, 120, 160])
def test_lines_fit_the_terminal_but_for_commands(width: int) -> None:
    for line in shown(MIXED, width=width).splitlines():
        # Four columns of numbers do not stand side by side in forty columns.
        in_table = width == 40 and ("  " in line.strip() or not line[:20].strip())
        assert len(line) <= width or "kelr " in line or "kafka-transactions.sh" in line or in_table, line


def many(count: int) -> Plan:
    """A topic with a long name; every second partition is elected, one half of them with one more remark."""
    topic = "payments.settlement.authorisations.europe-west.v2-production"
    elections = [
        replace(LOSSY, topic=topic, partition=2 * number, hold=LOSSY.hold if number % 2 else ())
        for number in range(count)
    ]
    left = [
        NotPlanned(
            topic,
            2 * number + 1,
            Unplanned.ADVISED,
            Situation.WAITING_FOR_ELR,
            f"Bring broker 1 back first. If it cannot come back: designate 2, which loses {number // 50} offsets.",
            action=AdviceAction.BRING_BACK,
            brokers=(1,),
            command=("explain", f"{topic}:{2 * number + 1}"),
        )
        for number in range(count)
    ]
    return plan(*elections, *left)


@pytest.mark.parametrize("width", [80, 160, None])
def test_of_many_partitions_the_totals_come_first_and_each_list_once(width: int | None) -> None:
    lines = shown(many(100), width=width).splitlines()
    assert lines[0].startswith("Plan: 100 elections in topic")
    assert sum("payments." in line and ":0," in line for line in lines) == 2  # a row, a command
    text = " ".join(" ".join(lines).split())
    assert "Loss At least 1,900 offsets, 400 committed. More UNKNOWN: the log of broker 1 was not read." in text
    assert "Keep broker 1 down until the elections are done, for 50 of them." in text
    wide = " ".join(shown(many(100), width=width, format=OutputFormat.WIDE).split())
    assert "Returns Keep broker 1 down: its return elects it by itself. (50 of them)" in wide
    assert "Note Broker 2 truncates 19 offsets when 3 leads." in wide
    assert "Note Broker 2 truncates 1,900 offsets of 100 partitions, to follow 3." in wide


def test_a_list_of_partitions_breaks_behind_a_comma() -> None:
    text = shown(many(100), width=80)
    lines = [found[1] for line in text.splitlines() if (found := re.fullmatch(r" *([0-9]+(,[0-9]+)*),?(  .*)?", line))]
    numbers = [int(number) for line in lines for number in line.split(",")]
    assert set(range(2, 200)) - set(numbers) <= {1, 3, 5, 7, 9, 11, 13, 101, 103, 105, 107}


def test_reasons_that_differ_in_a_number_are_told_once_and_what_differs_for_each() -> None:
    text = " ".join(shown(many(100)).split())
    assert text.count("Bring broker 1 back first.") == 1
    assert (
        "no election: 50 partitions: Bring broker 1 back first. If it cannot come back: designate 2, which loses 0"
        in text
    )
    assert "and 50 partitions: the same, but: If it cannot come back: designate 2, which loses 1 offsets." in text


def advised(partition: int, situation: Situation, action: AdviceAction, *brokers: int) -> NotPlanned:
    reason = f"One of {partition + 1:,} reasons{'!' * partition}."
    return NotPlanned(
        "orders", partition, Unplanned.ADVISED, situation, reason, action=action, brokers=brokers, command=("explain",)
    )


def test_of_much_advice_there_is_a_row_for_each_thing_to_do() -> None:
    """They were 400 lines for twelve thousand partitions and five brokers that were down."""
    lack = [advised(number, Situation.UNDER_MIN_ISR, AdviceAction.RESTORE_REPLICATION, 3 + number) for number in (0, 1)]
    led = [*lack, advised(2, Situation.UNDER_MIN_ISR, AdviceAction.RESCUE, 5)]
    start = [advised(number, Situation.WAITING_FOR_ELR, AdviceAction.BRING_BACK, 4, 7) for number in (3, 4, 5)]
    start[1] = replace(start[1], then_designate=True)
    read = [advised(6, Situation.NO_LIVE_REPLICA, AdviceAction.GET_MORE_INFORMATION, 9)]
    keep = [advised(7, Situation.WAITING_FOR_LAST_KNOWN_LEADER, AdviceAction.HOLD, 9)]
    other = [advised(8, Situation.UNKNOWN, AdviceAction.GET_MORE_INFORMATION)]
    few, many = plan(*led, *start, *read, *keep), plan(*led, *start, *read, *keep, *other, NOT_NEEDED)
    assert shown(few, width=80).count(" reasons!") == 7
    assert (
        shown(many, width=80)
        == """\
No election planned, for the reasons below.
Do    1. Look at the advice before you start broker 4 (orders:3-5):
         kelr explain orders:3-5 -b kafka-1:9092
      2. Look at the advice before you start broker 7 (orders:3-5):
         kelr explain orders:3-5 -b kafka-1:9092
      3. Keep broker 9 down until these partitions have a leader. (Broker 9:
         orders:7)

no election: 9 partitions. The reason for each: -o wide
PARTITIONS  SITUATION                      INSTEAD
         1  no-live-replica                read the log of 9
         1  waiting-for-last-known-leader  keep 9 down
         2  waiting-for-elr                start 4 or 7
         1  waiting-for-elr                start 4 or 7, then designate
         2  under-min-isr                  return 3 and 4 to the ISR
         1  under-min-isr                  save records, return 5 to the ISR
         1  unknown                        kelr explain
  if they cannot come back: kelr recover plan orders:3-5 --gone 4,7 -b kafka-1:9092

not needed: orders:2: broker 2 leads
"""
    )
    assert shown(many, width=80, format=OutputFormat.WIDE).count(" reasons!") == 8


def test_who_waits_for_a_broker_gets_the_command_for_when_it_never_comes_back() -> None:
    left = many(1).not_planned
    text = shown(plan(*left))
    assert f"  if it cannot come back: kelr recover plan {left[0].address} --gone 1 -b kafka-1:9092\n" in text
    (item,) = json.loads(shown(plan(*left), format=OutputFormat.JSON))["items"]
    assert item["not_planned"]["command_if_gone"] == f"kelr recover plan {left[0].address} --gone 1 -b kafka-1:9092"
    refused = json.loads(shown(plan(*REFUSED), format=OutputFormat.JSON))["items"][0]
    assert refused["not_planned"]["command_if_gone"] is None


def waits(partition: int, reason: str, *brokers: int) -> NotPlanned:
    return replace(
        advised(partition, Situation.WAITING_FOR_ELR, AdviceAction.BRING_BACK, *brokers), reason=reason, command=()
    )


def test_how_to_plan_without_the_same_brokers_is_said_once() -> None:
    """It stood below each reason."""
    text = shown(plan(waits(1, "One.", 4), waits(2, "Another!", 4), waits(3, "For another broker?", 7)))
    assert text.count("--gone 4") == text.count("--gone 7") == 1
    assert "kelr recover plan orders:1-2 --gone 4" in text
    assert text.index("Another!") < text.index("--gone 4") < text.index("For another broker?")


def test_a_command_of_the_steps_is_not_repeated_below_the_reasons() -> None:
    look = replace(waits(1, "One.", 4), command=("explain", "orders:1"))
    text = shown(plan(look))
    assert "Do    Look at the advice before you start broker 4" in text
    assert text.count("kelr explain orders:1 -b kafka-1:9092") == 1


def test_better_advice_that_differs_in_offsets_alone_is_told_once() -> None:
    def against(partition: int, end: int, broker: int = 4) -> PlannedElection:
        text = f"Save {end // 2} offsets, from {end // 2} on. Start broker {broker}: its log ends at {end}."
        return replace(LOSSY, partition=partition, against=Advice(AdviceAction.BRING_BACK, text, broker))

    elections = (against(1, 50), against(2, 62), against(3, 62, broker=7))
    text = " ".join(shown(plan(*elections)).split())
    one = "Save 25 offsets, from 25 on. Start broker 4: its log ends at 50. These offsets are those of orders:1."
    assert (
        f"Better {one} (orders:1-2) Save 31 offsets, from 31 on. Start broker 7: its log ends at 62. (orders:3)" in text
    )
    wide = shown(plan(*elections), format=OutputFormat.WIDE)
    assert wide.count("Start broker 4: its log ends at") == 2


def test_wide_says_why_and_how_for_each() -> None:
    text = shown(MIXED, format=OutputFormat.WIDE)
    for one in MIXED.elections:
        assert one.reason in text
    assert "reorder, elect, restore" in text


def test_the_same_plan_reads_the_same_without_color() -> None:
    colored = shown(MIXED, width=120, color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == shown(MIXED, width=120)


def test_a_plan_that_loses_nothing_says_so() -> None:
    assert "Loss  None.\n" in shown(plan(PREFERRED))
    promised = replace(PREFERRED, loss=replace(PREFERRED.loss, **PROMISED))
    of = "of what was committed with min ISR 2, if fewer than 2 replicas lost data"
    assert totals_in_words(plan(promised)) == f"1 election. Lost: None {of}."


def test_a_plan_without_elections_says_so_and_why() -> None:
    head = "No election planned: none is needed."
    assert shown(plan(NOT_NEEDED)) == f"{head}\n\nnot needed: orders:2: broker 2 leads\n"
    waits = replace(NOT_NEEDED, why=Unplanned.ADVISED, situation=Situation.WAITING_FOR_ELR)
    assert shown(plan(waits)).startswith("No election planned, for the reasons below.\n")


def test_with_a_plan_file_one_command_rescues_everything() -> None:
    context = PlanContext(rescue_commands=(("rescue", "dump", "--plan", "plan.json", "--out", "tail.kelr-rescue"),))
    text = shown(MIXED, context=context)
    assert "kelr rescue dump --plan plan.json --out tail.kelr-rescue -b kafka-1:9092" in text
    assert "--from-replica" not in text


def rescues_in(text: str) -> list[str]:
    return [
        f"kelr rescue dump{line.partition('kelr rescue dump')[2]}"
        for line in text.splitlines()
        if "kelr rescue" in line
    ]


def test_where_many_partitions_lose_records_one_command_for_each_leader_rescues_them_without_a_plan() -> None:
    answered = RescueStep(1, 116, 135, reachable=True)
    counted = replace(NINETEEN_LOST, total=Bounds(19, 19), unheard=())
    lossy = replace(LOSSY, rescue=(answered,), loss=counted)
    many = [replace(lossy, partition=number, elect=2 + number % 2) for number in range(10, 15)]
    assert rescues_in(shown(plan(*many))) == [
        "kelr rescue dump orders:10,12,14 --elect 2 --out lost-to-2.kelr-rescue -b kafka-1:9092",
        "kelr rescue dump orders:11,13 --elect 3 --out lost-to-3.kelr-rescue -b kafka-1:9092",
    ]


def waiting(partition: int, leader: int, reason: str, *more: str) -> NotPlanned:
    out = f"lost-to-{leader}.kelr-rescue"
    return NotPlanned(
        "orders",
        partition,
        Unplanned.ADVISED,
        Situation.WAITING_FOR_ELR,
        reason,
        action=AdviceAction.BRING_BACK,
        brokers=(leader,),
        rescue=("rescue", "dump", f"orders:{partition}", "--elect", str(leader), *more, "--out", out),
    )


def test_however_many_partitions_and_reasons_there_are_one_command_saves_before_the_return_of_one_broker() -> None:
    first = [waiting(number, 1, "Save first. Bring broker 1 back.") for number in range(3000)]
    others = [
        waiting(3000, 1, "Broker 1 was not shut down cleanly.", "--logs", "FILE"),
        waiting(3001, 1, "Broker 3 is on a disk.", "--log-dir", "DIRECTORY"),
        waiting(3002, 4, "Bring broker 4 back."),
    ]
    text = shown(plan(*first, *others))
    assert rescues_in(text) == [
        "kelr rescue dump orders:0-3001 --elect 1 --log-dir DIRECTORY --logs FILE --out lost-to-1.kelr-rescue"
        " -b kafka-1:9092",
        "kelr rescue dump orders:3002 --elect 4 --out orders-3002-lost-to-4.kelr-rescue -b kafka-1:9092",
    ]
    assert text.count("Save first. Bring broker 1 back.") == 1
    assert text.count("  save first: with the command above that writes lost-to-1.kelr-rescue\n") == 3
    following = next_of([*first, *others])
    assert following is not None
    assert following[:5] == ("rescue", "dump", "orders:0-3001", "--elect", "1")


def test_what_only_a_dead_brokers_disk_holds_is_rescued_on_its_host() -> None:
    dead = RescueStep(1, 116, 135, reachable=False)
    many = [replace(LOSSY, partition=number, elect=2, rescue=(dead,)) for number in range(10, 15)]
    text = shown(plan(*many))
    assert rescues_in(text) == [
        "kelr rescue dump orders:10-14 --elect 2 --log-dir DIRECTORY --out lost-to-2.kelr-rescue -b kafka-1:9092"
    ]
    assert "1. Keep broker 1 down until its disk is saved. On the host of broker 1, with" in " ".join(text.split())


def test_all_commands_of_a_plan_stand_below_what_they_save() -> None:
    both = replace(LOSSY, rescue=(RescueStep(1, 116, 130, reachable=False), RescueStep(3, 130, 135, reachable=True)))
    dump = ("rescue", "dump", "--plan", "plan.json")
    disk = (*dump, "--from-replica", "1", "--log-dir", "DIRECTORY", "--out", "plan-from-1.kelr-rescue")
    context = PlanContext(rescue_commands=((*dump, "--out", "plan.kelr-rescue"), disk))
    text = shown(plan(both), context=context)
    assert rescues_in(text)[:2] == [
        "kelr rescue dump --plan plan.json --out plan.kelr-rescue -b kafka-1:9092",
        f"kelr {' '.join(disk)} -b kafka-1:9092",
    ]
    steps = " ".join(text.split())
    assert "Do 1. kelr rescue dump" in steps
    assert "2. Keep broker 1 down until its disk is saved. On the host of broker 1, with --log-dir" in steps


def asked(*entries: PlannedElection) -> str:
    out = io.StringIO()
    output = Output(out, io.StringIO(), connection_flags=("-b", "kafka-1:9092"))
    show_question(output, plan(*entries), STOCK)
    return " ".join(out.getvalue().split())


def test_before_an_election_the_tail_of_a_live_broker_and_the_disk_of_a_dead_one_are_both_named() -> None:
    tail = replace(LOSSY, partition=0, loss=replace(NINETEEN_LOST, total=Bounds(19, 19), unheard=()), hold=())
    disk = replace(LOSSY, rescue=(), loss=Loss(LossCertainty.UNKNOWN, unheard=(1,), reason="the log of 1 was not read"))
    text = asked(tail, disk)
    assert "1. Save what broker 2 truncates at once, and keep broker 1 down until its disk is saved." in text
    assert "kelr rescue dump orders:0-1 --elect 3 --log-dir DIRECTORY --out lost-to-3.kelr-rescue" in text
    assert "2. Keep broker 1 down until the elections are done, for orders:1." in text


def test_a_disk_that_nobody_read_is_saved_before_an_election_that_needs_it_not_to_be_held() -> None:
    """The broker's return elects nobody, and truncates all the same."""
    unread = replace(LOSSY, rescue=(), hold=(), loss=Loss(LossCertainty.UNKNOWN, unheard=(1,), reason="1 was not read"))
    assert "Do Keep broker 1 down until its disk is saved. On the host of broker 1" in asked(unread)
    assert "until its disk is saved" not in asked(replace(unread, loss=NOTHING_LOST, consent=Consent.YES))


_NO_CONFIGS = "Configs of topic orders could not be read (TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the"
_NOT_TOLD = (
    f"{_NO_CONFIGS} topic): unclean.leader.election.enable is taken as false.",
    "Whether a reassignment is under way is not known (CLUSTER_AUTHORIZATION_FAILED).",
    "What is lost cannot be told: the log of 2 tells no epochs (no READ), so it cannot be compared.",
)


@pytest.mark.parametrize("warning", _NOT_TOLD)
def test_the_first_page_says_what_could_not_be_read(warning: str) -> None:
    weak = [replace(LOSSY, partition=number, warnings=(*LOSSY.warnings, warning)) for number in (1, 2, 3, 7)]
    entries = (*weak, replace(LOSSY, partition=9))
    for text in (" ".join(shown(plan(*entries)).split()), asked(*entries)):
        assert text.count(f"Note {warning} (orders:1-3,7)") == 1
        assert "Note Broker 2 truncates" not in text


@pytest.mark.parametrize(
    "warning",
    [
        "Broker 2 is cordoned, and Kafka takes no order of the replicas that names a cordoned broker: a designation"
        " that changes the order empties its cordoned.log.dirs and restores it at the end.",
        "Whether broker 1 is cordoned (cordoned.log.dirs) is not known: if so, Kafka refuses the new order.",
    ],
)
def test_the_first_page_says_that_a_cordon_goes_or_is_in_the_way(warning: str) -> None:
    """It changes a broker's config, or ends the election; Kafka's unclean election needs no order."""
    told = replace(LOSSY, warnings=(warning,))
    assert (told.method, told.election) == (Method.REORDER, ElectionType.DESIGNATION)
    for text in (" ".join(shown(plan(told)).split()), asked(told)):
        assert f"Note {warning}" in text
    unclean = replace(told, method=Method.UNCLEAN, election=ElectionType.UNCLEAN)
    assert "cordoned" not in asked(unclean)


def test_what_could_not_be_read_of_partitions_without_an_election_is_on_the_first_page_too() -> None:
    note = f"c{_NOT_TOLD[0][1:-1]}"
    where = [TopicPartition("orders", number) for number in (1, 2, 3, 4, 9)]
    context = replace(STOCK, notes={note: where, "rules elr-4.3: the software's version is not known": where})
    text = " ".join(shown(plan(replace(LOSSY, warnings=()), NOT_NEEDED, *REFUSED), context=context).split())
    assert text.endswith(f"Note {_NOT_TOLD[0]} (orders:3-4)")
    assert "software's version" not in text


def back(partition: int, *command: str, rescue: tuple[str, ...] = ()) -> NotPlanned:
    one = waiting(partition, 1, "Because.")
    return replace(one, command=command or ("describe", f"orders:{partition}", "--watch"), rescue=rescue)


def test_a_broker_is_not_started_for_others_while_one_partition_asks_for_its_disk() -> None:
    unread = back(3, "recover", "collect", "--log-dir", "DIRECTORY", "--out", "broker-1.kelr")
    text = " ".join(shown(plan(back(0), unread, back(2))).split())
    read = (
        "Do Read the disk of broker 1 before it starts, unless its last shutdown was clean (orders:3). Plan again with"
        " --logs broker-1.kelr:"
    )
    assert f"{read} kelr recover collect --log-dir DIRECTORY --out broker-1.kelr" in text
    assert "Start broker 1" not in text
    assert "Do Start broker 1. (Broker 1: orders:0,2)" in " ".join(shown(plan(back(0), back(2))).split())


def test_what_a_start_truncates_is_saved_before_it() -> None:
    dump = ("rescue", "dump", "orders:3", "--elect", "1", "--out", "orders-3-lost-to-1.kelr-rescue")
    text = " ".join(shown(plan(back(0), back(3, rescue=dump))).split())
    saved = f"Do 1. Save first what others truncate once broker 1 leads (orders:3): kelr {' '.join(dump)}"
    assert f"{saved} -b kafka-1:9092 2. Start broker 1. (Broker 1: orders:0,3)" in text


def test_what_a_led_partition_would_lose_is_saved_before_a_broker_starts_for_others() -> None:
    """An unclean election has made 3 the leader: the disk of 1 has the only copy."""
    dump = ("rescue", "dump", "orders:3", "--elect", "3", "--log-dir", "DIRECTORY", "--out", "saved.kelr-rescue")
    given_up = replace(back(3, rescue=dump), action=AdviceAction.RESCUE, leader=3)
    text = " ".join(shown(plan(back(0), given_up)).split())
    saved = "Do 1. Save what others hold and broker 3 lacks, before any of them starts (orders:3)."
    assert f"{saved} On the host of each, with --log-dir for each log directory: kelr rescue dump orders:3" in text
    assert "2. Start broker 1. (Broker 1: orders:0)" in text
    assert "Do Save what others hold" in " ".join(shown(plan(given_up)).split())


def test_where_the_advice_goes_on_otherwise_no_start_is_a_step() -> None:
    text = " ".join(shown(plan(back(0), back(3, "snapshot", "before.kelr"))).split())
    assert "Do Look at the advice before you start broker 1 (orders:3): kelr explain orders:3" in text
    assert "Start broker 1" not in text


def test_a_broker_is_started_once_the_elections_are_done_and_is_named() -> None:
    text = " ".join(shown(plan(LOSSY, back(3))).split())
    assert "Start broker 1 once the elections are done, not before. (Broker 1: orders:3)" in text


@pytest.mark.parametrize("what", [MIXED, plan(LOSSY), plan(NOT_NEEDED), plan(*REFUSED)])
def test_the_document_is_as_its_schema_says(what: Plan) -> None:
    document = json.loads(shown(what, format=OutputFormat.JSON))
    assert violations(document, "plan") == []


def test_the_document_holds_the_plan_and_what_it_takes() -> None:
    document: dict[str, Any] = json.loads(shown(MIXED, format=OutputFormat.JSON))
    assert [(item["topic"], item["partition"], item["status"]) for item in document["items"]] == [
        ("orders", 0, "elect"),
        ("orders", 1, "elect"),
        ("orders", 2, "not-needed"),
        ("orders", 3, "refused"),
        ("orders", 4, "refused"),
        ("payments", 0, "elect"),
    ]
    assert (document["consent"], document["accept_loss"], document["lost_at_least"]) == ("force", "19+", 19)
    assert document["lost_at_most"] is None
    lossy = document["items"][1]["planned"]
    assert (lossy["elect"], lossy["order"], lossy["restores"]) == (3, [3, 1, 2], [1, 2, 3])
    assert [one["command"] for one in lossy["alternatives"]] == [
        "kelr elect --election-type longest_log_aggressive orders:1 -b kafka-1:9092",
        "kelr elect --election-type longest_log_balanced orders:1 -b kafka-1:9092",
        "kelr elect --election-type designation --designate 1 orders:1 -b kafka-1:9092",
    ]
    assert [(one["start"], one["leader"], one["rescue"]) for one in lossy["alternatives"]] == [
        (None, 2, None),
        (None, None, None),
        (1, 1, "kelr rescue dump orders:1 --elect 1 --out orders-1-lost-to-1.kelr-rescue -b kafka-1:9092"),
    ]
    against = lossy["against"]
    assert (against["action"], against["replica"], against["command"]) == ("bring-back", 1, None)
    assert document["items"][0]["planned"]["against"] is None
    assert lossy["rescue"][0]["command"].startswith("kelr rescue dump orders:1 --elect 3 --log-dir DIRECTORY --out")
    assert lossy["damage"][0]["afterwards"].startswith("kafka-transactions.sh --bootstrap-server kafka-1:9092")
    assert document["items"][3]["not_planned"]["command"] == "kelr explain orders:3 -b kafka-1:9092"


def test_no_loss_to_accept_is_null() -> None:
    document = json.loads(shown(plan(PREFERRED, UNCOUNTED), format=OutputFormat.JSON))
    assert (document["consent"], document["accept_loss"]) == (Consent.FORCE.value, None)


def test_csv_has_a_line_for_each_partition() -> None:
    rows = list(csv.DictReader(io.StringIO(shown(MIXED, format=OutputFormat.CSV))))
    assert [(row["partition"], row["status"], row["elect"], row["lost_at_least"], row["consent"]) for row in rows] == [
        ("0", "elect", "2", "0", "yes"),
        ("1", "elect", "3", "19", "loss"),
        ("2", "not-needed", "", "", ""),
        ("3", "refused", "", "", ""),
        ("4", "refused", "", "", ""),
        ("0", "elect", "3", "", "force"),
    ]


def test_losses_in_words() -> None:
    assert loss_in_words(NOTHING_LOST) == "Nothing: 2 is in the ISR, so it holds all of it."
    assert loss_in_words(NINETEEN_LOST).startswith(
        "UNKNOWN, at least 19 offsets (116..134); at least 4 of them committed: "
    )


def test_lists_of_partitions_are_compact_and_say_what_they_leave_out() -> None:
    addresses = [TopicPartition(f"t{topic:02}", partition) for topic in range(25) for partition in (0, 1, 2, 5)]
    assert targets_of(addresses)[:2] == ("t00:0-2,5", "t01:0-2,5")
    assert named(addresses).endswith("t19:0-2,5 and 20 partitions of 5 more topics")
    assert named(addresses, most=25).endswith("t24:0-2,5")


@given(st.sets(st.tuples(st.sampled_from(["a", "orders", "t.1"]), st.integers(0, 40)), min_size=1))
def test_targets_name_these_partitions_and_no_others(pairs: set[tuple[str, int]]) -> None:
    addresses = [TopicPartition(topic, partition) for topic, partition in pairs]
    selection = select(targets_of(addresses))
    assert selection.named_partitions() == pairs


LOSSES = st.builds(
    lambda grade, least, more: Loss(
        grade,
        None if grade is LossCertainty.UNKNOWN else Bounds(0),
        None,
        None if least is None else Bounds(least, more),
    ),
    st.sampled_from(LossCertainty),
    st.one_of(st.none(), st.integers(0, 3)),
    st.none(),
) | st.integers(0, 3).map(
    lambda lost: Loss(LossCertainty.BOUNDED, Bounds(0, lost), Bounds(0, lost), Bounds(lost, lost))
)


@given(st.lists(st.tuples(LOSSES, st.sampled_from(Consent)), min_size=1, max_size=4))
def test_nothing_is_called_lost_nowhere_but_where_that_is_counted(losses: list[tuple[Loss, Consent]]) -> None:
    elections = [
        replace(PREFERRED, partition=number, loss=loss, consent=consent)
        for number, (loss, consent) in enumerate(losses)
    ]
    text = totals_in_words(plan(*elections))
    if "Lost: None." in text or "Lost: None," in text:
        assert all(loss.total == Bounds(0, 0) and consent is Consent.YES for loss, consent in losses)
    if "None committed" in text:
        assert all(consent is Consent.YES for _, consent in losses)
    unknown = [number for number, (loss, _) in enumerate(losses) if loss.total is None or loss.total.at_most is None]
    if unknown and any(consent is not Consent.YES for _, consent in losses):
        assert "UNKNOWN" in text


def test_refusals_with_different_reasons_stand_apart() -> None:
    other = NotPlanned("orders", 9, Unplanned.REFUSED, Situation.UNKNOWN, "its ELR is not known")
    text = shown(plan(*REFUSED, other))
    assert "orders:3-4: no replica is live" in text
    assert "refused: orders:9: its ELR is not known" in text


def test_a_line_of_kafkas_own_tools_comes_before_what_kelr_does() -> None:
    """ "Write unclean.leader.election.enable=false at once" named no command."""
    line = topic_config("orders", "unclean.leader.election.enable", "false")
    forbid = replace(waiting(5, 1, "Write it at once."), stock=line, command=("explain", "orders:5"))
    several = (forbid, replace(forbid, partition=6, command=("explain", "orders:6")))
    text = shown(plan(*several)).splitlines()
    typed = line.replace("{stock}", "--bootstrap-server kafka-1:9092")
    assert [one for one in text if "kafka-configs.sh" in one] == [f"  {typed}"]
    assert text.index(f"  {typed}") < next(at for at, one in enumerate(text) if "kelr rescue dump" in one)
    document = json.loads(shown(plan(forbid, *REFUSED), format=OutputFormat.JSON))
    assert violations(document, "plan") == []
    assert [item["not_planned"]["stock"] for item in document["items"]] == [None, None, typed]


def test_in_full_whatever_the_number() -> None:
    text = shown(MIXED, full=True)
    for one in MIXED.elections:
        assert f"{one.address}: elect broker {one.elect} ({one.election.value})" in text
    assert isinstance(MIXED.elections[0], PlannedElection)
    assert str(Target(topic="orders", partitions=(3, 4))) in text


@pytest.mark.parametrize(
    ("nothing_seen", "out"), [(None, ""), (True, ""), (False, "No election planned: none is needed.\n")]
)
def test_a_plan_says_nothing_of_partitions_that_nobody_could_look_at(nothing_seen: bool | None, out: str) -> None:
    stdout, stderr = io.StringIO(), io.StringIO()
    error = TopicError("nosuch", "UNKNOWN_TOPIC_OR_PARTITION")
    show_plan(Output(stdout, stderr), plan(), errors=(error,), nothing_seen=nothing_seen)
    assert stdout.getvalue() == out
    assert "nosuch" in stderr.getvalue()


def test_a_plan_without_an_election_says_nothing_of_losses() -> None:
    """Partitions that wait may lose what nobody has read."""
    assert totals_in_words(plan(NOT_NEEDED)) == "No election planned."
