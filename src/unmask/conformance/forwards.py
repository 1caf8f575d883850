"""Golden generations forward by forward: what each forward of upstream wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unmask.conformance.ties import Written
from unmask.models.denoiser import ModelSpec


def real_prompts(case: dict[str, Any]) -> list[list[int]]:
    """The prompt of each row without its padding, which is on the left."""
    prompts: list[list[int]] = case["prompt_ids"]
    real = case.get("attention_mask") or [[1] * len(ids) for ids in prompts]
    return [
        [token for token, there in zip(ids, row, strict=True) if there]
        for ids, row in zip(prompts, real, strict=True)
    ]


def wanted_answer(case: dict[str, Any], row: int) -> list[int]:
    """The golden answer; upstream may cut it after EOS, or leave masks after the length."""
    if "generated_ids" in case:
        ids: list[int] = case["generated_ids"][row]
        return ids
    prompt = case["prompt_ids"][row]
    if case["mask_id"] in prompt:  # an infill is compared as a whole
        whole: list[int] = case["output_ids"][row][: len(prompt)]
        return whole
    ids = case["output_ids"][row][len(prompt) :]
    return ids[: ids.index(case["mask_id"])] if case["mask_id"] in ids else ids


def useful_forwards(case: dict[str, Any], spec: ModelSpec) -> list[list[Written]] | None:
    """What each forward with a mask to fill wrote, for each row; None if inputs are missing.

    Left out are prefills and forwards over a complete block: upstream's caches run one more per
    block, to write keys and values or because they check only after the second. Guided forwards of
    blocks from the prompt's end are recorded in pairs, which are not told apart.
    """
    in_pairs = spec.from_prompt_end and case["params"].get("cfg_scale")
    if not case.get("forward_inputs") or in_pairs:
        return None
    return [_written(case, spec, row) for row in range(len(case["prompt_ids"]))]


def _written(case: dict[str, Any], spec: ModelSpec, row: int) -> list[Written]:
    prompt, answer = real_prompts(case)[row], wanted_answer(case, row)
    padding = len(case["prompt_ids"][row]) - len(prompt)
    if spec.mask_id in prompt:
        prompt = []
    inputs = [rows[row][padding:] for rows in case["forward_inputs"]]
    whole = max(len(prompt) + len(answer), *map(len, inputs))
    params = case["params"]
    block = params.get("block_length") or params.get("block_size") or whole
    canvas = [*prompt, *[spec.mask_id] * (whole - len(prompt))]
    places = _by_blocks if spec.block is not None else _by_windows
    if spec.from_prompt_end:
        places = _by_prompt_blocks
    elif spec.lead:
        places = _by_lead_blocks
    forwards = list(places(inputs, canvas, block, len(prompt), spec.mask_id))
    after = [canvas for canvas, _ in forwards[1:]] + [[*prompt, *answer]]
    return [
        {i: new for i, (old, new) in enumerate(zip(before, now, strict=False)) if old != new}
        for (before, useful), now in zip(forwards, after, strict=True)
        if useful
    ]


def _by_windows(
    inputs: list[list[int]], canvas: list[int], block: int, prompt: int, mask: int
) -> Iterator[tuple[list[int], bool]]:
    """The canvas before each forward, and whether the active block has masks: full attention.

    A block opens with a forward over the whole canvas; with a cache, the inputs of the others
    begin at the block.
    """
    start = 0
    for ids in inputs:
        offset, active = start, ids[:block]
        if len(ids) == len(canvas):
            offset, active = 0, ids
            start = prompt + (ids.index(mask) - prompt) // block * block if mask in ids else start
        canvas = [*canvas[:offset], *ids, *canvas[offset + len(ids) :]]
        yield canvas, mask in active


def _by_blocks(
    inputs: list[list[int]], canvas: list[int], block: int, prompt: int, mask: int
) -> Iterator[tuple[list[int], bool]]:
    """The same for block-causal models, whose inputs end with the active block.

    They begin at 0, or with a cache at the block itself.
    """
    for ids in inputs:
        known = len(ids) > block or ids == canvas[: len(ids)]
        offset = 0 if known else canvas.index(mask) // block * block
        canvas = [*canvas[:offset], *ids, *canvas[offset + len(ids) :]]
        yield canvas, mask in ids[-block:]


def _by_prompt_blocks(
    inputs: list[list[int]], canvas: list[int], block: int, prompt: int, mask: int
) -> Iterator[tuple[list[int], bool]]:
    """The same where blocks count from the prompt's end: inputs are a block, or all before it.

    The latter has padding on its left.
    """
    padding = len(inputs[0]) - prompt
    for ids in inputs:
        offset = prompt + (canvas.index(mask) - prompt) // block * block if mask in canvas else 0
        if len(ids) >= padding + prompt and ids[padding : padding + prompt] == canvas[:prompt]:
            offset, ids = 0, ids[padding:]
        canvas = [*canvas[:offset], *ids, *canvas[offset + len(ids) :]]
        yield canvas, mask in ids


def _by_lead_blocks(
    inputs: list[list[int]], canvas: list[int], block: int, prompt: int, mask: int
) -> Iterator[tuple[list[int], bool]]:
    """The same where a forward over complete blocks writes the first token of the next block."""
    canvas = [*canvas, *[mask] * block]
    for ids in inputs:
        known = ids == canvas[: len(ids)]
        offset = 0 if known else canvas.index(mask) // block * block
        canvas = [*canvas[:offset], *ids, *canvas[offset + len(ids) :]]
        yield canvas, mask in ids or canvas[offset + len(ids)] == mask
