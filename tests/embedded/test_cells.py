"""The ways to decode that are compared."""

import pytest

from unmask import Rule
from unmask.embedded.cells import BLOCK, EB, GAMMAS, SCORES, THRESHOLD, TOP, Cell, Grid, gamma_sweep

CELLS = Grid().cells()


@pytest.mark.parametrize("rule", dict.fromkeys(cell.rule for cell in CELLS + gamma_sweep()))
def test_every_rule_is_spelled_as_the_notation_prints_it(rule):
    assert Rule.parse(str(Rule.parse(rule))) == Rule.parse(rule)
    assert "swd(0)" not in rule


@pytest.mark.parametrize(
    ("cell", "rule"),
    [
        (Cell("confidence", 0.0, TOP), "confidence | top(1)"),
        (Cell("margin", 5.0, EB), "margin | swd(5) | eb(0.1)"),
        (Cell("entropy", 0.5, "eb(2)"), "entropy | swd(0.5) | eb(2)"),
        (Cell("confidence", 1.0, THRESHOLD), "confidence | swd(1) | threshold(0.9)"),
        (Cell("entropy", 0.0, THRESHOLD), "entropy | threshold(-0.4)"),
    ],
)
def test_a_threshold_is_in_its_scores_own_unit_and_lam_0_has_no_modulator(cell, rule):
    assert cell.rule == rule


def test_the_grid_has_108_cells_and_none_of_them_twice():
    assert len(CELLS) == len(set(CELLS)) == 108
    assert len({(cell.rule, cell.block, cell.eos) for cell in CELLS}) == 108


def test_the_grid_goes_panel_by_panel():
    panels = [(cell.window, cell.eos) for cell in CELLS]
    blocks = f"blocks of {BLOCK}"
    assert panels == [
        panel
        for window in ("full window", blocks)
        for panel in ((window, "keep"), (window, "suppress"))
        for _ in range(27)
    ]
    inside = [(cell.selection, cell.score, cell.lam) for cell in CELLS[:27]]
    selections = (EB, THRESHOLD, TOP)
    assert inside == [(c, s, lam) for c in selections for s in SCORES for lam in (0.0, 1.0, 5.0)]
    assert inside == [(cell.selection, cell.score, cell.lam) for cell in CELLS[-27:]]


def test_a_grid_may_be_smaller():
    cells = Grid(("margin",), (0.0, 2.0), (TOP,), (None,), ("last",)).cells()
    assert cells == [Cell("margin", lam, TOP, eos="last") for lam in (0.0, 2.0)]


def test_a_baseline_differs_in_lam_alone():
    cell = Cell("margin", 5.0, EB, 8, "suppress")
    assert cell.baseline == Cell("margin", 0.0, EB, 8, "suppress")
    assert cell.baseline.baseline == cell.baseline
    assert {cell.baseline for cell in CELLS} == {cell for cell in CELLS if not cell.lam}


def test_the_sweep_has_a_curve_for_each_lam_and_two_more_baselines():
    cells = gamma_sweep((0.0, 5.0))
    curves = [cells[i : i + len(GAMMAS)] for i in range(0, len(cells), len(GAMMAS))]
    assert [(c[0].lam, c[0].block, c[0].eos) for c in curves] == [
        (0.0, None, "keep"),
        (5.0, None, "keep"),
        (0.0, None, "suppress"),
        (0.0, BLOCK, "keep"),
    ]
    for curve in curves:
        assert [cell.selection for cell in curve] == [f"eb({gamma})" for gamma in GAMMAS]
    assert len(set(cells)) == len(cells)
    assert set(gamma_sweep()) & set(CELLS)  # a comparison of both measures these once
