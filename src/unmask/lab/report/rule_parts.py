"""The parts of a rule that tables and comparisons name: score, lam, selection, knob."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from unmask.errors import UnmaskError
from unmask.rules.registry import notation
from unmask.rules.rule import Rule
from unmask.rules.stability import Stability

READINGS = ("start", "form", "scope")  # arguments of swd that say how the paper is read
OPEN = "·"  # replaces the knob in the name of a method
SCORES = ("confidence", "margin", "entropy")
FAMILIES = {
    "eb": "EB-Sampler",
    "threshold": "Threshold",
    "top": "Top-k",
    "history": "History-aware: KLASS and CreditDecoding",
    "": "Other rules",
}


@dataclass(frozen=True)
class RuleParts:
    """A rule and its parts."""

    rule: str  # as the notation prints it, without swd(0)
    score: str  # with credit and other modulators: "credit(0.65) | confidence"
    lam: float
    variant: str  # the arguments of swd besides lam: "kl=cur_prev"
    selection: str  # with its limits: "eb(0.1)"
    kind: str  # its name: "eb"
    knob: str  # its first argument: "0.1"
    base: str  # the rule at lam 0
    problem: str = ""  # why the rule could not be read here
    printed: str = ""  # the rule as the paper's tables name it: without the readings of swd
    readings: tuple[tuple[str, str], ...] = ()  # those of swd that the paper leaves open, by name

    @property
    def method(self) -> str:
        """The rule with a dot for its knob: `confidence | swd(5) | eb(·)`."""
        return _opened(self.rule, self.selection, self.kind, self.knob)

    @property
    def base_method(self) -> str:
        """The method at lam 0."""
        return _opened(self.base, self.selection, self.kind, self.knob)

    @property
    def family(self) -> str:
        """The table that shows the rule: a key of `FAMILIES`, or the kind of selection."""
        if self.score.startswith("credit(") or self.kind == "klass":
            return "history"
        return self.kind

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key within a table: score, lam, knob."""
        score = SCORES.index(self.score) if self.score in SCORES else len(SCORES)
        return (score, self.score, self.kind, self.lam, self.variant, *sortable(self.knob))


@cache
def parts_of(rule: str) -> RuleParts:
    """The parts of a rule.

    A rule that cannot be parsed, such as one of a plug-in that is not imported, has no parts.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # swd(form=literal) warns each time
            parsed = Rule.parse(rule)
    except UnmaskError as error:
        return RuleParts(rule, rule, 0.0, "", "", "", "", rule, str(error), rule)
    swd = [part for part in parsed.modulators if isinstance(part, Stability) and part.lam]
    others = [part for part in parsed.modulators if not isinstance(part, Stability)]
    parts = [part for part in parsed.parts if not isinstance(part, Stability) or part.lam]
    scored = [part for part in (parsed.logits, parsed.score, *others) if part is not None]
    select = notation(parsed.select)
    kind, _, inside = select.partition("(")
    after = [part for part in (*parsed.limits, parsed.revoke) if part is not None]
    return RuleParts(
        _joined(parts),
        _joined(scored),
        swd[0].lam if swd else 0.0,
        notation(swd[0]).rstrip(")").partition(", ")[2] if swd else "",
        _joined([*parsed.candidates, parsed.select, *after]),
        kind,
        inside.rstrip(")").partition(",")[0].strip(),
        _joined([part for part in parts if not isinstance(part, Stability)]),
        printed=_joined([_without_readings(part) for part in parts]),
        readings=tuple((name, getattr(swd[0], name)) for name in READINGS) if swd else (),
    )


def sortable(knob: str) -> tuple[float, str]:
    """Sort key of a knob: numbers by size, then words."""
    try:
        return float(knob), ""
    except ValueError:
        return float("inf"), knob


def _without_readings(part: object) -> object:
    """A part with the default readings; the direction of the KL stays."""
    return Stability(part.lam, part.kl) if isinstance(part, Stability) else part


def _joined(parts: Sequence[object]) -> str:
    return " | ".join(notation(part) for part in parts)


def _opened(rule: str, selection: str, kind: str, knob: str) -> str:
    if not knob:
        return rule
    opened = selection.replace(f"{kind}({knob}", f"{kind}({OPEN}", 1)
    return rule.removesuffix(selection) + opened
