"""Random views and models, and rules that cover every registered part."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from unmask.conformance.units import plain_view
from unmask.decoding.results import Result
from unmask.kernels.reduce import Previous, reduce
from unmask.models.denoiser import Canvas, Hidden, ModelSpec
from unmask.models.toys.lookup import LookupDenoiser
from unmask.rules.registry import Kind, kinds, notation
from unmask.rules.rule import Rule
from unmask.rules.view import FIELDS, Progress, Scores, View

VOCABULARY, LENGTH, REACH = 12, 24, 3
EOS, MASK = VOCABULARY - 2, VOCABULARY - 1
SPEC = ModelSpec(MASK, VOCABULARY, EOS, name="random lookup", newline_id=3)
FEW_STEPS = 10  # for timetables, whose default is as long as a real answer


def table(*rows: list[float]) -> Tensor:
    """Numbers as the views hold them."""
    return torch.tensor(rows, dtype=torch.float64)


def bits(*rows: list[int]) -> Tensor:
    """Rows of 0 and 1 as a bool tensor."""
    return torch.tensor(rows, dtype=torch.bool)


def places(chosen: Tensor, row: int = 0) -> list[int]:
    """Where a row of a bool tensor is True."""
    positions: list[int] = chosen[row].nonzero()[:, 0].tolist()
    return positions


def hand_view(confidence: list[float], **fields: Any) -> View:
    """A view of one row with these confidences, all masked; what is not given is zero."""
    row = table(confidence)
    masked = fields.pop("masked", torch.ones_like(row, dtype=torch.bool))
    entropy = fields.pop("entropy", torch.zeros_like(row))
    return plain_view(masked, entropy, confidence=row, **fields)


def at_step(view: View, step: int, **fields: Any) -> View:
    """The same view, later in its window."""
    progress = replace(view.progress, step=torch.tensor([step] * len(view.masked)), **fields)
    return replace(view, progress=progress)


@cache
def random_view(seed: int, rows: int = 3, width: int = 9) -> View:
    """A view with every field filled in, of rows whose windows have unequal widths."""
    generator = torch.Generator().manual_seed(seed)

    def whole(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=generator)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    cells, place = rows * width, torch.arange(width)
    sharpness = 0.5 + 8 * uniform(cells, 1)
    now = sharpness * torch.randn(cells, VOCABULARY, generator=generator, dtype=torch.float64)
    moved = 0.3 * torch.randn(cells, VOCABULARY, generator=generator, dtype=torch.float64)
    inside = place < whole(1, width + 1, rows)[:, None]
    masked = (uniform(rows, width) < 0.7) & inside
    seen = uniform(rows, width) < 0.8
    slot = torch.where(seen.flatten(), torch.arange(cells), -1)
    stats = reduce(now, Previous(now + moved, slot), frozenset(FIELDS))

    def lay(values: Tensor) -> Tensor:
        return torch.where(inside, values.view(rows, width), 0)

    top = now.softmax(-1).topk(8, -1)

    def lay_top(values: Tensor) -> Tensor:
        return torch.where(inside[..., None], values.view(rows, width, 8), 0)

    offset = whole(0, 3, rows) * width
    answer = offset + width + whole(0, 20, rows)
    reach = int(answer.max())
    known = (uniform(rows, reach) < 0.5) & (torch.arange(reach) < answer[:, None])
    for row in range(rows):
        known[row, int(offset[row]) : int(offset[row]) + width] = ~masked[row]
    committed = inside & ~masked & (uniform(rows, width) < 0.5)
    return View(
        masked=masked,
        token=lay(stats.token),
        confidence=lay(stats.confidence),
        margin=lay(stats.margin),
        entropy=lay(stats.entropy),
        raw_entropy=lay(stats.entropy),
        seen=seen & inside,
        kl_prev_cur=lay(stats.kl_prev_cur),
        kl_cur_prev=lay(stats.kl_cur_prev),
        js=lay(stats.js),
        tv=lay(stats.tv),
        trail=0.002 * uniform(rows, width, 4) * inside[..., None],
        draws=uniform(rows, width) * masked,
        drift=2 * uniform(rows, width) * committed,
        revocable=committed,
        revoked_times=whole(0, 2, rows, width) * committed,
        deferred=torch.zeros_like(masked),
        top_tokens=lay_top(top.indices),
        top_probabilities=lay_top(top.values),
        ends=(uniform(rows, width) < 0.3) & inside,
        standing=whole(0, EOS, rows, width),
        shadow=uniform(rows, width) * committed,
        support=uniform(rows, width) * committed,
        chosen=masked & (uniform(rows, width) < 0.5),
        progress=Progress(
            step=whole(0, 6, rows),
            opened=masked.sum(-1) + whole(0, 3, rows),
            num_windows=whole(1, 4, rows),
            offset=offset,
            known=known,
            answer_length=answer,
            window=whole(0, 3, rows),
            ended=uniform(rows) < 0.2,
            gaps=6 * uniform(rows, 5),
        ),
    )


def alone(view: View, row: int) -> View:
    """One row as it would be in a batch of its own: nothing is padded for another's answer."""
    one = view.row(row)
    reach = int(one.progress.answer_length)
    return replace(one, progress=replace(one.progress, known=one.progress.known[:, :reach]))


