"""Runs faults at the requests of every command, several at a time, and writes the list of outcomes.

python -m tests.faults [--one-of-each SEED [--most N]] [--jobs N] [--only NAME] [--write docs/faults.md]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from random import Random

from tests.faults.matrix import CASES, FAULTS, Outcome, outcomes

_ABOUT = """\
# Faults, and what kelr does then

A simulated cluster plays a fault at one request of a command's run: the command must give the right answer, or say
clearly what it did not learn or could not do, in time, and never decide otherwise than it would have. For commands that
change the cluster, the state afterwards is looked at: only the planned replica leads, and after
`kelr recover resume` no partition is left in another order and no journal is open.

| fault | is |
|---|---|
| delay (in time), delay (too long) | the answer comes 0.1 s, or 3 s later; `--timeout` is 1 s |
| drop, lose | no answer comes; the request was carried out (drop), or was not (lose) |
| close | the connection ends in place of the answer |
| garble, truncate | the answer is noise, or ends after 9 bytes and the connection with it |
| slow | the answer comes at 40 bytes a second |
| error NAME | every error code of the answer is this one |

**Right** is the same document as without the fault; **less known** the same decisions with something marked
UNKNOWN; the other runs ended with an error of that exit code (`docs/cli.md`), which names what happened.

Written by `make faults`; tests/faults holds the commands, the incident and the judge.
"""


def main() -> int:
    """0 where all is well, 1 where something is not."""
    options = _options()
    cases = [number for number, case in enumerate(CASES) if options.only in (None, case.name)]
    found: list[Outcome] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = {
            pool.submit(_run, number, fault, options.one_of_each, options.most): (number, fault)
            for number in cases
            for fault in FAULTS
        }
        for task in as_completed(tasks):
            number, fault = tasks[task]
            result = task.result()
            found += result
            bad = sum(bool(one.findings) for one in result)
            print(f"{CASES[number].shown}, {fault}: {len(result)} runs, {bad} not well", file=sys.stderr, flush=True)
            for one in result:
                for finding in one.findings:
                    print(f"  {one.case.shown}, {fault} at request {one.at} ({one.api}): {finding}", flush=True)
    if options.write is not None:
        options.write.write_text(_document(found, options), encoding="utf-8")
    print(f"{len(found)} runs, {sum(bool(one.findings) for one in found)} not well")
    return int(any(one.findings for one in found))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--one-of-each", type=int, metavar="SEED", help="strike one request of each name, not all")
    parser.add_argument("--most", type=int, metavar="N", help="strike no more than N names in a command's run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--write", type=Path)
    return parser.parse_args()


def _run(number: int, fault: str, seed: int | None, most: int | None) -> list[Outcome]:
    chance = None if seed is None else Random(f"{seed}/{CASES[number].shown}/{fault}")
    return outcomes(CASES[number], [fault], chance=chance, most=most)


def _document(found: Sequence[Outcome], options: argparse.Namespace) -> str:
    seed, most = options.one_of_each, options.most
    names = "each name" if most is None else f"{most} names"
    struck = "each request of the run" if seed is None else f"one request of {names} in the run (seed {seed})"
    lines = [_ABOUT, f"{len(found):,} runs, struck at {struck}; {sum(bool(one.findings) for one in found)} not well.\n"]
    lines += _table("command", [case.shown for case in CASES], found, lambda one: one.case.shown)
    lines += ["", *_table("fault", FAULTS, found, lambda one: one.fault)]
    return "\n".join(lines) + "\n"


def _table(title: str, names: Iterable[str], found: Sequence[Outcome], of: Callable[[Outcome], str]) -> Iterator[str]:
    yield f"| {title} | runs | right | less known | exit codes (runs) |"
    yield "|---|---:|---:|---:|---|"
    for name in dict.fromkeys(names):
        counts = Counter(one.word for one in found if of(one) == name)
        exits = [f"{word.removeprefix('exit ')} ({count})" for word, count in sorted(counts.items()) if "exit" in word]
        if counts:
            row = (name, counts.total(), counts["right"], counts["less known"], ", ".join(exits) or "-")
            yield f"| {' | '.join(map(str, row))} |"


if __name__ == "__main__":
    sys.exit(main())
