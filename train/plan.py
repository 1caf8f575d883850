"""The options of a training run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Everything that determines the result, besides the tasks and the processor's rounding."""

    seed: int = 0
    steps: int = 10000
    workers: int = 2  # processes, each with one thread and its own batch
    matrix_rate: float = 0.02
    other_rate: float = 0.05
    warmup: int = 200
    decay: float = 0.6  # share of the steps, at the end, in which the rates fall to zero
    floor: float = 0.1  # smallest t in the weight 1 / t; rows with one or two masks are noise

    def rate(self, step: int) -> float:
        """The factor of the learning rates in a step."""
        left = (self.steps - step) / (self.decay * self.steps)
        return min(1.0, (step + 1) / self.warmup, left)
