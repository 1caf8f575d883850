"""Measures the seconds of each step: the whole, or model, decision and the KL's part of it too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from time import perf_counter
from typing import Any

from unmask.decoding.kl_clock import KLClock
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request
from unmask.decoding.results import Step
from unmask.models.denoiser import Denoiser
from unmask.models.wrappers.timed import Timed


@dataclass(frozen=True)
class Seconds:
    """Seconds of decoding; the parts are None unless they were measured."""

    total: float = 0.0
    model: float | None = None
    decision: float | None = None
    kl: float | None = None  # part of the decision: the instability

    @classmethod
    def of_parts(cls, model: float, decision: float, kl: float = 0.0) -> Seconds:
        """All seconds, from those of the parts."""
        return cls(model + decision, model, decision, kl)

    def __add__(self, other: Seconds) -> Seconds:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Seconds(*(_sum(*pair) for pair in pairs))

    def record(self) -> dict[str, float]:
        """The seconds that were measured, by name."""
        return {name: round(value, 6) for name, value in vars(self).items() if value is not None}


def _sum(one: float | None, other: float | None) -> Any:
    """The sum of two measurements; one that was not made counts nothing."""
    return other if one is None else one if other is None else one + other


def clocked_steps(
    model: Denoiser, requests: Iterable[Request], batch_size: int = 1, keep_logits: bool = False
) -> Iterator[tuple[Step, Seconds]]:
    """Each step of `decode_steps` with the seconds that it took per row, as a whole.

    It never waits for a GPU and repeats nothing. The time between two steps is the caller's and is
    not counted.
    """
    steps = decode_steps(model, requests, batch_size, keep_logits)
    while True:
        begin = perf_counter()
        step = next(steps, None)
        if step is None:
            return
        yield step, Seconds((perf_counter() - begin) / len(step.keys))


# Decodes requests in batches of this size, and measures each step.
Clock = Callable[[Denoiser, Iterable[Request], int], Iterator[tuple[Step, Seconds]]]


def timed_steps(
    model: Denoiser, requests: Iterable[Request], batch_size: int = 1, keep_logits: bool = False
) -> Iterator[tuple[Step, Seconds]]:
    """Each step as in `clocked_steps`, with the seconds of its parts.

    It waits for the GPU around every forward and repeats one pass of sixteen without the KL, so use
    it only if you need the parts.
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
        yield step, Seconds.of_parts(forward / rows, decision / rows, spent.kl / rows)
