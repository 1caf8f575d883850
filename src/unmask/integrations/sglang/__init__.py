"""SGLang with our rules: the function that its entry point group `sglang.srt.plugins` calls."""

from __future__ import annotations

NAME = "Unmask"  # of the algorithm, for --dllm-algorithm
OTHERS = ("block_size",)  # keys of --dllm-algorithm-config that SGLang reads itself


def register() -> None:
    """Put the algorithm into SGLang's table, in each of its processes."""
    from sglang.srt.dllm.algorithm import algo_name_to_cls

    from unmask.integrations.sglang.algorithm import Unmask

    algo_name_to_cls[NAME] = Unmask
