"""Intervals and the exact test: textbook values first, then laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import RequestError
from unmask.lab.stats import (
    Interval,
    bootstrap_mean,
    holm,
    mcnemar,
    paired,
    sign_flip,
    star_rule,
    starred,
    wilson,
)

outcomes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def answers(only_first, only_second, both=0, neither=0):
    """Outcomes of two rules with these counts."""
    pairs = [(True, False)] * only_first + [(False, True)] * only_second
    pairs += [(True, True)] * both + [(False, False)] * neither
    first, second = zip(*pairs, strict=True)
    return first, second


# Wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [  # Newcombe (1998), Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_newcombe(successes, trials, low, high):
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_at_another_level_solves_its_equation():
    for bound in wilson(7, 10, level=0.9):
        distance = abs(0.7 - bound) / math.sqrt(bound * (1 - bound) / 10)
        assert distance == pytest.approx(1.6448536269514722)


@pytest.mark.parametrize("trials", [1, 3, 7, 164, 1319])
def test_wilson_ends_exactly_at_0_and_1(trials):
    assert wilson(0, trials).low == 0 < wilson(0, trials).high
    assert wilson(trials, trials).high == 1 > wilson(trials, trials).low


@given(trials=st.integers(1, 500), share=st.floats(0, 1))
def test_wilson_mirrors_when_successes_and_failures_swap(trials, share):
    successes = round(share * trials)
    low, high = wilson(trials - successes, trials)
    assert wilson(successes, trials) == pytest.approx((1 - high, 1 - low))
    assert low <= 1 - successes / trials <= high


# McNemar


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [
        (0, 0, 1.0),
        (0, 1, 1.0),
        (0, 5, 2 / 32),
        (2, 10, 2 * (1 + 12 + 66) / 2**12),
        (6, 6, 1.0),
        (59, 121, 4.4344492637555101e-06),  # drug and disease (101, 121; 59, 33), as in mlxtend
    ],
)
def test_the_exact_test_has_its_textbook_values(only_first, only_second, p):
    assert mcnemar(only_first, only_second) == pytest.approx(p, rel=1e-12)
    assert mcnemar(only_second, only_first) == mcnemar(only_first, only_second)


@given(only_first=st.integers(0, 300), only_second=st.integers(0, 300))
def test_the_exact_test_sums_the_binomial(only_first, only_second):
    size, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(math.comb(size, i) for i in range(fewer + 1))
    assert mcnemar(only_first, only_second) == min(1, 2 * tail / 2**size)


def test_many_discordant_problems_neither_overflow_nor_take_long():
    assert mcnemar(5000, 5000) == 1
    assert 0 < mcnemar(4800, 5200) < 1e-4


# Paired comparison


def test_a_comparison_counts_who_solved_what():
    comparison = paired(*answers(only_first=2, only_second=10, both=50, neither=38))
    assert (comparison.only_first, comparison.only_second) == (2, 10)
    assert comparison.difference == pytest.approx(0.08)
    assert comparison.p == pytest.approx(0.03857421875)


def test_the_bootstrap_is_near_the_normal_interval_on_many_problems():
    comparison = paired(*answers(only_first=150, only_second=200, both=400, neither=250))
    spread = 1.959964 * math.sqrt((0.35 - 0.05**2) / 1000)
    assert comparison.interval == pytest.approx((0.05 - spread, 0.05 + spread), abs=2e-3)


def test_a_higher_level_is_wider():
    first, second = answers(only_first=15, only_second=20, neither=65)
    narrow, wide = (paired(first, second, level).interval for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


@given(solved=st.lists(st.booleans(), min_size=1))
def test_equal_answers_do_not_differ(solved):
    comparison = paired(solved, solved)
    assert (comparison.difference, comparison.interval, comparison.p) == (0, Interval(0, 0), 1)
    assert "-" not in repr(comparison)


@given(pairs=outcomes)
def test_swapping_the_rules_mirrors_everything(pairs):
    first, second = zip(*pairs, strict=True)
    there, back = paired(first, second, samples=500), paired(second, first, samples=500)
    assert back.difference == -there.difference
    assert back.interval == (-there.interval.high, -there.interval.low)
    assert (back.only_first, back.only_second) == (there.only_second, there.only_first)
    assert back.p == there.p


@given(pairs=outcomes)
def test_the_order_of_the_problems_does_not_matter(pairs):
    def compare(pairs):
        return paired(*zip(*pairs, strict=True), samples=500)

    assert compare(pairs) == compare(pairs[::-1])


def test_the_seed_decides_the_interval():
    first, second = answers(only_first=30, only_second=41, both=97, neither=151)
    comparisons = [paired(first, second, seed=seed) for seed in (0, 0, 1, 2, 3)]
    assert comparisons[0] == comparisons[1]
    assert len({each.interval for each in comparisons}) > 1


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    shares = (0.10, 0.75, 0.15)  # only the first, the same, only the second
    runs, held = 400, 0
    for seed in range(runs):
        differences = rng.choice((-1, 0, 1), p=shares, size=150)
        low, high = bootstrap_mean(differences, level=0.9, samples=1000, seed=seed).interval
        held += low <= 0.05 <= high
    assert 0.86 <= held / runs <= 0.94


# Other numbers


def test_numbers_that_are_not_binary_are_resampled_as_they_are():
    rng = np.random.default_rng(0)
    fewer = rng.integers(-40, 8, size=250)
    drawn = rng.choice(fewer, size=(10_000, 250)).mean(-1)  # the plain bootstrap
    estimate = bootstrap_mean(fewer)
    assert estimate.mean == fewer.mean()
    assert estimate.interval == pytest.approx(np.quantile(drawn, (0.025, 0.975)), abs=0.15)


def test_a_constant_difference_is_certain():
    assert bootstrap_mean([-2.5] * 7) == (-2.5, (-2.5, -2.5))


# What is refused


@pytest.mark.parametrize(
    ("compare", "message"),
    [
        (lambda: paired([True], [True, False]), "the same problems, got 1 and 2 outcomes"),
        (lambda: paired([], []), "at least one problem, got none"),
        (lambda: paired([0.5], [1.0]), "outcomes must be True or False; for other numbers use"),
        (lambda: paired([2], [1]), "outcomes must be True or False"),
        (lambda: paired([True], [True], level=95), "level must be between 0 and 1, got 95"),
        (lambda: paired([True], [True], samples=0), "samples must be >= 1 and seed >= 0, got 0"),
        (lambda: paired([True], [True], seed=-1), "seed >= 0, got 10000 and -1"),
        (lambda: bootstrap_mean([]), "at least one problem, got none"),
        (lambda: bootstrap_mean([1.0, math.nan]), "one finite number per problem"),
        (lambda: bootstrap_mean([[1.0], [2.0]]), "one finite number per problem"),
        (lambda: wilson(0, 0), "at least one trial, got 0"),
        (lambda: wilson(3, 2), r"successes must be in \[0, 2\], got 3"),
        (lambda: wilson(1, 2, level=1), "level must be between 0 and 1, got 1"),
        (lambda: mcnemar(-1, 2), "counts must be >= 0, got -1 and 2"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(compare, message):
    with pytest.raises(RequestError, match=message) as error:
        compare()
    assert "\n" not in str(error.value)


# Several tests at once


def test_holm_multiplies_the_smallest_p_by_their_number():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_holm_never_exceeds_1_and_never_lowers_a_p():
    ps = [0.5, 0.9, 0.2, 1.0]
    assert holm(ps) == pytest.approx([1.0, 1.0, 0.8, 1.0])


def test_holm_leaves_a_single_p_alone():
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_holm_keeps_the_order_of_the_tests():
    ps = [0.2, 0.001, 0.04, 0.03]
    corrected = holm(ps)
    assert sorted(range(4), key=lambda i: ps[i]) == sorted(
        range(4), key=lambda i: (corrected[i], ps[i])
    )


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_two_identical_rules_differ_significantly_in_about_one_case_of_twenty(share):
    rng = np.random.default_rng(0)
    by_interval = by_test = 0
    for seed in range(200):
        first, second = (rng.random((2, 200)) < share).tolist()
        pair = paired(first, second, samples=2000, seed=seed)
        by_interval += pair.interval.low > 0 or pair.interval.high < 0
        by_test += pair.p < 0.05
    assert 2 <= by_interval <= 17  # 10 wanted, give or take 2.3 standard deviations
    assert by_test <= 10  # exact, so never too many


def test_a_real_difference_is_found():
    rng = np.random.default_rng(0)
    detected = 0
    for seed in range(50):
        first, second = (rng.random(200) < 0.5).tolist(), (rng.random(200) < 0.7).tolist()
        detected += paired(first, second, samples=1000, seed=seed).interval.low > 0
    assert detected > 40


def test_stars_need_a_corrected_p_below_5_percent():
    assert starred([0.049]) == [True]
    assert starred([0.05]) == [False]
    assert starred([0.03, 0.02]) == [True, True]
    assert starred([0.03, 0.02, 0.9]) == [False, False, False]
    assert starred([]) == []
    assert "for all 3 comparisons" in star_rule(3)


# Sign flips


def test_differences_of_one_size_are_mcnemars():
    assert sign_flip([0.5] * 6 + [-0.5] + [0.0] * 20) == mcnemar(1, 6)
    assert sign_flip([0.0, 0.0]) == 1


def test_signs_that_are_drawn_agree_with_all_signs():
    values = np.array([0.9, 0.2, 0.7, -0.1, 0.4, 0.3, -0.25, 0.6])
    every = np.array(list(itertools.product((-1, 1), repeat=8))) @ values
    exact = (np.abs(every) >= abs(values.sum()) - 1e-12).mean()
    assert sign_flip(values) == pytest.approx(exact, abs=0.01)
    assert sign_flip(-values) == sign_flip(values)


def test_without_an_effect_small_ps_are_rare():
    rng = np.random.default_rng(1)
    ps = [sign_flip(rng.normal(size=30), samples=400, seed=n) for n in range(300)]
    assert np.mean(np.array(ps) < 0.05) < 0.09
    assert sign_flip(rng.normal(1.0, size=60)) < 0.001
