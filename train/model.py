"""The network to train, and the LLaDA-format folder in which it is saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from train.tokens import ASSISTANT, EOS, EOT, MASK, TEMPLATE, UNKNOWN, USER
from unmask.models.config import Config
from unmask.models.families import family_of
from unmask.models.transformer import Transformer

SHAPE = {"d_model": 96, "n_layers": 4, "n_heads": 3, "mlp_hidden_size": 192}


def config(tokenizer: Tokenizer) -> dict[str, Any]:
    """The values of config.json, in the format of the LLaDA family."""
    size = tokenizer.get_vocab_size()
    return {
        "architectures": ["LLaDAModelLM"],
        "model_type": "llada",
        **SHAPE,
        "n_kv_heads": SHAPE["n_heads"],
        "vocab_size": size,
        "embedding_size": size,
        "max_sequence_length": 128,
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-5,
        "activation_type": "silu",
        "block_type": "llama",
        "layer_norm_type": "rms",
        "rope": True,
        "include_bias": False,
        "weight_tying": False,
        "mask_token_id": tokenizer.token_to_id(MASK),
        "eos_token_id": tokenizer.token_to_id(EOS),
        "pad_token_id": tokenizer.token_to_id(EOS),
    }


def create(settings: dict[str, Any], seed: int) -> Transformer:
    """A new network: matrices with std 1 / sqrt(width), residual branches and head zero."""
    read = Config(settings, "config.json")
    module = Transformer(family_of(read).read(read))
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in module.named_parameters():
        if parameter.ndim == 1:
            nn.init.ones_(parameter)
        elif name.endswith(("attn.o.weight", "mlp.down.weight", "head.weight")):
            nn.init.zeros_(parameter)
        else:
            std = 0.5 if name == "embed.weight" else parameter.shape[-1] ** -0.5
            nn.init.normal_(parameter, 0.0, std, generator)
    return module


def multiply_in_bfloat16(module: Transformer) -> None:
    """Compute the linear layers in bfloat16; everything else stays in float32."""

    def forward(self: nn.Linear, x: Tensor) -> Tensor:
        return F.linear(x.bfloat16(), self.weight.bfloat16()).float()

    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            layer.forward = forward.__get__(layer)  # type: ignore[method-assign]


def save(
    folder: Path,
    tensors: dict[str, Tensor],
    settings: dict[str, Any],
    tokenizer: Tokenizer,
    dtype: torch.dtype = torch.float16,
) -> None:
    """Write config.json, model.safetensors, tokenizer.json and tokenizer_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    read = Config(settings, "config.json")
    family = family_of(read)
    plan = family.tensors(family.read(read))
    stored = {
        source.name: tensors[target.name].detach().to(dtype).contiguous() for target, source in plan
    }
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {
        "eos_token": EOS,
        "pad_token": EOS,
        "mask_token": MASK,
        "unk_token": UNKNOWN,
        "additional_special_tokens": [EOT, USER, ASSISTANT],
        "chat_template": TEMPLATE,
    }
    for name, values in (("config.json", settings), ("tokenizer_config.json", roles)):
        (folder / name).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
