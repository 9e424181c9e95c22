"""The completion script of bash, from 3.2 on, which macOS has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from kelr.commands.cli_model import Command, every
from kelr.commands.cli_values import NO_VALUES, Values
from kelr.commands.completion_parts import HEADER, valued_flags, words_of

_FUNCTIONS = r"""
# The words up to the cursor; bash takes them apart at : and =, too.
_kelr_line() {
    local rest=${COMP_LINE:0:COMP_POINT} index piece
    line=()
    for ((index = 0; index <= COMP_CWORD; index++)); do
        piece=${COMP_WORDS[index]}
        if ((index == 0)) || [[ $rest == [[:space:]]* ]]; then
            rest=${rest#"${rest%%[![:space:]]*}"}
            line+=("")
        fi
        ((index < COMP_CWORD)) || piece=$rest
        line[${#line[@]}-1]+=$piece
        rest=${rest#"$piece"}
    done
}
# Lines as candidates; nothing in them is expanded.
_kelr_take() {
    local IFS=$'\n' options=$-
    set -f
    COMPREPLY=($1)
    [[ $options == *f* ]] || set +f
}
# Candidates as readline wants them: without what it keeps of the word.
_kelr_fit() {
    ((${#COMPREPLY[@]})) || return
    [[ -z $flag ]] || COMPREPLY=("${COMPREPLY[@]/#/$flag}")
    [[ -z $kept ]] || COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}
_kelr_words() {
    _kelr_take "$(compgen -W "$1" -- "$current")"
    _kelr_fit
}
_kelr_ask() {
    local kelr=${line[0]/#\~\//$HOME/} index
    [[ $kelr == */kelr ]] || kelr=kelr
    _kelr_take "$("$kelr" __complete "$1" "$current" "${line[@]}" 2>/dev/null </dev/null)"
    ((${#COMPREPLY[@]})) || return
    COMPREPLY=("${COMPREPLY[@]%%$'\t'*}")
    _kelr_fit
    local IFS=
    if [[ $word != [\"\']* && ${COMPREPLY[*]} == *[!A-Za-z0-9._:,/@%+=-]* ]]; then
        for index in "${!COMPREPLY[@]}"; do COMPREPLY[index]=$(printf %q "${COMPREPLY[index]}"); done
    fi
}
# Files that end so, or else all; -d: directories.
_kelr_files() {
    compopt -o filenames -o default 2>/dev/null
    [[ $current != *[\\\"\']* ]] || return
    local found=
    [[ $1 == -d ]] || found=$(compgen -f -X "!*.$1" -- "$current")
    if [[ $1 == -d || $found ]]; then
        _kelr_take "$found"$'\n'"$(compgen -d -- "$current")"
    else
        _kelr_take "$(compgen -f -- "$current")"
    fi
    _kelr_fit
}
""".strip("\n")


def bash_script(root: Command) -> Iterator[str]:
    """Its lines."""
    commands = list(every(root))
    # The odd ones first: the pattern that fits first counts.
    flags = sorted(valued_flags(root), key=lambda row: (row[1] is None, _action(row[2])))
    yield HEADER
    yield _FUNCTIONS
    yield "_kelr() {"
    yield "    local IFS=$' \\t\\n' line current before word flag= kept= path=kelr skip= count=0 choices="
    yield "    COMPREPLY=()"
    yield "    _kelr_line"
    yield '    for word in "${line[@]:1:${#line[@]}-2}"; do'
    yield "        if [[ $skip ]]; then skip=; continue; fi"
    yield '        case "$word" in'
    yield f"            {'|'.join(dict.fromkeys(flag for flag, _, _ in flags))}) skip=1 ;;"
    yield "            -*) ;;"
    yield '            *) case "$path $word" in'
    paths = "|".join(f'"{command.path}"' for command in commands[1:])
    yield f'                {paths}) path="$path $word" ;;'
    yield "                *) count=$((count + 1)) ;;"
    yield "            esac ;;"
    yield "        esac"
    yield "    done"
    yield "    word=${line[${#line[@]}-1]} before=${line[${#line[@]}-2]} current=$word"
    yield "    if [[ $word == --*=* ]]; then before=${word%%=*} flag=${word%%=*}= current=${word#*=}; fi"
    yield "    if [[ $word != [\\\"\\']* ]]; then"
    yield '        [[ $COMP_WORDBREAKS != *=* || $word != *=* ]] || kept=${word%"${word##*=}"}'
    yield '        [[ $COMP_WORDBREAKS != *:* || $word != *:* ]] || kept=${word%"${word##*[:=]}"}'
    yield "    fi"
    yield '    case "$path:$before" in'
    for values, rows in groupby(flags, key=lambda row: (row[1] is None, _action(row[2]))):
        yield f"        {'|'.join(_pattern(flag, path) for flag, path, _ in rows)}) {values[1]}; return ;;"
    yield "    esac"
    yield '    case "$path" in'
    for command in commands:
        yield f'        "{command.path}")'
        yield f'            choices="{" ".join(words_of(command))}"'
        yield from _arguments(command)
        yield "            ;;"
    yield "    esac"
    yield '    _kelr_words "$choices"'
    yield "}"
    yield "complete -o bashdefault -F _kelr kelr"


def _pattern(flag: str, path: str | None) -> str:
    return f"*:{flag}" if path is None else f'"{path}:{flag}"'


def _arguments(command: Command) -> Iterator[str]:
    known = [place for place, values in enumerate(command.arguments) if values != NO_VALUES]
    if not known:
        return
    yield '            [[ $current == -* ]] || case "$count" in'
    final = len(command.arguments) - 1
    for place in known:
        yield f"                {'*' if place == final else place}) {_action(command.arguments[place])}; return ;;"
    yield "            esac"


def _action(values: Values) -> str:
    if values.choices:
        return f'_kelr_words "{" ".join(values.choices)}"'
    ending = "-d" if values.directories else values.ending or "'*'"
    files = f"_kelr_files {ending}" if values.files else ""
    if values.kind is None:
        return files or ":"
    ask = f"_kelr_ask {values.kind}"
    return f"{ask}; ((${{#COMPREPLY[@]}})) || {files}" if files else ask
