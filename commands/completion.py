"""``kelr completion``."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands.options import with_output
from kelr.errors import UsageError
from kelr.view.output import Output

Shell = Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell.")]


@with_output()
def completion(output: Output, shell: Shell) -> None:
    """Print the completion script of a shell.

    It completes commands, options and their values, and asks kelr for what only a
    cluster knows: topics, partitions, brokers, racks, contexts and recoveries. kelr
    remembers that for a minute, in KELR_CACHE_DIR or the user's cache directory,
    and waits for a cluster no longer than a person notices. It starts no password
    command: contexts that have one get no topics completed.

    How to install it:
      bash        ~/.local/share/bash-completion/completions/kelr
      zsh         _kelr in a directory of $fpath, before compinit
      fish        ~/.config/fish/completions/kelr.fish
      powershell  a file that $PROFILE reads with a dot before it

    Examples:
      kelr completion bash > ~/.local/share/bash-completion/completions/kelr
      kelr completion zsh > "${fpath[1]}/_kelr"
      kelr completion fish > ~/.config/fish/completions/kelr.fish
      kelr completion powershell > kelr.ps1
    """
    from kelr.commands.cli_model import command_line  # noqa: PLC0415 - imports every command
    from kelr.commands.completions import FILES, completion_script  # noqa: PLC0415

    if shell not in FILES:
        raise UsageError(f"there is no completion for {shell!r}", next_step=f"choose one of {', '.join(FILES)}")
    for line in completion_script(shell, command_line()).splitlines():
        output.line(line)
