"""The words that the views of ``kelr whatif`` share: what a partition comes to, and how it comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kelr.controller import ChosenRules
from kelr.engine.outages.standing import OR_WORSE, Standing
from kelr.engine.outages.told import PartitionFate, PossibleEnd
from kelr.engine.words import agree, brokers, joined
from kelr.model import Cluster, ElectedBy
from kelr.view.columns import Fact, Json
from kelr.view.describe import CLUSTER_HEAD, cluster_head, vouched
from kelr.view.styled import Style, Text, styled


@dataclass(frozen=True, slots=True)
class Shape:
    """How one flag reads."""

    flag: Standing
    name: str
    """In documents."""
    title: str
    """In the table of totals."""
    short: str
    """Of one partition, and as a column's title in small letters."""
    style: Style


SHAPES = (
    Shape(Standing.MAY_LOSE, "may-lose", "committed records may be lost", "may lose records", Style.BAD),
    Shape(Standing.LEADERLESS, "leaderless", "without leader", "no leader", Style.BAD),
    Shape(Standing.ELR_ONLY, "elr-only", "  of these, only ELR members may lead", "no leader", Style.BAD),
    Shape(Standing.UNPROVEN, "unproven", "  of these, no replica is proven complete", "no leader", Style.BAD),
    Shape(Standing.UNDER_MIN_ISR, "under-min-isr", "under min ISR: acks=all refused", "under min ISR", Style.NOTICE),
    Shape(Standing.MIN_ISR_UNKNOWN, "min-isr-unknown", "perhaps under min ISR: UNKNOWN", "?", Style.NOTICE),
    Shape(Standing.LAST_REPLICA, "last-replica", "one replica in sync, of several", "last replica", Style.NOTICE),
    Shape(Standing.LEADER_MOVES, "leader-moves", "another leader", "leader moves", Style.PLAIN),
    Shape(Standing.CHANGED, "changed", "changed at all", "fewer in sync", Style.PLAIN),
    Shape(Standing.DOUBTFUL, "doubtful", "UNKNOWN, see the notes", "UNKNOWN", Style.NOTICE),
)
"""All flags, in the order in which people read them."""

HEAD = (
    *CLUSTER_HEAD,
    Fact("rules", "string", "The election rule set that was computed with."),
    Fact("rules_certain", "boolean", "Whether it is known that the cluster runs it."),
)
NOTES = Fact("notes", "string[]", "What the reader has to know besides.")


def head_of(cluster: Cluster, source: str, rules: ChosenRules) -> Mapping[str, Json]:
    """What every document of ``kelr whatif`` begins with."""
    return {**cluster_head(cluster, source), "rules": rules.rules.name, "rules_certain": rules.certain}


def names_of(flags: Standing) -> list[str]:
    """The flags as documents have them."""
    return [shape.name for shape in SHAPES if flags & shape.flag]


def counts_of(
    counts: Mapping[Standing, int], or_worse: Mapping[Standing, int] | None = None, *, whole: bool
) -> dict[str, Json]:
    """Counts as documents have them: every flag, also where there is none.

    Args:
        or_worse: for some flags the partitions that have it or a worse one (`OR_WORSE`).
        whole: as for `vouched`.
    """
    found = {shape.name.replace("-", "_"): counts.get(shape.flag, 0) for shape in SHAPES}
    for shape in SHAPES if or_worse is not None else ():
        if shape.flag in OR_WORSE:
            found[f"{shape.name.replace('-', '_')}_or_worse"] = (or_worse or {}).get(shape.flag, 0)
    return {name: vouched(count, whole=whole) for name, count in found.items()}


def short_of(fate: PartitionFate) -> Shape:
    """The worst that is new of a partition, as it ends worst."""
    new = fate.worst.then & ~fate.now
    return next((shape for shape in SHAPES if new & shape.flag), SHAPES[-2])


def remarks(fate: PartitionFate) -> Iterator[str]:
    """What a person should know of a partition besides its sets, in few words."""
    worst = fate.worst
    if worst.then & Standing.MAY_LOSE:
        yield f"{worst.after.leader} elected {_BY.get(worst.elected_by, 'without proof')}"
    if worst.then & Standing.LEADERLESS:
        yield _back(worst)
    if fate.depends:
        yield f"{_condition(fate)}; else {_else(fate)}"
    if fate.then & Standing.MIN_ISR_UNKNOWN:
        yield "min ISR UNKNOWN"
    yield from worst.doubts


_BY: Mapping[ElectedBy | None, str] = {
    ElectedBy.UNCLEAN: "uncleanly",
    ElectedBy.LAST_KNOWN_LEADER: "as last known leader",
    ElectedBy.LONGEST_LOG: "by its log",
}


