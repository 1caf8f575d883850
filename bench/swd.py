"""What SWD costs: the same decode with lam 5 and with lam 0, as a share of the run.

    python -m bench.swd [--short] [--json FILE]

Random models. A fixed timetable gives both runs the same forwards, and the same number of masked
positions in each forward. The steps of both runs take turns, and the least time of each step over
all rounds counts. Trunk and head do the same work in both runs. "SWD adds" is the rest: the time
that lam 5 spends outside of trunk and head, less that of lam 0, as a share of the run with lam 0.
It contains the KL, the logits that are kept for the next step, and one pass of the head over each
block when it opens. "KL alone" is measured as in `unmask eval`, by wall-clock time: passes over the
logits are repeated without the KL. The last column compares the whole runs; it contains the noise
of trunk and head too.

The head's share is of the parameters without the embedding. It is 7% in LLaDA-8B, as in the first
model. The second has LLaDA's vocabulary and a small trunk, so that SWD takes a larger share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from torch import Tensor

from bench.clocked import Clocked
from bench.common import Shape, head_share, llada_shaped
from bench.measure import Bench, Column, Row, Taken, least, main, side_by_side
from unmask import Rule, Settings, Step, decode_steps, prompt_request
from unmask.decoding.kl_clock import KLClock, Lap
from unmask.models.denoiser import Denoiser
from unmask.models.pretrained import Pretrained

LAMS = ("0", "5")


@dataclass(frozen=True)
class Size:
    """The decodes and the models."""

    shapes: tuple[Shape, ...] = (Shape(8, 512, 4096), Shape(8, 512), Shape(16, 1024))
    prompt: int = 64
    length: int = 128
    blocks: tuple[int | None, ...] = (None, 32)
    forwards: int = 32
    rounds: int = 5


SHORT = Size(shapes=(Shape(8, 512, 4096), Shape(8, 512)), length=64, forwards=16, rounds=2)


def steps(
    model: Denoiser, size: Size, block: int | None, lam: float, clock: KLClock | None = None
) -> Iterator[Step]:
    """One decode, step by step."""
    rule = Rule.parse(f"confidence | swd({lam:g}) | static({size.forwards})")
    prompt = [token % 50 for token in range(size.prompt)]
    request = prompt_request(model.spec, prompt, size.length, Settings(rule, block))
    return decode_steps(model, [request], **({"reducer": clock} if clock else {}))


def run(short: bool = False, size: Size | None = None) -> list[Row]:
    """A row for each model and window."""
    size = size or (SHORT if short else Size())
    rows = []
    for shape in size.shapes:
        model = llada_shaped(shape)
        rows += [_row(model, shape, size, block) for block in size.blocks]
    return rows


def _row(model: Pretrained, shape: Shape, size: Size, block: int | None) -> Row:
    rounds = [_round(model, size, block) for _ in range(size.rounds)]
    whole, rest = (
        {lam: least([each[lam] for each in kind]) for lam in LAMS}
        for kind in zip(*rounds, strict=True)
    )
    plain, swd = LAMS
    return {
        "parameters": model.parameters,
        "shape": f"{shape.layers} x {shape.hidden}",
        "vocabulary": shape.vocabulary,
        "head": head_share(model),
        "canvas": f"{size.prompt} + {size.length}",
        "window": "full" if block is None else f"block {block}",
        "nfe": size.forwards,
        "plain_seconds": whole[plain],
        "added": (rest[swd] - rest[plain]) / whole[plain],
        "kl": _kl_share(model, size, block),
        "difference": whole[swd] / whole[plain] - 1,
    }


def _round(model: Pretrained, size: Size, block: int | None) -> tuple[Taken, Taken]:
    """The seconds of every step, and those beside the trunk and the head of masked positions.

    Runs that do not compute as many positions in each of as many forwards are an error.
    """
    models = {lam: Clocked(model) for lam in LAMS}
    spent: dict[str, list[dict[str, float]]] = {lam: [] for lam in LAMS}
    runs = {lam: steps(models[lam], size, block, float(lam)) for lam in LAMS}
    whole = side_by_side(runs, lambda lam, _: spent[lam].append(models[lam].lap()))
    plain, swd = ([each["positions"] for each in spent[lam]] for lam in LAMS)
    assert plain == swd, "the runs differ in what they compute"
    assert len(plain) == size.forwards
    rest = {
        lam: [
            total - each["trunk"] - each["head"]
            for total, each in zip(whole[lam], spent[lam], strict=True)
        ]
        for lam in LAMS
    }
    return whole, rest


class EveryPass(KLClock):
    """Repeats every pass without the KL, not one of sixteen: a short decode has few passes."""

    def _probe(self, logits: Tensor, whole: Lap) -> None:
        self._until_probe = 0
        super()._probe(logits, whole)


def _kl_share(model: Pretrained, size: Size, block: int | None) -> float:
    """The median over the rounds of the KL's share of a decode."""
    return median(_kl_share_once(model, size, block) for _ in range(size.rounds))


def _kl_share_once(model: Pretrained, size: Size, block: int | None) -> float:
    clock, begin = EveryPass(), perf_counter()
    for _ in steps(model, size, block, 5.0, clock):
        pass
    whole, spent = perf_counter() - begin, clock.spent()
    return spent.kl / (whole - spent.probes)


BENCH = Bench(
    "swd",
    "SWD over lam = 0, equal forwards and positions (one thread)",
    (
        Column("parameters", "parameters", ",d"),
        Column("shape", "layers x d"),
        Column("vocabulary", "V", ",d"),
        Column("head", "head's share", ".0%"),
        Column("canvas", "prompt + answer"),
        Column("window", "window"),
        Column("nfe", "NFE", "d"),
        Column("plain_seconds", "lam 0 s", ".2f"),
        Column("added", "SWD adds", ".2%"),
        Column("kl", "KL alone", ".2%"),
        Column("difference", "difference of the runs", "+.1%"),
    ),
    run,
)

if __name__ == "__main__":
    main(BENCH)
