"""``python packaging/check_site.py DIR``: fails where a page of the site fetches anything from elsewhere when read.

Links that a reader follows may lead anywhere. What a browser loads by itself (scripts, styles, fonts, pictures, frames)
has to be a file of the site: it is read on bastion hosts and in the middle of outages.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

_LOADED_BY = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data", "use": "href", "image": "href",
}  # fmt: skip
_LOADED_LINKS = frozenset({"stylesheet", "icon", "shortcut icon", "preload", "modulepreload", "manifest", "preconnect"})
_IN_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
_NOT_FETCHED = ("data:", "#", "about:")


class _Loads(HTMLParser):
    """What a page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and (given.get("rel") or "").lower() in _LOADED_LINKS:
            self.addresses.append(given.get("href") or "")
        elif tag in _LOADED_BY:
            self.addresses.append(given.get(_LOADED_BY[tag]) or "")
        self.addresses += _style_addresses(given.get("style") or "")


def _style_addresses(text: str) -> list[str]:
    return [first or second for first, second in _IN_STYLES.findall(text)]


def problems(site: Path) -> list[str]:
    """What is wrong, a line each; empty where every page is read without a network."""
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            loads = _Loads()
            loads.feed(path.read_text(encoding="utf-8"))
            addresses = loads.addresses
        elif path.suffix in {".css", ".svg"}:
            addresses = _style_addresses(path.read_text(encoding="utf-8"))
        else:
            continue
        found += [f"{path.relative_to(site)}: {address}" for address in addresses if not _is_there(site, path, address)]
    return found


def _is_there(site: Path, page: Path, address: str) -> bool:
    address = unquote(urldefrag(address)[0]) if not address.startswith(_NOT_FETCHED) else ""
    if not address:
        return True
    if "://" in address or address.startswith("//"):
        return False
    # The page for addresses that are not there is the one page that does not know from where it is read.
    target = site / address.lstrip("/") if address.startswith("/") else page.parent / address
    return target.is_file()


def _main(arguments: list[str]) -> int:
    site = Path(arguments[0])
    if not (site / "index.html").is_file():
        sys.stderr.write(f"{site}: no site is there\n")
        return 1
    found = problems(site)
    for line in found:
        sys.stderr.write(f"loaded from elsewhere, or missing: {line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
