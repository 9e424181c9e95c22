"""``kelr completion``."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout, suppress
from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import on_this_machine, open_output
from kelr.errors import UsageError

app = typer.Typer(add_completion=False)

SHELLS = {"bash": "kelr.bash", "zsh": "_kelr", "fish": "kelr.fish", "powershell": "kelr.ps1"}
"""The files in `completions/` by shell."""
Shell = Annotated[
    str,
    typer.Argument(
        metavar="SHELL", autocompletion=complete.known_values(*SHELLS), help="bash, zsh, fish or powershell."
    ),
]


def completion_script(shell: str) -> str:
    """What Typer gives the shell, a key of `SHELLS`, with the word that calls kelr for it."""
    from kelr.commands.app import build  # noqa: PLC0415 - which has this command

    said = io.StringIO()
    os.environ[complete.VARIABLE] = f"source_{shell}"
    try:
        with redirect_stdout(said), suppress(SystemExit):
            build().main([], prog_name="kelr")
    finally:
        os.environ.pop(complete.VARIABLE)
    return said.getvalue().strip() + "\n"


@app.command(**on_this_machine())
def completion(ctx: typer.Context, shell: Shell) -> None:
    """Print the completion script of a shell.

    The shell asks kelr at every Tab: for commands, options and their values, and
    for what only a cluster knows: topics, partitions, brokers, racks, contexts
    and recoveries. kelr remembers that for a minute, in KELR_CACHE_DIR or the
    user's cache directory, and waits for a cluster no longer than a person
    notices. It starts no password command: contexts that have one get no topics
    completed.

    How to install it:
      bash        ~/.local/share/bash-completion/completions/kelr
      zsh         ~/.zshrc, behind compinit
      fish        ~/.config/fish/completions/kelr.fish
      powershell  a file that $PROFILE reads with a dot before it

    Examples:
      kelr completion bash > ~/.local/share/bash-completion/completions/kelr
      source <(kelr completion zsh)
      kelr completion fish > ~/.config/fish/completions/kelr.fish
      kelr completion powershell > kelr.ps1
    """
    output = open_output(ctx)
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for {shell!r}", next_step=f"choose one of {', '.join(SHELLS)}")
    for line in completion_script(shell).splitlines():
        output.line(line)
