"""The algorithm for SGLang's dLLM framework; it commits the tokens that a rule chooses."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from torch import Tensor

from unmask.decoding.options import MOST
from unmask.errors import RequestError
from unmask.integrations.block_options import BlockOptions
from unmask.integrations.blocks import Blocks, BlockState
from unmask.integrations.sglang import OTHERS
from unmask.rules.plugins import import_parts

try:
    from sglang.srt.dllm.algorithm.base import DllmAlgorithm
except ImportError as error:
    raise RequestError(
        f"cannot import SGLang's dLLM framework ({error}); pip install 'unmask[sglang]'"
    ) from None


class Unmask(DllmAlgorithm):  # type: ignore[misc]
    """Runs a rule on SGLang's blocks, in its synchronous and its first-done-first-out mode.

    The step state of a request is a `BlockState`. It holds the distributions of the last forward,
    copied from the engine's buffers, and the counters of the rule. With tensor parallelism every
    rank has the same logits, so every rank makes the same decision.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.options = read(config.algorithm_config)
        self.blocks = Blocks(self.options, self.mask_id, "the model that SGLang serves")

    @classmethod
    def configure_server_args(cls, server_args: Any) -> None:
        """Check the file before SGLang loads the model."""
        read(_yaml(server_args.dllm_algorithm_config))

    def init_step_state(self, forward_batch: Any) -> list[Any]:
        """A new state for each request."""
        return [BlockState() for _ in range(forward_batch.batch_size)]

    def max_steps(self, block_size: int) -> int:
        """No limit for SGLang; our loop raises if a rule stops committing."""
        return MOST

    def step(self, forward_batch: Any, full_logits: Tensor, states: list[Any]) -> list[bool]:
        """Decide once; True for blocks without masks, whose final KV this forward stored."""
        shape = (forward_batch.batch_size, self.block_size)
        tokens = forward_batch.input_ids.view(shape).cpu().long()
        fixed = getattr(forward_batch, "dllm_prompt_mask", None)  # not in 0.5.20
        fixed = None if fixed is None else fixed.cpu()
        unfilled = tokens == self.mask_id if fixed is None else (tokens == self.mask_id) & ~fixed
        done: list[bool] = (~unfilled.any(-1)).tolist()
        if all(done):
            return done
        logits = full_logits.view(*shape, full_logits.shape[-1])
        after = self.blocks.step(tokens, logits, states, self._seeds(forward_batch), fixed)
        forward_batch.input_ids.copy_(after.view(-1))  # in place: CUDA graphs hold this address
        return done

    def _seeds(self, forward_batch: Any) -> list[int]:
        """A seed per block from the option `seed`, else the request's id, and the block's position.

        All ranks get the same numbers, and the blocks of a text get different ones. With the
        option `seed`, equal prompts get equal answers.
        """
        if not self.options.draws:
            return [0] * forward_batch.batch_size
        starts = forward_batch.positions.view(-1, self.block_size)[:, 0].tolist()
        seed = self.options.decoding.seed
        names: list[object] = [seed] * len(starts)
        if seed is None and getattr(forward_batch, "rids", None):
            names = list(forward_batch.rids)
        return [_number(f"{name} {start}") for name, start in zip(names, starts, strict=True)]


def read(config: Mapping[str, Any] | None) -> BlockOptions:
    """The options in the file of --dllm-algorithm-config; imports the parts that it names."""
    values = config or {}
    imports = values.get("imports", [])
    try:
        if not isinstance(imports, list) or not all(isinstance(name, str) for name in imports):
            raise RequestError(f"imports must be a list of files or modules, got {imports!r}")
        for name in imports:
            import_parts(name)
        return BlockOptions.read(values, OTHERS)
    except ValueError as error:
        raise RequestError(f"--dllm-algorithm-config: {error}") from None


def _yaml(path: str | None) -> Mapping[str, Any]:
    if path is None:
        return {}
    import yaml

    try:
        mapping = yaml.safe_load(Path(path).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RequestError(f"--dllm-algorithm-config {path}: {reason}") from None
    if not isinstance(mapping, dict):
        raise RequestError(f"--dllm-algorithm-config {path}: must be a mapping, got {mapping!r}")
    return mapping


def _number(text: str) -> int:
    """A hash of the text in [0, 2^63), the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
