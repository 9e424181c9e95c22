"""What ``kelr recover status``, ``resume`` and ``undo`` show: what earlier runs left behind, and what was put right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from kelr.engine.planning.lost import lost_in_all
from kelr.model import TopicPartition
from kelr.model.audit import AuditRecord
from kelr.view.columns import Column, Fact, Json, View, attributes, column, datum, for_people
from kelr.view.describe import SILENCE_FACT
from kelr.view.layout import Layout
from kelr.view.lost_words import LOST_FACT, lost_document, lost_in_words
from kelr.view.output import Output
from kelr.view.plan_words import named, partitions_in_words
from kelr.view.styled import Style, Text, plain, styled

if TYPE_CHECKING:
    from kelr.recovery.clear_elr import ClearedPartition, ElrPrice
    from kelr.recovery.status import JournalStatus, PartitionStatus, RecoveryStatus


STATUS_KIND = "kelr/recovery-status"
PUT_RIGHT_KIND = "kelr/put-right"
_WELL = "well"
_NOTHING_HERE = "Nothing to repair of this machine's runs. A run elsewhere: kelr recover status PLAN"
"""Without a plan the journals are all that is looked at, and they are this machine's."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One partition, or one topic's config, of a journal or a plan."""

    journal: str | None
    """None: no open journal speaks of it, the plan does."""
    topic: str
    partition: int | None
    """None for a config."""
    text: str
    left: bool
    """Something is left to repair."""
    wanted: int | None = None
    leader: int | None = None
    order: tuple[int, ...] | None = None
    restores: tuple[int, ...] | None = None
    result: str | None = None
    """What the journal has as its result."""
    described: bool = True
    """Whether the cluster told where it stands, be it that there is no such partition."""

    @property
    def name(self) -> str:
        return self.topic if self.partition is None else str(TopicPartition(self.topic, self.partition))

    @property
    def state(self) -> str:
        """How it stands, in one word or two: ``left``, ``gone``, ``not known``, ``no leader``, ``other leader`` or
        ``well``."""
        if self.left or self.partition is None:
            return "left" if self.left else _WELL
        if self.order is None:
            return "gone" if self.described else "not known"
        if self.leader is None:
            return "no leader"
        return _WELL if self.leader == self.wanted else "other leader"


@dataclass(frozen=True, slots=True)
class Put:
    """One thing that resume or undo did, or found done: an order, a config, or an election."""

    what: str
    """``order``, ``config`` or ``election``."""
    topic: str
    partition: int | None
    result: str
    """``restored``, ``changed by somebody else``, ``not restored``; for an election how it ended."""
    good: bool
    now: str | None
    wanted: str | None
    text: str = ""
    error: str | None = None

    @property
    def name(self) -> str:
        return self.topic if self.partition is None else str(TopicPartition(self.topic, self.partition))


def status_view() -> View[Standing]:
    """One row for each partition or config of an open journal, or of the plan that was given."""

    return View(
        STATUS_KIND,
        (
            datum("journal", "string?", "The open journal that speaks of it; null: only the plan that was given does."),
            datum("topic", "string", "Topic name; of a broker's config `broker 3`."),
            datum("partition", "integer?", "Partition number; null for a topic's config."),
            datum("left", "boolean", "Whether something is left to repair."),
            datum(
                "state",
                "string",
                "left, gone, not known, no leader, other leader (than the one that was to lead), or well.",
            ),
            datum("wanted", "integer?", "The replica that was to lead."),
            datum("leader", "integer?", "Who leads; null: no leader, or no such partition."),
            datum("order", "integer[]?", "Its replicas now; null where there is no such partition."),
            datum("restores", "integer[]?", "The order that it should have."),
            datum("result", "string?", "What the journal has as its result; null: none yet."),
            datum("text", "string", "How it stands, in a sentence."),
        ),
        head=(
            Fact("cluster_id", "string?", "The cluster."),
            Fact("at_work", "boolean", "Whether another kelr of this machine changes the cluster just now."),
        ),
        tail=(
            Fact("journals", "object[]", "Open ones: {name, command, who, begun_ms, last_ms, plan_id, text}."),
            Fact("garbled", "string[]", "Journals that cannot be read, and why."),
            Fact(
                "clean",
                "boolean",
                "Whether nothing is left to repair; without a plan, by this machine's journals. It says nothing of what"
                " the elections lost: `lost` does.",
            ),
            Fact("lost", "object", LOST_FACT),
            Fact("silence", "string?", SILENCE_FACT),
            Fact("next", "string?", "The command to type next."),
        ),
    )


def standings_of(status: RecoveryStatus) -> Iterator[Standing]:
    """Every partition and config of the plan that was given and of each open journal."""
    for one in status.plan_partitions:
        yield _standing(None, one)
    for journal in status.journals:
        for one in journal.partitions:
            yield _standing(journal.name, one)
        for config in journal.configs:
            value = f"={config.now or 'not set'}" if config.asked else ""
            text = f"{config.name}{value}: {config.text}"
            yield Standing(journal.name, config.topic, None, text, config.left)


def _standing(journal: str | None, one: PartitionStatus) -> Standing:
    return Standing(
        journal,
        one.topic,
        one.partition,
        one.text,
        one.reordered,
        one.wanted,
        one.leader,
        one.order,
        one.restores,
        one.ended,
        described=one.unread is None,
    )


def show_status(output: Output, status: RecoveryStatus, *, following: Sequence[str] | None) -> None:
    """Print what is left. `following`: the next command as arguments after ``kelr``."""
    standings = list(standings_of(status))
    if output.format.for_people:
        for line in _status_lines(Layout(output.width), status, standings):
            output.line(line)
        if following is not None:
            output.next(following)
        return
    with output.listing(status_view(), {"cluster_id": status.cluster_id, "at_work": status.at_work}) as listing:
        listing.add(standings)
        listing.finish(
            {
                "journals": [_journal(one) for one in status.journals],
                "garbled": list(status.garbled),
                "clean": status.clean,
                "lost": lost_document(status.lost),
                "silence": status.silence,
                "next": None if following is None else output.next_command(following),
            }
        )


def put_right_view() -> View[Put]:
    """One row for each order, config and election of a journal."""

    return View(
        PUT_RIGHT_KIND,
        (
            datum("what", "string", "order, config or election."),
            datum("topic", "string", "Topic name; of a broker's config `broker 3`."),
            datum("partition", "integer?", "Partition number; null for a topic's config."),
            datum("result", "string", "How it stands now."),
            datum("good", "boolean", "Whether that is as it should be."),
            datum("now", "string?", "The order, value or leader now; null: none, or not known."),
            datum("wanted", "string?", "What it should be; null: no value of its own."),
            datum("text", "string", "More, in a sentence."),
            datum("error", "string?", "Kafka's name of the error, where there was one."),
        ),
        head=(
            Fact("journal", "string?", "The journal's name; null: none was open."),
            Fact("plan_id", "string?", "The plan that it carried out; null for `clear-elr`."),
        ),
        tail=(
            Fact("closed", "boolean", "Whether nothing is left to repair."),
            Fact("next", "string?", "The command to type next."),
        ),
    )


def show_put_right(
    output: Output,
    puts: Sequence[Put],
    *,
    journal: str | None,
    plan_id: str | None,
    closed: bool,
    following: Sequence[str] | None,
) -> None:
    """Print what resume or undo did with one journal; None: there was none to do anything with."""
    if output.format.for_people:
        layout = Layout(output.width)
        if puts:
            for line in layout.table(PUT_COLUMNS, puts):
                output.line(line)
            output.line()
        words = "closed, nothing is left to repair" if closed else "still open, something is left to repair"
        style = Style.GOOD if closed else Style.BAD
        if closed and not puts:
            output.line(styled("Nothing to repair: no order and no config was changed.", style))
        else:
            for line in layout.paragraph(f"journal {journal}: ", f"{words}.", style):
                output.line(line)
        if following is not None:
            output.next(following)
        return
    with output.listing(put_right_view(), {"journal": journal, "plan_id": plan_id}) as listing:
        listing.add(puts)
        listing.finish({"closed": closed, "next": None if following is None else output.next_command(following)})


def _status_lines(layout: Layout, status: RecoveryStatus, standings: Sequence[Standing]) -> Iterator[Text]:
    if status.at_work:
        yield styled("Another kelr of this machine changes the cluster just now.", Style.NOTICE)
    for journal in status.journals:
        head = f"journal {journal.name}, {journal.command} by {journal.who}: "
        yield from layout.paragraph(head, f"{journal.text}.", Style.HEADING)
    for text in status.garbled:
        yield from layout.paragraph("garbled: ", text, Style.BAD)
    if standings:
        yield from layout.table(STANDING_COLUMNS, standings)
        yield plain("")
    lost = lost_in_all(status.lost)
    if not lost.nothing:
        more = f"{lost_in_words(lost)} kelr recover verify tells more."
        yield from layout.paragraph("Lost by the plan's elections: ", more, Style.NOTICE)
    if status.silence is not None and standings:
        text = f"no controller answers ({status.silence}): the table is what brokers knew last."
        yield from layout.paragraph("Not known: ", text, Style.BAD)
    left = [one for one in standings if one.left]
    not_led = {one.name for one in standings if one.state not in {_WELL, "left"}}
    if status.clean and not_led:
        what = f"No order or config to repair; {partitions_in_words(len(not_led))} not led as planned."
        yield styled(what, Style.NOTICE)
    elif status.clean:
        yield styled("Nothing to repair." if status.plan_id is not None else _NOTHING_HERE, Style.GOOD)
    elif left:
        yield styled(f"{_counted(left)} not as they should be after what was begun.", Style.BAD)


def _counted(left: Sequence[Standing]) -> str:
    """How many partitions, and how many configs."""
    partitions = len({one.name for one in left if one.partition is not None})
    configs = len({(one.topic, one.text) for one in left if one.partition is None})
    words = [partitions_in_words(partitions)] if partitions else []
    words += [f"{configs} config{'' if configs == 1 else 's'}"] if configs else []
    return " and ".join(words)


def _journal(one: JournalStatus) -> dict[str, Json]:
    return attributes(one, "name", "command", "who", "begun_ms", "last_ms", "plan_id", "text")


def _leader(row: Standing) -> str:
    """A partition without a leader is not the same as one that is not there."""
    if row.leader is None:
        return "-" if row.order is None else "none"
    return str(row.leader)


def _order(order: tuple[int, ...] | None) -> Text:
    return plain("-" if order is None else ",".join(map(str, order)))


_STATE_STYLES = {"left": Style.BAD, _WELL: Style.GOOD}

STANDING_COLUMNS: tuple[Column[Standing], ...] = (
    Column("name", "PARTITION", text=lambda row: plain(row.name)),
    Column("state", "STATE", text=lambda row: styled(row.state, _STATE_STYLES.get(row.state, Style.NOTICE))),
    Column("wanted", "WANTED", text=lambda row: plain("-" if row.wanted is None else str(row.wanted)), right=True),
    Column("leader", "LEADER", text=lambda row: plain(_leader(row)), right=True),
    Column("order", "ORDER", text=lambda row: _order(row.order)),
    Column("restores", "SHOULD BE", text=lambda row: _order(row.restores)),
    Column("result", "RESULT", text=lambda row: plain(row.result or "-")),
    Column("text", "", text=lambda row: plain(row.text), prose=True),
)

PUT_COLUMNS: tuple[Column[Put], ...] = (
    Column("name", "WHERE", text=lambda row: plain(row.name)),
    Column("what", "WHAT", text=lambda row: plain(row.what)),
    Column("result", "RESULT", text=lambda row: styled(row.result, Style.GOOD if row.good else Style.BAD)),
    Column("now", "NOW", text=lambda row: plain(row.now or "-")),
    Column("wanted", "SHOULD BE", text=lambda row: plain(row.wanted or "-")),
    Column(
        "text",
        "",
        text=lambda row: plain(" ".join(filter(None, (row.text, "" if row.error in {None, ""} else f"({row.error})")))),
        prose=True,
    ),
)


# The audit log.


_AUDIT_KIND = "kelr/audit-log"


def audit_view() -> View[AuditRecord]:
    """One row for each line of the log, oldest first."""

    def fact(key: str, type_: str, about: str) -> Column[AuditRecord]:
        return datum(key, type_, about, lambda row: _value(row, key))

    people: tuple[Column[AuditRecord], ...] = (
        for_people("WHEN (UTC)", lambda row: plain(f"{row.when[:19]}Z")),
        for_people("WHO", _who, yields=2),
        for_people("WHAT", lambda row: plain(_what(row)), hyphenated=True),
        for_people("WHERE", lambda row: plain(_where(row))),
        for_people("RESULT", _result, hyphenated=True),
        for_people("PLAN", lambda row: plain(row.plan_id or "-"), wide=True),
        for_people("CLUSTER", lambda row: plain(row.cluster_id or "?"), wide=True),
        for_people("", lambda row: plain(_words(row)), prose=True),
    )
    return View(
        _AUDIT_KIND,
        (
            fact("when", "string", "The time in ISO 8601, UTC."),
            fact("at_ms", "integer", "The same in milliseconds since 1970 UTC."),
            fact("boot_id", "string?", "Of an election: the boot of the machine that kelr ran on; null: not recorded."),
            fact("boot_ms", "integer?", "Milliseconds since that boot: the time by a clock that cannot be set."),
            fact("what", "string", "election, restore, hold, config or rescue."),
            fact("command", "string", "The command, such as recover apply."),
            fact("topic", "string", "Topic name; of a broker's config `broker 3`."),
            fact("partition", "integer?", "Partition number; null where a whole topic was changed."),
            fact(
                "result",
                "string",
                "How it ended: that of an election, or done, refused or failed; begun: not yet, and a later line tells"
                " the end unless kelr was killed.",
            ),
            fact("wanted", "integer?", "The replica that was to lead."),
            fact("election", "string?", "The kind of election."),
            fact("method", "string?", "The requests by which it was carried out."),
            fact(
                "asked",
                "boolean?",
                "Whether the election was asked for, and may have been carried out: then another leader may be its"
                " result; null: not recorded.",
            ),
            fact("error", "string?", "Kafka's name of the error, where there was one."),
            fact("text", "string", "What became of it, in a sentence."),
            fact("user", "string", "The operating system's name of the user."),
            fact("host", "string", "The machine that kelr ran on."),
            fact("principal", "string?", "The name that the cluster knows; null: no login."),
            fact("version", "string", "Of kelr."),
            fact("cluster_id", "string?", "The cluster."),
            fact("plan_id", "string?", "The plan that was carried out."),
            fact("journal", "string?", "The journal's file name."),
            fact("before", "object?", "State or config from before; null: not recorded."),
            fact("after", "object?", "State or config after; null: not recorded."),
            fact("evidence", "object[]", "What each replica's log was known to hold; of a rescue, its file."),
            fact("loss", "object?", "The loss that was shown."),
            fact("consent", "object?", "What was needed, what was given, and by whom; null: not recorded."),
            fact("force_reason", "string?", "The reason given with --force."),
            *people,
        ),
        head=(Fact("file", "string", "The audit log's file."),),
    )


def as_people_read(records: Iterable[AuditRecord]) -> Iterator[AuditRecord]:
    """Lines in a row that differ in time and partition alone as one, which has all the partitions for its topic."""

    def alike(one: AuditRecord) -> tuple[object, ...]:
        return (one.command, one.plan_id, one.journal, one.cluster_id, one.result, _who(one), _what(one), _words(one))

    for _, group in groupby(records, key=alike):
        run = list(group)
        addresses = [TopicPartition(one.topic, one.partition) for one in run if one.partition is not None]
        if 1 < len(run) == len(addresses):
            yield replace(run[0], topic=named(addresses), partition=None)
        else:
            yield from run


def _value(row: AuditRecord, key: str) -> Json:
    value: Json = getattr(row, key)
    # Lines that have nothing to say of these are written with empty objects: not recorded is not "known to be none".
    return None if value == {} else value


def _who(row: AuditRecord) -> Text:
    principal = f" as {row.principal}" if row.principal else ""
    return plain(f"{row.user}@{row.host}{principal}")


def _what(row: AuditRecord) -> str:
    return f"{row.election} election" if row.election else str(row.what)


def _where(row: AuditRecord) -> str:
    return row.topic if row.partition is None else f"{row.topic}:{row.partition}"


def _result(row: AuditRecord) -> Text:
    if row.result == "begun":
        return styled(row.result, Style.NOTICE)
    return styled(row.result, Style.GOOD if row.result in {"done", "not-needed"} else Style.BAD)


def _words(row: AuditRecord) -> str:
    parts = [row.text] if row.text else []
    if row.wanted is not None and not row.text:
        parts.append(f"broker {row.wanted} to lead")
    if row.error and row.error not in row.text:
        parts.append(row.error)
    if row.force_reason:
        parts.append(f"forced: {row.force_reason}")
    return "; ".join(parts)


# A topic's ELR cleared.


_CLEARED_KIND = "kelr/hold"


def cleared_view() -> View[ClearedPartition]:
    """One row for each partition that has an ELR or a LastKnownELR."""
    return View(
        _CLEARED_KIND,
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


def price_head(price: ElrPrice) -> Mapping[str, Json]:
    return attributes(
        price, "cluster_id", "own_value", "writes", "leaderless", "producers", "defect", "refusal", "needs_force"
    )


def price_lines(output: Output, price: ElrPrice) -> Iterator[Text]:
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


_COLUMNS: tuple[Column[ClearedPartition], ...] = (
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
