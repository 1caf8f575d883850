"""Kernels that compute the statistics: the fastest usable and correct one, or a chosen one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import import_module
from typing import Protocol, cast

import torch

from unmask.errors import UnknownName, UnmaskError
from unmask.kernels.check import disagreement
from unmask.kernels.common import ReduceInput, Stats, Unavailable

AUTO = "auto"
MODULES = {"torch": "reference", "native": "native", "compile": "compiled", "triton": "cuda"}
FASTEST = {"cpu": "native", "cuda": "triton"}  # `auto` tries these before plain PyTorch

_chosen = [AUTO]  # set by `use`


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
    kernel cannot read (float64, another device), and computes `js` and `tv`: both need the sums of
    two rows before their first term, which no kernel has that reads a row once.
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
    return _module(_serving(rows)).reduce_rows(rows)


@cache
def missing(name: str) -> str | None:
    """Why a kernel cannot be used here; it is loaded and compared with plain PyTorch once."""
    try:
        device = _module(name).prepare()
    except Unavailable as reason:
        return str(reason)
    return None if device is None else disagreement(_module(name).reduce_rows, device)


def _serving(rows: ReduceInput) -> str:
    name = FASTEST.get(rows.now.device.type, "torch") if _chosen[0] == AUTO else _chosen[0]
    ready = missing(name) is None and _module(name).serves(rows)
    return name if ready else "torch"


def _module(name: str) -> Kernel:
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
