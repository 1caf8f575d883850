"""A remasking policy for vLLM's dllm-plugin; its contract is a protocol, so no import is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unmask.errors import RequestError
from unmask.integrations.block_options import BlockOptions
from unmask.integrations.blocks import Blocks, BlockState

MASK_ID = 156895  # of LLaDA2, the only family that the plug-in supports


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step, with the field names of the plug-in's RemaskStepResult."""

    committed_token_ids: tuple[int, ...]  # the whole block once it is filled, else empty
    next_input_block: tuple[int, ...]  # this block, or the next one, all masks


class UnmaskPolicy:
    """Any rule as a RemaskingPolicy of vllm-project/dllm-plugin: one object for each request.

    The contract passes no request id, so the object keeps the state. If two requests share one
    object, it sees that the block has changed and drops the history of the other request.
    Only `mask_token_id` of `remasking_config` is read; the rule decides what to commit.
    """

    def __init__(self, rule: str, **options: Any) -> None:
        self.options = BlockOptions.read({"rule": rule, **options})
        self._blocks: Blocks | None = None
        self._state = BlockState()
        self._filled = 0  # number of filled blocks, so that draws do not repeat

    def apply(
        self,
        *,
        input_draft: Sequence[int],
        logits: Any | None = None,
        remasking_config: Mapping[str, Any] | None = None,
    ) -> StepResult:
        """Decide once on a block after a forward; `logits` are [block, V] and are not kept."""
        mask_id = int((remasking_config or {}).get("mask_token_id", MASK_ID))
        tokens = torch.tensor(input_draft, dtype=torch.int64)
        if bool((tokens == mask_id).any()):
            checked = _checked(logits, len(tokens))
            seed = (self.options.decoding.seed or 0) + self._filled
            blocks = self._blocks_of(mask_id)
            tokens = blocks.step(tokens[None], checked[None], [self._state], [seed])[0]
        after: tuple[int, ...] = tuple(tokens.tolist())
        if mask_id in after:
            return StepResult((), after)
        self._filled += 1
        return StepResult(after, (mask_id,) * len(after))

    def _blocks_of(self, mask_id: int) -> Blocks:
        if self._blocks is None or self._blocks.mask_id != mask_id:
            self._blocks = Blocks(self.options, mask_id, "the model that vLLM serves")
        return self._blocks


def _checked(logits: Any, width: int) -> torch.Tensor:
    """The logits as a tensor; raises unless they are floats of shape [width, V]."""
    if logits is None:
        raise RequestError(
            "logits are missing; call the policy on the last pipeline rank, which has them"
        )
    tensor = torch.as_tensor(logits)
    if tensor.ndim != 2 or len(tensor) != width or not tensor.dtype.is_floating_point:
        raise RequestError(
            f"logits must be floats of shape ({width}, vocabulary), got {tensor.dtype} of shape "
            f"{tuple(tensor.shape)}"
        )
    return tensor
