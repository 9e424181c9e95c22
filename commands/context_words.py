"""A context in words and rows, without its secrets."""

from __future__ import annotations

from kelr.config.context import PASSWORD_KEYS, Context
from kelr.config.contexts_file import ContextsFile, may_be_shown
from kelr.config.value import Kind, Value
from kelr.view.contexts import SettingRow


def login_words(context: Context) -> str | None:
    """How a context logs in, such as ``SASL_SSL SCRAM-SHA-512 as ada``; None where only its file says, or nothing."""
    words = [
        held.text
        for key in ("security.protocol", "sasl.mechanism")
        if (held := context.properties.get(key)) is not None and held.kind is Kind.HERE
    ]
    if context.username is not None:
        words += ["as", context.username]
    return " ".join(words) or None


def context_rows(file: ContextsFile, context: Context) -> list[SettingRow]:
    """Every key of a context with its line."""
    name = context.name or ""
    rows = []
    for key, value in file.tables[name].items():
        origin = origin_in(file, name, key)
        if key == "properties":
            rows += [
                property_row(one, held, origin_in(file, name, "properties", *path_of(file, name, one)))
                for one, held in context.properties.items()
            ]
        elif key in PASSWORD_KEYS:
            rows.append(password_row(context, origin))
        elif key == "command_config":
            rows.append(SettingRow(key, str(context.command_config), origin))
        else:
            rows.append(SettingRow(key, _text(value), origin))
    return rows


def password_row(context: Context, origin: str) -> SettingRow:
    """The password: where it is found, or hidden."""
    assert context.password is not None
    return SettingRow("password", context.password.reference, origin, hidden=context.password.kind is Kind.HERE)


def property_row(key: str, value: Value, origin: str) -> SettingRow:
    """A client property; its value where that is known to be no secret."""
    if value.kind is not Kind.HERE:
        return SettingRow(key, value.reference, origin)
    return text_row(key, value.text, origin)


def text_row(key: str, text: str, origin: str) -> SettingRow:
    """A client property that is written down somewhere."""
    only_a_variable = text.startswith("${") and text.endswith("}") and text.count("}") == 1
    shown = may_be_shown(key, text) or only_a_variable
    return SettingRow(key, text if shown else None, origin, hidden=not shown)


def origin_in(file: ContextsFile, name: str, *path: str) -> str:
    """The file and the line of a key of a context."""
    line = file.line(name, *path)
    return f"{file.path}, line {line}" if line is not None else str(file.path)


def path_of(file: ContextsFile, name: str, key: str) -> tuple[str, ...]:
    """How a property stands in the file: as one quoted key, or as a key for each of its parts."""
    whole = ("contexts", name, "properties", key)
    return (key,) if whole in file.lines else tuple(key.split("."))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
