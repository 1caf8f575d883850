"""`unmask.wrap`: a transformers model in memory, or any callable, as a denoiser."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unmask.errors import ModelError, UnmaskError
from unmask.models.architecture import Architecture
from unmask.models.config import Config
from unmask.models.denoiser import Canvas, Denoiser, Hidden, ModelSpec, cells, ship
from unmask.models.families import FAMILIES, family_of
from unmask.models.family import Family
from unmask.models.function import by_length, from_function
from unmask.models.rotary import check_rotary
from unmask.models.transformer import block_causal


class TransformersModel:
    """A transformers model, called on rows of equal length, so that no row is padded.

    `bidirectional` passes a 4D mask to classes that are causal by default. If the class belongs
    to transformers itself, the head runs on the requested rows only.
    """

    def __init__(self, model: Any, spec: ModelSpec, *, shift: bool, bidirectional: bool) -> None:
        self.model = model
        self.spec = spec
        self.shift = shift
        self.bidirectional = bidirectional
        self.split = type(model).__module__.startswith("transformers.models.")

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.device
        return device

    def trunk(self, canvas: Canvas) -> Hidden:
        if self.spec.block is None:
            return Hidden(by_length(canvas.tokens, canvas.lengths, self._states))
        place = torch.arange(canvas.tokens.shape[-1])
        width = torch.minimum(canvas.stop, canvas.lengths)
        states = by_length(canvas.tokens, width, self._states)
        return Hidden(states, fresh=place < width[:, None])

    def head(self, hidden: Hidden, rows: Tensor, positions: Tensor) -> Tensor:
        states = cells(hidden.states, rows, positions, self.shift)
        if not self.split:
            return states
        logits: Tensor = self.model.get_output_embeddings()(states)
        return logits

    def _states(self, ids: Tensor) -> Tensor:
        """Hidden states if the head can run separately, else logits: [b, l] -> [b, l, D or V]."""
        ids = ship(ids, self.device)
        arguments: dict[str, Any] = {"input_ids": ids}
        if self.bidirectional or self.spec.block is not None:
            arguments["attention_mask"] = self._mask(ids)
        if self.split:
            states: Tensor = self.model.base_model(**arguments, use_cache=False).last_hidden_state
            return states
        output = self.model(**arguments)
        logits: Tensor = output.logits if hasattr(output, "logits") else output[0]
        return logits

    def _mask(self, ids: Tensor) -> Tensor:
        """An additive mask: 0, and in block-causal models -inf after the query's block."""
        length = ids.shape[-1]
        mask = torch.zeros(len(ids), 1, length, length, dtype=self.model.dtype, device=ids.device)
        if self.spec.block is None:
            return mask
        place = torch.arange(length, device=ids.device)[None]
        return mask.masked_fill(~block_causal(place, place, self.spec.block)[:, None], -torch.inf)


def wrap(
    model: Any,
    tokenizer: Any = None,
    *,
    mask_id: int | None = None,
    eos_id: int | None = None,
    vocab_size: int | None = None,
    shift: bool | None = None,
    block: int | None = None,
    device: torch.device | str = "cpu",
) -> Denoiser:
    """Make a denoiser of a model that is already in memory.

    Takes a transformers model (LLaDA, Dream and their relatives by remote code, or a Llama or Qwen
    class with their weights), any function `ids [b, l] -> logits [b, l, V]`, or a denoiser.

    Args:
        model: the model or function.
        tokenizer: the transformers tokenizer of the model; it names the end-of-turn tokens, and
            the mask token if the config has none.
        mask_id: the mask token (default: from the config, the tokenizer or the family).
        eos_id: the only token that ends an answer (default: all that the configs and the
            tokenizer name).
        vocab_size: the vocabulary of a plain function; required there.
        shift: whether the output at i - 1 predicts token i (default: the family's; False for a
            function).
        block: the block width of a block-causal model (default: the config's).
        device: the device on which a plain function expects its ids.
    """
    if hasattr(model, "trunk") and hasattr(model, "head") and hasattr(model, "spec"):
        denoiser: Denoiser = model
        return denoiser
    config = getattr(model, "config", None)
    if config is not None and hasattr(config, "to_dict"):
        return _wrap_transformers(model, tokenizer, mask_id, eos_id, shift, block)
    if not callable(model):
        raise ModelError(f"cannot wrap {type(model).__name__}: give a model or a function")
    if mask_id is None or vocab_size is None:
        raise ModelError("a plain function needs mask_id and vocab_size: wrap(f, mask_id=...)")
    if block is not None:
        raise ModelError("block is for transformers models; leave it out for a function")
    return from_function(
        model,
        mask_id=mask_id,
        vocab_size=vocab_size,
        eos_id=eos_id,
        shift=bool(shift),
        device=device,
    )


def _wrap_transformers(
    model: Any,
    tokenizer: Any,
    mask_id: int | None,
    eos_id: int | None,
    shift: bool | None,
    block: int | None,
) -> TransformersModel:
    check_rotary(model)
    values = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    config = Config(values, f"the config of {type(model).__name__}")
    family, arch = _known(config)
    native = type(model).__module__.startswith("transformers.models.")
    if mask_id is None:
        mask_id = _mask(config, tokenizer, family)
    stops = tuple(_ends(config, model, tokenizer, family)) if eos_id is None else (eos_id,)
    rows = model.get_output_embeddings().weight.shape[0] if native else values.get("vocab_size")
    spec = ModelSpec(
        mask_id,
        int(values.get("embedding_size") or rows or 0),
        stops[0] if stops else None,
        stops,
        type(model).__name__,
        block if block is not None else (arch.block if arch else None),
        newline_id=None if tokenizer is None else _newline(tokenizer),
    )
    moved = shift if shift is not None else bool(arch and arch.shift)
    return TransformersModel(model, spec, shift=moved, bidirectional=native)


def _newline(tokenizer: Any) -> int | None:
    """The token of a line break; None if it is not a token of its own."""
    ids = tokenizer.encode("\n", add_special_tokens=False)
    return int(ids[0]) if len(ids) == 1 and tokenizer.decode(ids) == "\n" else None


def _mask(config: Config, tokenizer: Any, family: Family | None) -> int:
    """The mask token: the config's, else the tokenizer's, else the family's."""
    candidates: list[int | None] = [
        *config.token_ids("mask_token_id"),
        getattr(tokenizer, "mask_token_id", None),
        None if family is None else family.mask_id,
    ]
    for token in candidates:
        if token is not None:
            return token
    raise ModelError(f"{config.file} names no mask token; give mask_id")


def _ends(config: Config, model: Any, tokenizer: Any, family: Family | None) -> list[int]:
    """Every token that ends an answer; the first one is the padding (as in `load`)."""
    generation = getattr(model, "generation_config", None)
    own = {"eos_token_id": getattr(generation, "eos_token_id", None)}
    ends = [
        *config.token_ids("eos_token_id"),
        *Config(own, "generation_config").token_ids("eos_token_id"),
    ]
    if tokenizer is not None:
        known = tokenizer.get_vocab()
        families = FAMILIES if family is None else (family,)
        turns = [name for some in families for name in some.end_tokens]
        ends += [known[name] for name in (tokenizer.eos_token, *turns) if name in known]
    return list(dict.fromkeys(ends))


def _known(config: Config) -> tuple[Family | None, Architecture | None]:
    """The family and architecture, if the class belongs to a known family."""
    try:
        family = family_of(config)
        return family, family.read(config)
    except UnmaskError:
        return None, None
