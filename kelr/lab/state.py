"""lab.json: what a lab is and which processes are its own. Written atomically, read by every later kelr."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from kelr.durable import json_integer, make_directory
from kelr.errors import LabError, UsageError
from kelr.lab.spec import CONTROLLER_ID, LabSpec, is_controller

T = TypeVar("T")
STATE_FORMAT = 1
STATE_FILE = "lab.json"
_LOCK_TIMEOUT_S = 30.0
"""The lock is held for the moment of starting a process and writing a file."""
_LOCK_STEP_S = 0.05


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process by its id and its start time (seconds since 1970): a reused id has another start time."""

    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class LabState:
    """Everything that a later kelr needs to drive or end this lab."""

    lab_id: str
    """Random; every process of the lab carries it on its command line, so that none can be lost."""
    cluster_id: str
    spec: LabSpec
    ports: Mapping[int, int]
    """Node id to its TCP port; a broker keeps its port over restarts."""
    java: str
    jars: tuple[str, ...]
    archive: str
    """Class archive that quickens starts; need not exist."""
    client_ports: Mapping[int, int] = field(default_factory=dict)
    """Node id to the port of its listener for clients; empty where they come in at `ports`."""
    ready: bool = False
    """False until every broker was up once: a lab that is not ready was killed while starting, or is starting."""
    processes: Mapping[int, ProcessRecord] = field(default_factory=dict)
    """The last process started for each node, running or not."""

    @property
    def client_servers(self) -> str:
        """Where clients find the brokers; what the lab does itself goes to `bootstrap_servers`."""
        ports = self.client_ports or self.ports
        return ",".join(f"127.0.0.1:{ports[broker]}" for broker in self.spec.broker_ids)

    def document(self) -> dict[str, Any]:
        """As lab.json has it."""
        return {"format": STATE_FORMAT, **asdict(self)}

    def with_process(self, node: int, process: ProcessRecord) -> LabState:
        return replace(self, processes={**self.processes, node: process})


def default_directory() -> Path:
    """Where ``kelr lab`` lives: ``KELR_LAB_DIR``, else ``lab`` in the platform's state directory for kelr."""
    chosen = os.environ.get("KELR_LAB_DIR")
    return Path(chosen) if chosen else _state_directory() / "lab"


def _state_directory() -> Path:
    from platformdirs import user_state_path  # noqa: PLC0415

    return user_state_path("kelr")


class Stored(Protocol):
    """What lab.json can hold: the state of a real lab, or of a simulated one."""

    def document(self) -> dict[str, Any]: ...


def claim_directory(directory: Path, state: Stored) -> None:
    """Make the directory this lab's own by creating lab.json in it, which only one kelr can do.

    Raises:
        UsageError: the path has a comma in it.
        LabError: a lab is there already, or the directory holds something else.
    """
    if "," in str(directory):
        raise UsageError(f"Kafka splits paths at commas, and {directory} has one", next_step="give another --dir")
    if (directory / STATE_FILE).exists():
        raise _taken(directory)
    make_directory(directory)
    if any(directory.iterdir()):
        raise LabError(
            f"{directory} is not empty and holds no lab",
            next_step="give an empty or new directory with --dir: 'kelr lab down' will delete all of it",
        )
    # Written under another name and linked, so that lab.json is there whole or not at all, and for one kelr only.
    draft = directory / f".{STATE_FILE}.{os.getpid()}"
    try:
        draft.touch(mode=0o600)
        draft.write_text(_dump(state), encoding="utf-8")
        os.link(draft, directory / STATE_FILE)
    except FileExistsError:
        raise _taken(directory) from None
    finally:
        draft.unlink(missing_ok=True)


def save_state(directory: Path, state: Stored) -> None:
    """Replace lab.json in one step."""
    temporary = directory / f".{STATE_FILE}.{os.getpid()}"
    temporary.touch(mode=0o600)
    temporary.write_text(_dump(state), encoding="utf-8")
    temporary.replace(directory / STATE_FILE)


