"""The parts of a rule that tables and comparisons name: score, lam, selection, knobs.

They are read from the text of the rule, so a rule whose parts are not known here has them, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from unmask.errors import UnmaskError
from unmask.lab.summary import Summary
from unmask.rules.fingerprint import is_own
from unmask.rules.part import STAGE_NAMES
from unmask.rules.registry import TABLE, kinds, show
from unmask.rules.rule import Rule
from unmask.rules.stability import swd_of

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
# The stages whose knobs may make a curve, the usual ones first.
SWEPT = ("select", "limit", "revoke", "modulate", "score", "logits")


@dataclass(frozen=True)
class Piece:
    """One part of a rule: its name, its stage, and the knobs that are written."""

    name: str
    stage: str  # "" where nobody knows
    knobs: tuple[tuple[str, str], ...] = ()  # a first knob without a name has the name ""

    @classmethod
    def read(cls, text: str) -> Piece:
        name, _, inside = (word.strip() for word in text.partition("("))
        written = [each.strip() for each in inside.rstrip(")").split(",") if each.strip()]
        pairs = [each.partition("=")[::2] if "=" in each else ("", each) for each in written]
        kind = TABLE.get(name)
        if kind and kind.arguments and pairs and not pairs[0][0]:
            pairs[0] = (kind.arguments[0].name, pairs[0][1])
        return cls(name, kind.stage if kind else "", tuple(pairs))

    def __str__(self) -> str:
        if not self.knobs:
            return self.name
        (_, first), *others = self.knobs
        written = [first, *(f"{name}={value}" for name, value in others)]
        return f"{self.name}({', '.join(written)})"

    @property
    def first(self) -> str:
        """The value of its first knob, or nothing."""
        return self.knobs[0][1] if self.knobs else ""

    @property
    def values(self) -> dict[str, str]:
        """All knobs in their order, with the defaults of those that are not written."""
        kind = TABLE.get(self.name)
        usual = {each.name: show(each.default) for each in kind.arguments} if kind else {}
        return usual | dict(self.knobs)

    def opened(self, knob: str) -> Piece:
        """The same with a dot for the value of one knob."""
        kept = dict(self.knobs) | {knob: OPEN}
        return replace(
            self, knobs=tuple((name, kept[name]) for name in self.values if name in kept)
        )

    def without(self, names: Sequence[str]) -> Piece:
        return replace(self, knobs=tuple(each for each in self.knobs if each[0] not in names))


@dataclass(frozen=True)
class Knob:
    """A number of a rule, and the rule with a dot for it."""

    method: str  # "confidence | klass(0.9, kl=·)"
    name: str  # "kl"
    value: str
    rank: tuple[int, int]  # the stage of its part, and its place among the part's knobs


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
    remembers: bool = False  # whether a part reads earlier steps, or may
    own: bool = False  # whether a part is the user's, or not known here
    pieces: tuple[Piece, ...] = field(default=(), repr=False)
    version: str = ""  # of the user's parts, where the report has several

    @property
    def name(self) -> str:
        """The rule, with its version where there are several."""
        return versioned(self.rule, self.version)

    @property
    def method(self) -> str:
        """The rule with a dot for its knob: `confidence | swd(5) | eb(·)`."""
        return _opened(self.rule, self.selection, self.kind, self.knob)

    @property
    def base_method(self) -> str:
        """The method at lam 0."""
        return _opened(self.base, self.selection, self.kind, self.knob)

    @property
    def knobs(self) -> Iterator[Knob]:
        """Every number of the rule but lam, that of a selection first."""
        for place, piece in enumerate(self.pieces):
            for nth, (name, value) in enumerate(piece.values.items()):
                if piece.name == "swd" or sortable(value)[1]:
                    continue
                opened = [*self.pieces[:place], piece.opened(name), *self.pieces[place + 1 :]]
                rank = (SWEPT.index(piece.stage), nth)
                yield Knob(_joined(opened), name or piece.name, value, rank)

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
        knob = sortable(self.knob)
        return (score, self.score, self.kind, self.lam, self.variant, *knob, self.name)


def versioned(rule: str, version: str) -> str:
    """The name of a rule or method: with its version where there are several."""
    return f"{rule} [version {version}]" if version else rule


def rule_of(summary: Summary) -> RuleParts:
    """The rule of a trial, with its version."""
    return replace(parts_of(summary.trial.rule), version=summary.version)


@cache
def parts_of(rule: str) -> RuleParts:
    """The parts of a rule; of one that cannot be parsed, as far as its text tells."""
    kinds()  # fills the table
    problem, parsed = "", None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # swd(form=literal) warns each time
            parsed = Rule.parse(rule)
    except UnmaskError as error:
        problem = str(error)
    text = rule if parsed is None else str(parsed)
    pieces = _staged([Piece.read(each) for each in text.split("|")])
    kept = [each for each in pieces if each.name != "swd" or _lam(each)]
    swd = next((each for each in kept if each.name == "swd"), None)
    select = next((each for each in kept if each.stage == "select"), Piece("", "select"))
    base = [each for each in kept if each.name != "swd"]
    if parsed is not None and (part := swd_of(parsed)):  # and without the parts around it
        base = [Piece.read(each) for each in str(parsed.without(part)).split("|")]
    after = ("select", "limit", "revoke")
    return RuleParts(
        _joined(kept),
        _joined([each for each in base if each.stage not in after]),
        _lam(swd) if swd else 0.0,
        ", ".join(f"{name}={value}" for name, value in swd.knobs[1:]) if swd else "",
        _joined([each for each in base if each.stage in after]),
        select.name,
        select.first,
        _joined(base),
        problem,
        _joined([each.without(READINGS) if each.name == "swd" else each for each in kept]),
        tuple((name, swd.values[name]) for name in READINGS) if swd else (),
        parsed is None or parsed.remembers,
        parsed is None or any(is_own(TABLE[each.name].target) for each in pieces),
        tuple(kept),
    )


def sortable(knob: str) -> tuple[float, str]:
    """Sort key of a knob: numbers by size, then words."""
    try:
        return float(knob), ""
    except ValueError:
        return float("inf"), knob or " "


def _staged(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with the stages of unknown parts, by their place: a rule is score ... selection.

    Of the unknown parts, the first is the score and the last the selection where these are
    missing.
    """
    staged = list(pieces)
    for stage, places in (("score", range(len(staged))), ("select", range(len(staged))[::-1])):
        if all(each.stage != stage for each in staged):
            place = next((i for i in places if not staged[i].stage), None)
            if place is not None:
                staged[place] = replace(staged[place], stage=stage)
    order, latest = list(STAGE_NAMES), "logits"
    for place, piece in enumerate(staged):
        if not piece.stage:
            later = {"logits": "logits", "score": "modulate", "select": "limit"}
            staged[place] = replace(piece, stage=later.get(latest, latest))
        latest = max(latest, staged[place].stage, key=order.index)
    return staged


def _lam(swd: Piece) -> float:
    return sortable(next(iter(swd.values.values())))[0]


def _joined(pieces: Sequence[Piece]) -> str:
    return " | ".join(map(str, pieces))


def _opened(rule: str, selection: str, kind: str, knob: str) -> str:
    if not knob:
        return rule
    opened = selection.replace(f"{kind}({knob}", f"{kind}({OPEN}", 1)
    return rule.removesuffix(selection) + opened
