"""Scores: how useful it is to commit each position now, as log-utilities."""

from __future__ import annotations

from unmask.rules.registry import register
from unmask.rules.view import Needs, Scores, View


@register(
    "score", "confidence", "S = max_v p(v)", "Sec. 2; LLaDA's low-confidence remasking", Needs()
)
def confidence(view: View) -> Scores:
    """Score each masked position by the probability of the token that would be written."""
    return Scores.probability(view.confidence)


@register("score", "margin", "S = p(1) - p(2)", "Sec. 2; Dream's topk_margin", Needs())
def margin(view: View) -> Scores:
    """Score each masked position by how far its likeliest token leads the second."""
    return Scores.probability(view.margin)


@register("score", "entropy", "S = -H(p), in nats", "Sec. 2; Dream's entropy", Needs())
def entropy(view: View) -> Scores:
    """Score each masked position by its negative entropy, in nats; 0 is certain."""
    return Scores.log_utility(-view.entropy)


@register("score", "random", "S ~ U(0, 1)", "LLaDA's remasking='random'", Needs(draws=True))
def random(view: View) -> Scores:
    """Score the masked positions at random, from the row's own seed."""
    return Scores.probability(view.declared("draws"))
