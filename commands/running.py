"""Builds the app, runs it, and is the one place that prints errors and decides the exit code."""

from __future__ import annotations

import errno
import gc
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import typer

from kelr.commands.app import build
from kelr.commands.main import INTERNAL_ERROR, PIPE_CLOSED, interrupted
from kelr.commands.registry import commands_with
from kelr.errors import ExitCode, KelrError, LabError, UsageError
from kelr.interrupts import is_pending, taken
from kelr.view.streams import prepare_streams

_GC_THRESHOLD = 100_000
"""Objects made and not freed before Python looks for cycles: more than a page of partitions has."""

_LONGEST_QUOTED = 80
_INDENT = " " * len("error: ")
_CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


def run(words: list[str]) -> int:
    """Run kelr and return its exit code. Errors are printed here and nowhere else."""
    # Pages come and go without cycles; looking for garbage among all that is loaded takes a tenth of a short run.
    gc.set_threshold(_GC_THRESHOLD)
    prepare_streams()
    debug = "--debug" in words
    try:
        code = _run(words)
        sys.stdout.flush()
    except KelrError as error:
        code = _failed(error, debug=debug)
    except typer.TyperException as error:
        code = _misused(error)
    except (KeyboardInterrupt, typer.Abort) as interruption:
        code = interrupted(str(interruption))
    except BrokenPipeError:
        _give_up_stdout()
        code = PIPE_CLOSED
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            code = _failed(_no_file_name(error), debug=debug)
        else:
            code = _stream_failed(error) if error.errno in _CANNOT_WRITE else _defect(error, debug=debug)
    except Exception as error:
        # Python makes a RuntimeError of an interrupt where a class is being made.
        code = interrupted() if is_pending() else _defect(error, debug=debug)
    return _flushed(code)


def tried(do: Callable[[], object]) -> int:
    """Do what a command does, within another one; its errors are printed as its own run would print them. The exit
    code."""
    try:
        do()
    except KelrError as error:
        return _failed(error, debug=False)
    except KeyboardInterrupt as interruption:
        taken()
        return interrupted(str(interruption))
    except Exception as error:
        return _defect(error, debug=False)
    return ExitCode.DONE


def _flushed(code: int) -> int:
    """The exit code, once what a failed command had to tell is out too; Python would fail on it at exit, with 120."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_stdout()
    except (OSError, ValueError) as error:
        _give_up_stdout()
        _say([_unwritten(error)])
    return code


def _run(words: list[str]) -> int:
    group = build()
    try:
        with group.make_context("kelr", words) as context:
            group.invoke(context)
    except typer.Exit as exit_:
        return exit_.exit_code
    except SystemExit as exit_:  # of Typer's options for completion; of Rich, where nobody reads any more
        if isinstance(exit_.__context__, BrokenPipeError):
            return PIPE_CLOSED
        return int(exit_.code or 0)
    return ExitCode.DONE


def _failed(error: KelrError, *, debug: bool) -> int:
    _say(error_lines(error), error if debug else None)
    return int(error.exit_code)


def error_lines(error: KelrError) -> list[str]:
    """What people read of an error."""
    # A line break in what a cluster says could pass for kelr's own words; the end of a lab's log is this machine's.
    message, *log = error.message.split("\n") if isinstance(error, LabError) else [error.message]
    lines = [f"error: {message}{f' [{error.code}]' if error.is_specific else ''}", *log]
    lines += [f"  why: {error.why}"] if error.why else []
    lines += [f"  fix: {error.next_step}"] if error.next_step else []
    return lines


_IN_OUR_WORDS = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "not a whole number",
    "Input should be a valid number, unable to parse string as a number": "not a number",
    "Input should be ": "it has to be ",
}
"""What pydantic says of an option's value, and what kelr makes of it."""


def _misused(error: Any) -> int:
    """Typer's own complaints, in kelr's words and with kelr's exit code."""
    message = error.format_message().rstrip(".")
    for pydantics, ours in _IN_OUR_WORDS.items():
        message = message.replace(pydantics, ours, 1)
    if message:  # else nothing was typed, and the help has been shown
        message = _POSSIBLE.sub(r"; did you mean \1?", message)
        instead = _instead(error)
        if instead in _INSTEAD.values():
            message = message.partition(";")[0]
        _say([f"error: {message[:1].lower()}{message[1:]}", f"  fix: {instead}"])
    return int(ExitCode.USAGE)


_POSSIBLE = re.compile(r" \(Possible options: (.*)\)$")
_INSTEAD = {
    "kelr explain --leaderless": "kelr explain alone explains every partition that needs action",
    "kelr explain --log-dir": (
        "kelr recover collect --log-dir DIR --out broker-1.kelr, then kelr explain --logs broker-1.kelr"
    ),
}
"""Options that people look for behind another command than theirs."""


def _instead(error: Any) -> str:
    """What to type instead."""
    command, option = error.ctx.command_path, None
    if hasattr(error, "possibilities"):  # there is no such option
        option = getattr(error, "option_name", None)
    if (known := _INSTEAD.get(f"{command} {option}")) is not None:
        return known
    others = commands_with(option) if option else []
    return f"{command} --help" + (f"; {option} is an option of {', '.join(others)}" if others else "")


def _defect(error: Exception, *, debug: bool) -> int:
    what = str(error).splitlines()
    detail = f"{type(error).__name__}: {what[0]}" if what else type(error).__name__
    line = f"kelr: internal error: {detail}"
    _say(
        [line] if debug else [line, "  fix: run it again with --debug for the traceback, and report that"],
        error if debug else None,
    )
    return INTERNAL_ERROR


def _no_file_name(error: OSError) -> UsageError:
    name = str(error.filename)
    return UsageError(
        f"{name[:_LONGEST_QUOTED]}... has {len(name):,} characters: no file can have such a name",
        next_step="give a shorter one",
    )


def _stream_failed(error: OSError) -> int:
    _give_up_stdout()
    _say([_unwritten(error)])
    return int(ExitCode.PARTLY_DONE)


def _unwritten(error: OSError | ValueError) -> str:
    return f"error: the output could not be written to its end: {getattr(error, 'strerror', None) or error}"


def _say(lines: Iterable[str], error: BaseException | None = None) -> None:
    """Tell on stderr; where that is gone too, nobody is left to tell."""
    from kelr.page.words import harmless  # noqa: PLC0415 - only where something went wrong
    from kelr.view.streams import lines_for  # noqa: PLC0415 - as above
    from kelr.view.styled import cleaned  # noqa: PLC0415 - as above

    try:
        if error is not None:
            sys.stderr.write(harmless("".join(traceback.format_exception(error))))
        shown = (part for line in lines for part in lines_for(sys.stderr, cleaned(line), indent=_INDENT))
        sys.stderr.write("".join(f"{part}\n" for part in shown))
        sys.stderr.flush()
    except OSError:
        pass


def _give_up_stdout() -> None:
    """Point stdout to nowhere, so that flushing what is left of it at exit cannot fail again."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
    except (OSError, ValueError):
        pass
