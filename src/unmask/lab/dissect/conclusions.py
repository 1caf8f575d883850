"""Conclusions in words: they follow from the numbers by the rules of `RULES`."""

from __future__ import annotations

from typing import Literal

from unmask.lab.dissect.findings import BASE, WHOLE, Dissection, VariantDifference
from unmask.lab.report.wording import p_value, points, points_span
from unmask.lab.stats import LEVEL

MOST = 0.5  # a variant with this share of the gain has most of it
Level = Literal["most", "some", "none", "loss"]

RULES = (
    f"A difference is shown if its p is below {LEVEL:g} after Holm's correction for all "
    "comparisons of this page. One that is not shown may still be there: more examples tell.",
    "A variant has a gain if it is shown to solve more than the rule without the modulator. It has "
    f"most of the gain of the whole rule if its own is at least {MOST:.0%} of it, else some of it.",
    "The signal matters if the whole rule is shown to solve more than the rule with another "
    "position's D. It is not what helps if another position's D has most of the gain and the 95% "
    "interval of its difference to the whole rule holds 0.",
    "An EOS policy does the work of the modulator if, without it, it has most of the gain.",
)
# What follows if a variant has most of the gain, or has none that is shown.
_MEANING: dict[str, dict[Level, str]] = {
    "ends": {
        "most": "Most of the gain is the handling of end tokens.",
        "none": "The handling of end tokens does not explain the gain.",
    },
    "others": {
        "most": "Most of the gain needs no handling of end tokens.",
        "none": "Without end tokens no gain is left.",
        "loss": "Without end tokens nothing is left but a loss.",
    },
    "first": {
        "most": "Most of the gain is the first step.",
        "none": "The first step does not explain the gain.",
    },
    "mean": {
        "most": "How much the row moves is enough; which position moves is not needed.",
        "none": "How much the row moves is not enough.",
    },
}


def level_of(dissection: Dissection, name: str) -> Level:
    """How much of the gain a variant has."""
    own = dissection.differences[BASE, name]
    if own.sign <= 0:
        return "loss" if own.sign < 0 else "none"
    return "most" if dissection.gain.sign <= 0 or dissection.share(name) >= MOST else "some"


def sentence(dissection: Dissection, name: str) -> str:
    """What a variant shows."""
    subject = dissection[name].variant.words
    own, gain = dissection.differences[BASE, name], points(dissection.gain.measured.difference)
    level = level_of(dissection, name)
    has_gain = dissection.gain.sign > 0
    kept = f"{_points(own)} of {gain} points" if has_gain else f"{_points(own)} points"
    said = {
        "most": f"{subject}: most of the gain, {kept}.",
        "some": f"{subject}: some of the gain, {kept}.",
        "none": f"{subject}: no gain is shown, {kept}.",
        "loss": f"{subject}: a loss, {_points(own)} points.",
    }[level]
    if not has_gain and own.sign > 0:
        said = f"{subject}: a gain, {kept}."
    return f"{said}{_against_whole(dissection, name)}{_meaning(dissection, name, level)}"


def verdict(dissection: Dissection) -> str:
    """What the gain is made of."""
    name, gain = dissection.dissected.modulator, dissection.gain
    numbers = (
        f"{_points(gain)} points {points_span(gain.measured.interval)}, {p_value(gain.p_holm)}"
    )
    if gain.sign <= 0:
        word = "A loss" if gain.sign < 0 else "No gain"
        return f"{word} of {name} is shown: {numbers}.{_policies(dissection)}"
    places = [each for each in ("ends", "others", "first") if _has_most(dissection, each)]
    held = " and with ".join(
        f"{dissection[each].variant.words} ({_points(dissection.differences[BASE, each])})"
        for each in places
    )
    made_of = f"Most of it is there with {held}." if places else "No single part has most of it."
    return f"{name} gains {numbers}. {made_of}{_signal(dissection)}{_policies(dissection)}"


def _has_most(dissection: Dissection, name: str) -> bool:
    return name in dissection.names and level_of(dissection, name) == "most"


def _meaning(dissection: Dissection, name: str, level: Level) -> str:
    if dissection.gain.sign <= 0:
        return ""
    if name.startswith("eos=") and level == "most":
        return f" The policy does the work of {dissection.dissected.modulator}."
    if name == "shuffled":
        return _signal(dissection)
    said = _MEANING.get(name, {}).get(level, "")
    return f" {said}" if said else ""


def _against_whole(dissection: Dissection, name: str) -> str:
    apart = dissection.differences[WHOLE, name]
    if not apart.sign:
        return ""
    word = "more" if apart.sign > 0 else "less"
    return f" It solves {word} than the whole rule: {_points(apart)}."


def _signal(dissection: Dissection) -> str:
    """Whether it matters whose D a position gets."""
    if "shuffled" not in dissection.names:
        return ""
    apart = dissection.differences[WHOLE, "shuffled"]
    if apart.sign < 0:
        lost = points(-apart.measured.difference).removeprefix("+")
        return f" The signal matters: with another position's D the rule solves {lost} points less."
    low, high = apart.measured.interval
    if _has_most(dissection, "shuffled") and low <= 0 <= high:
        return " The signal is not what helps: another position's D has most of the gain."
    return " Whether it matters whose D a position gets is not shown."


def _policies(dissection: Dissection) -> str:
    """The best EOS policy without the modulator, if it gains."""
    policies = [name for name in dissection.names if name.startswith("eos=")]
    gains = {name: dissection.differences[BASE, name] for name in policies}
    shown = {name: each for name, each in gains.items() if each.sign > 0}
    if not shown:
        return ""
    best = max(shown, key=lambda name: shown[name].measured.difference)
    policy, numbers = best.removeprefix("eos="), _points(shown[best])
    forwards = dissection[best].summary.mean("nfe")
    return (
        f" EOS {policy} without {dissection.dissected.modulator} gains {numbers} at "
        f"{forwards:.1f} forwards."
    )


def _points(difference: VariantDifference) -> str:
    return points(difference.measured.difference)
