"""The processes that torchrun starts; each evaluates its share of the documents."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Ranks:
    """The place of this process among all; they communicate through the CPU (gloo)."""

    rank: int = 0
    size: int = 1
    local: int = 0  # rank on this machine
    group: Any = None

    @classmethod
    def here(cls) -> Ranks:
        """Read the variables that torchrun sets; several processes join a group."""
        size = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
        if size == 1:
            return cls()
        if not distributed.is_initialized():
            distributed.init_process_group("gloo")
        group = distributed.new_group(backend="gloo")  # our own, apart from the program's
        return cls(int(os.environ["RANK"]), size, int(os.environ.get("LOCAL_RANK", "0")), group)

    def device(self, name: str | None) -> str | None:
        """The device of this process: its own GPU if several processes share cuda, else `name`."""
        several = self.size > 1 and torch.cuda.is_available()
        return f"cuda:{self.local}" if several and name in (None, "cuda") else name

    def all_gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, flattened and joined, on the CPU."""
        mine = tensor.detach().cpu().reshape(-1)
        if self.size == 1:
            return mine
        tensors = [torch.empty_like(mine) for _ in range(self.size)]
        distributed.all_gather(tensors, mine, group=self.group)
        return torch.cat(tensors)

    def gather(self, value: Any, to: int = 0) -> list[Any] | None:
        """The values of all processes in process `to`, None in the others."""
        if self.size == 1:
            return [value]
        values: list[Any] | None = [None] * self.size if self.rank == to else None
        distributed.gather_object(value, values, dst=to, group=self.group)
        return values

    @staticmethod
    def leave() -> None:
        """Leave the group, if there is one."""
        if distributed.is_initialized():
            distributed.destroy_process_group()

    def wait(self) -> None:
        """Wait until all processes have called this."""
        if self.size > 1:
            distributed.barrier(group=self.group)
