"""Writing contexts.toml: what was asked for and nothing else; whole, private, and never over somebody's change."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.config.contexts_file import ContextsFile, contexts_of, read_contexts_file
from kelr.config.edit import Edit
from kelr.errors import BadInputError, UsageError

WRITTEN = """\
# my clusters

# the big one
[contexts.prod]            # careful
cluster_id = "old"         # of 2024
bootstrap_server = "b:1"

[contexts.prod.properties]
"security.protocol" = "SSL"  # since May

# small
[contexts.dev]
bootstrap_server = "d:1"
"""


def edit(directory: Path, text: str | None = WRITTEN) -> tuple[Path, Edit]:
    path = directory / "contexts.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    return path, Edit(read_contexts_file(path))


def test_a_new_file(tmp_path: Path) -> None:
    path, change = edit(tmp_path / "new" / "directory", None)
    change.put("prod", {"read_only": True, "bootstrap_server": "a:1", "properties": {"b.c": "d", "e": {"env": "X"}}})
    change.use("prod")
    change.write()
    assert path.read_text(encoding="utf-8") == (
        "# Clusters that kelr knows by name; see docs/contexts.md. `kelr context add` and an editor both write here.\n"
        'current = "prod"\n'
        "\n"
        "[contexts.prod]\n"
        'bootstrap_server = "a:1"\n'
        "read_only = true\n"
        "\n"
        "[contexts.prod.properties]\n"
        '"b.c" = "d"\n'
        'e = {env = "X"}\n'
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["contexts.toml"]


def test_comments_and_order_stay(tmp_path: Path) -> None:
    path, change = edit(tmp_path)
    change.use("dev")
    change.set("prod", "cluster_id", "new")
    change.put("third", {"bootstrap_server": "t:1"})
    change.write()
    expected = WRITTEN.replace('"old"', '"new"').replace("# my clusters\n\n", '# my clusters\n\ncurrent = "dev"\n\n')
    assert path.read_text(encoding="utf-8") == expected + '\n[contexts.third]\nbootstrap_server = "t:1"\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_current_context_changes_and_goes(tmp_path: Path) -> None:
    path, change = edit(tmp_path, f'current = "prod" # mine\n{WRITTEN}')
    change.use("dev")
    assert change.text == f'current = "dev" # mine\n{WRITTEN}'
    change.use(None)
    assert change.text == WRITTEN
    change.use(None)
    assert change.text == WRITTEN
    with pytest.raises(UsageError, match="no context 'nope'"):
        change.use("nope")
    assert path.read_text(encoding="utf-8").startswith("current")  # nothing is written before it is asked for


def test_comments_of_others_stay_where_a_context_goes(tmp_path: Path) -> None:
    _, change = edit(tmp_path)
    change.remove("prod")
    assert change.text == '# my clusters\n\n# small\n[contexts.dev]\nbootstrap_server = "d:1"\n'
    change.remove("dev")
    assert change.text == "# my clusters\n"


def test_a_context_that_is_written_in_line_is_left_alone(tmp_path: Path) -> None:
    _, change = edit(tmp_path, "[contexts]\nprod = {bootstrap_server = 'a'}\n[contexts.dev]\n")
    with pytest.raises(BadInputError, match="context 'prod' is not written as a table of its own"):
        change.remove("prod")
    change.remove("dev")
    assert change.written().names == ("prod",)


def test_a_context_goes_and_is_the_current_one_no_more(tmp_path: Path) -> None:
    _, change = edit(tmp_path, f'current = "prod"\n{WRITTEN}')
    change.remove("prod")
    found = change.written()
    assert (found.names, found.current) == (("dev",), None)
    with pytest.raises(UsageError, match="no context 'prod'"):
        change.remove("prod")


def test_nothing_is_replaced_unless_told(tmp_path: Path) -> None:
    _, change = edit(tmp_path)
    with pytest.raises(UsageError, match="there is a context 'prod' already"):
        change.put("prod", {"bootstrap_server": "x:1"})
    change.put("prod", {"bootstrap_server": "x:1"}, force=True)
    found = change.written()
    assert found.tables["prod"] == {"bootstrap_server": "x:1"}
    assert found.names == ("prod", "dev")
    assert "# small\n[contexts.dev]" in change.text


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "ü", "x" * 65, "a\n", ".x", "[x]"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    _, change = edit(tmp_path)
    with pytest.raises(UsageError, match="is no name for a context"):
        change.put(name, {"bootstrap_server": "x:1"})
    assert change.text == WRITTEN


def test_values_that_make_no_context(tmp_path: Path) -> None:
    _, change = edit(tmp_path)
    with pytest.raises(UsageError, match="context 'x': password_env says nothing without username"):
        change.put("x", {"bootstrap_server": "x:1", "password_env": "X"})
    assert change.text == WRITTEN


def test_a_file_that_was_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path, change = edit(tmp_path)
    path.write_text("# somebody else's\n", encoding="utf-8")
    change.use("dev")
    with pytest.raises(BadInputError, match="was changed meanwhile"):
        change.write()
    assert path.read_text(encoding="utf-8") == "# somebody else's\n"


def test_a_broken_context_elsewhere_stops_the_writing(tmp_path: Path) -> None:
    path, change = edit(tmp_path, f"{WRITTEN}nope = 1\n")
    change.use("prod")
    with pytest.raises(BadInputError, match="context 'dev': has nope, which kelr does not know; nothing was written"):
        change.write()
    assert path.read_text(encoding="utf-8") == f"{WRITTEN}nope = 1\n"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "kelr.toml"
    real.parent.mkdir()
    real.write_text(WRITTEN, encoding="utf-8")
    path = tmp_path / "contexts.toml"
    path.symlink_to(real)
    change = Edit(read_contexts_file(path))
    change.use("dev")
    change.write()
    assert path.is_symlink()
    assert read_contexts_file(real).current == "dev"


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    change = Edit(ContextsFile(tmp_path / "file" / "contexts.toml"))
    change.put("x", {"bootstrap_server": "x:1"})
    with pytest.raises((UsageError, BadInputError), match=r"cannot|Not a directory"):
        change.write()


@pytest.mark.parametrize("text", ["contexts.a.bootstrap_server = 'x'\n[contexts.b]\n", "contexts = {a = {}}\n"])
def test_unusual_documents_are_left_to_their_writers(tmp_path: Path, text: str) -> None:
    path, change = edit(tmp_path, text)
    with pytest.raises(BadInputError, match="are not written as tables") as caught:
        change.put("x", {"bootstrap_server": "x:1"})
    assert caught.value.next_step == "edit it by hand"
    assert path.read_text(encoding="utf-8") == text


NAME = st.sampled_from(["prod", "dev", "a", "b.c", "d-e", "F_9", "current", "contexts", "properties"])
VALUE = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8)
TABLE = st.fixed_dictionaries(
    {"bootstrap_server": VALUE},
    optional={
        "read_only": st.booleans(),
        "timeout": st.integers(1, 99) | st.floats(0.5, 9),
        "properties": st.dictionaries(
            VALUE, VALUE | st.builds(lambda text: {"env": text}, VALUE), min_size=1, max_size=3
        ),
    },
)


@given(st.lists(st.tuples(NAME, TABLE), max_size=5), st.lists(NAME, max_size=3), NAME)
def test_what_is_written_is_what_is_read(
    tables: list[tuple[str, dict[str, object]]], removed: list[str], used: str
) -> None:
    """In whichever order contexts come, are replaced and go."""
    change = Edit(contexts_of(WRITTEN, Path("contexts.toml")))
    expected = dict(tomllib.loads(WRITTEN)["contexts"])
    for name, values in tables:
        change.put(name, values, force=True)
        expected[name] = values
    for name in removed:
        if name in expected:
            change.remove(name)
            del expected[name]
    if used in expected:
        change.use(used)
    found = change.written()
    assert found.tables == expected
    assert found.current == (used if used in expected else None)
    assert "# my clusters\n" in change.text
    assert ("# small\n[contexts.dev]\n" in change.text) is ("dev" in expected and "dev" not in removed)
