"""Tiny random checkpoints that SGLang serves, with the released vocabularies.

SGLang knows the mask token of a family by its number, so the vocabulary cannot be small. Only
the printable characters of ASCII are ever likely: texts and token ids go both ways.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from tests.checkpoints import make

PRINTABLE = 94  # token ids 0..93 of the byte tokenizer are ! to ~
CHAT = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
SHARED: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "bos_token_id": 256,
    "eos_token_id": 257,
    "pad_token_id": 257,
}
SDAR = {
    **SHARED,
    "architectures": ["SDARForCausalLM"],
    "auto_map": {"AutoConfig": "configuration_tiny.TinyConfig"},
    "model_type": "sdar",
    "vocab_size": 151936,
    "block_size": 4,
    "mask_token_id": 151669,
    "rope_theta": 1000000.0,
    "attention_bias": False,
}
LLADA2 = {
    **SHARED,
    "architectures": ["LLaDA2MoeModelLM"],
    "auto_map": {"AutoConfig": "configuration_tiny.TinyConfig"},
    "model_type": "llada2_moe",
    "vocab_size": 157184,
    "rope_theta": 600000.0,
    "partial_rotary_factor": 0.5,
    "rotary_dim": 8,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 16,
    "moe_router_enable_expert_bias": True,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_shared_experts": 1,
    "n_group": 4,
    "topk_group": 2,
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.0,  # SGLang's experts ignore the released 2.5 on the CPU
    "router_dtype": "fp32",
    "score_function": "sigmoid",
    "use_qk_norm": True,
    "use_bias": False,
    "use_qkv_bias": False,
    "norm_head": False,
    "embedding_dropout": 0.0,
    "output_dropout": 0.0,
}
FAMILIES = {"sdar": SDAR, "llada2": LLADA2}


def make_served(folder: Path, family: str, seed: int = 0) -> Path:
    """A checkpoint of a family in the files that both SGLang and unmask read."""
    config = FAMILIES[family]
    make(folder, config, seed, CHAT)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"][PRINTABLE:] *= 0.05
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "configuration_tiny.py").write_text(
        "from transformers import PretrainedConfig\n\n\n"
        f"class TinyConfig(PretrainedConfig):\n    model_type = {config['model_type']!r}\n"
    )
    roles = folder / "tokenizer_config.json"
    known = {**json.loads(roles.read_text()), "tokenizer_class": "PreTrainedTokenizerFast"}
    roles.write_text(json.dumps(known, indent=2))
    return folder
