"""The paper's Figure 2 for one step: score, instability, weight, modulated score, and who wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from unmask.rules.registry import kind_of, show
from unmask.rules.select import Threshold
from unmask.rules.stability import Stability, swd_of
from unmask.rules.words import KL_WORDS, counted, number
from unmask.trace.drawing import COLOURS, add_legend, sheet
from unmask.trace.recording.codec import TraceError
from unmask.trace.recording.reading import Trace
from unmask.trace.story.format import cell, listed, named, quoted
from unmask.trace.story.locate import checked_step
from unmask.trace.story.step_story import unlike
from unmask.trace.story.steps import differs, outcome
from unmask.trace.story.timeline import Look, Timeline, given_steps

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, AROUND = 9.6, 0.235, 1.75  # inches: the figure, one candidate, titles and legend
MOST, NAMES = 24, 3  # candidates that are drawn, and that are named in a sentence
NUMBERS = 0.30  # the share of a panel that is kept for its numbers
DECADES = 12  # the longest logarithmic axis
SMALL = 0.01  # if the best score is below, the axis is logarithmic
WITHOUT, WITH, GREY, DARK = COLOURS[0], COLOURS[2], "#A6A6A6", "#595959"
BANDS = {WITHOUT: "#DCEBF5", WITH: "#D9F0E8"}
# What SWD changed: whether a candidate is committed without SWD, and with it.
OUTCOMES = {
    (True, False): "Committed only without SWD",
    (False, True): "Committed only with SWD",
    (True, True): "Committed with and without SWD",
    (False, False): "Not committed",
}
FORMS = {
    "additive": "S − {}D",
    "signed": "S exp(+{}D)",
    "literal": "S exp(−{}D)",
    "bounded": "S − {}(1 − exp(−D))",
}


def pipeline_figure(pipeline: StepPipeline, *files: Path) -> None:
    """Draw one step into .svg, .png or .pdf files."""
    with sheet(files, len(pipeline.rows), WIDTH, ROW * len(pipeline.rows) + AROUND) as figure:
        _draw(figure, pipeline)


def telling_step(trace: Trace) -> int | None:
    """The step, from 1, that shows best what SWD does; None if it changes no choice.

    It is the one that holds back the surest prediction. A prediction that changed before the
    position was written counts more, and the first step, which has no step before it, counts less.
    """
    final = trace.canvas_after(-1)

    def key(step: int) -> tuple[bool, bool, float]:
        held = [look for look in _looks(trace, step) if look.unweighted and not look.chosen]
        best = max(((look.token != final[look.position], look.confidence) for look in held),
                   default=(False, 0.0))  # fmt: skip
        return (step > 1, *best)

    changed = [step for step, moment in enumerate(trace.moments, 1) if unlike(trace, moment)]
    return max(changed, key=key, default=None)


def _looks(trace: Trace, step: int) -> list[Look]:
    """The candidates of a step by position."""
    moment = trace.moments[step - 1]
    return [Look.of(trace, step, moment, place) for place in range(len(moment.positions))]


def _kind(look: Look) -> tuple[bool, bool]:
    """Whether it is committed without SWD, and with it."""
    return bool(look.unweighted), look.chosen


def _short(value: float) -> str:
    """A score: 0.830, 2e-09, -1.5e+03."""
    return cell(value) if abs(value) < 100 else number(value, 2)


@dataclass(frozen=True)
class StepStage:
    """One panel: a number for each row, and the rows that win by it."""

    title: str
    values: Sequence[float]
    colour: str = GREY
    wins: Sequence[bool] = ()
    number: Callable[[float], str] = _short
    tau: float = math.nan  # the level of a threshold
    least: float = 1.0  # the shortest axis

    @property
    def axis(self) -> tuple[float, float, bool]:
        """The ends of the axis, and whether it is logarithmic."""
        finite = [value for value in self.values if math.isfinite(value)] or [0.0]
        low, high = min(finite), max(finite)
        if low < 0:
            return low * 1.04, max(high, 0.0), False
        if 0 < high < SMALL:
            positive = min(value for value in finite if value > 0)
            return max(positive / 2, high * 10.0**-DECADES), high, True
        return 0.0, max(high, self.least), False

    @property
    def shows_tau(self) -> bool:
        """Whether the level of the threshold lies on the axis."""
        low, high, _ = self.axis
        return low <= self.tau <= high


@dataclass(frozen=True)
class StepPipeline:
    """What the figure of one step shows."""

    trace: Trace
    step: int  # counted from 1

    @classmethod
    def of(cls, trace: Trace, step: int | None = None) -> StepPipeline:
        """A step of a trace (default: `telling_step`, else the first with a step before it)."""
        if swd_of(trace.rule) is None:
            raise TraceError(
                f"{trace.name} has no SWD in its rule ({trace.rule}); --pipeline needs a trace of "
                "a rule such as 'confidence | swd(5) | eb(0.1)'"
            )
        if step is None:
            step = telling_step(trace) or min(2, len(trace.moments))
        return cls(trace, checked_step(trace, step))

    @cached_property
    def looks(self) -> list[Look]:
        """All candidates, by position."""
        return _looks(self.trace, self.step)

    @cached_property
    def rows(self) -> list[Look]:
        """The candidates that are drawn: the best of each outcome in turn, by position."""
        best = sorted(self.looks, key=lambda look: min(look.rank, look.base_rank))
        kinds = [[look for look in best if _kind(look) == kind] for kind in OUTCOMES]
        turns = chain.from_iterable(zip_longest(*kinds))
        drawn = islice((look for look in turns if look is not None), MOST)
        return sorted(drawn, key=lambda look: look.position)

    @property
    def swd(self) -> Stability:
        swd = swd_of(self.trace.rule)
        assert swd is not None, "pipeline_figure checks it"
        return swd

    @property
    def weights(self) -> list[float]:
        """exp(-lam D); 1 where there is no D."""
        moved = [look.instability for look in self.rows]
        if self.swd.form == "bounded":
            moved = [-math.expm1(-d) for d in moved]
        return [1.0 if math.isnan(d) else math.exp(-self.swd.lam * d) for d in moved]

    @property
    def stages(self) -> list[StepStage]:
        """The panels from left to right."""
        swd, rows, rule = self.swd, self.rows, self.trace.rule
        lam = "" if swd.lam == 1 else f"{show(swd.lam)} "
        shares, bounded = rows[0].moment.logarithmic, swd.form == "bounded"
        moved = "(1 − exp(−D))" if bounded else "D"
        product = f"S exp(−{lam}{moved})"
        formula = product if shares else FORMS[swd.form].format(lam)
        others = ", and other modulators" if len(rule.modulators) > 1 else ""
        tau = rule.select.tau if isinstance(rule.select, Threshold) else math.nan
        return [
            StepStage(
                f"score S\n{kind_of(rule.score).name}",
                [look.base for look in rows],
                WITHOUT,
                [_kind(look)[0] for look in rows],
                tau=tau,
            ),
            StepStage(
                f"instability D{'' if swd.kl == 'tv' else ', nats'}\n{KL_WORDS[swd.kl]}",
                [look.instability for look in rows],
                number=partial(number, digits=2),
                least=0.2,
            ),
            StepStage(f"weight\nexp(−{lam}{moved})", self.weights),
            StepStage(
                f"modulated score\n{formula}{others}",
                [look.score for look in rows],
                WITH,
                [look.chosen for look in rows],
                tau=tau,
            ),
        ]

    @property
    def caption(self) -> list[str]:
        """The sentences above the panels."""
        moment, count = self.trace.moments[self.step - 1], len(self.trace.moments)
        window = f"positions {moment.window[0]}-{moment.window[1] - 1}"
        return [
            f"{self.trace.rule}; step {self.step} of {count}, {window}",
            " ".join([*self._choices(), *self._later(), *self._left_out()]),
        ]

    def _choices(self) -> Iterator[str]:
        """Who wins without SWD, with it, and either way."""
        if self.step <= given_steps(self.trace):
            names = [self._name(look) for look in self.looks if look.chosen]
            yield f"The branch repeats this step of the original run: {listed(names, NAMES)}."
            return
        if not any(map(differs, self.looks)):
            yield "SWD changes nothing here."
        for kind, words in OUTCOMES.items():
            names = [self._name(look) for look in self.looks if _kind(look) == kind]
            if names and any(kind):
                yield f"{words}: {listed(names, NAMES)}."

    def _later(self) -> Iterator[str]:
        """What the surest prediction that SWD held back became."""
        held = [look for look in self.looks if look.unweighted and not look.chosen]
        for look in sorted(held, key=lambda look: -look.confidence):
            last = Timeline(self.trace, look.position).last
            if last is not None and last.token != look.token:
                word = quoted(self.trace.word(last.token))
                yield f"Position {look.position} became {word} later, at step {last.step}."
                return

    def _left_out(self) -> Iterator[str]:
        if len(self.rows) < len(self.looks):
            total = counted(len(self.looks), "candidate")
            yield f"{len(self.rows)} of {total} are drawn: the best of each outcome."

    def _name(self, look: Look) -> str:
        return named(self.trace, look.position, look.token)


def _draw(figure: Figure, pipeline: StepPipeline) -> None:
    head, *sentences = pipeline.caption
    text = "\n".join([head, *(fill(sentence, 138) for sentence in sentences)])
    figure.suptitle(text, x=0.012, ha="left", fontsize=9)
    panels = figure.subplots(1, 4, sharey=True, width_ratios=[1.15, 1, 1, 1.15])
    handles: dict[str, Artist] = {}
    for axes, stage in zip(panels, pipeline.stages, strict=True):
        _panel(axes, stage)
        if stage.shows_tau:
            label = f"tau = {show(stage.tau)}"
            style = {"color": "black", "linestyle": ":", "linewidth": 1}
            handles["tau"] = axes.axvline(stage.tau, label=label, **style)
    _names(panels[0], panels[-1], pipeline)
    dots = [_dot(panels[0], WITHOUT, "committed without SWD"),
            _dot(panels[0], WITH, "committed with SWD")]  # fmt: skip
    add_legend(figure, [*dots, *handles.values()])


def _panel(axes: Axes, stage: StepStage) -> None:
    """A line and a dot for each row, further to the right for a larger number."""
    low, high, logarithmic = stage.axis
    axes.set_title(stage.title, fontsize=9)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(low, high * (high / low) ** (NUMBERS / (1 - NUMBERS)))
    else:
        axes.set_xlim(low, high + (high - low) * NUMBERS / (1 - NUMBERS))
    ticks = _ticks(low, high, logarithmic)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.spines["bottom"].set_bounds(low, high)
    axes.tick_params(length=3, width=0.7, labelsize=7)
    axes.tick_params(axis="y", length=0, labelsize=8)
    for y, value in enumerate(stage.values):
        wins = bool(stage.wins) and stage.wins[y]
        if wins:
            axes.axhspan(y - 0.46, y + 0.46, color=BANDS[stage.colour], linewidth=0, zorder=0)
        colour = stage.colour if wins or not stage.wins else GREY
        end = min(max(value, low), high)
        if value > low:  # not NaN, and on the axis
            axes.hlines(y, low, end, color=colour, linewidth=2.4 if wins else 1.4, zorder=2)
            axes.plot(end, y, "o", color=colour, markersize=5.5 if wins else 4, zorder=3)
        weight = "bold" if wins else "normal"
        axes.text(0.985, y, stage.number(value), transform=axes.get_yaxis_transform(),
                  ha="right", va="center_baseline", fontsize=7.5, fontweight=weight)  # fmt: skip


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """A few ticks on the part of the axis that has data."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    locator = LogLocator(numticks=3) if logarithmic else MaxNLocator(3, steps=[1, 2, 5, 10])
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


