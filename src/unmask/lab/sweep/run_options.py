"""How to run a sweep, which no result depends on, and who hears of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from unmask.lab.ray.join import Cluster
from unmask.lab.sweep.plan import Work
from unmask.models.denoiser import Denoiser


class ProgressListener(Protocol):
    """Hears how far a sweep has come."""

    def begin(self, work: Work, done: int) -> None:
        """A trial is looked at; so many of its examples are there already."""
        ...

    def done(self, work: Work, count: int = 1) -> None:
        """More examples of a trial are there."""
        ...


@dataclass(frozen=True)
class RunOptions:
    """How to run, which no result depends on."""

    store: Path
    devices: tuple[str, ...] = ("cpu",)  # a worker each
    batch_size: int = 8
    data: Path | None = None
    traces: Path | None = None  # a folder for the traces of all examples
    cluster: Cluster | None = None  # its workers decode, whatever `devices` says
    imports: tuple[str, ...] = ()  # files and modules with parts that rules name


class LastModel:
    """The model that was loaded last; one at a time, since they are large."""

    def __init__(self) -> None:
        self._name: tuple[str, ...] = ()
        self._model: Denoiser | None = None

    def of(self, work: Work, device: str) -> Denoiser:
        """Load what a trial needs, unless it is there."""
        trial = work.trial
        name = (trial.weights, trial.dtype, trial.cache, device)
        if self._model is None or name != self._name:
            self._model = None  # let the old one go first
            self._model = work.subject.load(torch.device(device), trial.dtype, trial.cache)
            self._name = name
        return self._model
