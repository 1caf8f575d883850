"""Rows that share their settings: one decision for all of them in each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from unmask.decoding.eos import EosTail, first_stop
from unmask.decoding.history import History, Where, cells_where
from unmask.decoding.request import Request, Settings
from unmask.decoding.results import CellLogits, Result, Step
from unmask.decoding.scoring import scored
from unmask.decoding.sparse import SparsePrevious
from unmask.decoding.state import State
from unmask.decoding.view_layout import Found, lay_out
from unmask.decoding.windows import forwards_here, in_window, open_windows
from unmask.errors import ModelError, RuleError
from unmask.kernels.common import Stats, on_host
from unmask.kernels.reduce import Previous, reduce
from unmask.models.denoiser import Denoiser, Hidden
from unmask.rules.registry import abilities_of, spelled
from unmask.rules.rule import Decision
from unmask.rules.select import best_first, first_in
from unmask.rules.view import ABSENT, KL, View

# What makes the pass over the logits: `reduce`, or something around it that watches.
Reducer = Callable[[Tensor, Previous | SparsePrevious | None, frozenset[KL], bool], Stats]

_IDENTITIES = itertools.count()
MOST_IDLE = 4096  # forwards without a commitment before a row is given up


class Rows:
    """Rows with equal settings, their state and the logits they remember."""

    def __init__(
        self,
        model: Denoiser,
        settings: Settings,
        keep_logits: bool = False,
        reducer: Reducer = reduce,
    ) -> None:
        self.model = model
        self.keep_logits = keep_logits  # in the steps that are handed out
        self.reducer = reducer
        self.spec = model.spec
        self.settings = settings
        self.needs = settings.rule.needs
        self.block = settings.block or self.spec.block
        self.history = History(settings.history, self._suppressed)
        self.keys: list[int] = []
        self.lengths: list[int | None] = []  # how much of its answer each row was asked for
        self.identities: list[int] = []  # of the rows, for caches: never used twice
        self.generators: list[torch.Generator] = []
        self._state: State | None = None
        self._arrived: list[Tensor] = []  # canvases
        self._tail = EosTail(settings.eos, self.spec)

    @classmethod
    def gathered(cls, members: Sequence[tuple[Rows, int]]) -> Rows:
        """Rows of groups with equal settings, each by its group and key, as a group of their own.

        For hosts that decide which rows go together anew in each step.
        """
        groups = list(dict.fromkeys(rows for rows, _ in members))
        some = groups[0]
        new, parts = cls(some.model, some.settings, some.keep_logits, some.reducer), []
        for group in groups:
            wanted = {key for rows, key in members if rows is group}
            places = [row for row, key in enumerate(group.keys) if key in wanted]
            new.keys += [group.keys[row] for row in places]
            new.lengths += [group.lengths[row] for row in places]
            new.identities += [group.identities[row] for row in places]
            new.generators += [group.generators[row] for row in places]
            parts.append((group.history, group.state.taken(torch.tensor(places))))
        new.history = History.joined(parts)
        new._state = State.joined([state for _, state in parts])
        return new

    @property
    def _suppressed(self) -> tuple[int, ...]:
        """Tokens that are never predicted."""
        mask = () if self.settings.allow_mask else (self.spec.mask_id,)
        ends = (self.spec.eos_id,) if self.settings.eos == "suppress" else ()
        return tuple(token for token in (*mask, *ends) if token is not None)

    @property
    def state(self) -> State:
        """Of all rows; those that came since it was last asked for join together."""
        if self._arrived:
            from_zero = self.spec.block is not None
            mask, trail = self.spec.mask_id, self.needs.trail
            new = State.of(self._arrived, mask, self.block, trail, from_zero)
            open_windows(new, self.block)
            known = [self._state] if self._state is not None and len(self._state) else []
            self._state, self._arrived = State.joined([*known, new]), []
        assert self._state is not None, "no row was admitted yet"
        return self._state

    def __len__(self) -> int:
        return len(self.keys)

    def admit(self, request: Request, key: int) -> None:
        """Take in one more row."""
        self._arrived.append(request.canvas.cpu())
        self.keys.append(key)
        self.lengths.append(request.length)
        self.identities.append(next(_IDENTITIES))
        self.generators.append(torch.Generator().manual_seed(request.seed))

    def drop(self, key: int) -> None:
        """Let a row go before it is finished."""
        self._keep([row for row, other in enumerate(self.keys) if other != key])

    def step(self, hidden: Hidden, first: int) -> Step:
        """Decide and commit; these rows begin at `first` in the forward's batch."""
        state, keys = self.state, tuple(self.keys)
        window = in_window(state)
        candidates = self._fresh(state.masked & window & self._tail.wanted(state), hidden, first)
        where = cells_where(self._active(candidates, hidden, first))
        logits = self._head(hidden, first, where)  # 1. predict   [N, V]
        found = self._reduce(logits, where)  # 2. reduce    [N] each
        draws = self._draws(candidates) if self.needs.draws else ABSENT
        view = self._view(lay_out(state, window, candidates, found, draws, self.needs))
        decision = self._decide(view)  # 3. decide    [B, W]
        forward, start, stop = state.nfe.clone(), state.start, state.stop
        self._remember(logits, where)  # 4. remember
        self._commit(view, decision)  # 5. commit
        filled = self._tail.apply(state)
        state.nfe += 1
        state.step += 1
        tokens, lengths = state.tokens.clone(), state.length
        finished = ~state.masked.any(-1)
        results = self._results(finished)
        self._open_windows(hidden, first)
        if results:
            self._keep((~finished).nonzero()[:, 0].tolist())
        kept = CellLogits(*where, logits) if self.keep_logits else None
        return Step(
            keys, forward, start, stop, view, decision, filled, tokens, lengths, results, kept
        )

    def _fresh(self, cells: Tensor, hidden: Hidden, first: int) -> Tensor:
        """Those of the cells that this forward computed: a cache leaves others as they were."""
        if hidden.fresh is None:
            return cells
        return cells & hidden.fresh[first : first + len(self), : cells.shape[-1]]

    def _active(self, candidates: Tensor, hidden: Hidden, first: int) -> Tensor:
        """The cells whose logits are computed: candidates, and what the rule watches: [B, L]."""
        active = candidates
        if self.needs.drift:
            active = active | self._fresh(self.state.anchor >= 0, hidden, first)
        if self.needs.later_blocks:
            active = active | self._fresh(self.state.masked, hidden, first)
        return active

    def _head(self, hidden: Hidden, first: int, where: Where) -> Tensor:
        """Logits of these cells, suppressed tokens at -inf: [N, V]."""
        rows, positions = where
        logits = self.model.head(hidden, rows + first, positions)
        for token in self._suppressed:
            logits[:, token] = -torch.inf
        return logits

    def _reduce(self, logits: Tensor, where: Where) -> Found:
        """One pass over the logits, and one more where another distribution scores."""
        state, needs = self.state, self.needs
        past = self.history.previous(state, where)
        raw = self.reducer(logits, past, needs.directions, needs.uniform_start)
        seen = scored(logits, raw, state, where, self.settings, self.spec, self.generators)
        drift = self.history.drift(state, where, logits, needs.drift) if needs.drift else ABSENT
        raw, seen, drift = _on_host(raw, seen, drift)
        self._check_finite(raw, where)
        if raw.kl_error is not ABSENT:
            state.kl_error.scatter_reduce_(0, where[0], raw.kl_error, "amax")
        if needs.trail:
            newest = torch.where(state.slot[where] >= 0, raw.kl_cur_prev, torch.inf)
            state.trail[where] = torch.cat([state.trail[where][:, 1:], newest[:, None]], -1)
        return Found(where, raw, seen, drift, self._tail.deferred(seen.token))

    def _check_finite(self, stats: Stats, where: Where) -> None:
        broken = stats.confidence.isnan().nonzero()
        if len(broken):
            row, position = (int(index[broken[0]]) for index in where)
            raise ModelError(
                f"{self.spec.name} gave NaN, +inf or only -inf logits at step "
                f"{int(self.state.nfe[row])}, position {position} of request {self.keys[row]}; "
                "check the weights and the dtype (float16 overflows where bfloat16 does not)"
            )

    def _draws(self, candidates: Tensor) -> Tensor:
        """One float32 random number per candidate, row by row in order: [B, W]."""
        state = self.state
        width = int((state.stop - state.start).max())
        draws = torch.zeros((len(self), width), dtype=torch.float64)
        pairs = zip(candidates.cpu(), state.start.tolist(), self.generators, strict=True)
        for row, (mine, start, generator) in enumerate(pairs):
            places = mine.nonzero()[:, 0] - start
            draws[row, places] = torch.rand(len(places), generator=generator).double()
        return draws

    def _view(self, view: View) -> View:
        """What the rule is shown: all of it, unless somebody has a say in it."""
        return view

    def _decide(self, view: View) -> Decision:
        rule = self.settings.rule
        decision = rule(view)
        chosen, revoked = decision.chosen, decision.revoked & view.revocable
        least = None
        if self.settings.steps is not None:
            left = forwards_here(self.state, self.block, self.settings.steps)
            least = (view.masked.sum(-1) + left - 1) // left
            order = best_first(decision.scores.key, view.masked)
            chosen = chosen | first_in(order, least, view.masked)
            revoked &= (left > 1)[:, None]
        self._check_progress(view, chosen)
        return replace(decision, chosen=chosen, revoked=revoked, least=least)

    def _check_progress(self, view: View, chosen: Tensor) -> None:
        """Raise where a row would never end: nothing is chosen, or nothing is ever computed."""
        waiting = ~chosen.any(-1)
        self.state.idle = torch.where(waiting, self.state.idle + 1, 0)
        if not bool(waiting.any()):
            return
        select = self.settings.rule.select
        stuck = waiting & view.masked.any(-1)
        if bool(stuck.any()) and not abilities_of(select).waits:
            raise RuleError(
                f"{spelled(select)} chose nothing though masks are left; a selection chooses at "
                "least one per step, or says `waits = True`"
            )
        if bool((self.state.idle > MOST_IDLE).any()):
            raise RuleError(
                f"nothing was committed in {MOST_IDLE} forwards: {spelled(select)} waits for ever, "
                "or a cache never computes the masks that are left"
            )

    def _remember(self, logits: Tensor, where: Where) -> None:
        if self.needs.history or self.needs.drift:
            self.history.push(self.state, where, logits)

    def _commit(self, view: View, decision: Decision) -> None:
        state = self.state
        rows, columns = decision.chosen.nonzero(as_tuple=True)
        cells, tokens = (rows, state.start[rows] + columns), view.token[rows, columns]
        if self.settings.allow_mask and bool((tokens == self.spec.mask_id).any()):
            raise ModelError(
                f"{self.spec.name} predicted its own mask token, which would stay a mask; "
                "leave allow_mask off"
            )
        state.tokens[cells] = tokens
        state.masked[cells] = False
        state.commit_step[cells] = state.nfe[rows]
        if self.needs.drift:
            self.history.anchor(state, cells)
            rows, columns = decision.revoked.nonzero(as_tuple=True)
            self._take_back((rows, state.start[rows] + columns))

    def _take_back(self, cells: Where) -> None:
        """Mask these cells again; what they looked like is forgotten."""
        state = self.state
        state.tokens[cells] = self.spec.mask_id
        state.masked[cells] = True
        state.commit_step[cells] = -1
        state.revoked_times[cells] += 1
        state.anchor[cells] = -1
        state.slot[cells] = -1
        state.trail[cells] = 0.0
        state.credit_token[cells], state.credit[cells] = -1, 0.0

    def _open_windows(self, hidden: Hidden, first: int) -> None:
        """Open the next windows; their history is the head on this forward's hidden states."""
        state = self.state
        opened = open_windows(state, self.block)
        if not bool(opened.any()) or not self.needs.history:
            return
        if self.needs.block_scope:
            state.slot[opened] = -1
            return
        wanted = self._fresh(state.masked & in_window(state), hidden, first)
        wanted &= opened[:, None] & (state.slot < 0)
        where = cells_where(wanted)
        if len(where[0]):
            self.history.extend(state, where, self._head(hidden, first, where))

    def _results(self, finished: Tensor) -> tuple[Result, ...]:
        """What comes out of the rows that have no mask left."""
        state, results = self.state, []
        for row in finished.nonzero()[:, 0].tolist():
            length = int(state.length[row])
            canvas, answer = state.tokens[row, :length].clone(), self._asked(row, length)
            commit = state.commit_step[row, :length].clone()
            end = first_stop(canvas, answer, self.spec.stop_ids)
            nfe_eos = int(commit[: end + 1][answer[: end + 1]].max()) + 1
            nfe = int(state.nfe[row])
            written = canvas[answer]
            error = float(state.kl_error[row])
            ends = self.spec.stop_ids
            results.append(
                Result(self.keys[row], canvas, written, commit, nfe, nfe_eos, ends, error)
            )
        return tuple(results)

    def _asked(self, row: int, length: int) -> Tensor:
        """The positions of the answer, without what only fills up the last block: [L] bool."""
        answer = self.state.answer[row, :length]
        wanted = self.lengths[row]
        return answer if wanted is None else answer & (answer.cumsum(-1) <= wanted)

    def _keep(self, rows: list[int]) -> None:
        self.keys = [self.keys[row] for row in rows]
        self.lengths = [self.lengths[row] for row in rows]
        self.identities = [self.identities[row] for row in rows]
        self.generators = [self.generators[row] for row in rows]
        self.state.keep(torch.tensor(rows, dtype=torch.int64))


def _on_host(raw: Stats, seen: Stats, drift: Tensor) -> tuple[Stats, Stats, Tensor]:
    """What the decision is made of, brought to the host together."""
    first, second = list(vars(raw).values()), [] if seen is raw else list(vars(seen).values())
    *found, moved = on_host([*first, *second, drift])
    here = Stats(*found[: len(first)])
    return here, Stats(*found[len(first) :]) if second else here, moved
