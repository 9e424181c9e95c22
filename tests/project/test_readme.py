"""The explanation in README.md is what kelr says of that incident, on a terminal of 112 columns."""

from __future__ import annotations

import io
from pathlib import Path

from kelr.engine import decide
from kelr.view.explain import Explanation
from kelr.view.explain_columns import Explained
from kelr.view.explain_report import show_decisions
from kelr.view.output import Output
from tests.incident import CLUSTER, INCIDENT

README = Path(__file__).parents[2] / "README.md"


def explanation() -> str:
    stream = io.StringIO()
    output = Output(stream, io.StringIO(), width=112, connection_flags=("-b", "kafka-1:9092"))
    show_decisions(
        output,
        Explanation(output.next_command, width=112),
        [Explained(decide(INCIDENT, INCIDENT.partitions[1]), INCIDENT.taken_at_ms)],
        cluster=CLUSTER,
        source="live",
        errors=[],
        full=True,
    )
    return stream.getvalue().rstrip("\n")


def test_the_explanation_in_the_readme_is_what_kelr_says() -> None:
    _, _, rest = README.read_text(encoding="utf-8").partition("$ kelr explain orders:1 -b kafka-1:9092\n")
    block, _, _ = rest.partition("\n```")
    assert block == explanation()
