"""Which position is meant: by its number, or by the word that ended there."""

from __future__ import annotations

import numpy as np

from unmask.trace.recording.codec import TraceError
from unmask.trace.recording.reading import Trace
from unmask.trace.story.format import quoted, spans


def written(trace: Trace) -> list[int]:
    """The positions that decoding was asked to write."""
    found: list[int] = (trace.canvas == trace.spec.mask_id).nonzero()[0].tolist()
    return found


def checked_position(trace: Trace, position: int) -> int:
    """The position itself, if there is something to tell of it."""
    size, open_at = len(trace.canvas), written(trace)
    if not 0 <= position < size:
        raise TraceError(
            f"position {position} is outside the canvas: it has 0-{size - 1}, and decoding wrote "
            f"{spans(open_at)}"
        )
    if position not in open_at:
        word = quoted(trace.word(int(trace.canvas[position])))
        raise TraceError(
            f"position {position} was given: {word} is part of the prompt; decoding wrote "
            f"{spans(open_at)}"
        )
    if not trace.moments:
        raise TraceError(f"{trace.name} was cut off before its first step; there is nothing to say")
    return position


def checked_step(trace: Trace, step: int) -> int:
    """The step itself, counted from 1, if the trace has it."""
    if not 1 <= step <= len(trace.moments):
        raise TraceError(f"step {step} is not in {trace.name}: it has 1-{len(trace.moments)}")
    return step


def positions_of(trace: Trace, word: str) -> list[int]:
    """Where decoding wrote a word, spaces around it aside, or an error that says what is known."""
    canvas, open_at = trace.canvas_after(-1), written(trace)
    alike = np.array([_alike(trace.word(token), word) for token in canvas.tolist()])
    found = [position for position in open_at if alike[position]]
    if found:
        return found
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
    hint = f"; it was predicted for a while at {spans(guessed)}" if guessed else ""
    raise TraceError(f"no position ended as {quoted(word)}{hint}")


def _alike(token: str, word: str) -> bool:
    return token == word or token.strip() == word.strip() != ""
