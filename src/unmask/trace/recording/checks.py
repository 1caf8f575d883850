"""Checks the records of a trace. A trace may come from anywhere, so nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unmask.decoding.options import MOST
from unmask.models.denoiser import ModelSpec
from unmask.rules.view import FIELDS
from unmask.trace.recording.codec import Array

VOCABULARY = 1 << 24  # token ids have 24 bits
WORDS = 1 << 20  # the most words that a trace may hold
LARGEST = 1 << 62  # of any other whole number


def require(holds: bool, what: str) -> None:
    """Raise ValueError unless a statement about a record holds."""
    if not holds:
        raise ValueError(what)


def whole(value: Any, what: str, most: int = LARGEST) -> int:
    """A whole number from 0 to `most`."""
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
    require(right, f"{what} is not a whole number from 0 to {most}")
    number: int = value
    return number


def header_spec(header: dict[str, Any]) -> ModelSpec:
    """Check a header; returns the spec of its model."""
    known = header["spec"]
    size = whole(known["vocab_size"], "the vocabulary", VOCABULARY)
    for name in ("mask_id", "eos_id", "block", "newline_id"):
        if known.get(name) is not None:
            whole(known[name], name, VOCABULARY)
    whole(known["mask_id"], "mask_id", size - 1)
    stops = tuple(whole(token, "a stop id", size - 1) for token in known["stop_ids"])
    require(isinstance(known.get("name", ""), str), "the model's name is not a text")
    canvas = header["canvas"]
    require(isinstance(canvas, list) and 0 < len(canvas) <= MOST, "the canvas has no usable length")
    for token in canvas:
        whole(token, "a token of the canvas", size - 1)
    whole(header["seed"], "the seed", 2**64)
    if header["length"] is not None:  # a prompt, and masks to the end
        masks = canvas.count(known["mask_id"])
        tail = masks > 0 and set(canvas[-masks:]) == {known["mask_id"]}
        wanted = whole(header["length"], "the length", masks)
        require(tail and wanted > 0, "the canvas does not end with an answer")
    _check_model(header["model"])
    _check_settings(header["settings"])
    parts = header.get("parts", {})
    require(
        all(isinstance(each, str) for each in parts.values()), "the origin of a part is no text"
    )
    require(header["kl"] in FIELDS, "the divergence between two steps is unknown")
    return ModelSpec(**{**known, "stop_ids": stops})


def _check_settings(settings: dict[str, Any]) -> None:
    """Check the types of the settings; their values are checked where they are used."""
    require(isinstance(settings["rule"], str), "the rule is not a text")
    require(isinstance(settings["eos"], str), "the EOS policy is not a text")
    sampling = settings["sampling"]
    for name in ("temperature", "top_p"):
        value = sampling[name]
        right = isinstance(value, int | float) and 0 <= value <= LARGEST
        require(right, f"{name} is not a usable number")
    whole(sampling["top_k"], "top_k", VOCABULARY)
    for flag in (settings.get("allow_mask", False), sampling["tempered"]):
        require(isinstance(flag, bool), "a switch of the settings is neither on nor off")


def _check_model(model: dict[str, Any]) -> None:
    """Check how the model was loaded: texts, and a few numbers."""
    numbers = {"mask_id": VOCABULARY, "block": VOCABULARY}
    for name, value in model.items():
        if name in numbers and value is not None:
            whole(value, f"{name} of the model", numbers[name])
        elif name == "guidance" and value is not None:
            require(isinstance(value, int | float), "the guidance of the model is not a number")
        elif name == "pack" and value is not None:
            require(isinstance(value, bool), "pack of the model is neither on nor off")
        elif name in ("path", "device", "dtype", "quantize", "cache", "kernel"):
            right = isinstance(value, str) or (name in ("dtype", "quantize") and value is None)
            require(right and "\0" not in str(value), f"{name} of the model is not a text")


def header_branch(header: dict[str, Any], steps: int) -> None:
    """Check the origin of a branch, if there is one."""
    origin = header.get("branch")
    if origin is not None:
        whole(origin["step"], "the step of the branch", max(steps, 0))
        texts = isinstance(origin["of"], str) and isinstance(origin["rule"], str)
        require(texts, "the origin of the branch is not a text")


def words_of(record: dict[str, Any], size: int) -> dict[int, str]:
    """The words of a record by their token."""
    words = {int(key): word for key, word in record.get("words", {}).items()}
    require(all(isinstance(word, str) for word in words.values()), "a word is not a text")
    require(all(0 <= token < size for token in words), "a word has no token")
    return words


def end_of(record: dict[str, Any]) -> dict[str, Any]:
    """The end of a run."""
    end: dict[str, Any] = record["end"]
    whole(end["nfe"], "the NFE")
    if end["nfe_eos"] is not None:
        whole(end["nfe_eos"], "the NFE to EOS")
    require(end["text"] is None or isinstance(end["text"], str), "the answer is not a text")
    return end


@dataclass
class CanvasMasks:
    """The masks of the canvas from step to step: which positions a step may write."""

    masked: Array  # [L] bool
    given: Array  # [L] bool: not a mask before the first step
    size: int  # of the vocabulary
    fills: bool  # whether the EOS policy, or the rule outside its selection, writes tokens

    @classmethod
    def of(cls, header: dict[str, Any], spec: ModelSpec) -> CanvasMasks:
        """The canvas before the first step."""
        masked = np.array(header["canvas"], dtype=np.int64) == spec.mask_id
        fills = header["settings"]["eos"] in ("stop", "block", "fill") or header.get("rewrites")
        return cls(masked, ~masked, spec.vocab_size, bool(fills))

    def window(self, record: dict[str, Any]) -> tuple[int, int]:
        """The window of a step, inside the canvas."""
        start, stop = record["window"]
        whole(stop, "the end of a window", len(self.masked))
        return whole(start, "the start of a window", stop), stop

    def written(self, pairs: Any, what: str) -> dict[int, int]:
        """Positions with their tokens."""
        tokens = {}
        for position, token in pairs:
            place = whole(position, f"a position that was {what}", len(self.masked) - 1)
            require(not self.given[place], f"a position of the prompt was {what}")
            tokens[place] = whole(token, f"a token that was {what}", self.size - 1)
        return tokens

    def places(self, positions: Iterable[Any], what: str) -> tuple[int, ...]:
        """Positions of the canvas that are not part of the prompt."""
        numbers = tuple(
            whole(each, f"a {what} position", len(self.masked) - 1) for each in positions
        )
        require(not self.given[list(numbers)].any(), f"a position of the prompt is {what}")
        return numbers

    def take(
        self,
        candidates: Array,
        committed: Iterable[int],
        revoked: Iterable[int],
        filled: Iterable[int],
    ) -> None:
        """Take one step: candidates are masks, only candidates are committed."""
        require(bool(self.masked[candidates].all()), "a candidate is not a mask")
        places = list(committed)
        known = bool(np.isin(places, candidates).all())
        require(known, "a committed position is not a candidate")
        self.masked[places] = False
        self.masked[list(revoked)] = True
        self.masked[list(filled)] = False


def ranks(column: Array, count: int, what: str) -> Array:
    """The ranks of n candidates: every number below n once."""
    require(np.array_equal(np.sort(column), np.arange(count)), f"{what} is not an order")
    return column


def probabilities(logarithms: Array) -> Array:
    """Probabilities that are written as logarithms of 16 bits; NaN is allowed."""
    require(not bool((logarithms > 0.01).any()), "a probability is greater than 1")
    p: Array = np.exp(logarithms)
    return p


def gauge_of(record: dict[str, Any]) -> dict[str, float | None]:
    """The numbers of the selection."""
    gauge: dict[str, float | None] = record.get("gauge", {})
    numbers = all(value is None or isinstance(value, int | float) for value in gauge.values())
    require(numbers and len(gauge) <= 64, "the gauge holds a value that is not a number")
    return gauge
