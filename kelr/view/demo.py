"""The demo's closing table: the stock unclean election against kelr's recommendation, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kelr.model import AdviceAction, Decision, ElectionType, Loss, Outcome
from kelr.view.columns import Column, View
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
    def stock_loss(self) -> int:
        """Offsets known to be lost by the stock election."""
        return _least(self.stock.loss)

    @property
    def stock_committed_loss(self) -> int:
        loss = self.stock.loss
        return 0 if loss is None or loss.committed is None else loss.committed.at_least

    @property
    def best_loss(self) -> int:
        return _least(self.best.loss)

    def _outcome(self, kind: ElectionType) -> Outcome:
        return next(outcome for outcome in self.decision.elections if outcome.election is kind)


def _least(loss: Loss | None) -> int:
    return 0 if loss is None or loss.total is None else loss.total.at_least


def _lost(loss: Loss | None) -> Text:
    if loss is None or loss.total is None:
        return plain("?")
    if not loss.total.at_least:
        return plain("0" if loss.total.exact else "0 known")
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
        Column("partition", "PARTITION", lambda row: row.name, type="string", about="TOPIC:PARTITION."),
        Column(
            "replicas", "REPLICAS", lambda row: row.decision.replicas, type="integer[]", about="In assignment order."
        ),
        Column(
            "stock_elects",
            "STOCK ELECTS",
            lambda row: row.stock.elected,
            type="integer?",
            about="Whom a stock unclean election would elect; null: nobody.",
        ),
        Column(
            "stock_loses",
            "AND LOSES",
            lambda row: row.stock_loss,
            lambda row: _lost(row.stock.loss),
            type="integer",
            about="Offsets that it is known to lose.",
        ),
        Column(
            "kelr",
            "KELR RECOMMENDS",
            lambda row: row.decision.advice.action,
            _recommendation,
            type="string",
            about="What kelr recommends.",
        ),
        Column(
            "else_designates",
            "ELSE DESIGNATE",
            lambda row: row.best.elected,
            type="integer?",
            about="The live replica with the best log; null: none was heard.",
        ),
        Column(
            "else_loses",
            "AND LOSES",
            lambda row: row.best_loss,
            lambda row: _lost(row.best.loss),
            type="integer",
            about="Offsets that designating it is known to lose.",
        ),
    ),
)


def comparison_in_words(rows: Sequence[Comparison]) -> str:
    """The table's sum in a sentence or two."""
    worse = [row for row in rows if row.stock_loss > row.best_loss]
    lost = sum(row.stock_loss for row in rows)
    committed = sum(row.stock_committed_loss for row in rows)
    kept = lost - sum(row.best_loss for row in rows)
    return (
        f"On {len(worse)} of {len(rows)} partitions the stock election takes a replica that is not the best. It would"
        f" lose {lost} offsets that a live replica holds, {committed} of them known to be committed (acks=all)."
        f" Designating the best log keeps {kept} of them; bringing the awaited broker back keeps what only its disk"
        " has, too."
    )
