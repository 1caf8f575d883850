"""Reads trace files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling
from unmask.errors import RuleError, UnknownName
from unmask.models.denoiser import ModelSpec
from unmask.rules.plugins import import_hint
from unmask.rules.rule import Rule
from unmask.rules.spelling import from_file
from unmask.trace.recording.checks import (
    WORDS,
    CanvasMasks,
    end_of,
    gauge_of,
    header_branch,
    header_spec,
    probabilities,
    ranks,
    require,
    whole,
    words_of,
)
from unmask.trace.recording.codec import (
    FORMAT,
    Array,
    TraceError,
    Unzipped,
    file_bytes,
    flags,
    raw,
    unpack,
)


@dataclass(frozen=True)
class Moment:
    """One step: the numbers of n candidates, and what the rule did. Arrays are [n]."""

    forward: int  # the number of forwards before this step
    window: tuple[int, int]
    positions: Array
    token: Array
    confidence: Array
    margin: Array
    entropy: Array  # of the distribution that the rule scores
    raw_entropy: Array  # of the model's own distribution, which budgets count
    instability: Array  # D, NaN where there is nothing to compare with
    base: Array  # the score before modulators; a logarithm if `logarithmic`
    score: Array  # the score after modulators
    logarithmic: bool
    rank: Array  # 0 is the best
    base_rank: Array  # by the score before modulators
    chosen: Array  # bool: committed now
    ready: Array  # bool: the selection could choose it
    alternatives: Array  # [n, k] token ids, the likeliest first
    probabilities: Array  # [n, k]
    committed: dict[int, int]  # position -> token, by the rule
    filled: dict[int, int]  # position -> token, by the EOS policy
    revoked: tuple[int, ...]
    selected: tuple[int, ...]  # by the selection alone, before limits
    unweighted: tuple[int, ...] | None  # what lam = 0 would have committed; None without SWD
    gauge: dict[str, float | None]  # numbers of the selection: spent, next, best, passing...
    digest: str  # of the unrounded numbers
    value: Array  # the score in its own unit

    def place(self, position: int) -> int | None:
        """The index of a position among the candidates, or None."""
        place = int(np.searchsorted(self.positions, position))
        here = place < len(self.positions) and self.positions[place] == position
        return place if here else None

    @property
    def writes(self) -> dict[int, int]:
        """All tokens written in this step, by position."""
        return {**self.committed, **self.filled}

    @property
    def queue(self) -> list[int]:
        """The indices of the candidates, the best first."""
        order: list[int] = np.argsort(self.rank, kind="stable").tolist()
        return order


@dataclass(frozen=True)
class Trace:
    """A run: its request, its steps and its end."""

    header: dict[str, Any]
    moments: tuple[Moment, ...]
    words: dict[int, str]
    end: dict[str, Any] | None  # nfe, nfe_eos, text; None if the run was cut off
    name: str = "trace"

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Trace:
        """Read a file. A file that was cut off gives the steps that it holds."""
        path = Path(file)
        return cls.of(file_bytes(path), path.name)

    @classmethod
    def of(cls, data: bytes, name: str = "trace") -> Trace:
        """Read the bytes of a file."""
        if data[:2] != b"\x1f\x8b":
            raise _no_trace(name)
        unzipped = Unzipped(data, name)
        try:
            return _read(unzipped)
        except TraceError:
            raise
        except KeyError as error:
            raise TraceError(f"{name} is damaged: it has no {error}") from None
        except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise TraceError(f"{name} is damaged: {_one_line(error)}") from None

    @cached_property
    def rule(self) -> Rule:
        try:
            return Rule.parse(from_file(self.header["settings"]["rule"]))
        except UnknownName as error:
            raise RuleError(f"{error}{import_hint(self.header.get('parts', {}))}") from None

    @cached_property
    def settings(self) -> Settings:
        """The settings of the run."""
        values = {**self.header["settings"], "rule": self.rule}
        try:
            return Settings(**{**values, "sampling": Sampling(**values["sampling"])})
        except (KeyError, TypeError, ValueError) as error:
            raise TraceError(f"{self.name} is damaged: {_one_line(error)}") from None

    @cached_property
    def spec(self) -> ModelSpec:
        """The spec of the model that ran."""
        values = self.header["spec"]
        return ModelSpec(**{**values, "stop_ids": tuple(values["stop_ids"])})

    @property
    def kernel(self) -> str:
        """The kernel that computed the numbers; empty in a trace that does not name it."""
        name: str = self.header["model"].get("kernel", "")
        return name

    @property
    def canvas(self) -> Array:
        """The token ids before the first step: [L]."""
        return np.array(self.header["canvas"], dtype=np.int64)

    def canvas_after(self, step: int) -> Array:
        """The token ids after a number of steps; -1 means all steps: [L]."""
        tokens: Array = self.canvas.copy()
        for moment in self.moments[: len(self.moments) if step < 0 else step]:
            for position, token in moment.committed.items():
                tokens[position] = token
            tokens[list(moment.revoked)] = self.spec.mask_id
            for position, token in moment.filled.items():  # the EOS policy comes last
                tokens[position] = token
        return tokens

    @cached_property
    def commit_step(self) -> Array:
        """The step (from 0) that wrote each position, -1 in the prompt and for masks: [L]."""
        steps = np.full(len(self.canvas), -1)
        for number, moment in enumerate(self.moments):
            steps[list(moment.committed)] = number
            steps[list(moment.revoked)] = -1
            steps[list(moment.filled)] = number
        return steps

    def word(self, token: int) -> str:
        """The text of a token, or its id as #17."""
        return self.words.get(int(token), f"#{int(token)}")

    @property
    def finished(self) -> bool:
        return self.end is not None


