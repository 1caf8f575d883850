"""A trial in numbers, and what may be compared."""

from __future__ import annotations

import pytest

from tests.lab.makers import answer, asks, trial
from unmask.errors import LabError
from unmask.lab.summary import Comparison, Summary, why_not
from unmask.lab.sweep.store import AskedExample, StoredExample


def summary(solved, asked=None, grader="words 1", **changes):
    rows = [
        StoredExample(ask, answer(), {"acc": right, "acc_compat": False}, grader, 1)
        for ask, right in zip(asked or asks(len(solved)), solved, strict=True)
    ]
    return Summary.of(trial(**changes), rows)


def test_accuracy_comes_with_its_interval_and_its_twin():
    result = summary([True, True, True, False])
    assert result.accuracy() == 0.75
    assert result.accuracy("acc_compat") == 0.0
    low, high = result.interval()
    assert 0.3 < low < 0.75 < high < 0.96


def test_rates_are_given_as_mean_of_ratios_and_as_ratio_of_sums():
    rows = [
        StoredExample(asks(2)[0], answer(tokens=10, nfe_eos=10), {"acc": True}, "", 1),
        StoredExample(asks(2)[1], answer(tokens=20, nfe_eos=5), {"acc": True}, "", 1),
    ]
    rates = Summary.of(trial(), rows).rates
    assert rates["effective"] == 2.5
    assert rates["effective_of_sums"] == 2.0
    assert rates["nominal"] == rates["nominal_of_sums"] == 2.0


def test_ungraded_examples_do_not_count():
    rows = [StoredExample(ask, answer(), None, None, 1) for ask in asks(2)]
    with pytest.raises(LabError, match="no graded example"):
        Summary.of(trial(), rows)


def test_trials_are_compared_example_by_example():
    pair = Comparison(summary([True, False, False]), summary([True, True, False], block=16))
    assert pair.accuracy().only_second == 1
    assert pair.forwards().mean == 0


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (summary([True], length=64), "the length is 32 in one and 64 in the other"),
        (summary([True], task="code"), "the task is words in one and code in the other"),
        (summary([True, True]), "1 examples, such as 001, were decoded in one of them only"),
        (summary([True], [AskedExample("000", "x")], preset="paper"), "the prompt of 000 differs"),
        (summary([True], grader="words 2"), "different versions of the grader"),
        (
            summary([True, True], [AskedExample("000", "x"), AskedExample("000", "y")]),
            "two wordings of the prompt",
        ),
    ],
)
def test_what_is_not_alike_is_not_compared(other, reason):
    one = summary([True])
    assert reason in why_not(one, other)
    with pytest.raises(LabError, match="cannot be compared"):
        Comparison(one, other)


def test_the_record_holds_every_figure():
    record = summary([True, False]).record()
    assert record["acc"] == 0.5
    assert record["seconds"] == {"model": 0.3, "decision": 0.1, "kl": 0.02, "total": 0.4}
    assert record["memory"] == {"mean": 1000, "peak": 2000}
    assert record["eos_share"] == 0.75


def test_answers_from_before_the_kl_was_timed_have_no_time_of_it():
    result = summary([True, False])
    del result.rows[0].answer["seconds_kl"]
    assert result.seconds("kl") is None
    assert result.seconds("model") == 0.3
    assert result.record()["seconds"]["kl"] is None
