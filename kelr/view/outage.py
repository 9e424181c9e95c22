"""The simulated demo's closing table: one power outage under every rule set."""

from __future__ import annotations

from kelr.simulation.outage import OutageOutcome
from kelr.view.columns import Column, View
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
        Column("rules", "RULES", lambda row: row.rules.name, type="string", about="The rule set."),
        Column("kafka", "WHICH KAFKA", lambda row: row.rules.title, prose=True, type="string", about="Who runs it."),
        Column(
            "elected", "ELECTS", lambda row: row.elected, _elected, type="integer?", about="Who leads; null: no leader."
        ),
        Column("back", "WHEN", lambda row: row.back, _when, type="integer[]", about="Brokers that were back by then."),
        Column(
            "lost",
            "LOST FOR EVER",
            lambda row: row.lost,
            lambda row: styled(str(row.lost), Style.BAD if row.lost else Style.GOOD),
            right=True,
            type="integer",
            about="Records acknowledged with acks=all that no log holds any more.",
        ),
    ),
)
