"""Superseded by options.py and resolve.py; removed once every surface reads into those."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from unmask import embedded
from unmask.decoding.options import Eos
from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError
from unmask.models.denoiser import ModelSpec
from unmask.models.describe import Description
from unmask.rules.recipes import RECIPES, Recipe
from unmask.rules.rule import Rule


@dataclass(frozen=True)
class Decoding:
    """What was asked for, complete."""

    settings: Settings
    length: int  # of a continuation
    spec: ModelSpec  # of the model; if block-causal, with the blocks that were asked for


@dataclass(frozen=True)
class Asked:
    """What somebody said about decoding; None is left to the recipe and the model.

    Args:
        rule: what to commit in each step.
        recipe: the one that the rule was given by, with its habits; see `recipe_of`.
        sampling: how tokens are drawn.
        length: tokens to write.
        block: positions per block, or full; of a block-causal model the width of its attention.
        eos: what the end token means.
        steps: finish within this many forwards.
        history: how many tokens of the last forward's distributions are kept; None: all.
    """

    rule: Rule
    recipe: Recipe
    sampling: Sampling = field(default_factory=Sampling)
    length: int | None = None
    block: int | Literal["full"] | None = None
    eos: Eos | None = None
    steps: int | None = None
    history: int | None = None

    def decoding(self, shape: Description, infill: bool = False) -> Decoding:
        """Settings and length for a checkpoint, checked as far as they can be without a prompt."""
        usual = embedded.LENGTH if shape.folder == embedded.FOLDER else self.recipe.length
        return self.decoding_by(shape.spec, usual, infill)

    def decoding_by(self, spec: ModelSpec, usual: int, infill: bool = False) -> Decoding:
        """Settings and length for any model, which writes `usual` tokens where nobody says more."""
        block = self._block(spec.block)
        if spec.block is not None:  # such a model decodes in the blocks that it attends in
            spec, block = replace(spec, block=block), None
        length = usual if self.length is None else self.length
        if self.block is None and block is not None and (infill or block > length):
            block = None  # a recipe's block is no more than a habit
        eos = "keep" if self.eos is None else self.eos
        settings = Settings(self.rule, block, eos, self.sampling, self.steps, history=self.history)
        return Decoding(settings, length, spec)

    def _block(self, own: int | None) -> int | None:
        """The block as asked for, else the block-causal model's own, else the recipe's."""
        if self.block is None:
            return own or self.recipe.block
        if self.block == "full":
            if own is not None:
                raise RequestError(f"the model attends in blocks of {own}; it has no full window")
            return None
        return self.block


def recipe_of(text: str) -> Recipe:
    """The recipe of that name, or one without habits."""
    return RECIPES.get(text.strip(), Recipe("", text))
