"""Rows that share their settings: one decision for all of them in each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unmask.decoding.decide import Decide, by_rule
from unmask.decoding.eos import EosTail
from unmask.decoding.history import History, cells_where
from unmask.decoding.request import Request, Settings
from unmask.decoding.results import CellLogits, Result, Step
from unmask.decoding.sampling import adding, scored, uniform_draws
from unmask.decoding.state import State, Where
from unmask.decoding.view_layout import CellStats, lay_out
from unmask.decoding.windows import in_window, open_windows
from unmask.errors import ModelError
from unmask.kernels.common import Stats, on_host
from unmask.kernels.reduce import Past, reduce
from unmask.models.denoiser import Denoiser, Hidden
from unmask.rules.rule import Decision
from unmask.rules.view import KL, View

# Makes the pass over the logits: `reduce`, or a wrapper of it that measures.
Reducer = Callable[[Tensor, Past | None, frozenset[KL], bool], Stats]

_IDENTITIES = itertools.count()


@dataclass(frozen=True)
class Member:
    """What a row has beside its tensors."""

    key: int  # of the request
    length: int | None  # how many tokens of the answer are wanted
    generator: torch.Generator
    identity: int  # for caches: never used twice


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
        self.model, self.settings = model, replace(settings, block=block)
        self.keep_logits = keep_logits  # in the steps that are handed out
        self.reducer, self.decide = reducer, decide
        self.spec = model.spec
        self.needs = settings.rule.needs
        self.members: list[Member] = []
        self._eos = EosTail(settings.eos, self.spec)
        mask = () if settings.allow_mask else (self.spec.mask_id,)
        self._suppressed = (*mask, *self._eos.suppressed)  # tokens that are never predicted
        self.history = History(settings.history, self._suppressed)
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
    def _generators(self) -> list[torch.Generator]:
        return [member.generator for member in self.members]

    @property
    def state(self) -> State:
        """The state of all rows, new ones included."""
        if self._arrived:
            from_zero = self.spec.block is not None and not self.spec.from_prompt_end
            lead = self.spec.block or 0 if self.spec.lead else 0
            mask, trail = self.spec.mask_id, self.needs.trail
            new = State.of(self._arrived, mask, self.settings.block, trail, from_zero, lead)
            open_windows(new, self.settings.block)
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

    def drop(self, key: int) -> None:
        """Remove a row before it is finished."""
        self._keep([row for row, other in enumerate(self.keys) if other != key])

    def step(self, hidden: Hidden, first: int) -> Step:
        """Decide and commit; these rows begin at `first` in the forward's batch."""
        state, keys = self.state, tuple(self.keys)
        window = in_window(state)
        candidates = self._fresh(state.masked & window & self._eos.wanted(state), hidden, first)
        where = cells_where(self._active(candidates, hidden, first))
        logits = self._head(hidden, first, where)  # 1. predict   [N, V]
        stats = self._reduce(logits, where)  # 2. reduce    [N] each
        self._check_finite(stats, hidden, first)
        draws = uniform_draws(state, candidates, self._generators) if self.needs.draws else None
        view = lay_out(state, window, candidates, stats, draws, self.needs)
        view, decision = self.decide(self.settings, state, view)  # 3. decide    [B, W]
        forward, start, stop = state.nfe.clone(), state.start, state.stop
        self._remember(logits, stats, decision)  # 4. remember
        self._commit(view, decision)  # 5. commit
        filled = self._eos.apply(state)
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
        """The cells that this forward computed; a cache leaves the others as they were: [B, L]."""
        if hidden.fresh is None:
            return cells
        return cells & hidden.fresh[first : first + len(self), : cells.shape[-1]]

    def _active(self, candidates: Tensor, hidden: Hidden, first: int) -> Tensor:
        """The cells whose logits are computed: candidates, and others the rule watches: [B, L]."""
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

    def _reduce(self, logits: Tensor, where: Where) -> CellStats:
        """One pass over the logits, and a second one if the score reads changed logits."""
        state, needs, sampling = self.state, self.needs, self.settings.sampling
        previous = self.history.previous(state, where)
        raw = self.reducer(logits, previous, needs.directions, needs.uniform_start)
        credit, boost = self.settings.rule.logits, None
        credited: tuple[Tensor, Tensor] | None = None
        if credit is not None:  # it is kept on the host: one more wait for a GPU
            here, held = raw.on_host(), (state.credit_token[where], state.credit[where])
            credited = credit.updated(*held, here.token, here.confidence)
            boost = adding(credited[0], credit.bonus(credited[1]), logits.device)
        drawn, generators = where[0].tolist() if sampling.draws else [], self._generators
        own = [generators[row] for row in drawn]
        score = scored(logits, raw, sampling, boost, self._eos.last, own)
        drift = self.history.drift(state, where, logits, needs.drift) if needs.drift else None
        raw, score, drift = _on_host(raw, score, drift)
        trail = self._trail(raw, where) if needs.trail else None
        return CellStats(where, raw, score, drift, self._eos.deferred(score.token), trail, credited)

    def _trail(self, raw: Stats, where: Where) -> Tensor:
        """The last values of KL(current || previous) with this forward's; +inf without: [N, n]."""
        assert raw.kl_cur_prev is not None
        newest = torch.where(self.state.slot[where] >= 0, raw.kl_cur_prev, torch.inf)
        return torch.cat([self.state.trail[where][:, 1:], newest[:, None]], -1)

    def _check_finite(self, stats: CellStats, hidden: Hidden, first: int) -> None:
        broken = stats.raw.confidence.isnan().nonzero()
        if len(broken):
            row, position = (index[broken[0]] for index in stats.where)
            logits = self.model.head(hidden, row + first, position)[0]
            where = (
                f"at step {int(self.state.nfe[row])}, position {int(position)} of request "
                f"{self.keys[int(row)]}"
            )
            raise ModelError(f"{self.spec.name} gave {self._no_token(logits, where)}")

    def _no_token(self, logits: Tensor, where: str) -> str:
        """Why no token can be chosen by these logits, [V], before any is suppressed."""
        finite = logits.isfinite().nonzero()[:, 0].tolist()
        if finite and set(finite) <= {*self._suppressed} and bool((logits < torch.inf).all()):
            kinds = {self.spec.mask_id: "mask", self.spec.eos_id: "EOS"}
            names = " and ".join(f"the {kinds[token]} token {token}" for token in finite)
            return (
                f"a finite logit only to {names} {where}, which these settings never predict; "
                "check the mask id and the weights"
            )
        return (
            f"NaN, +inf or only -inf logits {where}; check the weights and the dtype (float16 "
            "overflows where bfloat16 does not)"
        )

    def _remember(self, logits: Tensor, stats: CellStats, decision: Decision) -> None:
        """Write into the state and the history what this step has computed."""
        state, where = self.state, stats.where
        state.idle = torch.where(decision.chosen.any(-1), 0, state.idle + 1)
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
        rows, columns = decision.revoked.nonzero(as_tuple=True)
        if len(rows):
            state.take_back((rows, state.start[rows] + columns), self.spec.mask_id)

    def _open_windows(self, hidden: Hidden, first: int) -> None:
        """Open the next windows; their history is the head on this forward's hidden states."""
        state = self.state
        opened = open_windows(state, self.settings.block)
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
        """The results of the rows that have no mask left."""
        state, members, ends = self.state, self.members, self.spec.stop_ids
        return tuple(
            Result.of(state, row, members[row].key, members[row].length, ends)
            for row in finished.nonzero()[:, 0].tolist()
        )

    def _keep(self, rows: list[int]) -> None:
        self.members = [self.members[row] for row in rows]
        self.state.keep(torch.tensor(rows, dtype=torch.int64))


def _on_host(raw: Stats, score: Stats, drift: Tensor | None) -> tuple[Stats, Stats, Tensor | None]:
    """The numbers that a decision is made of, brought to the host together."""
    first, second = list(vars(raw).values()), [] if score is raw else list(vars(score).values())
    *columns, drift = on_host([*first, *second, drift])
    here = Stats(*columns[: len(first)])
    return here, Stats(*columns[len(first) :]) if second else here, drift
