"""``kelr watch`` through an incident on real Kafka, at a terminal and in a pipe at the same time."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from kelr.lab import Acks, Lab
from kelr.lab.produce import produce
from kelr.lab.story import Story, create_topic
from tests.on_terminal import OnTerminal

TIME = r"\d\d:\d\d:\d\d"
ENDED_S = 30.0
"""More than any run here takes to end."""


def test_an_incident_from_its_beginning_to_the_end_of_its_recovery(healthy_43: Lab, tmp_path: Path) -> None:
    lab, topic = healthy_43, f"watched-{time.time_ns()}"
    # One replica is enough, so that partitions stay healthy until the last one goes.
    create_topic(lab, topic, [(1, 2), (1, 2)], {"min.insync.replicas": "1"})
    lab.wait_partitions(topic, "both replicas are in sync", lambda state: len(state.isr) == 2)
    produce(lab.bootstrap_servers, topic, (0, 1), batches=2, records=5, acks=Acks.ALL, label="watched")
    environ = {"KELR_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path), "PATH": ""}
    watched = ("watch", topic, "--interval", "500ms", "-b", lab.bootstrap_servers)
    lines = tmp_path / "lines"
    with (
        lines.open("w") as out,
        OnTerminal.kelr(*watched, columns=120, lines=40, environ=environ) as screen,
        subprocess.Popen([sys.executable, "-m", "kelr", *watched], stdout=out, stderr=out, env=environ) as pipe,
    ):
        try:
            _through_the_incident(lab, topic, screen, lines, environ)
            # Whoever is started in the background of a shell without jobs, as these tests may be, ignores SIGINT.
            pipe.send_signal(signal.SIGTERM)
            assert pipe.wait(ENDED_S) == -signal.SIGTERM
        finally:
            pipe.kill()


def _through_the_incident(lab: Lab, topic: str, screen: OnTerminal, lines: Path, environ: dict[str, str]) -> None:
    begin = "3 of 3 brokers live"
    lab.wait_until("both watches look", lambda: begin in lines.read_text())
    screen.seen(begin, r"2 partitions: +0 leaderless", "nothing is leaderless or unsafe")
    # Both replicas die, nearly at once: whoever is fenced last is the one that is waited for.
    Story(lab, topic, lambda _line: None).kill(1, 2)
    (last,) = {state.elr for state in lab.partitions(topic).values()}
    assert last is not None
    (waited_for,) = last
    back = 3 - waited_for
    screen.seen(
        r"2 leaderless \(\+2\)",
        rf"^ {topic}:0 +no-live-replica +none +- +{waited_for}~ +broker {waited_for} +\d+ s",
        rf"^ {topic}:1 +no-live-replica +none",
        rf"^{topic}:0 has no leader \(leader epoch \d+\) and waits for broker {waited_for}\.$",
        r"^Logs: no replica's log was",
        rf"^{TIME} brokers? .*live -> fenced",
        rf"^{TIME} {topic}:(0-1|1): .*\(waits for broker {waited_for}\)",
    )
    # One comes back, and what its log holds arrives; it may not lead.
    lab.start(back)
    screen.seen(
        rf"^{TIME} broker {back}: fenced -> live",
        rf"^ {topic}:0 +waiting-for-elr +none +- +{waited_for}~ +broker {waited_for} +\d+ s",
        rf"^ +{back} live \(.*most complete\) .* end 10 ",
        rf"^ +{waited_for} fenced +\S",
        r"2 leaderless \(\+2\)",
    )
    # It is made the leader by kelr, while both watch.
    elect = [sys.executable, "-m", "kelr", "elect", "-e", "unclean", topic, "--yes", "--accept-loss", "0+"]
    ran = subprocess.run(
        [*elect, "-b", lab.bootstrap_servers],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ENDED_S,
        env=environ,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    elected = rf"leader none -> {back}, not clean: it was in neither ISR nor ELR; ISR - -> {back};"
    done = r"elect by \S+: 2 of 2 elections have a result; ended \(applied\)"
    screen.seen(
        r"0 leaderless",
        rf"^{TIME} {topic}:(0-1|1): {elected}",
        rf"^{TIME} {done}$",
        rf"^{TIME} kelr's audit log: elections of 2 partitions \({topic}:0-1\)",
        rf"^.{topic}:0 +under-replicated +{back} +{back} +- +not in sync: {waited_for} +\d+ s",
    )
    # Nobody read the log of the other before the election: what it alone may hold is gone once it follows the leader.
    unsaved = (
        rf"kelr's audit log: elections of 2 partitions \({topic}:0-1\) may have lost records\. Save"
        rf" the disk of broker {waited_for} before it starts: kelr explain says how"
    )
    named = re.compile(rf"^{TIME} {unsaved}$", re.MULTILINE)
    lab.wait_until("the disk is named", lambda: named.search(lines.read_text()))
    until = ("watch", topic, "--until-healthy", "--for", "2s", "-b", lab.bootstrap_servers)
    with OnTerminal.kelr(*until, columns=120, lines=40, environ=environ) as another:
        assert another.ended() == 1
    told = another.written.decode().rpartition("UTC: ")[2]
    assert re.search(unsaved, " ".join(told.split()))  # a terminal gets it in as many lines as it takes
    assert "nothing is leaderless" not in named.split(lines.read_text())[-1]
    lab.start(waited_for)
    lab.wait_partitions(topic, "both replicas are in sync", lambda state: len(state.isr) == 2)
    # The journal ends when the election was verified: before or after a look that sees the last partition led.
    well, live = "nothing is leaderless or unsafe", f"broker {waited_for}: fenced -> live"
    at_last = rf"(?s){unsaved}$.*"
    ends = (rf"^{TIME} {done}$", rf"{at_last}^{TIME} {well}$", rf"{at_last}^{TIME} {live}$")
    lab.wait_until("the end is told", lambda: all(re.search(one, lines.read_text(), re.MULTILINE) for one in ends))
    told_lines = lines.read_text().splitlines()
    assert all(re.match(rf"{TIME} ", line) for line in told_lines), told_lines
    expected = [
        rf"\d{{4}}-\d\d-\d\d, times are UTC: cluster \S+, {begin};"
        " 0 leaderless, 0 leaderless or unsafe, 0 under min ISR of 2 .*",
        well,
        r"broker [12]: live -> fenced",
        *(rf"{topic}:{number}: leader none, ISR - \(waits for broker {waited_for}\)" for number in (0, 1)),
        rf"broker {back}: fenced -> live",
        *(rf"{topic}:{number}: {elected}.*\(under-replicated\)" for number in (0, 1)),
    ]
    rest = iter(line[9:] for line in told_lines)
    for pattern in expected:
        assert any(re.fullmatch(pattern, line) for line in rest), (pattern, told_lines)
    # Once its broker is back nothing is to be saved any more.
    assert not any("audit log" in line for line in told_lines[[line[9:] for line in told_lines].index(live) :])
    screen.press(b"q")
    assert screen.ended() == 0
    assert b"UTC: nothing is leaderless or unsafe of 2 partitions" in screen.written
