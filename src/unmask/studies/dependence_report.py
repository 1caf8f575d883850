"""The dependence study as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unmask.studies.correlation import Correlation, Estimate
from unmask.studies.dependence import DependenceResult


def record(result: DependenceResult) -> dict[str, Any]:
    """All numbers, for JSON."""
    groups = {}
    for group, each in result.groups.items():
        rows: dict[str, Any] = {"positions": each.positions}
        for name, correlation in zip(each._fields[1:], each[1:], strict=True):
            rows[name] = {kind: part._asdict() for kind, part in correlation._asdict().items()}
        groups[group] = rows
    return {**vars(result), "groups": groups}


def lines(result: DependenceResult) -> Iterator[str]:
    """The report as text."""
    yield (
        f"{result.positions} positions of {result.canvases} canvases of {result.prompts} prompts, "
        f"{result.forwards:,} forward passes"
    )
    for group, each in result.groups.items():
        yield f"\n{group} ({each.positions})"
        yield f"{'':22}{'within a canvas':<24}over all canvases"
        for name, words in _WORDS.items():
            correlation: Correlation = getattr(each, name)
            yield f"{words:<22}{_shown(correlation.within):<24}{_shown(correlation.pooled)}"
    yield SUMMARY


def _shown(each: Estimate) -> str:
    return f"{each.value:+.2f} [{each.low:+.2f}, {each.high:+.2f}]"


_WORDS = {
    "entropy": "H",
    "moved": "D",
    "moved_back": "D, the other way",
    "moved_given_entropy": "D given H",
    "entropy_given_moved": "H given D",
}
SUMMARY = """
Spearman's rank correlations with what is left of a position's dependence on the other masks, with
95% intervals by bootstrap over prompts. H is the entropy, D = KL(previous || current), the other
way KL(current || previous). Within a canvas: how well a rule that ranks by it would rank. Over all
canvases: how well one threshold for all of them would cut; early and late canvases differ there."""
