"""transformers' own classes as carriers of our checkpoints: for quantisation and device maps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from unmask.errors import ModelError
from unmask.models.architecture import Architecture
from unmask.models.checkpoint import read_json
from unmask.models.config import Config
from unmask.models.describe import describe
from unmask.models.families import family_of
from unmask.models.load import find_folder
from unmask.models.rotary import is_remote, repair_rotary
from unmask.models.tokenizer import Tokenizer
from unmask.models.transformers_model import Hosted

# family -> the class that computes the same with a mask that hides nothing
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
) -> tuple[Hosted, Tokenizer]:
    """Load a LLaDA, Dream or SDAR folder into transformers' Llama, Qwen2 or Qwen3 class.

    `options` go to `from_pretrained`: dtype, device_map, quantization_config and so on.
    """
    transformers = _transformers()
    found = describe(find_folder(source, revision, token), mask_id, block)
    name = found.family.name
    if name not in CLASSES:
        raise ModelError(
            f"transformers has no class that carries {name}; load it with unmask.load "
            f"(carried are {', '.join(CLASSES)})"
        )
    kind, config_kind = CLASSES[name]
    if name == "llada":
        options["key_mapping"] = _LLADA_TO_LLAMA
    host_config = getattr(transformers, config_kind)(**_host_config(found.arch, found.config))
    model, loading = getattr(transformers, kind).from_pretrained(
        found.folder, config=host_config, output_loading_info=True, **options
    )
    _check_loading(found.folder, loading)
    model.eval()
    hosted = Hosted(model, found.spec, shift=found.arch.shift, bidirectional=True)
    return hosted, found.tokenizer


def load_remote(
    source: str | os.PathLike[str],
    *,
    trust_remote_code: bool = False,
    mask_id: int | None = None,
    block: int | None = None,
    revision: str | None = None,
    token: str | None = None,
    **options: Any,
) -> tuple[Hosted, Tokenizer]:
    """Load a folder through the Python code that lies beside its weights.

    That code runs with your rights, so it must be allowed by name. Under transformers 5 its rotary
    buffers are recomputed and verified; a model whose buffers are not understood is refused.
    """
    if not trust_remote_code:
        raise ModelError(
            f"{os.fspath(source)}: running the code of a checkpoint must be allowed with "
            "trust_remote_code=True; unmask.load needs no such code"
        )
    transformers = _transformers()
    found = describe(find_folder(source, revision, token), mask_id, block)
    options.setdefault("dtype", "auto")
    model = transformers.AutoModel.from_pretrained(found.folder, trust_remote_code=True, **options)
    if is_remote(model) and int(transformers.__version__.split(".")[0]) >= 5:
        repair_rotary(model)
    model.eval()
    hosted = Hosted(model, found.spec, shift=found.arch.shift, bidirectional=False)
    return hosted, found.tokenizer


def _check_loading(folder: Path, loading: dict[str, Any]) -> None:
    """transformers only warns of tensors that it makes up; here that is an error."""
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if found := sorted(map(str, loading.get(what) or ())):
            raise ModelError(f"{folder}: {what.replace('_', ' ')}: {found[0]} (of {len(found)})")


def _host_config(arch: Architecture, config: Config) -> dict[str, Any]:
    """Our architecture in the words of transformers' configs."""
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
            raise ModelError(f"{config.file}: Llama cannot carry biases of q, k and v alone")
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


def carried_by(folder: Path) -> str | None:
    """The transformers class that can carry a folder's checkpoint, if there is one."""
    config = Config(read_json(folder / "config.json"), str(folder / "config.json"))
    return CLASSES.get(family_of(config).name, (None,))[0]
