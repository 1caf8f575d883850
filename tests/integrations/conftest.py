"""What the tests of integrations share."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is called but this machine."""
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: object) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):  # type: ignore[index]
            raise AssertionError(f"a test wants to reach {address}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", only_here)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """lm_eval sets up the root logger; afterwards it is as it was."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers
