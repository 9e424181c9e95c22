"""What ``kelr context import`` does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kelr.config.context import check_name
from kelr.config.contexts_file import ContextsFile, read_contexts
from kelr.config.edit import Edit
from kelr.config.imports import Tool, read_import
from kelr.config.imports.found import Found, FoundContext
from kelr.errors import UsageError
from kelr.sources.connection import parse_servers
from kelr.view.contexts import ImportedRow, imported_view
from kelr.view.output import Output


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a file is to be taken over."""

    tool: Tool | None = None
    only: tuple[str, ...] = ()
    name: str | None = None
    bootstrap_server: str | None = None
    use: bool = False
    force: bool = False
    dry_run: bool = False


def import_file(output: Output, path: Path, options: ImportOptions) -> None:
    """Read another tool's file, write its contexts, and say what could not be carried over.

    Raises:
        UsageError: a context is there already and may not be replaced, or the options do not go with the file.
        BadInputError: the file is not what the tool writes; nothing was written.
    """
    found = _chosen(read_import(path, options.tool), path, options)
    file = read_contexts(os.environ)
    taken = [one.name for one in found.contexts if one.name in file.tables]
    if taken and not options.force:
        raise UsageError(
            f"{_names(taken)} in {file.path} already: nothing was written",
            next_step="give --force to replace, --only NAME to take others, or --name for a single one",
            code="context-exists",
        )
    edit = Edit(file)
    for context in found.contexts:
        edit.put(context.name, context.values, force=options.force)
    use = found.current if options.use else None
    if options.use and use is None:
        raise UsageError(
            f"{found.tool} has no current context among them: nothing was written", next_step="leave --use out"
        )
    if use is not None:
        edit.use(use)
    written = edit.written()
    if not options.dry_run:
        edit.write()
    _show(output, path, found, options, taken=taken, written=written, use=use)


def _chosen(found: Found, path: Path, options: ImportOptions) -> Found:
    names = [one.name for one in found.contexts]
    unknown = [name for name in options.only if name not in names]
    if unknown or not names:
        what = f"{path} has no context {unknown[0]!r}" if unknown else f"{path} has no context that names its brokers"
        raise UsageError(what, next_step=f"it has {', '.join(names)}" if names else "name another file")
    contexts = tuple(one for one in found.contexts if not options.only or one.name in options.only)
    if (options.name or options.bootstrap_server) and len(contexts) > 1:
        raise UsageError(
            f"{path} has {len(contexts)} contexts, and --name and --bootstrap-server are for a single one",
            next_step="choose it with --only NAME",
        )
    current = found.current if found.current in [one.name for one in contexts] else None
    if options.name:
        current = check_name(options.name) if current is not None else None
        contexts = (replace(contexts[0], name=check_name(options.name)),)
    if options.bootstrap_server:
        parse_servers(options.bootstrap_server)
        values = {"bootstrap_server": options.bootstrap_server, **contexts[0].values}
        values["bootstrap_server"] = options.bootstrap_server
        left_out = tuple(one for one in contexts[0].left_out if not one.startswith("bootstrap.servers:"))
        contexts = (replace(contexts[0], values=values, left_out=left_out),)
    return replace(found, contexts=contexts, current=current)


def _show(
    output: Output,
    path: Path,
    found: Found,
    options: ImportOptions,
    *,
    taken: Sequence[str],
    written: ContextsFile,
    use: str | None,
) -> None:
    would = "would be " if options.dry_run else ""
    rows = [
        ImportedRow(
            name=one.name,
            action=f"{would}{'replaced' if one.name in taken else 'added'}",
            bootstrap_server=_text(one, "bootstrap_server"),
            command_config=_text(one, "command_config"),
            secrets=written.clear_secrets(one.name),
            left_out=one.left_out,
        )
        for one in found.contexts
    ]
    head = {"tool": found.tool, "file": str(path), "current": use, "left_out": list(found.left_out)}
    with output.listing(imported_view(), head) as listing:
        listing.add(rows)
    if output.format.is_document:
        return
    for text in found.left_out:
        output.note(text)
    if options.dry_run:
        output.note(f"nothing was written; without --dry-run it goes into {written.path}")
        return
    if any(row.secrets for row in rows):
        output.note(f"what is in clear in {written.path} is better kept elsewhere: see password_command")
    if use is not None:
        output.note(f"{use} is the current context now")
    output.next(["context", "test", rows[0].name])


def _text(context: FoundContext, key: str) -> str | None:
    value = context.values.get(key)
    return None if value is None else str(value)


def _names(names: Sequence[str]) -> str:
    return f"{names[0]} is" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} are"
