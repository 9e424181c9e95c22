"""Writing ``contexts.toml``: only what was asked for changes; comments and order of a person stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kelr.config.context import KEYS, ContextError, check_name, context_of
from kelr.config.contexts_file import ContextsFile, contexts_of, read_contexts_file, without_tables
from kelr.durable import make_directory, whole_file
from kelr.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

_HEADER = "Clusters that kelr knows by name; see docs/contexts.md. `kelr context add` and an editor both write here."


class Edit:
    """Changes to the file, on paper until `write`.

    Raises:
        BadInputError: the file is not what it should be; then nothing is changed.
    """

    def __init__(self, file: ContextsFile) -> None:
        import tomlkit  # noqa: PLC0415 - only where contexts are written

        self._file = file
        self._document: TOMLDocument = tomlkit.parse(file.text) if file.exists else tomlkit.document()
        if not file.exists:
            self._document.add(tomlkit.comment(_HEADER))
        self._names = list(file.names)

    @property
    def text(self) -> str:
        """The file as it would be."""
        import tomlkit  # noqa: PLC0415 - as above

        return tomlkit.dumps(self._document)

    def written(self) -> ContextsFile:
        """The file as it would be, read again. Raises BadInputError where it could not be."""
        return contexts_of(self.text, self._file.path)

    def put(self, name: str, values: Mapping[str, Any], *, force: bool = False) -> None:
        """Add a context, or put it in the place of the one of that name.

        Raises:
            UsageError: the name is none, is taken and `force` is not set, or a value is not what it should be.
        """
        import tomlkit  # noqa: PLC0415 - as above

        check_name(name)
        if name in self._names and not force:
            raise UsageError(
                f"there is a context {name!r} already, in {self._file.path}",
                next_step="give another name, or --force to replace it",
                code="context-exists",
            )
        try:
            context_of(name, values, self._file.path)
        except ContextError as problem:
            raise UsageError(f"context {name!r}: {problem.message}", next_step=problem.next_step) from None
        table = tomlkit.table()
        for key in KEYS:
            if key in values and key != "properties":
                table.add(key, values[key])
        if values.get("properties"):
            table.add("properties", _properties_table(values["properties"]))
        contexts = self._contexts()
        if name in self._names:
            alone = tomlkit.document()
            alone.add("contexts", tomlkit.table(is_super_table=True).add(name, table))
            self._cut(name, tomlkit.dumps(alone))
        else:
            contexts.add(name, table)
            self._names.append(name)

    def set(self, name: str, key: str, value: str) -> None:
        """Set one key of a context that is there."""
        self._contexts()[name][key] = value

    def remove(self, name: str) -> None:
        """Take a context out; where it was the current one, there is none afterwards. Raises UsageError."""
        if name not in self._names:
            raise self._file.no_context(name)
        self._cut(name, None)
        self._names.remove(name)
        if self._document.get("current") == name:
            self.use(None)

    def use(self, name: str | None) -> None:
        """Make a context the current one; None: have none. Raises UsageError where there is no such context."""
        import tomlkit  # noqa: PLC0415 - as above

        if name is None:
            if "current" in self._document:
                self._document.remove("current")
                self._document = tomlkit.parse(self.text.lstrip("\n"))
            return
        if name not in self._names:
            raise self._file.no_context(name)
        if "current" in self._document:
            self._document["current"] = name
            return
        # A key at the top has to stand before the first table, and behind the comments that open the file.
        body = self._document.body
        place = next((at for at, (key, _) in enumerate(body) if key is not None), None)
        if place is None:
            self._document.add("current", name)
            self._document.add(tomlkit.nl())
            return
        # A comment right above the first table is about that table.
        while place and isinstance(body[place - 1][1], tomlkit.items.Comment) and place > 1:
            place -= 1
        self._put_before(place, name)

    def write(self) -> None:
        """Put the file in place, whole or not at all, readable by its owner only.

        Raises:
            UsageError: it cannot be written.
            BadInputError: what would be written could not be read again; nothing was written.
        """
        path = _real(self._file.path)
        content = self.text
        _check(content, path)
        if read_contexts_file(self._file.path).text != self._file.text:
            raise BadInputError(
                f"{path} was changed meanwhile", next_step="run the command again", code="contexts-changed"
            )
        try:
            make_directory(path.parent)
        except OSError as error:
            raise UsageError(
                f"cannot make the directory {path.parent}: {error.strerror or error}",
                next_step="give another with KELR_CONFIG_DIR",
                code="cannot-write",
            ) from error
        with whole_file(path, "contexts", overwrite=True) as file:
            file.write(content.encode())

    def _contexts(self) -> Table:
        import tomlkit  # noqa: PLC0415 - as above

        if "contexts" not in self._document:
            self._document.add("contexts", tomlkit.table(is_super_table=True))
        contexts = self._document["contexts"]
        if not isinstance(contexts, tomlkit.items.Table):
            raise BadInputError(
                f"{self._file.path}: its contexts are not written as tables such as [contexts.prod], and kelr changes"
                " no others",
                next_step="edit it by hand",
                code="contexts-not-editable",
            )
        return contexts

    def _cut(self, name: str, instead: str | None) -> None:
        """Take the tables of a context out, and put a text in their place. Tomlkit would take the comment above the
        next table with them, so this goes by lines."""
        import tomlkit  # noqa: PLC0415 - as above

        self._contexts()
        cut = without_tables(self.text, ("contexts", name), instead)
        if cut is None:
            raise BadInputError(
                f"{self._file.path}: context {name!r} is not written as a table of its own, and kelr changes no other",
                next_step="edit it by hand",
                code="contexts-not-editable",
            )
        self._document = tomlkit.parse(cut)

    def _put_before(self, place: int, name: str) -> None:
        """Tomlkit has no public way to put a key before others: the document is read again with the line in it."""
        import tomlkit  # noqa: PLC0415 - as above

        before = "".join(_written(key, item) for key, item in self._document.body[:place])
        whole = self.text
        assert whole.startswith(before)
        line = f"current = {tomlkit.string(name).as_string()}\n"
        gap = "\n" if whole[len(before) :].startswith(("[", "#")) else ""
        self._document = tomlkit.parse(f"{before}{line}{gap}{whole[len(before) :]}")


def _written(key: Any, item: Any) -> str:
    assert key is None  # only comments and blank lines stand before the first key
    text: str = item.as_string()
    return text


def _properties_table(properties: Mapping[str, Any]) -> Table:
    import tomlkit  # noqa: PLC0415 - as above

    table = tomlkit.table()
    for key, value in properties.items():
        quoted = tomlkit.key(key) if "." not in key else tomlkit.items.SingleKey(key, t=tomlkit.items.KeyType.Basic)
        if isinstance(value, Mapping):
            inline = tomlkit.inline_table()
            inline.update(value)
            table.add(quoted, inline)
        else:
            table.add(quoted, value)
    return table


def _check(content: str, path: Path) -> None:
    """What was made of the file can be read, and every context in it is one."""
    import tomllib  # noqa: PLC0415 - only where contexts are written

    try:
        document = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(
            f"{path} would not be valid afterwards ({error}): nothing was written",
            next_step="edit it by hand",
            code="contexts-not-editable",
        ) from None
    for name, values in document.get("contexts", {}).items():
        try:
            context_of(name, values, path)
        except ContextError as problem:
            raise BadInputError(
                f"{path}: context {name!r}: {problem.message}; nothing was written",
                next_step=problem.next_step,
                code="contexts-garbled",
            ) from None


def _real(path: Path) -> Path:
    """The file behind a symbolic link: people keep their configuration in a repository of their own."""
    return path.resolve() if path.is_symlink() else path
