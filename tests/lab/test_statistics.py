"""The statistics of a comparison say what they claim to say."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.lab.stats import paired


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
    found = 0
    for seed in range(50):
        first, second = (rng.random(200) < 0.5).tolist(), (rng.random(200) < 0.7).tolist()
        found += paired(first, second, samples=1000, seed=seed).interval.low > 0
    assert found > 40
