"""What ``kelr recover hold`` shows: its price before anything is changed, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kelr.view.columns import Column, Fact, Json, View, column
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.plan_words import partitions_in_words
from kelr.view.styled import Style, Text, plain, styled

if TYPE_CHECKING:
    from kelr.recovery.hold_price import Cleared, HoldPrice

KIND = "kelr/hold"


def hold_view() -> View[Cleared]:
    """One row for each partition that has an ELR or a LastKnownELR."""
    return View(
        KIND,
        (
            column("topic", "TOPIC", "string", "Topic name."),
            column("partition", "PARTITION", "integer", "Its number.", right=True),
            column("leader", "LEADER", "integer?", "Who leads; null: no leader."),
            column("elr", "ELR", "integer[]", "Its ELR, which goes."),
            column("last_known_elr", "LAST KNOWN", "integer[]", "Its LastKnownELR, which goes."),
            column(
                "clean",
                "WOULD LEAD CLEANLY",
                "integer[]",
                "Members of the ELR that would be elected without loss on a clean return.",
                text=lambda row: styled(_ids(row.clean), Style.BAD) if row.clean else plain("-"),
            ),
            column(
                "cleared",
                "CLEARED",
                "boolean?",
                "Whether both were read as empty afterwards; null: nothing was written.",
            ),
        ),
        head=(
            Fact("cluster_id", "string?", "The cluster."),
            Fact("own_value", "string?", "The topic's own min.insync.replicas; null: it has none."),
            Fact("writes", "string", "The value that is written for a moment."),
            Fact("leaderless", "integer[]", "Partitions that it is done for."),
            Fact("producers", "string", "What producers with acks=all see meanwhile."),
            Fact("defect", "string", "What Kafka makes of it later."),
            Fact("refusal", "string?", "Why it is not done at all; null where it can be done."),
            Fact("needs_force", "string?", "Why it takes --force; null where it does not."),
        ),
        tail=(
            Fact("done", "boolean", "Whether it was carried out, and everything is as it should be."),
            Fact("restored", "boolean?", "Whether min.insync.replicas has its old value; null: it was not written."),
            Fact("text", "string", "What became of it."),
            Fact("next", "string?", "The command to type next."),
        ),
    )


def price_head(price: HoldPrice) -> Mapping[str, Json]:
    return {
        "cluster_id": price.cluster_id,
        "own_value": price.own_value,
        "writes": price.writes,
        "leaderless": list(price.leaderless),
        "producers": price.producers,
        "defect": price.defect,
        "refusal": price.refusal,
        "needs_force": price.needs_force,
    }


def price_lines(output: Output, price: HoldPrice) -> Iterator[Text]:
    """The price for people."""
    layout = Layout(output.width)
    yield styled(f"Holding topic {price.topic}: what it does, and what it costs", Style.HEADING)
    old = "it has no value of its own" if price.own_value is None else f"its own value is {price.own_value}"
    told = "  {:<10}"
    does = (
        f"min.insync.replicas={price.writes} is written to the topic ({old}), which clears ELR and LastKnownELR of"
        f" {partitions_in_words(len(price.cleared))}; then the old value is restored. Returning brokers are not elected"
        " by themselves any more: only an unclean election, or a designation, brings a leaderless partition back."
    )
    yield from layout.paragraph(told.format("does"), does, Style.HEADING)
    yield from layout.paragraph(told.format("producers"), price.producers, Style.HEADING)
    yield from layout.paragraph(told.format("later"), price.defect, Style.NOTICE)
    if price.needs_force is not None:
        yield from layout.paragraph(told.format("loses"), f"{price.needs_force}. This takes --force.", Style.BAD)
    if price.refusal is not None:
        yield from layout.paragraph(told.format("refused"), f"{price.refusal}.", Style.BAD)
    if price.cleared:
        yield from layout.table(_COLUMNS, price.cleared)


def _ids(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas)) or "-"


_COLUMNS: tuple[Column[Cleared], ...] = (
    Column("name", "PARTITION", text=lambda row: plain(str(row.address))),
    Column("leader", "LEADER", text=lambda row: plain("none" if row.leader is None else str(row.leader))),
    Column("elr", "ELR", text=lambda row: plain(_ids(row.elr))),
    Column("last_known", "LAST KNOWN", text=lambda row: plain(_ids(row.last_known_elr))),
    Column(
        "clean",
        "WOULD LEAD CLEANLY",
        text=lambda row: styled(_ids(row.clean), Style.BAD) if row.clean else plain("-"),
    ),
)
