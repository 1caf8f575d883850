"""How long an answer may become if its length is left to the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from unmask.errors import RequestError


@dataclass(frozen=True)
class Growth:
    """How an answer of unknown length grows, in two stages (DAEDAL).

    First the canvas gets `factor` more masks per forward until its end is sure: the mean of
    p(EOS) over `ends` positions that predict EOS, the last ones, is at least `sure`. Then half as
    many EOS tokens are added and the rule decodes. As long as the end has less than `surer`, the
    least confident candidate that the step leaves, if it has less than `low`, becomes `factor`
    masks. An answer never has more than `most` positions; what lies after them is cut off.
    """

    start: int = 64
    most: int = 2048
    factor: int = 8
    sure: float = 0.5
    surer: float = 0.9
    low: float = 0.1
    ends: int = 32

    @classmethod
    def upto(cls, most: int) -> Growth:
        """Growth up to `most` positions; 2048 has the values of DAEDAL, others scale with it."""
        start = min(most, max(16, most // 32))
        return cls(start, most, max(2, most // 256), ends=max(4, most // 64))

    def __post_init__(self) -> None:
        for name in ("start", "most", "factor", "ends"):
            number = getattr(self, name)
            if not isinstance(number, int) or number < 1:
                raise RequestError(f"growth: {name} must be a whole number >= 1, got {number!r}")
        if self.start > self.most:
            raise RequestError(f"growth: start {self.start} is larger than most {self.most}")
        for name in ("sure", "surer", "low"):
            if not isfinite(getattr(self, name)):
                raise RequestError(f"growth: {name} must be finite, got {getattr(self, name)}")
