"""A user's score and selection, for any command that reads rules.

`--import` adds them to the notation:

    unmask run "Reverse: pig, bee, cat." --import examples/own_rule.py --rule "sober | grow(0.9)"
"""

from __future__ import annotations

from torch import Tensor

import unmask


@unmask.score(needs=unmask.Needs())
def sober(view: unmask.View) -> unmask.Scores:
    """Log confidence minus a tenth of the entropy."""
    return unmask.Scores.log_utility(view.confidence.log() - 0.1 * view.entropy)


@unmask.selection(needs=unmask.Needs())
def grow(view: unmask.View, scores: unmask.Scores, tau: float = 0.9) -> Tensor:
    """The best position, and its two neighbours where the confidence is above tau."""
    best = unmask.first_in(unmask.best_first(scores.key, view.masked), 1, view.masked)
    beside = best.clone()
    beside[..., 1:] |= best[..., :-1]
    beside[..., :-1] |= best[..., 1:]
    return best | (beside & view.masked & (view.confidence > tau))
