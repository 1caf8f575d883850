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
from unmask.models.denoiser import ModelSpec
from unmask.rules.rule import Rule
from unmask.rules.spelling import from_file
from unmask.trace.recording.codec import FORMAT, Array, TraceError, flags, inflated, raw, unpack


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
        try:
            data = path.read_bytes()
        except OSError as error:
            raise TraceError(f"{path} cannot be read: {error.strerror}") from None
        return cls.of(data, path.name)

    @classmethod
    def of(cls, data: bytes, name: str = "trace") -> Trace:
        """Read the bytes of a file."""
        if data[:2] != b"\x1f\x8b":
            raise TraceError(f"{name} is not a trace; make one with 'unmask run ... --trace FILE'")
        content, whole = inflated(data)
        lines = content.split(b"\n")[:-1]  # an unfinished last line is dropped
        records = [_parsed(line, name) for line in lines]
        if not records or "trace" not in records[0]:
            raise TraceError(f"{name} is not a trace; make one with 'unmask run ... --trace FILE'")
        header = records[0]
        if header["trace"] != FORMAT:
            raise TraceError(
                f"{name} is a trace of format {header['trace']}, and this version of unmask reads "
                f"format {FORMAT}; read it with unmask {header.get('unmask', 'of its time')}"
            )
        words = {int(k): v for record in records for k, v in record.get("words", {}).items()}
        try:
            moments = tuple(_moment(record) for record in records if "forward" in record)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise TraceError(f"{name} is damaged: {error!r}") from None
        end = records[-1].get("end") if whole else None
        return cls(header, moments, words, end, name)

    @cached_property
    def rule(self) -> Rule:
        return Rule.parse(from_file(self.header["settings"]["rule"]))

    @cached_property
    def settings(self) -> Settings:
        """The settings of the run."""
        values = {**self.header["settings"], "rule": self.rule}
        return Settings(**{**values, "sampling": Sampling(**values["sampling"])})

    @cached_property
    def spec(self) -> ModelSpec:
        """The spec of the model that ran."""
        values = self.header["spec"]
        return ModelSpec(**{**values, "stop_ids": tuple(values["stop_ids"])})

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


def _parsed(line: bytes, name: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        raise TraceError(f"{name} is damaged: a line is not JSON") from None
    if not isinstance(record, dict):
        raise TraceError(f"{name} is not a trace; make one with 'unmask run ... --trace FILE'")
    return record


_PLAIN = ("token", "entropy", "raw_entropy", "instability", "base", "score", "rank", "base_rank")


def _moment(record: dict[str, Any]) -> Moment:
    start, stop = record["window"]
    candidates = flags(record["candidates"], stop - start)
    columns = unpack(record["columns"], raw(record["cells"]), record["count"])
    columns["minus_entropy"] = -columns["entropy"]
    for name, other in record["same"].items():
        columns[name] = columns[other]
    ready = flags(record["ready"], stop - start) if "ready" in record else candidates
    committed = dict(record["committed"])
    positions = start + candidates.nonzero()[0]
    logarithmic = record["logarithmic"]
    counted = range(sum(name.startswith("log_p_") for name in columns))
    return Moment(
        forward=record["forward"],
        window=(start, stop),
        positions=positions,
        confidence=np.exp(columns["log_confidence"]),
        margin=np.exp(columns["log_margin"]),
        logarithmic=logarithmic,
        chosen=np.isin(positions, list(committed)),
        ready=ready[candidates],
        alternatives=np.stack([columns[f"alternative_{place}"] for place in counted], -1),
        probabilities=np.exp(np.stack([columns[f"log_p_{place}"] for place in counted], -1)),
        committed=committed,
        filled=dict(record.get("filled", ())),
        revoked=tuple(record.get("revoked", ())),
        selected=tuple(record.get("selected", committed)),
        unweighted=tuple(record["unweighted"]) if "unweighted" in record else None,
        gauge=record.get("gauge", {}),
        digest=record["digest"],
        value=np.exp(columns["score"]) if logarithmic else columns.get("value", columns["score"]),
        **{name: columns[name] for name in _PLAIN},
    )
