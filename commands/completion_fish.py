"""The completion script of fish."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.commands.cli_model import Command, Option, every
from kelr.commands.cli_values import Values
from kelr.commands.completion_parts import HEADER, single_quoted

_ASK = r"""
function __kelr_ask
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    string match -q '*/kelr' -- $program; or set program kelr
    $program __complete $argv[1] "$current" $words 2>/dev/null </dev/null
end
""".strip("\n")


def fish_script(root: Command) -> Iterator[str]:
    """Its lines."""
    yield HEADER
    yield _ASK
    yield "complete -c kelr -f"
    for command in every(root):
        here = single_quoted(_here(command))
        for child in command.commands:
            yield f"complete -c kelr -n {here} -a {child.name} -d {single_quoted(child.sentence)}"
        for values in dict.fromkeys(command.arguments):
            yield from (f"complete -c kelr -n {here} {offered}" for offered in _offered(values))
        for option in command.taken:
            yield _option(here, option)


def _here(command: Command) -> str:
    """The condition under which the cursor is in this command."""
    seen = [f"__fish_seen_subcommand_from {word}" for word in command.path.split()[1:]]
    below = " ".join(child.name for child in command.commands)
    return "; and ".join([*seen, *([f"not __fish_seen_subcommand_from {below}"] if below else [])])


def _option(here: str, option: Option) -> str:
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = ""
    if option.takes_value:
        offered = list(_offered(option.values))
        value = f" -r {offered[0]}" if offered else " -x"
    return f"complete -c kelr -n {here} {flags}{value} -d {single_quoted(option.help)}"


def _offered(values: Values) -> Iterator[str]:
    """What `complete` is told to offer."""
    if values.choices:
        yield f"-f -a {single_quoted(' '.join(values.choices))}"
    if values.kind is not None:
        yield f"-f -k -a '(__kelr_ask {values.kind})'"
    if values.directories:
        yield "-f -a '(__fish_complete_directories)'"
    elif values.ending is not None:
        yield f"-f -k -a '(__fish_complete_suffix .{values.ending})'"
    elif values.files:
        yield "-F"
