"""A rule in words: one plain sentence per part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from unmask.rules.registry import kind_of, show
from unmask.rules.rule import Rule

_KL = {
    "prev_cur": "KL(previous || current)",
    "cur_prev": "KL(current || previous)",
}
_SINCE_COMMIT = {"prev_cur": "KL(at commit || now)", "cur_prev": "KL(now || at commit)"}
_START = {
    "single": "Before there is any history, rank by the score alone and commit only the best "
    "(a fixed number of positions stays that number).",
    "skip": "Before there is any history, take D = 0.",
    "uniform": "Before there is any history, compare with the uniform distribution.",
}
_FORM = {
    "additive": "",
    "signed": " A negative score is multiplied by exp(+lam D).",
    "literal": " A negative score is multiplied by exp(-lam D), which rewards instability.",
}
_LAST = {
    "fair": "",
    "take": " A scan that fails only at the last candidate takes it all the same.",
    "drop": " When all candidates pass, the last one is left out.",
}


def explain(rule: Rule) -> Iterator[str]:
    """What the rule does in each step, sentence by sentence."""
    for part in rule.parts:
        words = _WORDS.get(kind_of(part).name)
        yield words(part) if words else _fallback(part)


def _fallback(part: Any) -> str:
    kind = kind_of(part)
    summary = kind.summary or f"{kind.name} (it has no description)"
    return summary if summary.endswith(".") else f"{summary}."


def _swd(part: Any) -> str:
    if not part.lam:
        return "Leave the score as it is: lam is 0."
    scope = " Forget the history at each block boundary." if part.scope == "block" else ""
    return (
        f"Lower the score of a position whose distribution still moves: multiply it by "
        f"exp(-{show(part.lam)} D), with D = {_KL[part.kl]} between this forward and the last one."
        f"{_FORM[part.form]} {_START[part.start]}{scope}"
    )


def _threshold(part: Any) -> str:
    sign = "above" if part.test == "gt" else "at or above"
    slack = f", and everything within {show(part.slack)} of the best" if part.slack else ""
    return (
        f"Commit every position whose score is {sign} {show(part.tau)}{slack}; "
        "if there is none, the best one."
    )


def _pc(part: Any) -> str:
    rare = (
        f" Favour rare tokens by the frequencies in {part.background}, clipped at "
        f"{show(part.alpha)}."
        if part.background != "none"
        else ""
    )
    return f"Favour early positions of the block: multiply by exp(-{show(part.lam)} * place).{rare}"


def _klass(part: Any) -> str:
    sign = "above" if part.test == "gt" else "at or above"
    gate = f" Nothing is ready in a block's first {part.n - 1} steps." if part.gate else ""
    return (
        f"Commit every position whose score is {sign} {show(part.conf)} and whose last {part.n} "
        f"values of KL(current || previous) are all below {show(part.kl)}; if there is none, the "
        f"best one.{gate}"
    )


def _limit(part: Any, bound: str) -> str:
    if part.steps:
        return f"Commit at {bound} the share that a timetable of {part.steps} steps allows."
    return f"Commit at {bound} {_positions(part.k)} per step."


def _positions(k: int) -> str:
    return "the best position" if k == 1 else f"the {k} best positions"


_WORDS: dict[str, Callable[[Any], str]] = {
    "confidence": lambda p: "Score each masked position by the probability of its likeliest token.",
    "margin": lambda p: "Score each masked position by how far its likeliest token leads.",
    "entropy": lambda p: "Score each masked position by its negative entropy, in nats.",
    "random": lambda p: "Score the masked positions at random, from the row's seed.",
    "credit": lambda p: (
        f"Add {show(p.alpha)} log(1 + C) to the logits, C being the credit that a token gathers "
        f"when it is the likeliest (its probability to the power {show(p.gamma)}), fading by "
        f"{show(p.beta)} per step and starting anew in each block."
    ),
    "swd": _swd,
    "pc": _pc,
    "certainty": lambda p: (
        f"Favour positions near fixed tokens, by a Gaussian of width {show(p.sigma)}."
    ),
    "top": lambda p: f"Commit {_positions(p.k)}.",
    "threshold": _threshold,
    "eb": lambda p: (
        f"Commit the longest best-first run of positions whose entropies, without the largest, "
        f"add up to at most {show(p.gamma)} nats; at least one."
    ),
    "budget": lambda p: (
        f"Commit the longest best-first run of positions whose D = {_KL[p.kl]} adds up to at most "
        f"{show(p.delta)} nats; at least one."
    ),
    "factor": lambda p: (
        f"Commit the longest best-first run in which (n + 1)(1 - score of the n-th) stays below "
        f"{show(p.f)}; at least one.{_LAST[p.last]}"
    ),
    "klass": _klass,
    "hierarchy": lambda p: (
        f"Commit the best position of each run of neighbouring masks if it is above "
        f"{show(p.low)}, every position above {show(p.tau)}, and the best of all."
    ),
    "ar": lambda p: (
        f"Commit from the leftmost mask on while the score is at least {show(p.tau)}; at least "
        f"{p.k}."
    ),
    "static": lambda p: (
        f"Commit an even share of the masks in each of {p.steps} steps (over all blocks)."
    ),
    "timesteps": lambda p: f"Commit the share that Dream's {p.steps} timesteps ask for.",
    "origin": lambda p: f"Commit at random, the share that Dream's {p.steps} timesteps ask for.",
    "floor": lambda p: _limit(p, "least"),
    "cap": lambda p: _limit(p, "most"),
    "revoke": lambda p: (
        f"Mask a committed position of the block again once its distribution has moved by more "
        f"than {show(p.limit)} nats since, by {_SINCE_COMMIT[p.kl]}; "
        f"{'once' if p.times == 1 else f'{p.times} times'} at most."
    ),
}
