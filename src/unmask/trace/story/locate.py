"""Finds the position that a user asks for, by its number or by its final word."""

from __future__ import annotations

import numpy as np

from unmask.trace.recording.codec import TraceError
from unmask.trace.recording.reading import Trace
from unmask.trace.story.format import quoted, spans


def written(trace: Trace) -> list[int]:
    """The positions that were masks before the first step."""
    positions: list[int] = (trace.canvas == trace.spec.mask_id).nonzero()[0].tolist()
    return positions


def checked_position(trace: Trace, position: int) -> int:
    """The position, if decoding wrote it; else an error."""
    size, open_at = len(trace.canvas), written(trace)
    if not 0 <= position < size:
        raise TraceError(
            f"position {position} is outside the canvas (0-{size - 1}); decoding wrote "
            f"{spans(open_at)}"
        )
    if position not in open_at:
        word = quoted(trace.word(int(trace.canvas[position])))
        raise TraceError(
            f"position {position} is part of the prompt ({word}); decoding wrote {spans(open_at)}"
        )
    checked_steps(trace)
    return position


def checked_step(trace: Trace, step: int) -> int:
    """The step, counted from 1, if the trace has it; else an error."""
    checked_steps(trace)
    if not 1 <= step <= len(trace.moments):
        raise TraceError(f"step {step} is not in {trace.name}; it has steps 1-{len(trace.moments)}")
    return step


def checked_steps(trace: Trace) -> Trace:
    """The trace, if it has a step; else an error."""
    if not trace.moments:
        raise TraceError(f"{trace.name} was cut off before its first step; it has no steps")
    return trace


def positions_of(trace: Trace, word: str) -> list[int]:
    """The positions whose final token is a word, ignoring spaces around it; else an error."""
    canvas, open_at = trace.canvas_after(-1), written(trace)
    alike = np.array([_alike(trace.word(token), word) for token in canvas.tolist()])
    positions = [position for position in open_at if alike[position]]
    if positions:
        return positions
    if alike.any():
        raise TraceError(
            f"{quoted(word)} is only in the prompt, at {spans(alike.nonzero()[0].tolist())}; "
            f"decoding wrote {spans(open_at)}"
        )
    guessed = sorted(
        {
            int(position)
            for moment in trace.moments
            for position, token in zip(moment.positions, moment.token, strict=True)
            if _alike(trace.word(int(token)), word)
        }
    )
    hint = f"; it was predicted in some steps at {spans(guessed)}" if guessed else ""
    raise TraceError(f"no position has the final token {quoted(word)}{hint}")


def _alike(token: str, word: str) -> bool:
    return token == word or token.strip() == word.strip() != ""
