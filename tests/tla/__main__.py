"""``make tla``: let TLC look at as many histories of each model as the time allows, and print how many."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.tla.models import MODELS, UNATTENDED

COLUMNS = "{:58} {:>12} {:>12} {:>6} {:>9} {:>5}  {}"


def main() -> int:
    """Check each model; 1 if an invariant of one does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.tla")
    parser.add_argument("--seconds", type=float, default=600, help="for all models together")
    seconds = parser.parse_args().seconds
    print(COLUMNS.format("model", "states", "distinct", "depth", "complete", "s", ""))
    failed = False
    ends = monotonic() + seconds
    for number, model in enumerate(MODELS):
        with tempfile.TemporaryDirectory() as place:
            began = monotonic()
            # Whose histories end is to come to their end, also beside other work; the others share what is left.
            rest = 2 if model in UNATTENDED else len(MODELS) - number
            share = (ends - began) / rest
            checked = model.check(Path(place) / "tlc", seconds=share, workers=os.cpu_count() or 1, quick=False)
        took = round(monotonic() - began)
        complete = "yes" if checked.complete else "no"
        said = f"{checked.violated} DOES NOT HOLD" if checked.violated else "" if checked.complete else "at least"
        counts = (f"{checked.generated:,}", f"{checked.distinct:,}", checked.depth)
        print(COLUMNS.format(model.name, *counts, complete, took, said), flush=True)
        if checked.violated:
            print(checked.behavior)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
