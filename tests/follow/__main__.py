"""Compare a release of Kafka with the one before it, try kelr on it, and write docs/kafka-versions/x.y.z.md.

    python -m tests.follow 4.4.0 [--rounds 5] [--compare-only] [--show KEY] [--repository URL]

Ends with 1 where a difference is not classified in known.toml, a classification fits none, or a run failed. A release
that the lab has no lock of is locked first; the jars of a release candidate come from the repository that is given.
"""

from __future__ import annotations

import argparse
import sys
from fnmatch import fnmatchcase

from kelr.lab.locks import locked_versions
from tests.follow.differences import compare, in_detail
from tests.follow.locks import write_lock
from tests.follow.page import PAGES, render, runs_of, tried_before


def main() -> int:
    chosen = _arguments()
    if chosen.kafka not in locked_versions():
        write_lock(chosen.kafka, {"candidate": chosen.repository} if chosen.repository else {})
    compared = compare(chosen.kafka, chosen.repository)
    page, well = PAGES / f"{chosen.kafka}.md", True
    tried = tried_before(page)
    page.parent.mkdir(exist_ok=True)
    page.write_text(render(compared, tried), encoding="utf-8")
    for line in compared.failures:
        print(line)
    for one, _ in compared.rows:
        if chosen.show and fnmatchcase(one.key, chosen.show):
            print("\n".join((one.key, *in_detail(one))))
    if not chosen.compare_only:
        tried = ""
        for run in runs_of(chosen.kafka, chosen.rounds):
            all_well, text = run.carried_out()
            tried, well = f"{tried}\n{text}", well and all_well
            print(text, flush=True)
            page.write_text(render(compared, tried), encoding="utf-8")
    count = f"{len(compared.rows)} differences from Kafka {compared.against}"
    print(f"{count}, {len(compared.failures)} to look at: {page.name}")
    return 0 if well and not compared.failures else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.follow", description=__doc__)
    parser.add_argument("kafka", help="the release, such as 4.4.0")
    parser.add_argument("--rounds", type=int, default=5, help="how many incidents on real clusters (default: 5)")
    parser.add_argument("--compare-only", action="store_true", help="start nothing; keep what the page says of runs")
    parser.add_argument("--show", help="print the instructions that changed in what fits: 'class PartitionChange*'")
    parser.add_argument("--repository", help="a Maven repository with the jars of a release candidate")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
