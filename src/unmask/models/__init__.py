"""Denoisers: what the model says, behind one small interface."""

from unmask.models.base import Canvas, Denoiser, Hidden, ModelSpec
from unmask.models.function import FunctionDenoiser, from_function
from unmask.models.guided import Guided
from unmask.models.lookup import LookupDenoiser
from unmask.models.noisy import Noisy
from unmask.models.oracle import MarkovOracle, TableOracle

__all__ = [
    "Canvas",
    "Denoiser",
    "FunctionDenoiser",
    "Guided",
    "Hidden",
    "LookupDenoiser",
    "MarkovOracle",
    "ModelSpec",
    "Noisy",
    "TableOracle",
    "from_function",
]
