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
    memo: bool = False  # all trials in one batch, no canvas computed twice, no seconds measured


def model_of(work: Work) -> tuple[str, ...]:
    """What a trial's model is loaded from: weights, dtype and cache."""
    return work.trial.weights, work.trial.dtype, work.trial.cache


class LastModel:
    """Keeps the model that was loaded last; one at a time, since models are large."""

    def __init__(self) -> None:
        self._name: tuple[str, ...] = ()
        self._model: Denoiser | None = None

    def of(self, work: Work, device: str) -> Denoiser:
        """The model of a trial, loaded unless it is there already."""
        trial, name = work.trial, (*model_of(work), device)
        if self._model is None or name != self._name:
            self._model = None  # frees its memory before the next one is loaded
            self._model = work.subject.load(torch.device(device), trial.dtype, trial.cache)
            self._name = name
        return self._model
