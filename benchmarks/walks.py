"""How far two walks through kelr go: `describe` from argv to the row, `recover apply` from the plan to the election.

    python -m benchmarks.walks [-v]

Both ask a simulated cluster. Counted is which of kelr's files have a function that runs (what a module does while it
is imported is not), in any thread, and how many of kelr's frames stand above each other where bytes are sent. `-v`
names the files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec

ROOT = Path(__file__).parent.parent.resolve()
_TRACED = r"""
import atexit, json, os, sys, threading
root, out, *arguments = sys.argv[1:]
ours = {}
files, deepest = set(), 0

def own(code):
    name = code.co_filename
    if name not in ours:
        path = os.path.realpath(name)
        inside = path.startswith((root + "/kelr/", root + "/commands/"))
        ours[name] = os.path.relpath(path, root) if inside else ""
    return ours[name]

def stack(frame):
    while frame is not None:
        if own(frame.f_code):
            yield frame
        frame = frame.f_back

def profiled(frame, event, called):
    global deepest
    if event == "call" and (name := own(frame.f_code)) and name not in files and frame.f_code.co_name != "<module>":
        if not any(one.f_code.co_name == "<module>" and own(one.f_code) != "kelr/__main__.py" for one in stack(frame)):
            files.add(name)
    elif event == "c_call" and called.__name__ in ("send", "sendall") and "ocket" in type(called.__self__).__name__:
        deepest = max(deepest, sum(1 for _ in stack(frame)))

def tell():
    sys.setprofile(None)
    with open(out, "w") as file:
        json.dump([sorted(files), deepest], file)

atexit.register(tell)
sys.path[:0] = [root]
sys.argv = ["kelr", *arguments]
threading.setprofile(profiled)
sys.setprofile(profiled)
import runpy
runpy.run_module("kelr", run_name="__main__")
"""


def main() -> None:
    """Walk both, and print a line for each."""
    spec = SimulatedSpec(topics=1, partitions=3, brokers=3)
    with tempfile.TemporaryDirectory() as directory, SimulatedServer(spec) as server:
        plan = str(Path(directory) / "plan.json")
        connection = ("-b", f"127.0.0.1:{server.ports[3]}")
        told("describe", *walked(Path(directory), "describe", *connection))
        for broker in (3, 2, 1):
            _kill(server, broker)
        server.inside(lambda world: world.running.start(3))
        made = ("--election-type", "designation", "--designate", "3", "--out", plan)
        walked(Path(directory), "recover", "plan", *made, *connection)
        agreed = ("--yes", "--accept-loss", "unknown", "--force", "measured")
        told("recover apply", *walked(Path(directory), "recover", "apply", plan, *agreed, *connection))


def _kill(server: SimulatedServer, broker: int) -> None:
    server.inside(lambda world: world.running.kill(broker))
    while server.inside(lambda world: world.running.cluster.controller.active(broker)):
        time.sleep(0.1)


def walked(directory: Path, *arguments: str) -> tuple[list[str], int]:
    """The files that a command goes through, and how many frames are above its bytes at most."""
    out = directory / "walk.json"
    command = [sys.executable, "-c", _TRACED, str(ROOT), str(out), *arguments]
    environ = {**os.environ, "KELR_STATE_DIR": str(directory / "state")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
    files, deepest = json.loads(out.read_text())
    return files, deepest


def told(what: str, files: list[str], deepest: int) -> None:
    """Print what was counted."""
    folders = Counter(str(Path(name).parent) for name in files)
    where = ", ".join(f"{folder} {count}" for folder, count in sorted(folders.items()))
    print(f"{what}: {len(files)} files, {deepest} frames ({where})")
    if "-v" in sys.argv[1:]:
        print(*(f"  {name}" for name in files), sep="\n")


if __name__ == "__main__":
    main()
