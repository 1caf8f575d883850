"""Reads the arguments of `model.generate`; refuses those that unmask does not support."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.decoding.options import DecodingOptions, Option
from unmask.decoding.resolve import resolve
from unmask.errors import RequestError, UnknownName
from unmask.integrations import GENERATE_OPTIONS
from unmask.models.denoiser import ModelSpec

_MODEL = {
    "attention_block": Option("whole", "width of block-causal attention", "the model's", least=1),
    "shift": Option("switch", "output i - 1 predicts token i", "the model's"),
}
# Our own arguments: from the exported folder, or from the call, which overrides the folder.
OWN = (*GENERATE_OPTIONS, *_MODEL)
_SAMPLED = {"temperature": 1.0, "top_p": 1.0, "top_k": 50}  # with the defaults of generate
_CONFIG = (  # also fields of generation_config
    *_SAMPLED, "do_sample", "max_new_tokens", "max_length", "eos_token_id", "pad_token_id",
    "num_return_sequences", "return_dict_in_generate",
)  # fmt: skip
_PLAIN = ("inputs", "input_ids", "attention_mask", "streamer", "tokenizer", "generation_config")
_IDLE = (  # have no effect on decoding by a rule
    "use_cache", "synced_gpus", "token_type_ids", "use_model_defaults", "bos_token_id",
    "decoder_start_token_id", "cache_implementation", "transformers_version", "_from_model_config",
)  # fmt: skip
_THEIRS = (  # not supported, and not fields of generation_config
    "logits_processor", "stopping_criteria", "prefix_allowed_tokens_fn", "assistant_model",
    "negative_prompt_ids", "negative_prompt_attention_mask", "inputs_embeds", "past_key_values",
    "position_ids",
)  # fmt: skip
_MAX_LENGTH = 20  # default of generation_config in transformers 4


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    model: Any
    options: Mapping[str, Any]  # from the exported folder
    given: Mapping[str, Any]  # from the call
    inputs: Tensor  # [B, L]; a prompt is repeated num_return_sequences times
    attention: Tensor  # [B, L] bool

    @classmethod
    def read(cls, model: Any, options: Mapping[str, Any], arguments: Mapping[str, Any]) -> Call:
        """Check the arguments of a call and read its prompts."""
        given = {key: value for key, value in arguments.items() if value is not None}
        config = _changed(given.get("generation_config"))
        given = {**{key: config.pop(key) for key in OWN if key in config}, **given}
        check_options({**options, **{key: given[key] for key in OWN if key in given}})
        for key, value in {**config, **given}.items():
            if key not in (*OWN, *_CONFIG, *_PLAIN, *_IDLE):
                _refuse(key, value)
            if key in _SAMPLED and not _config(model, given, "do_sample"):
                raise RequestError(
                    f"{key} has no effect without do_sample=True; give both or neither"
                )
        inputs, attention = _inputs(given)
        times = _config(model, given, "num_return_sequences") or 1
        each = (inputs.repeat_interleave(times, 0), attention.repeat_interleave(times, 0))
        return cls(model, options, given, *each)

    def own(self, name: str) -> Any:
        """One of our arguments: from the call, else from the folder."""
        return self.given.get(name, self.options.get(name))

    def config(self, name: str) -> Any:
        """A value from the call, its generation_config, or the model's generation_config."""
        return _config(self.model, self.given, name)

    @property
    def prompts(self) -> list[Tensor]:
        """The rows without their padding."""
        pairs = zip(self.inputs, self.attention, strict=True)
        return [row[visible].cpu() for row, visible in pairs]

    @property
    def length(self) -> int | None:
        """How many tokens to write; None if neither call, folder nor model gives a number."""
        asked = self.given.get("length", self.given.get("max_new_tokens"))
        if asked is None and "max_length" in self.given:
            asked = self._beyond(self.given["max_length"])
        config = self.given.get("generation_config")
        if asked is None and config is not None:
            asked = config.max_new_tokens
            if asked is None and config.max_length not in (None, _MAX_LENGTH):
                asked = self._beyond(config.max_length)
        if asked is None:
            asked = self.options.get("length")
        length: int | None = self.config("max_new_tokens") if asked is None else asked
        return length

    def _beyond(self, longest: int) -> int:
        width = self.inputs.shape[-1]
        if longest <= width:
            raise RequestError(
                f"max_length {longest} leaves no room after a prompt of {width} tokens; "
                "give max_new_tokens"
            )
        return longest - width

    @property
    def decoding(self) -> DecodingOptions:
        """How to decode; greedy without do_sample."""
        own = {name: self.own(name) for name in GENERATE_OPTIONS}
        options = DecodingOptions.read({**own, "length": self.length})
        if not self.config("do_sample"):
            return options
        sampled = {name: self.config(name) for name in _SAMPLED}
        return options.changed(_SAMPLED).changed(sampled)

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """The end tokens of this call; empty for those of the model."""
        config = self.given.get("generation_config")
        named = self.given.get("eos_token_id", getattr(config, "eos_token_id", None))
        return _numbers(named)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise if an option is unknown or wrong for every model."""
    for name, option in _MODEL.items():
        if name in options:
            option.check(name, options[name])
    own = {name: value for name, value in options.items() if name not in _MODEL}
    resolve(DecodingOptions.read(own, OWN), ModelSpec(0, 2, 1))


def _changed(config: Any) -> dict[str, Any]:
    """The values of a generation_config that differ from its defaults."""
    values: dict[str, Any] = {} if config is None else config.to_diff_dict()
    return {key: value for key, value in values.items() if value is not None}


def _config(model: Any, given: Mapping[str, Any], name: str) -> Any:
    """A value from the call, its generation_config, or the model's generation_config."""
    if name in given:
        return given[name]
    for config in (given.get("generation_config"), getattr(model, "generation_config", None)):
        value = getattr(config, name, None)
        if value is not None:
            return value
    return None


def _inputs(given: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """The prompts, and True where a position is not padding: [B, L] each."""
    inputs = given.get("input_ids", given.get("inputs"))
    if not isinstance(inputs, Tensor) or inputs.ndim != 2 or not len(inputs):
        raise RequestError(
            "generate needs the token ids of its prompts: input_ids=tensor of shape [rows, tokens]"
        )
    attention = given.get("attention_mask")
    if attention is None:
        return inputs, torch.ones_like(inputs, dtype=torch.bool)
    if attention.shape != inputs.shape:
        raise RequestError(
            f"attention_mask must have the shape of the prompts, {tuple(inputs.shape)}, got "
            f"{tuple(attention.shape)}"
        )
    return inputs, attention.bool()


def _numbers(given: Any) -> tuple[int, ...]:
    if given is None:
        return ()
    if isinstance(given, Tensor):
        given = given.tolist()
    return tuple(given) if isinstance(given, list | tuple) else (int(given),)


def _refuse(key: str, value: Any) -> None:
    """Raise for an argument that unmask does not support."""
    from transformers import GenerationConfig

    if value is False or (isinstance(value, list) and not value):
        return  # turned off
    known = (*OWN, *_CONFIG, *_PLAIN)
    if key in _THEIRS or hasattr(GenerationConfig(), key):
        raise RequestError(
            f"decoding by a rule does not support {key}; leave it out (supported: "
            f"{', '.join(known)})"
        )
    raise UnknownName("argument of generate", key, known)
