"""Settings that every test shares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from unmask import parts

torch.set_num_threads(1)
settings.register_profile("unmask", deadline=None, derandomize=True, database=None, max_examples=15)
settings.load_profile("unmask")


@pytest.fixture
def clean_table() -> Iterator[None]:
    """Whatever a test registers is forgotten after it."""
    parts.kinds()
    before = dict(parts.TABLE)
    yield
    parts.TABLE.clear()
    parts.TABLE.update(before)
