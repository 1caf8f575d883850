"""Turns the body of a request into rows to decode, checked against the limits."""

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
from unmask.server.limits import RequestLimits, rule_of_request
from unmask.server.schema import ChatRequest, CompletionRequest
from unmask.text.answers import Prompt, count_masks


@dataclass(frozen=True)
class ServedModel:
    """The model, the defaults of a request, and its limits."""

    name: str
    shape: Description
    asked: Asked
    limits: RequestLimits = field(default_factory=RequestLimits)
    seed: int = 0


@dataclass(frozen=True)
class PreparedRequest:
    """The rows of one HTTP request: one decoding request per choice."""

    requests: tuple[Request, ...]
    decoding: Decoding
    stops: tuple[str, ...]
    warnings: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """The settings that are used, for the response."""
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


def prepare(served: ServedModel, body: ChatRequest | CompletionRequest) -> PreparedRequest:
    """Check a whole request; errors name the field."""
    _check_together(served, body)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decoding = _decoding(served, body)
        prompts = _prompts(served, body)
        try:
            requests = [_request(served, prompt, decoding) for prompt in prompts]
        except UnmaskError as error:
            raise wrong_request(error) from None
    messages = [str(warning.message) for warning in caught]
    for prompt, request in zip(prompts, requests, strict=True):
        messages += doubts(served.shape, prompt, request)
    stops = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return PreparedRequest(tuple(requests), decoding, stops, tuple(dict.fromkeys(messages)))


def _check_together(served: ServedModel, body: ChatRequest | CompletionRequest) -> None:
    """Check the model's name, and fields that exclude one another."""
    if body.model is not None and body.model != served.name:
        raise ApiError(
            404,
            f"the model {body.model!r} is not served here; {served.name!r} is",
            param="model",
            code="model_not_found",
        )
    if body.diffusing and not body.stream:
        raise ApiError(400, "diffusing sends every step, so it needs stream", param="diffusing")
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "stream_options needs stream", param="stream_options")
    if len(set(_lengths(body).values())) > 1:
        lengths = ", ".join(f"{name} {value}" for name, value in _lengths(body).items())
        raise ApiError(400, f"give one length, got {lengths}", param="length")
    if body.infill and _lengths(body):
        name = next(iter(_lengths(body)))
        raise ApiError(
            400, f"infill fills the masks of the text, so it takes no {name}", param=name
        )


def _lengths(body: ChatRequest | CompletionRequest) -> dict[str, int]:
    return {name: value for name, value in body.asked_length.items() if value is not None}


def _decoding(served: ServedModel, body: ChatRequest | CompletionRequest) -> Decoding:
    """The request's options over the server's defaults."""
    asked = served.asked
    if body.rule is not None:
        try:
            asked = replace(asked, rule=rule_of_request(body.rule), recipe=recipe_of(body.rule))
        except UnmaskError as error:
            raise wrong_request(error, "rule") from None
    sampling = {
        name: value
        for name in ("temperature", "top_p", "top_k", "tempered")
        if (value := getattr(body, name)) is not None
    }
    try:
        asked = replace(
            asked,
            sampling=Sampling(**{**vars(asked.sampling), **sampling}),
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


def _prompts(served: ServedModel, body: ChatRequest | CompletionRequest) -> list[Prompt]:
    """One prompt per choice: n copies of each prompt, with seeds seed, seed + 1, ..."""
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
            400, f"{choices} choices; this server allows at most {served.limits.choices}", param="n"
        )
    copies = (prompt for prompt in base for _ in range(body.n or 1))
    return [replace(prompt, seed=seed + place) for place, prompt in enumerate(copies)]


def _request(served: ServedModel, prompt: Prompt, decoding: Decoding) -> Request:
    shape = served.shape
    if prompt.infill:  # checked before the canvas is made
        served.limits.check_size(0, count_masks(prompt.rendered(shape.tokenizer)))
    request = prompt.request(shape.tokenizer, shape.spec, decoding.settings, decoding.length)
    masks = int((request.canvas == shape.spec.mask_id).sum())
    length = masks if request.length is None else request.length
    served.limits.check_size(len(request.canvas) - masks, length)
    return request
