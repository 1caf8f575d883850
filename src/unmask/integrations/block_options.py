"""Options of hosts that make the forwards (sglang, vllm, diffusers), read from a flat mapping."""

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
class BlockOptions:
    """How to decode the blocks of a host, and the end tokens of its model.

    Args:
        settings: how to decode one block; `steps` counts the forwards of a block.
        eos_id: the end token that `settings.eos` writes or forbids.
        stop_ids: all tokens that end an answer.
        seed: seed of all draws; None draws differently for each request.
    """

    settings: Settings
    eos_id: int | None = None
    stop_ids: tuple[int, ...] = ()
    seed: int | None = None

    @classmethod
    def read(cls, mapping: Mapping[str, Any], others: tuple[str, ...] = ()) -> BlockOptions:
        """Check and read a mapping; the keys in `others` belong to the host and are skipped."""
        values = {str(key): value for key, value in mapping.items() if key not in others}
        for key, value in values.items():
            if key not in KEYS:
                raise UnknownName("option", key, (*KEYS, *others))
            if not _is(value, KEYS[key]):
                raise RequestError(f"{key} must be {KEYS[key]}, got {value!r}")
        if "rule" not in values:
            raise RequestError(
                "rule is missing; give for example rule: 'confidence | swd(5) | eb(0.1)'"
            )
        sampling = Sampling(**{key: values[key] for key in _SAMPLING if key in values})
        chosen = {key: values[key] for key in _SETTINGS if key in values}
        settings = Settings(Rule.parse(values["rule"]), sampling=sampling, **chosen)
        stops = tuple(values.get("stop_ids", ()))
        options = cls(settings, values.get("eos_id"), stops, values.get("seed"))
        if settings.eos != "keep" and options.eos_id is None:
            raise RequestError(f"eos: {settings.eos} needs the id of the end token; give eos_id")
        if options.seed is not None and options.seed < 0:
            raise RequestError(f"seed must be >= 0, got {options.seed}")
        return options

    def spec(self, mask_id: int, vocab_size: int) -> ModelSpec:
        """The spec of the host's model."""
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
