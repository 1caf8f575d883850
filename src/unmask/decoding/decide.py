"""Decides a step: the rule, the budget of steps, and a check that every row comes to an end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from unmask.decoding.request import Settings
from unmask.decoding.state import State
from unmask.decoding.windows import forwards_here
from unmask.errors import RuleError
from unmask.rules.registry import abilities_of, spelled
from unmask.rules.rule import Decision
from unmask.rules.select import best_first, first_in
from unmask.rules.view import View

# Decides one step of rows with equal settings; returns the view with the tokens to write, too.
Decide = Callable[[Settings, State, View], tuple[View, Decision]]

MOST_IDLE = 4096  # forwards without a commitment after which a row is an error


def by_rule(settings: Settings, state: State, view: View) -> tuple[View, Decision]:
    """Decide by the rule; a budget of steps may add the best positions to its choice."""
    decision = settings.rule(view)
    chosen = decision.chosen
    if settings.rule.revoke is None and settings.steps is None:
        _check_progress(settings, state, view, chosen)
        return view, decision
    fixed = view.revocable | chosen
    revoked = decision.revoked & fixed
    least, held, finished = None, decision.held, decision.finished
    if settings.steps is not None:
        left = forwards_here(state, settings.block, settings.steps)
        least = (view.masked.sum(-1) + left - 1) // left
        order = best_first(decision.scores.key, view.masked)
        chosen = chosen | first_in(order, least, view.masked)
        revoked &= (left > 1)[:, None]
        held = None if held is None else held & (left > 1)
        if settings.rule.window is not None:  # how many windows follow is not known
            over = settings.steps - state.nfe <= 1
            finished = over if finished is None else finished | over
    _check_progress(settings, state, view, chosen)
    written = None if decision.written is None else decision.written & fixed & ~revoked
    return view, replace(
        decision, chosen=chosen, revoked=revoked, least=least, written=written, held=held,
        finished=finished,
    )  # fmt: skip


def _check_progress(settings: Settings, state: State, view: View, chosen: Tensor) -> None:
    """Raise where a row would never end: nothing is chosen, or nothing is ever computed."""
    moving = chosen.any(-1)
    if bool(moving.all()):
        return
    waiting = ~moving
    select = settings.rule.select
    stuck = waiting & view.masked.any(-1)
    if bool(stuck.any()) and not abilities_of(select).waits:
        parts = " | ".join(map(spelled, (select, *settings.rule.limits)))
        raise RuleError(
            f"{parts} chose nothing though masks are left; a selection chooses at "
            "least one per step, or says `waits = True`"
        )
    idle = state.nfe - state.commit_step.amax(-1) - 1  # forwards since the last commitment
    if bool((waiting & (idle >= MOST_IDLE)).any()):
        raise RuleError(
            f"nothing was committed in {MOST_IDLE} forwards: {spelled(select)} never chooses, "
            "or a cache never computes the masks that are left"
        )
