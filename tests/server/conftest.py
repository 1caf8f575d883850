"""Servers that many tests share."""

from __future__ import annotations

import pytest

from tests.checkpoints import make_llada, make_sdar
from tests.server.serving import serving


@pytest.fixture(scope="session")
def embedded():
    """The model in the package."""
    with serving("--batch-size", 4) as running:
        yield running


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return make_llada(tmp_path_factory.mktemp("served") / "tiny")


@pytest.fixture(scope="session")
def tiny(folder):
    """A random byte-level LLaDA: its texts are full of half characters."""
    with serving("--model", folder, "--length", 24, "--rule", "confidence | eb(3)") as running:
        yield running


@pytest.fixture(scope="session")
def sdar_folder(tmp_path_factory):
    return make_sdar(tmp_path_factory.mktemp("served") / "sdar")


@pytest.fixture(scope="session")
def sdar(sdar_folder):
    """A random block-causal model."""
    with serving("--model", sdar_folder, "--length", 10, "--rule", "confidence | eb(3)") as running:
        yield running
