"""A comparison as numbers, as a table and as JSON, from outcomes made by hand."""

import json

import pytest

from unmask.embedded.cells import EB, TOP, Cell
from unmask.embedded.compare import Outcome, Series
from unmask.embedded.report import Report, Summary, difference
from unmask.lab.figures.plots import PlotCurve, PlotPoint
from unmask.lab.stats import Interval, Paired, paired, wilson

SERIES = Series("words", 4, 48)
BASE = Cell("confidence", 0.0, EB)
SWD = Cell("confidence", 5.0, EB)


def outcomes(solved, nfe=12, nfe_eos=10, tokens=30):
    return [Outcome(bool(each), nfe, nfe_eos, tokens, "") for each in solved]


def report_of(cells):
    """A report on 4 problems from which of them each cell solved, and in how many forwards."""
    found = {cell: outcomes(solved, nfe) for cell, (solved, nfe) in cells.items()}
    return Report.of(SERIES, found)


# One cell


def test_a_summary_holds_means_over_the_problems():
    found = Summary.of(
        BASE, [Outcome(True, 10, 6, 20, "a"), Outcome(False, 14, 10, 28, "b")], length=48
    )
    assert found == Summary(BASE, (True, False), 12, 8, 24, 48)
    assert found.accuracy == 0.5
    assert found.nominal == 48 / 12
    assert found.effective == 24 / 8


def test_accuracy_has_wilsons_interval():
    found = Summary.of(BASE, outcomes([1] * 10 + [0] * 10), 48)
    assert found.interval == wilson(10, 20)
    assert found.interval == pytest.approx((0.299, 0.701), abs=1e-3)


def test_a_cell_is_compared_on_the_same_problems():
    first = Summary.of(BASE, outcomes([1, 1, 0, 0]), 48)
    second = Summary.of(SWD, outcomes([0, 1, 1, 1]), 48)
    assert second.against(first) == paired([1, 1, 0, 0], [0, 1, 1, 1])
    assert second.against(first).difference == 0.25
    assert (second.against(first).only_first, second.against(first).only_second) == (1, 2)


# The table


def test_a_panel_has_a_line_per_rule_and_a_column_per_lam():
    grid = [
        Cell(score, lam, EB, block, eos)
        for block, eos in ((None, "keep"), (16, "suppress"))
        for score in ("confidence", "margin")
        for lam in (0.0, 5.0)
    ]
    solved = [([1, 1, 1, 0], 12), ([1, 1, 1, 0], 9.5), ([1, 1, 1, 1], 12), ([0, 0, 0, 0], 48)]
    found = report_of(dict(zip(grid, 2 * solved, strict=True)))
    table = [
        "                        lam 0               lam 5",
        "confidence  eb(0.1)      75.0 @ 12.0  3.00   75.0 @  9.5  3.00   +0.0 [ +0.0,  +0.0]",
        "margin      eb(0.1)     100.0 @ 12.0  3.00    0.0 @ 48.0  3.00  -100.0 [-100.0, -100.0]*",
    ]
    assert found.panels(grid) == [
        "full window, EOS kept",
        *table,
        "",
        "blocks of 16, EOS suppressed",
        *table,
    ]
    assert found.panels(grid[:4]) == ["full window, EOS kept", *table]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.05, 0.1, " +2.5 [ -5.0, +10.0] "),
        (0.001, 0.1, " +2.5 [ +0.1, +10.0]*"),
        (-0.1, -0.001, " +2.5 [-10.0,  -0.1]*"),
        (0.0, 0.1, " +2.5 [ +0.0, +10.0] "),
    ],
)
def test_a_difference_is_marked_where_its_interval_excludes_0(low, high, text):
    assert difference(Paired(0.025, Interval(low, high), 1, 2, 1.0)) == text


def test_losses_are_where_the_interval_lies_below_0():
    cells = {
        BASE: ([1, 1, 1, 1], 12),
        SWD: ([0, 0, 0, 0], 12),  # worse
        Cell("confidence", 1.0, EB): ([1, 1, 1, 1], 12),  # the same
        Cell("margin", 0.0, EB): ([0, 0, 0, 0], 12),
        Cell("margin", 5.0, EB): ([1, 1, 1, 1], 12),  # better
        Cell("entropy", 0.0, EB): ([1, 0, 1, 1], 12),
        Cell("entropy", 5.0, EB): ([0, 1, 1, 0], 12),  # worse by chance
    }
    found = report_of(cells)
    assert [cell for cell, _ in found.losses(list(cells))] == [SWD]
    assert found.losses(list(cells))[0][1].interval == (-1, -1)
    assert found.losses([BASE]) == []


