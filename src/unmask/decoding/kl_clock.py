"""The pass over the logits with its time clock: how much of it the KL takes."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor

from unmask.decoding.sparse import SparsePrevious
from unmask.kernels.reduce import Previous, Stats, reduce
from unmask.rules.view import KL

EVERY = 16  # passes with a KL to one that is made again without it


class Spent(NamedTuple):
    """Seconds of what was reduced since the last time that one asked."""

    kl: float
    probes: float  # passes that were made for the measurement alone


class Lap:
    """The time between two moments on a device: known once the device has come past the second."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._begin = self._end = self._moment()

    def stop(self) -> Lap:
        """The second moment is now, or on a GPU when it has done what it was told so far."""
        self._end = self._moment()
        return self

    @property
    def seconds(self) -> float:
        """A GPU must have been waited for."""
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
    """`reduce` unchanged, with the seconds that its KL adds to it.

    One pass makes the KL along with the rest, so it has no time of its own. The first pass with a
    history, and then one of sixteen, is therefore made again without the KL; what it saves, as a
    share, is the KL's of all passes. Nothing waits for a GPU: `spent` is asked after a step, which
    has.
    """

    def __init__(self) -> None:
        self._passes: list[Lap] = []  # since `spent` was asked
        self._probes: list[tuple[Lap, Lap]] = []  # with the KL and without
        self._with = self._without = 0.0  # of all probes
        self._until_probe = 0

    def __call__(
        self,
        logits: Tensor,
        previous: Previous | SparsePrevious | None,
        kl: frozenset[KL],
        uniform_start: bool,
    ) -> Stats:
        if not kl:
            return reduce(logits, previous, kl, uniform_start)
        lap = Lap(logits.device)
        found = reduce(logits, previous, kl, uniform_start)
        self._passes.append(lap.stop())
        if previous is not None:
            self._probe(logits, lap)
        return found

    def _probe(self, logits: Tensor, whole: Lap) -> None:
        if self._until_probe == 0:
            lap = Lap(logits.device)
            reduce(logits)
            self._probes.append((whole, lap.stop()))
            self._until_probe = EVERY
        self._until_probe -= 1

    def spent(self) -> Spent:
        """Since the last call; before the first history, nothing was compared."""
        probes = 0.0
        for whole, without in self._probes:
            probes += without.seconds
            self._with += whole.seconds
            self._without += without.seconds
        share = max(0.0, 1 - self._without / self._with) if self._with else 0.0
        kl = share * sum(lap.seconds for lap in self._passes)
        self._passes, self._probes = [], []
        return Spent(kl, probes)
