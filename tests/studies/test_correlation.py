"""Rank correlations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.studies.correlation import RankedCanvas, correlations, partial, ranks, spearman


def test_equal_values_share_the_mean_of_their_ranks():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0, 3.0])).tolist() == [3, 0, 3, 1, 3]


def test_spearman_reads_the_order_only():
    x = np.array([0.1, 2.0, 30.0, 400.0])
    assert spearman(x, x**3) == pytest.approx(1)
    assert spearman(x, -np.log(x)) == pytest.approx(-1)
    assert spearman(x, np.ones(4)) == 0
    assert spearman(x, np.array([1.0, 3.0, 2.0, 4.0])) == pytest.approx(0.8)


@given(st.integers(0, 2**16))
def test_a_partial_correlation_is_that_of_the_residuals(seed):
    a, b, c = np.random.default_rng(seed).permuted(np.tile(np.arange(12.0), (3, 1)), axis=1)
    residual = [y - np.polyval(np.polyfit(c, y, 1), c) for y in (a, b)]
    wanted = np.corrcoef(*residual)[0, 1]
    assert partial(spearman(a, b), spearman(c, b), spearman(a, c)) == pytest.approx(wanted)


def test_within_and_pooled_differ_where_canvases_differ():
    rise = np.arange(6.0)
    canvases = [
        RankedCanvas(prompt, rise, -rise + 10 * prompt, rise, rise + 10 * prompt)
        for prompt in range(4)
    ]
    found = correlations(canvases)
    assert found.positions == 24
    assert found.entropy.within.value == pytest.approx(1)
    assert found.moved.within.value == pytest.approx(-1)
    assert found.moved.pooled.value > 0.8  # later canvases have more of both
    assert found.moved.pooled.low <= found.moved.pooled.value <= found.moved.pooled.high
