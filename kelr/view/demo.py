"""The demo's closing table: the stock unclean election against kelr's recommendation, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kelr.model import AdviceAction, Decision, ElectionType, Loss, Outcome
from kelr.simulation.outage import OutageOutcome
from kelr.view.columns import View, column
from kelr.view.styled import Style, Text, plain, styled


@dataclass(frozen=True, slots=True)
class Comparison:
    """One partition's decision, as the demo's closing table shows it."""

    decision: Decision

    @property
    def name(self) -> str:
        return f"{self.decision.topic}:{self.decision.partition}"

    @property
    def stock(self) -> Outcome:
        return self._outcome(ElectionType.UNCLEAN)

    @property
    def best(self) -> Outcome:
        """Designating the live replica with the best log that was heard."""
        return self._outcome(ElectionType.LONGEST_LOG_AGGRESSIVE)

    @property
    def stock_loss(self) -> int | None:
        """Offsets known to be lost by the stock election; None where nothing could be counted."""
        return _least(self.stock.loss)

    @property
    def stock_committed_loss(self) -> int | None:
        """Those of them that some replica knows to be committed; None where nothing could be counted."""
        loss = self.stock.loss
        return None if loss is None or loss.committed is None else loss.committed.at_least

    @property
    def best_loss(self) -> int | None:
        """Offsets known to be lost by designating the best log; None where nothing could be counted."""
        return _least(self.best.loss)

    @property
    def gain(self) -> int | None:
        """How many offsets the best log keeps that the stock election loses; None where either is not known."""
        stock, best = self.stock_loss, self.best_loss
        return None if stock is None or best is None else stock - best

    def _outcome(self, kind: ElectionType) -> Outcome:
        return next(outcome for outcome in self.decision.elections if outcome.election is kind)


def _least(loss: Loss | None) -> int | None:
    return None if loss is None or loss.total is None else loss.total.at_least


def _lost(loss: Loss | None) -> Text:
    if loss is None or loss.total is None:
        return plain("?")
    if not loss.total.at_least:
        return plain(str(loss.total))
    committed = loss.committed.at_least if loss.committed else 0
    known = f", {committed} committed" if committed else ""
    return styled(f"{'' if loss.total.exact else 'at least '}{loss.total.at_least}{known}", Style.BAD)


def _recommendation(row: Comparison) -> Text:
    advice = row.decision.advice
    if advice.action is AdviceAction.BRING_BACK and advice.replica is not None:
        return plain(f"bring {advice.replica} back, if its disk is whole")
    return plain(advice.action.value + ("" if advice.replica is None else f" {advice.replica}"))


COMPARISON_VIEW: View[Comparison] = View(
    "kelr/demo",
    (
        column("partition", "PARTITION", "string", "TOPIC:PARTITION.", lambda row: row.name),
        column("replicas", "REPLICAS", "integer[]", "In assignment order.", lambda row: row.decision.replicas),
        column(
            "stock_elects",
            "STOCK ELECTS",
            "integer?",
            "Whom a stock unclean election would elect; null: none.",
            lambda row: row.stock.elected,
        ),
        column(
            "stock_loses",
            "AND LOSES",
            "integer?",
            "Offsets that it is known to lose; null: not known, or no leader is elected.",
            lambda row: row.stock_loss,
            text=lambda row: _lost(row.stock.loss),
        ),
        column(
            "kelr",
            "KELR RECOMMENDS",
            "string",
            "What kelr recommends.",
            lambda row: row.decision.advice.action,
            text=_recommendation,
        ),
        column(
            "else_designates",
            "ELSE DESIGNATE",
            "integer?",
            "The live replica with the best log; null: none was read.",
            lambda row: row.best.elected,
        ),
        column(
            "else_loses",
            "AND LOSES",
            "integer?",
            "Offsets that designating it is known to lose; null: not known, or none was read.",
            lambda row: row.best_loss,
            text=lambda row: _lost(row.best.loss),
        ),
    ),
)


def comparison_in_words(rows: Sequence[Comparison]) -> str:
    """The table's sum in a sentence or two."""
    gains = [row.gain or 0 for row in rows]
    lost = sum(row.stock_loss or 0 for row in rows)
    committed = sum(row.stock_committed_loss or 0 for row in rows)
    unknown = sum(row.gain is None for row in rows)
    uncounted = f" What {unknown} of them would lose is not known, and not in these numbers." if unknown else ""
    return (
        f"On {sum(gain > 0 for gain in gains)} of {len(rows)} partitions the stock election takes a replica that is not"
        f" the best. It would lose {lost} offsets that a live replica holds, {committed} of them known to be committed."
        f" Designating the best log keeps {sum(gains)} of them; bringing the awaited broker back keeps what only its"
        f" disk has, too.{uncounted}"
    )


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
