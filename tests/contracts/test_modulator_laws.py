"""Laws for every modulator of the table, and for SWD in each of its readings."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import pad

from tests.helpers import alone, default_text, random_scores, random_view, widened
from unmask import Rule, Scores
from unmask.rules.registry import kinds
from unmask.rules.scores import confidence, entropy, margin
from unmask.rules.stability import Stability

MODULATORS = {
    text: Rule.parse(f"confidence | {text} | top(1)").modulations[0].apply
    for text in (
        *map(default_text, kinds("modulate")),
        "swd(5) | only(others)",
        "swd(5) | only(first)",
        "swd(5) | signal(shuffled)",
    )
}
SEEDS = st.integers(0, 2**16)

every_modulator = pytest.mark.parametrize("modulate", MODULATORS.values(), ids=list(MODULATORS))


@every_modulator
@given(seed=SEEDS)
def test_rows_are_modulated_independently(modulate, seed):
    view, scores = random_view(seed), random_scores(seed)
    whole = modulate(view, scores)
    for b in range(3):
        single = modulate(
            alone(view, b),
            Scores(scores.key[b : b + 1], scores.value[b : b + 1], scores.logarithmic),
        )
        assert torch.equal(whole.key[b : b + 1], single.key)
        assert torch.equal(whole.value[b : b + 1], single.value)


@every_modulator
@given(seed=SEEDS, columns=st.integers(1, 5))
def test_columns_beyond_the_window_change_no_score(modulate, seed, columns):
    view, scores = random_view(seed), random_scores(seed)
    wide = Scores(pad(scores.key, (0, columns)), pad(scores.value, (0, columns)), True)
    modulated = modulate(widened(view, columns), wide)
    narrow = modulate(view, scores)
    width = view.masked.shape[-1]
    assert torch.equal(modulated.key[:, :width], narrow.key)
    assert torch.equal(modulated.value[:, :width], narrow.value)


@every_modulator
@given(seed=SEEDS)
def test_a_modulated_key_is_a_number(modulate, seed):
    modulated = modulate(random_view(seed), random_scores(seed))
    assert not modulated.key.isnan().any()
    assert not modulated.value.isnan().any()


@every_modulator
@given(seed=SEEDS)
def test_a_score_in_the_unit_interval_keeps_its_key_the_logarithm_of_its_value(modulate, seed):
    modulated = modulate(random_view(seed), random_scores(seed))
    assert modulated.logarithmic
    torch.testing.assert_close(modulated.key.exp(), modulated.value, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("form", ["additive", "bounded"])
@pytest.mark.parametrize("kl", ["prev_cur", "cur_prev", "js", "tv"])
@given(seed=SEEDS, lam=st.floats(0, 50))
def test_swd_never_raises_a_score_that_is_not_negative(kl, form, seed, lam):
    view = random_view(seed)
    for score in (confidence, margin):
        _never_raised(Stability(lam, kl=kl, form=form), view, score(view))


def _never_raised(stability, view, base):
    modulated = stability(view, base)
    assert (modulated.value <= base.value).all()
    assert (modulated.key <= base.key).all()


@pytest.mark.parametrize("form", ["additive", "signed", "bounded"])
@given(seed=SEEDS, lam=st.floats(0.01, 50))
def test_swd_never_raises_the_negative_entropy_unless_it_is_read_literally(form, seed, lam):
    view = random_view(seed)
    base = entropy(view)
    modulated = Stability(lam, form=form)(view, base)
    assert (modulated.value <= base.value + 1e-12).all()


@given(seed=SEEDS, low=st.floats(0, 20), more=st.floats(0, 20))
def test_a_larger_lam_lowers_every_key(seed, low, more):
    view = random_view(seed)
    base = confidence(view)
    few, many = Stability(low)(view, base), Stability(low + more)(view, base)
    assert (many.key <= few.key).all()


@pytest.mark.parametrize("start", ["single", "skip", "uniform"])
@pytest.mark.parametrize("form", ["additive", "signed", "literal", "bounded"])
@given(seed=SEEDS)
def test_lam_zero_returns_the_very_same_scores(start, form, seed):
    view = random_view(seed)
    for score in (confidence, margin, entropy):
        base = score(view)
        assert Stability(0, start=start, form=form)(view, base) is base


@given(seed=SEEDS)
def test_lam_zero_holds_nobody_back(seed):
    view = random_view(seed)
    assert torch.equal(Stability(0).ready(view, confidence(view)), view.masked)


@given(seed=SEEDS, lam=st.floats(0.01, 50))
def test_single_lets_somebody_through_in_every_row_with_masks(seed, lam):
    view = random_view(seed)
    ready = Stability(lam).ready(view, confidence(view))
    assert not (ready & ~view.masked).any()
    assert torch.equal(ready.any(-1), view.masked.any(-1))
