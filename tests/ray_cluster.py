"""One real Ray cluster for all tests that need one: on loopback, with its own token and folder.

xdist hands out long runs of tests, so that of its workers usually one has them all; where two have
some, each has a cluster. (Groups would say so, but xdist 3.8 does not see them under pytest 9.2.)
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from importlib.util import find_spec

import pytest

from unmask.lab.ray.join import Cluster, joined

# Now, since Ray reads its token when it is imported, and any test may be the first to do so.
os.environ |= {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_USAGE_STATS_ENABLED": "0",
}
os.environ.pop("RAY_ADDRESS", None)


@pytest.fixture(scope="session")
def address():
    """HOST:PORT of a cluster with places for four workers; this process is part of it."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed")
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # paths of sockets must be short
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("OMP_NUM_THREADS", "1")
        with joined(Cluster("local", 4)) as slots:
            yield slots.ray.get_runtime_context().gcs_address
    shutil.rmtree(folder, ignore_errors=True)
