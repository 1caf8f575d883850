"""What a trace costs: time on the embedded model, and bytes of a long answer.

python -m bench.trace [--json FILE] [--large]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any

import torch

from bench.common import Shape, llada_shaped
from unmask import Request, Rule, Settings, decode_steps, load, prompt_request
from unmask.embedded.tasks import TASKS
from unmask.models.denoiser import Denoiser
from unmask.models.tokenizer import Tokenizer
from unmask.trace import record

RULES = ("confidence | top(1)", "confidence | swd(5) | top(1)", "confidence | swd(5) | eb(0.1)")


def requests(tokenizer: Tokenizer, model: Denoiser, rule: str, length: int) -> list[Request]:
    """Held-out word problems."""
    problems = TASKS["words"].sample("test", 3)
    return [
        prompt_request(model.spec, tokenizer.encode(p.prompt), length, Settings(Rule.parse(rule)))
        for p in problems
    ]


def once(model: Denoiser, todo: list[Request], tokenizer: Tokenizer | None) -> float:
    """CPU seconds for all requests, one by one, with a trace where there is a tokenizer."""
    begin = process_time()
    for request in todo:
        if tokenizer is None:
            for _ in decode_steps(model, [request]):
                pass
        else:
            record(model, request, BytesIO(), tokenizer)
    return process_time() - begin


def overhead(repeats: int) -> Iterator[dict[str, Any]]:
    """Runs with and without a trace by turns; the best of each, which noise cannot make better."""
    torch.set_num_threads(1)
    model, tokenizer = load("embedded")
    for length in (24, 48):
        for rule in RULES:
            todo = requests(tokenizer, model, rule, length)
            once(model, todo, None)
            pairs = [
                (once(model, todo, None), once(model, todo, tokenizer)) for _ in range(repeats)
            ]
            plain, traced = (min(times) for times in zip(*pairs, strict=True))
            yield {
                "rule": rule,
                "length": length,
                "seconds": plain,
                "overhead": traced / plain - 1,
            }


def size(model: Denoiser, rule: str, length: int) -> dict[str, Any]:
    """Bytes of the trace of one long answer."""
    out = BytesIO()
    request = prompt_request(model.spec, [1, 2, 3], length, Settings(Rule.parse(rule)))
    result = record(model, request, out)
    return {"rule": rule, "length": length, "steps": result.nfe, "bytes": len(out.getvalue())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--large", action="store_true", help="512 x 512 with LLaDA's vocabulary")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {"overhead": [], "size": []}
    print(f"{'rule':32} {'length':>6} {'seconds':>8} {'trace adds':>10}")
    for row in overhead(options.repeats):
        results["overhead"].append(row)
        print(f"{row['rule']:32} {row['length']:6} {row['seconds']:8.3f} {row['overhead']:10.1%}")
    if options.large:
        row = size(llada_shaped(Shape(1, 64)), "confidence | swd(5) | top(1)", 512)
        results["size"].append(row)
        print(f"{row['length']} positions, {row['steps']} steps: {row['bytes'] / 1e6:.2f} MB")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
