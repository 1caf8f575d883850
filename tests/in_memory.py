"""Models as a user of transformers has them in memory: released class names and configs."""

from __future__ import annotations

import json
from typing import Any

import torch

from tests.paths import ROOT
from unmask.models.via_transformers import load_carrier

GOLDEN = ROOT / "tests" / "golden" / "models"
KINDS = {"llada-tiny": "LLaDAModelLM", "dream-tiny": "DreamModel", "sdar-tiny": "SDARForCausalLM"}


def model_in_memory(name: str) -> Any:
    """A released checkpoint under its own class name, computed by the carrier of transformers.

    The class and config are those that the code beside the released weights has; the tests have
    no such code. It sees all positions, or those that a 4D mask lets it see.
    """
    from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel

    class Config(PretrainedConfig):  # type: ignore[misc]
        model_type = "in-memory"

    def init(self: Any, config: Any) -> None:
        PreTrainedModel.__init__(self, config)
        self.carrier = load_carrier(GOLDEN / name, dtype=torch.float32)[0].model

    def forward(self: Any, input_ids: Any, attention_mask: Any = None, **_: Any) -> Any:
        if attention_mask is None:
            rows, length = input_ids.shape
            attention_mask = torch.zeros(rows, 1, length, length)
        return self.carrier(input_ids, attention_mask=attention_mask, use_cache=False)

    body = {"config_class": Config, "__init__": init, "forward": forward, "__module__": __name__}
    kind = type(KINDS[name], (PreTrainedModel, GenerationMixin), body)
    values = json.loads((GOLDEN / name / "config.json").read_text())
    kept = {key: values[key] for key in values if key not in ("auto_map", "model_type")}
    return kind(Config(**kept)).eval()


def tokenizer_in_memory(name: str) -> Any:
    """transformers' own tokenizer of that checkpoint."""
    import transformers

    kind = "Qwen2Tokenizer" if name.startswith("dream") else "PreTrainedTokenizerFast"
    return getattr(transformers, kind).from_pretrained(GOLDEN / name)
