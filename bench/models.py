"""Head on the active rows only, against logits of the whole canvas: time and memory in one run.

    python -m bench.models [--layers 8] [--hidden 512] [--length 128] [--json]

A LLaDA-shaped random model with the real vocabulary decodes the same tokens twice: by unmask, and
by a loop written as Fast-dLLM's is: logits and a float64 softmax of every position, every step.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch
from torch import Tensor

import unmask
from bench.common import PeakMemory, in_fresh_process, llada_shaped
from unmask.models.pretrained import Pretrained

PROMPT = list(range(1000, 1064))


def ours(model: Pretrained, length: int, block: int, steps: int) -> Tensor:
    """unmask: the head runs on the masked positions of the open block."""
    rule = f"confidence | static({steps})"
    return unmask.decode(model, PROMPT, rule, length=length, block=block).canvas


@torch.no_grad()
def whole_canvas(model: Pretrained, length: int, block: int, steps: int) -> Tensor:
    """LLaDA's timetable over logits and a softmax of the whole canvas, as public code has it."""
    mask_id = model.spec.mask_id
    x = torch.tensor([PROMPT + [mask_id] * length])
    blocks = length // block
    per_step = block // (steps // blocks)
    for number in range(blocks):
        end = len(PROMPT) + (number + 1) * block
        for _ in range(steps // blocks):
            logits = model.module.logits(model.module(x))  # [1, L, V]
            logits[..., mask_id] = -torch.inf
            token = logits.argmax(-1)
            p = logits.double().softmax(-1)
            confidence = p.gather(-1, token[..., None])[..., 0]
            confidence[x != mask_id] = -torch.inf
            confidence[:, end:] = -torch.inf
            chosen = confidence[0].topk(per_step).indices
            x[0, chosen] = token[0, chosen]
    return x[0]


METHODS = {"whole canvas": whole_canvas, "unmask": ours}


def measure(name: str, layers: int, hidden: int, length: int, block: int, steps: int) -> Any:
    """Seconds, extra memory and tokens of one method, in this process."""
    torch.set_num_threads(1)
    model = llada_shaped(layers, hidden)
    METHODS[name](model, block, block, 1)  # warm
    begin = time.perf_counter()
    with PeakMemory() as memory:
        tokens = METHODS[name](model, length, block, steps)
    return time.perf_counter() - begin, memory.extra, tokens.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    shape = (a.layers, a.hidden, a.length, a.block, a.steps)
    found = {name: in_fresh_process(measure, name, *shape) for name in METHODS}
    same = found["unmask"][2] == found["whole canvas"][2]
    rows = {name: {"seconds": s, "extra_bytes": m} for name, (s, m, _) in found.items()}
    faster = rows["whole canvas"]["seconds"] / rows["unmask"]["seconds"]
    leaner = rows["whole canvas"]["extra_bytes"] / max(1, rows["unmask"]["extra_bytes"])
    if a.json:
        ratio = {"faster": faster, "leaner": leaner, "same_tokens": same}
        print(json.dumps({"shape": shape, "results": rows, **ratio}, indent=2))
        return
    print(f"{a.layers} layers, d = {a.hidden}, V = 126464, prompt 64 + {a.length}, block {a.block}")
    print("method         seconds  extra MB")
    for name, row in rows.items():
        print(f"{name:<13}  {row['seconds']:7.2f}  {row['extra_bytes'] / 1e6:8.0f}")
    print(
        f"unmask is {faster:.1f}x faster with {leaner:.1f}x less extra memory; same tokens: {same}"
    )


if __name__ == "__main__":
    main()
