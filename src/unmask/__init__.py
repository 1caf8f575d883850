"""unmask: decoding rules for masked diffusion language models.

Names are imported when they are first used, so that `unmask --help` answers without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmask.caches import Cached
    from unmask.errors import ModelError, RequestError, RuleError, UnknownName, UnmaskError
    from unmask.loop import Batch, decode, decode_many, decode_steps, infill
    from unmask.models import Canvas, Denoiser, Guided, Hidden, ModelSpec, from_function
    from unmask.models.hosted import wrap
    from unmask.models.load import Loaded, load
    from unmask.parts import modulator, score, selection
    from unmask.request import Request, Settings, infill_request, prompt_request
    from unmask.results import Result, Step
    from unmask.rules import Decision, Rule
    from unmask.sampling import Sampling
    from unmask.select import best_first, first_in
    from unmask.tokenizer import Tokenizer
    from unmask.view import Needs, Scores, View

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Cached",
    "Canvas",
    "Decision",
    "Denoiser",
    "Guided",
    "Hidden",
    "Loaded",
    "ModelError",
    "ModelSpec",
    "Needs",
    "Request",
    "RequestError",
    "Result",
    "Rule",
    "RuleError",
    "Sampling",
    "Scores",
    "Settings",
    "Step",
    "Tokenizer",
    "UnknownName",
    "UnmaskError",
    "View",
    "__version__",
    "best_first",
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
    "caches": ("Cached",),
    "errors": ("ModelError", "RequestError", "RuleError", "UnknownName", "UnmaskError"),
    "loop": ("Batch", "decode", "decode_many", "decode_steps", "infill"),
    "models": ("Canvas", "Denoiser", "Guided", "Hidden", "ModelSpec", "from_function"),
    "models.hosted": ("wrap",),
    "models.load": ("Loaded", "load"),
    "parts": ("modulator", "score", "selection"),
    "request": ("Request", "Settings", "infill_request", "prompt_request"),
    "results": ("Result", "Step"),
    "rules": ("Decision", "Rule"),
    "sampling": ("Sampling",),
    "select": ("best_first", "first_in"),
    "tokenizer": ("Tokenizer",),
    "view": ("Needs", "Scores", "View"),
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
