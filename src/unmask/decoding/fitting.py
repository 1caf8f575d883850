"""Tokens of one step that fit together under a language: drawn, or the best ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from unmask.decoding.constrain import Constraint, LanguageCells, RowCells
from unmask.decoding.sampling import then
from unmask.kernels.reduce import Transform, reduce, working_dtype
from unmask.languages.automaton import Floats
from unmask.languages.canvas import OPEN, PartlyFilled, Places
from unmask.rules.rule import Decision
from unmask.rules.view import View


@dataclass(frozen=True)
class JointDraw:
    """Draws the tokens of one string of the language per row, from left to right.

    Each token is drawn given those before it, so the string is a sample of the language. A cell
    that is not weighed gets a token that fits all others as they are.
    """

    constraint: Constraint
    cells: LanguageCells
    boost: Transform | None

    def __call__(self) -> Tensor:
        """The tokens of N cells: [N]."""
        cells, automaton = self.cells, self.constraint.automaton
        masses, others = self.constraint.class_masses(cells, self._heat), None
        tokens = torch.full((len(cells.logits),), -1, dtype=torch.int64)
        for row in cells.rows(automaton):
            weighed = cells.weighed[row.cells]
            places, mine = row.places[weighed], row.cells[weighed]
            tokens[mine] = self._string(row.answer.weigh(places, masses[mine]), mine)
        for cell in (tokens < 0).nonzero()[:, 0].tolist():
            others = others or self.constraint.marginals(cells, self._heat)
            tokens[cell] = self._token(cell, others)
        return tokens.to(cells.logits.device)

    def _string(self, answer: PartlyFilled, cells: Places) -> Tensor:
        """The tokens of one row's weighed cells."""
        automaton, tokens = self.constraint.automaton, list[int]()
        cell_at = dict(zip(answer.weighed.tolist(), cells.tolist(), strict=True))
        (first, state), last = answer.fixed_start(), max(cell_at, default=-1)
        beta, arcs = answer.backward(first, max(first, last + 1)), automaton.arcs
        for place in range(first, last + 1):
            kind = int(answer.kinds[place])
            if kind == OPEN and place not in cell_at:  # take a way to the likeliest end
                ways = arcs.target[arcs.source == state]
                state = int(ways[beta[place + 1 - first][ways].argmax()])
                continue
            if kind == OPEN:
                token = self._given(cell_at[place], beta[place + 1 - first], automaton.table[state])
                kind = int(automaton.classes[token])
                tokens.append(token)
            state = int(automaton.table[state, kind])
        return torch.tensor(tokens, dtype=torch.int64)

    def _given(self, cell: int, beta: Floats, after: Places) -> int:
        """A token given the state before it, whose classes lead to `after`: [C]."""
        weights = np.where(after >= 0, beta[after], -np.inf)
        top = weights.max()
        weights = np.append(weights - (top if np.isfinite(top) else 0.0), -np.inf)
        weigh = self.constraint.adding(weights[None], self.cells.logits, cell)
        return self._token(cell, then(self._heat, weigh))

    def _token(self, cell: int, change: Transform) -> int:
        """A token by the changed logits of a cell, with a random number of its row."""
        group, logits = self.cells.group, self.cells.logits
        sampling = replace(group.settings.sampling, temperature=1.0)  # they are divided already
        z = sampling.temper(change(logits[cell : cell + 1].to(working_dtype(logits)), cell))[0]
        sums = (z - z.amax()).double().exp_().cumsum(0)
        generator = group.generators[int(self.cells.where[0][cell])]
        draw = torch.rand((), dtype=torch.float64, generator=generator).to(z.device) * sums[-1]
        place = int(torch.searchsorted(sums, draw, right=True))
        last = int(torch.searchsorted(sums, sums[-1]))  # the last one of any weight
        return min(place, last, len(z) - 1)  # of NaN too, which is reported later

    def _heat(self, z: Tensor, first: int) -> Tensor:
        z = self.boost(z, first) if self.boost else z
        return z / self.cells.group.settings.sampling.temperature


