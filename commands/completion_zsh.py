"""The completion script of zsh."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.commands.cli_model import Command, Option, every
from kelr.commands.cli_values import Values
from kelr.commands.completion_parts import HEADER, single_quoted

_ASK = r"""
_kelr_ask() {
    local program=$kelr_line[1] offer
    local -a found names shown
    [[ $program == */kelr ]] || program=kelr
    found=("${(@f)$(${~program} __complete "$1" "$PREFIX" "${kelr_line[@]}" 2>/dev/null </dev/null)}")
    for offer in "${found[@]}"; do
        [[ -n $offer ]] || continue
        names+=("${offer%%$'\t'*}")
        shown+=("${offer/$'\t'/  -- }")
    done
    (( $#names )) && compadd -l -d shown -- "${names[@]}"
}
""".strip("\n")

_NOTHING = "{ : }"
"""The action where nothing can be offered. Without any, zsh shows a message, and then does not write an option out."""


def zsh_script(root: Command) -> Iterator[str]:
    """Its lines."""
    yield "#compdef kelr"
    yield HEADER
    yield ""
    yield _ASK
    for command in every(root):
        yield ""
        yield f"{_function(command)}() {{"
        if command is root:
            yield '    local -a kelr_line=("${(@)words[1,CURRENT-1]}")'
        yield from _body(command)
        yield "}"
    yield ""
    yield '_kelr "$@"'


def _body(command: Command) -> Iterator[str]:
    if command.commands:
        yield "    local -a commands=("
        yield from (f"        {single_quoted(f'{below.name}:{below.sentence}')}" for below in command.commands)
        yield "    )"
        yield "    local state"
    # A group's options stand before the name of its command: what stands behind it is that command's.
    yield "    _arguments -C -s -A '-*' \\" if command.commands else "    _arguments -C -s \\"
    for option in command.taken:
        yield from (f"        {single_quoted(specification)} \\" for specification in _option(option))
    for option in command.taken_hidden:
        # The exclamation mark: understood, and not offered.
        yield from (f"        {single_quoted('!' + specification)} \\" for specification in _option(option))
    if not command.commands:
        yield "        " + " ".join(_arguments(command))
        return
    yield "        '1:command:->command' '*::argument:->rest'"
    yield '    case "$state" in'
    yield "        command) _describe command commands ;;"
    yield '        rest) case "$words[1]" in'
    yield from (f"            {below.name}) {_function(below)} ;;" for below in command.commands)
    yield "        esac ;;"
    yield "    esac"


def _arguments(command: Command) -> Iterator[str]:
    final = len(command.arguments)
    if not final:
        yield f"'*:argument:{_NOTHING}'"
    for place, values in enumerate(command.arguments, start=1):
        where = "*" if place == final else str(place)
        yield single_quoted(f"{where}:{'file' if values.files else 'value'}:{_action(values) or _NOTHING}")


def _function(command: Command) -> str:
    return "_" + command.path.replace(" ", "_").replace("-", "_")


def _option(option: Option) -> Iterator[str]:
    text = option.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    for flag in (*option.flags, *option.aliases):
        if not option.takes_value:
            yield f"*{flag}[{text}]"
        else:
            # With a value behind a = or in the next word; of a short flag behind it at once, or in the next word.
            sign = "=" if flag.startswith("--") else "+"
            yield f"*{flag}{sign}[{text}]:value:{_action(option.values)}"


def _action(values: Values) -> str:
    if values.choices:
        return f"({' '.join(values.choices)})"
    files = ""
    if values.files:
        wanted = f' -g "*.{values.ending}(-.)"' if values.ending else ""
        files = f"_files{' -/' if values.directories else wanted}"
    if values.kind is None:
        return files
    # A blank before the function: it is called as it stands.
    ask = f" _kelr_ask {values.kind}"
    return f"{{_kelr_ask {values.kind} || {files}}}" if files else ask
