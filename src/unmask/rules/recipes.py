"""Named recipes: rules with the window and length that they are usually run with."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_RULE = "swd"


@dataclass(frozen=True)
class Recipe:
    """A well-known rule and its usual settings."""

    name: str
    rule: str  # in the notation; with braces it is a sweep
    block: int | None = None
    length: int = 256
    note: str = ""


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("llada", "confidence | static(256)", 32, note="LLaDA's generate.py, one per step"),
        Recipe("dream", "entropy | timesteps(256)", note="Dream's diffusion_generate"),
        Recipe("fast-dllm", "confidence | threshold(0.9, test=ge)", 32, note="Fast-dLLM, parallel"),
        Recipe("eb", "entropy | eb(0.1)", note="EB-Sampler"),
        Recipe(
            "eb-leftmost",
            "entropy | eb(0.1, free=leftmost_alone)",
            note="EB-Sampler; a position that would go alone makes way for the leftmost mask",
        ),
        Recipe("klass", "confidence | klass(0.9, kl=0.01)", 64, note="KLASS, HumanEval's settings"),
        Recipe("credit", "credit(0.65) | confidence | threshold(0.9)", 32, note="CreditDecoding"),
        Recipe(
            "rpd-ce",
            "confidence | threshold(0.9, test=ge) | upstream(4, window=32, unit=positions)",
            note="RPD's code with its gate CE alone",
        ),
        Recipe("localleap", "confidence | localleap(0.9)", 32, note="LocalLeap, DAWN's copy"),
        Recipe(
            "frontier",
            "confidence | frontier(8) | threshold(0.9)",
            note="threshold near the leftmost mask; the authors' w is not known",
        ),
        Recipe("dllm", "confidence | even(128)", 32, length=128, note="dllm's samplers"),
        Recipe(
            "pc", "confidence | pc(0.25) | static(256)", note="PC-Sampler, position weight only"
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