def fitted_step(
    constraint: Constraint, cells: LanguageCells, change: Transform, view: View, decision: Decision
) -> tuple[View, Decision]:
    """The step with tokens that leave a way to the end; those that do already stay.

    `change` turns logits into those of the marginals.
    """
    written = torch.zeros_like(decision.chosen) if decision.written is None else decision.written
    new = decision.chosen | written
    if not bool((new.sum(-1) > 1).any() | written.any()):
        return view, decision  # one token by its marginal always leaves a way
    token, start, width = view.token.clone(), cells.group.state.start, view.masked.shape[-1]
    if decision.tokens is not None:
        token = torch.where(written, decision.tokens, token)
    for row in cells.rows(constraint.automaton):
        columns = row.first + torch.from_numpy(row.places) - start[row.row]
        inside, here = (columns >= 0) & (columns < width), columns.clamp(0, width - 1)
        row.answer.kinds[row.places[(decision.revoked[row.row, here] & inside).numpy()]] = OPEN
        writes = (new[row.row, here] & inside).numpy()
        row = row._replace(cells=row.cells[writes], places=row.places[writes])
        there = here[torch.from_numpy(writes)]
        proposed = token[row.row, there].numpy()
        token[row.row, there] = torch.from_numpy(fitting(constraint, cells, change, row, proposed))
    moved = (token != view.token) & new
    view = replace(view, token=token, confidence=_confidence(cells, change, view, token, moved))
    tokens = None if decision.tokens is None else token
    return view, replace(decision, tokens=tokens)


def filled(constraint: Constraint, cells: LanguageCells) -> Tensor:
    """Tokens that fill N masks, the last ones of their rows, on the host: [N]."""
    if cells.group.settings.sampling.draws:
        return JointDraw(constraint, cells, None)().cpu()
    change = constraint.marginals(cells, None)
    tokens = reduce(cells.logits, transform=change).token.cpu()
    for row in cells.rows(constraint.automaton):
        proposed = tokens[row.cells].numpy()
        tokens[row.cells] = torch.from_numpy(fitting(constraint, cells, change, row, proposed))
    return tokens


def fitting(
    constraint: Constraint, cells: LanguageCells, change: Transform, row: RowCells, tokens: Places
) -> Places:
    """Tokens for the cells of a row: these if they leave a way to the end, else the best that do.

    The best have the largest product of marginals.
    """
    kinds, automaton = row.answer.kinds.copy(), constraint.automaton
    kinds[row.places] = automaton.classes[tokens]
    if replace(row.answer, kinds=kinds).satisfiable():
        return tokens
    z = torch.stack([_changed(cells, cell, change) for cell in row.cells.tolist()]).cpu()
    of_class = constraint.kinds(z.device).long().expand_as(z)
    values = z.new_full((len(z), automaton.num_classes + 1), -torch.inf)
    values = values.scatter_reduce(-1, of_class, z, "amax")[:, :-1].double()
    classes = row.answer.weigh(row.places, values.numpy()).best_classes()
    assert classes is not None, "the canvas could be filled before this step"
    wanted = of_class == torch.from_numpy(classes)[:, None]
    best: Places = torch.where(wanted, z, -torch.inf).argmax(-1).numpy()
    return best


def _changed(cells: LanguageCells, cell: int, change: Transform) -> Tensor:
    """The changed logits of one cell: [V]."""
    logits = cells.logits[cell : cell + 1]
    return change(logits.to(working_dtype(logits)), cell)[0]


def _confidence(
    cells: LanguageCells, change: Transform, view: View, token: Tensor, moved: Tensor
) -> Tensor:
    """The confidence of every token, after some have been replaced: [B, W]."""
    confidence = view.confidence.clone()
    number = torch.full_like(cells.group.state.tokens, -1)
    number[cells.where] = torch.arange(len(cells.logits))
    for row, column in moved.nonzero().tolist():
        cell = int(number[row, int(cells.group.state.start[row]) + column])
        z = _changed(cells, cell, change)[None]
        stats = reduce(z, tokens=token[row, column][None].to(z.device))
        confidence[row, column] = stats.confidence[0].cpu()
    return confidence
