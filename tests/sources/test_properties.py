"""The properties format, as java.util.Properties reads it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import BadInputError
from kelr.sources.properties import Property, parse_properties, read_properties


def _read(text: str) -> dict[str, str]:
    return {key: held.value for key, held in parse_properties(text, name="client.properties").items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a = b \n", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\t=\tb", {"a": "b"}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# a=b\n! c=d\n   # e=f\n\n  g=h", {"g": "h"}),
        ("a=b#c", {"a": "b#c"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=one\\\n   two\\\n\tthree\nb=c", {"a": "onetwothree", "b": "c"}),
        ("a=one\\\\\nb=two", {"a": "one\\", "b": "two"}),
        ("a=one\\\n# not a comment", {"a": "one# not a comment"}),
        ("a=one\\", {"a": "one"}),
        ("a\\ b\\=c\\:d = e", {"a b=c:d": "e"}),
        ("a=\\t\\n\\r\\f\\\\\\q", {"a": "\t\n\r\f\\q"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  b", {"a": "b"}),
    ],
)
def test_what_java_reads(text: str, expected: dict[str, str]) -> None:
    assert _read(text) == expected


def test_each_property_knows_the_line_that_it_begins_on() -> None:
    text = "# comment\na=1\\\n2\n\nb=3\n"
    lines = {key: held.line for key, held in parse_properties(text, name="x").items()}
    assert lines == {"a": 2, "b": 5}


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "\\u=1", "a=\\u-123"])
def test_a_broken_escape_names_file_and_line(text: str) -> None:
    with pytest.raises(BadInputError, match=r"client\.properties, line 2: "):
        _read(f"ok=1\n{text}")


def test_a_value_is_in_no_repr() -> None:
    assert "secret" not in repr(Property("secret", 3))


@given(st.dictionaries(st.text("ab=: \\#!\n\t", min_size=1), st.text("xy=: \\#!\n\t"), max_size=4))
def test_what_is_escaped_comes_back(properties: dict[str, str]) -> None:
    written = "\n".join(f"{_escape(key)}={_escape(value)}" for key, value in properties.items())
    assert _read(written) == properties


def _escape(text: str) -> str:
    plain = {"\n": "\\n", "\t": "\\t", "a": "a", "b": "b", "x": "x", "y": "y"}
    return "".join(plain.get(letter, f"\\{letter}") for letter in text)


@given(st.text())
def test_no_text_is_worse_than_a_bad_input_error(text: str) -> None:
    with contextlib.suppress(BadInputError):
        _read(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        read_properties(tmp_path / "absent")
    with pytest.raises(BadInputError, match="cannot read"):
        read_properties(tmp_path)
    binary = tmp_path / "store.jks"
    binary.write_bytes(b"\xfe\xed\xfe\xed\x00\x00")
    with pytest.raises(BadInputError, match="not a text file"):
        read_properties(binary)
    huge = tmp_path / "huge"
    huge.write_bytes(b"a" * (4 * 1024 * 1024 + 1))
    with pytest.raises(BadInputError, match="larger than"):
        read_properties(huge)
