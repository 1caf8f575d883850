"""`unmask models`: lists public checkpoints or families, or describes a checkpoint folder."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from unmask.cli.options import add_options, examples, given_options, refuse

if TYPE_CHECKING:
    from unmask.models.architecture import Architecture

# The smallest config that every family reads, to get its default attention.
_SMALLEST = {
    "vocab_size": 2,
    "rope_theta": 10000.0,
    **dict.fromkeys(("d_model", "hidden_size"), 4),
    **dict.fromkeys(("n_heads", "n_layers"), 2),
    **dict.fromkeys(("n_embd", "n_head", "n_layer"), 2),
    **dict.fromkeys(("num_attention_heads", "num_hidden_layers"), 2),
    **dict.fromkeys(("intermediate_size", "head_dim"), 2),
    **dict.fromkeys(("num_experts", "num_experts_per_tok"), 2),
    **dict.fromkeys(("expert_intermediate_size", "moe_intermediate_size"), 2),
    **dict.fromkeys(("n_group", "topk_group", "partial_rotary_factor"), 1),
}


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    command = subparsers.add_parser(
        "models",
        help="list public checkpoints, or describe a checkpoint folder",
        description="Without PATH: lists the public checkpoints that can be loaded, those for a "
        "laptop first, with the memory of their weights. With PATH: describes the model in a "
        "folder, from its config, its tokenizer and the headers of its weights. It does not load "
        "the weights, and it downloads nothing.",
        epilog=examples("unmask models", "unmask models embedded", "unmask models FOLDER"),
    )
    option = command.add_argument
    option("path", nargs="?", metavar="PATH", help="checkpoint folder, or embedded")
    option("--families", action="store_true", help="list the families: attention, shift, mask id")
    add_options(command, ["family", "mask_id"])
    option("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List checkpoints or families, or describe a folder."""
    given = given_options(arguments)
    _check(arguments, given)
    if arguments.families:
        record: Any = list(_families())
        lines = _families_as_text(record)
    elif arguments.path is None:
        record = list(_checkpoints())
        lines = _checkpoints_as_text(record)
    else:
        record = _described(arguments.path, given.get("mask_id"), given.get("family"))
        lines = _described_as_text(record)
    print(json.dumps(record, indent=2) if arguments.json else "\n".join(lines))
    return 0


def _check(arguments: argparse.Namespace, given: dict[str, Any]) -> None:
    """Raise if an argument would not be used."""
    flag = f"--{next(iter(given), '').replace('_', '-')}"
    wrong = {
        "PATH must not be empty; give the folder of a checkpoint": arguments.path == "",
        "--families lists all families, so it takes no PATH; give one of them": (
            arguments.families and arguments.path is not None
        ),
        f"{flag} is for describing a folder; give its PATH": (
            bool(given) and arguments.path is None
        ),
    }
    refuse(wrong)


def _checkpoints() -> Iterator[dict[str, Any]]:
    from unmask.models.known import KNOWN

    for known in KNOWN:
        yield {
            "hub_id": known.hub_id,
            "family": known.family,
            "parameters": known.parameters,
            "laptop": known.laptop,
            "memory": _memory(known.memory, known.quantizable),
            "licence": known.licence,
            "note": known.note,
        }


def _memory(at: Callable[[str], int], quantizable: bool) -> dict[str, int | None]:
    """The bytes of the weights at each precision; None where it is not supported."""
    from unmask.models.memory import WIDTHS

    kept = {name: quantizable or width >= 2 for name, width in WIDTHS.items()}
    return {name: at(name) if kept[name] else None for name in WIDTHS}


def _checkpoints_as_text(checkpoints: list[dict[str, Any]]) -> Iterator[str]:
    yield "Public checkpoints, and the memory of their weights (--dtype, --quantize)."
    yield "'unmask models PATH' describes a folder, '--families' lists the families."
    width = max(len(each["hub_id"]) for each in checkpoints)
    columns = " {:>6} {:>6} {:>6} {:>6} {:>6}  {:<10} {:<15}"
    heading = columns.format("size", "fp32", "bf16", "int8", "int4", "licence", "family")
    narrow = shutil.get_terminal_size((120, 24)).columns < width + len(heading)
    width, gap = (0, "\n") if narrow else (width, "")  # there the numbers are below the name
    for laptop in (True, False):
        yield ""
        yield "for a laptop with 8 GB:" if laptop else "for a larger machine:"
        yield f"{'hub id':<{width}}{gap}{heading}".rstrip()
        for each in checkpoints:
            if each["laptop"] == laptop:
                sizes = [
                    "-" if number is None else _size(number).replace(" ", "")
                    for number in each["memory"].values()
                ]
                size, names = f"{each['parameters'] / 1e9:.3g}B", (each["licence"], each["family"])
                row = columns.format(size, *sizes, *names)
                yield f"{each['hub_id']:<{width}}{gap}{row}".rstrip()
    yield ""
    for note in dict.fromkeys(each["note"] for each in checkpoints if each["note"]):
        noted = ", ".join(each["hub_id"] for each in checkpoints if each["note"] == note)
        yield textwrap.fill(f"{note}: {noted}", 78, subsequent_indent="  ", break_on_hyphens=False)


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
        "from_prompt_end": arch.from_prompt_end,
        "shift": arch.shift,
        "local_layers": len(arch.local.layers) if arch.local else 0,
        "local_reach": arch.local.reach if arch.local else None,
    }


