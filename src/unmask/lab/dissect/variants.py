"""Takes a rule apart: its modulator on some positions only, with another signal, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unmask.decoding.options import DecodingOptions, Eos
from unmask.errors import LabError, RuleError, UnknownName
from unmask.models.denoiser import ModelSpec
from unmask.rules.notation import read_part
from unmask.rules.recipes import RECIPES
from unmask.rules.registry import abilities_of, kind_of, notation
from unmask.rules.rule import Rule
from unmask.rules.stability import Stability
from unmask.rules.view import Modulate

POLICIES: tuple[Eos, ...] = ("last", "suppress")
# The parts around the modulator that make a variant, and what it is in words.
AROUND = {
    "ends": ("only(ends)", "{} on end tokens only"),
    "others": ("only(others)", "{} on all other tokens only"),
    "first": ("only(first)", "the start of {} only"),
    "mean": ("signal(mean)", "{} with the row's mean D"),
    "shuffled": ("signal(shuffled)", "{} with another position's D"),
}


@dataclass(frozen=True)
class Variant:
    """One way to run the rule: whole, without its modulator, or with a part of it."""

    name: str  # base, whole, a key of AROUND, or eos=POLICY
    words: str
    rule: Rule
    eos: Eos | None = None  # None: as for all variants


@dataclass(frozen=True)
class Dissected:
    """A rule taken apart."""

    modulator: str  # its name
    variants: tuple[Variant, ...]
    left_out: tuple[tuple[str, str], ...]  # variants that make no sense here, and why


def take_apart(rule: Rule, modulator: Modulate, spec: ModelSpec, eos: str) -> Dissected:
    """All variants of a rule for a model; `eos` is the policy that the rule is run with."""
    name = kind_of(modulator).name
    base = rule.without(modulator)
    variants = [
        Variant("base", f"without {name}", base),
        Variant("whole", "the whole rule", rule),
    ]
    left_out: list[tuple[str, str]] = []
    for key, (part, form) in AROUND.items():
        words = form.format(name)
        if key in ("ends", "others") and not spec.stop_ids:
            left_out.append((words, f"{spec.name} has no token that ends an answer"))
            continue
        try:
            variants.append(Variant(key, words, _with_around(rule, modulator, part)))
        except RuleError as error:
            left_out.append((words, str(error)))
    for policy in POLICIES:
        if spec.eos_id is None:
            left_out.append((f"EOS policy {policy}", f"{spec.name} has no EOS token"))
        elif policy != eos:
            words = f"without {name}, EOS {policy}"
            variants.append(Variant(f"eos={policy}", words, base, policy))
    return Dissected(name, tuple(variants), tuple(left_out))


def modulator_of(rule: Rule, name: str | None) -> Modulate:
    """The modulator to take apart: the one of that name, else SWD, else the only one."""
    modulators = {
        kind_of(part).name: part for part in rule.modulators if not abilities_of(part).around
    }
    if not modulators:
        raise LabError(
            f"{rule} has no modulator to take apart; give a rule such as "
            "'confidence | swd(5) | eb(0.1)'"
        )
    if name is not None:
        if name not in modulators:
            raise UnknownName("modulator of this rule", name, list(modulators))
        return modulators[name]
    parts = list(modulators.values())
    swd = [part for part in parts if isinstance(part, Stability)]
    if len(parts) > 1 and not swd:
        raise LabError(
            f"{rule} has several modulators; choose one: --modulator {next(iter(modulators))}"
        )
    part = swd[0] if swd else parts[0]
    if isinstance(part, Stability) and not part.lam:
        raise LabError("swd(0) changes nothing, so there is nothing to take apart; give lam > 0")
    return part


def without_recipe(options: DecodingOptions) -> DecodingOptions:
    """Options whose rule is spelled out; a recipe's own block holds where none is given."""
    recipe = RECIPES.get(str(options.rule).strip())
    if recipe is None:
        return options
    return replace(options, rule=recipe.rule, block=options.block or recipe.block)


def with_knob(rule: Rule, value: str) -> Rule:
    """The same rule with another value of the first knob of its selection."""
    kind, knobs = read_part(notation(rule.select))
    if not kind.arguments:
        raise LabError(f"{kind.name} has no knob, so it has no curve; leave --curve out")
    _, changed = read_part(f"{kind.name}({value})")
    return replace(rule, select=kind.make(**{**knobs, **changed}))


def _with_around(rule: Rule, modulator: Modulate, text: str) -> Rule:
    """The rule with one more part around its modulator."""
    kind, knobs = read_part(text)
    modulators: Sequence[Any] = rule.modulators
    place = next(i for i, part in enumerate(modulators) if part is modulator) + 1
    added = (*modulators[:place], kind.make(**knobs), *modulators[place:])
    return replace(rule, modulators=added)
