"""A call of `model.generate`, read: what unmask takes of it, and what it cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unmask.decoding.asked import Asked, recipe_of
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError, UnknownName
from unmask.models.denoiser import ModelSpec
from unmask.rules.rule import Rule

_WHOLE = ("length", "seed", "mask_id", "attention_block")  # what nobody else checks at once
_SWITCHES = ("tempered", "shift")
# Our own words; they stand in the exported folder, or in the call, which wins.
OWN = ("rule", "block", "eos", "steps", "history", *_WHOLE, *_SWITCHES)
_SAMPLED = ("temperature", "top_p", "top_k")
_CONFIG = (  # of generation_config
    *_SAMPLED,
    "do_sample",
    "max_new_tokens",
    "max_length",
    "eos_token_id",
    "pad_token_id",
    "num_return_sequences",
    "return_dict_in_generate",
)
_PLAIN = ("inputs", "input_ids", "attention_mask", "streamer", "tokenizer", "generation_config")
_IDLE = (  # change nothing here
    "use_cache",
    "synced_gpus",
    "token_type_ids",
    "use_model_defaults",
    "bos_token_id",
    "decoder_start_token_id",
    "cache_implementation",
    "transformers_version",
    "_from_model_config",
)
_THEIRS = (  # what generate can do besides, and its config does not name
    "logits_processor",
    "stopping_criteria",
    "prefix_allowed_tokens_fn",
    "assistant_model",
    "negative_prompt_ids",
    "negative_prompt_attention_mask",
    "inputs_embeds",
    "past_key_values",
    "position_ids",
)
_MAX_LENGTH = 20  # what a generation_config says of transformers 4 that nobody asked
_TOP_K = 50  # what generate takes where nobody says anything


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    model: Any
    options: Mapping[str, Any]  # of the exported folder
    given: Mapping[str, Any]  # in the call
    inputs: Tensor  # [B, L], each prompt as often as it is to be answered
    attention: Tensor  # [B, L] bool

    @classmethod
    def read(cls, model: Any, options: Mapping[str, Any], arguments: Mapping[str, Any]) -> Call:
        """The call, if unmask can do all of it."""
        given = {key: value for key, value in arguments.items() if value is not None}
        asked = _changed(given.get("generation_config"))
        given = {**{key: asked.pop(key) for key in OWN if key in asked}, **given}
        check_options({**options, **{key: given[key] for key in OWN if key in given}})
        for key, value in {**asked, **given}.items():
            if key not in (*OWN, *_CONFIG, *_PLAIN, *_IDLE):
                _refuse(key, value)
            if key in _SAMPLED and not _config(model, given, "do_sample"):
                raise RequestError(f"{key} changes nothing without do_sample=True")
        inputs, attention = _inputs(given)
        times = _config(model, given, "num_return_sequences") or 1
        each = (inputs.repeat_interleave(times, 0), attention.repeat_interleave(times, 0))
        return cls(model, options, given, *each)

    def own(self, name: str, default: Any = None) -> Any:
        """One of our options: the call's, else the folder's."""
        return self.given.get(name, self.options.get(name, default))

    def config(self, name: str) -> Any:
        """A value of the call, of its generation_config, or of the model's."""
        return _config(self.model, self.given, name)

    @property
    def prompts(self) -> list[Tensor]:
        """The rows without their padding."""
        pairs = zip(self.inputs, self.attention, strict=True)
        return [row[seen].cpu() for row, seen in pairs]

    @property
    def length(self) -> int | None:
        """How many tokens to write; None: nobody says."""
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
        found: int | None = self.config("max_new_tokens") if asked is None else asked
        return found

    def _beyond(self, longest: int) -> int:
        width = self.inputs.shape[-1]
        if longest <= width:
            raise RequestError(
                f"max_length {longest} leaves nothing to write after {width} tokens of prompt; "
                "give max_new_tokens"
            )
        return longest - width

    @property
    def asked(self) -> Asked:
        """How to decode."""
        return _asked({key: self.own(key) for key in OWN}, self.sampling, self.length)

    @property
    def sampling(self) -> Sampling:
        """Greedy, or what do_sample brings."""
        tempered = bool(self.own("tempered", False))
        if not self.config("do_sample"):
            return Sampling(tempered=tempered)
        temperature, top_p, top_k = (self.config(name) for name in _SAMPLED)
        return Sampling(
            1.0 if temperature is None else float(temperature),
            1.0 if top_p is None else float(top_p),
            _TOP_K if top_k is None else int(top_k),
            tempered,
        )

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """The end tokens that this call names; none: those of the model."""
        config = self.given.get("generation_config")
        named = self.given.get("eos_token_id", getattr(config, "eos_token_id", None))
        return _numbers(named)

    @property
    def pad_id(self) -> int | None:
        """What stands behind an end token."""
        found: int | None = self.config("pad_token_id")
        return found

    @property
    def return_dict(self) -> bool:
        return bool(self.config("return_dict_in_generate"))

    @property
    def streamer(self) -> Any:
        return self.given.get("streamer")

    @property
    def tokenizer(self) -> Any:
        return self.given.get("tokenizer")


def check_options(options: Mapping[str, Any]) -> None:
    """Raise where options of ours are unknown, or cannot be what they say, whatever the model."""
    for key, value in options.items():
        if key not in OWN:
            raise UnknownName("option", key, OWN)
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if key in _WHOLE and not whole:
            raise RequestError(f"{key} must be a whole number >= 0, got {value!r}")
        if key in _SWITCHES and not isinstance(value, bool):
            raise RequestError(f"{key} must be true or false, got {value!r}")
    _asked(options, Sampling(), None).decoding_by(ModelSpec(0, 2, 1), 1)


def _asked(own: Mapping[str, Any], sampling: Sampling, length: int | None) -> Asked:
    rule = own.get("rule") or "swd"
    parsed = rule if isinstance(rule, Rule) else Rule.parse(str(rule))
    more = {key: own.get(key) for key in ("block", "eos", "steps", "history")}
    return Asked(parsed, recipe_of(str(rule)), sampling, length, **more)


def _changed(config: Any) -> dict[str, Any]:
    """What a generation_config says that another would not."""
    found: dict[str, Any] = {} if config is None else config.to_diff_dict()
    return {key: value for key, value in found.items() if value is not None}


def _config(model: Any, given: Mapping[str, Any], name: str) -> Any:
    """A value of the call, of its generation_config, or of the model's."""
    if name in given:
        return given[name]
    for config in (given.get("generation_config"), getattr(model, "generation_config", None)):
        found = getattr(config, name, None)
        if found is not None:
            return found
    return None


def _inputs(given: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """The prompts and which of their positions are no padding: [B, L] each."""
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
    """Raise for an argument that unmask does not know, or cannot do."""
    from transformers import GenerationConfig

    if value is False or (isinstance(value, list) and not value):
        return  # generate's own way to say that there is none
    known = (*OWN, *_CONFIG, *_PLAIN)
    if key in _THEIRS or hasattr(GenerationConfig(), key):
        raise RequestError(
            f"{key} is nothing that decoding by a rule does; leave it out (taken are "
            f"{', '.join(known)})"
        )
    raise UnknownName("argument of generate", key, known)
