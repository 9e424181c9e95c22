"""Commands that somebody at the watch's screen asks for: the same ones as at a prompt, about the chosen partition."""

from __future__ import annotations

import io
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kelr.commands import recover_apply, recover_plan, telling
from kelr.commands.running import error_lines, tried
from kelr.commands.session import Resolved, Session
from kelr.errors import KelrError
from kelr.model import Selection
from kelr.recovery.plan_file import read_plan
from kelr.replay.history import Window
from kelr.view.plan_left import without_them
from kelr.view.watch.model import Order, Printed


class OrderJob:
    """Runs a command that changes nothing, for the screen; as the job of a `Worker`.

    Args:
        color: whether the screen has colors.
    """

    def __init__(self, settings: Resolved, *, color: bool) -> None:
        self._settings, self._color = replace(settings, verbose=False), color

    def __call__(self, order: Order) -> Printed:
        written = io.StringIO()
        output = replace(
            self._settings.output(),
            stdout=written,
            stderr=written,
            width=order.width,
            color=self._color,
            stderr_color=self._color,
        )
        plan: Path | None = None
        awaited = ""
        try:
            with Session(self._settings, output=output) as session:
                if order.command == "history":
                    telling.tell(session, telling.Wanted(Selection.of([order.at]), Window(None, None)))
                else:
                    plan, awaited = _planned(session, order)
        except KelrError as error:
            for line in error_lines(error):
                output.note(line)
        return Printed(order, written.getvalue().splitlines(), plan, awaited)


def _planned(session: Session, order: Order) -> tuple[Path | None, str]:
    """Print the plan; its file, where it elects somebody, and else whom it waits for. The file stays: what is printed
    names it."""
    path = Path(tempfile.mkdtemp(prefix="kelr-watch-")) / "plan.json"
    selection = Selection.of([order.at])
    wanted = recover_plan.read_options(
        session,
        selection,
        everything=False,
        targets=[str(target) for target in selection.targets],
        election_type=None,
        designate=None,
        gone=(order.gone,) if order.gone else (),
        expires_in=None,
        logs=(),
        out=path,
        export=None,
        overwrite=False,
        markdown=False,
        full=True,
    )
    recover_plan.plan_and_show(session, wanted)
    plan = read_plan(path)
    if plan.elections:
        return path, ""
    without = without_them(plan.not_planned, wanted.wish.gone)
    return None, without[-1] if without else ""


def apply_on_terminal(settings: Resolved, plan: Path) -> None:
    """``kelr recover apply PLAN`` on the terminal, and a moment to read what came of it; raises nothing."""
    output = settings.output()

    def apply() -> None:
        with Session(settings) as session:
            wanted = recover_apply.read_options(
                plan,
                topics=(),
                logs=(),
                batch=None,
                pause_s=None,
                keep_order=False,
                dry_run=False,
                yes=False,
                accept_loss=None,
                force=None,
            )
            recover_apply.carry_out(session, wanted)

    def go_back() -> None:
        output.note("")
        output.note("Enter goes back to kelr watch")
        sys.stdin.readline()

    output.note(f"$ {output.next_command(('recover', 'apply', str(plan)))}")
    with suppress(OSError):
        tried(apply)
        tried(go_back)
