"""Trial: one way to decode one task with one model, with everything that an answer depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from unmask.decoding.lengths import Growth
from unmask.decoding.options import OPTIONS, DecodingOptions
from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling
from unmask.models.fingerprint import sha_of
from unmask.rules.spelling import for_file, for_key, from_file

DECODING = 1  # raised when the same settings give other tokens
# The options that every stored trial holds. Others are left out where they are not set, so that
# the key of a trial stays the same when an option is added.
_ALWAYS = ("rule", "length", "block", "eos", "steps", "temperature", "top_p", "top_k", "seed",
           "cache", "dtype")  # fmt: skip
_FIRST = ("model", "weights", "dtype", "task", "version", "preset", "rule", "length", "block",
          "eos", "cache")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Trial(DecodingOptions):
    """Resolved decoding options on a task. All examples of a trial are decoded alike.

    Here the rule is a text, the block None is the full window, and the dtype may be `stored`.
    """

    model: str  # as the user named it
    weights: str  # fingerprint of the checkpoint
    task: str
    version: int  # of the task's texts and extraction
    preset: str
    rule: str = ""
    length: int = 0
    dtype: str = "stored"
    block: int | None = None
    eos: Any = "keep"
    cache: str = "none"
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    decoding: int = DECODING
    parts: str = ""  # fingerprint of the sources of users' parts in the rule
    timing: str = ""  # of a timed run: all that its seconds depend on, in words

    def __post_init__(self) -> None:
        """Skip the checks: the options of a trial are resolved, or come from a store."""

    @cached_property
    def key(self) -> str:
        """A fingerprint of everything but the model's name, which its weights stand for."""
        record = self.record()
        record["rule"] = for_key(self.rule)
        del record["model"]
        for name in ("parts", "timing"):  # the key of a trial without them does not know them
            if not record[name]:
                del record[name]
        return sha_of(record)

    @cached_property
    def settings(self) -> Settings:
        """As the loop takes them."""
        sampling = Sampling(self.temperature, self.top_p, self.top_k, bool(self.tempered))
        growth = None if self.longest is None else Growth.upto(self.longest)
        return Settings(
            self.parsed_rule,
            self.sub_block or self.block,
            self.eos,
            sampling,
            self.steps,
            False,
            self.history,
            growth,
        )

    @property
    def window(self) -> str:
        """In words."""
        return "full window" if self.block is None else f"blocks of {self.block}"

    def record(self) -> dict[str, Any]:
        """For JSON. The order of the names is the order in which reports sort trials."""
        values = {
            name: value
            for name, value in asdict(self).items()
            if name not in OPTIONS or name in _ALWAYS or value is not None
        }
        values["rule"] = for_file(self.rule)
        return {name: values.pop(name) for name in _FIRST} | values

    @classmethod
    def of(cls, record: dict[str, Any]) -> Trial:
        """From JSON."""
        return cls(**{**record, "rule": from_file(record["rule"])})
