"""Rows that share their settings: one decision for all of them in each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from unmask.decoding.constrain import Constraint, suppressed, window_cells
from unmask.decoding.decide import Decide, by_rule
from unmask.decoding.declared import with_declared
from unmask.decoding.eos import EosTail
from unmask.decoding.fitting import fitted_step
from unmask.decoding.history import History, cells_where
from unmask.decoding.predict import check_finite, head, reduced
from unmask.decoding.request import Request, Settings
from unmask.decoding.results import CellLogits, Result, Step
from unmask.decoding.rewrite import grow, rewrite
from unmask.decoding.sampling import uniform_draws
from unmask.decoding.state import Member, State
from unmask.decoding.view_layout import CellStats, lay_out
from unmask.decoding.windows import open_windows
from unmask.errors import ModelError
from unmask.kernels.common import Stats
from unmask.kernels.reduce import Past, reduce
from unmask.models.denoiser import Denoiser, Hidden
from unmask.rules.rule import Decision
from unmask.rules.view import Divergence, View

# Makes the pass over the logits: `reduce`, or a wrapper of it that measures.
Reducer = Callable[[Tensor, Past | None, frozenset[Divergence], bool], Stats]

_IDENTITIES = itertools.count()


class Rows:
    """Rows with equal settings, their state and their history; the arguments are `Batch`'s."""

    def __init__(
        self,
        model: Denoiser,
        settings: Settings,
        keep_logits: bool = False,
        reducer: Reducer = reduce,
        decide: Decide = by_rule,
    ) -> None:
        block = settings.block or model.spec.block
        rule = settings.rule.for_model(model.spec)
        self.model, self.settings = model, replace(settings, block=block, rule=rule)
        self.keep_logits = keep_logits  # in the steps that are handed out
        self.reducer, self.decide = reducer, decide
        self.spec = model.spec
        self.needs = rule.needs
        self.declares = self.needs.beyond or rule.window is not None
        self.members: list[Member] = []
        self.eos = EosTail(settings.eos, self.spec)
        self.suppressed = suppressed(settings, self.spec)  # tokens that are never predicted
        self.constraint = Constraint.of(settings, self.spec)
        self.history = History(settings.history, self.suppressed)
        self._state: State | None = None
        self._arrived: list[Tensor] = []  # canvases of new rows

    @classmethod
    def gathered(cls, members: Sequence[tuple[Rows, int]]) -> Rows:
        """Rows of groups with equal settings, each by its group and key, as a group of their own.

        For hosts that choose in each step which rows go together.
        """
        groups = list(dict.fromkeys(rows for rows, _ in members))
        some = groups[0]
        new = cls(some.model, some.settings, some.keep_logits, some.reducer, some.decide)
        parts = []
        for group in groups:
            wanted = {key for rows, key in members if rows is group}
            places = [row for row, key in enumerate(group.keys) if key in wanted]
            new.members += [group.members[row] for row in places]
            parts.append((group.history, group.state.taken(torch.tensor(places))))
        new.history = History.joined(parts)
        new._state = State.joined([state for _, state in parts])
        return new

    @property
    def keys(self) -> list[int]:
        """The requests of the rows, in order."""
        return [member.key for member in self.members]

    @property
    def generators(self) -> list[torch.Generator]:
        """The source of each row's random numbers."""
        return [member.generator for member in self.members]

    @property
    def state(self) -> State:
        """The state of all rows, new ones included."""
        if self._arrived:
            from_zero = self.spec.block is not None and not self.spec.from_prompt_end
            mask, trail = self.spec.mask_id, self.needs.trail
            memory = self.settings.rule.memory
            new = State.of(self._arrived, mask, self.settings.block, trail, from_zero, memory)
            new.lead[:] = self.spec.block or 0 if self.spec.lead else 0
            open_windows(new, self.settings.block, self.settings.rule)
            new.sizing[:] = self.settings.growth is not None
            known = [self._state] if self._state is not None and len(self._state) else []
            self._state, self._arrived = State.joined([*known, new]), []
        assert self._state is not None, "no row was admitted yet"
        return self._state

    def __len__(self) -> int:
        return len(self.members)

    def admit(self, request: Request, key: int) -> None:
        """Add a row."""
        generator = torch.Generator().manual_seed(request.seed)
        self._arrived.append(request.canvas.cpu())
        self.members.append(Member(key, request.length, generator, next(_IDENTITIES)))

    def move(self, moved: Tensor) -> None:
        """Give rows whose positions have moved, [B], a new identity: no cache knows them."""
        self.members = [
            replace(member, identity=next(_IDENTITIES)) if new else member
            for member, new in zip(self.members, moved.tolist(), strict=True)
        ]

    def drop(self, key: int) -> None:
        """Remove a row before it is finished."""
        self._keep([row for row, other in enumerate(self.keys) if other != key])

    def step(self, hidden: Hidden, first: int) -> Step:
        """Decide and commit; these rows begin at `first` in the forward's batch."""
        state, keys = self.state, tuple(self.keys)
        window, self._seen = state.window, self.lengths
        candidates = self.eos.wanted(state, state.masked & window)
        candidates = self.fresh(candidates, hidden, first)
        if self.settings.growth is not None:
            candidates &= ~state.sizing[:, None]
        where = cells_where(self._active(candidates, hidden, first))
        logits = head(self, hidden, first, where)  # 1. predict   [N, V]
        stats = reduced(self, logits, where)  # 2. reduce    [N] each
        check_finite(self, stats, hidden, first)
        draws = uniform_draws(state, candidates, self.generators) if self.needs.draws else None
        view = lay_out(state, window, candidates, stats, draws, self.needs)
        if self.declares:
            view = with_declared(self, view, hidden, first)
        view, decision = self.decide(self.settings, state, view)  # 3. decide    [B, W]
        if self.constraint is not None and stats.changed is not None:
            cells = window_cells(self, logits, where)
            view, decision = fitted_step(self.constraint, cells, stats.changed, view, decision)
        forward, start, stop = state.nfe, state.start, state.stop
        self._remember(logits, stats, view, decision)  # 4. remember
        self._commit(view, decision)  # 5. commit
        rewritten = rewrite(self, view, decision, hidden, first)
        filled = self.eos.apply(state)
        filled = filled if rewritten is None else filled | rewritten
        state.nfe, state.step = state.nfe + 1, state.step + 1
        source = None
        if self.settings.growth is not None:
            source, filled = grow(self, view, decision, filled, hidden, first)
        tokens, lengths = state.tokens.clone(), state.length
        results: tuple[Result, ...] = ()
        if not bool((state.masked & state.window).any(-1).all()):  # a window is filled
            results = self._end_rows(hidden, first, decision.held)
        kept = CellLogits(*where, logits) if self.keep_logits else None
        return Step(
            keys, forward, start, stop, view, decision, filled, tokens, lengths, results, kept,
            source,
        )  # fmt: skip

    @property
    def lengths(self) -> Tensor:
        """How many ids the next forward sees of each row: all, unless the rule hides some: [B]."""
        state, sight = self.state, self.settings.rule.sight
        if not sight:
            return state.length
        seen = state.memory.values[sight]
        return torch.where(seen > 0, state.start + seen, state.length)

    def fresh(self, cells: Tensor, hidden: Hidden, first: int) -> Tensor:
        """The cells that this forward computed; a cache leaves the others as they were: [B, L]."""
        if self.settings.rule.sight:
            cells = cells & (torch.arange(cells.shape[-1]) < self._seen[:, None])
        if hidden.fresh is None:
            return cells
        return cells & hidden.fresh[first : first + len(self), : cells.shape[-1]]

    def _active(self, candidates: Tensor, hidden: Hidden, first: int) -> Tensor:
        """The cells whose logits are computed: candidates, and others the rule watches: [B, L]."""
        active = candidates
        if self.needs.committed:
            active = active | self.fresh(self.state.committed, hidden, first)
        if self.needs.later_blocks:
            active = active | self.fresh(self.state.masked, hidden, first)
        return active

    def _remember(self, logits: Tensor, stats: CellStats, view: View, decision: Decision) -> None:
        """Write into the state and the history what this step has computed."""
        state, where = self.state, stats.where
        if self.settings.rule.memory:
            inside = torch.arange(view.masked.shape[-1]) < (state.stop - state.start)[:, None]
            new = self.settings.rule.remembered(view, decision)
            state.memory.write(new, state.start, inside)
        if stats.raw.kl_error is not None:
            state.kl_error.scatter_reduce_(0, where[0], stats.raw.kl_error, "amax")
        if stats.trail is not None:
            state.trail[where] = stats.trail
        if stats.credit is not None:
            state.set_credit(where, *stats.credit)
        if self.needs.history or self.needs.drift:
            self.history.push(state, where, logits)

    def _commit(self, view: View, decision: Decision) -> None:
        state = self.state
        rows, columns = decision.chosen.nonzero(as_tuple=True)
        cells, tokens = (rows, state.start[rows] + columns), view.token[rows, columns]
        if self.settings.allow_mask and bool((tokens == self.spec.mask_id).any()):
            raise ModelError(
                f"{self.spec.name} predicted its own mask token, which would stay a mask; "
                "leave allow_mask off"
            )
        state.commit(cells, tokens)
        if self.needs.drift:
            self.history.anchor(state, cells)
        if bool(decision.revoked.any()):
            rows, columns = decision.revoked.nonzero(as_tuple=True)
            state.take_back((rows, state.start[rows] + columns), self.spec.mask_id)

    def _open_windows(self, hidden: Hidden, first: int, held: Tensor | None) -> None:
        """Open the next windows; their history is the head on this forward's hidden states."""
        state = self.state
        opened = open_windows(state, self.settings.block, self.settings.rule, held)
        if not bool(opened.any()) or not self.needs.history:
            return
        if self.needs.block_scope:
            state.slot[opened] = -1
            return
        wanted = self.fresh(state.masked & state.window, hidden, first)
        wanted &= opened[:, None] & (state.slot < 0)
        where = cells_where(wanted)
        if len(where[0]):
            self.history.extend(state, where, head(self, hidden, first, where))

    def _end_rows(self, hidden: Hidden, first: int, held: Tensor | None) -> tuple[Result, ...]:
        """Open the windows that follow filled ones, and take out the rows that have none."""
        finished = ~self.state.masked.any(-1)
        if held is not None:
            finished &= ~held
        state, ends, complete = self.state, self.spec.stop_ids, self.constraint is not None
        results = tuple(
            Result.of(state, row, self.members[row], ends, complete)
            for row in finished.nonzero()[:, 0].tolist()
        )
        self._open_windows(hidden, first, held)
        if results:
            self._keep((~finished).nonzero()[:, 0].tolist())
        return results

    def _keep(self, rows: list[int]) -> None:
        self.members = [self.members[row] for row in rows]
        self._state, self._arrived = self.state.taken(torch.tensor(rows)) if rows else None, []