def load_state(directory: Path) -> LabState:
    """The state of the real lab in this directory.

    Raises:
        LabError: there is no lab, it is a simulated one, or lab.json is damaged or of another kelr's format.
    """
    return of_file(directory, _parse)


def is_simulated(directory: Path) -> bool:
    """Whether the lab in this directory is simulated. Raises LabError as `load_state`."""
    return of_file(directory, lambda document: document.get("kind") == "simulated")


def lab_id_of(directory: Path) -> str:
    """The id of the lab in this directory, whatever its kind. Raises LabError as `load_state`."""

    def found(document: dict[str, Any]) -> str:
        if document.get("kind") == "simulated":
            return str((document["token"], document["ports"], document["lab_id"])[-1])
        return _parse(document).lab_id

    return of_file(directory, found)


def of_file(directory: Path, parse: Callable[[dict[str, Any]], T]) -> T:
    """Something of a lab.json.

    Args:
        parse: may raise KeyError and its like where the document is not what it should be.

    Raises:
        LabError: there is no lab, or lab.json is damaged or of another kelr's format.
    """
    file = directory / STATE_FILE
    try:
        document = json.loads(file.read_text(encoding="utf-8"), parse_int=json_integer)
        if document["format"] != STATE_FORMAT:
            raise LabError(f"{file} has format {document['format']}, this kelr reads {STATE_FORMAT}")
        return parse(document)
    except (FileNotFoundError, NotADirectoryError):
        raise LabError(
            f"there is no lab in {directory}", next_step="start one with 'kelr lab up'", code="no-lab"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(
            f"{file} is damaged ({type(error).__name__}: {error})",
            next_step="'kelr lab down --force' ends the processes that run from this directory and deletes it",
            code="lab-damaged",
        ) from error


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Held while lab.json is read, changed and written, so that two kelr do not undo each other's changes.

    Raises:
        LabError: another process has held it for 30 seconds; names that process, by the id that it wrote into the lock.
    """
    with (directory / ".lock").open("a+", encoding="utf-8") as stream:
        if not take_lock(stream, timeout_s=_LOCK_TIMEOUT_S):
            raise _in_use(stream, directory)
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield


def take_lock(stream: TextIO, *, timeout_s: float) -> bool:
    """Lock an open file until it is closed; False where another process has held it for all that time."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOCK_STEP_S)


def _in_use(stream: TextIO, directory: Path) -> LabError:
    stream.seek(0)
    holder = stream.read(20).strip()
    who = f"process {holder}" if holder.isdecimal() else "another process"
    return LabError(
        f"{who} has been changing the lab in {directory} for {_LOCK_TIMEOUT_S:.0f} seconds and holds {stream.name}",
        next_step="wait until it has ended, or end it, and run the same command again",
    )


def _taken(directory: Path) -> LabError:
    return LabError(
        f"a lab is in {directory} already",
        next_step="use it ('kelr lab status'), end it ('kelr lab down'), or give another --dir",
        code="lab-exists",
    )


def _dump(state: Stored) -> str:
    return json.dumps(state.document(), indent=1) + "\n"


def _parse(document: dict[str, Any]) -> LabState:
    if document.get("kind") == "simulated":
        raise LabError("the lab is a simulated one", next_step="start a real one with 'kelr lab up --dir DIR'")
    return LabState(
        lab_id=document["lab_id"],
        cluster_id=document["cluster_id"],
        spec=LabSpec(**document["spec"]),
        ports={int(node): int(port) for node, port in document["ports"].items()},
        java=document["java"],
        jars=tuple(document["jars"]),
        archive=document["archive"],
        client_ports={int(node): int(port) for node, port in document.get("client_ports", {}).items()},
        ready=bool(document["ready"]),
        processes={int(node): ProcessRecord(**record) for node, record in document["processes"].items()},
    )


def node_name(node: int) -> str:
    """``controller``, of several the others ``controller 101``, or ``broker 2``."""
    if node == CONTROLLER_ID:
        return "controller"
    return f"controller {node}" if is_controller(node) else f"broker {node}"
