"""``kelr watch`` on a terminal: what it shows, which keys it takes, and that the terminal is given back as it was."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.sources.snapshot_file import write_snapshot
from tests.incident import INCIDENT
from tests.on_terminal import ENTER, FOREGROUND, LEAVE, PATIENCE_S, OnTerminal, Screen

# The incident answers for a cluster, in a process of its own.
PROGRAM = f"""
{FOREGROUND}
from pathlib import Path
import kelr.commands.session as session
from kelr.commands.main import main
from kelr.sources.snapshot_file import SnapshotFileSource
session.open_source = lambda settings: SnapshotFileSource(Path(sys.argv[1]))
{{more}}
sys.exit(main(sys.argv[2:]))
"""
BREAKS = """
import kelr.view.watch.app as app
def breaks(*_):
    raise ZeroDivisionError("oh")
app.{what} = breaks
"""
AWAY = """
from kelr.errors import ConnectError
class Away(SnapshotFileSource):
    "Cannot be read while there is a file beside the snapshot."
    def forget(self):
        if Path(sys.argv[1]).with_name("gone").exists():
            raise ConnectError("no broker answered", next_step="check that one is up")
    @property
    def controller_silence(self):
        return "no answer in time" if Path(sys.argv[1]).with_name("silent").exists() else None
session.open_source = lambda settings: Away(Path(sys.argv[1]))
"""
TIME = r"\d\d:\d\d:\d\d"
HANGS = """
import time
class Hangs(SnapshotFileSource):
    "Its brokers do not answer while there is a file beside the snapshot."
    def forget(self):
        while Path(sys.argv[1]).with_name("hangs").exists():
            time.sleep(0.05)
session.open_source = lambda settings: Hangs(Path(sys.argv[1]))
"""
COUNTS = """
class Counts(SnapshotFileSource):
    "Writes a byte for each look."
    def forget(self):
        with Path(sys.argv[1]).with_name("looks").open("a") as looks:
            looks.write(".")