def _condition(fate: PartitionFate) -> str:
    """What the worst end rests on."""
    untold = sorted({broker for end in fate.ends for broker in end.unclean})
    if not untold:
        return f"in the order {', '.join(map(str, fate.worst.order))}"
    unclean = fate.worst.unclean
    return f"so if {joined(unclean or untold)} stopped {'uncleanly' if unclean else 'cleanly'}"


def _else(fate: PartitionFate) -> str:
    other = fate.ends[-1]
    return "no leader" if other.after.leader is None else f"{other.after.leader} leads"


def _back(end: PossibleEnd) -> str:
    """How a partition comes back: by whose return, and what that may cost."""
    safe = [back for back in end.comebacks if back.loses_nothing]
    sure = [back.broker for back in safe if not any(o.broker == back.broker and o.clean != back.clean for o in safe)]
    if_clean = [one for one in sure if any(back.broker == one and not back.clean for back in end.comebacks)]
    certain = sorted({back.broker for back in safe} - set(if_clean))
    if certain:
        return f"back with {joined(certain, 'or')}"
    if if_clean:
        return f"back with {joined(sorted(if_clean), 'or')} if stopped cleanly"
    if end.by_logs:
        return "the Unclean Recovery Manager elects by logs, once the brokers are back that it waits for"
    if end.doubts:
        return "who is elected on a return is UNKNOWN"
    risky = sorted({back.broker for back in end.comebacks if back.elected is not None})
    if risky:
        return f"{joined(risky, 'or')} would be elected on return, even if its log was cut"
    together = end.together
    if together is None or together.elected is None:
        return (
            "Kafka elects no leader when they are back" if together is not None else "no single return elects a leader"
        )
    if together.loses_nothing:
        return f"once all are back, {together.elected} leads"
    return f"once all are back, {together.elected} leads {_BY.get(together.by, 'without proof')}"


def not_known(cluster: Cluster) -> Text:
    """What stands before a verdict that would be an all-clear, where no controller answers; empty where one does."""
    return [] if cluster.controller_silence is None else styled("UNKNOWN; by what brokers knew last ", Style.NOTICE)


def as_it_is(now: Mapping[Standing, int]) -> str:
    """How many partitions have no leader, or less than min ISR in sync, before anything happens; empty for none."""
    found = (
        (now.get(Standing.LEADERLESS, 0), "has no leader", "have no leader"),
        (now.get(Standing.UNDER_MIN_ISR, 0), "is under min ISR", "are under min ISR"),
        (now.get(Standing.MIN_ISR_UNKNOWN, 0), "may be under min ISR", "may be under min ISR"),
    )
    parts = [f"{count:,} {agree(count, one, many)}" for count, one, many in found if count]
    return f"{joined(parts)} already" if parts else ""


NO_LOGS_READ = (
    "whatif reads no logs: members of ISR and ELR count as complete, so more partitions may lose records than are"
    " counted. kelr explain --if reads the logs"
)


def notes_of(
    rules: ChosenRules, cluster: Cluster, doubts: Mapping[str, int], depends: int, *, in_order: bool = False
) -> list[str]:
    """The notes below the totals.

    Args:
        depends: for how many partitions the order of events makes a difference, or, where they happen `in_order`, how
            brokers stopped that return.
    """
    found = []
    if not rules.certain:
        found.append(f"rules {rules.rules.name}: {rules.reason}")
    if depends:
        found.append(
            f"{depends:,} partition{'s' * (depends != 1)}: the outcome depends on"
            f" {'how brokers stopped that return' if in_order else 'the order in which the brokers go'}; the worst is"
            " counted"
        )
    found += [f"{count:,} partition{'s' * (count != 1)}: {doubt}" for doubt, count in sorted(doubts.items())]
    if cluster.controller_silence is not None:
        found.append(
            f"no controller answers ({cluster.controller_silence}): Kafka elects no leader now, or a controller"
            " that these brokers do not reach does. Partitions may stand otherwise by now, and those that lose"
            " their leader may stay leaderless"
        )
    if cluster.reassignments_error is not None:
        found.append(
            f"whether reassignments are under way is UNKNOWN ({cluster.reassignments_error}): an election may"
            " complete one, and drop replicas with it"
        )
    cordoned = [one.id for one in cluster.brokers if cluster.refuses_to_order(one.id)]
    if cordoned:
        is_ = agree(len(cordoned), "is", "are")
        found.append(
            f"{brokers(cordoned)} {is_} cordoned: while such a broker is down, Kafka takes no order of replicas that"
            " names it. Partitions without a leader are left to Kafka's own elections then. Before it stops,"
            " empty its cordoned.log.dirs"
        )
    return found