def random_scores(seed: int, rows: int = 3, width: int = 9) -> Scores:
    """Scores in [0, 1] with ties and zeros among them, ranked by their logarithm."""
    generator = torch.Generator().manual_seed(seed)
    value = torch.randint(0, 9, (rows, width), generator=generator).double() / 8
    return Scores.probability(value)


def widened(view: View, columns: int) -> View:
    """The same view with more columns beyond every row's own width."""
    padded = {
        name: pad(value, (0, 0, 0, columns) if value.ndim == 3 else (0, columns))
        for name, value in view.tensors().items()
    }
    return replace(view, **padded)


def random_lookup(
    seed: int,
    *,
    dtype: torch.dtype = torch.float32,
    eos: float = 0.0,
    length: int = LENGTH,
    spec: ModelSpec = SPEC,
) -> LookupDenoiser:
    """A toy model with random tables of multiples of 1/4096: its sums are exact.

    `eos` (in logits) is how much it leans towards EOS at the end of the canvas.
    """
    generator = torch.Generator().manual_seed(seed)

    def random_table(scale: int, *shape: int) -> Tensor:
        top = scale * 1024
        return torch.randint(-top, top + 1, shape, generator=generator)

    size, mask = spec.vocab_size, spec.mask_id
    place = random_table(8, length, size)
    everywhere = random_table(1, size, size)
    near = random_table(6, 2 * REACH + 1, size, size)
    everywhere[mask], near[:, mask] = 0, 0  # masks carry no information
    if spec.eos_id is not None:
        ramp = torch.linspace(0, 1, length)
        place[:, spec.eos_id] += (eos * 4096 * ramp).long()
    real = [(integers.double() / 4096).to(dtype) for integers in (place, everywhere, near)]
    return LookupDenoiser(*real, spec)


def canvas_of(*rows: list[int], given: int = 0, mask: int = MASK) -> Canvas:
    """Rows of token ids as a model sees them, of which the first `given` are the prompt."""
    width = max(len(row) for row in rows)
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    prompt = torch.arange(width).expand(tokens.shape) < given
    return Canvas(
        tokens=tokens,
        lengths=lengths,
        masked=tokens == mask,
        given=prompt,
        start=torch.full_like(lengths, given),
        stop=lengths,
        keys=tuple(range(len(rows))),
    )


def logits_of(model: Any, canvas: Canvas) -> Tensor:
    """What a model says at every cell of the canvas: [B, L, V]."""
    count, width = canvas.tokens.shape
    rows = torch.arange(count).repeat_interleave(width)
    positions = torch.arange(width).repeat(count)
    logits: Tensor = model.head(model.trunk(canvas), rows, positions)
    return logits.view(count, width, -1)


