"""Kernels that compute the statistics: the fastest usable and correct one, or a chosen one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from typing import Protocol, cast

import torch

from unmask.errors import UnknownName, UnmaskError
from unmask.kernels.check import FEW, MANY, disagreement
from unmask.kernels.common import ReduceInput, Stats, Unavailable

AUTO = "auto"
MODULES = {"torch": "reference", "native": "native", "compile": "compiled", "triton": "cuda"}
FASTEST = {"cpu": "native", "cuda": "triton"}  # `auto` tries these before plain PyTorch

_chosen = [AUTO]  # set by `use`
_broken: dict[str, str] = {}  # kernels that failed or disagreed, and how


class Kernel(Protocol):
    """The functions of a kernel's module."""

    def prepare(self) -> torch.device | None:
        """Raise `Unavailable` with the reason, or return the device to check it on, if any."""

    def serves(self, rows: ReduceInput) -> bool:
        """Whether the kernel can read these tensors."""

    def reduce_rows(self, rows: ReduceInput) -> Stats:
        """Statistics of N rows."""


def use(name: str) -> AbstractContextManager[None]:
    """Choose the kernel from now on: `auto`, `torch`, `native`, `compile` or `triton`.

    As a context manager, until the end of the block. Plain PyTorch reduces the tensors that the
    kernel cannot read (float64, another device). It also computes `js` and `tv`: their first term
    needs the sums of both rows, and the other kernels read a row only once.
    """
    if name not in (AUTO, *MODULES):
        raise UnknownName("kernel", name, (AUTO, *MODULES))
    if name != AUTO and (reason := missing(name)):
        raise UnmaskError(f"the kernel {name!r} cannot be used here: {reason}")
    before, _chosen[0] = _chosen[0], name
    return _until_the_end(before)


def backend(device: str = "cpu") -> str:
    """The name of the kernel for float32, bfloat16 and float16 logits on a device."""
    return _serving(ReduceInput(torch.empty((0, 1), device=device)))


def backends() -> dict[str, str | None]:
    """Every kernel, and why it cannot be used here: None where it can."""
    return {name: missing(name) for name in MODULES}


def reduce_rows(rows: ReduceInput) -> Stats:
    """Statistics of N rows, by the first kernel that can read them."""
    width = rows.now.shape[-1]
    if rows.past is not None and rows.past.shape[-1] != width:
        raise ValueError(
            f"rows of {width} tokens cannot be compared with rows of {rows.past.shape[-1]}"
        )
    name = _serving(rows)
    if name == "torch" or _chosen[0] != AUTO:
        return kernel(name).reduce_rows(rows)
    try:
        return kernel(name).reduce_rows(rows)
    except Exception as error:  # such as a compiler's; plain PyTorch does the same work
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        _give_up(name, f"it fails: {reason}")
        return kernel("torch").reduce_rows(rows)


def is_broken(name: str) -> bool:
    """Whether a kernel is there but fails or gives wrong results."""
    missing(name)
    return name in _broken


@cache
def missing(name: str) -> str | None:
    """Why a kernel cannot be used here; it is loaded and compared with plain PyTorch once."""
    try:
        device = kernel(name).prepare()
    except Unavailable as error:
        return str(error)
    if device is None:
        return None
    for vocabulary in (FEW,) if device.type == "cpu" else (FEW, MANY):
        reason = disagreement(kernel(name).reduce_rows, device, vocabulary)
        if reason is not None:
            _give_up(name, reason)
            return reason
    return None


def _give_up(name: str, reason: str) -> None:
    """Use plain PyTorch from now on, and say so once."""
    _broken[name] = reason
    warnings.warn(
        f"the kernel {name!r} is not used: {reason}; plain PyTorch does its work, slower; "
        "see 'unmask doctor'",
        RuntimeWarning,
        stacklevel=3,
    )


def _serving(rows: ReduceInput) -> str:
    name = FASTEST.get(rows.now.device.type, "torch") if _chosen[0] == AUTO else _chosen[0]
    ready = missing(name) is None and name not in _broken and kernel(name).serves(rows)
    return name if ready else "torch"


@cache
def kernel(name: str) -> Kernel:
    """The module of a kernel; raises `Unavailable` if it needs what is not installed."""
    try:
        return cast(Kernel, import_module(f"unmask.kernels.{MODULES[name]}"))
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed") from error


@contextmanager
def _until_the_end(before: str) -> Iterator[None]:
    try:
        yield
    finally:
        _chosen[0] = before
