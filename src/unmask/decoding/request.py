"""Settings and requests, checked before the first forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral

import torch
from torch import Tensor

from unmask.decoding.constrain import check_language
from unmask.decoding.lengths import Growth
from unmask.decoding.options import EOS_POLICIES, MOST, Eos
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError, UnknownName, shown
from unmask.languages.automaton import TokenAutomaton
from unmask.models.denoiser import ModelSpec
from unmask.rules.rule import Rule


@dataclass(frozen=True)
class Settings:
    """How to decode; rows with equal settings share one decision.

    Args:
        rule: what to commit in each step.
        block: positions per block, left to right; None decodes the full window at once.
        eos: what the end-of-text token does.
            keep: nothing special. suppress: never predicted. last: ranked after all other tokens.
            stop: the row ends once everything before its first EOS is fixed.
            block: the row ends with the block that holds the first EOS (dInfer).
            fill: after each step everything after the first EOS becomes EOS (Fast-dLLM).
        sampling: how tokens are drawn.
        steps: finish within this many forwards, committing more per step where needed.
        allow_mask: let the model predict the mask token; only for comparison with other code.
        history: keep this many of the likeliest tokens of the last forward and the mass of the
            others, instead of all logits. It takes less memory, and the KL may be too low by up to
            `Result.kl_error`.
        growth: how the canvas grows where the length is left to the model (`length="auto"`).
        language: what the answer must be in; see `unmask.languages`.
    """

    rule: Rule
    block: int | None = None
    eos: Eos = "keep"
    sampling: Sampling = field(default_factory=Sampling)
    steps: int | None = None
    allow_mask: bool = False
    history: int | None = None
    growth: Growth | None = None
    language: TokenAutomaton | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.sampling, Sampling):
            raise RequestError(
                f"sampling must be a Sampling(temperature, ...), got {shown(self.sampling)}"
            )
        if not isinstance(self.rule, Rule):
            given = shown(self.rule)
            raise RequestError(f"rule must be a Rule, such as Rule.parse(text), got {given}")
        if not isinstance(self.language, TokenAutomaton | None):
            raise RequestError(
                f"language must be a TokenAutomaton, as Session makes it of a text, got "
                f"{shown(self.language)}"
            )
        _check_whole(block=self.block, steps=self.steps, history=self.history)
        meanings = {"block": "full window", "steps": "no limit", "history": "all"}  # of None
        for name, otherwise in meanings.items():
            number = getattr(self, name)
            if number is not None and number < 1:
                raise RequestError(f"{name} must be >= 1, or None ({otherwise}), got {number}")
        if self.history is not None and self.rule.needs.drift:
            raise RequestError(
                "revoke compares with all logits at commit; leave out history, or revoke"
            )
        if self.growth is not None and self.steps is not None:
            raise RequestError("steps needs a length; leave out steps, or length auto")
        if self.eos not in EOS_POLICIES:
            raise UnknownName("EOS policy", self.eos, EOS_POLICIES)


@dataclass(frozen=True)
class Request:
    """One canvas to fill: token ids, with masks where the model is to write."""

    canvas: Tensor  # [L] int64
    settings: Settings
    seed: int = 0
    length: int | None = None  # tokens of the answer that are wanted; None: all

    @property
    def positions(self) -> int:
        """The most positions that the canvas may have; more than now if it grows."""
        growth = self.settings.growth
        return len(self.canvas) + (0 if growth is None else growth.most - growth.start)


def prompt_request(
    spec: ModelSpec,
    prompt: Sequence[int] | Tensor,
    length: int,
    settings: Settings,
    seed: int = 0,
    suffix: Sequence[int] | Tensor = (),
) -> Request:
    """A prompt followed by `length` masks and a suffix; by fewer masks where the canvas grows.

    Then `length` is the most tokens that are wanted.
    """
    _check_kinds(spec, settings)
    ids, after = _checked_ids(spec, prompt), _checked_ids(spec, suffix)
    if len(after) and (settings.growth is not None or spec.block is not None):
        reason = f"{spec.name} attends in blocks" if spec.block else "the length is auto"
        raise RequestError(f"{reason}, so no text can stand behind the answer; leave out suffix")
    _check_whole(length=length)
    if length < 1:
        raise RequestError(f"length must be >= 1, got {length}")
    if len(ids) == 0:
        raise RequestError("the prompt is empty; give at least one token id (for example BOS)")
    held = (torch.cat([ids, after]) == spec.mask_id).nonzero()
    if len(held):
        raise RequestError(
            f"the prompt already holds mask id {spec.mask_id} at position {int(held[0])}; "
            "it would be overwritten; use infill to fill masks inside a text"
        )
    growth = settings.growth
    end = len(ids) + (length if growth is None else min(growth.start, length))
    if growth is not None and spec.block is not None:
        raise RequestError(f"{spec.name} attends in blocks, so it needs a length; auto is refused")
    if spec.block is not None and not spec.from_prompt_end:  # a block-causal model fills blocks
        end = -(-end // spec.block) * spec.block
    masks = ids.new_full((end - len(ids),), spec.mask_id)
    return _checked(spec, Request(torch.cat([ids, masks, after]), settings, seed, length))


def infill_request(
    spec: ModelSpec, canvas: Sequence[int] | Tensor, settings: Settings, seed: int = 0
) -> Request:
    """A canvas with masks anywhere: before, between and after fixed tokens."""
    _check_kinds(spec, settings)
    ids = _checked_ids(spec, canvas)
    if settings.growth is not None:
        raise RequestError("length auto is for a prompt; a canvas with masks already has a length")
    if not bool((ids == spec.mask_id).any()):
        raise RequestError(
            f"the canvas holds no mask (id {spec.mask_id}); there is nothing to fill"
        )
    return _checked(spec, Request(ids, settings, seed))


def _check_kinds(spec: object, settings: object) -> None:
    if not isinstance(spec, ModelSpec):
        raise RequestError(f"spec must be a model's spec, a ModelSpec, got {shown(spec)}")
    if not isinstance(settings, Settings):
        raise RequestError(f"settings must be a Settings(rule, ...), got {shown(settings)}")


def _check_whole(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise RequestError(f"{name} must be a whole number, got {shown(number)}")
        if number is not None and name != "seed" and number > MOST:
            raise RequestError(f"{name} must be at most {MOST}, got {number}")


def _checked_ids(spec: ModelSpec, tokens: Sequence[int] | Tensor) -> Tensor:
    if isinstance(tokens, str | bytes):
        raise RequestError(
            "a prompt is a list of token ids here, got a text; give tokenizer.encode(text), or use "
            "unmask.Session, which takes texts"
        )
    try:
        ids = torch.as_tensor(tokens)
    except (TypeError, ValueError, RuntimeError) as error:
        raise RequestError(f"token ids must be a flat list of whole numbers: {error}") from None
    whole = not (ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype == torch.bool)
    if ids.ndim != 1 or (len(ids) and not whole):
        raise RequestError(
            f"token ids must be a flat list of whole numbers, got {ids.dtype} of shape "
            f"{tuple(ids.shape)}"
        )
    ids = ids.long()
    unknown = ((ids < 0) | (ids >= spec.vocab_size)).nonzero()
    if len(unknown):
        place = int(unknown[0])
        raise RequestError(
            f"unknown token id {int(ids[place])} at position {place}; {spec.name} knows "
            f"0..{spec.vocab_size - 1}"
        )
    return ids.clone()


def _count_windows(spec: ModelSpec, settings: Settings, holes: Tensor) -> int:
    """How many windows with masks a row has; each takes a forward: [N] positions of masks."""
    from_zero = spec.block is not None and not spec.from_prompt_end
    grid = 0 if from_zero else int(holes[0])
    width = settings.block or spec.block or int(holes[-1] - holes[0]) + 1
    leads = int((holes % (spec.block or 1) == 0).sum()) if spec.lead else 0
    return len(torch.unique((holes - grid) // width)) + leads


def _checked(spec: ModelSpec, request: Request) -> Request:
    settings = request.settings
    _check_whole(seed=request.seed)
    if request.seed is None or not 0 <= request.seed < 2**63:
        raise RequestError(f"seed must be in [0, 2^63), got {shown(request.seed)}")
    if spec.block is not None and spec.block % (settings.block or 1):
        raise RequestError(
            f"{spec.name} attends in blocks of {spec.block}, so it decodes in them or in equal "
            f"parts of them, not in blocks of {settings.block}; load it with another block"
        )
    holes = (request.canvas == spec.mask_id).nonzero()[:, 0]
    length = int(holes[-1] - holes[0]) + 1
    if settings.growth is not None:
        length = settings.growth.most
    if spec.block is None and settings.block is not None and settings.block > length:
        raise RequestError(
            f"block {settings.block} is larger than the answer of {length} positions; "
            "use a smaller block, or leave it out for the full window"
        )
    if settings.steps is not None:
        blocks = _count_windows(spec, settings, holes)
        if settings.steps < blocks:
            raise RequestError(
                f"steps {settings.steps} is too few for {blocks} blocks, which take a forward "
                "each; give more steps or a larger block"
            )
    settings.rule.for_model(spec)  # raises if a part does not fit
    if settings.growth is not None and spec.eos_id is None:
        raise RequestError(f"length auto needs an EOS token, and {spec.name} has none")
    if settings.eos != "keep" and spec.eos_id is None:
        raise RequestError(f"eos={settings.eos!r} needs an EOS token, and {spec.name} has none")
    check_language(spec, request)
    return request


def check_batch_size(batch_size: int) -> None:
    """Raise unless this many rows can decode at once."""
    if not isinstance(batch_size, Integral) or not 1 <= batch_size <= MOST:
        raise RequestError(
            f"batch_size must be a whole number from 1 to {MOST}, got {shown(batch_size)}"
        )


def longest_first(lengths: Sequence[int]) -> list[int]:
    """The numbers of requests of these lengths, the longest first."""
    return sorted(range(len(lengths)), key=lambda number: -lengths[number])
