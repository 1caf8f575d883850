"""The seconds of each step: the model's, the decision's, and the KL's share of the decision."""

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
    """Where the time of decoding went."""

    model: float = 0.0
    decision: float = 0.0
    kl: float = 0.0  # the part of the decision that the instability takes

    @property
    def total(self) -> float:
        return self.model + self.decision

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.model + other.model, self.decision + other.decision, self.kl + other.kl)


class Clock:
    """Decodes with a timer around the model and one around the pass over the logits.

    A GPU is synchronised around every forward, and one pass of sixteen is repeated without the KL,
    so use it only where the seconds are read.
    """

    def steps(
        self, model: Denoiser, requests: Iterable[Request], batch_size: int, keep_logits: bool
    ) -> Iterator[tuple[Step, Seconds]]:
        """Each step of `decode_steps` with the seconds that it took per row.

        The time that the caller spends between two steps is not counted.
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
