"""What ``kelr whatif --any K`` shows: every set of so many brokers, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kelr.controller import ChosenRules
from kelr.engine.outages.restart_plan import Keep
from kelr.engine.outages.standing import Standing
from kelr.engine.outages.worst import SetCounts
from kelr.engine.words import agree, plural
from kelr.model import Cluster, TopicError
from kelr.view.columns import Column, Fact, Json, View, datum, for_people
from kelr.view.describe import ERRORS_TAIL, NOTHING_READ, NULL_UNSEEN, error_items, say_below, vouched
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.styled import Style, Text, plain, styled
from kelr.view.whatif_words import HEAD, NO_LOGS_READ, NOTES, SHAPES, as_it_is, counts_of, head_of, not_known, notes_of

KIND = "kelr/whatif-any"
_SHOWN = (
    (Standing.MAY_LOSE, "MAY LOSE", 0),
    (Standing.LEADERLESS, "NO LEADER", 0),
    (Standing.UNPROVEN, "UNPROVEN", 2),
    (Standing.UNDER_MIN_ISR, "UNDER MIN ISR", 0),
    (Standing.LAST_REPLICA, "LAST REPLICA", 0),
    (Standing.LEADER_MOVES, "LEADER MOVES", 1),
)


def any_view(cluster: Cluster, *, whole: bool = True) -> View[SetCounts]:
    """One item for each set of brokers.

    Args:
        whole: as for `vouched`.
    """
    return View(
        KIND,
        (
            datum("brokers", "integer[]", "The brokers that go at once."),
            datum("racks", "string[]", "Their racks, as far as they are known.", lambda row: _racks(row, cluster)),
            *(
                datum(
                    shape.name.replace("-", "_"),
                    "integer?",
                    f"Partitions that come into: {shape.title.strip()}; {NULL_UNSEEN}.",
                    _Count(shape.flag, whole),
                )
                for shape in SHAPES
            ),
            datum(
                "order_matters",
                "integer?",
                "Partitions for which the order makes a difference.",
                lambda row: vouched(row.depends, whole=whole),
            ),
            *_people_columns(cluster, whole=whole),
        ),
        version=2,
        head=(
            *HEAD,
            Fact("size", "integer", "How many brokers go at once."),
            Fact("clean", "boolean", "Whether they stop cleanly; false: they are killed."),
        ),
        tail=(
            Fact("partitions", "integer", "Partitions that were looked at."),
            Fact("sets", "integer", "How many sets there are; all were looked at."),
            Fact("listed", "integer", "Sets among the items."),
            Fact("now", "object", "How many partitions are in each standing before."),
            NOTES,
            *ERRORS_TAIL,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Count:
    flag: Standing
    whole: bool

    def __call__(self, row: SetCounts) -> Json:
        return vouched(row.new[self.flag], whole=self.whole)


def _racks(row: SetCounts, cluster: Cluster) -> list[str]:
    known = (cluster.broker(one) for one in row.brokers)
    return list(dict.fromkeys(broker.rack for broker in known if broker is not None and broker.rack is not None))


def _people_columns(cluster: Cluster, *, whole: bool) -> tuple[Column[SetCounts], ...]:
    def shown(flag: Standing, title: str, yields: int) -> Column[SetCounts]:
        style = next(shape.style for shape in SHAPES if shape.flag is flag)

        def text(row: SetCounts) -> Text:
            count = row.new[flag]
            if not count and not whole:
                return plain("?")
            if flag is Standing.MAY_LOSE:
                # Logs are not read: more may be lost.
                return styled(f"{count:,}+", style) if count else plain("?")
            return styled(f"{count:,}", style) if count else plain("0")

        return for_people(title, text, right=True, yields=yields)

    return (
        for_people("BROKERS", lambda row: plain(" ".join(map(str, row.brokers)))),
        for_people("RACKS", lambda row: plain(" ".join(_racks(row, cluster)) or "?"), yields=3),
        *(shown(*column) for column in _SHOWN),
    )


@dataclass(frozen=True, slots=True)
class AnyReport:
    """The sets of brokers to show, and what is known of all of them."""

    size: int
    clean: bool
    partitions: int
    sets: int
    keep: Keep
    """What every partition has to keep."""
    harmful: int
    """How many sets take that from a partition, or may cost it records."""
    uncertain: int
    """How many others may do so: of some partition it is not known."""
    worst: Sequence[SetCounts]
    """The worst first."""
    now: Mapping[Standing, int]


def show_any(
    output: Output,
    report: AnyReport,
    cluster: Cluster,
    *,
    source: str,
    rules: ChosenRules,
    errors: Sequence[TopicError],
    notes: Sequence[str],
    next_command: Sequence[str],
) -> None:
    """Show the sets of brokers, the worst first. `notes`: on what is not known."""
    depends = max((row.depends for row in report.worst), default=0)
    notes = [*notes_of(rules, cluster, {}, 0), *notes]
    if depends:
        notes.append(
            f"up to {plural(depends, 'partition')}: depends on the order in which brokers go; the worst is counted"
        )
    doubtful = max((row.new[Standing.DOUBTFUL] for row in report.worst), default=0)
    if doubtful:
        notes.append(f"up to {plural(doubtful, 'partition')} UNKNOWN: ask for one broker alone to see why")
    unread = max((row.new[Standing.MIN_ISR_UNKNOWN] for row in report.worst), default=0)
    if unread:
        notes.append(
            f"up to {plural(unread, 'partition')} may fall under min ISR: min.insync.replicas could not be read"
        )
    notes.append(NO_LOGS_READ if report.partitions else NOTHING_READ)
    left = report.sets - len(report.worst)
    if left > 0:
        notes.append(f"{left:,} more sets, none worse than the last one here; --all lists them")
    whole = bool(report.partitions) and not errors
    view = any_view(cluster, whole=whole)
    if output.format.for_people:
        layout = Layout(output.width)
        for line in layout.lines(_headline(report, rules, cluster)):
            output.line(line)
        for line in layout.table(_people_columns(cluster, whole=whole), report.worst):
            output.line(line)
    else:
        head = {**head_of(cluster, source, rules), "size": report.size, "clean": report.clean}
        with output.listing(view, head) as listing:
            listing.add(report.worst)
            listing.finish(
                {
                    "partitions": report.partitions,
                    "sets": report.sets,
                    "listed": len(report.worst),
                    "now": counts_of(report.now, whole=whole),
                    "notes": notes,
                    "errors": error_items(errors),
                    "next": output.next_command(next_command),
                }
            )
    say_below(output, notes, errors, next_command)


_HARM = {
    Keep.MIN_ISR: "a partition without leader or under min ISR, or may lose records",
    Keep.LEADER: "a partition without leader, or may lose records",
}
_NO_HARM = {
    Keep.MIN_ISR: "no partition loses its leader or falls under min ISR",
    Keep.LEADER: "no partition loses its leader",
}


def _headline(report: AnyReport, rules: ChosenRules, cluster: Cluster) -> Text:
    how = "stop cleanly" if report.clean else "are killed"
    one = "stops cleanly" if report.clean else "is killed"
    who = f"If any one broker {one}" if report.size == 1 else f"If any {report.size} brokers {how} at once"
    about = f" ({plural(report.partitions, 'partition')}, rules {rules.rules.name})"
    return [*styled(f"{who}: ", Style.HEADING), *_verdict(report, cluster), *plain(about)]


def _verdict(report: AnyReport, cluster: Cluster) -> Text:
    count = plural(report.sets, "set") if report.size > 1 else plural(report.sets, "broker")
    if report.harmful:
        leave = f"{report.harmful:,} of {count} {agree(report.harmful, 'leaves', 'leave')} {_HARM[report.keep]}"
        more = f"; UNKNOWN for {report.uncertain:,} more" if report.uncertain else ""
        return styled(leave + more, Style.BAD)
    if report.uncertain:
        return styled(f"UNKNOWN for {report.uncertain:,} of {count}", Style.NOTICE)
    if not report.partitions:
        return styled("UNKNOWN: no partition was read", Style.NOTICE)
    no_harm = f"{_NO_HARM[report.keep]} ({count})"
    if already := as_it_is(report.now):
        return [*not_known(cluster), *plain(f"{no_harm}; {already}")]
    return [*not_known(cluster), *plain(no_harm)] if not_known(cluster) else styled(no_harm, Style.GOOD)
