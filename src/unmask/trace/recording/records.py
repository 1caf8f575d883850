"""Makes the K records of K steps of one row, with one computation for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from unmask.rules.registry import abilities_of
from unmask.rules.rule import Rule
from unmask.rules.select import best_first, first_in
from unmask.rules.stability import swd_of
from unmask.trace.recording.codec import Array, packed, text
from unmask.trace.recording.columns import Columns
from unmask.trace.recording.stack import Glimpse, Stack

Record = dict[str, Any]


def without_swd(rule: Rule) -> Rule | None:
    """The rule at lam = 0; None if the rule has no SWD or its lam is 0."""
    swd = swd_of(rule)
    return rule.without(swd) if swd else None


def step_records(rule: Rule, stack: Stack, columns: Columns, fills: bool) -> Iterator[Record]:
    """One record for each of K steps; `fills` says whether an EOS policy writes too."""
    view, scores = stack.view, stack.decision.scores
    among = rule.selectable(view, stack.decision.base)
    selected = rule.select(among, scores)
    gauge = abilities_of(rule.select).gauge(among, scores, selected)
    levels = {name: level.tolist() for name, level in gauge.items()}
    extras = _extras(rule, stack, among.masked.cpu().numpy(), selected.cpu().numpy())
    masked, token = view.masked.cpu().numpy(), view.token.cpu().numpy()
    chosen = stack.decision.chosen.cpu().numpy()
    start, stop = stack.start.tolist(), stack.stop.tolist()
    ends = [0, *masked.sum(-1).cumsum().tolist()]
    candidates = packed(masked)
    for k, glimpse in enumerate(stack.glimpses):
        places = chosen[k].nonzero()[0].tolist()
        record: Record = {
            "forward": stack.forward[k],
            "window": [start[k], stop[k]],
            "candidates": text(candidates[k, : (stop[k] - start[k] + 7) // 8].tobytes()),
            "count": ends[k + 1] - ends[k],
            "columns": columns.names,
            "same": columns.same,
            "logarithmic": scores.logarithmic,
            "cells": text(columns.cells(ends[k], ends[k + 1])),
            "committed": [[start[k] + place, int(token[k, place])] for place in places],
            **(_filled(glimpse) if fills else {}),
            **{name: steps[k] for name, steps in extras.items() if k in steps},
        }
        if levels:
            record["gauge"] = {name: _level(level[k]) for name, level in levels.items()}
        record["digest"] = _digest(columns.exact[ends[k] : ends[k + 1]], record)
        yield record


def _extras(rule: Rule, stack: Stack, ready: Array, selected: Array) -> dict[str, dict[int, Any]]:
    """The fields that only some steps have, by name and step.

    `ready` is what the selection could choose, `selected` what it chose before limits: [K, W].
    """
    masked, chosen = stack.view.masked.cpu().numpy(), stack.decision.chosen.cpu().numpy()
    revoked, unweighted = stack.decision.revoked.cpu().numpy(), _unweighted(rule, stack)
    start, stop = stack.start.tolist(), stack.stop.tolist()

    def positions(flags: Array, k: int) -> list[int]:
        absolute: list[int] = (flags[k].nonzero()[0] + start[k]).tolist()
        return absolute

    extras: dict[str, dict[int, Any]] = {
        "revoked": {k: positions(revoked, k) for k in _steps(revoked)},
        "ready": {
            k: text(packed(ready[k, : stop[k] - start[k]]).tobytes())
            for k in _steps(ready != masked)
        },
        "selected": {k: positions(selected, k) for k in _steps(selected != chosen)},
    }
    if unweighted is not None:
        extras["unweighted"] = {k: positions(unweighted, k) for k in range(len(start))}
    return extras


def _unweighted(rule: Rule, stack: Stack) -> Array | None:
    """What lam = 0 would have committed, with the budget of steps: [K, W]."""
    plain = without_swd(rule)
    if plain is None:
        return None
    masked, decision = stack.view.masked, plain(stack.view)
    chosen = decision.chosen
    if stack.decision.least is not None:
        chosen = chosen | first_in(
            best_first(decision.scores.key, masked), stack.decision.least, masked
        )
    committed: Array = chosen.cpu().numpy()
    return committed


def _steps(flags: Array) -> list[int]:
    """The steps in which any flag is set."""
    steps: list[int] = flags.any(-1).nonzero()[0].tolist()
    return steps


def _filled(glimpse: Glimpse) -> Record:
    """The tokens that the EOS policy wrote in this step."""
    filled = glimpse.step.filled[glimpse.row]
    if not bool(filled.any()):
        return {}
    places = filled.nonzero()[:, 0]
    tokens = glimpse.step.tokens[glimpse.row, places]
    return {"filled": torch.stack([places, tokens], -1).tolist()}


def _level(level: float) -> float | None:
    """A number for JSON; None for NaN and infinity."""
    return round(level, 6) if np.isfinite(level) else None


def _digest(exact: Array, record: Record) -> str:
    """A fingerprint of the unrounded numbers and of the writes."""
    written = ("window", "candidates", "committed", "filled", "revoked")
    done = [record.get(name) for name in written]
    state = blake2b(exact.data, digest_size=8)
    state.update(repr(done).encode())
    return state.hexdigest()
