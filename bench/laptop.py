"""Memory and time of small public models on a CPU: their shapes, with random weights.

python -m bench.laptop SHAPE FOLDER [--length N] [--threads N]

Writes a checkpoint of that shape into FOLDER unless it is there, then loads it in another process
and answers one prompt. The text means nothing; memory and time are those of the real model.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from unmask import Session
from unmask.models.config import Config
from unmask.models.families import family_of

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
# The golden folder whose other files are used, and the sizes of the config.
SHAPES = {
    "qwen3-0.6b": ("models-2/a2d-qwen3-mdlm-tiny", (1024, 3072, 28, 16, 8, True)),
    "sdar-1.7b": ("models/sdar-tiny", (2048, 6144, 28, 16, 8, False)),
}
KEYS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "tie_word_embeddings")  # fmt: skip


def make(shape: str, folder: Path) -> None:
    """Write a checkpoint with random bfloat16 weights."""
    source, sizes = SHAPES[shape]
    ignored = shutil.ignore_patterns("golden_*", "*.safetensors*")
    shutil.copytree(GOLDEN / source, folder, ignore=ignored, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    config |= dict(zip(KEYS, sizes, strict=True)) | {"head_dim": 128, "vocab_size": 151936}
    config["layer_types"] = None
    (folder / "config.json").write_text(json.dumps(config))
    family = family_of(Config(config, str(folder)))
    arch = family.read(Config(config, str(folder)))
    with torch.device("meta"):
        places = dict(family.network(arch).named_parameters())
    torch.manual_seed(0)
    tensors = {
        source.name: (torch.randn(places[target.name].shape) * 0.02).bfloat16()
        for target, source in family.tensors(arch)
    }
    save_file(tensors, folder / "model.safetensors")


def answer(folder: Path, length: int, threads: int) -> None:
    """Answer one prompt, and print what it took."""
    torch.set_num_threads(threads)
    begun = time.perf_counter()
    session = Session(folder, rule="confidence | top(4)", length=length, device="cpu")
    session.model()
    loaded = time.perf_counter() - begun
    done = session.generate("How many apples are left?" * 4, trace=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"loaded in {loaded:.1f} s; {done.written} tokens in {done.nfe} forwards, "
        f"{done.seconds.total / done.nfe:.2f} s a forward, {threads} threads; "
        f"peak memory {peak / 1e9:.2f} GB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        answer(arguments.folder, arguments.length, arguments.threads)
        return
    if not (arguments.folder / "model.safetensors").is_file():
        make(arguments.shape, arguments.folder)
    subprocess.run([sys.executable, "-m", "bench.laptop", *sys.argv[1:], "--answer"], check=True)


if __name__ == "__main__":
    main()