class Counting:
    """A model that counts its forwards, and the head rows it was asked for."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.spec, self.device = model.spec, model.device
        self.forwards = 0
        self.head_calls: list[list[tuple[int, int]]] = []

    def trunk(self, canvas: Canvas) -> Hidden:
        self.forwards += 1
        hidden: Hidden = self.model.trunk(canvas)
        return hidden

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        self.head_calls.append(list(zip(rows.tolist(), positions.tolist(), strict=True)))
        logits: Tensor = self.model.head(hidden, rows, positions)
        return logits


class Scripted:
    """A model whose logits are given for each forward in turn; the last one stays."""

    def __init__(self, forwards: list[Tensor], spec: ModelSpec) -> None:
        self.script = forwards  # [L, V] each
        self.spec, self.device = spec, torch.device("cpu")
        self.count = 0

    def trunk(self, canvas: Canvas) -> Hidden:
        logits = self.script[min(self.count, len(self.script) - 1)]
        self.count += 1
        return Hidden(logits.expand(len(canvas.tokens), -1, -1))

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        logits: Tensor = hidden.states[rows, positions]
        return logits


def outcome(result: Result) -> dict[str, Any]:
    """All that must agree between two runs that are said to be equal."""
    return {
        "canvas": result.canvas.tolist(),
        "commit_step": result.commit_step.tolist(),
        "nfe": result.nfe,
        "nfe_eos": result.nfe_eos,
    }


def default_text(kind: Kind) -> str:
    """A part with its default knobs, but a timetable of few steps; behind SWD if it needs one."""
    first = next(iter(kind.arguments), None)
    knobs = {"steps": FEW_STEPS} if first is not None and first.name == "steps" else {}
    before = "swd(5) | " if hasattr(kind.target, "around") else ""
    return before + notation(kind.make(**knobs))


def texts(stage: str) -> list[str]:
    """Every part of a stage as the notation writes it."""
    return [default_text(kind) for kind in kinds(stage)]


def baselines() -> list[str]:
    """Every score with every selection."""
    return [f"{score} | {select}" for score in texts("score") for select in texts("select")]


def pairwise(*stages: Sequence[str], allowed: Callable[[set[str]], bool]) -> list[tuple[str, ...]]:
    """Few rows, one value of each stage, in which every allowed pair of values occurs.

    Greedy: a row begins with a pair that is still missing; each other stage takes the value that
    makes most of the missing pairs. `allowed` says whether values go together.
    """
    places = list(combinations(range(len(stages)), 2))
    pairs = [((i, a), (j, b)) for i, j in places for a in stages[i] for b in stages[j]]
    missing = dict.fromkeys(pair for pair in pairs if allowed({pair[0][1], pair[1][1]}))
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for stage in (stage for stage in range(len(stages)) if stage not in row):
            fitting = [value for value in stages[stage] if allowed({value, *row.values()})]
            gains = [_gained(row, (stage, value), missing) for value in fitting]
            row[stage] = fitting[gains.index(max(gains))]
        rows.append(tuple(row[stage] for stage in range(len(stages))))
        for i, j in places:
            missing.pop(((i, row[i]), (j, row[j])), None)
    return rows


def _gained(
    row: dict[int, str], new: tuple[int, str], missing: Container[tuple[object, object]]
) -> int:
    """How many missing pairs a value makes with those that a row holds already."""
    return sum(tuple(sorted((old, new))) in missing for old in row.items())


def _allowed(parts: set[str]) -> bool:
    """Whether these parts may stand in one rule: pc reads scores in [0, 1] only."""
    return "entropy" not in parts or not any(part.startswith("pc") for part in parts)


def _text(*parts: str) -> str:
    """A rule of the stages of `_small_stages`, and its selection."""
    *before, limit, revoke, select = parts
    return " | ".join(filter(None, (*before, select, limit, revoke)))


def _small_stages() -> list[list[str]]:
    """All stages but the selection; "" where a rule has no part of a stage."""
    names = ("window", "logits", "modulate", "candidates", "limit", "revoke")
    window, logits, *others = (["", *texts(stage)] for stage in names)
    return [window, logits, texts("score"), *others]


# Knobs of parts that are not their defaults.
READINGS = [
    "entropy | swd(2, kl=cur_prev) | top(1)",
    "entropy | swd(2, start=single, form=signed) | eb(0.5)",
    "margin | swd(2, start=skip, scope=block) | threshold(0.3)",
    "confidence | swd(2, kl=js) | frontier(3) | eb(0.5)",
    "margin | swd(2, kl=tv, form=bounded) | frontier(4, unit=positions) | threshold(0.3)",
    "confidence | swd(2, start=single) | threshold(0.5) | upstream(1, window=3)",
    "confidence | swd(1) | klass(0.5, kl=0.1, gate=no)",
    "entropy | swd(1) | eb(0.5, free=flattest_first)",
    "entropy | frontier(5) | eb(0.5, free=leftmost)",
    "confidence | swd(1) | threshold(0.4) | revoke(0.2, times=2)",
    "credit(0.65) | confidence | swd(1) | eb(1) | floor(2) | revoke(0.3)",
    "credit(0.65) | confidence | swd(5) | threshold(0.5)",
    "confidence | swd(5) | threshold(0.4) | cap(2)",
    "confidence | eb(1) | cap(1, steps=4)",
]


def part_texts() -> list[str]:
    """The fewest rules in which every part occurs: each stage takes its parts in turn."""
    stages = [*_small_stages(), texts("select")]
    rows = []
    for i in range(max(map(len, stages))):
        row = [stage[i % len(stage)] for stage in stages]
        if not _allowed(set(row)):
            row[2] = "confidence"
        rows.append(_text(*row))
    return rows


def rule_texts() -> list[str]:
    """Some sixty rules: every part, every pair of parts but selections, and every reading of SWD.

    The selections take turns. For the selections with all other parts there is `pair_texts`.
    """
    rows, selects = pairwise(*_small_stages(), allowed=_allowed), texts("select")
    covering = [_text(*row, selects[i % len(selects)]) for i, row in enumerate(rows)]
    return list(dict.fromkeys([*covering, *READINGS]))


def hosted_texts() -> list[str]:
    """The rules of `rule_texts` that a host can run which makes the forwards and has no EOS."""
    rules = {text: Rule.parse(text) for text in rule_texts() if "no_end" not in text}
    return [
        text
        for text, rule in rules.items()
        if not (rule.window or rule.sight or rule.needs.rechecks or rule.needs.ends)
    ]


def pair_texts() -> list[str]:
    """Rules in which every pair of parts of the table occurs, and those of `rule_texts`."""
    rows = pairwise(*_small_stages(), texts("select"), allowed=_allowed)
    return list(dict.fromkeys([*(_text(*row) for row in rows), *rule_texts()]))
