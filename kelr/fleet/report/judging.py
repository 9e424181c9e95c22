"""From figures to findings: how clusters stand and are set up.

`happened` adds what they went through, `failing` what would happen. A finding is made where a figure asks for
somebody's work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.fleet.report.failing import failures
from kelr.fleet.report.figures import Cluster, Figures, RiskySetting
from kelr.fleet.report.findings import Command, Evidence, Finding, Kind, known_by
from kelr.fleet.report.happened import elections, long, restarts
from kelr.fleet.report.lines import connected, kelr
from kelr.fleet.report.words import TROUBLE_TITLES
from kelr.page.words import count, full, listed, moment, number, sentence, share

AGAIN_AND_AGAIN = 2
"""So many unclean restarts of one broker are no accident."""
UNKNOWN_SHARE = 0.01
"""From this share of the partitions' time on, what is not known is a finding of its own."""
SETTINGS = (
    "unclean-enabled",
    "elr-off",
    "min-isr-1-with-elr",
    "static-min-isr-with-elr",
    "min-isr-is-rf",
    "min-isr-1",
    "rf-1",
    "rf-2",
    "elr-unknown",
    "min-isr-unknown",
)
"""The settings of `risky_settings`, the worst first; others come behind them."""
_TITLES = {
    "unclean-enabled": "unclean elections are allowed",
    "elr-off": "ELR is off",
    "min-isr-1-with-elr": "min ISR is 1, so that the ELR is always empty",
    "static-min-isr-with-elr": "min ISR is in brokers' files, where ELR does not look",
    "min-isr-is-rf": "min ISR asks for every replica",
    "min-isr-1": "min ISR is 1",
    "rf-1": "one replica alone",
    "rf-2": "two replicas",
    "elr-unknown": "whether ELR is on is not known",
    "min-isr-unknown": "min ISR is not known",
}
_SHOWN = 3


def judge(figures: Figures) -> list[Finding]:
    """All findings on a fleet, in no order.

    What the report lacks because a step was not run, or because files could not be read, is no finding: the report says
    it in front (`Figures.missing`, `Figures.quarantined`).
    """
    unclean_allowed = {one.cluster: one for one in figures.settings if one.setting == "unclean-enabled"}
    found: list[Finding] = []
    for cluster in figures.clusters:
        found += _leaderless(figures, cluster)
        found += _not_known(figures, cluster)
        found += long(cluster, [one for one in figures.troubles if one.cluster == cluster.id])
    for held in figures.elections:
        cluster = figures.cluster(held.cluster)
        found.append(elections(cluster, held, unclean_allowed.get(cluster.id)))
    for broker in figures.restarts:
        if broker.unclean >= AGAIN_AND_AGAIN:
            found.append(restarts(figures.cluster(broker.cluster), broker))
    found += [_setting(figures.cluster(one.cluster), one) for one in figures.settings]
    found += failures(figures)
    return found


