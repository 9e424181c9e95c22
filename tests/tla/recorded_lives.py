"""Lives of a partition with logs (`tests/simulation/lives.py`), held against docs/tla/Partition.tla."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from kelr.controller import RuleSet
from tests.simulation.lives import Life, Move, Setup, World
from tests.tla.models import Model
from tests.tla.steps import RULE_SETS, OnRecord, sequence

MOVES = (
    *("produce", "produce", "produce acks=1", "fetch", "fetch", "fetch", "flush", "crash", "lose power", "lose power"),
    *("register", "register", "fence", "unfence", "unfence", "drop", "add", "add", "elect preferred"),
    *("answer", "answer", "wait", "fail over", "min isr"),
)
"""Each of them is one action of the specification; the usual ones come more often."""
_SHOWN = re.compile(r'<<"shown", (\d+), (\d+)>>')


@st.composite
def recorded_lives(draw: st.DrawFn, rules: RuleSet, names: Sequence[str] = MOVES, *, length: int = 40) -> Life:
    """Lives of three replicas with min ISR 2."""
    size = draw(st.integers(length // 2, length))
    move = st.builds(Move, st.sampled_from(names), st.integers(1, 3))
    return Life(Setup(rules), tuple(draw(st.lists(move, min_size=size, max_size=size))))


def not_accepted(place: Path, rules: RuleSet, lives: Sequence[Life]) -> str | None:
    """The first of these lives that the specification of the rules does not allow; None where it allows all.

    Args:
        place: an empty directory for TLC.
    """
    model = Model("lives", RULE_SETS[rules], (), ("MinIsrWrite", "ElrFeature", "ElectPREFERRED", "ElectUNCLEAN"))
    told = [f"<<{','.join(_states(life))}>>" for life in lives]
    bounds = replace(model, most_records=100, highest_epoch=100)
    checked = bounds.check(place, "PartitionTrace", "TraceSpec", history=f"Lives == <<\n{','.join(told)}>>")
    assert checked.complete
    shown = Counter[int]()
    for number, at in _SHOWN.findall(checked.said):
        shown[int(number)] = max(shown[int(number)], int(at))
    for number, life in enumerate(lives, 1):
        came_to = max(shown[number], 1) - 1
        if came_to < len(life.moments):
            return f"not what the specification allows: {life.moments[came_to].move}, move {came_to + 1} of\n{life}"
    return None


def _states(life: Life) -> Iterator[str]:
    """Each state with the move that led there."""
    places: dict[int, tuple[int, int]] = {}
    moves = [Move("begin"), *(moment.move for moment in life.moments)]
    worlds = [life.setup.world(), *(moment.after for moment in life.moments)]
    for move, world in zip(moves, worlds, strict=True):
        logs = world.logs.logs
        for log in logs.values():
            places |= {record.id: (offset, record.epoch + 1) for offset, record in enumerate(log.records, 1)}
        known = OnRecord.of(world.partition)
        committed = (f"<<{offset}, {epoch}>>" for offset, epoch in (places[one] for one in world.logs.ledger.visible))
        yield (
            f'[move |-> "{move.name}", of |-> {move.broker}, partition |-> {replace(known, epoch=known.epoch + 1)},'
            f" broker |-> {_quoted(_brokers(world))}, committed |-> {{{', '.join(sorted(committed))}}},"
            f" log |-> <<{', '.join(sequence(r.epoch + 1 for r in log.records) for _, log in sorted(logs.items()))}>>]"
        )


def _brokers(world: World) -> Iterator[str]:
    """What each broker is, in the words of Partition.tla."""
    for broker, registration in sorted(world.cluster.controller.brokers.items()):
        if broker in world.cluster.down:
            yield "dead" if registration.fenced else "crashed"
        else:
            yield "fenced" if registration.fenced else "live"


def _quoted(words: Iterator[str]) -> str:
    listed = ", ".join(f'"{word}"' for word in words)
    return f"<<{listed}>>"
