"""Lanes: canvases of like width share their forwards, and the lanes share the time."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log

from unmask.models.caches import Cached
from unmask.models.denoiser import Denoiser

NARROW, FACTOR = 128, 4  # positions of the first lane; each next lane is this much wider


def lane_of(positions: int) -> int:
    """0 for a canvas of up to 128 positions, 1 up to 512, 2 up to 2048, and so on."""
    return max(0, ceil(log(positions / NARROW, FACTOR)))


def can_take_turns(model: Denoiser | None) -> bool:
    """Whether rows may miss a forward of other rows; a cache forgets rows that do."""
    while model is not None and not isinstance(model, Cached):
        model = getattr(model, "model", None)
    return model is None


class TimeShares:
    """Which lane takes the next step: the one whose requests have had the least time each.

    A forward is as wide as its widest row. In one batch a canvas of 1,000 positions would slow down
    short ones twenty times; in lanes of their own they go on in their share of the time.
    """

    def __init__(self) -> None:
        self._spent: dict[int, float] = {}  # seconds per request of each lane with rows

    def next_lane(self, lanes: Iterable[int]) -> int:
        """The lane of the next step, out of those that have rows; a new lane begins level."""
        lanes = list(lanes)
        level = min((self._spent[lane] for lane in lanes if lane in self._spent), default=0.0)
        self._spent = {lane: self._spent.get(lane, level) for lane in lanes}
        return min(self._spent, key=lambda lane: (self._spent[lane], lane))

    def spend(self, lane: int, seconds: float, requests: int) -> None:
        """Count a step of a lane that has rows of so many requests."""
        self._spent[lane] += seconds / max(1, requests)
