"""Fixtures of the integration tests."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import unmask


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines."""
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: object) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):  # type: ignore[index]
            raise AssertionError(f"a test wants to reach {address}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", only_here)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Restore the root logger, which lm_eval changes."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Keep the code that transformers copies in this test; the package counts as installed.

    Gives the environment of a process in which both are so.
    """
    copies, site = str(tmp_path / "modules"), tmp_path / "site"
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", copies)
    environment = {**os.environ, "HF_MODULES_CACHE": copies, "HF_HUB_OFFLINE": "1"}
    try:
        version("unmask")
    except PackageNotFoundError:  # run from a checkout
        info = site / f"unmask-{unmask.__version__}.dist-info"
        info.mkdir(parents=True)
        about = f"Metadata-Version: 2.1\nName: unmask\nVersion: {unmask.__version__}\n"
        (info / "METADATA").write_text(about)
        monkeypatch.syspath_prepend(site)
        paths = [os.environ.get("PYTHONPATH"), str(site)]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    yield environment
    for module in [name for name in sys.modules if name.startswith("transformers_modules")]:
        del sys.modules[module]
