"""A denoiser that measures the seconds of its forwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import torch
from torch import Tensor

from unmask.models.denoiser import Canvas, Denoiser, Hidden


class Timed:
    """The model unchanged, with the sum of the wall-clock seconds of trunk and head.

    A GPU is synchronised before and after, so that the seconds are the model's own.
    """

    def __init__(self, model: Denoiser) -> None:
        self.model, self.spec, self.device = model, model.spec, model.device
        self.seconds = 0.0

    def trunk(self, canvas: Canvas) -> Hidden:
        with self._running():
            return self.model.trunk(canvas)

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        with self._running():
            return self.model.head(hidden, rows, positions)

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._wait()
        begin = perf_counter()
        yield
        self._wait()
        self.seconds += perf_counter() - begin

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
