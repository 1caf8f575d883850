"""Options of hosts that make the forwards (sglang, vllm, diffusers), read from a flat mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from unmask.decoding.options import DecodingOptions, Option
from unmask.decoding.request import Settings
from unmask.decoding.resolve import resolve
from unmask.errors import RequestError
from unmask.integrations import BLOCK_OPTIONS
from unmask.models.denoiser import ModelSpec

OWN = {
    "eos_id": Option("whole", "id of the end token", "none"),
    "allow_mask": Option("switch", "allow the mask token as a prediction", "off"),
}


@dataclass(frozen=True)
class BlockOptions:
    """How to decode the blocks of a host, and the end tokens of its model.

    `steps` counts the forwards of a block. Without a `seed` each request draws differently.
    """

    decoding: DecodingOptions
    eos_id: int | None = None  # the end token that `decoding.eos` writes or forbids
    stop_ids: tuple[int, ...] = ()  # all tokens that end an answer
    allow_mask: bool = False  # whether the mask token may be predicted

    @classmethod
    def read(cls, mapping: Mapping[str, Any], others: tuple[str, ...] = ()) -> BlockOptions:
        """Check and read a mapping; the keys in `others` belong to the host and are skipped."""
        values = {str(key): value for key, value in mapping.items() if key not in others}
        own = {
            name: option.check(name, values.pop(name))
            for name, option in OWN.items()
            if name in values
        }
        stop_ids = values.pop("stop_ids", [])
        if not isinstance(stop_ids, list) or not all(type(token) is int for token in stop_ids):
            raise RequestError(f"stop_ids must be a list of whole numbers, got {stop_ids!r}")
        decoding = DecodingOptions.read(values, (*BLOCK_OPTIONS, *OWN, "stop_ids", *others))
        if values.get("rule") is None:
            raise RequestError(
                "rule is missing; give for example rule: 'confidence | swd(5) | eb(0.1)'"
            )
        options = cls(decoding, stop_ids=tuple(stop_ids), **own)
        if options.settings.eos != "keep" and options.eos_id is None:
            raise RequestError(f"eos: {decoding.eos} needs the id of the end token; give eos_id")
        return options

    def changed(self, **changes: Any) -> BlockOptions:
        """The same options with those decoding options changed that are not None."""
        return replace(self, decoding=self.decoding.changed(changes))

    @cached_property
    def settings(self) -> Settings:
        """The settings of every block; they do not depend on the host's model."""
        settings = resolve(self.decoding, ModelSpec(0, 2), infill=True).settings
        rule = settings.rule
        if rule.sight or rule.needs.rechecks or settings.growth is not None:
            raise RequestError(
                f"{rule} needs forwards of its own (it hides positions, looks at committed ones "
                "again, or grows); a host that makes the forwards cannot run it"
            )
        return replace(settings, allow_mask=self.allow_mask)

    @property
    def draws(self) -> bool:
        """Whether the rule or the sampling makes random choices."""
        return self.settings.sampling.draws or self.settings.rule.needs.draws

    def spec(self, mask_id: int, vocab_size: int) -> ModelSpec:
        """The spec of the host's model."""
        return ModelSpec(mask_id, vocab_size, self.eos_id, self.stop_ids)
