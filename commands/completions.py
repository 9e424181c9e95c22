"""Completion scripts for bash, zsh, fish and PowerShell.

Commands, options and fixed choices are in the scripts, so that pressing Tab does not start Python for them; what only a
cluster knows is asked of ``kelr __complete`` (`kelr.commands.complete`).
"""

from __future__ import annotations

from collections.abc import Mapping

from kelr.commands.cli_model import Command
from kelr.commands.completion_bash import bash_script
from kelr.commands.completion_fish import fish_script
from kelr.commands.completion_powershell import powershell_script
from kelr.commands.completion_zsh import zsh_script

FILES: Mapping[str, str] = {"bash": "kelr.bash", "zsh": "_kelr", "fish": "kelr.fish", "powershell": "kelr.ps1"}
"""The file's name by the shell's."""
_WRITERS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script, "powershell": powershell_script}


def completion_script(shell: str, root: Command) -> str:
    """The script of one shell, a key of `FILES`."""
    return "\n".join(_WRITERS[shell](root)) + "\n"


def completion_scripts(root: Command) -> dict[str, str]:
    """File name and text of each shell's script."""
    return {name: completion_script(shell, root) for shell, name in FILES.items()}
