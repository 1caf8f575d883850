"""How to run a golden decoder case on this build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unmask.conformance.report import Status
from unmask.decoding.options import Eos
from unmask.decoding.request import Settings
from unmask.rules.rule import Rule

EOS, MASK = 59, 60  # of the toy denoisers


class Skipped(Exception):  # noqa: N818
    """A case that this build does not run, with its reason."""

    status: Status


class NotOffered(Skipped):
    """A decoder that this build does not have."""

    status = "not offered"


class KnownDifference(Skipped):
    """A case that records an upstream defect, or the order of upstream's random numbers."""

    status = "known difference"


@dataclass(frozen=True)
class CasePlan:
    """The settings and the model of a golden case."""

    settings: Settings
    shift: bool = False
    guidance: float = 0.0
    length: int | None = None  # of the answer, unless the case says it
    stop_ids: tuple[int, ...] = (EOS,)
    seed: int = 0
    constraints: tuple[tuple[int, int], ...] = ()  # positions of the answer that are given
    forwards: Literal["useful", "all", "writing"] = "useful"  # which of upstream's to compare
    own_end: bool = False  # upstream's rows wait for each other: compare up to the row's own end


Make = Callable[[dict[str, Any], Path], CasePlan]


def settings_of(config: dict[str, Any], rule: str | Rule, eos: Eos = "keep") -> Settings:
    """The settings of a case with this rule."""
    parsed = Rule.parse(rule) if isinstance(rule, str) else rule
    # Upstream leaves the mask token in the softmax, so the comparison does too.
    return Settings(parsed, block_of(config), eos, allow_mask=True)


def block_of(config: dict[str, Any]) -> int | None:
    """The block of a case; None if it is the whole answer."""
    block = config.get("block_length", config["gen_length"])
    return None if block >= config["gen_length"] else int(block)
