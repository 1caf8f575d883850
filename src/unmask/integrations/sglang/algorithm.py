"""An algorithm of SGLang's dLLM framework that commits what a rule chooses."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from torch import Tensor

from unmask.decoding.options import MOST
from unmask.errors import RequestError
from unmask.integrations.blocks import Blocks, Seat
from unmask.integrations.options import Options
from unmask.integrations.sglang import OTHERS

try:
    from sglang.srt.dllm.algorithm.base import DllmAlgorithm
except ImportError as error:
    raise RequestError(
        f"SGLang's dLLM framework is not here ({error}); pip install 'unmask[sglang]'"
    ) from None


class Unmask(DllmAlgorithm):  # type: ignore[misc]
    """Any rule on SGLang's blocks, synchronous or first done, first out.

    A request's step state is a `Seat`: the distributions of its last forward, copied out of the
    engine's buffers, and whatever else the rule counts. With tensor parallelism every rank
    has the same logits and so decides the same.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.options = read(config.algorithm_config)
        self.blocks = Blocks(self.options, self.mask_id, "the model that SGLang serves")

    @classmethod
    def configure_server_args(cls, server_args: Any) -> None:
        """Read the file before anything is loaded, so that a mistake in it is seen at once."""
        read(_yaml(server_args.dllm_algorithm_config))

    def init_step_state(self, forward_batch: Any) -> list[Any]:
        """An empty seat for each request."""
        return [Seat() for _ in range(forward_batch.batch_size)]

    def max_steps(self, block_size: int) -> int:
        """No bound of its own: a row that stops committing is an error of the rule."""
        return MOST

    def step(self, forward_batch: Any, full_logits: Tensor, states: list[Any]) -> list[bool]:
        """Decide once; says which blocks had no masks, so that this forward kept their final KV."""
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
        forward_batch.input_ids.copy_(after.view(-1))  # in place: CUDA graphs know the address
        return done

    def _seeds(self, forward_batch: Any) -> list[int]:
        """One number per block, the same on all ranks: of the seed, or the request, and the place.

        Draws are never repeated along a text; with a seed, equal prompts get equal answers.
        """
        settings = self.options.settings
        if not settings.sampling.draws and not settings.rule.needs.draws:
            return [0] * forward_batch.batch_size
        starts = forward_batch.positions.view(-1, self.block_size)[:, 0].tolist()
        names: list[object] = [self.options.seed] * len(starts)
        if self.options.seed is None and getattr(forward_batch, "rids", None):
            names = list(forward_batch.rids)
        return [_number(f"{name} {start}") for name, start in zip(names, starts, strict=True)]


def read(config: Mapping[str, Any] | None) -> Options:
    """The options in the file of --dllm-algorithm-config."""
    try:
        return Options.read(config or {}, OTHERS)
    except ValueError as error:
        raise RequestError(f"--dllm-algorithm-config: {error}") from None


def _yaml(path: str | None) -> Mapping[str, Any]:
    if path is None:
        return {}
    import yaml

    try:
        found = yaml.safe_load(Path(path).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RequestError(f"--dllm-algorithm-config {path}: {reason}") from None
    if not isinstance(found, dict):
        raise RequestError(f"--dllm-algorithm-config {path}: must be a mapping, got {found!r}")
    return found


def _number(text: str) -> int:
    """A text as a number in [0, 2^63), the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
