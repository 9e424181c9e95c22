"""Breaks kelr's rules on purpose, one place at a time, and lists the breaks that no test notices (`make mutation`).

It works on a copy in build/mutation. The survivors that are known, and why each is one, are in `docs/mutation.md`.

    python tests/mutation.py [FILE...]     the modules to break; without any, all that hold rules
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "mutation"
RULES = (
    *("election", "change", "handlers", "brokers", "requests", "reach", "state", "rules"),
    *("recovery/rules", "recovery/task", "recovery/manager", "recovery/one_pass", "recovery/controller"),
)
ENGINE = (
    *("situation", "logs", "loss", "elections", "forecast", "decide", "recovery/prediction", "recovery/elections"),
    *("advice/table", "advice/damage", "advice/recovery", "what_if/assumptions", "what_if/events", "what_if/imagine"),
)
MODULES = tuple(
    f"kelr/{package}/{name}.py" for package, names in (("controller", RULES), ("engine", ENGINE)) for name in names
)
TESTS = ("tests/controller", "tests/engine", "tests/scenarios", "tests/simulation")
# Random tests are left out: they would notice much, but slowly, and each time something else.
PYTEST_ARGS = ("-p", "no:cacheprovider", "-W", "ignore", "-m", "not hypothesis")


def main(modules: tuple[str, ...]) -> int:
    missing = [module for module in modules if not (ROOT / module).is_file()]
    if missing:
        print(f"there is no {', '.join(missing)}", file=sys.stderr)
        return 2
    _copy(modules)
    done = subprocess.run([_mutmut(), "run", "--max-children", "1"], cwd=COPY, check=False)
    survivors = _survivors()
    for name, outcome in survivors:
        print(f"\n{name}: {outcome}")
        print(_difference(name))
    print(f"\n{len(survivors)} breaks were not noticed; docs/mutation.md tells of those that are known")
    return done.returncode


def _copy(modules: tuple[str, ...]) -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in ("kelr", "commands", "tests", "docs"):
        shutil.copytree(ROOT / name, COPY / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", COPY)
    settings = {
        "source_paths": ["kelr"],
        "only_mutate": list(modules),
        "pytest_add_cli_args": list(PYTEST_ARGS),
        "pytest_add_cli_args_test_selection": list(TESTS),
        "also_copy": ["commands", "tests", "docs", "pyproject.toml", "README.md"],
    }
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in settings.items()]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (COPY / "pyproject.toml").write_text("\n".join([project, "[tool.mutmut]", *lines, ""]), encoding="utf-8")


def _mutmut() -> str:
    return str(Path(sys.executable).with_name("mutmut"))


def _survivors() -> list[tuple[str, str]]:
    """Name and outcome of each break that no test noticed; one that no test even reaches is among them."""
    told = subprocess.run([_mutmut(), "results"], cwd=COPY, check=True, capture_output=True, text=True).stdout
    return re.findall(r"^\s*(\S+): (survived|no tests|suspicious)$", told, re.MULTILINE)


def _difference(name: str) -> str:
    """What was broken, as the changed lines."""
    told = subprocess.run([_mutmut(), "show", name], cwd=COPY, check=True, capture_output=True, text=True).stdout
    return "\n".join(line for line in told.splitlines() if re.match(r"[-+](?![-+])", line))


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:]) or MODULES))
