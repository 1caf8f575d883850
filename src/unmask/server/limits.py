"""Limits of one request, so that no request takes the server from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unmask.decoding.options import DecodingOptions
from unmask.errors import RequestError, RuleError
from unmask.rules.notation import read
from unmask.rules.recipes import RECIPES
from unmask.rules.registry import Kind

MOST_PARTS = 8  # of a rule
MOST_WHOLE = 4096  # of a whole number in a rule, such as steps or positions
MOST_TRAIL = 64  # forwards that a rule may look back; each is kept for every position
MOST_BYTES = 16  # of a prompt per token that it may have; ordinary text has about four


class OverLimit(RequestError):  # noqa: N818  (reads as the sentence it prints)
    """A request that is too large.

    `part` is what is too large: "length" or "prompt". For a request that is already decoding, it
    is the field that sets how much the request writes.
    """

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


@dataclass(frozen=True)
class RequestLimits:
    """Limits of a request; the last three are checked while it decodes, the others before."""

    length: int = 1024  # tokens to write, or masks to fill, per choice
    prompt: int = 4096  # prompt tokens per choice
    choices: int = 8  # rows of one request: prompts times n
    cost: float = 1e7  # forwards times positions of all rows of a request
    decode_seconds: float = 1800.0  # of a request, from its first row's start
    forwards: int = 4096  # of one row; a rule that revokes commitments might never end
    body: int = 2**18  # bytes of a request
    seconds: float = 30.0  # for the body to arrive
    step_seconds: float = 120.0  # of one step, before the engine counts as stuck

    def __post_init__(self) -> None:
        for name in ("length", "prompt"):
            if getattr(self, name) < 1:
                raise RequestError(f"--max-{name} must be >= 1, got {getattr(self, name)}")
        options = {
            "cost": "max-cost",
            "decode_seconds": "max-seconds",
            "step_seconds": "step-timeout",
        }
        for name, option in options.items():
            if not getattr(self, name) > 0:
                raise RequestError(f"--{option} must be > 0, got {getattr(self, name):g}")

    def check_bytes(self, prompt: int, infill: bool) -> None:
        """Raise if a prompt of this many bytes cannot fit; checked before it is tokenized."""
        most = MOST_BYTES * (self.prompt + (self.length if infill else 0))
        if prompt > most:
            raise OverLimit(
                "prompt",
                f"the prompt has {prompt} bytes; this server takes at most {most}, which is "
                f"{MOST_BYTES} for each of its {most // MOST_BYTES} tokens",
            )

    def check_size(self, prompt: int, masks: int) -> None:
        """Raise if a canvas has more prompt tokens or more masks than allowed."""
        if masks > self.length:
            most = f"this server writes at most {self.length}"
            raise OverLimit("length", f"{masks} tokens to write; {most}")
        if prompt > self.prompt:
            most = f"this server takes at most {self.prompt}"
            raise OverLimit("prompt", f"the prompt has {prompt} tokens; {most}")


def check_rule(text: str, options: DecodingOptions) -> None:
    """Raise unless a request may give this rule, or name this recipe.

    The knobs are checked before `options` make the parts: a request may not name a file, and its
    numbers stay small.
    """
    if options.asks_for_the_recommended:
        return
    recipe = RECIPES.get(text.strip())
    if recipe is None and ("{" in text or "}" in text):
        raise RuleError("a request takes one rule; braces stand for several")
    parts = read(text if recipe is None else recipe.rule)
    if len(parts) > MOST_PARTS:
        raise RuleError(f"the rule has {len(parts)} parts; a request may have {MOST_PARTS}")
    for kind, knobs in parts:
        _check_knobs(kind, knobs)
    trail = options.parsed_rule.needs.trail
    if trail > MOST_TRAIL:
        raise RuleError(
            f"the rule looks back {trail} forwards; a request may look back {MOST_TRAIL}"
        )


def _check_knobs(kind: Kind, knobs: dict[str, Any]) -> None:
    for argument in kind.arguments:
        value = knobs.get(argument.name, argument.default)
        if argument.kind is str and value != argument.default:
            raise RuleError(
                f"{kind.name}: a request cannot set {argument.name}, since such a text names a "
                "file or a token of this server's model; set it in the server's own --rule"
            )
        if argument.kind is int and isinstance(value, int) and value > MOST_WHOLE:
            raise RuleError(
                f"{kind.name}: {argument.name} must be <= {MOST_WHOLE} in a request, got {value}"
            )
