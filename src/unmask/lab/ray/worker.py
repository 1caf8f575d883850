"""What runs on a cluster: a worker that holds a model and decodes the examples it is handed."""

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

Marks = dict[str, str]  # of every trial a fingerprint of the examples that it asks


@dataclass(frozen=True)
class Share:
    """What a worker has to know of a sweep; paths are those of every machine."""

    wanted: Wanted
    data: Path | None
    traces: Path | None
    folder: Path  # where a model's relative name begins
    path: tuple[str, ...]  # where the driver finds modules, and with them parts of rules
    device: str
    batch_size: int
    imports: tuple[str, ...] = ()  # files and modules with parts that rules name


@dataclass(frozen=True)
class Ready:
    """What a worker has found: the same sweep, one hopes."""

    host: str
    marks: Marks
    environment: dict[str, Any]


def marks_of(works: Sequence[Work]) -> Marks:
    """Equal where the weights, the tasks, the prompts and the settings are."""
    return {
        work.trial.key: sha_of([[ask.example, ask.asked] for ask in work.asks]) for work in works
    }


class Worker:
    """One process of the cluster. It never sees the store."""

    def __init__(self) -> None:
        self.works: dict[str, Work] = {}
        self.models = LastModel()
        self.inbox: SimpleQueue[AskedExample | None] = SimpleQueue()

    def prepare(self, share: Share) -> Ready | str:
        """Plan the sweep; what is wrong with it here is returned, for it may not pickle."""
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
                where += "; what you defined yourself must be installed on every machine"
            return where
        self.works = {work.trial.key: work for work in works}
        return Ready(socket.gethostname(), marks_of(works), here)

    def decode(
        self, key: str, asks: Sequence[AskedExample | None]
    ) -> Iterator[tuple[AskedExample, dict[str, Any]]]:
        """Decode examples of a trial as they are handed over, until there is a None."""
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
        """More examples of the trial that is being decoded, while it is; None ends it."""
        for ask in asks:
            self.inbox.put(ask)

    def _set_threads(self) -> None:
        if self.share.device == "cpu":  # every thread has a number of its own
            torch.set_num_threads(1)
