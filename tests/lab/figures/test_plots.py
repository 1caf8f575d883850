"""Figures: what they hold, that they repeat, and what is refused."""

from __future__ import annotations

import math
import sys
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import pytest

from tests import forked
from unmask.errors import RequestError, UnmaskError
from unmask.lab.figures.plots import GREYS, PlotCurve, PlotPoint, accuracy_against_forwards
from unmask.trace.drawing import COLOURS

SVG = "{http://www.w3.org/2000/svg}"
BASELINE = PlotCurve(
    "confidence | eb(γ)",
    (
        PlotPoint("0.011", 96.0, 0.78, 0.74, 0.81),
        PlotPoint("0.12", 64.0, 0.75, 0.71, 0.79),
        PlotPoint("0.57", 31.0, 0.62, 0.58, 0.66),
    ),
    baseline=True,
)
STABLE = PlotCurve(
    "confidence | swd(5) | eb(γ)",
    (
        PlotPoint("0.013", 90.0, 0.79, 0.75, 0.82),
        PlotPoint("0.14", 60.0, 0.76, 0.72, 0.80),
        PlotPoint("0.59", 30.0, 0.63, 0.59, 0.67),
    ),
)


def draw(folder, curves=(BASELINE, STABLE), title="Lists, 500 problems", name="figure.svg"):
    file = folder / name
    accuracy_against_forwards(curves, title, file)
    return file


def texts(file):
    """Every text of an SVG, with where it stands, in points."""
    labels = ElementTree.parse(file).iter(f"{SVG}text")
    return {text.text: (float(text.get("x")), float(text.get("y"))) for text in labels}


def error_bars(file):
    """The vertical lines of every curve, as (x, y of one end, y of the other)."""
    for group in ElementTree.parse(file).iter(f"{SVG}g"):
        if group.get("id", "").startswith("LineCollection"):
            paths = [path.get("d").split() for path in group]
            yield [(float(x), float(y), float(end)) for _, x, y, _, _, end in paths]


def many(number):
    """Curves that lie as close together as real ones do."""
    for i in range(number):
        points = (
            PlotPoint(f"{i}.{n}", 9.0 * n + i, 0.8 - 1 / n**2 / 2, 0.75 - 1 / n**2 / 2, 0.83)
            for n in range(2, 8)
        )
        yield PlotCurve(f"rule {i}", tuple(points), baseline=i % 2 == 0)


# What a figure holds


def test_an_svg_holds_every_label_as_text(tmp_path):
    labels = texts(draw(tmp_path))
    wanted = {"Lists, 500 problems", "accuracy (%)", "mean forward passes per problem (NFE)"}
    for curve in (BASELINE, STABLE):
        wanted |= {curve.label, *(point.knob for point in curve.points)}
    assert wanted <= set(labels)


def test_labels_are_not_read_as_mathematics(tmp_path):
    assert "$a_1$ & <b>" in texts(draw(tmp_path, title="$a_1$ & <b>"))


def test_a_baseline_is_grey_and_other_rules_are_not(tmp_path):
    grey, coloured = draw(tmp_path, [BASELINE]).read_text(), draw(tmp_path, [STABLE]).read_text()
    assert GREYS[0].lower() in grey
    assert COLOURS[0].lower() not in grey
    assert COLOURS[0].lower() in coloured
    assert GREYS[0].lower() not in coloured


@pytest.mark.long
def test_many_curves_all_look_different(tmp_path):
    from unmask.lab.figures.plots import styles

    curves = list(many(12))
    looks = [{**style, "zorder": 0} for style in styles(curves)]
    assert all(one != other for one, other in combinations(looks, 2))
    assert {curve.label for curve in curves} <= set(texts(draw(tmp_path, curves)))


def test_no_two_knobs_overlap(tmp_path):
    curves = list(many(4))
    labels = texts(draw(tmp_path, curves))
    places = [labels[point.knob] for curve in curves for point in curve.points]
    for (x, y), (other_x, other_y) in combinations(places, 2):  # a knob is 11 wide and 5 high
        assert abs(x - other_x) > 11 or abs(y - other_y) > 5


