"""Doubts about a request: what the model was not made for, and forwards that are wasted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unmask.decoding.request import Request
from unmask.embedded import NAME, PROMPTS
from unmask.models.denoiser import ModelSpec
from unmask.models.tokenizer import Tokenizer
from unmask.rules.registry import notation
from unmask.rules.schedules import Origin, Timesteps
from unmask.text.prompts import RenderedPrompt


def doubts(
    prompt: RenderedPrompt, request: Request, tokenizer: Tokenizer, spec: ModelSpec
) -> Iterator[str]:
    """Unknown words, idle arguments, masks that are not filled, and a timetable too long."""
    unknown = prompt.unknown_words(tokenizer)
    if unknown:
        words = ", ".join(map(repr, unknown))
        yield f"{spec.name} does not know these words: {words}{_what_it_does(spec)}"
    if prompt.unread:
        yield f"the chat template of {spec.name} does not use {', '.join(prompt.unread)}"
    if prompt.idle_args:
        plain = "this prompt is plain text, not a chat"
        why = f"{spec.name} has no chat template" if tokenizer.template is None else plain
        yield f"template_args are not used: {why}"
    if not prompt.infill and prompt.holds_masks:
        yield "[MASK] in a prompt is plain text; infill fills it"
    select, masks = request.settings.rule.select, int((request.canvas == spec.mask_id).sum())
    if isinstance(select, Timesteps | Origin):
        forwards = min(select.steps, request.settings.steps or select.steps)
        if forwards > masks:
            shorter = notation(replace(select, steps=masks))
            spent = f"{notation(select)} spends {forwards} forwards on {masks} tokens"
            yield f"{spent}; {shorter} is enough"


def _what_it_does(spec: ModelSpec) -> str:
    """What to ask the embedded model, whose world is small."""
    if spec.name != NAME:
        return ""
    prompts = " or ".join(f'"{prompt}"' for prompt in PROMPTS)
    return f". It does small sums, lists and functions; try {prompts}"
