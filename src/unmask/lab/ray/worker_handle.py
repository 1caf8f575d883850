"""The driver's handle on one worker: its trial, its claimed examples and its place in the store."""

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

HAND = "hand"  # the group of calls that a worker answers while it decodes


class WorkerHandle:
    """A worker, its place in the store, and the examples that were claimed for it.

    It gets twice as many examples as its batch has rows, so that no row stays empty.
    """

    def __init__(self, slots: Slots, share: Share, file: Path) -> None:
        self.ray, self.file = slots.ray, file
        kind = self.ray.remote(max_restarts=0, concurrency_groups={HAND: 1}, **slots.needs)(Worker)
        self.actor = kind.remote()
        self.pending: Any = self.actor.prepare.remote(share)  # the call whose result comes next
        self.batch_size = share.batch_size
        self.at_hand = 2 * share.batch_size
        self.store: Store | None = None
        self.work: Work | None = None
        self.open = False  # whether the trial may have more free examples
        self._free: Iterator[AskedExample] = iter(())
        self._model: tuple[object, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether the worker is ready and has no trial."""
        return self.pending is None

    def sign_in(self, marks: Marks) -> None:
        """Check that the worker has planned the same sweep, and register it in the store."""
        ready: Ready | str = self.ray.get(self.pending)
        if isinstance(ready, str):
            raise LabError(f"a worker of the cluster cannot take part: {ready}")
        if ready.marks != marks:
            raise LabError(
                f"the worker on {ready.host} has other weights, other data or another unmask "
                f"({ready.environment['unmask']}); make them equal to those of this machine"
            )
        self.store = Store(self.file)
        self.store.sign_in(ready.environment)

    def has_model_of(self, work: Work) -> bool:
        """Whether the worker has the model of a trial loaded."""
        return self._model == model_of(work)

    def begin(self, work: Work) -> bool:
        """Claim free examples of a trial and start to decode them; False if none is free."""
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
        """The next answer, which must be ready; None if the trial is done."""
        try:
            answer: tuple[AskedExample, dict[str, Any]] = self.ray.get(next(self.pending))
        except StopIteration:
            return None
        return answer

    def keep(self, ask: AskedExample, record: dict[str, Any]) -> None:
        """Store an answer and send the worker another example."""
        assert self.store is not None
        assert self.work is not None
        self.store.finish(self.work.trial, ask, record)
        if self.open:
            more = next(self._free, None)
            self.open = more is not None
            self.actor.hand.options(concurrency_group=HAND).remote([more])

    def rest(self) -> None:
        """Forget the current trial."""
        self.work = self.pending = None

    def still_here(self) -> None:
        """Write a sign of life for the worker's claims."""
        if self.store is not None:
            self.store.still_here(SIGN_OF_LIFE)

    def leave(self) -> None:
        """End the worker and give up its claims; a second call does nothing."""
        self.rest()
        self.ray.kill(self.actor)
        if self.store is not None:
            self.store.release()
            self.store.close()
            self.store = None
