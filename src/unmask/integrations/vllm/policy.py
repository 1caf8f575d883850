"""A remasking policy for vLLM's dllm-plugin: its contract is a shape, so nothing is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unmask.errors import RequestError
from unmask.integrations.blocks import Blocks, Seat
from unmask.integrations.options import Options

MASK_ID = 156895  # LLaDA2's, the only family that the plug-in has


@dataclass(frozen=True, slots=True)
class StepResult:
    """What the plug-in reads after a step, by the names of its own RemaskStepResult."""

    committed_token_ids: tuple[int, ...]  # the whole block once it is filled, else nothing
    next_input_block: tuple[int, ...]  # the block as it is now, or the next one, all masks


class UnmaskPolicy:
    """Any rule as a RemaskingPolicy of vllm-project/dllm-plugin: one object for each request.

    The contract names no request, so the object itself is what remembers: handed to two
    requests in turns it sees that the block is another one and forgets the history of the first.
    Of `remasking_config` only `mask_token_id` is read; what to commit is the rule's to say.
    """

    def __init__(self, rule: str, **options: Any) -> None:
        self.options = Options.read({"rule": rule, **options})
        self._blocks: Blocks | None = None
        self._seat = Seat()
        self._filled = 0  # blocks, so that draws do not repeat

    def apply(
        self,
        *,
        input_draft: Sequence[int],
        logits: Any | None = None,
        remasking_config: Mapping[str, Any] | None = None,
    ) -> StepResult:
        """One decision on a block after a forward; the logits are [block, V] and are not kept."""
        mask_id = int((remasking_config or {}).get("mask_token_id", MASK_ID))
        tokens = torch.tensor(input_draft, dtype=torch.int64)
        if bool((tokens == mask_id).any()):
            found = _checked(logits, len(tokens))
            seed = (self.options.seed or 0) + self._filled
            blocks = self._of(mask_id)
            tokens = blocks.step(tokens[None], found[None], [self._seat], [seed])[0]
        after: tuple[int, ...] = tuple(tokens.tolist())
        if mask_id in after:
            return StepResult((), after)
        self._filled += 1
        return StepResult(after, (mask_id,) * len(after))

    def _of(self, mask_id: int) -> Blocks:
        if self._blocks is None or self._blocks.mask_id != mask_id:
            self._blocks = Blocks(self.options, mask_id, "the model that vLLM serves")
        return self._blocks


def _checked(logits: Any, width: int) -> torch.Tensor:
    """Logits as a tensor, if they are one row of numbers per position."""
    if logits is None:
        raise RequestError("no logits; a policy decides on the last pipeline rank, which has them")
    found = torch.as_tensor(logits)
    if found.ndim != 2 or len(found) != width or not found.dtype.is_floating_point:
        raise RequestError(
            f"logits must be floats of shape ({width}, vocabulary), got {found.dtype} of shape "
            f"{tuple(found.shape)}"
        )
    return found
