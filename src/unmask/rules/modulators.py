"""Modulators that weigh a score by the place of the position and by its token."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unmask.errors import RuleError, require
from unmask.models.untrusted import read_text
from unmask.rules.registry import register, show
from unmask.rules.scores import entropy
from unmask.rules.view import Needs, Scores, View

if TYPE_CHECKING:
    from unmask.models.denoiser import ModelSpec
    from unmask.rules.rule import Rule

_SCORE = "pc needs a score in [0, 1]: confidence, margin or random"


@register(
    "modulate",
    "pc",
    "exp(-lam * pos) * min(-S * log f(token), alpha)",
    "PC-Sampler: position weight and frequency calibration",
)
@dataclass(frozen=True)
class PositionCalibration:
    """Prefers early positions of the block, and tokens that are rare in ordinary text.

    background: a JSON list or a .npy file with the frequency f of each token id; without it only
        the position counts.
    """

    lam: float = 0.25
    alpha: float = 10.0
    background: str = "none"

    needs = Needs()

    def __post_init__(self) -> None:
        require(0 <= self.lam < inf, f"pc: lam must be >= 0 and finite, got {self.lam}")
        require(0 < self.alpha < inf, f"pc: alpha must be > 0 and finite, got {self.alpha}")
        if self.background != "none":
            _check_path(self.background)
            _frequencies(self.background)

    def describe(self) -> str:
        place = f"multiply the score by exp(-{show(self.lam)} * place)"
        by = f"by the frequencies in {self.background}, clipped at {show(self.alpha)}"
        rare = f" Favour rare tokens {by}." if self.background != "none" else ""
        return f"Favour early positions of the block: {place}.{rare}"

    def check_rule(self, rule: Rule) -> None:
        """Raise if the score is not a probability."""
        require(rule.score is not entropy, f"{_SCORE}, not entropy")

    def check_model(self, spec: ModelSpec) -> None:
        """Raise unless there is a frequency for every token."""
        if self.background != "none":
            _check_size(self.background, spec)

    def __call__(self, view: View, scores: Scores) -> Scores:
        require(scores.logarithmic, _SCORE)
        value = scores.value
        place = torch.arange(value.shape[-1], device=value.device, dtype=value.dtype)
        if self.background == "none":
            return scores - self.lam * place
        surprise = -(_frequencies(self.background).to(value.device) + 1e-9).log()
        return _weighted(scores, surprise[view.token], self.alpha) - self.lam * place


@register(
    "modulate", "certainty", "S * (Gaussian density of fixed tokens)", "d2Cache's certainty prior"
)
@dataclass(frozen=True)
class Certainty:
    """Prefers positions near tokens that are already fixed, by a Gaussian of width sigma.

    As many positions as the answer has count as fixed on its left, and on its right too once its
    last token is fixed.
    """

    sigma: float = 10.0

    needs = Needs()

    def __post_init__(self) -> None:
        require(
            0.01 <= self.sigma <= 1e6,  # wider than any canvas; its square stays finite
            f"certainty: sigma must be from 0.01 to 1e6, got {self.sigma:g}",
        )

    def describe(self) -> str:
        return f"Favour positions near fixed tokens, by a Gaussian of width {show(self.sigma)}."

    def __call__(self, view: View, scores: Scores) -> Scores:
        return scores - -self.density(view).log()

    def density(self, view: View) -> Tensor:
        """The share of the Gaussian's weight on fixed tokens, in (0, 1]: [B, W]."""
        p, device = view.progress, view.masked.device
        reach = p.known.shape[-1]
        length = p.answer_length[:, None]  # [B, 1]
        here = p.offset[:, None] + torch.arange(view.masked.shape[-1], device=device)  # [B, W]
        there = torch.arange(-reach, 2 * reach, device=device)  # [3A]
        left = (there < 0) & (there >= -length)
        right = (there >= length) & (there < 2 * length) & p.known.gather(-1, length - 1)
        fixed = torch.nn.functional.pad(p.known, (reach, reach)) | left | right  # [B, 3A]
        near = self._gauss(here[..., None] - there) * fixed[:, None]  # [B, W, 3A]
        far = torch.arange(-3 * reach, 3 * reach, device=device)
        whole = self._gauss(far) * ((far >= -3 * length) & (far < 3 * length))  # [B, 6A]
        return _exact_sum(near) / _exact_sum(whole)[:, None]

    def _gauss(self, distance: Tensor) -> Tensor:
        return torch.exp(-(distance**2).double() / (2 * self.sigma**2))


def _exact_sum(terms: Tensor) -> Tensor:
    """The sum over the last axis from left to right; zeros of padding change no bit of it."""
    return terms.cumsum(-1)[..., -1]


def _weighted(scores: Scores, surprise: Tensor, most: float) -> Scores:
    """S times the surprise of its token, at most `most`."""
    surprise = surprise.clamp_min(0.0)
    key = (scores.key + surprise.log()).clamp_max(log(most))
    return Scores(key, (scores.value * surprise).clamp_max(most), logarithmic=True)


def _check_size(path: str, spec: ModelSpec) -> None:
    known, size = len(_frequencies(path)), spec.vocab_size
    require(
        known >= size,
        f"pc: {path!r} holds {known} frequencies, {spec.name} has {size} tokens; give one for each",
    )


def _check_path(path: str) -> None:
    """Raise if the notation cannot write a path."""
    reserved = sorted(set(",|(){}=") & set(path))
    require(
        not reserved,
        f"pc: the path {path!r} holds {' '.join(reserved)}, which the notation cannot write; "
        "rename the file",
    )


@cache
def _frequencies(path: str) -> Tensor:
    """The background frequencies of a file, float64, checked."""
    file = Path(path)
    require(file.is_file(), f"pc: background file {path!r} does not exist; give a .json or .npy")
    try:
        # mapped: a file cannot claim to be larger than it is
        table = np.load(file, mmap_mode="r") if file.suffix == ".npy" else _from_json(file)
        frequencies = torch.as_tensor(np.array(table, dtype=np.float64))
    except (ValueError, TypeError, RecursionError, EOFError, OSError) as error:
        raise RuleError(f"pc: {path!r} must hold a list of frequencies: {error}") from None
    good = frequencies.ndim == 1 and bool((frequencies >= 0).all())
    require(good, f"pc: {path!r} must hold one frequency >= 0 per token id")
    return frequencies


def _from_json(file: Path) -> Any:
    data = json.loads(read_text(file))
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list)]
        require(len(lists) == 1, f"pc: {str(file)!r} must hold one list of frequencies")
        return lists[0]
    return data
