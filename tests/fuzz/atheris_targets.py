"""Fuzzing guided by coverage, for as long as one likes.

    python -m tests.fuzz.atheris_targets TARGET [libFuzzer's options]

Needs atheris (PyPI). New inputs go into ``build/fuzz/TARGET``, from where the next run goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["kelr"]):
    from tests.fuzz.seeds import seeds
    from tests.fuzz.targets import TARGETS


def main() -> None:
    name, *options = sys.argv[1:]
    corpus = Path("build/fuzz") / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()[name]):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], str(corpus), "-rss_limit_mb=1024", "-timeout=20", *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
