"""The simulated demo's closing table: one power outage under every rule set."""

from __future__ import annotations

from kelr.simulation.outage import OutageOutcome
from kelr.view.columns import View, column
from kelr.view.styled import Style, Text, plain, styled


def _elected(row: OutageOutcome) -> Text:
    return styled("none", Style.NOTICE) if row.elected is None else plain(str(row.elected))


def _when(row: OutageOutcome) -> Text:
    last = row.back[-1]
    if row.elected is None:
        return plain("an operator has to elect")
    return plain(f"when {last} is back" + ("" if row.elected == last else ", and both logs were compared"))


OUTAGE_VIEW: View[OutageOutcome] = View(
    "kelr/demo-outage",
    (
        column("rules", "RULES", "string", "The rule set.", lambda row: row.rules.name),
        column("kafka", "WHICH KAFKA", "string", "Who runs it.", lambda row: row.rules.title, prose=True),
        column("elected", "ELECTS", "integer?", "Who leads; null: no leader.", text=_elected),
        column("back", "WHEN", "integer[]", "Brokers that were back by then.", text=_when),
        column(
            "lost",
            "LOST FOR EVER",
            "integer",
            "Records acknowledged with acks=all that no log holds any more.",
            text=lambda row: styled(str(row.lost), Style.BAD if row.lost else Style.GOOD),
            right=True,
        ),
    ),
)
