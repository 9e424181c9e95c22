"""The scenario language: what can be written, and what is said of what cannot."""

from __future__ import annotations

import re

import pytest

from kelr.simulation.language import Directive, ScenarioError, directives_of, parse, render, run
from kelr.simulation.session import Session

CLUSTER = "cluster rules=elr brokers=1,2 min-isr=1\npartition a:0 replicas=1,2\n"
ALL_BROKERS = ",".join(map(str, range(100)))


def rewritten(text: str) -> str:
    scenario = parse(text)
    return render(scenario, run(scenario, Session().perform))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fence 1\n", "line 1: a scenario starts with a cluster"),
        ("\n----\n", "line 2: ---- stands behind directives; there is none above it"),
        ("cluster rules=elr brokers=1\n# oh\n----\n", "line 3: ---- stands behind directives"),
        ("cluster rules=zab brokers=1\n", "line 1: there is no rule set 'zab'"),
        ("cluster rules=elr brokers=1,x\n", "line 1: 'x' is not a number"),
        ("cluster rules=elr brokers=1 min_isr=2\n", "line 1: cluster has no option min_isr"),
        ("cluster rules=elr brokers=1 min-isr=0\n", "line 1: min-isr is 1 or more"),
        ("cluster rules=elr brokers=1 unclean=yes\n", "line 1: unclean is true or false, not 'yes'"),
        ("cluster rules=elr brokers=1 brokers=2\n", "line 1: an option is given twice"),
        ("cluster rules=elr brokers=1,1\n", "line 1: a broker is there twice in 1,1"),
        ("cluster rules=elr\n", "line 1: a cluster has brokers"),
        ("cluster brokers=1 high-watermark=high\n", "line 1: high-watermark is min-isr or any-isr, not 'high'"),
        (CLUSTER + "explode 1\n", "line 3: there is no directive 'explode'"),
        (CLUSTER + "restart 1\n", "line 3: say restart N clean, or unclean"),
        (CLUSTER + "register -4 unclean\n", "line 3: a broker's id is 0 or more"),
        (CLUSTER + "decide b:0\n", "line 3: there is no partition b:0"),
        (CLUSTER + "decide a:0 a:0\n", "line 3: decide takes one partition"),
        (CLUSTER + "partition b:0 replicas=1\ndecide\n", "line 4: name one of 2 partitions"),
        (CLUSTER + "partition b replicas=1\n", "line 3: 'b' is not a partition such as orders:0"),
        (CLUSTER + "partition b:-1 replicas=1\n", "line 3: 'b:-1' is not a partition such as orders:0"),
        (CLUSTER + f"partition b:{2**31} replicas=1\n", "line 3: 'b:2147483648' is not a partition such as orders:0"),
        (CLUSTER + "delete-records before=-5\n", "line 3: before is 0 or more"),
        (CLUSTER + "partition b/c:1 replicas=1\n", "line 3: 'b/c' is not a topic's name"),
        (CLUSTER + "partition b:1\n", "line 3: a partition has replicas"),
        (CLUSTER + "topic b\n", "line 3: a topic has replicas"),
        (CLUSTER + "feature\n", "line 3: say feature elr=on, elr=off, or metadata.version=N"),
        (CLUSTER + "config min-isr=2 unclean=default\n", "line 3: take configs back in one directive"),
        (CLUSTER + "reassign\n", "line 3: reassign needs the new replicas, or cancel"),
        (CLUSTER + "log 1\n", "line 3: a log has an end"),
        (CLUSTER + "log 1 end=5 lineage=1\n", "line 3: a lineage is EPOCH:END"),
        (CLUSTER + "log 1 end=5 lineage=1:3,0:5\n", "line 3: a lineage has its epochs in order"),
        (CLUSTER + "log 1 unheard=why\n", "line 3: 'why' is no reason"),
        (CLUSTER + "fence\n", "line 3: fence needs a broker"),
        (CLUSTER + "unfence 1 2\n", "line 3: unfence takes one broker"),
        (CLUSTER + "crash 1\nfence 1\nunfence 1\n", "line 5: broker 1 does not run"),
        (CLUSTER + "answer 1\n", "line 3: broker 1 was not asked, or has answered already"),
        (CLUSTER + "crash 1\nreply 1\n", "line 4: broker 1 does not run, so that it answers nothing"),
        (CLUSTER + "arrive 1\n", "line 3: no answer of 1 is on its way"),
        (CLUSTER + "wait soon\n", "line 3: 'soon' is no time such as 5s or 500ms"),
        (CLUSTER + "wait 100000s\n", "line 3: '100000s' is longer than a day"),
        (CLUSTER + "elect designation\n", "line 3: say elect designation N"),
        (CLUSTER + "elect maybe\n", "line 3: there is no election 'maybe'"),
        (CLUSTER + "task daily\n", "line 3: there is no periodic task 'daily'"),
        (CLUSTER + "show size\n", "line 3: nothing to show is called 'size'"),
        (CLUSTER + "produce 0\n", "line 3: a scenario produces 1 to 20000 records in all"),
        (CLUSTER + "produce 5 acks=2\n", "line 3: acks is all or 1 or 0, not '2'"),
        (CLUSTER + "fetch 3\n", "line 3: 3 is no replica of a:0"),
        (CLUSTER + "fetch 2 max=-1\n", "line 3: max is 0 or more"),
        (CLUSTER + "delete-records\n", "line 3: say before=OFFSET"),
        (CLUSTER + "deliver\n", "line 3: no request of a:0's leader is under way"),
        (CLUSTER + "fence 1 2\nisr 1\n", "line 4: a:0 has no leader"),
        (CLUSTER + "restart 9 clean\n", "line 3: there is no broker 9"),
        (CLUSTER + "crash 9\n", "line 3: there is no broker 9"),
        (CLUSTER + "fence 1,2\n", "line 3: brokers stand with blanks between them here, not commas: fence 1 2"),
        (CLUSTER + "crash 1,2\n", "line 3: brokers stand with blanks between them here, not commas: crash 1 2"),
        (CLUSTER + "fetch 1,2\n", "line 3: brokers stand with blanks between them here, not commas: fetch 1 2"),
        (CLUSTER + "log 9 end=3\n", "line 3: 9 is no replica of a:0"),
        (CLUSTER + "partition b:0 replicas=1,2 isr=9\n", "line 3: isr names 9, which is no replica"),
        (CLUSTER + "partition b:0 replicas=1,2 leader=9\n", "line 3: leader names 9, which is no replica"),
        (CLUSTER + "partition b:0 replicas=1,2 adding=9\n", "line 3: adding names 9, which is no replica"),
        (CLUSTER + "partition b:0 replicas=1,2 removing=9\n", "line 3: removing names 9, which is no replica"),
        (CLUSTER + "crash 1 power\nrestart 1 clean\n", "line 4: broker 1 crashed, so it cannot be back cleanly"),
        (CLUSTER + "crash 1\nfence 1\nregister 1 clean\n", "line 5: broker 1 crashed, so it cannot be back cleanly"),
        (CLUSTER + "isr 1\nproduce 3\nisr 1,2\n", "line 5: 2 has not caught up with leader 1"),
    ],
)
def test_a_malformed_step_says_where_and_why(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match="^" + re.escape(message)):
        run(parse(text), Session().perform)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cluster brokers=" + ",".join(map(str, range(101))), "more than 100 brokers in one list"),
        (f"cluster brokers={'9' * 5000}", "is not a number"),
        (f"cluster brokers={2**63}", "is not a number"),
        ("cluster brokers=٣", "is not a number"),
        ("#" * 1_000_001, "the most are 1000000"),
        ("cluster brokers=1\n" + "state\n" * 5001, "no more than 5000 directives"),
        (CLUSTER + "topic b replicas=" + "1/" * 300 + "1", "no more than 200 partitions"),
        ("cluster brokers=1\n" + "".join(f"partition a:{n} replicas=1\n" for n in range(201)), "than 200 partitions"),
        ("cluster brokers=0\n" + "".join(f"register {n} clean\n" for n in range(1, 102)), "than 100 brokers"),
        (
            f"cluster brokers={ALL_BROKERS}\ntopic a replicas={'/'.join([ALL_BROKERS] * 20)}\n"
            f"partition a:0 replicas={ALL_BROKERS}\npartition b:0 replicas=1\n",
            "line 4: a scenario has no more than 2000 replicas",
        ),
        (
            f"cluster brokers={ALL_BROKERS}\ntopic a replicas={'/'.join([ALL_BROKERS] * 21)}\n",
            "line 2: a scenario has no more than 2000 replicas",
        ),
        (
            f"cluster brokers={ALL_BROKERS}\ntopic a replicas={'/'.join([ALL_BROKERS] * 19)}\n"
            f"topic b replicas={'/'.join('1' * 100)}\nreassign b:0 1\nreassign b:0 1,2\n",
            "line 5: a scenario has no more than 2000 replicas",
        ),
        (CLUSTER + "produce 10000\n" * 3, "1 to 20000 records"),
        (CLUSTER + "produce 99999999999999999", "1 to 20000 records"),
        ("x" * 900_000, "'xxx"),
    ],
)
def test_hostile_scenarios_are_refused_in_a_few_words(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)) as raised:
        run(parse(text), Session().perform)
    assert len(str(raised.value)) < 200


