"""Replaces `model.generate` of transformers with decoding by a rule (custom_generate)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Request, prompt_request
from unmask.decoding.resolve import resolve
from unmask.decoding.results import Result
from unmask.errors import RequestError
from unmask.integrations.transformers.arguments import Call
from unmask.integrations.transformers.streamer import Streamed
from unmask.models.denoiser import Denoiser
from unmask.models.transformers_model import TransformersModel, wrap
from unmask.models.wrappers.guided import Guided

try:
    from transformers.utils import ModelOutput
except ImportError as error:
    raise RequestError(
        f"cannot import transformers ({error}); pip install 'unmask[transformers]'"
    ) from None


@dataclass
class UnmaskOutput(ModelOutput):  # type: ignore[misc]
    """The output with return_dict_in_generate=True; every tensor has an entry per row."""

    sequences: Tensor | None = None  # prompt, answer, end token, padding
    nfe: Tensor | None = None  # forwards
    nfe_eos: Tensor | None = None  # forwards until everything up to the end token was fixed
    tokens_per_forward: Tensor | None = None  # tokens before the end token / nfe_eos


def generate(model: Any, options: Mapping[str, Any], **arguments: Any) -> Tensor | UnmaskOutput:
    """Continue prompts as `model.generate` does, but by a rule.

    Args:
        model: a transformers model that predicts masks; see `unmask.wrap`.
        options: defaults for this call, such as the rule.
        arguments: those of generate, and our own; see `unmask.integrations.transformers.arguments`.
    """
    call = Call.read(model, options, arguments)
    hosted = _hosted(model, call)
    resolved = resolve(call.decoding, hosted.spec)
    hosted.spec = resolved.spec
    requests = [
        prompt_request(hosted.spec, prompt, resolved.length, resolved.settings, resolved.seed + row)
        for row, prompt in enumerate(call.prompts)
    ]
    scale = call.decoding.guidance
    denoiser = hosted if scale is None else Guided(hosted, scale)
    results = _decoded(denoiser, requests, call)
    as_dict = call.config("return_dict_in_generate")
    return _output(results, call) if as_dict else _sequences(results, call)


def _hosted(model: Any, call: Call) -> TransformersModel:
    """The model as a denoiser, with the end tokens of this call."""
    hosted = wrap(
        model,
        call.given.get("tokenizer"),
        mask_id=call.own("mask_id"),
        shift=call.own("shift"),
        block=call.own("attention_block"),
    )
    if not isinstance(hosted, TransformersModel):
        raise RequestError(f"{type(model).__name__} is not a transformers model; use unmask.decode")
    if call.stop_ids:
        hosted.spec = replace(hosted.spec, eos_id=call.stop_ids[0], stop_ids=call.stop_ids)
    return hosted


def _decoded(model: Denoiser, requests: list[Request], call: Call) -> list[Result]:
    """The results in the order of the rows; the streamer gets each step."""
    streamed = Streamed.of(call.given.get("streamer"), call.inputs, requests, model.spec)
    by_row: dict[int, Result] = {}
    for step in decode_steps(model, requests, len(requests)):
        streamed.take(step)
        by_row.update((result.key, result) for result in step.finished)
    results = [by_row[row] for row in range(len(requests))]
    streamed.end(_answer(results[0]))
    return results


def _answer(result: Result) -> list[int]:
    """The ids of the answer, with the end token if there is one."""
    ids: list[int] = result.answer.tolist()
    return ids[: len(result.ids) + 1]


def _sequences(results: list[Result], call: Call) -> Tensor:
    """Prompts and answers, padded after the end token to equal length: [B, L]."""
    answers = [_answer(result) for result in results]
    longest = max(map(len, answers))
    stops = next((result.stop_ids[:1] for result in results), ())
    pad = call.config("pad_token_id")
    pad = next(iter(stops), 0) if pad is None else pad
    rows = [answer + [pad] * (longest - len(answer)) for answer in answers]
    return torch.cat([call.inputs, torch.tensor(rows).to(call.inputs)], dim=-1)


def _output(results: list[Result], call: Call) -> UnmaskOutput:
    written = torch.tensor([len(result.ids) for result in results])
    nfe_eos = torch.tensor([result.nfe_eos for result in results])
    return UnmaskOutput(
        sequences=_sequences(results, call),
        nfe=torch.tensor([result.nfe for result in results]),
        nfe_eos=nfe_eos,
        tokens_per_forward=written / nfe_eos,
    )
