"""From a request's body to canvases and settings, checked against the limits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

from unmask.decoding.asked import Asked, Decoding, doubts, recipe_of
from unmask.decoding.request import Request
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError, UnmaskError
from unmask.models.describe import Description
from unmask.server.errors import ApiError, wrong_request
from unmask.server.limits import Limits
from unmask.server.rules import rule_of_request
from unmask.server.schema import ChatRequest, CompletionRequest
from unmask.text.answers import Prompt, count_masks


@dataclass(frozen=True)
class Served:
    """The model, and how it decodes what a request leaves open."""

    name: str
    shape: Description
    asked: Asked
    limits: Limits = field(default_factory=Limits)
    seed: int = 0


@dataclass(frozen=True)
class Prepared:
    """What will be decoded: one request per choice."""

    requests: tuple[Request, ...]
    decoding: Decoding
    stops: tuple[str, ...]
    warnings: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """What was understood, for the response."""
        settings, first = self.decoding.settings, self.requests[0]
        return {
            "rule": str(settings.rule),
            "length": first.length,
            "block": self.decoding.spec.block or settings.block,
            "eos": settings.eos,
            "steps": settings.steps,
            "history": settings.history,
            **vars(settings.sampling),
            "seed": first.seed,
            "infill": first.length is None,
            "warnings": list(self.warnings),
        }


def prepare(served: Served, body: ChatRequest | CompletionRequest) -> Prepared:
    """Read and check everything; errors name the field."""
    _check_together(served, body)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decoding = _decoding(served, body)
        prompts = _prompts(served, body)
        try:
            requests = [_request(served, prompt, decoding) for prompt in prompts]
        except UnmaskError as error:
            raise wrong_request(error) from None
    told = [str(warning.message) for warning in caught]
    for prompt, request in zip(prompts, requests, strict=True):
        told += doubts(served.shape, prompt, request)
    stops = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return Prepared(tuple(requests), decoding, stops, tuple(dict.fromkeys(told)))


def _check_together(served: Served, body: ChatRequest | CompletionRequest) -> None:
    """Fields that exclude one another, and the model's name."""
    if body.model is not None and body.model != served.name:
        raise ApiError(
            404,
            f"the model {body.model!r} is not served here; {served.name!r} is",
            param="model",
            code="model_not_found",
        )
    if body.diffusing and not body.stream:
        raise ApiError(400, "diffusing shows every step, so it needs stream", param="diffusing")
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "stream_options needs stream", param="stream_options")
    if len(set(_lengths(body).values())) > 1:
        given = ", ".join(f"{name} {value}" for name, value in _lengths(body).items())
        raise ApiError(400, f"give one length, got {given}", param="length")
    if body.infill and _lengths(body):
        name = next(iter(_lengths(body)))
        raise ApiError(400, f"infill writes where the masks are, so it takes no {name}", param=name)


def _lengths(body: ChatRequest | CompletionRequest) -> dict[str, int]:
    return {name: value for name, value in body.asked_length.items() if value is not None}


def _decoding(served: Served, body: ChatRequest | CompletionRequest) -> Decoding:
    """The server's habits with the request's wishes over them."""
    asked = served.asked
    if body.rule is not None:
        try:
            asked = replace(asked, rule=rule_of_request(body.rule), recipe=recipe_of(body.rule))
        except UnmaskError as error:
            raise wrong_request(error, "rule") from None
    drawn = {
        name: value
        for name in ("temperature", "top_p", "top_k", "tempered")
        if (value := getattr(body, name)) is not None
    }
    try:
        asked = replace(
            asked,
            sampling=Sampling(**{**vars(asked.sampling), **drawn}),
            length=next(iter(_lengths(body).values()), asked.length),
            block=asked.block if body.block is None else body.block,
            eos=asked.eos if body.eos is None else body.eos,
            steps=asked.steps if body.steps is None else body.steps,
        )
        decoding = asked.decoding(served.shape, bool(body.infill))
        if decoding.spec.block != served.shape.spec.block:
            raise RequestError(
                f"the model attends in blocks of {served.shape.spec.block}; only the server's own "
                "--block changes that"
            )
        served.limits.check_size(0, 0 if body.infill else decoding.length)
    except UnmaskError as error:
        raise wrong_request(error) from None
    return decoding


def _prompts(served: Served, body: ChatRequest | CompletionRequest) -> list[Prompt]:
    """One per choice: the n of each prompt side by side, their seeds counted up."""
    infill, seed = bool(body.infill), served.seed if body.seed is None else body.seed
    if isinstance(body, ChatRequest):
        if served.shape.tokenizer.template is None:
            raise ApiError(
                400, f"{served.name} has no chat template; use /v1/completions", param="messages"
            )
        messages = tuple(message.plain() for message in body.messages)
        base = [Prompt(messages=messages, infill=infill)]
    else:
        texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
        base = [Prompt(text, infill=infill) for text in texts]
    choices = len(base) * (body.n or 1)
    if choices > served.limits.choices:
        raise ApiError(
            400, f"{choices} choices; this server gives at most {served.limits.choices}", param="n"
        )
    copies = (prompt for prompt in base for _ in range(body.n or 1))
    return [replace(prompt, seed=seed + place) for place, prompt in enumerate(copies)]


def _request(served: Served, prompt: Prompt, decoding: Decoding) -> Request:
    shape = served.shape
    if prompt.infill:  # before any mask is made
        served.limits.check_size(0, count_masks(prompt.rendered(shape.tokenizer)))
    request = prompt.request(shape.tokenizer, shape.spec, decoding.settings, decoding.length)
    masks = int((request.canvas == shape.spec.mask_id).sum())
    asked = masks if request.length is None else request.length
    served.limits.check_size(len(request.canvas) - masks, asked)
    return request
