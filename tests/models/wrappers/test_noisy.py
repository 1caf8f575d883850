"""A model with the same noise on every call."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import MASK, canvas_of, logits_of, outcome, random_lookup
from unmask import ModelError, decode
from unmask.models.wrappers.noisy import Noisy

CANVAS = canvas_of([1, MASK, 2, MASK])


def noise_of(model, canvas):
    return logits_of(model, canvas) - logits_of(model.model, canvas)


def test_the_same_canvas_always_gets_the_same_noise():
    first, second = (logits_of(Noisy(random_lookup(0), 1.0, 7), CANVAS) for _ in range(2))
    assert torch.equal(first, second)


def test_another_canvas_gets_other_noise():
    model = Noisy(random_lookup(0), 1.0)
    other = canvas_of([1, MASK, 3, MASK])
    assert not torch.equal(noise_of(model, CANVAS), noise_of(model, other))


def test_another_seed_gives_other_noise():
    one, two = (logits_of(Noisy(random_lookup(0), 1.0, seed), CANVAS) for seed in (1, 2))
    assert not torch.equal(one, two)


def test_no_scale_is_no_noise():
    assert torch.equal(
        logits_of(Noisy(random_lookup(0), 0.0), CANVAS), logits_of(random_lookup(0), CANVAS)
    )


def test_a_full_canvas_has_no_noise():
    assert noise_of(Noisy(random_lookup(0), 5.0), canvas_of([1, 2, 3])).abs().max() == 0


def test_the_noise_grows_with_the_scale_and_the_masked_share():
    masked = canvas_of([MASK] * 20)
    half = canvas_of([MASK] * 10 + [1] * 10)
    spread = float(noise_of(Noisy(random_lookup(0), 3.0), masked).std())
    assert spread == pytest.approx(3.0, rel=0.2)
    assert float(noise_of(Noisy(random_lookup(0), 3.0), half).std()) == pytest.approx(1.5, rel=0.2)


def test_padding_does_not_change_the_noise_of_a_row():
    model = Noisy(random_lookup(0), 2.0)
    both = model.trunk(canvas_of([1, MASK, 2, MASK], [1, 2, 3, 4, 5, MASK]))
    mine = model.head(both, torch.zeros(4, dtype=torch.int64), torch.arange(4))
    assert torch.equal(mine, logits_of(model, CANVAS)[0])


def test_asking_for_some_rows_gives_what_all_of_them_have():
    model = Noisy(random_lookup(0), 2.0)
    some = model.head(model.trunk(CANVAS), torch.tensor([0]), torch.tensor([3]))
    assert torch.equal(some[0], logits_of(model, CANVAS)[0, 3])


def test_a_run_is_reproducible():
    runs = [
        decode(Noisy(random_lookup(0), 2.0), [1], "confidence | swd(5) | eb(0.5)", length=8)
        for _ in range(2)
    ]
    assert outcome(runs[0]) == outcome(runs[1])


@pytest.mark.parametrize("scale", [-1.0, float("nan")])
def test_the_scale_is_at_least_zero(scale):
    with pytest.raises(ModelError, match="noise scale must be >= 0"):
        Noisy(random_lookup(0), scale)
