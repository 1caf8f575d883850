"""A scheduler for diffusers' LLaDA2Pipeline that commits the tokens a rule chooses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unmask.errors import RequestError
from unmask.integrations.block_options import BlockOptions
from unmask.integrations.blocks import Blocks, BlockState

try:
    from diffusers import BlockRefinementScheduler
    from diffusers.configuration_utils import register_to_config
    from diffusers.schedulers.scheduling_block_refinement import BlockRefinementSchedulerOutput
except ImportError as error:
    raise RequestError(
        f"cannot import LLaDA2Pipeline from diffusers ({error}); pip install 'unmask[diffusers]'"
    ) from None


class UnmaskScheduler(BlockRefinementScheduler):  # type: ignore[misc]
    """Commits by a rule instead of by confidence; the pipeline still walks the blocks.

    The pipeline's `threshold` and `minimal_topk` are ignored, because the rule decides what to
    commit. `num_inference_steps` is the most forwards that a block takes. `temperature`, `top_p`,
    `top_k` and `sampling_method` draw tokens, and `editing_threshold` rewrites committed tokens,
    as in the pipeline's own scheduler. A filled block takes no further forward unless it may be
    edited.
    """

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(
        self,
        block_length: int = 32,
        num_inference_steps: int = 32,
        threshold: float = 0.95,
        editing_threshold: float | None = None,
        minimal_topk: int = 1,
        rule: str = "swd",
        eos: str = "keep",
        eos_id: int | None = None,
        tempered: bool = True,
        allow_mask: bool = False,
    ) -> None:
        super().__init__(
            block_length, num_inference_steps, threshold, editing_threshold, minimal_topk
        )
        given = {"rule": rule, "eos": eos, "allow_mask": allow_mask}
        self.options = BlockOptions.read(given if eos_id is None else {**given, "eos_id": eos_id})
        self._blocks: Blocks | None = None  # of the last options
        self._states: list[BlockState] = []  # one per row of the pipeline's batch
        self._seeds: list[int] = []
        self._left = torch.empty(0, dtype=torch.bool)  # [B] which blocks have masks

    def step(
        self,
        model_output: Tensor,
        timestep: int | Tensor,
        sample: Tensor,
        *,
        mask_token_id: int | None = None,
        temperature: float = 0.0,
        top_p: float | None = None,
        top_k: int | None = None,
        sampling_method: str = "auto",
        threshold: float | None = None,
        editing_threshold: float | None = None,
        minimal_topk: int | None = None,
        prompt_mask: Tensor | None = None,
        generator: torch.Generator | None = None,
        return_dict: bool = True,
    ) -> Any:
        """Decide once on the blocks of all rows; `timestep` is 0 in a block's first forward."""
        if mask_token_id is None:
            raise RequestError("mask_token_id is missing; a rule needs it to know the masks")
        drawn = 0.0 if sampling_method == "greedy" else temperature
        blocks = self._blocks_of(mask_token_id, self._options(drawn, top_p, top_k))
        if int(timestep) == 0 or len(self._states) != len(sample):
            self._states = [BlockState() for _ in sample]
            self._seeds = _seeds(len(sample), blocks.options, generator)
        after = blocks.step(sample.cpu(), model_output, self._states, self._seeds).to(sample)
        committed = after != sample
        guess, confidence = _likeliest(model_output)
        if editing_threshold is None:
            editing_threshold = self.config.editing_threshold
        edited = torch.zeros_like(committed)
        if editing_threshold is not None and editing_threshold > 0:
            editable = (sample != mask_token_id) & ~committed
            if prompt_mask is not None:
                editable &= ~prompt_mask
            edited = editable & (guess != sample) & (confidence > editing_threshold)
            after = torch.where(edited, guess, after)
            self._record_edits(after, edited)
        self._left = (after == mask_token_id).any(-1)
        sampled = torch.where(committed, after, guess)
        output = (after, committed, edited, sampled, confidence, model_output)
        return BlockRefinementSchedulerOutput(*output) if return_dict else output

    def check_block_should_continue(
        self,
        step_idx: int,
        masks_remaining: bool,
        editing_enabled: bool,
        editing_transfer_index: Tensor,
        post_steps: int,
        max_post_steps: int,
        finished: Tensor,
    ) -> bool:
        """Whether the block needs another forward, for its masks or for edits."""
        if bool((self._left & ~finished).any()):
            return step_idx < int(self.num_inference_steps)
        if not editing_enabled:
            return False
        edits = (editing_enabled, editing_transfer_index, post_steps, max_post_steps, finished)
        more: bool = super().check_block_should_continue(step_idx, masks_remaining, *edits)
        return more

    def _options(self, temperature: float, top_p: float | None, top_k: int | None) -> BlockOptions:
        """The options of this call of the pipeline."""
        options = self.options.changed(steps=int(self.num_inference_steps))
        if not temperature:
            return options
        tempered = self.config.tempered
        return options.changed(temperature=temperature, top_p=top_p, top_k=top_k, tempered=tempered)

    def _blocks_of(self, mask_id: int, options: BlockOptions) -> Blocks:
        blocks = self._blocks
        if blocks is None or (blocks.mask_id, blocks.options) != (mask_id, options):
            blocks = self._blocks = Blocks(options, mask_id, "the model of the pipeline")
        return blocks

    def _record_edits(self, after: Tensor, edited: Tensor) -> None:
        """Copy edits into the rows' state; otherwise they would look like new blocks."""
        rows = zip(self._states, after.cpu(), edited.cpu(), strict=True)
        for state, tokens, changed in rows:
            known = state.tokens()
            if known is not None:
                known[changed] = tokens[changed]


def _seeds(count: int, options: BlockOptions, generator: torch.Generator | None) -> list[int]:
    """A seed for each block; the generator is used only if tokens or the rule are random."""
    if not options.draws:
        return [0] * count
    device = "cpu" if generator is None else generator.device
    drawn = torch.randint(2**62, (count,), generator=generator, device=device)
    seeds: list[int] = drawn.tolist()
    return seeds


def _likeliest(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest token of each position and its probability: [B, W, V] -> [B, W] each."""
    most, token = logits.float().max(-1)
    return token, (most - logits.float().logsumexp(-1)).exp()
