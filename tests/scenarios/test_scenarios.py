"""Every scenario file prints what it says that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.directives import Session
from tests.scenarios.language import Directive, ScenarioError, parse, render, run

FILES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_scenario(file: Path, rewrite: bool) -> None:
    text = file.read_text(encoding="utf-8")
    scenario = parse(text)
    actual = render(scenario, run(scenario, Session().perform))
    if rewrite and actual != text:
        file.write_text(actual, encoding="utf-8")
        return
    assert actual == text, f"{file.name}: another output than expected; look at it, then pytest --rewrite"


def test_rendering_what_was_expected_changes_nothing() -> None:
    for file in FILES:
        scenario = parse(file.read_text(encoding="utf-8"))
        expected = [block.expected for block in scenario.blocks]
        assert render(scenario, expected) == file.read_text(encoding="utf-8")


CLUSTER = "cluster rules=elr brokers=1,2 min-isr=1\npartition a:0 replicas=1,2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fence 1\n----\n", "line 1: a scenario starts with a cluster"),
        ("cluster rules=elr brokers=1\n", "line 1: a block's directives must be followed by ----"),
        ("cluster rules=elr brokers=1\n# oh\n----\n", "line 1: a block's directives must be followed by ----"),
        ("cluster rules=zab\n----\n", "line 1: there is no rule set 'zab'"),
        ("cluster rules=elr brokers=1,x\n----\n", "line 1: 'x' is not a number"),
        ("cluster rules=elr brokers=1 min_isr=2\n----\n", "line 1: cluster has no option min_isr"),
        (CLUSTER + "explode 1\n----\n", "line 3: there is no directive 'explode'"),
        (CLUSTER + "restart 1\n----\n", "line 3: say restart N clean, or unclean"),
        (CLUSTER + "decide b:0\n----\n", "line 3: there is no partition b:0"),
        (CLUSTER + "partition b:0 replicas=1\ndecide\n----\n", "line 4: name one of 2 partitions"),
        (CLUSTER + "log 1\n----\n", "line 3: a log has an end"),
        (CLUSTER + "fence\n----\n", "line 3: fence needs an argument"),
        (CLUSTER + "elect maybe\n----\n", "line 3: there is no election 'maybe'"),
        (CLUSTER + "log 1 unheard=why\n----\n", "line 3: 'why' is no reason"),
    ],
)
def test_a_malformed_step_says_where_and_why(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match="^" + message.replace("(", r"\(")):
        run(parse(text), Session().perform)


def test_a_wrong_expectation_is_noticed_and_rewritten() -> None:
    text = "# A story.\ncluster rules=elr brokers=1\n----\nwrong\n\n# The end.\n"
    scenario = parse(text)
    assert render(scenario, run(scenario, Session().perform)) == text.replace("wrong", "ok")


def test_output_follows_the_order_of_directives() -> None:
    def perform(directive: Directive) -> list[str]:
        return [directive.name]

    assert run(parse("b\na\n----\n"), perform) == [["b", "a"]]
