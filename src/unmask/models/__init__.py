"""Denoisers: what the model says, behind one small interface."""

from unmask.models.denoiser import Canvas, Denoiser, Hidden, ModelSpec
from unmask.models.function import FunctionDenoiser, from_function
from unmask.models.toys.lookup import LookupDenoiser
from unmask.models.toys.oracle import MarkovOracle, TableOracle
from unmask.models.wrappers.guided import Guided
from unmask.models.wrappers.noisy import Noisy

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
