"""What a step costs inside SGLang: its LowConfidence and our rules on the same logits.

    .venv-engines/bin/python -m bench.sglang [--blocks 4] [--steps 12] [--json]

The decision alone, on the CPU with one thread: blocks of LLaDA2, 32 x 157,184 float32 logits each.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch

VOCABULARY, WIDTH, MASK = 157184, 32, 156895
ALGORITHMS: list[tuple[str, dict[str, Any]]] = [
    ("LowConfidence", {"threshold": 0.95}),
    ("Unmask", {"rule": "confidence | threshold(0.95)"}),
    ("Unmask", {"rule": "confidence | eb(0.1)"}),
    ("Unmask", {"rule": "confidence | swd(5) | eb(0.1)"}),
]


def run(name: str, options: dict[str, Any], blocks: int, steps: int) -> dict[str, Any]:
    """Milliseconds of each step of fresh blocks, whose logits drift a little between steps."""
    from sglang.srt.dllm.algorithm import algo_name_to_cls
    from sglang.srt.dllm.config import DllmConfig

    config = DllmConfig(name, options, WIDTH, MASK, blocks, first_done_first_out_mode=True)
    algorithm = algo_name_to_cls[name](config)
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(blocks * WIDTH, VOCABULARY, generator=generator)
    batch = SimpleNamespace(
        batch_size=blocks,
        input_ids=torch.full((blocks * WIDTH,), MASK),
        positions=torch.arange(WIDTH).repeat(blocks),
        rids=[str(block) for block in range(blocks)],
        dllm_prompt_mask=None,
    )
    states, spent = algorithm.init_step_state(batch), []
    for _ in range(steps):
        logits += 0.05 * torch.randn(1, VOCABULARY, generator=generator)
        begin = time.perf_counter()
        with torch.inference_mode():
            algorithm.step(batch, logits, states)
        spent.append(1000 * (time.perf_counter() - begin))
    left = int((batch.input_ids == MASK).sum())
    return {"algorithm": name, **options, "least_ms": min(spent), "median_ms": median(spent),
            "masks_left": left}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
    warnings.simplefilter("ignore")
    from unmask.integrations.sglang import register

    register()
    rows = [run(name, options, a.blocks, a.steps) for name, options in ALGORITHMS]
    if a.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        what = row.get("rule", f"threshold {row.get('threshold')}")
        print(
            f"{row['algorithm']:<14} {what:<32} {row['least_ms']:7.1f} {row['median_ms']:7.1f} ms"
        )


if __name__ == "__main__":
    main()
