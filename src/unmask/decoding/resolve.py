"""Resolves decoding options against a model: the one place where open values get their defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unmask.decoding.options import SAMPLING, DecodingOptions
from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError
from unmask.models.denoiser import ModelSpec


@dataclass(frozen=True)
class Resolved:
    """Options with every open value filled in."""

    settings: Settings
    length: int  # tokens to write, unless masks are filled
    spec: ModelSpec  # of the model; a block-causal one with the block that was asked for
    seed: int

    @property
    def block(self) -> int | None:
        """Positions per block; None is the full window."""
        return self.spec.block or self.settings.block


def resolve(
    options: DecodingOptions,
    spec: ModelSpec,
    defaults: DecodingOptions | None = None,
    *,
    infill: bool = False,
    loaded: bool = False,
) -> Resolved:
    """Settings and length of an answer.

    Args:
        options: what the user asked for.
        spec: the model.
        defaults: values for what is left open; by default those of the recipe.
        infill: masks are filled wherever they stand, so there is no length.
        loaded: the model is in memory, so that the block it attends in is fixed.
    """
    usual = options.defaults if defaults is None else defaults
    length = options.length or usual.length or 0
    block = _block(options, usual, spec, None if infill else length)
    if spec.block is not None:
        if loaded and block != spec.block:
            raise RequestError(
                f"{spec.name} attends in blocks of {spec.block}, so it decodes in them, not in "
                f"blocks of {block}; load it with another block to change both"
            )
        spec, block = replace(spec, block=block), options.sub_block
    elif options.sub_block is not None:
        raise RequestError(
            f"sub_block is for models that attend in blocks, and {spec.name} does not; give block"
        )
    given = {name: getattr(options, name) for name in SAMPLING}
    sampling = {
        name: getattr(usual, name) if value is None else value for name, value in given.items()
    }
    settings = Settings(
        options.parsed_rule,
        block,
        options.eos or usual.eos or "keep",
        Sampling(**{name: value for name, value in sampling.items() if value is not None}),
        options.steps,
        history=options.history,
    )
    return Resolved(settings, length, spec, options.seed or 0)


def _block(
    options: DecodingOptions, usual: DecodingOptions, spec: ModelSpec, length: int | None
) -> int | None:
    """The block that was asked for, else the model's own, else the usual one if it fits."""
    if options.block is not None:
        if options.block != "full":
            return options.block
        if spec.block is not None:
            raise RequestError(
                f"the model attends in blocks of {spec.block}; it has no full window"
            )
        return None
    if spec.block is not None:
        return spec.block
    fits = length is not None and isinstance(usual.block, int) and usual.block < length
    return usual.block if fits and usual.block != "full" else None
