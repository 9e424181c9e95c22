"""A report as a page: it opens offline, means what it says whatever names are in it, and can be read without eyes."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from kelr.fleet.report.figures import Figures, Missing, Standing, UncleanDay, WeekTrouble
from kelr.fleet.report.pages import gaps, html, markdown, nothing, plots, report_of
from kelr.fleet.report.written import clusters_csv, findings_csv, harmless
from tests.fleet.report_figures import ENDS, FLEET, PAYMENTS, SEARCH

EVIL = "<script>alert('x')</script>|`*_[a](b)&\n# h"
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "tags are closed in order"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html(report_of(FLEET)))


def test_it_is_whole_and_loads_nothing(page: Page) -> None:
    assert page.open == []
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "embed", "form"}
    for tag, attributes in page.tags:
        assert not set(attributes) & {"src", "srcset", "href", "action", "style"}, tag
        assert not [name for name in attributes if name.startswith("on")], tag
    text = html(report_of(FLEET))
    assert "@import" not in text
    assert "url(" not in text
    assert set(re.findall(r"https?://[^\s\"<]+", text)) == {"http://www.w3.org/2000/svg"}


def test_a_reader_without_eyes_finds_their_way(page: Page) -> None:
    assert page.named("html")[0]["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels)), "no level is skipped"
    ids = [str(attributes["id"]) for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        assert set(str(attributes.get("aria-labelledby") or "").split()) <= set(ids)
    assert all(attributes.get("scope") in {"col", "row"} for attributes in page.named("th"))
    assert len(page.named("caption")) == len(page.named("table"))
    for drawing in page.named("svg"):
        assert drawing["role"] == "img"
        assert len(str(drawing["aria-labelledby"]).split()) == 2


def test_all_that_is_found_is_told_in_both(page: Page) -> None:
    report = report_of(FLEET)
    text = " ".join(markdown(report).split())
    for finding in report.chosen.shown:
        assert finding.title in " ".join(page.text.split())
        assert finding.title in text
        for command in finding.commands:
            assert command.line in page.text
            assert command.line in text
    assert "2 files could not be read" in page.text
    assert "1 cluster (search) known by snapshots alone" in page.text


def test_names_mean_themselves() -> None:
    figures = replace(FLEET, clusters=(replace(PAYMENTS, name=EVIL), replace(SEARCH, name="b")))
    report = report_of(figures, title=EVIL)
    text = html(report)
    page = Page(text)
    assert page.named("script") == []
    assert "<script" not in text
    assert " ".join(EVIL.split()) in " ".join(page.text.split())
    written = markdown(report)
    assert not re.search(r"(?<!\\)<script", written)
    assert "\n# h" not in written
    plain = markdown(report_of(FLEET, title=EVIL)).splitlines()
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in written.splitlines()]
    assert bars == [len(re.findall(r"(?<!\\)\|", line)) for line in plain], "no name makes another cell or line"


def test_drawings_are_well_formed_and_stay_within_their_frame() -> None:
    drawn = plots(FLEET)
    assert [plot.id for plot in drawn] == ["trouble-by-week", "worst-failures", "unclean-elections", "unclean-restarts"]
    for plot in drawn:
        drawing = ElementTree.fromstring(plot.svg)
        _, _, wide, high = map(float, str(drawing.get("viewBox")).split())
        bars = [one for one in drawing.iter() if one.tag.endswith("rect")]
        for bar in bars:
            x, y, width, height = (float(str(bar.get(name))) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + width <= wide
            assert 0 <= y <= y + height <= high
        for dot in (one for one in drawing.iter() if one.tag.endswith("circle")):
            x, radius = float(str(dot.get("cx"))), float(str(dot.get("r")))
            assert radius <= x <= wide - radius
        assert all(len(row) == len(plot.header) for row in plot.rows)


def test_bars_are_as_long_as_their_figures() -> None:
    weeks = tuple(
        WeekTrouble("c", date(2026, 11, day), "leaderless", 1, 1, seconds) for day, seconds in ((2, 3_600), (16, 7_200))
    )
    (plot,) = plots(Figures("lake", 1, None, weeks=weeks))
    heights = [float(height) for height in re.findall(r'<rect[^>]* height="([0-9.]+)" class="leaderless"', plot.svg)]
    assert heights == [26.0, 52.0]
    assert plot.rows == (("2026-11-02", "1"), ("2026-11-09", "0"), ("2026-11-16", "2")), "no week is left out"


def test_a_single_day_is_drawn_too() -> None:
    (plot,) = plots(Figures("lake", 1, None, election_days=(UncleanDay("c", date(2026, 11, 2), 3),)))
    assert "3 elections" in plot.svg
    assert "nan" not in plot.svg


WELL = Figures("lake", 1, ENDS, (replace(SEARCH, standing=Standing(4_000), from_log=True),))


def test_where_nothing_was_found_there_are_no_plots_and_that_is_said() -> None:
    figures = WELL
    report = report_of(figures)
    assert report.findings == ()
    page = Page(html(report))
    assert "Nothing was found that has to be fixed." in page.text
    assert page.named("svg") == []
    assert "Nothing was found that has to be fixed." in markdown(report)


def test_what_was_not_run_is_said_with_its_command_and_nothing_is_called_well() -> None:
    missing = Missing(
        "how long there was trouble: kelr fleet exposure was not run", ("fleet", "exposure", "--lake", "a b")
    )
    report = report_of(Figures("lake", 1, ENDS, missing=(missing,)))
    for text in (Page(html(report)).text, markdown(report)):
        assert "kelr fleet exposure was not run" in text
        assert "kelr fleet exposure --lake 'a b'" in text
        assert "Nothing was found in what was looked at, and not everything was" in text
    assert ("unclean elections", "?") in re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", html(report))


@pytest.mark.parametrize(
    ("unseen", "words"),
    [
        ({"quarantined": 7}, "7 files could not be read"),
        ({"missing": (Missing("what lasted in b: it was not summed up", ()),)}, "Not told: what lasted in b"),
        ({"clusters": ()}, "No partition was found."),
        ({"clusters": (replace(WELL.clusters[0], standing=Standing()),)}, "No partition was found of search."),
        (
            {"clusters": (replace(WELL.clusters[0], standing=Standing(9, min_isr_unknown=9)),)},
            "min.insync.replicas of 9 partitions: whether enough are in sync is not known.",
        ),
        ({"clusters": (replace(WELL.clusters[0], from_log=False),)}, "1 cluster (search) known by snapshots alone"),
    ],
)
def test_nothing_seen_is_no_pass(unseen: dict[str, Any], words: str) -> None:
    figures = replace(WELL, **unseen)
    report = report_of(figures)
    assert report.findings == ()
    (gap,) = gaps(figures)
    assert words in gap.text
    for text in (Page(html(report)).text, markdown(report), nothing(figures)):
        assert "Nothing was found in what was looked at, and not everything was." in text
        assert "Nothing was found that has to be fixed" not in text


def test_the_scope_names_the_window_that_is_counted() -> None:
    began, ended = ENDS - timedelta(days=7), ENDS - timedelta(days=1)
    scope = markdown(report_of(FLEET)).splitlines()[2]
    for windows, words in (
        ((("paym-id", None, None), ("search-id", None, None)), ""),
        ((("paym-id", began, None), ("search-id", began, None)), " are counted from 2026-11-14 06:00 UTC."),
        (
            (("paym-id", None, None), ("search-id", began, ended)),
            " of search are counted from 2026-11-14 06:00 UTC to 2026-11-20 06:00 UTC.",
        ),
    ):
        told = markdown(report_of(replace(FLEET, windows=windows))).splitlines()[2]
        assert told == scope + (f" Unclean elections, restarts and times{words}" if words else "")


def tiles(figures: Figures) -> dict[str, str]:
    return dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", html(report_of(figures))))


def test_a_tile_says_0_only_where_all_of_it_is_known() -> None:
    (cluster,) = WELL.clusters
    assert list(tiles(WELL).values())[:8] == ["1", "4,000", "0", "0", "0", "0", "0", "0 s"]
    seen = tiles(replace(WELL, clusters=(replace(cluster, from_log=False),)))
    assert (seen["unclean elections"], seen["time without leader, all partitions"]) == ("?", "?")
    assert seen["without leader now"] == "0"
    unknown = replace(WELL, clusters=(replace(cluster, standing=Standing(9, min_isr_unknown=9), brokers=()),))
    assert (tiles(unknown)["under min ISR now"], tiles(unknown)["brokers not live"]) == ("?", "?")
    assert "| search | 9 | 0 | ? | 0 | ? | ? |" in markdown(report_of(unknown))
    for nothing_read in (replace(WELL, quarantined=1), replace(WELL, clusters=())):
        assert tiles(nothing_read)["without leader now"] == "?"


def test_a_tile_is_a_lower_bound_where_part_of_it_is_known() -> None:
    shown = tiles(replace(FLEET, quarantined=0))
    assert (shown["under min ISR now"], shown["on their last replica now"]) == ("32+", "5")
    assert (shown["unclean elections"], shown["brokers not live"]) == ("7+", "1")
    assert shown["time without leader, all partitions"] == "13 h 53 min+"
    assert tiles(FLEET)["partitions"] == "1,204,000+", "two files could not be read"


def test_the_same_figures_give_the_same_bytes() -> None:
    assert html(report_of(FLEET)) == html(report_of(FLEET))
    assert markdown(report_of(FLEET)) == markdown(report_of(FLEET))


def test_findings_that_are_not_shown_are_counted_and_in_the_list() -> None:
    report = report_of(FLEET, top=2)
    assert "Not shown here: under min ISR, or on the last replica, now (2), one failure" in markdown(report)
    rows = list(csv.DictReader(io.StringIO(findings_csv(report))))
    assert [row["place"] for row in rows] == [str(place) for place in range(1, len(report.findings) + 1)]
    assert [row["shown"] for row in rows] == ["true"] * 2 + ["false"] * 10
    assert rows[0]["commands"].splitlines()[0].startswith("kelr explain -b kafka-1.payments:9092")


def test_the_list_of_clusters_keeps_unknown_apart() -> None:
    rows = list(csv.DictReader(io.StringIO(clusters_csv((PAYMENTS, replace(SEARCH, begins=None, ends=None))))))
    assert (rows[0]["leaderless"], rows[0]["not_live"], rows[0]["ends"]) == ("12", "3", "2026-11-21T06:00:00+00:00")
    assert (rows[1]["not_live"], rows[1]["ends"], rows[1]["source"]) == ("-", "", "snapshot")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1"])
def test_no_cell_is_a_formula(text: str) -> None:
    clusters = list(csv.reader(io.StringIO(clusters_csv((replace(PAYMENTS, name=text),)), newline="")))
    assert clusters[1][1] == "'" + text
    findings = findings_csv(
        report_of(replace(FLEET, clusters=tuple(replace(one, name=text) for one in FLEET.clusters)))
    )
    assert {row["cluster_name"] for row in csv.DictReader(io.StringIO(findings, newline=""))} == {"'" + text}
    assert harmless("-") == "-", "an empty list"
    assert harmless(-1) == -1
