"""Measures how much of the pass over the logits the KL takes."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor

from unmask.kernels.reduce import Past, Stats, reduce
from unmask.rules.view import Divergence

EVERY = 16  # of so many passes with a KL, one is repeated without it


class Spent(NamedTuple):
    """Seconds of the passes since the last call of `spent`."""

    kl: float
    probes: float  # of the passes that were made only to measure


class Lap:
    """The time between two moments on a device; known once the device has passed the second."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._begin = self._end = self._moment()

    def stop(self) -> Lap:
        """Set the second moment: now, or on a GPU the end of the work that is queued so far."""
        self._end = self._moment()
        return self

    @property
    def seconds(self) -> float:
        """The time between the moments; a GPU must have been synchronised before."""
        begin, end = self._begin, self._end
        if isinstance(begin, float):
            assert isinstance(end, float)
            return end - begin
        assert not isinstance(end, float)
        return float(begin.elapsed_time(end)) / 1e3

    def _moment(self) -> float | torch.cuda.Event:
        if self.device.type != "cuda":
            return perf_counter()
        moment = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        moment.record(torch.cuda.current_stream(self.device))
        return moment


class KLClock:
    """`reduce` unchanged, with the seconds that the KL adds to it.

    One pass computes the KL along with the rest, so the KL has no time of its own. Therefore the
    first pass with a history, and then one of sixteen, is repeated without the KL. The share that
    this saves counts as the KL's share of all passes. A GPU is never waited for: `spent` is called
    after a step, and a step waits for the GPU itself.
    """

    def __init__(self) -> None:
        self._passes: list[Lap] = []  # since the last call of `spent`
        self._probes: list[tuple[Lap, Lap]] = []  # with the KL and without
        self._with = self._without = 0.0  # of all probes
        self._until_probe = 0

    def __call__(
        self, logits: Tensor, previous: Past | None, kl: frozenset[Divergence], uniform_start: bool
    ) -> Stats:
        if not kl:
            return reduce(logits, previous, kl, uniform_start)
        lap = Lap(logits.device)
        stats = reduce(logits, previous, kl, uniform_start)
        self._passes.append(lap.stop())
        if previous is not None:
            self._probe(logits, lap)
        return stats

    def _probe(self, logits: Tensor, whole: Lap) -> None:
        if self._until_probe == 0:
            lap = Lap(logits.device)
            reduce(logits)
            self._probes.append((whole, lap.stop()))
            self._until_probe = EVERY
        self._until_probe -= 1

    def spent(self) -> Spent:
        """Seconds since the last call; 0 for the KL before the first pass with a history."""
        probes = 0.0
        for whole, without in self._probes:
            probes += without.seconds
            self._with += whole.seconds
            self._without += without.seconds
        share = max(0.0, 1 - self._without / self._with) if self._with else 0.0
        kl = share * sum(lap.seconds for lap in self._passes)
        self._passes, self._probes = [], []
        return Spent(kl, probes)
