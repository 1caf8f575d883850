"""SGLang: registers our algorithm through the entry point group `sglang.srt.plugins`."""

from __future__ import annotations

NAME = "Unmask"  # for --dllm-algorithm
OTHERS = ("block_size", "imports")  # keys of --dllm-algorithm-config that are no options


def register() -> None:
    """Add the algorithm to SGLang's table; SGLang calls this in each of its processes."""
    from sglang.srt.dllm.algorithm import algo_name_to_cls

    from unmask.integrations.sglang.algorithm import Unmask

    algo_name_to_cls[NAME] = Unmask
