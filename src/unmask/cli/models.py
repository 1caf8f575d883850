"""`unmask models`: the families that can be loaded, or what a folder would be loaded as."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmask.models.architecture import Architecture

# The least that every family's config must say, to ask a family how it attends by default.
_SMALLEST = {
    "vocab_size": 2,
    "rope_theta": 10000.0,
    **dict.fromkeys(("d_model", "n_heads", "n_layers"), 2),
    **dict.fromkeys(("hidden_size", "num_attention_heads", "num_hidden_layers"), 2),
    **dict.fromkeys(("intermediate_size", "head_dim"), 2),
    **dict.fromkeys(("num_experts", "num_experts_per_tok"), 2),
    **dict.fromkeys(("expert_intermediate_size", "moe_intermediate_size"), 2),
}


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "models",
        help="list the model families, or tell what a checkpoint folder would be loaded as",
        description="Without PATH: the families of checkpoints that can be loaded. With PATH: "
        "what that folder would be loaded as, read from its config, its tokenizer and the headers "
        "of its weights; the weights themselves are not read.",
    )
    command.add_argument(
        "path", nargs="?", metavar="PATH", help="the folder of a checkpoint, or embedded"
    )
    command.add_argument("--mask-id", type=int, metavar="ID", help="as for 'unmask run'")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List the families or describe a folder."""
    if arguments.path is None:
        found: Any = list(_families())
        lines = _families_as_text(found)
    else:
        found = _described(arguments.path, arguments.mask_id)
        lines = _described_as_text(found)
    print(json.dumps(found, indent=2) if arguments.json else "\n".join(lines))
    return 0


def _families() -> Iterator[dict[str, Any]]:
    from unmask.models.config import Config
    from unmask.models.families import FAMILIES

    for family in FAMILIES:
        arch = family.read(Config(dict(_SMALLEST), family.name))
        yield {
            "family": family.name,
            "architectures": list(family.architectures),
            "examples": family.examples,
            **_attention(arch),
            "mask_id": family.mask_id,
            "mixture_of_experts": arch.experts is not None,
        }


def _attention(arch: Architecture) -> dict[str, Any]:
    return {
        "attention": "full" if arch.block is None else "block-causal",
        "block": arch.block,
        "shift": arch.shift,
    }


def _families_as_text(families: list[dict[str, Any]]) -> Iterator[str]:
    yield "Families of checkpoints; 'unmask models PATH' tells more about a folder."
    for family in families:
        yield f"\n{family['family']}"
        yield f"  architectures  {', '.join(family['architectures'])}"
        yield textwrap.fill(
            family["examples"], 96, initial_indent="  examples       ", subsequent_indent=" " * 17
        )
        yield f"  attention      {_attention_in_words(family, ' by default')}"
        yield f"  mask id        {family['mask_id']} where neither config nor tokenizer names one"


def _attention_in_words(found: dict[str, Any], when: str = "") -> str:
    words = str(found["attention"])
    if found["block"] is not None:
        words += f" in blocks of {found['block']}{when}"
    return words + (", the output at i - 1 predicts token i" if found["shift"] else "")


def _described(path: str, mask_id: int | None) -> dict[str, Any]:
    from unmask.models.describe import describe, require_folder, weights

    shape = describe(require_folder(path), mask_id)
    arch, spec, tokenizer, stored = shape.arch, shape.spec, shape.tokenizer, weights(shape)
    return {
        "folder": str(shape.folder),
        "family": shape.family.name,
        "layers": arch.layers,
        "hidden": arch.hidden,
        "heads": arch.heads,
        "kv_heads": arch.kv_heads,
        "experts": arch.experts.count if arch.experts else None,
        "experts_per_token": arch.experts.top_k if arch.experts else None,
        "vocab_size": arch.vocab_size,
        "parameters": stored.parameters,
        "active_parameters": stored.active,
        "dtypes": list(stored.dtypes),
        "files": [file.name for file in stored.files],
        "size": stored.size,
        "memory": {"bfloat16": stored.memory(2), "float32": stored.memory(4)},
        **_attention(arch),
        "mask_id": spec.mask_id,
        "mask_token": tokenizer.engine.id_to_token(spec.mask_id),
        "mask_from": shape.mask_from,
        "eos_id": spec.eos_id,
        "stop_ids": list(spec.stop_ids),
        "stop_tokens": [tokenizer.engine.id_to_token(token) for token in spec.stop_ids],
        "tokenizer": type(tokenizer.engine.model).__name__,
        "tokenizer_size": tokenizer.size,
        "chat_template": tokenizer.template is not None,
    }


def _described_as_text(found: dict[str, Any]) -> Iterator[str]:
    files, memory = found["files"], found["memory"]
    stops = zip(found["stop_ids"], found["stop_tokens"], strict=True)
    rows = {
        "folder": found["folder"],
        "family": found["family"],
        "layers": f"{found['layers']}, hidden size {found['hidden']}",
        "heads": f"{found['heads']}, {found['kv_heads']} for keys and values",
        "experts": f"{found['experts']}, {found['experts_per_token']} for each token",
        "attention": _attention_in_words(found),
        "vocabulary": f"{found['vocab_size']:,} rows, {found['tokenizer_size']:,} of them tokens",
        "parameters": _parameters_in_words(found),
        "stored": f"{', '.join(found['dtypes'])}; {_size(found['size'])} in {_files(files)}",
        "memory": f"{_size(memory['bfloat16'])} in bfloat16, {_size(memory['float32'])} in float32",
        "mask": f"{found['mask_id']} {found['mask_token']} (from {_ORIGINS[found['mask_from']]})",
        "EOS": f"{found['eos_id']}; these end a text: "
        + ", ".join(f"{number} {token}" for number, token in stops),
        "tokenizer": f"{found['tokenizer']}, "
        + ("with a chat template" if found["chat_template"] else "no chat template"),
    }
    if found["experts"] is None:
        del rows["experts"]
    for name, value in rows.items():
        yield f"{name:<11} {value}"


_ORIGINS = {
    "user": "--mask-id",
    "config": "config.json",
    "tokenizer": "the tokenizer",
    "family": "the family's default",
}


def _parameters_in_words(found: dict[str, Any]) -> str:
    total, active = found["parameters"], found["active_parameters"]
    return f"{total:,}" + (f", {active:,} for each token" if active != total else "")


def _files(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} files, {names[0]} to {names[-1]}"


def _size(count: float) -> str:
    """Bytes in the unit that leaves one to three digits before the point."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
