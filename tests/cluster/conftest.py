"""One real Ray cluster for all tests here, on loopback, with a token and a folder of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from importlib.util import find_spec

import pytest

from unmask.cluster import Cluster, joined

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "OMP_NUM_THREADS": "1",
}


@pytest.fixture(scope="session")
def address():
    """HOST:PORT of a cluster with places for four workers; this process is part of it."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed")
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # paths of sockets must be short
    before = dict(os.environ)
    # before Ray is imported: it reads its token once
    os.environ |= {**SETTINGS, "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_TMPDIR": folder}
    os.environ.pop("RAY_ADDRESS", None)
    try:
        with joined(Cluster("local", 4)) as slots:
            yield slots.ray.get_runtime_context().gcs_address
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.clear()
        os.environ.update(before)
