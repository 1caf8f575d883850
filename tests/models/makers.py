"""Tiny random checkpoints of all five families, in the format of the released folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import pre_tokenizers
from torch import Tensor

from tests.models.configs import (
    BOS,
    EOS,
    MASK,
    TURN,
    config_of,
    tensor_shapes,
)

MERGES = ("h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "1 2")

TURN_TOKEN = {
    "llada": "<|eot_id|>",
    "dream": "<|im_end|>",
    "llada-moe": "<|role_end|>",
    "llada2": "<|role_end|>",
    "sdar": "<|im_end|>",
}
MASK_TOKEN = {"llada": "<|mdm_mask|>", "sdar": "<|MASK|>"}
CHAT = (
    "{% for m in messages %}{{ '<|start|>' ~ m['role'] ~ ':' ~ m['content'] ~ '<|endoftext|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant:' }}{% endif %}"
)
QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def random_tensors(
    family: str, config: dict[str, Any], seed: int = 0, stored: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Random weights; attention, routers and heads are sharp, so that outputs differ clearly."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in tensor_shapes(family, config).items():
        noise = torch.randn(shape, generator=generator)
        if any(part in name for part in ("q_norm", "k_norm", "query_layernorm", "key_layernorm")):
            value = 2 + 0.5 * noise
        elif "norm" in name or "ln_f" in name:
            value = 1 + 0.3 * noise
        elif name.endswith("bias"):
            value = 0.3 * noise
        else:
            tied = config.get("weight_tying") or config.get("tie_word_embeddings")
            embeds = "embed" in name or "wte" in name
            sharp = name in ("lm_head.weight", "model.transformer.ff_out.weight")
            sharp = sharp or "mlp.gate.weight" in name or (embeds and tied)
            looks = any(part in name for part in ("q_proj", "k_proj", "query_key_value"))
            scale = 3.0 if looks or sharp else 1.0
            value = noise * scale / (1 if embeds and not tied else shape[-1] ** 0.5)
        kept = torch.float32 if name.endswith("expert_bias") else stored
        tensors[name] = value.to(kept)
    return tensors


def write_weights(folder: Path, tensors: dict[str, Tensor], shards: int = 1) -> None:
    """One file, or several with an index; tensors are distributed in turn."""
    for old in folder.glob("model*.safetensors*"):
        old.unlink()
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    where = {}
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        part = dict(list(tensors.items())[number::shards])
        save_file(part, folder / file, metadata={"format": "pt"})
        where.update(dict.fromkeys(part, file))
    total = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": where}
    write_json(folder / "model.safetensors.index.json", index)


def write_json(file: Path, content: Any) -> None:
    """Write JSON with an indent, as tools do."""
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def change_json(file: Path, **changes: Any) -> None:
    """Change keys of a file in place; a value of `...` removes the key."""
    content = json.loads(file.read_text(encoding="utf-8")) | changes
    write_json(file, {key: value for key, value in content.items() if value is not ...})


def vocabulary() -> dict[str, int]:
    """All bytes, then the results of the merges."""
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(m.replace(" ", "") for m in MERGES)]
    fill = [f"ĠfillĠ{i}" for i in range(EOS - len(tokens))]
    return {token: number for number, token in enumerate([*tokens, *fill])}


def special_tokens(family: str) -> dict[str, int]:
    """The special tokens, after the plain ones."""
    mask = MASK_TOKEN.get(family, "<|mask|>")
    return {"<|endoftext|>": EOS, "<|start|>": BOS, TURN_TOKEN[family]: TURN, mask: MASK}


def write_tokenizer(folder: Path, family: str, slow: bool = False) -> None:
    """tokenizer.json, or vocab.json with merges.txt; and tokenizer_config.json."""
    special = special_tokens(family)
    flags = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    added = [{"id": i, "content": t, "special": True, **flags} for t, i in special.items()]
    config = {
        "bos_token": "<|start|>",
        "eos_token": "<|endoftext|>",
        "additional_special_tokens": [TURN_TOKEN[family]],
        "added_tokens_decoder": {
            str(token["id"]): {key: value for key, value in token.items() if key != "id"}
            for token in added
        },
        "chat_template": CHAT,
    }
    if family != "llada":  # which has no mask token by that name
        config["mask_token"] = next(token for token, i in special.items() if i == MASK)
    write_json(folder / "tokenizer_config.json", config)
    if slow:
        write_json(folder / "vocab.json", vocabulary())
        (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES, ""]))
        return
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [
                    {
                        "type": "Split",
                        "pattern": {"Regex": QWEN_SPLIT},
                        "behavior": "Isolated",
                        "invert": False,
                    },
                    {
                        "type": "ByteLevel",
                        "add_prefix_space": False,
                        "trim_offsets": False,
                        "use_regex": False,
                    },
                ],
            },
            "post_processor": None,
            "decoder": {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": False,
                "use_regex": False,
            },
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": vocabulary(),
                "merges": list(MERGES),
            },
        },
    )


def make(
    folder: Path,
    family: str,
    *,
    seed: int = 0,
    stored: torch.dtype = torch.float32,
    shards: int = 1,
    slow_tokenizer: bool = False,
    **changes: Any,
) -> Path:
    """A whole checkpoint folder; `changes` are those of its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(family, **changes)
    write_json(folder / "config.json", config)
    if "eos_token_id" not in config:
        write_json(folder / "generation_config.json", {"eos_token_id": EOS, "pad_token_id": EOS})
    write_weights(folder, random_tensors(family, config, seed, stored), shards)
    write_tokenizer(folder, family, slow_tokenizer)
    return folder
