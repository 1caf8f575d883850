"""How to run a sweep; no result depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unmask.lab.ray.join import Cluster
from unmask.lab.sweep.plan import Work
from unmask.models.denoiser import Denoiser
from unmask.text.session import Session


class ProgressListener(Protocol):
    """Receives the progress of a sweep."""

    def begin(self, work: Work, done: int) -> None:
        """Called once per trial; `done` of its examples are finished already."""
        ...

    def done(self, work: Work, count: int = 1) -> None:
        """Called when `count` more examples of a trial are finished."""
        ...


class Silent:
    """Ignores the progress of a sweep."""

    def begin(self, work: Work, done: int) -> None:
        pass

    def done(self, work: Work, count: int = 1) -> None:
        pass


@dataclass(frozen=True)
class RunOptions:
    """How to run a sweep; no result depends on it."""

    store: Path
    devices: tuple[str, ...] = ("cpu",)  # one worker per device
    batch_size: int = 8
    data: Path | None = None
    traces: Path | None = None  # a folder for the traces of all examples
    cluster: Cluster | None = None  # if given, its workers decode and `devices` is ignored
    imports: tuple[str, ...] = ()  # files and modules that define parts of rules
    memo: bool = False  # all trials in one batch, no canvas computed twice; seconds are shared


def model_of(work: Work) -> tuple[object, ...]:
    """Equal for trials that share a model: weights, dtype, cache and guidance."""
    trial = work.trial
    return trial.weights, trial.dtype, trial.cache, trial.guidance


class LastModel:
    """Loads one model at a time, since they are large."""

    def __init__(self) -> None:
        self._session: Session | None = None

    def of(self, work: Work, device: str) -> Denoiser:
        """The model of a trial on a device; frees the last one if it is another."""
        session = work.session
        if self._session is not None and self._session is not session:
            self._session.unload()
        self._session = session
        session.load_on(device)
        return session.model(work.setting.options)
