"""How to decode, as a host's configuration says it: a flat mapping, such as a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError, UnknownName
from unmask.models.denoiser import ModelSpec
from unmask.rules.rule import Rule

_NUMBER, _WHOLE, _TEXT, _SWITCH = "a number", "a whole number", "a text", "true or false"
KEYS = {
    "rule": _TEXT,
    "eos": _TEXT,
    "eos_id": _WHOLE,
    "stop_ids": "a list of whole numbers",
    "steps": _WHOLE,
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "top_k": _WHOLE,
    "tempered": _SWITCH,
    "seed": _WHOLE,
    "allow_mask": _SWITCH,
}
_SAMPLING = ("temperature", "top_p", "top_k", "tempered")
_SETTINGS = ("eos", "steps", "allow_mask")


@dataclass(frozen=True)
class Options:
    """A rule and what goes with it.

    Args:
        settings: of every block; `steps` are those of a block.
        eos_id: what `settings.eos` writes or forbids.
        stop_ids: all tokens that end an answer.
        seed: of every draw; None draws differently for each request.
    """

    settings: Settings
    eos_id: int | None = None
    stop_ids: tuple[int, ...] = ()
    seed: int | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any], others: tuple[str, ...] = ()) -> Options:
        """Options from a mapping, in which `others` are the host's own keys."""
        values = {str(key): value for key, value in given.items() if key not in others}
        for key, value in values.items():
            if key not in KEYS:
                raise UnknownName("option", key, (*KEYS, *others))
            if not _is(value, KEYS[key]):
                raise RequestError(f"{key} must be {KEYS[key]}, got {value!r}")
        if "rule" not in values:
            raise RequestError("no rule; write for example rule: 'confidence | swd(5) | eb(0.1)'")
        sampling = Sampling(**{key: values[key] for key in _SAMPLING if key in values})
        chosen = {key: values[key] for key in _SETTINGS if key in values}
        settings = Settings(Rule.parse(values["rule"]), sampling=sampling, **chosen)
        stops = tuple(values.get("stop_ids", ()))
        found = cls(settings, values.get("eos_id"), stops, values.get("seed"))
        if settings.eos != "keep" and found.eos_id is None:
            raise RequestError(f"eos: {settings.eos} needs to know the end token; give its eos_id")
        if found.seed is not None and found.seed < 0:
            raise RequestError(f"seed must be >= 0, got {found.seed}")
        return found

    def spec(self, mask_id: int, vocab_size: int) -> ModelSpec:
        """What decoding must know of the host's model."""
        return ModelSpec(mask_id, vocab_size, self.eos_id, self.stop_ids)


def _is(value: Any, kind: str) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind == _WHOLE:
        return whole
    if kind == _NUMBER:
        return whole or isinstance(value, float)
    if kind == _TEXT:
        return isinstance(value, str)
    if kind == _SWITCH:
        return isinstance(value, bool)
    return isinstance(value, list) and all(_is(each, _WHOLE) for each in value)
