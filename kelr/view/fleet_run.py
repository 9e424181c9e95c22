"""What ``kelr fleet run`` did, and what got better and worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kelr.model.fleet import ClusterTrend, FleetRun, TroubleCounts
from kelr.view.columns import Column, Fact, Json, View, attributes, column
from kelr.view.rescue import time_text

_TROUBLES = {
    "leaderless": "without a leader",
    "elr_only": "with an ELR alone",
    "under_min_isr": "under min ISR",
    "min_isr_unknown": "of which min ISR is UNKNOWN",
    "last_replica": "with one replica in sync",
}


def run_view() -> View[ClusterTrend]:
    """All clusters of the lake."""
    return View(
        "kelr/fleet-run",
        (
            column("cluster", "CLUSTER", "string", "The cluster's id."),
            column("name", "NAME", "string", "What it is called in reports."),
            *(_now(name, about) for name, about in {"partitions": "Its partitions", **_TROUBLES}.items()),
            *(_before(name) for name in ("partitions", *_TROUBLES)),
        ),
        tail=(
            Fact("lake", "string", "The lake."),
            Fact("version", "integer", "The lake's version after this run."),
            Fact("done", "string[]", "The steps that had anything to do."),
            Fact("new_files", "integer", "Files that no run before had taken."),
            Fact("quarantined", "object[]", "`path`, `cluster` (null: not known) and `reason` of each file."),
            Fact("findings", "integer", "What there is to fix."),
            Fact("unseen", "string[]", "What was not looked at."),
            Fact("written", "string[]", "Files of the report."),
            Fact("compared_with", "string?", "When the run had ended that `before_...` is of; null: not compared."),
        ),
    )


def run_tail(found: FleetRun) -> Mapping[str, Json]:
    """What a document says after the clusters."""
    return {
        **attributes(found, "lake", "version", "done", "new_files"),
        "quarantined": [{"path": one.path, "cluster": one.cluster, "reason": one.reason} for one in found.quarantined],
        "findings": found.findings,
        "unseen": list(found.unseen),
        "written": list(found.written),
        "compared_with": None if found.compared_ms is None else time_text(found.compared_ms),
    }


def in_a_line(found: FleetRun) -> str:
    """All of it, for the log of a scheduler."""
    total = {name: sum(getattr(one.now, name) for one in found.clusters) for name in ("partitions", *_TROUBLES)}
    unknown = f" (UNKNOWN of {total['min_isr_unknown']:,})" if total["min_isr_unknown"] else ""
    parts = [
        f"lake version {found.version}",
        f"did {', '.join(found.done)}" if found.done else "nothing new",
        f"{_counted(len(found.clusters), 'cluster')}, {_counted(total['partitions'], 'partition')}",
        f"{total['leaderless']:,} leaderless, {total['under_min_isr']:,} under min ISR{unknown}",
        _counted(found.findings, "finding") + (", not everything was looked at" if found.unseen else ""),
        f"{_counted(len(found.quarantined), 'file')} in quarantine",
    ]
    return "; ".join(parts)


def changes_of(found: FleetRun) -> Iterator[str]:
    """What got better and worse, a line for each cluster and trouble."""
    if found.compared_ms is None:
        return
    since = f"since {time_text(found.compared_ms)}"
    some = False
    for one in found.clusters:
        if one.before is None:
            yield f"{one.name}: not in the lake then"
            some = True
            continue
        for name, words in _TROUBLES.items():
            before, now = getattr(one.before, name), getattr(one.now, name)
            if before != now:
                how = "worse" if now > before else "better"
                yield f"{one.name}: partitions {words} {before:,} -> {now:,}, {how} {since}"
                some = True
    if not some:
        yield f"the same as {time_text(found.compared_ms)}"


def _now(name: str, about: str) -> Column[ClusterTrend]:
    words = about if name == "partitions" else f"Partitions {about}"
    return column(
        name,
        name.replace("_", " ").upper(),
        "integer",
        f"{words}, where the newest input ends.",
        lambda row: _count(row.now, name),
        right=True,
    )


def _before(name: str) -> Column[ClusterTrend]:
    return column(
        f"before_{name}",
        f"{name.replace('_', ' ').upper()} BEFORE",
        "integer?",
        f"`{name}` after the run that this one is compared with; null: not compared, or not in the lake then.",
        lambda row: None if row.before is None else _count(row.before, name),
        right=True,
    )


def _count(counts: TroubleCounts, name: str) -> int:
    return int(getattr(counts, name))


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"
