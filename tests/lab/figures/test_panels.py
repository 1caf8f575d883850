"""Figures with a panel per task."""

from __future__ import annotations

import re

import pytest

from unmask.errors import RequestError
from unmask.lab.figures.panels import Facet, accuracy_bars, accuracy_over_knob
from unmask.lab.figures.plots import GREYS, PlotCurve, PlotPoint
from unmask.trace.drawing import COLOURS


def curve(label, knobs, baseline=False):
    points = (PlotPoint(knob, 10.0, 0.5 + 0.1 * i, 0.4, 0.9) for i, knob in enumerate(knobs))
    return PlotCurve(label, tuple(points), baseline)


FACETS = [
    Facet("words", ("0", "1", "5"), (curve("confidence", "015"), curve("margin", "05"))),
    Facet("code", ("0", "1"), (curve("entropy", "01"),)),
]
GROUPS = [
    Facet(
        "words",
        ("eb\n0.1", "top\n1"),
        (curve("lam 0", ("eb\n0.1", "top\n1"), baseline=True), curve("lam 5", ("top\n1",))),
    )
]
BOTH = [(accuracy_over_knob, FACETS), (accuracy_bars, GROUPS)]


def svg(folder, draw, facets, name="a.svg"):
    draw(facets, "a <title> $x$", "knob", folder / name)
    return (folder / name).read_text()


def texts(text):
    return [label.strip() for label in re.findall(r"<text[^>]*>([^<]*)</text>", text)]


def test_lines_have_a_panel_per_facet_and_one_legend(tmp_path):
    labels = texts(svg(tmp_path, accuracy_over_knob, FACETS))
    for name in ("words", "code", "confidence", "margin", "entropy", "a &lt;title&gt; $x$"):
        assert labels.count(name) == 1
    assert labels.count("knob") == 2
    assert labels.count("accuracy (%)") == 1
    assert labels.count("5") == 1


def test_bars_of_a_group_stand_side_by_side(tmp_path):
    text = svg(tmp_path, accuracy_bars, GROUPS)
    bars = re.findall(r'"M ([\d.]+) [\d.]+ \nL ([\d.]+)[^"]*" clip[^>]*style="fill: #', text)
    spans = sorted((float(left), float(right)) for left, right in bars)
    (alone, alone_end), (left, left_end), (right, right_end) = spans
    assert alone < alone_end < left < left_end < right < right_end
    ticks = [float(x) for x in re.findall(r'<use xlink:href="#m\w+" x="([\d.]+)"', text)]
    assert (alone + alone_end) / 2 == pytest.approx(ticks[0], abs=0.01)
    assert (left + right_end) / 2 == pytest.approx(ticks[1], abs=0.01)


def test_bars_of_the_baseline_are_grey(tmp_path):
    text = svg(tmp_path, accuracy_bars, GROUPS)
    assert GREYS[1].lower() in text
    assert COLOURS[0].lower() in text


@pytest.mark.parametrize(("draw", "facets"), BOTH)
@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_numbers_give_the_same_bytes(tmp_path, draw, facets, suffix):
    one, other = (tmp_path / f"{name}.{suffix}" for name in "ab")
    draw(facets, "t", "knob", one, other)
    draw(facets, "t", "knob", tmp_path / f"c.{suffix}")
    assert one.read_bytes() == other.read_bytes() == (tmp_path / f"c.{suffix}").read_bytes()


@pytest.mark.parametrize(("draw", "facets"), BOTH)
def test_another_suffix_is_refused_before_anything_is_written(tmp_path, draw, facets):
    with pytest.raises(
        RequestError, match=r"a figure must end in \.svg, \.png, \.pdf, got 'a\.jpg'"
    ):
        draw(facets, "t", "knob", tmp_path / "a.svg", tmp_path / "a.jpg")
    assert not list(tmp_path.iterdir())


def test_a_point_beside_the_axis_is_refused():
    with pytest.raises(RequestError, match="'margin' has a point at '7', which is not on the axis"):
        Facet("words", ("0", "1"), (curve("margin", "07"),))


def test_no_panels_are_no_figure(tmp_path):
    with pytest.raises(RequestError, match="at least one curve, got none"):
        accuracy_bars([], "t", "knob", tmp_path / "a.svg")