session.open_source = lambda settings: Counts(Path(sys.argv[1]))
"""


def watch_of(snapshot: Path, *arguments: str, more: str = "") -> OnTerminal:
    """A watch of the incident."""
    command = ("watch", "-b", "kafka-1:9092", "--interval", "0.2", *arguments)
    return on_terminal(snapshot, *command, more=more)


def on_terminal(snapshot: Path, *arguments: str, more: str = "") -> OnTerminal:
    return OnTerminal([sys.executable, "-c", PROGRAM.format(more=more), str(snapshot), *arguments])


def marks(screen: str) -> list[str]:
    """What stands before each partition of the list: whether the last look renewed it."""
    rows = (line for line in screen.splitlines() if line[1:].startswith(("orders:", "payments:", "secret:")))
    return [row[0] for row in rows]


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "incident.kelr"
    write_snapshot(INCIDENT, path)
    return path


@pytest.fixture
def watching(snapshot: Path) -> Iterator[OnTerminal]:
    """A watch whose list is on the screen."""
    with watch_of(snapshot) as watch:
        watch.until(ENTER)
        watch.until(b"orders:2")
        yield watch


def test_keys_and_the_end(watching: OnTerminal) -> None:
    assert watching.settings != watching.before
    watching.press(b"\x1b[B\r")
    watching.seen("^orders:1 +LEADERLESS", "^EVENT")
    watching.press(b"\x1b")
    watching.seen(r"SITUATION\^", r"^─ \* orders:1, logs as of")
    watching.press(b"/pay\r")
    watching.seen("1 of 4 hold 'pay'")
    watching.press(b"q")
    assert watching.ended() == 0
    watching.given_back()
    assert watching.written.endswith(b"UTC: 2 leaderless, 3 leaderless or unsafe of 5 partitions\r\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_ends_it(watching: OnTerminal, number: signal.Signals) -> None:
    watching.process.send_signal(number)
    assert watching.ended() == -number
    watching.given_back()


def test_ctrl_c(watching: OnTerminal) -> None:
    watching.press(b"\x03")
    assert watching.ended() == 130
    watching.given_back()
    assert b"kelr: interrupted\r\n" in watching.written
    assert b"Traceback" not in watching.written


@pytest.mark.parametrize("keys", [b"\x03", b"\x03\x03\x03\x03", b"\x1b[B\r\x03", b"/pay\x03", b"?\x03"])
def test_ctrl_c_wherever_it_is_pressed_and_again(snapshot: Path, keys: bytes) -> None:
    with watch_of(snapshot) as watch:
        watch.until(ENTER)
        watch.until(b"orders:2")
        watch.press(keys)
        assert watch.ended() == 130
        watch.given_back()


@pytest.mark.parametrize(("key", "code"), [(b"q", 0), (b"\x03", 130)])
def test_brokers_that_hang_keep_nobody_from_ending_it(snapshot: Path, key: bytes, code: int) -> None:
    hangs = snapshot.with_name("hangs")
    hangs.touch()
    with watch_of(snapshot, more=HANGS) as watch:
        watch.until(ENTER)
        watch.seen("nothing read yet, for [1-9] s")
        watch.press(key)
        assert watch.ended() == code
        watch.given_back()


def test_interrupted_from_elsewhere(watching: OnTerminal) -> None:
    watching.process.send_signal(signal.SIGINT)
    assert watching.ended() == 130
    watching.given_back()
    assert b"kelr: interrupted\r\n" in watching.written


def test_its_colours_are_the_terminals_own(watching: OnTerminal) -> None:
    """A light one stays light."""
    watching.seen("none so far")
    assert b"\x1b[1;31" in watching.written
    assert not re.findall(rb"\x1b\[[0-9;]*[34]8;[25];[0-9;]*m", watching.written)


def test_alerts_that_fail_are_a_line_and_those_that_hang_hold_nothing_up(snapshot: Path) -> None:
    with watch_of(snapshot, "--on-change", "false") as watch:
        watch.seen("^alerts: command false: it ended with 1 *$", "^ orders:2")
        watch.press(b"\x03")
        assert watch.ended() == 130
    with watch_of(snapshot, "--on-change", "sleep 600") as watch:
        watch.until(ENTER)
        watch.seen("^ orders:2", r"^─ \* orders:2, logs as of")
        watch.press(b"/pay\r")
        watch.seen("1 of 4 hold 'pay'")
        watch.press(b"\x03")
        assert watch.ended() == 130
        watch.given_back()
    assert b"alerts: command sleep: " in watch.written


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("screen", [True, False])
def test_a_signal_that_ends_the_watch_ends_the_command_that_runs(
    snapshot: Path, number: signal.Signals, screen: bool
) -> None:
    """It went on without the watch."""
    runs = snapshot.with_name("runs")
    program = f"import os, pathlib, time; pathlib.Path({str(runs)!r}).write_text(str(os.getpid())); time.sleep(600)"
    command = ("--on-change", f'{sys.executable} -c "{program}"')
    with watch_of(snapshot, *command, *(() if screen else ("-o", "ndjson"))) as watch:
        if screen:
            watch.until(ENTER)
        deadline = time.monotonic() + PATIENCE_S
        while not (runs.exists() and runs.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        proc = Path("/proc", runs.read_text())
        assert proc.exists()
        watch.process.send_signal(number)
        assert watch.ended() == -number
        if screen:
            watch.given_back()
        assert not proc.exists()


def test_a_terminal_that_is_gone_ends_it(watching: OnTerminal) -> None:
    watching.hang_up()
    assert watching.process.wait(30) != 0


def test_a_terminal_that_takes_nothing_any_more(snapshot: Path) -> None:
    """Nobody reads what is written: the pseudo-terminal is full after a part of the first frame."""
    looks = snapshot.with_name("looks")
    with watch_of(snapshot, more=COUNTS) as watch:
        deadline = time.monotonic() + PATIENCE_S
        while not looks.exists() or looks.stat().st_size < 5:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        watch.press(b"\x03")
        assert watch.process.wait(PATIENCE_S) == 130


def test_ctrl_z_gives_the_terminal_back_and_takes_it_again(watching: OnTerminal) -> None:
    watching.press(b"\x1a")
    watching.until(LEAVE)
    watching.until_stopped()
    watching.process.send_signal(signal.SIGCONT)
    watching.until(ENTER)
    watching.seen("^ orders:2")
    watching.press(b"q")
    assert watching.ended() == 0
    watching.given_back()


def test_another_size_is_drawn_whole(watching: OnTerminal) -> None:
    watching.seen("^ orders:1 ", "^─ changes")
    for columns, lines in ((60, 18), (41, 12), (20, 5), (120, 40)):
        watching.resize(columns, lines)
        watching.process.send_signal(signal.SIGWINCH)
    # Frames that were drawn for another size have gone to the same screen.
    watching.seen("^ orders:1 ", "^ orders:2 ", "^─ changes", r"q quit  \? help$")
    watching.press(b"q")
    assert watching.ended() == 0


GROWS = """
import fcntl, shutil, struct, termios
read = shutil.get_terminal_size
def grows(*_):
    "As it is read, a terminal of five lines gets 40."
    size = read()
    if size.lines == 5:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    return size
