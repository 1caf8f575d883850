"""Reads the tensors of a checkpoint folder, one safetensors file at a time."""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
STRIP = 1 << 20  # numbers of two tensors that are compared at once
KEPT_IN_FLOAT32 = "mlp.bias"  # of a router, which decides by small differences
# Buffers that old savers left behind: frequencies, and GPT-2's causal masks.
IGNORED = ("rotary_emb.inv_freq", "rotary_pos_emb.inv_freq", ".attn.bias", ".attn.masked_bias")


@dataclass(frozen=True)
class Job:
    """A parameter, the tensor that fills it, and the name under which it is stored."""

    target: Target
    source: TensorSource
    stored: str


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

    def find(self, name: str) -> str | None:
        """The stored name of a tensor, with or without the leading `model.`; None if missing."""
        spellings = (name, name.removeprefix("model."), f"model.{name}")
        return next((spelled for spelled in spellings if spelled in self.files), None)

    def resolve(self, name: str) -> str:
        """The stored name of a tensor; raises if it is missing."""
        stored = self.find(name)
        if stored is not None:
            return stored
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
            raise _unreadable(file, stored, error) from None

    def check(
        self, module: nn.Module, plan: Iterable[tuple[Target, TensorSource]], spare: str | None
    ) -> dict[Path, list[Job]]:
        """Check names, dtypes and shapes of all tensors by the headers; the work of each file.

        A `spare` tensor may be in the files, and no other may be left over.
        """
        jobs: dict[Path, list[Job]] = defaultdict(list)
        for target, source in plan:
            stored = self.resolve(source.name)
            jobs[self.files[stored]].append(Job(target, source, stored))
        used = {job.stored for work in jobs.values() for job in work}
        self._check_all_used(used if spare is None else used | {spare})
        if spare is not None:
            self.stored_dtype(spare)  # raises if the file does not hold it
        shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
        for file in sorted(jobs):
            with open_file(file) as tensors:
                for job in jobs[file]:
                    _check_header(tensors, file, job, shapes[job.target.name])
        return jobs

    def fill(
        self,
        module: nn.Module,
        plan: Iterable[tuple[Target, TensorSource]],
        dtype: torch.dtype,
        device_of: dict[str, torch.device],
        spare: str | None = None,
    ) -> None:
        """Load every parameter of a module on the meta device, one file at a time.

        A tensor that keeps its dtype on the CPU stays mapped to its file. Others are copied one
        at a time, so memory holds the weights and one more tensor. If some are converted, each as
        soon as it is read, the others are copied too: one that stays mapped would keep all of its
        file in memory. Of a `spare` tensor see `check`; it is not read.
        """
        jobs = self.check(module, plan, spare)
        shapes = {name: p.shape for name, p in module.named_parameters()}
        converted = {
            f"{name}.weight": part
            for name, part in module.named_modules()
            if isinstance(part, ConvertedLinear)
        }
        for file in sorted(jobs):
            with open_file(file) as tensors:
                for job in jobs[file]:
                    target, value = job.target, _read(tensors, file, job)
                    kept = target.name.endswith(KEPT_IN_FLOAT32)
                    wanted = torch.float32 if kept else dtype
                    device = device_of[target.name]
                    if target.name in converted:
                        converted[target.name].convert(value.to(device))
                        continue
                    value = value.to(wanted, copy=True) if converted else value
                    _place(module, target, value, wanted, device, shapes)

    def same(self, first: str, second: str) -> bool:
        """Whether two stored tensors hold the same numbers, as far as both can hold them.

        They are read a few rows at a time, up to the first that differ.
        """
        names = [self.resolve(first), self.resolve(second)]
        files = [self.files[name] for name in names]
        with open_file(files[0]) as one, open_file(files[1]) as other:
            try:
                pieces = [one.get_slice(names[0]), other.get_slice(names[1])]
                dtypes = [_dtype_of(*each) for each in zip(pieces, files, names, strict=True)]
                shapes = [list(piece.get_shape()) for piece in pieces]
                if shapes[0] != shapes[1]:
                    return False
                common = min(dtypes, key=lambda dtype: dtype.itemsize)
                if {*dtypes} == {torch.float16, torch.bfloat16}:  # neither holds the other
                    common = torch.float32
                rows = max(1, STRIP // max(1, math.prod(shapes[0][1:])))
                for start in range(0, shapes[0][0], rows):
                    strips = [piece[start : start + rows].to(common) for piece in pieces]
                    if not torch.equal(*strips):
                        return False
            except SafetensorError as error:
                raise _unreadable(files[1], names[1], error) from None
        return True

    def _check_all_used(self, used: set[str]) -> None:
        extra = [name for name in self.files if name not in used and not name.endswith(IGNORED)]
        if extra:
            more = f" and {len(extra) - 1} more have" if len(extra) > 1 else " has"
            raise ModelError(
                f"{self.files[extra[0]]}: the tensor {extra[0]!r}{more} no place in the model "
                "that config.json describes; check its number of layers and its architectures"
            )


def _check_header(tensors: Any, file: Path, job: Job, shape: torch.Size) -> None:
    """Raise if a tensor is not in its file, is no weight or has another shape."""
    try:
        piece = tensors.get_slice(job.stored)
    except SafetensorError as error:
        raise _unreadable(file, job.stored, error) from None
    expected = [*shape] if job.target.index is None else [*shape[1:]]
    if job.source.height is not None:
        expected[0] = job.source.height
    if job.source.transposed:
        expected.reverse()
    _dtype_of(piece, file, job.stored)
    if list(piece.get_shape()) != expected:
        raise ModelError(
            f"{file}: the tensor {job.stored!r} has shape {tuple(piece.get_shape())}, "
            f"config.json asks for {tuple(expected)}"
        )


def _read(tensors: Any, file: Path, job: Job) -> Tensor:
    """Read one tensor, or the rows of it that are needed."""
    rows, stored = job.source.rows, job.stored
    try:
        value: Tensor = (
            tensors.get_tensor(stored) if rows is None else tensors.get_slice(stored)[slice(*rows)]
        )
    except SafetensorError as error:
        raise _unreadable(file, stored, error) from None
    return value.T.contiguous() if job.source.transposed else value


def _unreadable(file: Path, stored: str, error: Exception) -> ModelError:
    return ModelError(f"{file}: cannot read {stored!r} ({error}); fetch it again")


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
    text = read_text(file, kind=ModelError)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ModelError(f"{file} must hold an object, got {type(value).__name__}")
    return value
