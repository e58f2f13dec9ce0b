"""The HTML report: whole in one file, and what it shows is what was scored."""

import base64
import re
from html.parser import HTMLParser
from itertools import pairwise

import cv2
import numpy as np
import pytest

from smart_caption_ros.evaluation.coverage_benchmark import CoverageComparison, Outcome, ScoredFrame
from smart_caption_ros.evaluation.page import coverage_page, picture
from smart_caption_ros.evaluation.report import CoverageTally
from smart_caption_ros.sources.ground_truth import DatasetIssue, DatasetIssues, GroundTruthFrame
from smart_caption_ros.sources.source import GroundTruthObject

OBJECTS = tuple(
    GroundTruthObject(name, number, box, 0.2)
    for number, (name, box) in enumerate(
        [("cup", (10, 60, 60, 110)), ("couch", (80, 20, 160, 110)), ("cup", (100, 40, 110, 50))]
    )
)
CAPTION = "a cup <b>near</b> a dog"


class Elements(HTMLParser):
    """Start tags with their attributes, and whether every element is closed in its turn."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.open = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag, **attributes):
        return [found for name, found in self.found if name == tag and attributes.items() <= found.items()]


def scored_frame(coverage, path, image, caption=CAPTION, objects=OBJECTS):
    cv2.imwrite(str(path), image)
    frame = GroundTruthFrame("000000", "000007", 7, path, image.shape[1], image.shape[0], objects)
    return ScoredFrame(frame, objects, caption, coverage.score(caption, [item.class_name for item in objects]))


@pytest.fixture
def scored(coverage, tmp_path):
    return scored_frame(coverage, tmp_path / "7.png", np.zeros((120, 200, 3), np.uint8))


def pixels_of(drawn):
    data = np.frombuffer(base64.b64decode(drawn.data_uri.split(",")[1]), np.uint8)
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)


def report_of(coverage, captions):
    tally = CoverageTally(coverage)
    for number, caption in enumerate(captions):
        tally.add(f"{number % 2:06d}", caption, OBJECTS)
    return tally.report()


def outcome(coverage, label, frames=(), captions=(CAPTION,)):
    issues = DatasetIssues()
    issues.add(DatasetIssue.BACKGROUND, "0/1")
    return Outcome(label, "", {"bundle": "here"}, report_of(coverage, captions), issues, frames, frames)


def page_of(*outcomes, data="somewhere"):
    comparison = CoverageComparison(outcomes, data, 1, "ground truth", "vectors", "pipeline")
    return coverage_page(comparison, pytest.fail)


def test_the_page_is_one_file_that_asks_for_nothing(coverage, scored):
    page = page_of(outcome(coverage, "a", [scored]))
    elements = Elements(page)
    assert elements.open == []
    assert not elements.all("script")
    assert not elements.all("link")
    assert "http" not in page
    assert "url(" not in page
    links = [attributes[name] for _, attributes in elements.found for name in ("src", "href") if name in attributes]
    assert links
    assert all(link.startswith("data:image/jpeg;base64,") for link in links)


def test_named_objects_share_a_colour_with_their_noun_and_the_others_are_grey(coverage, scored):
    drawn = picture(scored)
    noun = next(span for span in drawn.caption if span.colour)
    assert (noun.text, noun.note) == ("cup", "cup, similarity 1.00")
    assert "".join(span.text for span in drawn.caption) == CAPTION
    elements = Elements(page_of(outcome(coverage, "a", [scored])))
    assert elements.all("u", style=f"background: {noun.colour}")
    pixels = pixels_of(drawn)
    for left, _, right, bottom in (found.box_xyxy for found in OBJECTS):
        edge = pixels[int(bottom) - 4 : int(bottom), int(left + right) // 2].astype(int)
        is_coloured = (edge.max(axis=1) - edge.min(axis=1)).max() > 30
        assert is_coloured == (left != 80), "the couch is grey"
    assert drawn.missed == ("couch",)


def test_captions_and_names_are_text_and_no_markup(coverage, scored):
    page = page_of(outcome(coverage, "<label>", [scored]), data="<here>")
    assert "&lt;b&gt;near&lt;/b&gt;" in page
    elements = Elements(page)
    assert {name for name, _ in elements.found}.isdisjoint({"b", "here", "label"})


def test_the_table_and_the_plot_show_the_figures_of_every_column(coverage):
    captions = {"M = 0": ["a cup", "a dog"], "M = 40": ["a cup on a couch"]}
    outcomes = [outcome(coverage, label, captions=said) for label, said in captions.items()]
    page = page_of(*outcomes)
    for shown in outcomes:
        for value in shown.report.overall.coverage.values():
            assert f"{value:.3f}" in page
        assert shown.label in page
    lines = Elements(page).all("polyline")
    assert len(lines) == 2
    for line in lines:
        xs = [float(point.split(",")[0]) for point in line["points"].split()]
        assert len(xs) == 4
        assert all(left < right for left, right in pairwise(xs))
    # More coverage is further up, which in SVG is a smaller number.
    heights = [float(line["points"].split()[0].split(",")[1]) for line in lines]
    assert heights[1] < heights[0]


def test_a_report_without_any_object_is_still_a_page(coverage):
    tally = CoverageTally(coverage)
    tally.add("000000", "", [])
    page = page_of(Outcome("a", "", {}, tally.report(), DatasetIssues(), (), ()))
    assert Elements(page).open == []
    assert "No frame has an object above 1 %" in page
    assert not re.search(r"\b(nan|None)\b", page)


def test_the_page_is_readable_on_a_phone_in_light_and_dark(coverage, scored, browser, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    shown = page_of(outcome(coverage, "a" * 90, [scored]), data="d" * 200)
    (tmp_path / "page.html").write_text(shown)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((tmp_path / "page.html").as_uri())
    backgrounds = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        found = axe.run(page).response["violations"]
        assert [(it["id"], it["nodes"][0]["failureSummary"]) for it in found] == []
    assert len(backgrounds) == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
