"""Small models of each kind of attention, loaded once."""

from __future__ import annotations

import pytest
import torch

from tests.models.makers import make
from unmask import load


@pytest.fixture(scope="session")
def model_of(tmp_path_factory):
    """A model of a family by its config changes; equal requests share one.

    In float64, so that rounding decides nothing when runs are compared.
    """
    made = {}

    def get(family, seed=0, block=None, **changes):
        key = (family, seed, block, *sorted(changes.items()))
        if key not in made:
            folder = make(tmp_path_factory.mktemp("model"), family, seed=seed, **changes)
            made[key] = load(folder, dtype=torch.float64, block=block).model
        return made[key]

    return get