def _names(first: Axes, last: Axes, pipeline: StepPipeline) -> None:
    """The positions with their words at the left, the ranks and the outcomes at the right."""
    rows = pipeline.rows
    words = [quoted(look.trace.word(look.token)) for look in rows]
    first.set_yticks(range(len(rows)), [f"{word}  {look.position}" for word, look
                                        in zip(words, rows, strict=True)])  # fmt: skip
    first.set_ylim(len(rows) - 0.5, -0.5)  # the first position on top
    for y, look in enumerate(rows):
        rank = f"{look.base_rank} → {look.rank}" if look.base_rank != look.rank else f"{look.rank}"
        _beside(last, y, 6, rank, _colour(look))
        _beside(last, y, 52, _outcome(look), _colour(look))
    last.annotate("rank", (1, 1), (6, 5), "axes fraction", "offset points", fontsize=9)


def _beside(axes: Axes, y: float, points: float, text: str, colour: str) -> None:
    """A text to the right of a row, this many points from the panel."""
    place = ((1, y), (points, 0), axes.get_yaxis_transform(), "offset points")
    axes.annotate(text, *place, va="center_baseline", fontsize=7.5, color=colour)


def _outcome(look: Look) -> str:
    if words := outcome(look):
        return words
    if look.trace.settings.eos == "last" and look.token in look.trace.spec.stop_ids:
        return "ranked last"
    return "" if look.ready else "waits: no history"


def _colour(look: Look) -> str:
    return WITH if look.chosen else WITHOUT if differs(look) else DARK


def _dot(axes: Axes, colour: str, label: str) -> Artist:
    (mark,) = axes.plot([], [], "o-", color=colour, linewidth=2.4, markersize=5.5, label=label)
    return mark
