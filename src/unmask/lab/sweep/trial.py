"""One way to decode one task with one model: everything that an answer depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from unmask.decoding.request import Eos, Settings
from unmask.decoding.sampling import Sampling
from unmask.rules.rule import Rule
from unmask.text.jsonl import sha_of

DECODING = 1  # raised when the same settings begin to give other tokens


@dataclass(frozen=True)
class Trial:
    """All examples of a trial are decoded alike, so trials are what is compared."""

    model: str  # as it was asked for
    weights: str  # fingerprint of the checkpoint
    dtype: str
    task: str
    version: int  # of the task's texts and extraction
    preset: str
    rule: str
    length: int
    block: int | None = None
    eos: Eos = "keep"
    cache: str = "none"
    steps: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    decoding: int = DECODING
    parts: str = ""  # fingerprint of the sources of the rule's parts, where they are not ours

    @cached_property
    def key(self) -> str:
        """A fingerprint; the model's name does not count, its weights do."""
        record = asdict(self)
        del record["model"]
        if not self.parts:  # as it was before there were any
            del record["parts"]
        return sha_of(record)

    @cached_property
    def settings(self) -> Settings:
        """As the loop takes them."""
        sampling = Sampling(self.temperature, self.top_p, self.top_k)
        return Settings(Rule.parse(self.rule), self.block, self.eos, sampling, self.steps)

    @property
    def window(self) -> str:
        """In words."""
        return "full window" if self.block is None else f"blocks of {self.block}"

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def of(cls, record: dict[str, Any]) -> Trial:
        """From JSON."""
        return cls(**record)
