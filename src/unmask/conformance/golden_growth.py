"""Golden cases whose canvas grows: the toy denoiser beyond 48 positions, and how a run differs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from unmask.conformance.plan import EOS, MASK
from unmask.decoding.growth import NEW
from unmask.decoding.results import Step

KNOWN, PROMPT, DENOMINATOR = 48, 16, 4096  # positions of the tables, and what these are over
Event = dict[str, Any]  # a step as the golden files write it


def longer_table(place: Tensor, length: int) -> Tensor:
    """The logits by position of a longer canvas: [48, V] -> [length, V].

    Rows repeat from 16 on with a disturbance, and EOS gains as the canvas grows.
    """
    i, v = torch.arange(KNOWN, max(length, KNOWN))[:, None], torch.arange(place.shape[-1])
    noise = (31 * i + 17 * v + 7 * i * v) % 193 - 96
    noise[:, MASK] = 0
    noise[:, EOS] += 1024 * (i[:, 0] - KNOWN + 1).clamp_max(16)
    again = place[PROMPT + (i[:, 0] - PROMPT) % (KNOWN - PROMPT)]
    return torch.cat([place, again + (noise.double() / DENOMINATOR).to(place.dtype)])


def longer_canvas(words: str, prompts: dict[str, list[int]]) -> list[int]:
    """The ids of a case that describes its canvas: a prompt and masks, or every second token."""
    name, length = words.split()[0], int(re.findall(r"(\d+) (?:masks|generated)", words)[-1])
    every_second = "(7*i)%59 at even" in words
    tokens = [7 * i % EOS if every_second and i % 2 == 0 else MASK for i in range(length)]
    return [*prompts[name], *tokens]


def growth_differences(row: dict[str, Any], steps: list[Step], number: int) -> Iterator[str]:
    """How the run of one row differs from its golden steps and ids.

    Upstream's rows wait for each other between the stages and at the end; such forwards of a
    waiting row are left out.
    """
    golden = [event for event in map(_golden, row["steps"]) if event is not None]
    ours = [*_events(row, steps, number)]
    for index, (expected, event) in enumerate(zip(golden, ours, strict=False)):
        if expected != event:
            yield f"step {index}: expected {expected}, got {event}"
            return
    if len(golden) != len(ours):
        yield f"expected {len(golden)} forwards, got {len(ours)}"
    last, at = steps[-1], steps[-1].keys.index(number)
    canvas = last.tokens[at, : int(last.lengths[at])].tolist()
    if canvas != row["final_ids"]:
        yield f"final ids: expected {row['final_ids']}, got {canvas}"


def _golden(step: Event) -> Event | None:
    if step["stage"] == 1:
        waits = step["len"] == step["len_after"] and "eos_appended" not in step
        return None if waits else {"len": step["len"], "len_after": step["len_after"]}
    if not step["pos"] and "expand" not in step:
        return None
    written = dict(zip(step["pos"], step["tok"], strict=True))
    after = step.get("len_after", step["len"])
    return {
        "len": step["len"], "len_after": after, "written": written, "expand": step.get("expand"),
    }  # fmt: skip


def _events(row: dict[str, Any], steps: list[Step], number: int) -> Iterator[Event]:
    """The steps of a run as the golden files write them."""
    begin, before = len(row["prompt"]), -1
    for step in steps:
        at = step.keys.index(number)
        after = int(step.lengths[at]) - begin
        before = int(step.view.progress.answer_length[at]) if before < 0 else before
        event: Event = {"len": before, "len_after": after}
        columns = step.decision.chosen[at].nonzero()[:, 0]
        if len(columns):
            places = (step.start[at] + columns).tolist()
            tokens = step.view.token[at, columns].tolist()
            source = None if step.source is None else step.source[at].tolist()
            kept = set(places) if source is None else set(source)
            written = {p: t for p, t in zip(places, tokens, strict=True) if p in kept}
            expand = source.index(NEW) if source is not None and NEW in source else None
            event |= {"written": written, "expand": expand}
        before = after
        yield event
