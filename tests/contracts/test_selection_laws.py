"""Laws for every selection of the table."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import pad

from tests.helpers import (
    FEW_STEPS,
    alone,
    at_step,
    default_text,
    random_scores,
    random_view,
    widened,
)
from unmask import Rule, Scores, best_first
from unmask.rules.budget import Budget
from unmask.rules.factor import Factor
from unmask.rules.prefixes import EntropyBound
from unmask.rules.registry import kinds
from unmask.rules.select import Threshold

SELECTIONS = [Rule.parse(f"confidence | {default_text(kind)}").select for kind in kinds("select")]
SELECTIONS += [
    EntropyBound(0.5, free=free) for free in ("leftmost", "leftmost_alone", "flattest_first")
]
EAGER = [select for select in SELECTIONS if not getattr(select, "waits", False)]
WAITING = [select for select in SELECTIONS if getattr(select, "waits", False)]
SEEDS = st.integers(0, 2**16)

every_selection = pytest.mark.parametrize("select", SELECTIONS, ids=repr)


@every_selection
@given(seed=SEEDS)
def test_a_selection_chooses_masks_only(select, seed):
    view = random_view(seed)
    assert not (select(view, random_scores(seed)) & ~view.masked).any()


@pytest.mark.parametrize("select", EAGER, ids=repr)
@given(seed=SEEDS)
def test_a_selection_always_progresses(select, seed):
    view = random_view(seed)
    chosen = select(view, random_scores(seed))
    assert torch.equal(chosen.any(-1), view.masked.any(-1))


@pytest.mark.parametrize("select", WAITING, ids=repr)
@given(seed=SEEDS)
def test_a_selection_that_waits_takes_all_in_its_last_step(select, seed):
    view = random_view(seed)
    last = at_step(view, FEW_STEPS - 1, num_windows=torch.ones(3, dtype=torch.int64))
    assert torch.equal(select(last, random_scores(seed)), view.masked)


@every_selection
@given(seed=SEEDS)
def test_rows_are_selected_independently(select, seed):
    view, scores = random_view(seed), random_scores(seed)
    chosen = select(view, scores)
    for b in range(3):
        mine = Scores(scores.key[b : b + 1], scores.value[b : b + 1], scores.logarithmic)
        assert torch.equal(chosen[b : b + 1], select(alone(view, b), mine))


@every_selection
@given(seed=SEEDS, columns=st.integers(1, 5))
def test_columns_beyond_the_window_change_no_selection(select, seed, columns):
    view, scores = random_view(seed), random_scores(seed)
    wide = Scores(pad(scores.key, (0, columns)), pad(scores.value, (0, columns)), True)
    chosen = select(widened(view, columns), wide)
    assert torch.equal(chosen, pad(select(view, scores), (0, columns)))


@every_selection
@given(seed=SEEDS)
def test_what_stands_at_other_positions_does_not_matter(select, seed):
    view, scores = random_view(seed), random_scores(seed)
    noise = random_scores(seed + 1)
    other = Scores(
        torch.where(view.masked, scores.key, noise.key),
        torch.where(view.masked, scores.value, noise.value),
        True,
    )
    assert torch.equal(select(view, scores), select(view, other))


@every_selection
@given(seed=SEEDS)
def test_keys_of_minus_infinity_stay_selectable(select, seed):
    view = random_view(seed)
    hopeless = Scores.probability(torch.zeros_like(view.confidence))
    left, steps = view, 0
    while left.masked.any():
        left = at_step(left.among(left.masked & ~select(left, hopeless)), steps)
        steps += 1
        assert steps <= 2 * FEW_STEPS


def _grows(narrow, wide, seed):
    view, scores = random_view(seed), random_scores(seed)
    few, many = narrow(view, scores), wide(view, scores)
    assert not (few & ~many).any()


@given(seed=SEEDS, low=st.floats(0, 3), more=st.floats(0, 3))
def test_a_larger_gamma_chooses_a_superset(seed, low, more):
    _grows(EntropyBound(low), EntropyBound(low + more), seed)


@given(seed=SEEDS, low=st.floats(0, 3), more=st.floats(0, 3))
def test_a_larger_delta_never_lowers_the_utility(seed, low, more):
    view, scores = random_view(seed), random_scores(seed)
    little, much = (
        torch.where(Budget(delta)(view, scores), scores.value, 0).sum(-1)
        for delta in (low, low + more)
    )
    fits = (view.masked & view.seen & (view.kl_prev_cur <= low)).any(-1)
    assert (much >= little - 1e-12)[fits].all()


@pytest.mark.parametrize("test", ["gt", "ge"])
@given(seed=SEEDS, high=st.floats(0, 1), less=st.floats(0, 1))
def test_a_lower_tau_chooses_a_superset(test, seed, high, less):
    _grows(Threshold(high, test=test), Threshold(high - less, test=test), seed)


@pytest.mark.parametrize("last", ["fair", "take", "drop"])
@given(seed=SEEDS, low=st.floats(0.01, 4), more=st.floats(0, 4))
def test_a_larger_factor_chooses_a_superset(last, seed, low, more):
    _grows(Factor(low, last=last), Factor(low + more, last=last), seed)


@given(seed=SEEDS)
def test_ranking_ties_go_to_the_lowest_position(seed):
    view, scores = random_view(seed), random_scores(seed)
    order = best_first(scores.key, view.masked)
    for b in range(3):
        ranked = [i for i in order[b].tolist() if view.masked[b, i]]
        key = scores.key[b].tolist()
        assert ranked == sorted(ranked, key=lambda i: (-key[i], i))


@given(seed=SEEDS)
def test_candidates_rank_before_all_others(seed):
    view = random_view(seed)
    order = best_first(random_scores(seed).key, view.masked)
    ranked = view.masked.gather(-1, order)
    count = view.masked.sum(-1, keepdim=True)
    assert torch.equal(ranked, torch.arange(ranked.shape[-1]) < count)