def _read(unzipped: Unzipped) -> Trace:
    """Read line by line, so that only the steps are kept."""
    name, lines = unzipped.name, iter(unzipped)
    header = _parsed(next(lines, b"0"), name)
    if "trace" not in header:
        raise _no_trace(name)
    if header["trace"] != FORMAT:
        raise TraceError(
            f"{name} is a trace of format {_short(header['trace'])}, and this version of unmask "
            f"reads format {FORMAT}; read it with unmask "
            f"{_short(header.get('unmask', 'of its time'))}"
        )
    spec = header_spec(header)
    masks, words = CanvasMasks.of(header, spec), words_of(header, spec.vocab_size)
    moments: list[Moment] = []
    end = None
    for line in lines:
        require(end is None, "a line follows its end")
        record = _parsed(line, name)
        words |= words_of(record, spec.vocab_size)
        require(len(words) <= WORDS, f"it holds more than {WORDS} words")
        if "end" in record:
            end = end_of(record)
        else:
            moments.append(_moment(record, masks))
            before = moments[-2].forward if len(moments) > 1 else -1
            require(moments[-1].forward == before + 1, "a step is missing")
        if end is not None:
            require(end["nfe"] == len(moments), "its last step is missing")
    header_branch(header, len(moments))
    return Trace(header, tuple(moments), words, end if unzipped.complete else None, name)


def _no_trace(name: str) -> TraceError:
    return TraceError(f"{name} is not a trace; make one with 'unmask run ... --trace FILE'")


def _one_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _short(value: object) -> str:
    """What a file says of itself, for a message."""
    return "".join(sign for sign in str(value)[:20] if sign.isprintable())


def _parsed(line: bytes, name: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise TraceError(f"{name} is damaged: a line is not JSON") from None
    if not isinstance(record, dict):
        raise _no_trace(name)
    return record


_PLAIN = ("entropy", "raw_entropy", "instability", "base", "score")


def _moment(record: dict[str, Any], masks: CanvasMasks) -> Moment:
    start, stop = masks.window(record)
    candidates = flags(record["candidates"], stop - start)
    count = whole(record["count"], "a count", stop - start)
    require(count == int(candidates.sum()), "a count differs from the number of candidates")
    columns = unpack(record["columns"], raw(record["cells"]), count)
    columns["minus_entropy"] = -columns["entropy"]
    for name, other in record["same"].items():
        columns[name] = columns[other]
    ready = flags(record["ready"], stop - start) if "ready" in record else candidates
    committed = masks.written(record["committed"], "committed")
    filled = masks.written(record.get("filled", ()), "filled")
    require(masks.fills or not filled, "its EOS policy never fills positions, but a step does")
    revoked = masks.places(record.get("revoked", ()), "revoked")
    positions = start + candidates.nonzero()[0]
    masks.take(positions, committed, revoked, filled)
    logarithmic = record["logarithmic"]
    require(isinstance(logarithmic, bool), "the unit of the score is unknown")
    require(isinstance(record["digest"], str), "a digest is not a text")
    counted = range(sum(name.startswith("log_p_") for name in columns))
    tokens = np.stack([columns[f"alternative_{place}"] for place in counted], -1)
    for column in (columns["token"], tokens):
        require(bool((column < masks.size).all()), "a token is outside the vocabulary")
    unweighted = masks.places(record["unweighted"], "lam = 0") if "unweighted" in record else None
    return Moment(
        forward=whole(record["forward"], "a number of forwards"),
        window=(start, stop),
        positions=positions,
        token=columns["token"],
        confidence=probabilities(columns["log_confidence"]),
        margin=probabilities(columns["log_margin"]),
        logarithmic=logarithmic,
        rank=ranks(columns["rank"], count, "the rank"),
        base_rank=ranks(columns["base_rank"], count, "the rank before SWD"),
        chosen=np.isin(positions, list(committed)),
        ready=ready[candidates],
        alternatives=tokens,
        probabilities=probabilities(np.stack([columns[f"log_p_{place}"] for place in counted], -1)),
        committed=committed,
        filled=filled,
        revoked=revoked,
        selected=masks.places(record.get("selected", committed), "selected"),
        unweighted=unweighted,
        gauge=gauge_of(record),
        digest=record["digest"],
        value=_value(columns, logarithmic),
        **{name: columns[name] for name in _PLAIN},
    )


def _value(columns: dict[str, Array], logarithmic: bool) -> Array:
    """The score in its own unit."""
    if not logarithmic:
        return columns.get("value", columns["score"])
    with np.errstate(over="ignore"):
        value: Array = np.exp(columns["score"])
    return value
