"""unmask.compare: rules on a task, from Python."""

import pytest

import unmask
from tests.lab.stores import summary
from unmask import LabError, Session
from unmask.cli import main
from unmask.lab.compare import RuleComparison
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
    assert len(str(comparison).splitlines()) == 4
    assert str(comparison).endswith("after Holm's correction for the one comparison")
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
    summaries = [summary(pattern, rule=rule) for rule, pattern in patterns.items()]
    two, three = RuleComparison(tuple(summaries[:2])), RuleComparison(tuple(summaries))
    assert [row["p_holm"] for row in two.rows()] == [None, 0.03125]
    assert [row["p_holm"] for row in three.rows()] == [None, 0.0625, 1.0]
    assert "+60.0* [" in str(two)
    assert "+60.0 [" in str(three)


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
