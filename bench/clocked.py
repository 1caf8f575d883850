"""A model that measures the CPU time of its trunk and its head."""

from __future__ import annotations

import time

from torch import Tensor

from unmask.models.denoiser import Canvas, Denoiser, Hidden


class Clocked:
    """The same model; `lap` returns the time since the last call of `lap`.

    `head` is the first head call of a forward, over the masked positions; `more` is the call for a
    window that opens after them.
    """

    def __init__(self, model: Denoiser) -> None:
        self.model, self.spec, self.device = model, model.spec, model.device
        self.lap()

    def lap(self) -> dict[str, float]:
        """Seconds of trunk, head and more, and the number of positions of the head."""
        spent = getattr(self, "_spent", {})
        self._spent = {"trunk": 0.0, "head": 0.0, "more": 0.0, "positions": 0.0}
        return spent

    def trunk(self, canvas: Canvas) -> Hidden:
        begin = time.process_time()
        hidden = self.model.trunk(canvas)
        self._spent["trunk"] += time.process_time() - begin
        self._part = "head"
        return hidden

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        begin = time.process_time()
        logits = self.model.head(hidden, rows, positions)
        self._spent[self._part] += time.process_time() - begin
        if self._part == "head":
            self._spent["positions"] += len(rows)
        self._part = "more"
        return logits
