"""The table of public checkpoints: its numbers follow from the published configs."""

from __future__ import annotations

import pytest
import torch

from unmask.models.config import Config
from unmask.models.families import family_named
from unmask.models.known import KNOWN

# hidden, MLP, layers, heads, key heads, vocabulary, tied, head width
QWEN = {
    "Qwen3-0.6B": (1024, 3072, 28, 16, 8, 151936, True, 128),
    "OPDLM-0.6B": (1024, 3072, 28, 16, 8, 151936, True, 128),
    "OPDLM-1.7B": (2048, 6144, 28, 16, 8, 151936, True, 128),
    "OPDLM-4B": (2560, 9728, 36, 32, 8, 151936, True, 128),
    "OPDLM-8B": (4096, 12288, 36, 32, 8, 151936, False, 128),
    "SDAR-1.7B": (2048, 6144, 28, 16, 8, 151936, False, 128),
    "SDAR-4B": (2560, 9728, 36, 32, 8, 151936, False, 128),
    "SDAR-8B": (4096, 12288, 36, 32, 8, 151936, False, 128),
    "Qwen2.5-Coder-0.5B": (896, 4864, 24, 14, 2, 151936, True, None),
    "open-dcoder-0.5B": (896, 4864, 24, 14, 2, 151936, True, None),
    "Fast_dLLM_v2_1.5B": (1536, 8960, 28, 12, 2, 151936, True, None),
    "Fast_dLLM_v2_7B": (3584, 18944, 28, 28, 4, 152064, False, None),
    "Dream-v0": (3584, 18944, 28, 28, 4, 152064, False, None),
    "Dream-Coder": (3584, 18944, 28, 28, 4, 152064, False, None),
    "DiffuCoder-7B": (3584, 18944, 28, 28, 4, 152064, False, None),
    "LLaDA2.0-mini": (2048, 5120, 20, 16, 4, 157184, False, 128),
    "LLaDA2.1-mini": (2048, 5120, 20, 16, 4, 157184, False, 128),
    "LLaDA2.0-flash": (4096, 9216, 32, 32, 4, 157184, False, 128),
}
EXPERTS = {
    "num_experts": 256, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4,
    "num_shared_experts": 1, "first_k_dense_replace": 1, "partial_rotary_factor": 0.5,
}  # fmt: skip
_LLADA = {
    "d_model": 4096, "n_layers": 32, "n_heads": 32, "mlp_hidden_size": 12288,
    "vocab_size": 126464, "weight_tying": False,
}  # fmt: skip
_MOE = {
    "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "num_experts": 64,
    "num_experts_per_tok": 8, "expert_intermediate_size": 1024, "vocab_size": 157184,
    "rope_theta": 50000,
}  # fmt: skip
OTHERS = {
    "LLaDA-8B": _LLADA,
    "LLaDA-1.5": _LLADA,
    "LLaDA-MoE": _MOE,
    "ModernBERT-base": {
        "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
        "num_attention_heads": 12, "vocab_size": 50368,
    },
    "ModernBERT-large": {
        "hidden_size": 1024, "intermediate_size": 2624, "num_hidden_layers": 28,
        "num_attention_heads": 16, "vocab_size": 50368,
    },
    "diffugpt-s": {"n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257},
    "diffugpt-m": {"n_embd": 1024, "n_head": 16, "n_layer": 24, "vocab_size": 50258},
}  # fmt: skip


def config_of(name):
    for part, values in OTHERS.items():
        if part in name:
            return values
    sizes = next(values for part, values in QWEN.items() if part in name)
    keys = (
        "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "vocab_size", "tie_word_embeddings", "head_dim",
    )  # fmt: skip
    config = dict(zip(keys, sizes, strict=True)) | {"rope_theta": 1e6}
    if "LLaDA2" in name:
        config |= EXPERTS | {"moe_intermediate_size": config["hidden_size"] // 4}
    return config


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.hub_id)
def test_the_sizes_follow_from_the_published_config(known):
    family = family_named(known.family)
    arch = family.read(Config(config_of(known.hub_id), known.hub_id))
    with torch.device("meta"):
        network = family.network(arch)
    sizes = {name: parameter.numel() for name, parameter in network.named_parameters()}
    assert known.parameters == sum(sizes.values())
    outer = ("embed.weight", "head.weight", "places.weight")
    assert known.outer == sum(size for name, size in sizes.items() if name in outer)


def test_fewer_bits_take_less_memory_but_not_in_the_embedding():
    for known in KNOWN:
        sizes = [known.memory(name) for name in ("float32", "bfloat16", "int8", "int4")]
        assert sizes[:2] == [4 * known.parameters, 2 * known.parameters]
        assert 2 * known.outer < sizes[3] < sizes[2] < sizes[1]
        assert sizes[2] == 2 * known.outer + known.parameters - known.outer
