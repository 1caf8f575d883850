"""What a training run is told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """All that the result depends on, besides the tasks and the processor's rounding."""

    seed: int = 0
    steps: int = 10000
    workers: int = 2  # processes of one thread each, with a batch of their own
    matrix_rate: float = 0.02
    other_rate: float = 0.05
    warmup: int = 200
    decay: float = 0.6  # share of the steps at the end over which the rates fall to zero
    floor: float = 0.1  # least t that weighs 1 / t: rows with one or two masks are noise

    def rate(self, step: int) -> float:
        """What the rates are multiplied by."""
        left = (self.steps - step) / (self.decay * self.steps)
        return min(1.0, (step + 1) / self.warmup, left)
