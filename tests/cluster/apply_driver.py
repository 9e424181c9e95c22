"""A process of its own that carries out a plan, and that SIGKILLs itself at one line of its journal.

    python -m tests.cluster.apply_driver BOOTSTRAP PLAN STATE-DIRECTORY [LINES [before|after]]

`LINES` counts lines of the journal; with `after` the line is on the disk already. Prints each result as a line.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kelr.durable import AppendOnlyFile
from kelr.errors import KelrError
from kelr.model.plan import AcceptedLoss
from kelr.recovery.actor import whoever_runs_this
from kelr.recovery.apply import apply_plan
from kelr.recovery.consent import Confirmation
from kelr.sources.connection import ConnectionSettings
from kelr.sources.ground import MACHINE
from kelr.sources.live import LiveSource
from kelr.sources.live.changes import LiveAdminClient


def main(bootstrap: str, plan_file: str, state: str, line: str = "0", when: str = "after") -> int:
    if int(line):
        _die_at(int(line), when)
    plan = pickle.loads(Path(plan_file).read_bytes())
    with LiveSource(ConnectionSettings.read(bootstrap, timeout_s=20)) as source:
        try:
            results = apply_plan(
                plan,
                source=source,
                hand=LiveAdminClient.of(source),
                state_directory=Path(state),
                ground=MACHINE,
                who=whoever_runs_this(),
                consented=Confirmation(AcceptedLoss(100_000, unbounded=True), "a test"),
            )
        except KelrError as error:
            print("error", type(error).__name__, error.message)
            return int(error.exit_code)
    for result in results:
        print(result.address, result.ended, result.leader)
    return 0


def _die_at(line: int, when: str) -> None:
    append, seen = AppendOnlyFile.append, [0]

    def dying(file: AppendOnlyFile, *records: Mapping[str, Any]) -> None:
        if file.path.name == "audit.jsonl":
            append(file, *records)
            return
        seen[0] += 1
        if seen[0] == line and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        append(file, *records)
        if seen[0] == line:
            os.kill(os.getpid(), signal.SIGKILL)

    AppendOnlyFile.append = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
