"""Rules with and without SWD: tables, curves and JSON, from outcomes made by hand."""

import json

from tests.lab.makers import answer, trial
from unmask.lab.figures.plots import PlotCurve, PlotPoint
from unmask.lab.lam_table import LamTable, difference
from unmask.lab.stats import Interval, Paired, paired, wilson
from unmask.lab.summary import Summary
from unmask.lab.sweep.store import AskedExample, StoredExample

BASE, SWD = "confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)"


def summary(rule, solved, nfe=12, block=None, eos="keep"):
    """A trial of which each example spends the same; names sort otherwise than numbers."""
    numbers = range(8, 8 + len(solved))
    counters = answer(nfe=nfe, nfe_eos=10, tokens=30, written=48)
    rows = [
        StoredExample(
            AskedExample(f"words/{n}", "sha"), counters, {"acc": bool(right)}, "words 1", 1
        )
        for n, right in sorted(zip(numbers, solved, strict=True), key=lambda pair: str(pair[0]))
    ]
    return Summary.of(trial(rule=rule, length=48, block=block, eos=eos), rows)


def table_of(cells):
    """From the outcomes and forwards of every rule, or rule, block and EOS policy."""
    named = [((cell,) if isinstance(cell, str) else cell, each) for cell, each in cells.items()]
    return LamTable([summary(rule, *outcome, *more) for (rule, *more), outcome in named])


# The table


def test_a_panel_has_a_line_per_rule_and_a_column_per_lam():
    grid = [
        (f"{score} | {swd}eb(0.1)", block, eos)
        for block, eos in ((None, "keep"), (16, "suppress"))
        for score in ("confidence", "margin")
        for swd in ("", "swd(5) | ")
    ]
    solved = [(3 * [1, 1, 1, 0], 12), (3 * [1, 1, 1, 0], 9.5), (12 * [1], 12), (12 * [0], 48)]
    table = [
        "                        lam 0               lam 5",
        "confidence  eb(0.1)      75.0 @ 12.0  3.00   75.0 @  9.5  3.00   +0.0 [ +0.0,  +0.0]",
        "margin      eb(0.1)     100.0 @ 12.0  3.00    0.0 @ 48.0  3.00  -100.0 [-100.0, -100.0]*",
    ]
    assert table_of(dict(zip(grid, 2 * solved, strict=True))).lines() == [
        "full window, EOS kept",
        *table,
        "",
        "blocks of 16, EOS suppressed",
        *table,
    ]


def test_the_reading_counts_gains_losses_and_cost_in_every_panel():
    cells = {
        (BASE,): (12 * [0], 12),
        (SWD,): (12 * [1], 9),
        (BASE, 16, "suppress"): (12 * [1], 10),
        (SWD, 16, "suppress"): (12 * [0], 11),
    }
    assert table_of(cells).reading() == [
        "full window, EOS kept: of 1 settings with SWD, 1 solve more than lam 0 (with a star), "
        "0 solve less, 0 need more forwards.",
        "blocks of 16, EOS suppressed: of 1 settings with SWD, 0 solve more than lam 0 (with a "
        "star), 1 solve less, 1 need more forwards.",
    ]


def test_a_table_names_a_threshold_without_its_value_and_leaves_out_other_knobs():
    rules = [f"confidence | swd({lam}) | threshold(0.9)" for lam in (1, 5)]
    rules += ["confidence | threshold(0.9)", BASE, SWD, "confidence | eb(2)"]
    lines = table_of({rule: ([1, 0], 12) for rule in rules}).lines()
    assert [line[:22].rstrip() for line in lines[2:]] == [
        "confidence  eb(0.1)",
        "confidence  threshold",
    ]


def test_a_difference_has_the_star_that_it_is_given():
    pair = Paired(0.025, Interval(-0.05, 0.1), 1, 2, 1.0)
    assert difference(pair, False) == " +2.5 [ -5.0, +10.0] "
    assert difference(pair, True) == " +2.5 [ -5.0, +10.0]*"