shutil.get_terminal_size = grows
"""


def test_a_size_that_changes_while_it_is_read_is_drawn_too(snapshot: Path) -> None:
    """The older size was told last, and stayed."""
    with watch_of(snapshot, more=GROWS) as watch:
        watch.until(ENTER)
        watch.seen("^ orders:1 ", "^─ changes")
        watch.resize(120, 5)
        watch.has_become(120, 40)
        watch.seen("^ orders:1 ", "^ orders:2 ", "^─ changes", r"q quit  \? help$")
        watch.press(b"q")
        assert watch.ended() == 0


def test_a_frame_that_was_on_its_way_when_the_size_changed() -> None:
    """What a real terminal does with it: places outside are those at the edge."""
    screen = Screen(100, 30)
    screen.resize(8, 2)
    screen.feed(b"\x1b[1;1Hone\x1b[30;1Hlast of many\x1b[2;100H!")
    assert screen.text == "one\nlast of!"
    screen.feed(b"\x1b[30;1H\x1b[K")
    assert screen.text == "one\n"


def test_a_defect(snapshot: Path) -> None:
    with watch_of(snapshot, more=BREAKS.format(what="head_lines")) as watch:
        watch.until(ENTER)
        assert watch.ended() == 70
        watch.given_back()
        assert watch.written.index(LEAVE) < watch.written.index(b"internal error: ZeroDivisionError: oh")


def test_a_defect_in_what_a_key_does(snapshot: Path) -> None:
    with watch_of(snapshot, more=BREAKS.format(what="WatchApp.action_about")) as watch:
        watch.until(ENTER)
        watch.seen("^ orders:2")
        watch.press(b"?")
        assert watch.ended() == 70
        assert b"ZeroDivisionError" in watch.written
        assert b"internal error: RuntimeError: the screen failed" in watch.written
        watch.given_back()


def test_a_cluster_that_is_away_for_a_while(snapshot: Path) -> None:
    gone = snapshot.with_name("gone")
    with watch_of(snapshot, more=AWAY) as watch:
        # Logs of a snapshot are renewed by no look, which is said of them; partitions are.
        assert marks(watch.seen("^ orders:2", "none so far")) == [" ", " ", " ", " "]
        gone.touch()
        away = watch.seen(
            rf"^NOT RENEWED since {TIME}: no broker answered; check that one is up$",
            rf"^{TIME} the cluster cannot be read, and was last at {TIME}: no broker answered$",
            r"\* not renewed",
        )
        assert marks(away) == ["*", "*", "*", "*"]
        gone.unlink()
        back = watch.seen(
            rf"^{TIME} the cluster can be read again, after \d+ s in which nothing was seen$", "^ orders:2"
        )
        assert "NOT RENEWED" not in back
        assert marks(back) == [" ", " ", " ", " "]
        watch.press(b"q")
        assert watch.ended() == 0


def test_a_controller_that_is_gone_for_a_while(snapshot: Path) -> None:
    silent = snapshot.with_name("silent")
    with watch_of(snapshot, more=AWAY) as watch:
        watch.seen("^ orders:2")
        silent.touch()
        watch.seen(
            rf"^NO CONTROLLER ANSWERS since {TIME} \(no answer in time\): what brokers tell may be out of date",
            rf"^{TIME} no controller answers since {TIME} \(no answer in time\)",
            r"^\*orders:2",
        )
        silent.unlink()
        watch.seen(rf"^{TIME} a controller answers again, after \d+ s$", "^ orders:2")
        silent.touch()
        watch.seen("^NO CONTROLLER ANSWERS")
        watch.press(b"q")
        assert watch.ended() == 0
        assert b"of 5 partitions; no controller answered since " in b" ".join(watch.written.split())


def test_a_controller_that_was_gone_before_the_watch_began(snapshot: Path) -> None:
    silent = snapshot.with_name("silent")
    silent.touch()
    with watch_of(snapshot, more=AWAY) as watch:
        watch.seen(
            r"^NO CONTROLLER ANSWERS since the watch began or before \(no answer in time\)",
            rf"^{TIME} no controller answers since the watch began or before \(no answer in time\)",
        )
        watch.press(b"q")
        assert watch.ended() == 0
        assert b"of 5 partitions; no controller answered since the watch began or before" in b" ".join(
            watch.written.split()
        )


def test_a_terminal_that_cannot_show_a_screen_gets_lines(snapshot: Path) -> None:
    more = "import os\nos.environ['TERM'] = 'dumb'\n"
    with watch_of(snapshot, more=more) as watch:
        assert ENTER not in watch.until(b"orders:2: leader none")
        watch.press(b"\x03")
        assert watch.ended() == 130


# kelr describe --watch.

DESCRIBE = ("describe", "--watch", "-b", "kafka-1:9092", "--interval", "0.2")
TABLE = ("^PARTITION +LEADER", r"^orders:1 +none", "^payments:0")


@pytest.fixture
def describing(snapshot: Path) -> Iterator[OnTerminal]:
    """A describe --watch whose table is on the screen."""
    with on_terminal(snapshot, *DESCRIBE, more=AWAY) as describe:
        describe.until(ENTER)
        describe.seen(*TABLE)
        yield describe


def test_the_table_of_describe_with_its_age_and_its_end(describing: OnTerminal) -> None:
    _, second, *_, foot = describing.seen(rf"^kelr describe --watch  kafka-1:9092  {TIME} UTC, \d+ s ago$").splitlines()
    assert second.startswith("PARTITION")
    assert foot == " p pause  r renew  q quit"
    describing.press(b"p")
    # Looks are 0.2 s apart while it goes on.
    paused = describing.seen(r"[2-9] s ago  PAUSED$")
    (taken,) = re.findall(f"{TIME} UTC", paused)
    describing.press(b"p")
    describing.shown(lambda text: "PAUSED" not in text and taken not in text, "it goes on")
    describing.press(b"q")
    assert describing.ended() == 0
    describing.given_back()


def test_the_table_of_describe_scrolls_and_follows_the_terminals_size(describing: OnTerminal) -> None:
    describing.resize(72, 6)
    describing.seen("q quit$", "^PARTITION")
    describing.press(b"\x1b[6~")
    scrolled = describing.shown(lambda text: "PARTITION" not in text, "it has scrolled")
    assert scrolled.splitlines()[0].startswith("kelr describe --watch")
    describing.press(b"g")
    describing.seen("^PARTITION")
    describing.resize(100, 30)
    describing.seen(*TABLE)
    describing.press(b"q")
    assert describing.ended() == 0


def test_ctrl_c_ends_describe(describing: OnTerminal) -> None:
    describing.press(b"\x03")
    assert describing.ended() == 130
    describing.given_back()
    assert b"Traceback" not in describing.written


def test_describe_gives_the_terminal_back_when_it_is_told_to_end(describing: OnTerminal) -> None:
    describing.process.terminate()
    assert describing.ended() == -signal.SIGTERM
    describing.given_back()


def test_a_table_of_a_cluster_that_is_away_says_so(describing: OnTerminal, snapshot: Path) -> None:
    gone, silent = snapshot.with_name("gone"), snapshot.with_name("silent")
    gone.touch()
    describing.seen(rf"^NOT RENEWED since {TIME}: no broker answered; check that one is up$", *TABLE)
    silent.touch()
    gone.unlink()
    describing.shown(lambda text: "NOT RENEWED" not in text and "NO CONTROLLER ANSWERS since" in text, "it is renewed")
    silent.unlink()
    describing.shown(lambda text: "NO CONTROLLER" not in text, "a controller answers")


def test_describe_waits_for_a_cluster_that_is_away_when_it_begins(snapshot: Path) -> None:
    gone = snapshot.with_name("gone")
    gone.touch()
    with on_terminal(snapshot, *DESCRIBE, more=AWAY) as describe:
        describe.seen(r"nothing read yet, for \d+ s$", "^NOTHING READ YET: no broker answered")
        gone.unlink()
        describe.seen(*TABLE)


LEADERLESS = """
from kelr.commands import recover_apply, recovering
from tests.recovery.simulated import WHO, SimulatedAdminClient, SimulatedSource, leaderless
world = leaderless()
session.open_source = lambda settings: SimulatedSource(world)
for module in (recover_apply, recovering):
    module.hand_of = lambda _: SimulatedAdminClient(world)
    module.who_changes = lambda _: WHO
