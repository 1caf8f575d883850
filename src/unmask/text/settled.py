"""What of a row's answer no later step can change, while the row still decodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unmask.decoding.request import Request
from unmask.models.denoiser import ModelSpec


@dataclass(frozen=True)
class Span:
    """The positions of a row's answer; of a canvas that is filled, all positions.

    A position is final once it and all before it are committed; with a rule that takes
    commitments back, once its window is closed as well.
    """

    first: int
    last: int  # one past the last
    mask_id: int
    stop_ids: tuple[int, ...]  # what ends an answer; none does so in a canvas that is filled
    revokes: bool

    @classmethod
    def of(cls, spec: ModelSpec, request: Request) -> Span:
        """Of a request before its first step."""
        revokes = request.settings.rule.revoke is not None
        if request.length is None:
            return cls(0, len(request.canvas), spec.mask_id, (), revokes)
        first = int((request.canvas == spec.mask_id).nonzero()[0])
        return cls(first, first + request.length, spec.mask_id, spec.stop_ids, revokes)

    def final(self, ids: Sequence[int], window: int) -> tuple[list[int], bool]:
        """The final tokens up to an end token, and whether the answer ends with them.

        Args:
            ids: the canvas after a step.
            window: the first position of the window that was open in it.
        """
        end = min(self.last, window) if self.revokes else self.last
        for place in range(self.first, end):
            token = ids[place]
            if token == self.mask_id or token in self.stop_ids:
                return list(ids[self.first : place]), token in self.stop_ids
        return list(ids[self.first : end]), end == self.last