def test_a_wrong_expectation_is_noticed_and_rewritten() -> None:
    text = "# A story.\ncluster rules=elr brokers=1\n----\nwrong\n\n# The end.\n"
    assert rewritten(text) == text.replace("wrong", "ok")


def test_a_block_without_output_gets_it() -> None:
    assert rewritten(CLUSTER) == CLUSTER + "----\na:0 leader=1 epoch=0 isr=1,2 elr=- last=-\n"


def test_a_comment_right_behind_a_block_without_output_stays_a_comment() -> None:
    once = rewritten(CLUSTER + "# More.\nstate\n")
    assert rewritten(once) == once
    assert "\n\n# More.\nstate\n----\n" in once


def test_directives_stay_as_they_are_spelled() -> None:
    text = "cluster   brokers=1,2  rules=elr\n----\nok\n"
    assert rewritten(text) == text


def test_windows_line_ends_and_a_missing_last_one_are_read() -> None:
    assert rewritten("\ufeffcluster brokers=1\r\n----\r\nok") == "cluster brokers=1\n----\nok\n"


def test_output_follows_the_order_of_directives() -> None:
    def perform(directive: Directive) -> list[str]:
        return [directive.name]

    assert run(parse("b\na\n----\n"), perform) == [["b", "a"]]


def test_a_directive_comes_with_the_comments_above_it() -> None:
    scenario = parse("# One.\n# Two.\na\nb\n----\nok\n\n#Three.\nc\n")
    assert [(story, directive.name) for story, directive in directives_of(scenario)] == [
        (("One.", "Two."), "a"),
        ((), "b"),
        (("Three.",), "c"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "fence 9",
        "unfence 9",
        "shutdown 9",
        "unregister 9",
        "lose-directory 9",
        "assign-directory 9",
        "flush 9",
        "answer 9",
        "reply 9",
        "arrive 9",
        "no-answer 9",
    ],
)
def test_a_broker_that_is_not_registered_is_refused(line: str) -> None:
    with pytest.raises(ScenarioError, match="line 3: there is no broker 9") as raised:
        run(parse(f"{CLUSTER}{line}\n"), Session().perform)
    assert raised.value.next_step == "registered are 1, 2; register 9 clean adds one"