"""


def test_a_plan_is_carried_out_once_somebody_has_typed_what_it_loses(
    snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without broker 1, whom all of orders wait for, kelr recommends to elect 2."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    with watch_of(snapshot, more=LEADERLESS) as watch:
        watch.seen("^ orders:0 .* none", "P plan")
        watch.press(b"P")
        watch.seen("^kelr recover plan orders:0 *$", "^No election planned", "w plan as if they never returned")
        watch.press(b"w")
        watch.seen("^kelr recover plan orders:0 --gone 1", "^Plan: 1 election", "a apply")
        watch.press(b"a")
        watch.until(b'Type "')
        watch.press(b"no\r")
        watch.until(b"error: loss not accepted; nothing changed")
        watch.until(b"Enter goes back to kelr watch")
        watch.press(b"\r")
        watch.until(ENTER)
        watch.seen("^ orders:0 .* none")
        watch.press(b"P")
        watch.seen("w plan as if they never returned")
        watch.press(b"w")
        watch.seen("a apply")
        watch.press(b"a")
        watch.until(b'Type "')
        accepted = watch.until(b'" to accept')
        # Ctrl-C gives up the command, and not the watch.
        watch.press(b"\x03")
        watch.until(b"kelr: interrupted: nothing was changed")
        watch.until(b"Enter goes back to kelr watch")
        watch.press(b"\r")
        watch.until(ENTER)
        watch.seen("^ orders:0 .* none")
        watch.press(b"P")
        watch.seen("w plan as if they never returned")
        watch.press(b"w")
        watch.seen("a apply")
        watch.press(b"a")
        watch.until(b'Type "')
        watch.until(b'" to accept')
        watch.press(accepted + b"\r")
        watch.until(b"Enter goes back to kelr watch")
        watch.press(b"\r")
        watch.until(ENTER)
        watch.seen("^ orders:0 +under-min-isr +2 ", "^ orders:1 .* none", "leader none -> 2")
        watch.press(b"q")
        assert watch.ended() == 0
        watch.given_back()
