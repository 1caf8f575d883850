"""A rule taken apart as tables and comparisons need it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from unmask.errors import UnmaskError
from unmask.rules.registry import notation
from unmask.rules.rule import Rule
from unmask.rules.stability import Stability

OPEN = "·"  # stands for the knob in the name of a method
SCORES = ("confidence", "margin", "entropy")
FAMILIES = {
    "eb": "EB-Sampler",
    "threshold": "Threshold",
    "top": "Top-k",
    "history": "History-aware: KLASS and CreditDecoding",
    "": "Other rules",
}


@dataclass(frozen=True)
class Reading:
    """What is said of a rule besides the rule itself."""

    rule: str  # as the notation prints it, without swd(0)
    score: str  # with credit and other modulators: "credit(0.65) | confidence"
    lam: float
    variant: str  # what swd says besides lam: "kl=cur_prev"
    selection: str  # with its limits: "eb(0.1)"
    kind: str  # its name: "eb"
    knob: str  # its first argument: "0.1"
    base: str  # the rule at lam 0
    problem: str = ""  # why the rule could not be read here

    @property
    def method(self) -> str:
        """The rule with its knob left open: `confidence | swd(5) | eb(·)`."""
        return _opened(self.rule, self.selection, self.kind, self.knob)

    @property
    def base_method(self) -> str:
        """The method at lam 0."""
        return _opened(self.base, self.selection, self.kind, self.knob)

    @property
    def family(self) -> str:
        """Which table it stands in."""
        if self.score.startswith("credit(") or self.kind == "klass":
            return "history"
        return self.kind

    @property
    def order(self) -> tuple[object, ...]:
        """Where it stands in a table: by score, lam, knob."""
        score = SCORES.index(self.score) if self.score in SCORES else len(SCORES)
        return (score, self.score, self.kind, self.lam, self.variant, *sortable(self.knob))


@cache
def read(rule: str) -> Reading:
    """A rule that cannot be read, such as one of a plug-in that is not here, stands for itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # swd(form=literal) warns whenever it is made
            found = Rule.parse(rule)
    except UnmaskError as error:
        return Reading(rule, rule, 0.0, "", "", "", "", rule, str(error))
    swd = [part for part in found.modulators if isinstance(part, Stability) and part.lam]
    others = [part for part in found.modulators if not isinstance(part, Stability)]
    parts = [part for part in found.parts if not isinstance(part, Stability) or part.lam]
    scored = [part for part in (found.logits, found.score, *others) if part is not None]
    select = notation(found.select)
    kind, _, inside = select.partition("(")
    after = [part for part in (*found.limits, found.revoke) if part is not None]
    return Reading(
        _joined(parts),
        _joined(scored),
        swd[0].lam if swd else 0.0,
        notation(swd[0]).rstrip(")").partition(", ")[2] if swd else "",
        " | ".join([select, *(notation(part) for part in after)]),
        kind,
        inside.rstrip(")").partition(",")[0].strip(),
        _joined([part for part in parts if not isinstance(part, Stability)]),
    )


def sortable(knob: str) -> tuple[float, str]:
    """Numbers by their size, words behind them."""
    try:
        return float(knob), ""
    except ValueError:
        return float("inf"), knob


def _joined(parts: Sequence[object]) -> str:
    return " | ".join(notation(part) for part in parts)


def _opened(rule: str, selection: str, kind: str, knob: str) -> str:
    if not knob:
        return rule
    opened = selection.replace(f"{kind}({knob}", f"{kind}({OPEN}", 1)
    return rule.removesuffix(selection) + opened
