"""What pages have in common comes from one template."""

from __future__ import annotations

from kelr.page.rendered import _environment

HOSTILE = "<script>\u202e"


class Thing:
    """A tile, or a gap."""

    label, value, bad, text, command = HOSTILE, "1 & 2", True, HOSTILE, "kelr <x>"


def test_tiles_and_gaps_are_harmless_wherever_they_stand() -> None:
    page = _environment("kelr.view.incident", autoescape=True).from_string(
        '{%- import "parts.html" as parts %}{{ parts.tiles([tile]) }}\n{{ parts.gaps([tile]) }}'
    )
    assert page.render(tile=Thing()).splitlines() == [
        '<dl class="tiles">',
        '    <div class="tile bad"><dt>&lt;script&gt;\\u202e</dt><dd>1 &amp; 2</dd></div>',
        "  </dl>",
        '<div class="gaps" role="note">',
        "    <h3>Not known</h3>",
        "    <ul>",
        "      <li>&lt;script&gt;\\u202e <code>kelr &lt;x&gt;</code></li>",
        "    </ul>",
        "  </div>",
    ]
