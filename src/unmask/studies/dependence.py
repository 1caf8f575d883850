"""How well H and D predict what a masked position still depends on, measured on a model.

A run is stopped at some of its forwards. Each other mask of the canvas is fixed to its likeliest
token, one at a time, and each position's distribution is watched. The mean of KL(after || before)
over the fixed masks is what is left of the position's dependence on the masked context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from unmask.decoding.eos import EosTail, is_stop
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request
from unmask.decoding.results import Result
from unmask.errors import RequestError
from unmask.models.denoiser import Canvas, Denoiser, Hidden
from unmask.studies.correlation import Array, Correlations, RankedCanvas, correlations

LOWEST = -1e30  # the logit of an impossible token: finite, so that 0 log 0 is 0
FEWEST = 5  # masks of a canvas: with fewer there is nothing to rank


@dataclass(frozen=True)
class StudySize:
    """How much is measured."""

    canvases: int = 4  # of each run, spread evenly over its forwards
    fixed: int = 32  # masks that are fixed in each canvas, one at a time, spread evenly
    batch_size: int = 8

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise RequestError(f"{name} must be >= 1, got {value}")

    def most_forwards(self, lengths: Sequence[int]) -> int:
        """A bound on the forward passes for answers of these lengths: the runs, then the study."""
        studied = (self.canvases * (min(self.fixed, length) + 2) for length in lengths)
        return sum(lengths) + sum(studied)


class RunMoment(NamedTuple):
    """A run before one of its forwards."""

    prompt: int
    before: Tensor  # [L] the canvas one forward earlier
    now: Tensor  # [L]
    given: Tensor  # [L] bool: the prompt
    positions: Tensor  # [M] the masks of the window


@dataclass(frozen=True)
class Positions:
    """What was measured at the M masks of one canvas: [M] each, in nats."""

    prompt: int
    entropy: Array  # H of the prediction
    moved: Array  # D = KL(previous || current), as Algorithm 1
    moved_back: Array  # KL(current || previous), as the theorem
    dependence: Array  # mean KL(after || before) over the masks that were fixed
    ends: Array  # 1 where the likeliest token ends the answer


@dataclass(frozen=True)
class DependenceResult:
    """The correlations over all positions, and over those that predict no end token."""

    prompts: int
    canvases: int
    positions: int
    forwards: int
    groups: dict[str, Correlations]


def study(
    model: Denoiser,  # without a cache: the canvases are not the steps of one run
    requests: Sequence[Request],
    size: StudySize,
    progress: Callable[[int], None] = lambda done: None,
) -> DependenceResult:
    """Measure the canvases of all requests, and correlate over their positions."""
    results = sorted(_runs(model, requests, size), key=lambda result: result.key)
    moments = [
        each
        for request, result in zip(requests, results, strict=True)
        for each in moments_of(model, request, result, size.canvases)
    ]
    if not moments:
        raise RequestError(
            f"no run has a forward with a history and {FEWEST} masks left; use longer answers or "
            "a rule that commits fewer tokens at once"
        )
    measured = []
    for moment in moments:
        suppressed = EosTail(requests[moment.prompt].settings.eos, model.spec).suppressed
        measured.append(measure(model, moment, (model.spec.mask_id, *suppressed), size))
        progress(len(measured))
    fixed = sum(min(size.fixed, len(each.positions)) + 2 for each in moments)
    return DependenceResult(
        len({each.prompt for each in measured}),
        len(measured),
        sum(len(each.entropy) for each in measured),
        fixed + sum(result.nfe for result in results),
        {name: _correlated(part) for name, part in _groups(measured).items() if part},
    )


def moments_of(
    model: Denoiser, request: Request, result: Result, count: int
) -> Iterator[RunMoment]:
    """Up to `count` moments of a run with a history and enough masks, spread over its forwards."""
    commit, mask = result.commit_step, model.spec.mask_id
    block = request.settings.block or model.spec.block
    origin = 0 if model.spec.block else int((commit >= 0).nonzero()[0])
    times = []
    for time in range(1, result.nfe):
        positions = _in_block((commit >= time).nonzero()[:, 0], origin, block)
        if len(positions) >= FEWEST:
            times.append((time, positions))
    for place in _spread(len(times), count):
        time, positions = times[place]
        before, now = (result.canvas.masked_fill(commit >= t, mask) for t in (time - 1, time))
        yield RunMoment(result.key, before, now, commit < 0, positions)


@torch.no_grad()
def measure(
    model: Denoiser, moment: RunMoment, suppressed: Sequence[int], size: StudySize
) -> Positions:
    """H, D and the remaining dependence of every mask of a moment."""
    positions = moment.positions
    frame = _Frame(model, moment.given, positions, tuple(suppressed))
    before, now = frame.predictions([moment.before, moment.now])  # [M, V] log p each
    chosen = _spread(len(positions), size.fixed)
    token = now.argmax(-1).cpu()
    total, times = torch.zeros(len(positions), dtype=torch.float64), torch.zeros(len(positions))
    for first in range(0, len(chosen), size.batch_size):
        some = chosen[first : first + size.batch_size]
        canvases = [_fixed(moment.now, positions[j], token[j]) for j in some]
        for j, after in zip(some, frame.predictions(canvases), strict=True):
            others = torch.arange(len(positions)) != j
            total += torch.where(others, _kl(after, now), 0.0)
            times += others
    entropy = -(now.exp() * now).sum(-1).double().cpu()
    ends = is_stop(token, model.spec.stop_ids)
    columns = (entropy, _kl(before, now), _kl(now, before), total / times.clamp_min(1), ends)
    return Positions(moment.prompt, *(each.double().numpy() for each in columns))


class _Frame(NamedTuple):
    """Predicts the same positions of canvases that differ in their masks."""

    model: Denoiser
    given: Tensor
    positions: Tensor
    suppressed: tuple[int, ...]

    def predictions(self, canvases: Sequence[Tensor]) -> list[Tensor]:
        """Log p at the positions of each canvas, float32: [M, V] each, one forward pass."""
        tokens = torch.stack(list(canvases))  # [B, L]
        count, length = tokens.shape
        canvas = Canvas(
            tokens=tokens,
            lengths=torch.full((count,), length),
            masked=(tokens == self.model.spec.mask_id) & ~self.given,
            given=self.given.expand(count, -1),
            start=torch.full((count,), int(self.positions[0])),
            stop=torch.full((count,), int(self.positions[-1]) + 1),
            keys=tuple(range(count)),
        )
        hidden = self.model.trunk(canvas)
        return [self._row(hidden, row) for row in range(count)]

    def _row(self, hidden: Hidden, row: int) -> Tensor:
        rows = torch.full_like(self.positions, row)
        logits = self.model.head(hidden, rows, self.positions).float()
        logits[:, list(self.suppressed)] = LOWEST
        return logits.clamp_min(LOWEST).log_softmax(-1)


def _runs(model: Denoiser, requests: Sequence[Request], size: StudySize) -> Iterator[Result]:
    for step in decode_steps(model, requests, size.batch_size):
        yield from step.finished


def _in_block(positions: Tensor, origin: int, block: int | None) -> Tensor:
    """Those of the masks that lie in the block of the first one."""
    if block is None:
        return positions
    number = (positions - origin) // block
    return positions[number == number[0]]


def _fixed(canvas: Tensor, position: Tensor, token: Tensor) -> Tensor:
    changed = canvas.clone()
    changed[position] = token
    return changed


def _kl(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) of log-probabilities, on the host: [M, V] x 2 -> [M]."""
    return (p.exp() * (p - q)).sum(-1).double().cpu()


def _spread(available: int, wanted: int) -> list[int]:
    """At most `wanted` of the numbers 0 .. available - 1, spread evenly."""
    if wanted >= available:
        return list(range(available))
    return [int((place + 0.5) * available / wanted) for place in range(wanted)]


def _correlated(measured: Sequence[Positions]) -> Correlations:
    return correlations(
        [
            RankedCanvas(each.prompt, each.entropy, each.moved, each.moved_back, each.dependence)
            for each in measured
        ]
    )


def _groups(measured: Sequence[Positions]) -> dict[str, list[Positions]]:
    """All positions, and those whose likeliest token does not end the answer."""
    others = [_kept(each, each.ends == 0) for each in measured if (each.ends == 0).sum() >= FEWEST]
    return {"all positions": list(measured), "without end tokens": others}


def _kept(each: Positions, keep: Array) -> Positions:
    columns = (each.entropy, each.moved, each.moved_back, each.dependence, each.ends)
    return Positions(each.prompt, *(column[keep] for column in columns))
