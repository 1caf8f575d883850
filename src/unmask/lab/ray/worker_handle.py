"""One worker of a cluster as its driver sees it: what it has in hand, and where its answers go."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from unmask.errors import LabError
from unmask.lab.ray.join import Slots
from unmask.lab.ray.worker import Marks, Ready, Share, Worker
from unmask.lab.sweep.decode import SIGN_OF_LIFE, claims
from unmask.lab.sweep.plan import Work
from unmask.lab.sweep.run_options import model_of
from unmask.lab.sweep.store import AskedExample, Store

HAND = "hand"  # calls that come through while a worker decodes


class WorkerHandle:
    """A worker, its place in the store, and the examples that were claimed for it.

    It is handed twice what fits into its batch, so that a place is taken at the next step.
    """

    def __init__(self, slots: Slots, share: Share, file: Path) -> None:
        self.ray, self.file = slots.ray, file
        kind = self.ray.remote(max_restarts=0, concurrency_groups={HAND: 1}, **slots.needs)(Worker)
        self.actor = kind.remote()
        self.pending: Any = self.actor.prepare.remote(share)  # what is heard of next
        self.batch_size = share.batch_size
        self.at_hand = 2 * share.batch_size
        self.store: Store | None = None
        self.work: Work | None = None
        self.open = False  # whether the trial may have more for it
        self._free: Iterator[AskedExample] = iter(())
        self._model: tuple[object, ...] = ()

    @property
    def idle(self) -> bool:
        """Ready, with nothing to do."""
        return self.pending is None

    def sign_in(self, marks: Marks) -> None:
        """The worker is there; it must have planned what we have."""
        ready: Ready | str = self.ray.get(self.pending)
        if isinstance(ready, str):
            raise LabError(f"a worker of the cluster cannot take part: {ready}")
        if ready.marks != marks:
            raise LabError(
                f"the worker on {ready.host} would decode something else: its weights, its data or "
                f"its unmask ({ready.environment['unmask']}) are not ours; make them equal"
            )
        self.store = Store(self.file)
        self.store.sign_in(ready.environment)

    def has_model_of(self, work: Work) -> bool:
        """Whether nothing has to be loaded for a trial."""
        return self._model == model_of(work)

    def begin(self, work: Work) -> bool:
        """Take what is free of a trial; False if that is nothing."""
        assert self.store is not None, "sign in first"
        self._free = claims(self.store, work, self.batch_size)
        asks: list[AskedExample | None] = [*islice(self._free, self.at_hand)]
        self.open = len(asks) == self.at_hand
        if not asks:
            return False
        self.work, self._model = work, model_of(work)
        decode = self.actor.decode.options(num_returns="streaming")
        self.pending = decode.remote(work.trial.key, asks if self.open else [*asks, None])
        return True

    def next_answer(self) -> tuple[AskedExample, dict[str, Any]] | None:
        """One more, which must be there; None where the trial is done."""
        try:
            answer: tuple[AskedExample, dict[str, Any]] = self.ray.get(next(self.pending))
        except StopIteration:
            return None
        return answer

    def keep(self, ask: AskedExample, record: dict[str, Any]) -> None:
        """Store an answer, and hand over another example for it."""
        assert self.store is not None
        assert self.work is not None
        self.store.finish(self.work.trial, ask, record)
        if self.open:
            more = next(self._free, None)
            self.open = more is not None
            self.actor.hand.options(concurrency_group=HAND).remote([more])

    def rest(self) -> None:
        """The trial is done."""
        self.work = self.pending = None

    def still_here(self) -> None:
        """A sign of life in the store, for what this worker holds."""
        if self.store is not None:
            self.store.still_here(SIGN_OF_LIFE)

    def leave(self) -> None:
        """End the worker; what it had is free at once. Twice does nothing more."""
        self.rest()
        self.ray.kill(self.actor)
        if self.store is not None:
            self.store.release()
            self.store.close()
            self.store = None
