"""Measures the seconds of each step: model, decision, and the KL's part of the decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter

from unmask.decoding.kl_clock import KLClock
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.models.denoiser import Denoiser
from unmask.models.wrappers.timed import Timed


@dataclass(frozen=True)
class Seconds:
    """Seconds of decoding."""

    model: float = 0.0
    decision: float = 0.0
    kl: float = 0.0  # part of the decision: the instability

    @property
    def total(self) -> float:
        return self.model + self.decision

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.model + other.model, self.decision + other.decision, self.kl + other.kl)


def timed_steps(
    model: Denoiser, requests: Iterable[Request], batch_size: int = 1, keep_logits: bool = False
) -> Iterator[tuple[Step, Seconds]]:
    """Each step of `decode_steps` with the seconds that it took per row.

    It waits for the GPU around every forward and repeats one pass of sixteen without the KL, so use
    it only if you need the seconds. The time between two steps is the caller's and is not counted.
    """
    timed, kl_clock = Timed(model), KLClock()
    steps = decode_steps(timed, requests, batch_size, keep_logits, kl_clock)
    while True:
        begin, before = perf_counter(), timed.seconds
        step = next(steps, None)
        if step is None:
            return
        total, forward = perf_counter() - begin, timed.seconds - before
        spent, rows = kl_clock.spent(), len(step.keys)
        decision = total - forward - spent.probes
        yield step, Seconds(forward / rows, decision / rows, spent.kl / rows)
