"""Short trial runs: what a forward of a trial costs on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

from unmask.decoding.results import Step
from unmask.lab.sweep.plan import Work
from unmask.lab.sweep.run_options import LastModel, model_of
from unmask.models.denoiser import Denoiser
from unmask.models.load import usable_device
from unmask.models.memory import memory
from unmask.text.clock import timed_steps

SECONDS = 30.0  # for the trial runs of a sweep, all together
ENOUGH = 0.25  # of the masks must be filled to say how many forwards an example takes


@dataclass(frozen=True)
class TrialPace:
    """What one example of a trial costs."""

    seconds: float  # of one forward; in a batch, the example's share of it
    forwards: float | None = None  # None if the trial run ended too early to say


@dataclass
class TrialRuns:
    """Decodes a batch of each trial, for a while.

    The trials share `SECONDS`. When they are spent, a trial has the pace of another one of the same
    model and length; the first of these always makes a step.
    """

    trials: int  # to come
    device: str
    batch_size: int
    models: LastModel = field(default_factory=LastModel)
    spent: float = 0.0
    _paces: dict[object, TrialPace] = field(default_factory=dict)
    _warm: set[object] = field(default_factory=set)

    def of(self, work: Work) -> TrialPace | None:
        """The pace of a trial; None if its model is too large for this machine."""
        place, share = (model_of(work), work.trial.length), (SECONDS - self.spent) / self.trials
        self.trials -= 1
        if share <= 0 and place in self._paces:
            return TrialPace(self._paces[place].seconds)
        if not _fits(work, self.device):
            return None
        model = self.models.of(work, self.device)
        if model_of(work) not in self._warm:
            self._warm.add(model_of(work))
            self._timed(work, model, 0)  # pays for what a process does only once
        self._paces[place] = pace = self._timed(work, model, share)
        return pace

    def _timed(self, work: Work, model: Denoiser, limit: float) -> TrialPace:
        """Decode until the batch is finished or the seconds are over, at least one step."""
        few = work.asks[:: max(1, len(work.asks) // self.batch_size)][: self.batch_size]
        requests = [work.request(ask) for ask in few]
        begin, forwards, written = perf_counter(), 0, 0
        for step, _ in timed_steps(model, requests, self.batch_size):
            forwards += len(step.keys)
            written += _written(step)
            if perf_counter() - begin > limit:
                break
        seconds = perf_counter() - begin
        self.spent += seconds
        share = written / (work.trial.length * len(requests))
        return TrialPace(
            seconds / forwards, forwards / len(requests) / share if share >= ENOUGH else None
        )


def _written(step: Step) -> int:
    """The masks that a step filled, without those that it opened again."""
    filled = step.decision.chosen.sum() + step.filled.sum() - step.decision.revoked.sum()
    return int(filled)


def _fits(work: Work, device: str) -> bool:
    """Whether the weights of a checkpoint can be in the memory of the device."""
    checkpoint = work.session.checkpoint
    if checkpoint is None:
        return True
    size = sum(file.stat().st_size for file in checkpoint.folder.glob("*.safetensors"))
    place = usable_device(device)
    free, total = memory(place)
    return size < (free if place.type == "cuda" else total)
