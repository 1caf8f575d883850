"""unmask.compare: rules on a task, from Python."""

import itertools
import random

import pytest

import unmask
from tests.lab.stores import summary
from unmask import LabError, Session
from unmask.cli import main
from unmask.lab.equal_cost import RuleCurve
from unmask.lab.rule_comparison import RuleComparison
from unmask.lab.stats import LEVEL, paired
from unmask.lab.summary import Summary
from unmask.lab.sweep.store import Store

RULES = ["confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)"]


@pytest.fixture(scope="module")
def comparison():
    return unmask.compare(RULES, "words", limit=6, length=24, block="full")


def test_it_gives_what_a_sweep_stores(comparison, tmp_path, capsys):
    store = tmp_path / "store.sqlite"
    arguments = ["--task", "words", "--limit", "6", "--length", "24", "--block", "full"]
    rule = "confidence | swd({0,5}) | eb(0.1)"
    assert main(["sweep", "--rule", rule, *arguments, "--store", str(store)]) == 0
    capsys.readouterr()
    with Store(store) as opened:
        stored = [Summary.of(trial, opened.rows(trial)) for trial in opened.trials()]
    assert {each.trial.key for each in stored} == {each.trial.key for each in comparison.summaries}
    by_key = {each.trial.key: each for each in stored}
    for each in comparison.summaries:
        assert each.solved() == by_key[each.trial.key].solved()
        assert each.values("nfe") == by_key[each.trial.key].values("nfe")


def test_the_first_rule_is_the_baseline_of_the_others(comparison):
    first, second = comparison.rows()
    assert (first["rule"], second["rule"]) == tuple(RULES)
    assert first["difference"] is None
    assert second["difference"] == pytest.approx(second["accuracy"] - first["accuracy"])
    assert second["difference_low"] <= second["difference"] <= second["difference_high"]
    assert first["n"] == second["n"] == 6


def test_it_shows_itself_as_text_as_html_and_as_a_data_frame(comparison):
    head, _, _, star, blank, verdict = str(comparison).splitlines()
    assert head.split()[:2] == ["rule", "n"]
    assert star.endswith("after Holm's correction for the one comparison")
    assert (blank, verdict) == ("", comparison.verdicts()[0])
    html = comparison._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") == 3
    assert "Holm&#x27;s correction" in html
    pandas = pytest.importorskip("pandas")
    frame = comparison.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["rule"]) == RULES


def test_stars_are_corrected_for_all_rules():
    patterns = {RULES[0]: "0" * 10, RULES[1]: "0" * 4 + "1" * 6, "margin | eb(0.1)": "0" * 10}
    curves = [RuleCurve(rule, (summary(each, rule=rule),)) for rule, each in patterns.items()]
    two, three = RuleComparison(tuple(curves[:2])), RuleComparison(tuple(curves))
    assert [row["p_holm"] for row in two.rows()] == [None, 0.03125]
    assert [row["p_holm"] for row in three.rows()] == [None, 0.0625, 1.0]
    assert "+60.0* [" in str(two)
    assert "+60.0 [" in str(three)


def curves_of(**patterns):
    """Rules with one setting each; a pattern is its outcomes and its forwards."""
    return tuple(
        RuleCurve(name, (summary(pattern, counters={"nfe": nfe}, rule=f"{name} | top(1)"),))
        for name, (pattern, nfe) in patterns.items()
    )


def test_the_verdict_names_a_difference_only_if_it_has_a_star():
    better = RuleComparison(curves_of(entropy=("0" * 9 + "1", 8), margin=("1" * 10, 6)))
    (verdict,) = better.verdicts()
    assert verdict.startswith("margin solves more examples than entropy: +90.0 points")
    assert verdict.endswith("margin needs 2.0 fewer forwards [2.0, 2.0].")
    alike = RuleComparison(curves_of(entropy=("0" * 9 + "1", 8), margin=("0" * 8 + "11", 8)))
    (verdict,) = alike.verdicts()
    assert verdict.startswith("On 10 examples, margin and entropy cannot be told apart: +10.0")
    assert verdict.endswith("No difference in forwards is shown.")


def test_the_verdict_on_several_rules_says_both_p():
    curves = curves_of(a=("0" * 6 + "1" * 4, 8), b=("1" * 10, 8), c=("1" * 10, 8))
    for verdict in RuleComparison(curves).verdicts():
        assert "p 0.031 (0.062 after the correction)" in verdict
        assert "cannot be told apart" in verdict


