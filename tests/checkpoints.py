"""Tiny random checkpoints in the files of the released models, made on the fly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from unmask.models.config import Config
from unmask.models.families import family_of
from unmask.models.transformer import Transformer

SPECIAL = (
    "<|startoftext|>",
    "<|endoftext|>",
    "<|mdm_mask|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
)
BOS, EOS, MASK, EOT = 256, 257, 258, 261  # bytes come first
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if loop.first %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' ~ m['role'] ~ '<|end_header_id|>\n\n' }}"
    "{{ m['content'] ~ '<|eot_id|>' }}{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
)
LLADA = {
    "architectures": ["LLaDAModelLM"],
    "model_type": "llada",
    "d_model": 32,
    "n_heads": 4,
    "n_kv_heads": 4,
    "n_layers": 2,
    "mlp_hidden_size": 48,
    "vocab_size": 272,
    "embedding_size": 272,
    "rope_theta": 10000.0,
    "weight_tying": False,
    "mask_token_id": MASK,
    "eos_token_id": EOS,
}
SDAR = {
    "architectures": ["SDARForCausalLM"],
    "model_type": "sdar",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 272,
    "rope_theta": 10000.0,
    "block_size": 4,
    "mask_token_id": MASK,
    "eos_token_id": EOS,
}


def make_llada(
    folder: Path, *, seed: int = 0, template: str | None = CHAT_TEMPLATE, **config_changes: Any
) -> Path:
    """A LLaDA checkpoint with full attention; a change to None takes a key out of its config."""
    return make(folder, {**LLADA, **config_changes}, seed, template)


def make_sdar(
    folder: Path, *, seed: int = 0, template: str | None = CHAT_TEMPLATE, **config_changes: Any
) -> Path:
    """An SDAR checkpoint with block-causal attention."""
    return make(folder, {**SDAR, **config_changes}, seed, template)


def make(folder: Path, config: dict[str, Any], seed: int, template: str | None) -> Path:
    """A checkpoint of any family, by its config."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in config.items() if value is not None}
    _write(folder / "config.json", kept)
    save_file(_weights(kept, seed), folder / "model.safetensors")
    _byte_tokenizer().save(str(folder / "tokenizer.json"))
    roles = {"bos_token": SPECIAL[0], "eos_token": SPECIAL[1], "pad_token": SPECIAL[1]}
    chat = {} if template is None else {"chat_template": template}
    _write(folder / "tokenizer_config.json", {**roles, **chat})
    return folder


def _weights(config: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
    """Random tensors under the names and in the shapes that the family's files have."""
    family = family_of(Config(config, "config.json"))
    arch = family.read(Config(config, "config.json"))
    with torch.device("meta"):
        shapes = {name: p.shape for name, p in Transformer(arch).named_parameters()}
    generator = torch.Generator().manual_seed(seed)
    tensors: dict[str, torch.Tensor] = {}
    for target, source in family.tensors(arch):
        shape = shapes[target.name] if target.index is None else shapes[target.name][1:]
        noise = torch.randn(shape, generator=generator)
        scale = 6.0 if target.name == "head.weight" else 1.5  # confident enough to commit several
        flat = len(shape) == 1  # a norm or a bias
        value = 1 + 0.1 * noise if flat else scale * noise / shape[-1] ** 0.5
        if source.rows is not None:  # a part of a fused tensor; the parts come in order
            value = torch.cat([tensors.get(source.name, value[:0]), value])
        tensors[source.name] = value
    return tensors


def _byte_tokenizer() -> Tokenizer:
    """One token a byte, and the special ones: any text comes back as it was."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine = Tokenizer(BPE({character: i for i, character in enumerate(alphabet)}, []))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens(list(SPECIAL))
    return engine


def _write(file: Path, values: dict[str, Any]) -> None:
    file.write_text(json.dumps(values, indent=2))
