"""Runs diffusers' LLaDA2Pipeline with its own scheduler, then with a rule of unmask.

    python examples/diffusers_pipeline.py MODEL "PROMPT" --rule "confidence | swd(1) | eb(0.1)"

MODEL is the folder or hub id of a LLaDA2 checkpoint.
"""

from __future__ import annotations

import argparse

from diffusers import BlockRefinementScheduler, LLaDA2Pipeline
from transformers import PreTrainedTokenizerFast

import unmask
from unmask.integrations.diffusers.model import PipelineModel
from unmask.integrations.diffusers.scheduler import UnmaskScheduler
from unmask.models.load import find_folder


def main() -> None:
    """Answer the same prompt with both schedulers."""
    arguments = _arguments()
    folder = find_folder(arguments.model)
    model = unmask.load(folder).model
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    theirs = BlockRefinementScheduler(block_length=model.spec.block)
    ours = UnmaskScheduler.from_config(theirs.config, rule=arguments.rule)
    for scheduler in (theirs, ours):
        forwards: list[int] = []
        pipe = LLaDA2Pipeline(PipelineModel(model), scheduler, tokenizer)
        pipe.set_progress_bar_config(disable=True)
        pipe.model.register_forward_hook(lambda *_, counted=forwards: counted.append(1))
        output = pipe(
            messages=[{"role": "user", "content": arguments.prompt}],
            gen_length=arguments.length,
            mask_token_id=model.spec.mask_id,
            editing_threshold=None,
        )
        print(f"{type(scheduler).__name__}, {len(forwards)} forwards: {output.texts[0]}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("prompt")
    parser.add_argument("--rule", default="confidence | swd(1) | eb(0.1)")
    parser.add_argument("--length", type=int, default=128)
    return parser.parse_args()


if __name__ == "__main__":
    main()
