"""``kelr`` and ``python -m kelr``: Ctrl-C ends it from its first line on, whatever is being loaded."""

import os
import signal
import sys

INTERRUPTED = 130
"""That of `kelr.interrupts`, before anything is loaded."""


def start() -> int:
    """Run kelr as this process; its exit code.

    Nobody waits for Python's shutdown after an interrupt: it would join threads that wait for brokers.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from kelr.commands.main import main  # noqa: PLC0415 - Ctrl-C comes before all else

    code = main()
    if code == INTERRUPTED:
        os._exit(code)
    return code


def _end(*_: object) -> None:
    os.write(2, b"kelr: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(start())
