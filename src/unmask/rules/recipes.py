"""Named recipes: rules with the block and the length that belong to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unmask.errors import RuleError, shown
from unmask.models.recommended import RECOMMENDED

DEFAULT_RULE = RECOMMENDED


@dataclass(frozen=True)
class Recipe:
    """A well-known rule, and what belongs to it; None leaves the block or length to the task."""

    name: str
    rule: str  # in the notation; with braces it is a sweep
    block: int | None = None
    # of a timetable that was made for so many tokens; `auto`: of a canvas that grows
    length: int | Literal["auto"] | None = None
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
        Recipe("less", "confidence | less(0.75)", 32, note="LESS Is More, for LLaDA"),
        Recipe("less-dream", "confidence | less_dream(0.75)", note="LESS Is More, for Dream"),
        Recipe(
            "prophet",
            "confidence | static(256) | prophet(0)",
            32,
            256,
            note="Prophet; give the place of the final answer",
        ),
        Recipe("saber", "confidence | saber(2) | backtrack(2)", 32, note="Saber"),
        Recipe(
            "adablock",
            "adablock(newline) | confidence | threshold(0.9, test=ge)",
            32,
            note="AdaBlock-dLLM: blocks end at a newline",
        ),
        Recipe("slowfast", "confidence | slowfast(0.9)", 64, note="Slow-Fast Sampling"),
        Recipe("wino", "confidence | wino(0.6) | narrow(0.9)", 128, note="WINO"),
        Recipe(
            "joint-threshold",
            "confidence | threshold(0.5) | edit(0)",
            32,
            note="SGLang's JointThreshold, LLaDA2.1: tokens may be edited",
        ),
        Recipe(
            "daedal",
            "confidence | threshold(0.9)",
            32,
            "auto",
            note="DAEDAL: the canvas grows; its published figures were not repeated",
        ),
        Recipe(
            "p2",
            "confidence | p2(256) | p2_back(256)",
            length=256,
            note="P2: commitments may be masked again",
        ),
        Recipe(
            "vote",
            "confidence | threshold(0.9) | vote(linear)",
            note="temporal voting: the tokens that most steps predicted",
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


def rule_text(text: str) -> str:
    """The rule of a recipe if the text is its name, else the text."""
    if not isinstance(text, str):
        raise RuleError(f"a rule is read from a text, got {shown(text)}")
    recipe = RECIPES.get(text.strip())
    return recipe.rule if recipe else text
