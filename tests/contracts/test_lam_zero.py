"""At lam = 0 SWD is not there: every rule runs as its baseline, to the bit."""

from __future__ import annotations

import pytest

from tests.helpers import baselines, outcome, random_lookup
from unmask import Needs, Rule, Sampling, decode

READINGS = ("0", "0, kl=cur_prev", "0, start=uniform", "0, start=skip, form=literal, scope=block")


@pytest.mark.long
def test_lam_zero_runs_as_the_baseline():
    for seed, text in enumerate(baselines()):
        reading = READINGS[seed % len(READINGS)]  # every score and every selection meets each
        model, (score, select) = random_lookup(seed), text.split(" | ")
        block, sampling = (None, 3)[seed % 2], Sampling((0.0, 0.7)[seed // 2 % 2])
        knobs = {"length": 8, "block": block, "sampling": sampling, "seed": seed}
        plain = decode(model, [1, 2, 3], text, **knobs)
        stable = decode(model, [1, 2, 3], f"{score} | swd({reading}) | {select}", **knobs)
        assert outcome(stable) == outcome(plain), f"{text}: {knobs}"


@pytest.mark.parametrize("reading", READINGS)
def test_lam_zero_asks_for_nothing_to_be_computed(reading):
    assert Rule.parse(f"confidence | swd({reading}) | top(1)").needs == Needs()


def test_lam_above_zero_does_change_runs():
    changed = [
        outcome(decode(random_lookup(seed), [1], "confidence | swd(5) | eb(0.1)", length=12))
        != outcome(decode(random_lookup(seed), [1], "confidence | eb(0.1)", length=12))
        for seed in range(5)
    ]
    assert any(changed)
