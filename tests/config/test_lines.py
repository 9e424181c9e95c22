"""On which line a key stands, however the document is written."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from kelr.config.contexts_file import lines_of_keys

TEXT = '''# contexts
current = "prod"

[contexts.prod] # the big one
bootstrap_server = "a:1"
username = """
ada
[contexts.not-a-table]
cluster_id = "no key either"
"""
list = [
  "x = 1",
]

[contexts.prod.properties]
"security.protocol" = "SSL"
ssl.key.password = { env = "X" }

[ contexts . "dev" ]
  read_only = true
'''


def test_lines() -> None:
    assert lines_of_keys(TEXT) == {
        ("current",): 2,
        ("contexts",): 4,
        ("contexts", "prod"): 4,
        ("contexts", "prod", "bootstrap_server"): 5,
        ("contexts", "prod", "username"): 6,
        ("contexts", "prod", "list"): 11,
        ("contexts", "prod", "properties"): 15,
        ("contexts", "prod", "properties", "security.protocol"): 16,
        ("contexts", "prod", "properties", "ssl"): 17,
        ("contexts", "prod", "properties", "ssl", "key"): 17,
        ("contexts", "prod", "properties", "ssl", "key", "password"): 17,
        ("contexts", "prod", "properties", "ssl", "key", "password", "env"): 17,
        ("contexts", "dev"): 19,
        ("contexts", "dev", "read_only"): 20,
    }


WORD = st.text(alphabet="abcxyz-_", min_size=1, max_size=4)
LEAF = st.one_of(
    st.sampled_from(['"text"', "3", "true", "'[contexts.x]'", '"""\n[a]\nb = 1\n"""', "[\n  1,\n  2,\n]", '"\\u2028"']),
)


@given(st.dictionaries(WORD, st.dictionaries(WORD, LEAF, max_size=4), max_size=5), st.integers(0, 2))
def test_every_key_of_a_document_is_found_on_its_line(tables: dict[str, dict[str, str]], gap: int) -> None:
    lines: list[str] = []
    expected = {}
    for table, keys in tables.items():
        lines += ["# a comment = [x]"] * gap
        expected[table,] = len(lines) + 1
        lines.append(f"[{table}]")
        for key, value in keys.items():
            expected[table, key] = len(lines) + 1
            lines += f"{key} = {value}".split("\n")
    text = "\n".join(lines)
    tomllib.loads(text)
    assert lines_of_keys(text) == expected
