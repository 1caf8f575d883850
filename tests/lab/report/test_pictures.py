"""Which plots a report has."""

from __future__ import annotations

import pytest

from tests.lab.stores import findings_of, summary
from unmask.lab.report.pictures import plots


def drawn(rules, **changes):
    """The pictures of a store with these rules, by the first part of their names."""
    made = plots(findings_of([summary("1100", rule=rule, **changes) for rule in rules]))
    return {plot.picture.name.split("-")[0]: plot.picture for plot in made}


def test_a_swept_knob_has_a_speed_plot():
    pictures = drawn(["confidence | eb(0.1)", "confidence | eb(0.5)"])
    assert list(pictures) == ["speed"]
    assert pictures["speed"].caption == (
        "Accuracy against forward passes, words, 32 tokens, full window "
        "(confidence | eb, numbers: gamma)"
    )


@pytest.mark.parametrize(("lams", "names"), [((0, 5), ["rules"]), ((0, 1, 5), ["rules", "lam"])])
def test_three_lams_have_a_plot_over_lam_and_two_have_none(lams, names):
    assert list(drawn([f"confidence | swd({lam}) | eb(0.1)" for lam in lams])) == names


def test_lam_is_varied_at_the_usual_knob_alone():
    rules = [f"confidence | swd({lam}) | eb({g})" for lam in (0, 1, 5) for g in (0.1, 0.5)]
    made = plots(findings_of([summary("1100", rule=rule) for rule in rules]))
    (lam,) = [plot.picture for plot in made if plot.picture.name.startswith("lam")]
    assert "confidence | eb(0.1): 50.0 to 50.0%" in lam.alt
    assert "eb(0.5)" not in lam.alt


def test_readings_of_swd_are_curves_of_their_own_from_the_same_baseline():
    swd = [f"swd({lam}{more}) | " for lam in (1, 5) for more in ("", ", kl=cur_prev")]
    pictures = drawn([f"confidence | {part}eb(0.1)" for part in ("", *swd)])
    assert "confidence | eb(0.1), kl=cur_prev: " in pictures["lam"].alt


def test_two_selections_have_bars():
    pictures = drawn(["confidence | eb(0.1)", "confidence | top(1)"])
    assert list(pictures) == ["rules", "selections"]
    assert (
        pictures["selections"].caption == "Accuracy by selection, embedded: full window, confidence"
    )


def test_a_rule_that_cannot_be_parsed_is_in_the_plots_too():
    pictures = drawn(["confidence | eb(0.1)", "mine | theirs(3)"])
    assert pictures["rules"].caption == (
        "All rules: accuracy against forward passes, words, 32 tokens, full window"
    )
    assert "confidence | eb(0.1): 50.0 to 50.0%; mine | theirs(3): 50.0" in pictures["rules"].alt
    pictures = drawn(["confidence | theirs(3)", "confidence | theirs(4)"])
    assert pictures["speed"].caption.endswith("(confidence | theirs, numbers: theirs)")


def test_every_rule_is_in_a_plot_with_all_rules_of_its_setting():
    rules = [
        f"{score} | {part}top(1)" for score in ("confidence", "mine") for part in ("", "swd(5) | ")
    ]
    rules += [f"confidence | klass({tau})" for tau in (0.8, 0.9)]
    pictures = drawn([*rules, "confidence | eb(0.1)"])["rules"].alt
    for name in ("confidence | top(1), lam ·", "mine | top(1), lam ·", "confidence | klass(·)"):
        assert f"{name}: " in pictures
    assert "confidence | eb(0.1): " in pictures


def test_many_rules_have_several_plots():
    rules = [f"mine{n} | top(1)" for n in range(25)]
    pictures = [p.picture for p in plots(findings_of([summary("10", rule=rule) for rule in rules]))]
    captions = [each.caption for each in pictures if each.name.startswith("rules-")]
    assert [caption[-11:] for caption in captions] == ["part 1 of 3", "part 2 of 3", "part 3 of 3"]


def test_names_are_numbered_so_that_none_is_taken_twice():
    rules = ["confidence | eb(0.1)", "confidence | eb(0.5)"]
    summaries = [
        summary("10", rule=rule, task=task) for rule in rules for task in ("a!", "a?", "Ä")
    ]
    names = [plot.picture.name for plot in plots(findings_of(summaries))]
    assert names == ["speed-a-01", "speed-a-02", "speed-task-03"]


def facets_of(summaries):
    (lam,) = [plot for plot in plots(findings_of(summaries)) if plot.picture.name.startswith("lam")]
    return lam, lam.draw.args[0]


def test_the_windows_of_a_setting_share_a_figure_of_lam():
    rules = [f"confidence | swd({lam}) | eb(0.1)" for lam in (0, 1, 30)]
    summaries = [summary("1100", rule=rule, block=block) for rule in rules for block in (None, 16)]
    lam, facets = facets_of(summaries)
    assert [facet.title for facet in facets] == [
        "words, 32 tokens, full window",
        "words, 32 tokens, blocks of 16",
    ]
    assert [facet.knobs for facet in facets] == [("0", "1", "30")] * 2
    assert lam.picture.caption == "Accuracy over lam, embedded, EB-Sampler"
    assert lam.draw.keywords == {"across": 2}
    _, alone = facets_of(summaries[::2])
    assert [facet.title for facet in alone] == ["words, 32 tokens"]


def test_the_papers_curve_stands_beside_ours_in_the_figure_of_lam():
    usual = {"model": "GSAI-ML/LLaDA-8B-Instruct", "preset": "paper", "task": "humaneval"}
    rules = [f"confidence | swd({lam}) | eb(0.1)" for lam in (0, 1.5, 5, 30)]
    _, (facet,) = facets_of([summary("1100", rule=rule, length=256, **usual) for rule in rules])
    ours, theirs = facet.curves
    assert (theirs.label, theirs.baseline) == ("the paper: confidence | eb(0.1)", True)
    points = [(point.knob, round(100 * point.accuracy, 1)) for point in theirs.points]
    assert points == [("0", 28.0), ("1.5", 32.9), ("5", 36.0)]
    assert [point.knob for point in ours.points] == ["0", "1.5", "5", "30"]
    assert facet.knobs == ("0", "1.5", "5", "30")
