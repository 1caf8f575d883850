"""The constrained problem: feasible always, optimal where it is small, half of that beyond."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest
import torch

from tests.helpers import bits, hand_view, places, table
from unmask import RuleError, Scores
from unmask.conformance.units import plain_view
from unmask.rules.budget import EXACT, Budget
from unmask.rules.scores import confidence, entropy
from unmask.rules.stability import Stability


def chosen(select, view, score=confidence):
    return places(select(view, score(view)))


def random_problem(seed, rows, width, free=0.2):
    """Rows of utilities in (0, 1] and of D >= 0, some of it exactly 0, some without a history."""
    generator = torch.Generator().manual_seed(seed)

    def uniform():
        return torch.rand(rows, width, generator=generator, dtype=torch.float64)

    moved = torch.where(uniform() < free, 0.0, 0.3 * uniform() ** 2)
    masked, seen = uniform() < 0.9, uniform() < 0.9
    masked[:, 0] = True
    value = 1 - uniform()
    view = plain_view(masked, torch.zeros_like(moved), seen=seen, kl_prev_cur=moved)
    return view, Scores.probability(value)


def best_sum(gains, costs, delta):
    """The largest gain within delta, by trying every set."""
    pairs = list(zip(gains, costs, strict=True))
    sums = (
        (
            math.fsum(gain for (gain, _), there in zip(pairs, picked, strict=True) if there),
            math.fsum(cost for (_, cost), there in zip(pairs, picked, strict=True) if there),
        )
        for picked in product((False, True), repeat=len(pairs))
    )
    return max(gain for gain, cost in sums if cost <= delta)


def fraction_bound(gains, costs, delta):
    """The largest gain if positions could be split: no set gains more."""
    room, total = delta, 0.0
    by_ratio = sorted(zip(gains, costs, strict=True), key=lambda p: p[1] / p[0])
    for gain, cost in by_ratio:
        part = 1.0 if cost <= room else room / cost
        total, room = total + part * gain, room - part * cost
    return total


def rows_of(view, scores, taken):
    """Of each row: the candidates with a history, all utilities, all D, and what went."""
    for b in range(len(view.masked)):
        seen = places(view.masked & view.seen, b)
        yield b, seen, scores.value[b].tolist(), view.kl_prev_cur[b].tolist(), places(taken, b)


def test_it_skips_what_does_not_fit_and_takes_what_is_free():
    view = hand_view([0.9, 0.89, 0.88], kl_prev_cur=table([0.2, 0.0, 0.0]))
    assert chosen(Budget(0.1), view) == [1, 2]


def test_it_takes_the_best_set_and_not_the_best_position():
    view = hand_view([0.9, 0.8, 0.7], kl_prev_cur=table([0.1, 0.05, 0.05]))
    assert chosen(Budget(0.1), view) == [1, 2]  # 1.5 against 0.9
    assert chosen(Budget(0.05), view) == [1]
    assert chosen(Budget(0.2), view) == [0, 1, 2]


def test_the_best_one_goes_over_the_budget_only_if_nothing_fits():
    view = hand_view([0.8, 0.9], kl_prev_cur=table([5.0, 6.0]))
    assert chosen(Budget(0.1), view) == [1]
    assert chosen(Budget(5.5), view) == [0]


def test_it_knows_both_directions():
    view = hand_view([0.9, 0.8], kl_prev_cur=table([0.0, 9.0]), kl_cur_prev=table([0.0, 0.0]))
    assert chosen(Budget(0.1), view) == [0]
    assert chosen(Budget(0.1, kl="cur_prev"), view) == [0, 1]


@pytest.mark.parametrize("delta", [0.1, 1e300, math.inf])
def test_a_position_without_history_does_not_fit(delta):
    view = hand_view([0.9, 0.8, 0.7], seen=bits([1, 0, 1]))
    assert chosen(Budget(delta), view) == [0, 2]
    assert chosen(Budget(delta), hand_view([0.8, 0.9], seen=bits([0, 0]))) == [1]


def test_the_utility_of_the_entropy_is_positive():
    moved = table([0.1, 0.05, 0.05])
    view = hand_view([1, 1, 1], entropy=table([0.1, 0.3, 0.4]), kl_prev_cur=moved)
    assert chosen(Budget(0.1), view, entropy) == [1, 2]  # exp(-.3) + exp(-.4) > exp(-.1)
    view = replace(view, entropy=table([0.0, 3.0, 4.0]))
    assert chosen(Budget(0.1), view, entropy) == [0]  # exp(-3) + exp(-4) < 1


def test_scores_of_any_size_and_infinite_ones_are_compared():
    view = hand_view([1, 1, 1], kl_prev_cur=table([0.1, 0.05, 0.05]))
    for shift in (-5000.0, 5000.0):
        scores = Scores.log_utility(table([0.1, 0.0, -0.1]) + shift)
        assert places(Budget(0.1)(view, scores)) == [1, 2]
    assert places(Budget(0.1)(view, Scores.log_utility(table([math.inf, 700, 700])))) == [0]
    hopeless = Scores.log_utility(table([-math.inf, -math.inf, -math.inf]))
    assert places(Budget(0.1)(view, hopeless)) == [1, 2]


def test_a_modulated_score_is_the_utility():
    view = hand_view([0.9, 0.8], kl_prev_cur=table([0.1, 0.01]))
    assert chosen(Budget(0.1), view) == [0]
    assert places(Budget(0.1)(view, Stability(5.0)(view, confidence(view)))) == [1]


def test_an_end_that_is_put_last_waits_for_the_others():
    view = hand_view([0.9, 0.8, 0.7], kl_prev_cur=table([0.0, 0.5, 0.5]), deferred=bits([1, 0, 0]))
    scores = confidence(view).putting_last(view.deferred)
    assert places(Budget(0.1)(view, scores)) == [1]  # over the budget, yet no end of text
    only = view.among(bits([1, 0, 0]))
    assert places(Budget(0.1)(only, scores)) == [0]


def test_a_small_problem_is_solved_exactly():
    select = Budget(0.1)
    for seed in range(40):
        view, scores = random_problem(seed, rows=4, width=11)
        taken = select(view, scores)
        for _, seen, value, moved, went in rows_of(view, scores, taken):
            fitting = [i for i in seen if moved[i] <= 0.1]
            if not fitting:
                continue
            best = best_sum([value[i] for i in fitting], [moved[i] for i in fitting], 0.1)
            assert math.fsum(value[i] for i in went) == pytest.approx(best, rel=1e-12)


def test_it_is_never_over_the_budget_and_leaves_nothing_out_that_fits():
    for seed in range(60):
        width, delta = (5, 12, 13, 40)[seed % 4], (0.0, 0.02, 0.1, 1.0)[seed // 4 % 4]
        view, scores = random_problem(seed, rows=5, width=width)
        for b, seen, value, moved, went in rows_of(view, scores, Budget(delta)(view, scores)):
            masked = places(view.masked, b)
            if not any(moved[i] <= delta for i in seen):
                assert went == [max(masked, key=lambda i: (value[i], -i))]
                continue
            spent = math.fsum(moved[i] for i in went)
            assert set(went) <= set(seen)
            assert spent <= delta * (1 + 1e-12)
            assert all(spent + moved[i] > delta for i in set(seen) - set(went))


def test_a_large_problem_reaches_half_of_the_bound():
    worst = 1.0
    for seed in range(40):
        view, scores = random_problem(seed, rows=3, width=48, free=0.0)
        for _, seen, value, moved, went in rows_of(view, scores, Budget(0.1)(view, scores)):
            fitting = [i for i in seen if moved[i] <= 0.1]
            assert len(fitting) > EXACT
            bound = fraction_bound([value[i] for i in fitting], [moved[i] for i in fitting], 0.1)
            worst = min(worst, math.fsum(value[i] for i in went) / bound)
    assert worst >= 0.5


def test_neither_greedy_set_alone_would_reach_half():
    many = [1.0] + [0.9] * 20
    view = hand_view(many, kl_prev_cur=table([0.125] + [0.00625 * 0.99] * 20))
    assert chosen(Budget(0.125), view) == [*range(1, 21)]  # by S alone: 1.0 against 18
    tiny = [0.9] + [0.01] * 20
    view = hand_view(tiny, kl_prev_cur=table([0.125] + [0.001] * 20))
    assert chosen(Budget(0.125), view) == [0]  # by S / D alone: 0.2 against 0.9


def test_every_row_is_decided_as_if_it_were_alone():
    select = Budget(0.1)
    for seed in range(10):
        wide, scores = random_problem(seed, rows=6, width=40, free=0.1)
        narrow = torch.arange(40) < torch.tensor([3, 8, 12, 14, 20, 40])[:, None]
        view = wide.among(wide.masked & narrow)
        together = select(view, scores)
        for b, width in enumerate((3, 8, 12, 14, 20, 40)):
            mine = Scores(scores.key[b : b + 1, :width], scores.value[b : b + 1, :width], True)
            cut = plain_view(
                view.masked[b : b + 1, :width],
                view.entropy[b : b + 1, :width],
                seen=view.seen[b : b + 1, :width],
                kl_prev_cur=view.kl_prev_cur[b : b + 1, :width],
            )
            assert torch.equal(together[b : b + 1, :width], select(cut, mine))


def test_it_says_what_it_spent_and_how_many_fit():
    view = hand_view([0.9, 0.8, 0.7], kl_prev_cur=table([0.5, 0.05, 0.02]))
    scores, select = confidence(view), Budget(0.1)
    gauge = select.gauge(view, scores, select(view, scores))
    assert float(gauge["spent"]) == pytest.approx(0.07)
    assert int(gauge["fitting"]) == 2


def test_it_checks_its_knobs():
    with pytest.raises(RuleError, match="delta must be >= 0, got -1"):
        Budget(-1)
