"""The paper's Figure 1 for one position: confidence, instability, score and commitment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unmask.rules.stability import swd_of
from unmask.rules.words import number
from unmask.trace.drawing import COLOURS, Array, Label, add_legend, sheet, stroke, write_labels
from unmask.trace.recording.codec import TraceError
from unmask.trace.recording.reading import Trace
from unmask.trace.story.format import quoted
from unmask.trace.story.timeline import Timeline

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, SMALL = 6.6, 2.7, 1.2  # inches of a panel; SMALL is the panel of a score
CLIP, LEAST = 4.0, 0.2  # nats: the longest and the shortest axis of D
FLOOR, CEILING = -0.1, 1.15  # ends of the axis of confidence, with room for marks
LABELS = 12  # the most predictions that get a label
CONFIDENCE, SCORE, COMMITTED, REVOKED = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[3]
GREY = "#D0D0D0"


def commitment_figure(traces: Sequence[Trace], position: int, *files: Path) -> None:
    """Draw a panel for each trace, with the same axis of steps, into .svg, .png or .pdf files."""
    panels = [PositionPanel(Timeline(trace, position)) for trace in traces]
    _check_same_place(traces, position)
    heights = [h for panel in panels for h in ([HEIGHT, SMALL] if panel.apart else [HEIGHT])]
    with sheet(files, len(panels), WIDTH, sum(heights) + 0.6) as figure:
        _draw(figure, panels, heights)


def _check_same_place(traces: Sequence[Trace], position: int) -> None:
    """Raise an error if the traces differ before the position in their prompts."""
    for trace in traces[1:]:
        before = trace.canvas[: position + 1], traces[0].canvas[: position + 1]
        if not np.array_equal(*before):
            raise TraceError(
                f"{traces[0].name} and {trace.name} differ before position {position}; give traces "
                "of the same prompt"
            )


@dataclass(frozen=True)
class PositionPanel:
    """The part of the figure for one trace."""

    timeline: Timeline

    @property
    def steps(self) -> list[int]:
        return [look.step for look in self.timeline.looks]

    @property
    def last(self) -> int:
        """The last step with a candidate or an event."""
        return max([*self.steps, *(event.step for event in self.timeline.events)])

    @property
    def confidence(self) -> list[float]:
        return [look.confidence for look in self.timeline.looks]

    @property
    def scores(self) -> list[float]:
        return [look.score for look in self.timeline.looks]

    @property
    def apart(self) -> bool:
        """Whether the score needs its own panel: it is outside [0, 1], such as -H."""
        return any(not 0 <= score <= 1 for score in self.scores)

    @property
    def plain(self) -> bool:
        """Whether the score is the confidence itself."""
        return self.confidence == self.scores

    @property
    def moved(self) -> list[tuple[int, float]]:
        """The known values of D, by step."""
        known = [(look.step, look.instability) for look in self.timeline.looks]
        return [(step, moved) for step, moved in known if not math.isnan(moved)]

    @property
    def title(self) -> str:
        trace, last = self.timeline.trace, self.timeline.last
        end = "still a mask"
        if last is not None:
            end = f"{quoted(trace.word(last.token))} at step {last.step} of {len(trace.moments)}"
        return f"{trace.rule}; position {self.timeline.position}: {end}"

    def drawn(self, axes: Axes) -> Array:
        """The pixels of the lines, which labels should not cover."""
        lines = [self.confidence] if self.apart else [self.confidence, self.scores]
        pixels = [np.zeros((0, 2))]
        for values in lines:
            spots = axes.transData.transform(np.stack([self.steps, values], -1))
            pixels += [stroke(start, end) for start, end in pairwise(spots)]
            pixels += [spots]
        for event in self.timeline.events:
            ends = axes.transData.transform([(event.step, 0), (event.step, 1)])
            pixels.append(stroke(*ends))
        return np.concatenate(pixels)


def _draw(figure: Figure, panels: Sequence[PositionPanel], heights: Sequence[float]) -> None:
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    last = max(panel.last for panel in panels)
    most = _top([moved for panel in panels for _, moved in panel.moved])
    handles: dict[str, Artist] = {}
    mains, places = [], (grid[place] for place in range(len(heights)))
    for panel in panels:
        main = lowest = figure.add_subplot(next(places))
        for label, artist in _main(main, panel, most):
            handles.setdefault(label, artist)
        _furnish(main, panel, last)
        mains.append(main)
        if panel.apart:
            lowest = figure.add_subplot(next(places))
            for label, artist in _score_apart(lowest, panel):
                handles.setdefault(label, artist)
            _steps(lowest, last)
    lowest.set_xlabel("step")
    add_legend(figure, list(handles.values()))
    figure.draw_without_rendering()  # computes the layout, which the labels need
    figure.set_layout_engine("none")
    for main, panel in zip(mains, panels, strict=True):
        write_labels(main, list(_labels(panel)), panel.drawn(main))


def _top(moved: Sequence[float]) -> float:
    """The end of the axis of D."""
    finite = [value for value in moved if math.isfinite(value)]
    return min(CLIP, max([LEAST, *finite])) * 1.08


def _main(axes: Axes, panel: PositionPanel, most: float) -> Iterator[tuple[str, Artist]]:
    """The lines in front of D, which has an axis on the right."""
    behind = axes.twinx()
    axes.set_zorder(behind.get_zorder() + 1)
    axes.patch.set_visible(False)
    yield from _area(behind, panel, most)
    yield "confidence", _line(axes, panel.steps, panel.confidence, "confidence", CONFIDENCE, "-")
    if not panel.apart and not panel.plain:
        yield "score", _line(axes, panel.steps, panel.scores, "modulated score", SCORE, "--")
    yield from _moments(axes, panel)


def _area(axes: Axes, panel: PositionPanel, most: float) -> Iterator[tuple[str, Artist]]:
    """D as a grey area, with a number on each value that is cut or infinite."""
    axes.set_ylim(FLOOR / CEILING * most, most)  # its 0 is at the same height as on the other axis
    axes.set_yticks([tick for tick in axes.get_yticks() if 0 <= tick <= most])
    axes.set_ylabel("instability D (nats)", color="#595959")
    axes.tick_params(length=3, width=0.7, colors="#595959")
    axes.spines["right"].set_visible(True)
    axes.spines["right"].set_color("#A0A0A0")
    heights = np.zeros(panel.last)
    for step, value in panel.moved:
        heights[step - 1] = min(value, most)
    edges = np.arange(panel.last + 1) + 0.5
    area = axes.stairs(heights, edges, fill=True, color=GREY, linewidth=0, label="instability D")
    for step, value in panel.moved:
        if value > most:
            size = "∞" if math.isinf(value) else number(value, 2)
            axes.annotate(
                f"▲ {size}",
                (step, most),
                (0, 1),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=7,
                color="#404040",
            )
    yield "area", area


def _line(axes: Axes, x: Any, y: Any, label: str, colour: str, dashes: str) -> Artist:
    (line,) = axes.plot(
        x,
        y,
        dashes,
        color=colour,
        marker="o" if dashes == "-" else "s",
        markersize=4,
        markeredgecolor="white",
        markeredgewidth=0.5,
        linewidth=1.5,
        label=label,
        zorder=3,
    )
    return line


def _moments(axes: Axes, panel: PositionPanel) -> Iterator[tuple[str, Artist]]:
    """Vertical lines where it was written or taken back; triangles where lam = 0 would commit."""
    looks = {"commit": ("committed", COMMITTED, "-"), "revoke": ("taken back", REVOKED, ":")}
    looks["fill"] = ("written by the EOS policy", COMMITTED, "-.")
    for event in panel.timeline.events:
        label, colour, dashes = looks[event.kind]
        style: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.8}
        yield event.kind, axes.axvline(event.step, label=label, zorder=2, **style)
    if swd_of(panel.timeline.trace.rule) is None:
        return
    there = [look for look in panel.timeline.looks if look.unweighted]
    if there:
        (marks,) = axes.plot(
            [look.step for look in there],
            [FLOOR / 2] * len(there),
            "^",
            markersize=6,
            markerfacecolor="white",
            markeredgecolor="black",
            markeredgewidth=0.9,
            clip_on=False,
            label="lam = 0 would commit",
            zorder=5,
        )
        yield "lam", marks


def _score_apart(axes: Axes, panel: PositionPanel) -> Iterator[tuple[str, Artist]]:
    """The score in its own unit, in a panel below."""
    finite = [value if math.isfinite(value) else math.nan for value in panel.scores]
    yield "score", _line(axes, panel.steps, finite, "modulated score", SCORE, "--")
    axes.set_ylabel("score")
    axes.margins(y=0.15)
    axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)
    axes.tick_params(length=3, width=0.7)
    for event in panel.timeline.events:
        if event.kind == "commit":
            axes.axvline(event.step, color=COMMITTED, linewidth=1.8, zorder=2)


def _furnish(axes: Axes, panel: PositionPanel, last: int) -> None:
    axes.set_title(panel.title, loc="left", fontsize=9, pad=13, wrap=True)
    axes.set_ylabel("confidence" if panel.apart else "confidence, score")
    axes.set_ylim(FLOOR, CEILING)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.tick_params(length=3, width=0.7)
    _steps(axes, last)


def _steps(axes: Axes, last: int) -> None:
    axes.set_xlim(0.4, last + 0.6)
    axes.set_xticks(range(1, last + 1, math.ceil(last / 16)))


def _labels(panel: PositionPanel) -> Iterator[Label]:
    """A label where the prediction changes, for the surest predictions."""
    runs = panel.timeline.guesses
    levels = [max(look.confidence for look in run) for run in runs]
    surest = sorted(range(len(runs)), key=lambda i: -levels[i])[:LABELS]
    for i in sorted(surest):
        look = runs[i][0]
        word = quoted(look.trace.word(look.token))
        yield Label(word, look.step, look.confidence, "black")
