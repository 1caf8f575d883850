"""Keeps answers in a language: the check before the first forward, and marginals in each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unmask.decoding.eos import EosTail
from unmask.decoding.sampling import then
from unmask.decoding.state import Where
from unmask.errors import LanguageError
from unmask.kernels.classes import class_masses
from unmask.kernels.reduce import Transform, chunks, working_dtype
from unmask.languages.automaton import Floats, TokenAutomaton
from unmask.languages.canvas import PartlyFilled, Places
from unmask.models.denoiser import ModelSpec, ship

if TYPE_CHECKING:
    from unmask.decoding.request import Request, Settings
    from unmask.decoding.rows import Rows


def suppressed(settings: Settings, spec: ModelSpec) -> tuple[int, ...]:
    """The tokens that are never predicted."""
    mask = () if settings.allow_mask else (spec.mask_id,)
    return (*mask, *EosTail(settings.eos, spec).suppressed)


def check_language(spec: ModelSpec, request: Request) -> None:
    """Raise unless some string of the language fits the canvas."""
    constraint = Constraint.of(request.settings, spec)
    if constraint is None:
        return
    if request.settings.growth is not None:
        raise LanguageError(
            f"{constraint.automaton.title} needs a length; give one instead of length auto"
        )
    holes = (request.canvas == spec.mask_id).nonzero()[:, 0]
    first, last = int(holes[0]), int(holes[-1]) + 1
    last = last if request.length is None else min(last, first + request.length)
    constraint.check(request.canvas[first:last].numpy(), spec.mask_id)


@dataclass(frozen=True)
class LanguageCells:
    """N computed cells of a group of rows, and those of them that are weighed by their logits.

    All other masks are open: they may hold whatever the language allows.
    """

    group: Rows
    where: Where
    logits: Tensor  # [N, V]
    weighed: NDArray[np.bool_]  # [N]

    def rows(self, automaton: TokenAutomaton) -> Iterator[RowCells]:
        """The cells of each row with its answer."""
        state, (rows, positions) = self.group.state, (index.numpy() for index in self.where)
        for row in np.unique(rows).tolist():
            first, last = int(state.origin[row]), int(state.end[row])
            length = self.group.members[row].length
            last = last if length is None else min(last, first + length)
            cells = np.flatnonzero((rows == row) & (positions >= first) & (positions < last))
            tokens, masked = state.tokens[row, first:last], state.masked[row, first:last]
            answer = PartlyFilled.of(automaton, tokens.numpy(), masked.numpy())
            yield RowCells(row, first, cells, positions[cells] - first, answer)


def window_cells(group: Rows, logits: Tensor, where: Where) -> LanguageCells:
    """The computed cells of a step: masks of the open windows are weighed."""
    state = group.state
    return LanguageCells(group, where, logits, (state.masked & state.window)[where].numpy())


class RowCells(NamedTuple):
    """The computed cells of one row that lie in its answer."""

    row: int
    first: int  # position of the answer's first token
    cells: Places  # their numbers among all computed cells
    places: Places  # counted from the answer's first token
    answer: PartlyFilled  # whose masks are open


@dataclass(frozen=True)
class Constraint:
    """The language of a group of rows, with the end tokens that may follow an answer."""

    automaton: TokenAutomaton

    @classmethod
    def of(cls, settings: Settings, spec: ModelSpec) -> Constraint | None:
        """The constraint of these settings for a model; None without a language."""
        language = settings.language
        if language is None:
            return None
        if len(language.classes) != spec.vocab_size:
            raise LanguageError(
                f"{language.title} is made for {len(language.classes)} tokens, and {spec.name} has "
                f"{spec.vocab_size}; make it with the tokenizer of this model"
            )
        return cls(language.ending(spec.stop_ids, suppressed(settings, spec)))

    def check(self, tokens: Places, mask_id: int) -> None:
        """Raise unless some string of the language fits these tokens and masks."""
        masked, name = tokens == mask_id, self.automaton.title
        if PartlyFilled.of(self.automaton, tokens, masked).satisfiable():
            return
        shortest = self.automaton.shortest()
        if shortest is None:
            raise LanguageError(f"{name} holds no answer that this model can write; change it")
        if shortest > len(tokens) and masked.all():
            raise LanguageError(
                f"{name} takes at least {shortest} tokens, and the answer has {len(tokens)}; give "
                "a greater length"
            )
        fixed = "" if masked.all() else " with the text between the masks"
        raise LanguageError(
            f"no answer of {len(tokens)} tokens{fixed} is in {name}; change the length or the text"
        )

    def marginals(self, cells: LanguageCells, boost: Transform | None) -> Transform:
        """Turns logits into those of the marginals under the language; `boost` goes first."""
        weights = np.zeros((len(cells.logits), self.automaton.num_classes + 1))
        masses = self.class_masses(cells, boost)
        with np.errstate(invalid="ignore"):  # of NaN logits, which are reported later
            for row in cells.rows(self.automaton):
                weighed = cells.weighed[row.cells]
                answer = row.answer.weigh(row.places[weighed], masses[row.cells[weighed]])
                logs = answer.class_weights(row.places)
                top = logs.max(-1, keepdims=True)
                weights[row.cells, :-1] = logs - np.where(np.isfinite(top), top, 0.0)
                weights[row.cells, -1] = -np.inf
        return then(boost, self.adding(weights, cells.logits))

    def class_masses(self, cells: LanguageCells, boost: Transform | None) -> Floats:
        """The log-mass of every class, up to a constant for each cell: [N, V] -> [N, C]."""
        count, kinds = self.automaton.num_classes + 1, self.kinds(cells.logits.device)
        if boost is None:
            return class_masses(cells.logits, kinds, count)[:, :-1].cpu().numpy()
        pieces = []
        for rows in chunks(cells.logits):
            z = boost(cells.logits[rows].to(working_dtype(cells.logits)), rows.start)
            pieces.append(class_masses(z, kinds, count)[:, :-1].cpu())
        return torch.cat(pieces).numpy()

    def adding(self, weights: Floats, logits: Tensor, first_row: int = 0) -> Transform:
        """Adds the weight of its class to every token; the last class is what is not allowed."""
        added = ship(torch.from_numpy(weights).to(working_dtype(logits)), logits.device)

        def add(z: Tensor, first: int) -> Tensor:
            mine = added[first - first_row : first - first_row + len(z)]
            return z + mine.index_select(-1, self.kinds(z.device))

        return add

    def kinds(self, device: torch.device) -> Tensor:
        """The class of every token, those that are not allowed last: [V]."""
        if device not in self._shipped:
            kinds = torch.from_numpy(self.automaton.classes)
            kinds = torch.where(kinds < 0, self.automaton.num_classes, kinds)
            self._shipped[device] = kinds.to(device)
        return self._shipped[device]

    @cached_property
    def _shipped(self) -> dict[torch.device, Tensor]:
        return {}
