"""The demonstration: two rules fill one sentence on an oracle with noisy logits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Settings, infill_request
from unmask.decoding.results import Step
from unmask.models.denoiser import ModelSpec
from unmask.models.toys.oracle import TableOracle
from unmask.models.wrappers.noisy import Noisy
from unmask.rules.rule import Rule

MASK = "[MASK]"
BASELINE, SWD = "confidence | eb(0.1)", "confidence | swd(5) | eb(0.1)"
COMPARED = (
    BASELINE,
    SWD,
    "confidence | threshold(0.9)",
    "confidence | swd(5) | threshold(0.9)",
    "confidence | budget(0.1)",
    "confidence | swd(5) | eb(0.1) | revoke(1)",
    "confidence | top(1)",
)
NOISE = 4.0  # standard deviation on the logits of an empty canvas; it falls with the masked share
SUBJECT = 1  # the position of "dog" or "car"

_WORLDS = {
    "dog": (("barked", "slept"), (("in", "garden"), ("at", "gate")), ("fed", "tired")),
    "car": (("started", "stopped"), (("in", "garage"), ("at", "gate")), ("towed", "parked")),
}


@dataclass(frozen=True)
class CanvasFrame:
    """The canvas after one step of a run, as words."""

    words: tuple[str, ...]  # MASK where no token is committed
    new: frozenset[int]  # positions that this step committed


@dataclass(frozen=True)
class SubjectStep:
    """The subject's position in one step."""

    step: int
    guess: str
    confidence: float
    instability: float  # nan if there is nothing to compare with
    score: float
    committed: bool


@dataclass(frozen=True)
class SentenceRun:
    """One rule on one sentence."""

    rule: str
    frames: tuple[CanvasFrame, ...]
    subject: tuple[SubjectStep, ...]
    nfe: int
    log_likelihood: float  # under the true joint; -inf if the sentence is not one of the sixteen

    @property
    def sentence(self) -> str:
        return " ".join(self.frames[-1].words)


@dataclass(frozen=True)
class RuleTally:
    """How often one rule writes a valid sentence, over many runs."""

    rule: str
    valid: int
    runs: int
    mean_nfe: float


class DogOrCar:
    """Sixteen equally likely sentences, half about a dog and half about a car."""

    def __init__(self) -> None:
        sentences = [sentence.split() for sentence in _sentences()]
        self.words = [MASK, *sorted({word for sentence in sentences for word in sentence})]
        self.ids = {word: number for number, word in enumerate(self.words)}
        table = [[self.ids[word] for word in sentence] for sentence in sentences]
        spec = ModelSpec(0, len(self.words), name="dog-or-car")
        self.oracle = TableOracle(table, [1.0] * len(table), spec)
        self.canvas = [self.ids["the"], *[0] * (len(table[0]) - 1)]

    def run(self, rule: str, seed: int) -> SentenceRun:
        """Fill the sentence by one rule, with one draw of the noise."""
        model = Noisy(self.oracle, NOISE, seed)
        request = infill_request(model.spec, self.canvas, Settings(Rule.parse(rule)))
        steps = list(decode_steps(model, [request]))
        result = steps[-1].finished[0]
        return SentenceRun(
            rule=rule,
            frames=tuple(self._frames(steps)),
            subject=tuple(self._moments(steps, Rule.parse(rule).needs.uniform_start)),
            nfe=result.nfe,
            log_likelihood=self.oracle.log_likelihood(result.canvas.tolist()),
        )

    def tally(self, rule: str, seeds: Sequence[int]) -> RuleTally:
        """Run a rule on every seed; count the valid sentences and the mean NFE."""
        runs = [self.run(rule, seed) for seed in seeds]
        valid = sum(run.log_likelihood > -math.inf for run in runs)
        return RuleTally(rule, valid, len(runs), sum(run.nfe for run in runs) / len(runs))

    def _frames(self, steps: list[Step]) -> Iterator[CanvasFrame]:
        before = self.canvas
        for step in steps:
            after = step.tokens[0].tolist()
            new = frozenset(i for i, token in enumerate(after) if token != before[i])
            yield CanvasFrame(tuple(self.words[token] for token in after), new)
            before = after

    def _moments(self, steps: list[Step], uniform: bool) -> Iterator[SubjectStep]:
        for number, step in enumerate(steps, 1):
            place = SUBJECT - int(step.start[0])
            view, decision = step.view, step.decision
            if not bool(view.masked[0, place]):
                return
            compared = uniform or bool(view.seen[0, place])
            known = view.kl_prev_cur is not None and compared
            yield SubjectStep(
                step=number,
                guess=self.words[int(view.token[0, place])],
                confidence=float(view.confidence[0, place]),
                instability=float(view.instability("prev_cur")[0, place]) if known else math.nan,
                score=float(decision.scores.value[0, place]),
                committed=bool(decision.chosen[0, place]),
            )


def first_difference(
    world: DogOrCar, seeds: Sequence[int]
) -> tuple[int, SentenceRun, SentenceRun] | None:
    """The first seed where SWD writes a valid sentence and the baseline does not, and both runs."""
    for seed in seeds:
        baseline, swd = world.run(BASELINE, seed), world.run(SWD, seed)
        if baseline.log_likelihood == -math.inf < swd.log_likelihood:
            return seed, baseline, swd
    return None


def _sentences() -> Iterator[str]:
    for subject, (verbs, places, ends) in _WORLDS.items():
        for verb, (how, place), end in itertools.product(verbs, places, ends):
            yield f"the {subject} {verb} {how} the {place} until it was {end} ."
