"""What pages are made of: drawings and texts that can do no harm."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from kelr.page.rendered import as_code, in_markdown
from kelr.page.svg import WIDTH, drawing, text
from kelr.page.words import harmless

HOSTILE = "</text><script>alert(1)</script>\u202egpj.\x1b[2J"


def test_what_cannot_be_seen_is_shown() -> None:
    assert harmless("az1 \u202egpj.exe\x1b[2J") == "az1 \\u202egpj.exe\\x1b[2J"
    assert harmless("two\nlines") == "two\nlines"
    assert harmless("東京 · größer") == "東京 · größer"


def test_a_drawing_holds_its_texts_as_text() -> None:
    svg = drawing("x", HOSTILE, "about", 10, [text(0, 0, HOSTILE, "label")])
    tree = ElementTree.fromstring(svg)
    assert tree.attrib["viewBox"] == f"0 0 {WIDTH} 10"
    assert [one.tag.partition("}")[2] for one in tree] == ["title", "desc", "text"]
    assert tree[2].text == tree[0].text == harmless(HOSTILE)


@given(st.text())
def test_code_in_markdown_cannot_be_left(words: str) -> None:
    code = as_code(words)
    fence = code[: len(code) - len(code.lstrip("`"))]
    assert code.count(fence) == 2 or not " ".join(words.split()).strip("`")


def test_markdown_means_itself() -> None:
    assert in_markdown("a|b\n<b>*x*") == "a\\|b \\<b\\>\\*x\\*"
