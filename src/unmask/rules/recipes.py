"""Named recipes: rules with the block and the length that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

from unmask.models.recommended import RECOMMENDED

DEFAULT_RULE = RECOMMENDED


@dataclass(frozen=True)
class Recipe:
    """A well-known rule, and what belongs to it; None leaves the block or length to the task."""

    name: str
    rule: str  # in the notation; with braces it is a sweep
    block: int | None = None
    length: int | None = None  # of a timetable that was made for so many tokens
    note: str = ""


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "llada", "confidence | static(256)", 32, 256, note="LLaDA's generate.py, one per step"
        ),
        Recipe("dream", "entropy | timesteps(256)", None, 256, note="Dream's diffusion_generate"),
        Recipe("fast-dllm", "confidence | threshold(0.9, test=ge)", 32, note="Fast-dLLM, parallel"),
        Recipe("eb", "entropy | eb(0.1)", note="EB-Sampler"),
        Recipe("klass", "confidence | klass(0.9, kl=0.01)", 64, note="KLASS, HumanEval's settings"),
        Recipe("credit", "credit(0.65) | confidence | threshold(0.9)", 32, note="CreditDecoding"),
        Recipe(
            "pc",
            "confidence | pc(0.25) | static(256)",
            length=256,
            note="PC-Sampler, position weight only",
        ),
        Recipe("swd", "confidence | swd(5) | eb(0.1)", note="the paper's default for LLaDA"),
        Recipe("swd-block32", "confidence | swd(1) | eb(0.1)", 32, note="the paper's, in blocks"),
        Recipe("swd-dream", "confidence | swd(30) | eb(0.1)", note="the paper's default for Dream"),
        Recipe(
            "paper-table1",
            "{confidence,margin,entropy} | swd({0,5}) | eb(0.1)",
            note="the main table for LLaDA: each score with and without SWD",
        ),
    )
}
