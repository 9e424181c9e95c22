"""What ``kelr fleet exposure`` shows: one row for each cluster, topic, broker or rack, the longest in trouble first."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.words import plural
from kelr.model.exposed import ExposedName, FleetExposure, TroubleTime
from kelr.replay.history import Trouble
from kelr.view.columns import Column, Fact, Json, Shown, View, column, datum, for_people
from kelr.view.history_words import lasted
from kelr.view.styled import Style, Text, plain, styled

KIND = "kelr/fleet-exposure"
_SHOWN = (
    (Trouble.LEADERLESS, "NO LEADER", 0),
    (Trouble.UNDER_MIN_ISR, "UNDER MIN ISR", 0),
    (Trouble.LAST_REPLICA, "LAST REPLICA", 1),
    (Trouble.ELR_ONLY, "ELR ONLY", 2),
)


def exposure_view(dimension: str) -> View[ExposedName]:
    """One row for each name of a dimension."""
    name: Column[ExposedName] = column(
        "name",
        dimension.upper(),
        "string",
        "Id of the cluster, name of the topic, id of the broker, or name of the rack.",
        text=lambda row: plain(_named(row)),
    )
    cluster: Column[ExposedName] = column(
        "cluster_name",
        "CLUSTER",
        "string",
        "What the cluster is called; its id where it has no name.",
        lambda row: row.cluster_name or row.cluster,
        shown=Shown.MACHINE if dimension == "cluster" else Shown.EVERYWHERE,
    )
    return View(
        KIND,
        (
            name,
            cluster,
            *(_trouble(trouble, title, yields) for trouble, title, yields in _SHOWN),
            for_people("NOT KNOWN", _unknown),
            datum("cluster", "string", "The cluster's id."),
            datum("dimension", "string", "cluster, topic, broker or rack."),
            datum("partition_seconds", "number", "The time that all its partitions were there, together."),
            datum(
                "troubles",
                "object",
                "By trouble (leaderless, under-min-isr, last-replica, elr-only, min-isr-unknown): partitions, spells,"
                " seconds, longest_seconds, unknown_seconds (not known), share, unknown_share, lasting,"
                " lasting_since_ms, unsure_spells (when they began or ended is not known).",
                _troubles,
            ),
            datum("over", "string[]", "Troubles that lasted, or may have lasted, longer than their budget."),
        ),
        head=(
            Fact("lake", "string", "The lake that was read and written."),
            Fact("by", "string", "What the items are: cluster, topic, broker or rack."),
            Fact("since_ms", "integer?", "Since when; null: the beginning of what is on record."),
            Fact("until_ms", "integer?", "Until when; null: the end of it."),
        ),
        tail=(
            Fact("more", "integer", "How many more there are."),
            Fact("over_budget", "integer", "How many names are over a budget, shown or not."),
            Fact("unclean_elections", "integer", "Elections of replicas that nothing proves to be complete."),
            Fact("unknown_elections", "integer", "Elections of which it is not told whether they were unclean."),
            Fact("unclean_again", "integer", "Brokers that restarted uncleanly more than once."),
            Fact("risky_settings", "integer", "Settings that are risky."),
            Fact("notes", "string[]", "What to know beside the items."),
            Fact("next", "string", "The next command."),
        ),
    )


def tail_of(found: FleetExposure, shown: int) -> dict[str, Json]:
    """What a document says after its items, but for the next command."""
    return {
        "more": found.names - shown,
        "over_budget": found.over,
        "unclean_elections": found.unclean_elections,
        "unknown_elections": found.unknown_elections,
        "unclean_again": found.again,
        "risky_settings": found.settings,
        "notes": list(notes_on(found, shown)),
    }


def notes_on(found: FleetExposure, shown: int) -> Iterator[str]:
    """What to know beside the rows."""
    if not found.names:
        yield "no partition of these clusters was in trouble, as far as is on record"
    if found.names > shown:
        yield f"{found.names - shown} more; --top shows more"
    if found.over:
        yield f"{found.over} over budget"
    if found.unclean_elections:
        yield f"{plural(found.unclean_elections, 'unclean election')}: table unclean_elections"
    if found.unknown_elections:
        yield f"{plural(found.unknown_elections, 'election')} of which it is not told whether they were unclean"
    if found.again:
        yield f"{plural(found.again, 'broker')} restarted uncleanly again and again: table unclean_restarts"
    if found.settings:
        yield f"{plural(found.settings, 'risky setting')}: table risky_settings"
    if found.observed:
        yield (
            f"{found.observed} of {plural(found.clusters, 'cluster')} known from snapshots alone: what was between two"
            " that differ is not known"
        )


def _named(row: ExposedName) -> str:
    return (row.cluster_name or row.cluster) if row.dimension == "cluster" else row.name


def _trouble(trouble: Trouble, title: str, yields: int) -> Column[ExposedName]:
    def text(row: ExposedName) -> Text:
        found = row.troubles.get(str(trouble))
        if found is None or not (found.spells or found.unknown_seconds):
            return ()
        return _time(found, over=str(trouble) in row.over)

    return for_people(title, text, yields=yields)


def _time(found: TroubleTime, *, over: bool) -> Text:
    text = f"{found.spells}x {lasted(round(found.seconds * 1000))}" if found.spells else "?"
    if found.spells and found.unknown_seconds:
        text += " or more"
    if found.lasting:
        text += f", {found.lasting} last"
    return styled(text, Style.BAD) if over or found.lasting else plain(text)


def _unknown(row: ExposedName) -> Text:
    """The largest share of the time for which a trouble is not known."""
    most = max((found.unknown_share or 0.0 for found in row.troubles.values()), default=0.0)
    if not most:
        return ()
    return styled("<1%" if most < 0.01 else f"{most:.0%}", Style.NOTICE)


def _troubles(row: ExposedName) -> Json:
    return {
        trouble: {
            "partitions": one.partitions,
            "spells": one.spells,
            "seconds": one.seconds,
            "longest_seconds": one.longest_seconds,
            "unknown_seconds": one.unknown_seconds,
            "share": one.share,
            "unknown_share": one.unknown_share,
            "lasting": one.lasting,
            "lasting_since_ms": one.lasting_since_ms,
            "unsure_spells": one.unsure_spells,
        }
        for trouble, one in row.troubles.items()
    }
