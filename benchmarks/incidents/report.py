"""The table of all rounds in Markdown, and everything behind it in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.incidents.count import NOTHING, Lost, total
from benchmarks.incidents.policies import POLICIES
from benchmarks.incidents.rounds import Round
from kelr.lab.produce import Acks


def markdown(rounds: Sequence[Round], names: Sequence[str]) -> str:
    """The sums over all rounds, then each round."""
    acknowledged = sum((_acknowledged(one) for one in rounds), NOTHING)
    partitions = sum(len(one.chaos.layouts) for one in rounds)
    leaderless = sum(len(one.leaderless) for one in rounds)
    lines = [
        f"{len(rounds)} incidents, {partitions} partitions, {leaderless} of them without leader in the end;"
        f" {acknowledged.all:,} records acknowledged with acks=all, {acknowledged.one:,} with acks=1.",
        "",
        "| | lost for ever, acks=all | lost for ever, acks=1 | partitions with a loss |",
        "|---|---|---|---|",
    ]
    lines += [f"| {POLICIES[name].title} | {_row([one.losses[name] for one in rounds])} |" for name in names]
    lines.append(f"| on no disk that anybody could read | {_row([one.unreachable for one in rounds])} |")
    lines += ["", f"| round | brokers | gone | leaderless | {' | '.join(names)} | unreadable |"]
    lines.append("|---" * (len(names) + 5) + "|")
    lines += [_round_row(one, names) for one in rounds]
    lines += ["", "A cell of a round is records with acks=all + records with acks=1."]
    return "\n".join(lines) + "\n"


def document(rounds: Sequence[Round], names: Sequence[str]) -> Mapping[str, Any]:
    """Everything that was found, partition by partition."""
    return {"kind": "kelr/incidents", "version": 1, "rounds": [_round(one, names) for one in rounds]}


def _round_row(one: Round, names: Sequence[str]) -> str:
    gone = ", ".join(f"{broker} ({'disk' if readable else 'no disk'})" for broker, readable in one.chaos.gone.items())
    cells = [_sum_text(total(one.losses[name])) for name in names]
    ends = [one.chaos.seed, str(one.brokers), gone, f"{len(one.leaderless)} of {len(one.chaos.layouts)}"]
    return f"| {' | '.join([*ends, *cells, _sum_text(total(one.unreachable))])} |"


def _row(losses: Sequence[Mapping[int, Lost]]) -> str:
    everything = sum(map(total, losses), NOTHING)
    touched = sum(loss != NOTHING for one in losses for loss in one.values())
    return f"{everything.all:,} | {everything.one:,} | {touched}"


def _sum_text(loss: Lost) -> str:
    return f"{loss.all} + {loss.one}"


def _acknowledged(one: Round) -> Lost:
    acks = [record.acks for record in one.acked]
    return Lost(acks.count(Acks.ALL), acks.count(Acks.LEADER))


def _round(one: Round, names: Sequence[str]) -> Mapping[str, Any]:
    return {
        "seed": one.chaos.seed,
        "brokers": one.brokers,
        "steps": [asdict(step) for step in one.chaos.steps],
        "live": one.chaos.live,
        "returnable": one.chaos.returnable,
        "gone": [{"broker": broker, "disk_readable": readable} for broker, readable in one.chaos.gone.items()],
        "acknowledged": asdict(_acknowledged(one)),
        "refused": one.refused,
        "partitions": [_partition(one, partition, names) for partition in range(len(one.chaos.layouts))],
    }


def _partition(one: Round, partition: int, names: Sequence[str]) -> Mapping[str, Any]:
    state = one.before[partition]
    return {
        "partition": partition,
        "replicas": state.replicas,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "elr": state.elr,
        "last_known_elr": state.last_known_elr,
        "unreachable": asdict(one.unreachable.get(partition, NOTHING)),
        "lost": {name: asdict(one.losses[name].get(partition, NOTHING)) for name in names},
    }
