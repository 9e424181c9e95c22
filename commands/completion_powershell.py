"""The completion script of PowerShell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kelr.commands.cli_model import Command, every
from kelr.commands.cli_values import Values
from kelr.commands.completion_parts import HEADER, valued_flags, words_of

_BEGIN = """
Register-ArgumentCompleter -Native -CommandName kelr -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
""".strip("\n")
_REST = r"""
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        ForEach-Object { $_.Extent.Text })
    if ($words.Count -eq 0) { $words = @('kelr') }
    $path = 'kelr'; $place = 0; $before = ''; $current = "$wordToComplete"; $flag = ''
    foreach ($word in @($words | Select-Object -Skip 1)) {
        if ($before -and $KelrValued.Contains($before)) { $before = ''; continue }
        $before = $word
        if ($word.StartsWith('-')) { continue }
        if ($KelrWords.Contains("$path $word")) { $path = "$path $word" } else { $place++ }
    }
    if ($current -match '^(--[a-z][a-z.-]*)=(.*)$') {
        $before = $Matches[1]; $current = $Matches[2]; $flag = "$before="
    }
    $takes = $null
    if ($KelrValued.Contains($before)) {
        $takes = $KelrTakes["${path}:$before"]
        if ($null -eq $takes) { $takes = $KelrTakes["*:$before"] }
    } elseif (-not $current.StartsWith('-') -and $KelrArguments.Contains($path)) {
        $all = @($KelrArguments[$path])
        $takes = $all[[Math]::Min($place, $all.Count - 1)]
    } else {
        $takes = "=$($KelrWords[$path])"
    }
    if (-not $takes) { return }
    if ($takes.StartsWith('=')) {
        $offers = @($takes.Substring(1).Split(' ') | Where-Object { $_.StartsWith($current) })
    } else {
        # Older versions drop an empty argument; quotes are taken off by kelr.
        $typed = if ($current) { $current } else { '""' }
        $offers = @(& kelr __complete $takes $typed @words 2>$null)
    }
    foreach ($offer in $offers) {
        if (-not $offer) { continue }
        $name, $remark = $offer -split "`t", 2
        $text = "$flag$name"
        if ($text -notmatch '^[A-Za-z0-9._:/%+=-]+$') { $text = "'" + $text.Replace("'", "''") + "'" }
        if (-not $remark) { $remark = $name }
        [System.Management.Automation.CompletionResult]::new($text, $name, 'ParameterValue', $remark)
    }
}
""".strip("\n")


def powershell_script(root: Command) -> Iterator[str]:
    """Its lines. Where it offers nothing, PowerShell offers files. The tables are inside: any scope may read it."""
    flags = valued_flags(root)
    yield HEADER
    yield _BEGIN
    yield "    $KelrWords = @{"
    for command in every(root):
        yield f"        '{command.path}' = '{' '.join(words_of(command))}'"
    yield "    }"
    yield f"    $KelrValued = @({_list(dict.fromkeys(flag for flag, _, _ in flags))})"
    yield "    # What an option takes: choices behind a =, or what kelr is asked for."
    yield "    $KelrTakes = @{"
    for flag, path, values in flags:
        if path is not None or _takes(values):
            yield f"        '{path or '*'}:{flag}' = '{_takes(values)}'"
    yield "    }"
    yield "    $KelrArguments = @{"
    for command in every(root):
        if any(map(_takes, command.arguments)):
            yield f"        '{command.path}' = @({_list(map(_takes, command.arguments))})"
    yield "    }"
    yield _REST


def _takes(values: Values) -> str:
    return f"={' '.join(values.choices)}" if values.choices else values.kind or ""


def _list(texts: Iterable[str]) -> str:
    return ", ".join(f"'{text}'" for text in texts)