def test_the_examples_that_tell_rules_apart_come_with_a_command():
    curves = curves_of(entropy=("1100", 8), margin=("1010", 8))
    gained, lost = sorted(
        RuleComparison(curves, ("--task", "words")).disagreements(), key=lambda e: e["right"]
    )[::-1]
    assert (gained["example"], gained["wrong"]) == ("002", "entropy | top(1)")
    assert (lost["example"], lost["wrong"]) == ("001", "margin | top(1)")
    assert lost["command"] == (
        "unmask compare 'entropy | top(1)' 'margin | top(1)' --task words --example 001 "
        "--trace traces"
    )


def test_rules_with_braces_are_curves_at_equal_forwards():
    rules = ["confidence | eb({0.01,3})", "entropy | eb({0.01,3})"]
    comparison = unmask.compare(rules, "copy", limit=4, length=16, curve=True)
    assert [len(curve.summaries) for curve in comparison.curves] == [2, 2]
    assert all(row["difference"] is None for row in comparison.rows())
    (pair,) = comparison.against
    assert pair.cost.low <= pair.cost.high
    assert "at equal forwards" in str(comparison)
    assert "sign-flip" in str(comparison)


def test_one_rule_with_other_draws_differs_from_itself_in_few_resamplings():
    """Trials of one sampled rule under 6 seeds: pairs of them differ by chance alone."""
    session, trials = Session(), []
    for seed in range(6):
        settings = {"temperature": 1.0, "seed": seed, "length": 24, "block": "full"}
        (rule,) = unmask.compare(
            ["confidence | top(6)"], "words", session, limit=24, **settings
        ).curves
        trials.append(rule.summaries[0])
    outcomes = [each.solved() for each in trials]
    rng, decided = random.Random(0), 0
    for _ in range(200):
        drawn = [rng.sample(outcomes, 2) for _ in range(24)]  # two seeds for each example
        first, second = ([pair[nth][i] for i, pair in enumerate(drawn)] for nth in (0, 1))
        decided += paired(first, second).p < LEVEL
    assert any(one != other for one, other in itertools.pairwise(outcomes))
    assert decided <= 10


def test_a_planted_better_rule_is_named_better():
    rules = ["random | top(12)", "confidence | top(1)"]
    comparison = unmask.compare(rules, "words", limit=16, length=24, block="full")
    assert comparison.verdicts()[0].startswith("confidence | top(1) solves more examples than")


def test_the_same_call_goes_on_where_it_stopped(tmp_path, monkeypatch):
    store = tmp_path / "store.sqlite"
    whole = unmask.compare(RULES, "copy", limit=4, store=store)
    monkeypatch.setattr(Session, "model", lambda *_: pytest.fail("nothing is left to decode"))
    assert unmask.compare(RULES, "copy", limit=4, store=store).rows() == whole.rows()


def test_a_model_in_memory_can_be_compared():
    session = Session(unmask.load())
    folder = unmask.compare(RULES[:1], "copy", limit=3).rows()
    assert unmask.compare(RULES[:1], "copy", session, limit=3).rows() == folder


def test_a_wrong_call_is_one_line():
    with pytest.raises(LabError, match="at least one rule"):
        unmask.compare([], "words")
    with pytest.raises(unmask.UnmaskError, match="did you mean 'words'"):
        unmask.compare(RULES, "word")
    with pytest.raises(unmask.UnmaskError, match="unknown option 'lenght'"):
        unmask.compare(RULES, "words", lenght=3)
    with pytest.raises(LabError, match="leave out rule"):
        unmask.compare(RULES, "words", rule="swd")
    for wrong in (0, -1, "4"):
        with pytest.raises(unmask.UnmaskError, match="limit must be a whole number >= 1"):
            unmask.compare(RULES, "words", limit=wrong)


def test_a_rule_may_be_one_text_or_an_object():
    rows = unmask.compare(RULES[0], "copy", limit=2).rows()
    assert unmask.compare([unmask.Rule.parse(RULES[0])], "copy", limit=2).rows() == rows


def test_rules_of_different_settings_are_refused_with_the_reason():
    with pytest.raises(LabError, match="in one setting, but these differ") as caught:
        unmask.compare(["confidence | eb(0.1)", "swd-block32"], "words", length=48)
    assert "give --block, --length or --eos" in str(caught.value)
