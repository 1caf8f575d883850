"""What a cache saves and what it changes: forwards, positions computed, time, tokens that differ.

    python -m bench.caches [--layers 8] [--hidden 512] [--length 128] [--json]

A LLaDA-shaped random model; its distributions are flatter than a trained one's, so the share of
tokens that differ is a rough guide.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch
from torch import nn

import unmask
from bench.common import Shape, llada_shaped

PROMPT = list(range(1000, 1064))
RULE = "confidence | static(32)"


def run(model: Any, module: nn.Module, length: int, block: int) -> dict[str, Any]:
    """One decode: seconds, forwards, positions computed, tokens."""
    positions = 0

    def count(_: nn.Module, inputs: tuple[Any, ...], __: Any) -> None:
        nonlocal positions
        positions += inputs[0].numel()

    hook = module.get_submodule("embed").register_forward_hook(count)
    begin = time.perf_counter()
    result = unmask.decode(model, PROMPT, RULE, length=length, block=block)
    seconds = time.perf_counter() - begin
    hook.remove()
    tokens = result.answer.tolist()
    return {"seconds": seconds, "nfe": result.nfe, "positions": positions, "tokens": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    torch.set_num_threads(1)
    plain = llada_shaped(Shape(a.layers, a.hidden))
    rows = {"none": run(plain, plain.module, a.length, a.block)}
    for name in ("prefix", "dual", "delayed"):
        rows[name] = run(unmask.Cached(plain, name), plain.module, a.length, a.block)
    exact = rows["none"]["tokens"]
    for row in rows.values():
        tokens = row.pop("tokens")
        row["differ"] = sum(x != y for x, y in zip(tokens, exact, strict=True))
    if a.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{a.layers} layers, d = {a.hidden}, V = 126464, prompt 64 + {a.length}, block {a.block}")
    print("cache    forwards  positions  seconds  speed-up  tokens that differ")
    for name, row in rows.items():
        speed = rows["none"]["seconds"] / row["seconds"]
        print(
            f"{name:<7}  {row['nfe']:8}  {row['positions']:9}  {row['seconds']:7.2f}  "
            f"{speed:7.1f}x  {row['differ']:8} of {a.length}"
        )


if __name__ == "__main__":
    main()
