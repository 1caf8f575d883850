"""Writes a rule as the file of --dllm-algorithm-config, and the commands that use it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.decoding.options import DecodingOptions
from unmask.errors import ModelError
from unmask.integrations.block_options import BlockOptions
from unmask.integrations.sglang import NAME, OTHERS
from unmask.models.describe import Description


@dataclass(frozen=True)
class ServedFamily:
    """A family that SGLang decodes in blocks; SGLang fixes both numbers by the architecture."""

    example: str
    block: int
    mask_id: int


SERVED = {
    "LLaDA2MoeModelLM": ServedFamily("inclusionAI/LLaDA2.0-mini", 32, 156895),
    "SDARForCausalLM": ServedFamily("JetLM/SDAR-4B-Chat", 4, 151669),
    "SDARMoeForCausalLM": ServedFamily("JetLM/SDAR-30B-A3B-Chat", 4, 151669),
}
EXAMPLES = ("LLaDA2MoeModelLM", "SDARForCausalLM")


def options_for(options: DecodingOptions, checkpoint: Description | None) -> dict[str, Any]:
    """The contents of the file: the options, with block and end tokens of the checkpoint."""
    values = {**options.given(), "rule": str(options.parsed_rule)}
    if checkpoint is not None:
        served, spec = served_as(checkpoint), checkpoint.spec
        if options.asks_for_the_recommended and spec.recommended is not None:
            values["rule"] = spec.recommended.rule
            values.setdefault("eos", spec.recommended.eos)
        if spec.block != served.block:
            values["block_size"] = spec.block
        if values.get("eos", "keep") != "keep" and spec.eos_id is not None:
            values["eos_id"], values["stop_ids"] = spec.eos_id, list(spec.stop_ids)
    BlockOptions.read(values, OTHERS)
    return values


def served_as(checkpoint: Description) -> ServedFamily:
    """The family of a checkpoint; raises if SGLang does not serve it or has another mask token."""
    architecture = next(iter(checkpoint.config.get("architectures") or ()), checkpoint.family.name)
    if architecture not in SERVED:
        raise ModelError(
            f"SGLang decodes {', '.join(SERVED)} in blocks, not {architecture}; to serve "
            f"{checkpoint.spec.name}, use 'unmask serve'"
        )
    served = SERVED[architecture]
    if checkpoint.spec.mask_id != served.mask_id:
        raise ModelError(
            f"{checkpoint.spec.name} has mask token {checkpoint.spec.mask_id}, but SGLang uses "
            f"{served.mask_id} for every {architecture}; it cannot serve this checkpoint"
        )
    return served


def file_text(values: Mapping[str, Any]) -> str:
    """The file as YAML; JSON's scalars and lists are valid YAML."""
    lines = [f"{key}: {json.dumps(value)}" for key, value in values.items()]
    return "\n".join([f"# for SGLang's --dllm-algorithm {NAME}", *lines, ""])


def commands(file: Path, model: str | None) -> Iterator[str]:
    """The shell commands that serve `model`, or an example of each family if it is None."""
    models = [SERVED[name].example for name in EXAMPLES] if model is None else [model]
    for path in models:
        words = ["python", "-m", "sglang.launch_server", "--model-path", path]
        words += ["--trust-remote-code", "--dllm-algorithm", NAME]
        yield shlex.join([*words, "--dllm-algorithm-config", str(file)])