def test_every_point_has_its_interval(tmp_path):
    bars = list(error_bars(draw(tmp_path)))
    assert [len(each) for each in bars] == [3, 3]
    heights = [abs(end - y) for each in bars for _, y, end in each]
    spans = [point.high - point.low for curve in (BASELINE, STABLE) for point in curve.points]
    assert heights == pytest.approx([span * heights[0] / spans[0] for span in spans], rel=1e-4)


def test_points_at_100_percent_leave_no_tick_above_it(tmp_path):
    perfect = PlotCurve(
        "perfect", (PlotPoint("a", 10, 1, 0.9, 1), PlotPoint("b", 5, 0.98, 0.88, 0.99))
    )
    numbers = [float(text) for text in texts(draw(tmp_path, [perfect])) if text.isdigit()]
    assert max(numbers) == 100


def test_a_single_point_is_a_figure(tmp_path):
    lone = PlotCurve("lone", (PlotPoint("0.1", 10.0, 0.5, 0.5, 0.5),))
    assert {"lone", "0.1"} <= set(texts(draw(tmp_path, [lone])))


# The file


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.PNG", b"\x89PNG")],
)
def test_the_suffix_decides_what_is_written(tmp_path, name, start):
    assert draw(tmp_path, name=name).read_bytes().startswith(start)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_same_numbers_give_the_same_bytes(tmp_path, suffix):
    one, other = (draw(tmp_path, name=f"{name}.{suffix}") for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_the_caller_s_settings_change_nothing_and_are_left_alone(tmp_path):
    import matplotlib

    before = draw(tmp_path, name="before.svg")
    with matplotlib.rc_context({"lines.linewidth": 9, "svg.hashsalt": "own", "font.size": 30}):
        after = draw(tmp_path, name="after.svg")
        assert matplotlib.rcParams["font.size"] == 30
    assert before.read_bytes() == after.read_bytes()


@pytest.mark.long
def test_pyplot_is_never_imported_and_matplotlib_only_when_drawing(tmp_path):
    code = (
        "import sys; from pathlib import Path; from unmask.lab.figures.plots import *\n"
        "assert 'matplotlib' not in sys.modules\n"
        "curve = PlotCurve('a', (PlotPoint('0.1', 1.0, 0.5, 0.4, 0.6),))\n"
        f"accuracy_against_forwards([curve], 'a', Path({str(tmp_path / 'a.svg')!r}))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = forked.run("-c", code)
    assert done.returncode == 0, done.stderr


# What is refused


@pytest.mark.parametrize("name", ["figure.jpg", "figure", "figure.svg.gz"])
def test_another_suffix_is_refused_in_one_line(tmp_path, name):
    with pytest.raises(RequestError) as error:
        draw(tmp_path, name=name)
    assert str(error.value) == f"a figure must end in .svg, .png, .pdf, got {name!r}"
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnmaskError) as error:
        draw(tmp_path)
    assert str(error.value) == "plots need matplotlib; pip install 'unmask[plot]'"


def test_a_figure_without_curves_is_refused(tmp_path):
    with pytest.raises(RequestError, match="at least one curve, got none"):
        draw(tmp_path, [])


def test_a_curve_without_points_is_refused():
    with pytest.raises(RequestError, match="the curve 'empty' has no points"):
        PlotCurve("empty", ())


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((10.0, 0.5, 0.6, 0.7), "low <= accuracy <= high <= 1, got 0.6, 0.5 and 0.7 at '0.1'"),
        ((10.0, 50.0, 40.0, 60.0), "high <= 1, got 40.0, 50.0 and 60.0"),
        ((10.0, math.nan, 0.4, 0.6), "got 0.4, nan and 0.6"),
        ((math.inf, 0.5, 0.4, 0.6), "nfe must be finite and >= 0, got inf at '0.1'"),
        ((-1.0, 0.5, 0.4, 0.6), "nfe must be finite and >= 0, got -1.0"),
    ],
)
def test_a_point_that_cannot_be_measured_is_refused(numbers, message):
    with pytest.raises(RequestError, match=message):
        PlotPoint("0.1", *numbers)
