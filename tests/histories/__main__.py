"""Plays many histories, and shrinks those that go wrong: ``python -m tests.histories --seed 0 --histories 10000``."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.histories.history import Played, play
from tests.histories.shrink import shrunk
from tests.histories.sometimes import ENOUGH, missed

_SHOWN = 10
"""So many histories that went wrong are shrunk."""

_TOGETHER = 20
"""So many are one task of a process."""
_RENEWED = 50
"""After so many tasks a process makes way for another: it remembers whatever histories came to."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play them; 1 where one went wrong, or where something never came about in as many as are `ENOUGH`."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first one; the others follow it")
    parser.add_argument("--histories", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--trace", action="store_true", help="tell all that happened in them")
    given = parser.parse_args(arguments)
    seeds, began = range(given.seed, given.seed + given.histories), time.monotonic()
    wrong: list[Played] = []
    reached: Counter[str] = Counter()
    with multiprocessing.Pool(given.jobs, maxtasksperchild=_RENEWED) as pool:
        for count, played in enumerate(pool.imap_unordered(play, seeds, chunksize=_TOGETHER), start=1):
            reached.update(played.reached)
            if count % ENOUGH == 0:
                print(f"{count:,} played, {len(wrong)} wrong", file=sys.stderr, flush=True)
            if given.trace:
                print("\n".join(played.trace))
            if played.wrong:
                wrong.append(played)
                print(f"seed {played.seed}: {played.wrong[0]}", flush=True)
    minutes = (time.monotonic() - began) / 60
    print(
        f"{len(seeds)} histories, {len(wrong)} wrong; {len(seeds) / minutes:,.0f} a minute with {given.jobs} processes"
    )
    never = missed(reached) if len(seeds) >= ENOUGH else ()
    for name in never:
        print(f"never came about: {name}")
    for one in sorted(wrong, key=lambda played: played.seed)[:_SHOWN]:
        schedule = shrunk(one.seed, one.schedule)
        print(f"\nseed {one.seed}, shrunk: {json.dumps(schedule)}")
        last = play(one.seed, schedule)
        print("\n".join((*last.trace, *last.wrong)), flush=True)
    return 1 if wrong or never else 0


if __name__ == "__main__":
    sys.exit(main())
