"""unmask: decoding rules for masked diffusion language models.

Names are imported when they are first used, so that `unmask --help` answers without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmask.decoding.api import decode, decode_many, infill
    from unmask.decoding.loop import Batch, decode_steps
    from unmask.decoding.options import DecodingOptions
    from unmask.decoding.request import Request, Settings, infill_request, prompt_request
    from unmask.decoding.results import Result, Step
    from unmask.decoding.sampling import Sampling
    from unmask.errors import (
        LabError,
        ModelError,
        RequestError,
        RuleError,
        UnknownName,
        UnmaskError,
    )
    from unmask.lab.compare import compare
    from unmask.lab.rule_comparison import RuleComparison
    from unmask.models.caches import Cached
    from unmask.models.denoiser import Canvas, Denoiser, Hidden, ModelSpec
    from unmask.models.function import from_function
    from unmask.models.load import Loaded, load
    from unmask.models.tokenizer import Tokenizer
    from unmask.models.transformers_model import wrap
    from unmask.models.wrappers.guided import Guided
    from unmask.rules.registry import modulator, score, selection
    from unmask.rules.rule import Decision, Rule
    from unmask.rules.select import best_first, first_in
    from unmask.rules.view import Needs, Scores, View
    from unmask.text.answers import Answer
    from unmask.text.session import Session
    from unmask.text.stream import Snapshot

__version__ = "0.2.0"

__all__ = [
    "Answer",
    "Batch",
    "Cached",
    "Canvas",
    "Decision",
    "DecodingOptions",
    "Denoiser",
    "Guided",
    "Hidden",
    "LabError",
    "Loaded",
    "ModelError",
    "ModelSpec",
    "Needs",
    "Request",
    "RequestError",
    "Result",
    "Rule",
    "RuleComparison",
    "RuleError",
    "Sampling",
    "Scores",
    "Session",
    "Settings",
    "Snapshot",
    "Step",
    "Tokenizer",
    "UnknownName",
    "UnmaskError",
    "View",
    "__version__",
    "best_first",
    "compare",
    "decode",
    "decode_many",
    "decode_steps",
    "first_in",
    "from_function",
    "infill",
    "infill_request",
    "load",
    "modulator",
    "prompt_request",
    "score",
    "selection",
    "wrap",
]

_HOMES = {
    "decoding.api": ("decode", "decode_many", "infill"),
    "decoding.loop": ("Batch", "decode_steps"),
    "decoding.options": ("DecodingOptions",),
    "decoding.request": ("Request", "Settings", "infill_request", "prompt_request"),
    "decoding.results": ("Result", "Step"),
    "decoding.sampling": ("Sampling",),
    "errors": ("LabError", "ModelError", "RequestError", "RuleError", "UnknownName", "UnmaskError"),
    "lab.compare": ("compare",),
    "lab.rule_comparison": ("RuleComparison",),
    "models.caches": ("Cached",),
    "models.denoiser": ("Canvas", "Denoiser", "Hidden", "ModelSpec"),
    "models.function": ("from_function",),
    "models.load": ("Loaded", "load"),
    "models.tokenizer": ("Tokenizer",),
    "models.transformers_model": ("wrap",),
    "models.wrappers.guided": ("Guided",),
    "rules.registry": ("modulator", "score", "selection"),
    "rules.rule": ("Decision", "Rule"),
    "rules.select": ("best_first", "first_in"),
    "rules.view": ("Needs", "Scores", "View"),
    "text.answers": ("Answer",),
    "text.session": ("Session",),
    "text.stream": ("Snapshot",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unmask' has no attribute {name!r}")
    value = getattr(import_module(f"unmask.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
