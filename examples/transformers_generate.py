"""Generates with a transformers model in memory and a rule of unmask, and shows the drafts.

    python examples/transformers_generate.py "Ann has 12 pens. She loses 5. How many now?"

--model is the folder or hub id of a LLaDA, Dream or SDAR checkpoint, which is loaded into
transformers' Llama, Qwen2 or Qwen3 (default: the small model in the package).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import AutoTokenizer, TextDiffusionStreamer

from unmask.integrations.transformers.custom_generate import write
from unmask.models.load import find_folder
from unmask.models.via_transformers import load_carrier


def main() -> None:
    """Load a model, export a rule, and generate with it."""
    arguments = _arguments()
    folder = find_folder(arguments.model)
    hosted, _ = load_carrier(folder)  # hosted.model is the transformers model
    tokenizer = AutoTokenizer.from_pretrained(folder, config=hosted.model.config)
    chat = [{"role": "user", "content": arguments.prompt}]
    inputs = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    with TemporaryDirectory() as scratch:
        # The class of transformers does not know these values of the weights that it carries.
        model = {"mask_id": hosted.spec.mask_id, "shift": hosted.shift}
        if hosted.spec.block is not None:
            model["attention_block"] = hosted.spec.block
        write(Path(scratch), {"rule": arguments.rule, **model})
        output = hosted.model.generate(
            **inputs,
            custom_generate=scratch,
            trust_remote_code=True,  # the folder above
            max_new_tokens=arguments.length,
            eos_token_id=list(hosted.spec.stop_ids),
            streamer=TextDiffusionStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True),
            return_dict_in_generate=True,
        )
    print(f"{int(output.nfe)} forwards, {float(output.tokens_per_forward):.2f} tokens each")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--rule", default="confidence | swd(5) | eb(0.1)")
    parser.add_argument("--length", type=int, default=48)
    return parser.parse_args()


if __name__ == "__main__":
    main()
