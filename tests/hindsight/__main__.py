"""`python -m tests.hindsight`: random incidents, and the verdict on every claim that kelr makes of them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kelr.controller import RuleSet, rule_set
from tests.hindsight.incident import Incident, random_incident
from tests.hindsight.judge import Judged, Verdict
from tests.hindsight.reach import Reach
from tests.hindsight.run import judged
from tests.hindsight.sentences import unexplained
from tests.hindsight.shrink import shrunk
from tests.hindsight.tally import Tally

RULES = ("elr-4.3", "elr-4.1", "elr-4.1.0", "elr-4.0", "kraft")
"""Rule sets of released Kafka; incident by incident, one after the other."""
CHUNK = 50
WHOLE = 10_000
"""With so many incidents, everything that can be reached is."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An incident in which kelr said something wrong."""

    incident: Incident
    judged: tuple[Judged, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    tally: Tally
    wrong: tuple[Wrong, ...]
    reach: Reach


def incident_of(seed: int, names: Sequence[str]) -> Incident:
    return random_incident(seed, _rules(names[seed % len(names)]))


def _rules(name: str) -> RuleSet:
    return rule_set(name)


def run_chunk(seeds: Sequence[int], names: Sequence[str]) -> Chunk:
    """Some incidents."""
    tally, wrong, reach = Tally(), [], Reach()
    for seed in seeds:
        incident = incident_of(seed, names)
        found = tuple(judged(incident, reach))
        tally.add(found)
        false = tuple(one for one in found if one.verdict is Verdict.WRONG)
        if false:
            wrong.append(Wrong(incident, false))
    return Chunk(tally, tuple(wrong), reach)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    names = tuple(options.rules.split(","))
    seeds = range(options.seed, options.seed + options.incidents)
    total, reach, began, wrong = Tally(), Reach(), time.monotonic(), 0
    for chunk in _chunks(seeds, names, options.jobs):
        total.merge(chunk.tally)
        reach.merge(chunk.reach)
        for one in chunk.wrong:
            wrong += 1
            print(told(one, shrink=not options.keep_on), flush=True)
        took_s = time.monotonic() - began
        print(f"{total.incidents} incidents, {total.incidents / took_s:.0f} a second, {wrong} wrong", file=sys.stderr)
        if wrong and not options.keep_on:
            return 1
    missed = unexplained(reach.missed())
    lines = [
        *total.table(),
        "",
        f"{total.incidents:,} incidents, seeds {seeds[0]} to {seeds[-1]}, rules {options.rules}.",
    ]
    print("\n".join(lines))
    print("\n".join(f"not reached: {name}" for name in missed))
    if options.write is not None:
        write_table(options.write, lines)
    return 1 if wrong or (missed and total.incidents >= WHOLE) else 0


def write_table(path: Path, lines: Sequence[str]) -> None:
    """Put the table between its marks."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text("\n".join((before + BEGIN, *lines, END)) + after, encoding="utf-8")


def _with_table(path: str) -> Path:
    """Found out before the incidents are played, which take long."""
    document = Path(path)
    if not document.is_file() or not {BEGIN, END} <= set(document.read_text(encoding="utf-8").splitlines()):
        raise argparse.ArgumentTypeError(f"{path} is no document with the lines {BEGIN!r} and {END!r}")
    return document


BEGIN, END = "<!-- table -->", "<!-- end of the table -->"


def told(wrong: Wrong, *, shrink: bool) -> str:
    """The seed, the incident made as small as can be, what was said, and the truth."""
    first, incident, found = wrong.judged[0], wrong.incident, wrong.judged
    if shrink:
        incident = shrunk(incident, lambda smaller: any(_alike(first, one) for one in judged(smaller)))
        found = tuple(one for one in judged(incident) if one.verdict is Verdict.WRONG)
    lines = [str(incident)]
    for one in list({(one.claim.kind, one.claim.address): one for one in found}.values())[:8]:
        claim = one.claim
        about = f"{claim.kind} ({claim.address}; {claim.option})"
        lines.append(f"  {about}\n    said:  {claim.sentence}\n    truth: {one.truth}")
    return "\n".join(lines)


def _alike(first: Judged, one: Judged) -> bool:
    return one.verdict is Verdict.WRONG and one.claim.kind is first.claim.kind


def _chunks(seeds: range, names: Sequence[str], jobs: int) -> Iterator[Chunk]:
    parts = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    if jobs == 1:
        for part in parts:
            yield run_chunk(part, names)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run_chunk, parts, [names] * len(parts))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hindsight", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first incident's (default: 0)")
    parser.add_argument("--incidents", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument("--rules", default=",".join(RULES), help=f"rule sets (default: {','.join(RULES)})")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--write", type=_with_table, help="the document whose table is written anew")
    parser.add_argument("--keep-on", action="store_true", help="go on after a wrong claim, and do not shrink")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