# At equal cost


def test_the_rival_is_the_best_baseline_that_spends_as_much_or_more():
    rival = Cell("confidence", 0.0, "eb(0.05)")
    cells = {
        BASE: ([1, 0, 0, 0], 11),  # cheaper
        rival: ([1, 1, 1, 0], 12),
        Cell("confidence", 0.0, "eb(0.005)"): ([1, 1, 0, 1], 20),  # as good, but dearer
        Cell("confidence", 0.0, "eb(0.0005)"): ([0, 0, 0, 0], 30),
        Cell("confidence", 5.0, "eb(0.05)"): ([1, 1, 1, 1], 20),  # no baseline
        Cell("confidence", 0.0, TOP): ([1, 1, 1, 1], 48),  # another selection
        Cell("margin", 0.0, EB): ([1, 1, 1, 1], 20),  # another score
        Cell("confidence", 0.0, EB, 16): ([1, 1, 1, 1], 20),  # another window
        Cell("confidence", 0.0, EB, None, "suppress"): ([1, 1, 1, 1], 20),  # another policy
        SWD: ([1, 1, 0, 0], 12),
    }
    best, pair = report_of(cells).at_equal_cost(SWD)
    assert best.cell == rival
    assert pair == paired([1, 1, 1, 0], [1, 1, 0, 0])


def test_a_cell_dearer_than_all_baselines_has_no_rival():
    assert report_of({BASE: ([1] * 4, 12), SWD: ([1] * 4, 12.5)}).at_equal_cost(SWD) is None


# Curves


def test_a_curve_goes_over_gamma_for_each_lam_window_and_policy():
    cells = [
        Cell("confidence", lam, f"eb({gamma})", block, eos)
        for lam, block, eos in (
            (0.0, None, "keep"),
            (5.0, None, "keep"),
            (0.0, None, "suppress"),
            (0.0, 16, "keep"),
        )
        for gamma in ("0.05", "1")
    ]
    found = report_of({cell: ([1, 1, 1, 0], 10 + i) for i, cell in enumerate(cells)})
    low, high = wilson(3, 4)

    def points(nfe):
        return (PlotPoint("0.05", nfe, 0.75, low, high), PlotPoint("1", nfe + 1, 0.75, low, high))

    assert found.curves(cells) == [
        PlotCurve("lam 0", points(10), baseline=True),
        PlotCurve("lam 5", points(12)),
        PlotCurve("lam 0, EOS suppressed", points(14), baseline=True),
        PlotCurve("lam 0, blocks of 16", points(16), baseline=True),
    ]


# JSON


def test_the_record_is_json_from_which_any_pair_can_be_compared():
    cells = {BASE: ([1, 1, 1, 0], 12), Cell("margin", 5.0, TOP, 16, "last"): ([0, 1, 0, 0], 7)}
    record = json.loads(json.dumps(report_of(cells).record()))
    assert record["series"] == {
        "task": "words",
        "count": 4,
        "length": 48,
        "split": "test",
        "seed": 0,
    }
    assert record["cells"][0] == {
        "score": "confidence",
        "lam": 0.0,
        "selection": "eb(0.1)",
        "block": None,
        "eos": "keep",
        "rule": "confidence | eb(0.1)",
        "accuracy": 0.75,
        "low": 0.3006,
        "high": 0.9544,
        "nfe": 12,
        "nfe_eos": 10,
        "tokens": 30,
        "tokens_per_forward": 4.0,
        "effective_tokens_per_forward": 3.0,
        "solved": "1110",
    }
    second = record["cells"][1]
    assert (second["rule"], second["block"], second["eos"]) == (
        "margin | swd(5) | top(1)",
        16,
        "last",
    )
    assert (second["solved"], second["tokens_per_forward"]) == ("0100", 6.857)
