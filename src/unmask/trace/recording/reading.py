"""Trace: a run as it was written, read back step by step."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling
from unmask.models.denoiser import ModelSpec
from unmask.rules.rule import Rule
from unmask.trace.recording.codec import FORMAT, Array, TraceError, flags, inflated, raw, unpack


@dataclass(frozen=True)
class Moment:
    """One step: what the rule saw of n candidates, and what it did. Arrays are [n]."""

    forward: int  # how many forwards came before it
    window: tuple[int, int]
    positions: Array
    token: Array
    confidence: Array
    margin: Array
    entropy: Array  # of the distribution that scores
    raw_entropy: Array  # of the model's own: what budgets count
    instability: Array  # D, NaN where there was nothing to compare with
    base: Array  # the score before modulators, as it ranks: a logarithm if `logarithmic`
    score: Array  # after them
    logarithmic: bool
    rank: Array  # 0 is the best
    base_rank: Array  # by the score before modulators
    chosen: Array  # bool: committed now
    ready: Array  # bool: among whom the selection chose
    alternatives: Array  # [n, k] token ids, the likeliest first
    probabilities: Array  # [n, k]
    committed: dict[int, int]  # position -> token, by the rule
    filled: dict[int, int]  # position -> token, by the EOS policy
    revoked: tuple[int, ...]
    selected: tuple[int, ...]  # by the selection alone, before limits
    unweighted: tuple[int, ...] | None  # what lam = 0 would have committed; None without SWD
    gauge: dict[str, float | None]  # the selection's own state: spent, next, best, passing...
    digest: str  # of the unrounded numbers
    value: Array = field(default_factory=lambda: np.zeros(0))  # the score in its own unit

    def place(self, position: int) -> int | None:
        """Where a position stands among the candidates, or None."""
        found = np.searchsorted(self.positions, position)
        here = found < len(self.positions) and self.positions[found] == position
        return int(found) if here else None

    @property
    def writes(self) -> dict[int, int]:
        """All that was written in this step."""
        return {**self.committed, **self.filled}

    @property
    def queue(self) -> list[int]:
        """Candidates as places, the best first."""
        order: list[int] = np.argsort(self.rank, kind="stable").tolist()
        return order


@dataclass(frozen=True)
class Trace:
    """A run: what was asked, its steps, and how it ended."""

    header: dict[str, Any]
    moments: tuple[Moment, ...]
    words: dict[int, str]
    end: dict[str, Any] | None  # nfe, nfe_eos, text; None where the run was cut off
    name: str = "trace"

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Trace:
        """From a file; of one that was cut off, all that was written."""
        path = Path(file)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise TraceError(f"{path} cannot be read: {error.strerror}") from None
        return cls.of(data, path.name)

    @classmethod
    def of(cls, data: bytes, name: str = "trace") -> Trace:
        """From a file's bytes."""
        if data[:2] != b"\x1f\x8b":
            raise TraceError(f"{name} is no trace; make one with 'unmask run ... --trace FILE'")
        content, whole = inflated(data)
        lines = content.split(b"\n")[:-1]  # what follows the last line break was cut off
        records = [_parsed(line, name) for line in lines]
        if not records or "trace" not in records[0]:
            raise TraceError(f"{name} is no trace; make one with 'unmask run ... --trace FILE'")
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
        return Rule.parse(self.header["settings"]["rule"])

    @cached_property
    def settings(self) -> Settings:
        """As the run was made with."""
        given = {**self.header["settings"], "rule": self.rule}
        return Settings(**{**given, "sampling": Sampling(**given["sampling"])})

    @cached_property
    def spec(self) -> ModelSpec:
        """Of the model that made it."""
        given = self.header["spec"]
        return ModelSpec(**{**given, "stop_ids": tuple(given["stop_ids"])})

    @property
    def canvas(self) -> Array:
        """The token ids before the first step: [L]."""
        return np.array(self.header["canvas"], dtype=np.int64)

    def canvas_after(self, step: int) -> Array:
        """The token ids after that many steps, all of them at -1: [L]."""
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
        """The step (from 0) that fixed each position, -1 where it was given or is open: [L]."""
        steps = np.full(len(self.canvas), -1)
        for number, moment in enumerate(self.moments):
            steps[list(moment.committed)] = number
            steps[list(moment.revoked)] = -1
            steps[list(moment.filled)] = number
        return steps

    def word(self, token: int) -> str:
        """A token as people read it."""
        return self.words.get(int(token), f"#{int(token)}")

    @property
    def finished(self) -> bool:
        return self.end is not None


def _parsed(line: bytes, name: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        raise TraceError(f"{name} is damaged: a line is no JSON") from None
    if not isinstance(record, dict):
        raise TraceError(f"{name} is no trace; make one with 'unmask run ... --trace FILE'")
    return record


def _moment(record: dict[str, Any]) -> Moment:
    start, stop = record["window"]
    candidates = flags(record["candidates"], stop - start)
    found = unpack(record["columns"], raw(record["cells"]), record["count"])
    found["minus_entropy"] = -found["entropy"]
    for name, other in record["same"].items():
        found[name] = found[other]
    ready = flags(record["ready"], stop - start) if "ready" in record else candidates
    committed = dict(record["committed"])
    positions = start + candidates.nonzero()[0]
    logarithmic = record["logarithmic"]
    counted = range(sum(name.startswith("log_p_") for name in found))
    return Moment(
        forward=record["forward"],
        window=(start, stop),
        positions=positions,
        token=found["token"],
        confidence=np.exp(found["log_confidence"]),
        margin=np.exp(found["log_margin"]),
        entropy=found["entropy"],
        raw_entropy=found["raw_entropy"],
        instability=found["instability"],
        base=found["base"],
        score=found["score"],
        logarithmic=logarithmic,
        rank=found["rank"],
        base_rank=found["base_rank"],
        chosen=np.isin(positions, list(committed)),
        ready=ready[candidates],
        alternatives=np.stack([found[f"alternative_{place}"] for place in counted], -1),
        probabilities=np.exp(np.stack([found[f"log_p_{place}"] for place in counted], -1)),
        committed=committed,
        filled=dict(record.get("filled", ())),
        revoked=tuple(record.get("revoked", ())),
        selected=tuple(record.get("selected", committed)),
        unweighted=tuple(record["unweighted"]) if "unweighted" in record else None,
        gauge=record.get("gauge", {}),
        digest=record["digest"],
        value=np.exp(found["score"]) if logarithmic else found.get("value", found["score"]),
    )
