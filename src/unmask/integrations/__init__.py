"""Adapters that run our rules inside other programs; a folder for each host."""

from unmask.decoding.options import OPTIONS, SAMPLING

# The decoding options that a host leaves to us; this module does not import torch.
BLOCK_OPTIONS = ("rule", "eos", "steps", "history", *SAMPLING, "seed")  # sglang, vllm, diffusers
# transformers' own, about loading, which it does, for our models, or in need of our tokenizer
_GENERATE = (
    "temperature", "top_p", "top_k", "dtype", "quantize", "pack", "family", "cache",
    "template_args", "language",
)  # fmt: skip
GENERATE_OPTIONS = tuple(name for name in OPTIONS if name not in _GENERATE)
