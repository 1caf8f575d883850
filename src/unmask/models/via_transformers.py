"""Loads checkpoints into classes of transformers, for quantisation and device maps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from unmask.errors import ModelError
from unmask.models.architecture import Architecture
from unmask.models.config import Config
from unmask.models.describe import Description, describe
from unmask.models.load import find_folder
from unmask.models.rotary import is_at_risk, repair_rotary
from unmask.models.tokenizer import Tokenizer
from unmask.models.transformers_model import TransformersModel

# family -> the class and config of transformers that compute the same if the mask hides nothing
CLASSES = {
    "llada": ("LlamaForCausalLM", "LlamaConfig"),
    "dream": ("Qwen2ForCausalLM", "Qwen2Config"),
    "sdar": ("Qwen3ForCausalLM", "Qwen3Config"),
}
_LLADA_TO_LLAMA = {
    r"^model\.transformer\.wte\.": "model.embed_tokens.",
    r"^model\.transformer\.ln_f\.": "model.norm.",
    r"^model\.transformer\.ff_out\.": "lm_head.",
    r"^model\.transformer\.blocks\.(\d+)\.attn_norm\.": r"model.layers.\1.input_layernorm.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_norm\.": r"model.layers.\1.post_attention_layernorm.",
    r"^model\.transformer\.blocks\.(\d+)\.q_proj\.": r"model.layers.\1.self_attn.q_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.k_proj\.": r"model.layers.\1.self_attn.k_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.v_proj\.": r"model.layers.\1.self_attn.v_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.attn_out\.": r"model.layers.\1.self_attn.o_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_proj\.": r"model.layers.\1.mlp.gate_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.up_proj\.": r"model.layers.\1.mlp.up_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_out\.": r"model.layers.\1.mlp.down_proj.",
}


def load_carrier(
    source: str | os.PathLike[str],
    *,
    mask_id: int | None = None,
    block: int | None = None,
    revision: str | None = None,
    token: str | None = None,
    **options: Any,
) -> tuple[TransformersModel, Tokenizer]:
    """Load a LLaDA, Dream or SDAR folder into transformers' Llama, Qwen2 or Qwen3 class.

    `options` go to `from_pretrained`: dtype, device_map, quantization_config and so on.
    """
    transformers = _transformers()
    checkpoint = describe(find_folder(source, revision, token), mask_id, block)
    name = checkpoint.family.name
    if name not in CLASSES:
        raise ModelError(
            f"transformers has no class for {name}, only for {', '.join(CLASSES)}; load it with "
            "unmask.load"
        )
    kind, config_kind = CLASSES[name]
    if name == "llada":
        options["key_mapping"] = _LLADA_TO_LLAMA
    values = _host_config(checkpoint.arch, checkpoint.config)
    host_config = getattr(transformers, config_kind)(**values)
    model, loading = getattr(transformers, kind).from_pretrained(
        checkpoint.folder, config=host_config, output_loading_info=True, **options
    )
    _check_loading(checkpoint.folder, loading)
    return _denoiser(model, checkpoint, bidirectional=True)


def load_remote(
    source: str | os.PathLike[str],
    *,
    trust_remote_code: bool = False,
    mask_id: int | None = None,
    block: int | None = None,
    revision: str | None = None,
    token: str | None = None,
    **options: Any,
) -> tuple[TransformersModel, Tokenizer]:
    """Load a folder with the Python code that is stored beside its weights.

    That code runs with your rights, so `trust_remote_code=True` is required. Under transformers 5
    its rotary buffers are recomputed and checked; a model with unknown buffers raises an error.
    """
    if not trust_remote_code:
        raise ModelError(
            f"{os.fspath(source)}: to run the code of a checkpoint, give trust_remote_code=True; "
            "unmask.load needs no such code"
        )
    transformers = _transformers()
    checkpoint = describe(find_folder(source, revision, token), mask_id, block)
    options.setdefault("dtype", "auto")
    model = transformers.AutoModel.from_pretrained(
        checkpoint.folder, trust_remote_code=True, **options
    )
    if is_at_risk(model):
        repair_rotary(model)
    return _denoiser(model, checkpoint, bidirectional=False)


def _denoiser(
    model: Any, checkpoint: Description, bidirectional: bool
) -> tuple[TransformersModel, Tokenizer]:
    model.eval()
    shift = checkpoint.arch.shift
    denoiser = TransformersModel(model, checkpoint.spec, shift=shift, bidirectional=bidirectional)
    return denoiser, checkpoint.tokenizer


def _check_loading(folder: Path, loading: dict[str, Any]) -> None:
    """Raise if a tensor is missing or left over; transformers only warns about it."""
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if names := sorted(map(str, loading.get(what) or ())):
            raise ModelError(f"{folder}: {what.replace('_', ' ')}: {names[0]} (of {len(names)})")


def _host_config(arch: Architecture, config: Config) -> dict[str, Any]:
    """An architecture as the values of a transformers config."""
    longest = config.get("max_sequence_length", config.get("max_position_embeddings", 4096))
    values: dict[str, Any] = {
        "vocab_size": arch.vocab_size,
        "hidden_size": arch.hidden,
        "intermediate_size": arch.mlp,
        "num_hidden_layers": arch.layers,
        "num_attention_heads": arch.heads,
        "num_key_value_heads": arch.kv_heads,
        "head_dim": arch.head_dim,
        "rms_norm_eps": arch.norm_eps,
        "rope_theta": arch.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": arch.rope_theta},
        "max_position_embeddings": longest,
        "tie_word_embeddings": arch.tied,
        "attention_bias": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    if config.family.startswith("LLaDA"):
        if arch.qkv_bias:
            raise ModelError(f"{config.file}: Llama has no biases of q, k and v; use unmask.load")
        values["mlp_bias"] = False
    return values


def _transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise ModelError(
            "this needs the package transformers; install it, or use unmask.load, which does not"
        ) from None
    return transformers
