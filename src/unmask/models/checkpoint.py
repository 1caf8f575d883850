"""Reads the tensors of a checkpoint folder, one safetensors file at a time."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from unmask.errors import ModelError
from unmask.models.family import Target, TensorSource
from unmask.models.layers import ConvertedLinear
from unmask.models.untrusted import read_text

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
STORED = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}
KEPT_IN_FLOAT32 = "mlp.bias"  # of a router, which decides by small differences
# Buffers that old savers left behind: frequencies, and GPT-2's causal masks.
IGNORED = ("rotary_emb.inv_freq", "rotary_pos_emb.inv_freq", ".attn.bias", ".attn.masked_bias")


class Checkpoint:
    """The tensors of a folder, and the file of each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = dict(self._locate())

    def _locate(self) -> Iterator[tuple[str, Path]]:
        """The name and file of every tensor."""
        single, index = self.folder / SINGLE, self.folder / INDEX
        if index.is_file():
            where = read_json(index).get("weight_map")
            if not isinstance(where, dict):
                raise ModelError(f"{index}: the key 'weight_map' is missing")
            for file in where.values():
                if not isinstance(file, str) or Path(file).name != file:
                    raise ModelError(
                        f"{index} must name files of its own folder, got {file!r:.100}"
                    )
            for file in sorted(set(where.values())):
                if not (self.folder / file).is_file():
                    raise ModelError(f"{index} names {file!r}, which is not in {self.folder}")
            yield from ((name, self.folder / file) for name, file in where.items())
        elif single.is_file():
            with open_file(single) as tensors:
                yield from ((name, single) for name in tensors.keys())  # noqa: SIM118
        else:
            others = [file.name for file in sorted(self.folder.glob("*.bin"))]
            hint = f"; {others[0]} must be converted to safetensors first" if others else ""
            raise ModelError(f"{self.folder} holds neither {SINGLE} nor {INDEX}{hint}")

    def resolve(self, name: str) -> str:
        """The stored name of a tensor: with or without the leading `model.`."""
        for spelled in (name, name.removeprefix("model."), f"model.{name}"):
            if spelled in self.files:
                return spelled
        near = get_close_matches(name, self.files, n=1)
        hint = f"; the nearest is {near[0]!r}" if near else ""
        raise ModelError(f"{self.folder}: the tensor {name!r} is missing{hint}")

    def stored_dtype(self, name: str) -> torch.dtype:
        """The dtype in which a tensor is stored."""
        stored = self.resolve(name)
        file = self.files[stored]
        try:
            with open_file(file) as tensors:
                return _dtype_of(tensors.get_slice(stored), file, stored)
        except SafetensorError as error:
            raise ModelError(f"{file}: cannot read {stored!r} ({error}); fetch it again") from None

    def fill(
        self,
        module: nn.Module,
        plan: Iterable[tuple[Target, TensorSource]],
        dtype: torch.dtype,
        device_of: dict[str, torch.device],
        spare: frozenset[str] = frozenset(),
    ) -> None:
        """Load every parameter of a module on the meta device, one file at a time.

        A tensor that keeps its dtype on the CPU stays mapped to its file. Others are copied one
        at a time, so memory holds the weights and one more tensor. If some are converted, each as
        soon as it is read, the others are copied too: one that stays mapped would keep all of its
        file in memory. A `spare` tensor may be in the files; it is not read.
        """
        jobs: dict[Path, list[tuple[Target, TensorSource, str]]] = defaultdict(list)
        for target, source in plan:
            stored = self.resolve(source.name)
            jobs[self.files[stored]].append((target, source, stored))
        self._check_all_used({stored for work in jobs.values() for *_, stored in work} | spare)
        shapes = {name: p.shape for name, p in module.named_parameters()}
        converted = {
            f"{name}.weight": part
            for name, part in module.named_modules()
            if isinstance(part, ConvertedLinear)
        }
        for file in sorted(jobs):
            with open_file(file) as tensors:
                for target, source, stored in jobs[file]:
                    value = self._read(tensors, file, stored, source, target, shapes[target.name])
                    kept = target.name.endswith(KEPT_IN_FLOAT32)
                    wanted = torch.float32 if kept else dtype
                    device = device_of[target.name]
                    if target.name in converted:
                        converted[target.name].convert(value.to(device))
                        continue
                    value = value.to(wanted, copy=True) if converted else value
                    _place(module, target, value, wanted, device, shapes)

    def _read(
        self,
        tensors: Any,
        file: Path,
        stored: str,
        source: TensorSource,
        target: Target,
        shape: torch.Size,
    ) -> Tensor:
        """Read one tensor and check its shape."""
        try:
            piece, rows = tensors.get_slice(stored), source.rows
            expected = [*shape] if target.index is None else [*shape[1:]]
            if source.height is not None:
                expected[0] = source.height
            if source.transposed:
                expected.reverse()
            _dtype_of(piece, file, stored)
            if list(piece.get_shape()) != expected:
                raise ModelError(
                    f"{file}: the tensor {stored!r} has shape {tuple(piece.get_shape())}, "
                    f"config.json asks for {tuple(expected)}"
                )
            value: Tensor = tensors.get_tensor(stored) if rows is None else piece[slice(*rows)]
            return value.T.contiguous() if source.transposed else value
        except SafetensorError as error:
            raise ModelError(f"{file}: cannot read {stored!r} ({error}); fetch it again") from None

    def _check_all_used(self, used: set[str]) -> None:
        extra = [name for name in self.files if name not in used and not name.endswith(IGNORED)]
        if extra:
            more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
            raise ModelError(
                f"{self.files[extra[0]]}: the tensor {extra[0]!r}{more} has no place in the model "
                "that config.json describes"
            )


def _dtype_of(piece: Any, file: Path, stored: str) -> torch.dtype:
    """The dtype of a tensor in a file; raises if it holds codes, which need scales."""
    name = piece.get_dtype()
    if name not in STORED:
        raise ModelError(f"{file}: {stored!r} holds {name}; weights are numbers of 16 bits or more")
    dtype: torch.dtype = getattr(torch, STORED[name])
    return dtype


def _place(
    module: nn.Module,
    target: Target,
    value: Tensor,
    dtype: torch.dtype,
    device: torch.device,
    shapes: dict[str, torch.Size],
) -> None:
    """Write a tensor into a parameter, or into one slice of it."""
    owner, _, leaf = target.name.rpartition(".")
    parent = module.get_submodule(owner)
    value = value.to(device=device, dtype=dtype)
    if target.index is None:
        setattr(parent, leaf, nn.Parameter(value, requires_grad=False))
        return
    whole = getattr(parent, leaf)
    if whole.is_meta:
        whole = torch.empty(shapes[target.name], dtype=dtype, device=device)
        setattr(parent, leaf, nn.Parameter(whole, requires_grad=False))
    getattr(parent, leaf).data[target.index] = value


def open_file(file: Path) -> Any:
    """Open and map a safetensors file; the error for a broken file names it."""
    try:
        return safe_open(file, framework="pt")
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{file}: not a whole safetensors file ({error}); fetch it again"
        ) from None


def read_optional(file: Path) -> dict[str, Any]:
    """Read a JSON object; empty without the file. A link to nowhere is a broken file, not none."""
    return read_json(file) if os.path.lexists(file) else {}


def read_json(file: Path) -> dict[str, Any]:
    """Read a JSON object; the error for a missing or broken file names it."""
    if not file.is_file():
        raise ModelError(f"{file} is missing; give the folder of a released checkpoint")
    try:
        value = json.loads(read_text(file, kind=ModelError))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{file} must hold an object, got {type(value).__name__}")
    return value