def _families_as_text(families: list[dict[str, Any]]) -> Iterator[str]:
    yield "Families of checkpoints; 'unmask models' lists the checkpoints."
    for family in families:
        yield f"\n{family['family']}"
        yield f"  architectures  {', '.join(family['architectures'])}"
        yield textwrap.fill(
            family["examples"], 96, initial_indent="  examples       ", subsequent_indent=" " * 17
        )
        yield f"  attention      {_attention_in_words(family, ' by default')}"
        yield f"  mask id        {family['mask_id']} where neither config nor tokenizer names one"


def _attention_in_words(record: dict[str, Any], when: str = "") -> str:
    words = str(record["attention"])
    if record["local_layers"]:
        words += ", and local layers" if when else f", but local in {record['local_layers']} of "
        words += "" if when else f"{record['layers']} layers"
        words += f" ({record['local_reach']} tokens each way{when})"
    if record["block"] is not None:
        words += f" in blocks of {record['block']}{when}"
    if record["from_prompt_end"]:
        words += ", counted from the prompt's end"
    return words + (", the output at i - 1 predicts token i" if record["shift"] else "")


def _described(path: str, mask_id: int | None, family: str | None) -> dict[str, Any]:
    from unmask.models.describe import describe, require_folder, weights

    shape = describe(require_folder(path), mask_id, family=family)
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
        "context": shape.context,
        "parameters": stored.parameters,
        "active_parameters": stored.active,
        "dtypes": list(stored.dtypes),
        "files": [file.name for file in stored.files],
        "size": stored.size,
        "memory": _memory(stored.memory, arch.experts is None),
        **_attention(arch),
        "mask_id": spec.mask_id,
        "mask_token": tokenizer.engine.id_to_token(spec.mask_id),
        "mask_from": shape.mask_from,
        "eos_id": spec.eos_id,
        "stop_ids": list(spec.stop_ids),
        "stop_tokens": [tokenizer.engine.id_to_token(token) for token in spec.stop_ids],
        "tokenizer": type(tokenizer.engine.model).__name__,
        "tokenizer_size": tokenizer.size,
        "chat_template": tokenizer.has_template(),
        "recommended": vars(spec.recommended),
    }


def _described_as_text(record: dict[str, Any]) -> Iterator[str]:
    from unmask.models.recommended import Recommendation

    files, memory, origin = record["files"], record["memory"], _ORIGINS[record["mask_from"]]
    stops = zip(record["stop_ids"], record["stop_tokens"], strict=True)
    rows = {
        "folder": record["folder"],
        "family": record["family"],
        "layers": f"{record['layers']}, hidden size {record['hidden']}",
        "heads": f"{record['heads']}, {record['kv_heads']} for keys and values",
        "experts": f"{record['experts']}, {record['experts_per_token']} for each token",
        "attention": _attention_in_words(record),
        "vocabulary": f"{record['vocab_size']:,} rows, {record['tokenizer_size']:,} of them tokens",
        "parameters": _parameters_in_words(record),
        "stored": f"{', '.join(record['dtypes'])}; {_size(record['size'])} in {_files(files)}",
        "memory": ", ".join(
            f"{_size(count)} in {name}" for name, count in memory.items() if count is not None
        ),
        "mask": f"{record['mask_id']} {record['mask_token']} (from {origin})",
        "EOS": f"{record['eos_id']}; these end a text: "
        + ", ".join(f"{number} {token}" for number, token in stops),
        "tokenizer": f"{record['tokenizer']}, "
        + ("with a chat template" if record["chat_template"] else "no chat template"),
        "rule": Recommendation(**record["recommended"]).words,
    }
    if record["experts"] is None:
        del rows["experts"]
    for name, value in rows.items():
        yield f"{name:<11} {value}"


_ORIGINS = {
    "user": "--mask-id",
    "config": "config.json",
    "tokenizer": "the tokenizer",
    "spelling": "its spelling in the tokenizer",
    "family": "the family's default",
}


def _parameters_in_words(record: dict[str, Any]) -> str:
    total, active = record["parameters"], record["active_parameters"]
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
