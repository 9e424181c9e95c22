"""What mkdocs does for kelr's pages beyond what it does by itself; mkdocs.yml names this file.

Pages are written to be read in the repository, too, where one names another in backquotes: `docs/plans.md`. On the
site that is a link, and a name of a page that is not there fails the build, like any broken link. CHANGELOG.md becomes
a page. Transcripts go without the comments that say how a test checks them.

The search of a page that is read from a disk needs what stands in for a worker there. The theme has browsers fetch that
from elsewhere; the site brings its own (`assets/frame-worker.js`).
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from posixpath import relpath
from typing import Any

from mkdocs.structure.files import File

_LOG = logging.getLogger("mkdocs.kelr")
_FENCE = re.compile(r"^(```|~~~).*?^\1[ ]*$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"(?<!\[)`(?:docs/)?([a-z0-9-]+(?:/[a-z0-9-]+)*\.md)`(?!\])")
_FETCHED_WORKER = re.compile(r"<script src=[\"']?https://[^\"'\s>]+/iframe-worker/shim[\"']?></script>")
_OWN_WORKER = "assets/frame-worker.js"
_CHECKED_BY = re.compile(r"^<!-- (?:shown|run|told): [^\n]* -->\n(?=```)", re.MULTILINE)
_NOT_PAGES = frozenset({"report.md"})
"""Names of files that kelr itself writes."""


def on_files(files: Any, config: Any) -> Any:
    """The changelog as a page."""
    changelog = Path(config.config_file_path).with_name("CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changelog.md", content=changelog))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """The page with links where it names other pages, its transcripts and drawings left alone."""
    del config
    markdown = _CHECKED_BY.sub("", markdown)
    parts = []
    end = 0
    for fence in _FENCE.finditer(markdown):
        parts += [_linked(markdown[end : fence.start()], page, files), fence.group()]
        end = fence.end()
    return "".join([*parts, _linked(markdown[end:], page, files)])


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """The page with the site's own stand-in for workers."""
    del config
    return _own_worker(output, relpath(_OWN_WORKER, page.file.dest_uri.rpartition("/")[0] or "."))


def on_post_template(output: str, *, template_name: str, config: Any) -> str:
    """The same for the page that says that there is no such page: it is only ever served."""
    del template_name, config
    return _own_worker(output, f"/{_OWN_WORKER}")


def _own_worker(output: str, address: str) -> str:
    return _FETCHED_WORKER.sub(f'<script src="{address}"></script>', output)


def _linked(text: str, page: Any, files: Any) -> str:
    here = page.file.src_uri

    def link(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in _NOT_PAGES:
            return match.group()
        if files.get_file_from_path(name) is None:
            _LOG.warning("%s names docs/%s, which is not there", here, name)
            return match.group()
        return f"[{name.removesuffix('.md')}]({relpath(name, here.rpartition('/')[0] or '.')})"

    return _NAMED.sub(link, text)
