"""The rule for a model if none is asked for: which, with what, and who says so.

This is the one place to edit. Sources are in docs/recommended.md.
"""

from __future__ import annotations

from dataclasses import dataclass

RECOMMENDED = "recommended"  # as `--rule` spells it


@dataclass(frozen=True)
class Recommendation:
    """A rule with the block or its parts and the EOS policy that belong to it."""

    rule: str
    source: str  # who recommends it, for a message
    block: int | None = None  # of a model that attends to everything at once
    eos: str = "keep"
    sub_block: int | None = None  # of a model that attends in blocks

    @property
    def words(self) -> str:
        """In one line."""
        block = "" if self.block is None else f" in blocks of {self.block}"
        parts = "" if self.sub_block is None else f" in parts of {self.sub_block}"
        eos = "" if self.eos == "keep" else f", eos {self.eos}"
        return f"{self.rule}{block}{parts}{eos} ({self.source})"


_SWD = "confidence | swd(1) | eb(0.1)"
_DLLM = "the publisher's sampler, one token per forward"
GENERAL = Recommendation(_SWD, "SWD paper, block 32; nothing is published for this model", 32)
_ALL = {
    "embedded": Recommendation("entropy | threshold(-0.1)", "measured, docs/recommended.md", 16),
    "llada": Recommendation(_SWD, "SWD paper, LLaDA in blocks of 32", 32),
    "dream": Recommendation(_SWD, "SWD paper, Dream in blocks of 32", 32),
    "llada-moe": Recommendation("confidence | top(1)", "LLaDA's generate.py", 32),
    "llada2": Recommendation(
        "confidence | threshold(0.95)", "the publisher's generate()", eos="block"
    ),
    "sdar": Recommendation(
        "confidence | threshold(0.85)", "the publisher's low_confidence_dynamic", eos="block"
    ),
    "a2d-qwen3": Recommendation("confidence | top(1)", _DLLM, 32, eos="stop"),
    "a2d-qwen3-bd3lm": Recommendation("confidence | top(1)", _DLLM, eos="block"),
    "opdlm": Recommendation("confidence | top(1)", _DLLM, eos="block"),
    "a2d-qwen2": Recommendation("confidence | top(1)", _DLLM, 32, eos="stop"),
    "a2d-qwen2-bd3lm": Recommendation("confidence | top(1)", _DLLM, eos="block"),
    "open-dcoder": Recommendation("entropy | top(1)", "the publisher's sampler, in blocks", 32),
    "fast-dllm-v2": Recommendation(
        "confidence | threshold(0.9)", "the publisher's card", eos="stop", sub_block=8
    ),
    "modernbert-chat": Recommendation("confidence | top(1)", _DLLM, 32, eos="stop"),
    "diffugpt": Recommendation(
        "random | top(1)", "the publisher's random order, greedy and in blocks", 32
    ),
}
# A base model writes on after its answer, so no EOS ends it.
_BASE = {
    "llada": Recommendation(_SWD, "SWD paper, block 32; measured on the Instruct model", 32),
    "dream": Recommendation(_SWD, "SWD paper, block 32; measured on the Instruct model", 32),
}


def recommendation(family: str, base: bool = False) -> Recommendation:
    """The recommendation for a family; base models may have their own."""
    return (_BASE.get(family) if base else None) or _ALL.get(family, GENERAL)