def _leaderless(figures: Figures, cluster: Cluster) -> Iterator[Finding]:
    standing = cluster.standing
    if not standing.leaderless:
        return
    now = next((one for one in figures.scenarios if one.cluster == cluster.id and one.now), None)
    unproven = 0 if now is None else min(now.unproven, standing.leaderless)
    text = [f"As of {moment(cluster.ends)}."]
    if standing.elr_only:
        text.append(f"Of these, {number(standing.elr_only)} can only be led cleanly by a member of the ELR.")
    if unproven:
        text.append(
            f"Of {number(unproven)}, every replica that held all that was committed was down or killed before: whether"
            " their disks still hold it, nobody can tell."
        )
    if cluster.down:
        text.append(f"Not live: {listed(_brokers(cluster.down), most=12)}. Ask kelr explain before any of them starts.")
    topics = tuple(f"{one.topic} ({one.partitions})" for one in cluster.leaderless_topics)
    if topics:
        text.append(f"Most of them in: {listed(topics, most=_SHOWN)}.")
    unknown = []
    if now is None:
        unknown.append("Whether a replica of each is proven complete: kelr fleet assess was not run.")
    elif now.uncertain:
        unknown.append(f"For {count(now.uncertain, 'partition')} something that is not known would decide who leads.")
    if standing.elr_unknown:
        unknown.append(f"The ELR of {count(standing.elr_unknown, 'partition')}.")
    evidence = [Evidence("partition_states", "valid_to is null and leader is null", standing.leaderless)]
    if unproven:
        evidence.append(Evidence("assessment_sums", "scenario = 'now'", 1))
    yield Finding(
        Kind.UNPROVEN if unproven else Kind.LEADERLESS,
        cluster.id,
        cluster.name,
        "now",
        f"{count(standing.leaderless, 'partition')} without leader"
        + (f", {number(unproven)} with no replica proven complete" if unproven else ""),
        tuple(text),
        standing.leaderless,
        (unproven, standing.leaderless),
        known_by(cluster),
        tuple(evidence),
        (
            kelr(cluster, "who would be elected, what is lost, what each return does", "explain"),
            kelr(cluster, "plan how they come back; it changes nothing", "recover", "plan", "--out", "plan.json"),
            kelr(cluster, "carry the reviewed plan out", "recover", "apply", "plan.json"),
        ),
        tuple(unknown),
    )


def _brokers(ids: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"broker {id}" for id in ids)


def _setting(cluster: Cluster, found: RiskySetting) -> Finding:
    places = [place for place in found.examples if place.command is not None]
    concerned = count(found.partitions, "partition")
    text = [full(found.why), f"Source: {found.rule}."]
    topics = tuple(place.name for place in found.examples if place.scope == "topic")
    if topics:
        text.insert(1, f"Set for: {listed(topics, most=_SHOWN, of=max(found.topics, len(topics)))}.")
    text += dict.fromkeys(f"Mind: {place.caution}." for place in found.examples if place.caution)
    severity = SETTINGS.index(found.setting) if found.setting in SETTINGS else len(SETTINGS)
    not_known = found.setting.endswith("-unknown")
    return Finding(
        Kind.NOT_KNOWN if not_known else Kind.SETTING,
        cluster.id,
        cluster.name,
        found.setting,
        f"{sentence(_TITLES.get(found.setting, found.setting))} ({concerned})",
        tuple(text),
        found.partitions,
        (-severity, found.partitions),
        known_by(cluster),
        (Evidence("risky_settings", f"setting = '{found.setting}'", found.places),),
        tuple(
            Command(f"for {place.name}" if place.name else "for the cluster", connected(cluster, str(place.command)))
            for place in places[:_SHOWN]
        ),
    )


def _not_known(figures: Figures, cluster: Cluster) -> Iterator[Finding]:
    found = [
        one
        for one in figures.troubles
        if one.cluster == cluster.id and one.topic is None and (one.unknown_share or 0) >= UNKNOWN_SHARE
    ]
    if not found:
        return
    worst = max(found, key=lambda one: one.unknown_share or 0)
    text = tuple(
        f"{sentence(TROUBLE_TITLES.get(one.trouble, one.trouble))}: for {share(one.unknown_share or 0)} of the time"
        " nobody can tell."
        for one in found
    )
    why = (
        "Its metadata log has gaps, or does not tell min.insync.replicas."
        if cluster.from_log
        else "It is known by snapshots alone: what happened between two of them is not."
    )
    yield Finding(
        Kind.NOT_KNOWN,
        cluster.id,
        cluster.name,
        "time",
        f"{share(worst.unknown_share or 0)} of the time is not known",
        (*text, why),
        cluster.standing.partitions,
        (0.0, worst.unknown_share or 0),
        known_by(cluster),
        (Evidence("exposure", "dimension = 'cluster' and unknown_seconds > 0", len(found)),),
        (
            Command(
                "add the cluster's metadata log, from any controller's disk",
                f"kelr fleet ingest CONTROLLER/__cluster_metadata-0 --out {figures.place}",
            ),
        ),
    )
