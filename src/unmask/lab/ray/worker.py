"""A worker of the cluster: holds a model and decodes the examples that it is handed."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch

from unmask.errors import LabError, UnknownName, UnmaskError
from unmask.lab.sweep.decode import decoded
from unmask.lab.sweep.environment import environment
from unmask.lab.sweep.plan import Wanted, Work, planned
from unmask.lab.sweep.run_options import LastModel
from unmask.lab.sweep.store import AskedExample
from unmask.models.fingerprint import sha_of
from unmask.rules.plugins import import_parts

Marks = dict[str, str]  # for every trial a fingerprint of its examples


@dataclass(frozen=True)
class Share:
    """The data of a sweep that every worker gets; paths must exist on every machine."""

    wanted: Wanted
    data: Path | None
    traces: Path | None
    folder: Path  # the folder that relative paths of models start from
    path: tuple[str, ...]  # the driver's sys.path, for modules with parts of rules
    device: str
    batch_size: int
    imports: tuple[str, ...] = ()  # files and modules that define parts of rules


@dataclass(frozen=True)
class Ready:
    """The reply of a worker that has planned the sweep."""

    host: str
    marks: Marks
    environment: dict[str, Any]


def marks_of(works: Sequence[Work]) -> Marks:
    """Equal if the weights, tasks, prompts and settings are equal."""
    return {
        work.trial.key: sha_of([[ask.example, ask.asked] for ask in work.asks]) for work in works
    }


class Worker:
    """One process of the cluster. It does not use the store."""

    def __init__(self) -> None:
        self.works: dict[str, Work] = {}
        self.models = LastModel()
        self.inbox: SimpleQueue[AskedExample | None] = SimpleQueue()

    def prepare(self, share: Share) -> Ready | str:
        """Plan the sweep. An error is returned as text, since it may not pickle."""
        if share.folder.is_dir():
            os.chdir(share.folder)
        sys.path += [each for each in share.path if each not in sys.path]
        self.share = share
        self._set_threads()
        try:
            for name in share.imports:
                import_parts(name)
            works = planned(share.wanted, share.data)
            here = environment(torch.device(share.device), share.batch_size)
        except UnmaskError as error:
            where = f"{socket.gethostname()}: {error}"
            if isinstance(error, UnknownName):
                where += "; install your own parts on every machine"
            return where
        self.works = {work.trial.key: work for work in works}
        return Ready(socket.gethostname(), marks_of(works), here)

    def decode(
        self, key: str, asks: Sequence[AskedExample | None]
    ) -> Iterator[tuple[AskedExample, dict[str, Any]]]:
        """Decode examples of a trial as they arrive, until None arrives."""
        work, share = self.works[key], self.share
        self._set_threads()
        self.inbox = SimpleQueue()
        self.hand(asks)
        try:
            model = self.models.of(work, share.device)
            jobs = ((work, ask) for ask in iter(self.inbox.get, None))
            tokenizer = work.session.tokenizer
            records = decoded(model, tokenizer, jobs, share.batch_size, share.traces)
            yield from ((ask, record) for (_, ask), record in records)
        except UnmaskError as error:
            raise LabError(f"{socket.gethostname()}: {error}") from None

    def hand(self, asks: Sequence[AskedExample | None]) -> None:
        """Take more examples of the current trial; None ends it."""
        for ask in asks:
            self.inbox.put(ask)

    def _set_threads(self) -> None:
        if self.share.device == "cpu":  # torch keeps this number per thread
            torch.set_num_threads(1)
