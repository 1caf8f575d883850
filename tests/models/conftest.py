"""A checkpoint for the tests of loading."""

import pytest

from tests.models.makers import make


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path / "tiny", "llada")
