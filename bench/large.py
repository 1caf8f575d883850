"""A checkpoint of LLaDA-8B's shape with random weights, loaded in few bits: memory and time.

    python -m bench.large FOLDER [--quantize int8] [--layers 32]

Writes the checkpoint to FOLDER (16 GB with all 32 layers), loads it, decodes a block of 32 tokens
in four forwards, prints the figures as JSON, and deletes the checkpoint.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from time import perf_counter

import torch
from safetensors.torch import save_file
from torch import Tensor

from bench.common import LLADA_EOS, LLADA_MASK, LLADA_VOCABULARY, status
from unmask import decode
from unmask.embedded import FOLDER
from unmask.models.load import load

HIDDEN, HEADS, MLP = 4096, 32, 12288
LAYERS_IN_A_FILE = 6
RULE, LENGTH, PROMPT = "confidence | top(8)", 32, 16
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")  # of the embedded model: any will do


def write(folder: Path, layers: int) -> int:
    """Write the checkpoint; returns its bytes. One block of noise is used again and again."""
    folder.mkdir(parents=True)
    noise = (torch.randn(1 << 22, generator=torch.Generator().manual_seed(0)) * 0.02).bfloat16()
    files: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, shape in _shapes(layers):
        number = int(name.split(".")[3]) // LAYERS_IN_A_FILE if ".blocks." in name else 0
        files.setdefault(f"model-{number:05d}.safetensors", {})[name] = shape
    for file, shapes in files.items():
        save_file({name: _tensor(noise, shape) for name, shape in shapes.items()}, folder / file)
    where = {name: file for file, shapes in files.items() for name in shapes}
    index = {"weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(_config(layers)))
    for name in TOKENIZER:
        shutil.copy(FOLDER / name, folder / name)
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def _config(layers: int) -> dict[str, object]:
    return {
        "architectures": ["LLaDAModelLM"],
        "d_model": HIDDEN,
        "n_layers": layers,
        "n_heads": HEADS,
        "n_kv_heads": HEADS,
        "mlp_hidden_size": MLP,
        "embedding_size": LLADA_VOCABULARY,
        "vocab_size": LLADA_VOCABULARY,
        "rope_theta": 500000.0,
        "weight_tying": False,
        "max_sequence_length": 4096,
        "mask_token_id": LLADA_MASK,
        "eos_token_id": LLADA_EOS,
    }


def _shapes(layers: int) -> list[tuple[str, tuple[int, ...]]]:
    top, square = "model.transformer.", (HIDDEN, HIDDEN)
    shapes: list[tuple[str, tuple[int, ...]]] = [
        (f"{top}wte.weight", (LLADA_VOCABULARY, HIDDEN)),
        (f"{top}ln_f.weight", (HIDDEN,)),
        (f"{top}ff_out.weight", (LLADA_VOCABULARY, HIDDEN)),
    ]
    parts: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("q_proj", "k_proj", "v_proj", "attn_out"), square),
        **dict.fromkeys(("attn_norm", "ff_norm"), (HIDDEN,)),
        **dict.fromkeys(("ff_proj", "up_proj"), (MLP, HIDDEN)),
        "ff_out": (HIDDEN, MLP),
    }
    for layer in range(layers):
        shapes += [(f"{top}blocks.{layer}.{part}.weight", shape) for part, shape in parts.items()]
    return shapes


def _tensor(noise: Tensor, shape: tuple[int, ...]) -> Tensor:
    if len(shape) == 1:
        return torch.ones(shape, dtype=torch.bfloat16)
    count = shape[0] * shape[1]
    return noise.repeat(-(-count // len(noise)))[:count].view(shape)


def measured(folder: Path, quantize: str | None) -> dict[str, float]:
    """Load and decode in this process; sizes in gigabytes."""
    before, begin = status("VmRSS"), perf_counter()
    model = load(folder, device="cpu", quantize=quantize).model
    loaded = perf_counter() - begin
    kept, peak = status("RssAnon"), status("VmHWM")
    begin = perf_counter()
    result = decode(model, list(range(1000, 1000 + PROMPT)), RULE, length=LENGTH)
    return {
        "load_seconds": loaded,
        "weights_gb": kept / 1e9,
        "load_peak_gb": (peak - before) / 1e9,
        "peak_gb": (status("VmHWM") - before) / 1e9,
        "forwards": result.nfe,
        "forward_seconds": (perf_counter() - begin) / result.nfe,
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    """Write, measure, delete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quantize", default="int8")
    parser.add_argument("--layers", type=int, default=32)
    options = parser.parse_args()
    try:
        size = write(options.folder, options.layers)
        figures = {"file_gb": size / 1e9, **measured(options.folder, options.quantize)}
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