def test_an_unregistered_broker_whose_logs_are_left_can_come_back() -> None:
    session = Session()
    run(parse(CLUSTER + "fence 2\nunregister 2\ncrash 2\nrestart 2 unclean\n"), session.perform)
    assert session.cluster is not None
    assert session.cluster.running(2)


def test_after_a_crash_a_later_shutdown_is_clean() -> None:
    session = Session()
    run(parse(CLUSTER + "crash 2\nrestart 2 unclean\nshutdown 2\nrestart 2 clean\n"), session.perform)
    assert session.cluster is not None
    assert session.cluster.running(2)


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("fence 1,2", "write fence N...; docs/scenarios.md has examples"),
        ("produce 0", "write produce [TOPIC:P] COUNT [acks=all|1|0]; docs/scenarios.md has examples"),
        ("failover now=1", "write failover; docs/scenarios.md has examples"),
        ("cluster brokers=x", "write cluster rules=RULES brokers=1,2,3 [min-isr=N] [unclean=true]"),
        ("deliver", "propose an ISR first"),
        ("elect online", "there are preferred, unclean, balanced, aggressive, designation"),
    ],
)
def test_an_error_shows_the_directives_form_where_it_offers_nothing_better(line: str, form: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        run(parse(f"{CLUSTER}{line}\n"), Session().perform)
    assert str(raised.value.next_step).startswith(form)


def test_an_error_offers_what_can_be_written_instead() -> None:
    with pytest.raises(ScenarioError) as raised:
        run(parse(CLUSTER + "explode\n"), Session().perform)
    assert raised.value.line == 3
    assert "fence" in str(raised.value.next_step)
