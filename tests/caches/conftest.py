"""Small models of each kind of attention, loaded once."""

from __future__ import annotations

import pytest

from models.makers import make
from unmask import load


@pytest.fixture(scope="session")
def model_of(tmp_path_factory):
    """A model of a family by its config changes; equal requests share one."""
    made = {}

    def get(family, seed=0, block=None, **changes):
        key = (family, seed, block, *sorted(changes.items()))
        if key not in made:
            folder = make(tmp_path_factory.mktemp("model"), family, seed=seed, **changes)
            made[key] = load(folder, block=block).model
        return made[key]

    return get
