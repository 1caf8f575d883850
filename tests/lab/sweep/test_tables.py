"""The lines that end `unmask eval` and `unmask sweep`."""

from __future__ import annotations

import pytest

from tests.lab.makers import trial
from tests.lab.stores import fill, rich, solved
from unmask.lab.sweep.tables import WIDTH, efficiency_table, plain_table


@pytest.fixture
def file(tmp_path):
    return tmp_path / "store.sqlite"


def lines_of(file, trials):
    return plain_table(fill(file, trials), list(trials))


def test_a_line_holds_the_figures_of_a_trial(file):
    counters = {"nfe": 16, "nfe_eos": 4, "tokens": 10, "eos_share": 0.75}
    outcomes = [(True, False, counters), (True, True, counters), (False, False, counters)]
    head, line = lines_of(file, {trial(eos="suppress", block=8): outcomes})
    assert " ".join(head.split()) == (
        "task rule block EOS n acc % [95%] compat NFE to EOS tok/f EOS% s model+rule"
    )
    assert " ".join(line.split()) == (
        "words confidence|top(1) 8 suppress 3 66.7 [20.8,93.9] 33.3 16.0 4.0 2.50 75 0.3+0.1"
    )


def test_columns_are_aligned(file):
    head, *lines = lines_of(
        file,
        {
            trial(): solved("1", nfe=5),
            trial(task="code", rule="confidence | swd(5) | eb(0.1)", block=16): solved("0", nfe=99),
        },
    )
    for name in ("rule", "block"):
        assert all(line[head.index(name) - 1] == " " != line[head.index(name)] for line in lines)
    end = head.index("NFE") + 3
    assert [line[:end].split()[-1] for line in lines] == ["5.0", "99.0"]


def test_what_no_trial_has_takes_no_column(file):
    head, _ = lines_of(file, {trial(): solved("10")})
    assert "EOS " not in head.replace("to EOS", "")
    assert "compat" not in head
    assert "also" not in head


def test_what_else_differs_between_trials_is_said(file):
    _, first, second = lines_of(
        file, {trial(): solved("1"), trial(cache="dual", seed=2): solved("1")}
    )
    assert "seed=0 cache=none" in first
    assert "seed=2 cache=dual" in second


@pytest.mark.parametrize("paper", [False, True])
def test_no_line_is_wider_than_120_columns(file, paper):
    trials = rich(1, paper=paper)
    few = dict(list(trials.items())[:: 3 if paper else 5])
    lines = lines_of(file, few)
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) > len(few)


def test_a_rule_that_is_too_long_stands_above_its_figures(file):
    rule = "credit(0.65, beta=0.71, gamma=0.66) | confidence | swd(5, kl=cur_prev) | klass(0.9)"
    long = trial(rule=rule, task="parallel-replace-random", eos="suppress")
    head, above, figures = lines_of(file, {long: solved("1")})
    assert above == f"parallel-replace-random  {rule.replace(' | ', '|')}  full  suppress"
    assert figures.split()[:2] == ["1", "100.0"]
    assert max(map(len, (head, above, figures))) <= WIDTH


def test_words_that_leave_no_room_all_stand_above_their_figures(file):
    other = {"preset": "official-with-shots", "temperature": 0.125, "top_p": 0.95, "seed": 12}
    rules = ("confidence | top(1)", "confidence | eb(0.1)")
    trials = {trial(): solved("10", nfe=7)}
    trials |= {trial(rule=rule, eos="suppress", **other): solved("10", nfe=9) for rule in rules}
    head, *lines = lines_of(file, trials)
    assert max(map(len, (head, *lines))) <= WIDTH
    assert "rule" not in head.split()
    assert [line.split()[0] for line in lines] == ["words", "2"] * 3
    assert "preset=official-with-shots temperature=0.125 top_p=0.95 seed=12" in lines[2]


def test_a_trial_without_a_verdict_says_so(file):
    _, line = lines_of(file, {trial(): solved("??")})
    assert line.endswith("none graded of 2 answers")


def test_models_have_a_heading_each(file):
    lines = lines_of(file, {trial(model=m, weights=m): solved("1") for m in ("mine", "theirs")})
    assert [line for line in lines if line in ("mine", "theirs")] == ["mine", "theirs"]


def test_names_cannot_command_the_terminal(file):
    lines = lines_of(file, {trial(task="words\x1b[31m\nnext"): solved("1")})
    assert len(lines) == 2
    assert "\x1b" not in "".join(lines)


def test_no_trials_are_no_lines(file):
    fill(file, {})
    assert plain_table(file, []) == []


def test_the_efficiency_table_has_the_columns_of_the_papers(file):
    spent = {"seconds_model": 3.0, "seconds_decision": 1.0, "seconds_kl": 0.04,
             "seconds_total": 4.0, "memory_mean": 2e9}  # fmt: skip
    outcomes = [(True, {**spent, "nfe": 10, "memory_peak": peak}) for peak in (2.5e9, 3e9)]
    each = trial(rule="confidence | swd(5) | eb(0.1)")
    head, line = efficiency_table(fill(file, {each: outcomes}), each)
    assert " ".join(head.split()) == (
        "NFE model s decision s of it KL s total s KL % memory GB, mean peak"
    )
    assert line.split() == ["10.0", "3.00", "1.00", "0.0400", "4.00", "1.0", "2.00", "3.00"]
    assert len(head) == len(line) <= WIDTH


def test_a_trial_without_a_verdict_has_no_efficiency(file):
    each = trial()
    assert efficiency_table(fill(file, {each: solved("?")}), each) == []
