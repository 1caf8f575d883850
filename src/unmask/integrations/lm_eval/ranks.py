"""One process of several, as torchrun starts them: each has its share of the documents."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Ranks:
    """Who this process is among its like; they talk through the host, whatever they compute on."""

    rank: int = 0
    size: int = 1
    local: int = 0  # among those of this machine
    group: Any = None

    @classmethod
    def here(cls) -> Ranks:
        """As the environment says; several processes are joined into a group."""
        size = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
        if size == 1:
            return cls()
        if not distributed.is_initialized():
            distributed.init_process_group("gloo")
        group = distributed.new_group(backend="gloo")  # whatever else the program talks through
        return cls(int(os.environ["RANK"]), size, int(os.environ.get("LOCAL_RANK", "0")), group)

    def device(self, asked: str | None) -> str | None:
        """On a machine with several GPUs each process takes its own, unless one was named."""
        several = self.size > 1 and torch.cuda.is_available()
        return f"cuda:{self.local}" if several and asked in (None, "cuda") else asked

    def all_gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all, one after another, on the host."""
        mine = tensor.detach().cpu().reshape(-1)
        if self.size == 1:
            return mine
        found = [torch.empty_like(mine) for _ in range(self.size)]
        distributed.all_gather(found, mine, group=self.group)
        return torch.cat(found)

    def gather(self, thing: Any, to: int = 0) -> list[Any] | None:
        """The things of all, for one of them; the others get None."""
        if self.size == 1:
            return [thing]
        found: list[Any] | None = [None] * self.size if self.rank == to else None
        distributed.gather_object(thing, found, dst=to, group=self.group)
        return found

    @staticmethod
    def part() -> None:
        """Leave the group, if there is one."""
        if distributed.is_initialized():
            distributed.destroy_process_group()

    def wait(self) -> None:
        """Until all have come here."""
        if self.size > 1:
            distributed.barrier(group=self.group)
