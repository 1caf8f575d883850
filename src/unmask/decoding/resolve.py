"""Resolves decoding options against a model: the one place where open values get their defaults.

An open value is filled in, in this order:

1. what the user asked for;
2. the block of a block-causal model, since it attends in it;
3. the block and the length of the recipe, if the rule is the name of one and it has them;
   the rule, block and EOS policy that are recommended for the model, if no rule was asked for;
4. the preset's, if a task is decoded;
5. 256 tokens, the full window, and the defaults of `Sampling`.

A block of a recipe or preset that is not shorter than the answer is the full window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from unmask.decoding.lengths import Growth
from unmask.decoding.options import SAMPLING, DecodingOptions
from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError
from unmask.languages.automaton import TokenAutomaton
from unmask.models.denoiser import ModelSpec
from unmask.models.recommended import GENERAL, Recommendation
from unmask.rules.spelling import for_file

USUAL = DecodingOptions(length=256)
MORE = 8  # times the usual length is the most of an answer whose length is left to the model


@dataclass(frozen=True)
class Resolved:
    """Options with every open value filled in."""

    settings: Settings
    length: int  # tokens to write, unless masks are filled
    spec: ModelSpec  # of the model; a block-causal one with the block that was asked for
    seed: int
    recommended: Recommendation | None = None  # as it is used; None if a rule was asked for

    @property
    def block(self) -> int | None:
        """Positions per block; None is the full window."""
        return self.spec.block or self.settings.block

    @property
    def sub_block(self) -> int | None:
        """Positions per part of a block-causal model's block; None is the whole block."""
        return None if self.spec.block is None else self.settings.block

    def record(self) -> dict[str, Any]:
        """Every resolved option by its name, for JSON; the rule as files hold it."""
        settings = self.settings
        return {
            "rule": for_file(settings.rule),
            "length": self.length,
            "block": self.block,
            "eos": settings.eos,
            "steps": settings.steps,
            "history": settings.history,
            **vars(settings.sampling),
            "seed": self.seed,
            **({} if settings.growth is None else {"longest": settings.growth.most}),
            **({} if self.sub_block is None else {"sub_block": self.sub_block}),
            **({} if settings.language is None else {"language": settings.language.name}),
        }


def resolve(
    options: DecodingOptions,
    spec: ModelSpec,
    defaults: DecodingOptions = USUAL,
    *,
    infill: bool = False,
    loaded: bool = False,
    language: TokenAutomaton | None = None,
) -> Resolved:
    """Settings and length of an answer.

    Args:
        options: what the user asked for.
        spec: the model.
        defaults: values for what options, model and recipe leave open, such as a preset's.
        infill: masks are filled wherever they stand, so there is no length.
        loaded: the model is in memory, so that the block it attends in is fixed.
        language: the options' language over the tokens of the model.
    """
    if options.language is not None and language is None:
        raise RequestError("a language needs the tokenizer of the model; use unmask.Session")
    recommended = None
    if options.asks_for_the_recommended:
        recommended = spec.recommended or GENERAL
        options = replace(options, rule=recommended.rule)
        if not infill:
            defaults = _belonging(recommended, spec, defaults)
    growth = _growth(options, defaults)
    asked = options.length or options.defaults.length or defaults.length or 0
    length = growth.most if growth else int(asked)
    block = _block(options, defaults, spec, None if infill else length)
    if spec.block is not None:
        if loaded and block != spec.block:
            raise RequestError(
                f"{spec.name} attends in blocks of {spec.block}, so it decodes in them, not in "
                f"blocks of {block}; load it with another block to change both"
            )
        usual = defaults.sub_block if block and not block % (defaults.sub_block or 1) else None
        spec, block = replace(spec, block=block), options.sub_block or usual
    elif options.sub_block is not None:
        raise RequestError(
            f"sub_block is for models that attend in blocks, and {spec.name} does not; give block"
        )
    given = {name: getattr(options, name) for name in SAMPLING}
    sampling = {
        name: getattr(defaults, name) if value is None else value for name, value in given.items()
    }
    settings = Settings(
        options.parsed_rule,
        block,
        options.eos or defaults.eos or "keep",
        Sampling(**{name: value for name, value in sampling.items() if value is not None}),
        options.steps,
        history=options.history,
        growth=growth,
        language=language,
    )
    if recommended is not None:
        recommended = _as_used(recommended, settings, spec)
    return Resolved(settings, length, spec, options.seed or 0, recommended)


def _as_used(recommended: Recommendation, settings: Settings, spec: ModelSpec) -> Recommendation:
    """The recommendation with the block and the EOS policy that are used, asked for or not."""
    own, parts = (settings.block, None) if spec.block is None else (None, settings.block)
    return replace(recommended, block=own, sub_block=parts, eos=settings.eos)


def _belonging(
    recommended: Recommendation, spec: ModelSpec, defaults: DecodingOptions
) -> DecodingOptions:
    """The defaults with the block, its parts and the EOS policy of a recommended rule."""
    eos = recommended.eos if spec.eos_id is not None else "keep"
    more = {"sub_block": recommended.sub_block} if spec.block is not None else {}
    return defaults.changed({"block": recommended.block or "full", "eos": eos, **more})


def _growth(options: DecodingOptions, usual: DecodingOptions) -> Growth | None:
    """How the canvas grows; None if the length is a number."""
    if (options.length or options.defaults.length or usual.length) != "auto":
        if options.longest is not None:
            raise RequestError("longest is for length auto; leave it out, or give length auto")
        return None
    known = usual.length if isinstance(usual.length, int) else 256
    return Growth.upto(options.longest or usual.longest or MORE * known)


def _block(
    options: DecodingOptions, defaults: DecodingOptions, spec: ModelSpec, length: int | None
) -> int | None:
    """The block that was asked for, else the model's, else the recipe's or default if it fits."""
    if options.block is not None:
        if options.block != "full":
            return options.block
        if spec.block is not None:
            raise RequestError(
                f"{spec.name} attends in blocks of {spec.block}, so it has no full window; give "
                "the block as a number, or leave it out"
            )
        return None
    if spec.block is not None:
        return spec.block
    usual = options.defaults.block or defaults.block
    fits = length is not None and isinstance(usual, int) and usual < length
    return usual if fits and usual != "full" else None