def test_losses_are_those_with_a_star():
    cells = {
        BASE: (12 * [1], 12),
        SWD: (12 * [0], 12),  # worse
        "confidence | swd(1) | eb(0.1)": (12 * [1], 12),  # the same
        "margin | eb(0.1)": (12 * [0], 12),
        "margin | swd(5) | eb(0.1)": (12 * [1], 12),  # better
        "entropy | eb(0.1)": (12 * [1], 12),
        "entropy | swd(5) | eb(0.1)": (5 * [0] + 7 * [1], 12),  # its interval lies below 0
    }
    table = table_of(cells)
    ((loss, pair),) = table.losses()
    assert loss.trial.rule == SWD
    assert pair.interval == (-1, -1)
    unsure = next(gain for each, gain in table.compared if "entropy" in each.trial.rule)
    assert unsure.interval.high < 0
    assert unsure.p == 0.0625
    assert len(table.stars) == 2
    assert table_of({BASE: ([1], 12)}).losses() == []


def test_a_star_is_corrected_for_all_comparisons_of_the_tables():
    gain = {BASE: (12 * [0], 12), SWD: (6 * [0] + 6 * [1], 12)}  # p 0.031
    other = {"margin | eb(0.1)": (12 * [0], 12), "margin | swd(5) | eb(0.1)": (12 * [0], 12)}
    assert [len(table_of(cells).stars) for cells in (gain, gain | other)] == [1, 0]


# At equal cost


def test_the_rival_is_the_best_baseline_that_spends_as_much_or_more():
    rival = "confidence | eb(0.05)"
    cells = {
        BASE: ([1, 0, 0, 0], 11),  # cheaper
        rival: ([1, 1, 1, 0], 12),
        "confidence | eb(0.005)": ([1, 1, 0, 1], 20),  # as good, but dearer
        "confidence | eb(0.0005)": ([0, 0, 0, 0], 30),
        "confidence | swd(5) | eb(0.05)": ([1, 1, 1, 1], 20),  # no baseline
        "confidence | top(1)": ([1, 1, 1, 1], 48),  # another selection
        "margin | eb(0.1)": ([1, 1, 1, 1], 20),  # another score
        (BASE, 16): ([1, 1, 1, 1], 20),  # another window
        (BASE, None, "suppress"): ([1, 1, 1, 1], 20),  # another policy
        SWD: ([1, 1, 0, 0], 12),
    }
    table = table_of(cells)
    best, pair = table.at_equal_cost(table.summaries[-1])
    assert best.trial.rule == rival
    assert pair == paired([1, 1, 1, 0], [1, 1, 0, 0])


def test_a_rule_dearer_than_all_baselines_has_no_rival():
    table = table_of({BASE: ([1] * 4, 12), SWD: ([1] * 4, 12.5)})
    assert table.at_equal_cost(table.summaries[1]) is None


# Curves


def test_a_curve_goes_over_gamma_for_each_lam_window_and_policy():
    cells = [
        (f"confidence | {swd}eb({gamma})", block, eos)
        for swd, block, eos in (
            ("", None, "keep"),
            ("swd(5) | ", None, "keep"),
            ("", None, "suppress"),
            ("", 16, "keep"),
        )
        for gamma in ("0.05", "1")
    ]
    table = table_of({cell: ([1, 1, 1, 0], 10 + i) for i, cell in enumerate(cells)})
    low, high = wilson(3, 4)

    def points(nfe):
        return (PlotPoint("0.05", nfe, 0.75, low, high), PlotPoint("1", nfe + 1, 0.75, low, high))

    assert table.curves() == [
        PlotCurve("lam 0", points(10), baseline=True),
        PlotCurve("lam 5", points(12)),
        PlotCurve("lam 0, EOS suppressed", points(14), baseline=True),
        PlotCurve("lam 0, blocks of 16", points(16), baseline=True),
    ]


# JSON


def test_the_record_is_json_from_which_any_pair_can_be_compared():
    cells = {
        BASE: ([1, 1, 1, 0], 12),
        ("margin | swd(5) | top(1)", 16, "last"): ([0, 1, 0, 0], 7),
        "entropy | threshold(-0.4)": ([0, 0, 0, 0], 7),
    }
    record = json.loads(json.dumps(table_of(cells).record()))
    assert record["series"] == {"task": "words", "count": 4, "length": 48}
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
    second, third = record["cells"][1:]
    assert (second["rule"], second["block"], second["eos"]) == (
        "margin | swd(5) | top(1)",
        16,
        "last",
    )
    assert (second["solved"], second["tokens_per_forward"]) == ("0100", 6.857)
    assert third["selection"] == "threshold"
