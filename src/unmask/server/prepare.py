"""Turns the body of a request into rows to decode, checked against the limits."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

from unmask.decoding.options import DecodingOptions
from unmask.decoding.request import Request
from unmask.decoding.resolve import Resolved
from unmask.errors import LanguageError, RequestError, UnmaskError
from unmask.models.template_args import check_template_args
from unmask.server.errors import ApiError, wrong_request
from unmask.server.languages import language_field, language_of
from unmask.server.limits import OverLimit, RequestLimits, check_rule
from unmask.server.schema import LENGTHS, REQUEST_OPTIONS, ChatRequest, CompletionRequest
from unmask.server.tools import ToolUse, tool_words
from unmask.text.prompts import Prompt, RenderedPrompt
from unmask.text.session import Session


@dataclass(frozen=True)
class ServedModel:
    """The model, whose options are the defaults of a request, and the limits of a request."""

    name: str
    session: Session
    limits: RequestLimits = field(default_factory=RequestLimits)


@dataclass(frozen=True)
class PreparedRequest:
    """The rows of one HTTP request: one decoding request per choice."""

    requests: tuple[Request, ...]
    resolved: Resolved
    stops: tuple[str, ...]
    warnings: tuple[str, ...]
    logprobs: int | None = None  # alternatives for each token; None: no log-probabilities
    step_map: bool = False
    tools: ToolUse | None = None  # the functions that the answer may call

    def record(self) -> dict[str, Any]:
        """The settings that are used, for the response."""
        first = self.requests[0]
        return {
            **self.resolved.record(),
            "length": "auto" if self.resolved.settings.growth else first.length,
            "infill": first.length is None,
            "warnings": list(self.warnings),
        }


def prepare(served: ServedModel, body: ChatRequest | CompletionRequest) -> PreparedRequest:
    """Check a whole request; errors name the field."""
    session, messages, tools = served.session, list[str](), ToolUse.of(body)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            options = _options(served, body, tools)
            resolved = session.resolve(options, bool(body.infill))
            if body.trace and resolved.settings.growth is not None:
                raise RequestError("a trace needs a fixed length; leave out trace, or auto")
            served.limits.check_size(0, 0 if body.infill else resolved.length)
            prompts = _prompts(served, body)
            words = tool_words(tools, body, session.tokenizer)
            if isinstance(body, ChatRequest):  # a completion does not ask for the server's own
                words = options.template_words | words
            rendered = [prompt.render(session.tokenizer, words) for prompt in prompts]
            first = [_request(served, prompt, resolved, messages) for prompt in rendered]
        except UnmaskError as error:
            raise wrong_request(error, _field(error, body, tools)) from None
    stops = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    warned = [str(warning.message) for warning in caught]
    unique = tuple(dict.fromkeys([*warned, *messages]))
    copies = [request for request in first for _ in range(body.n or 1)]
    requests = [replace(copy, seed=resolved.seed + place) for place, copy in enumerate(copies)]
    logprobs, steps = alternatives(body), bool(body.step_map)
    return PreparedRequest(tuple(requests), resolved, stops, unique, logprobs, steps, tools)


def alternatives(body: ChatRequest | CompletionRequest) -> int | None:
    """How many alternatives a request wants for each token; None: no log-probabilities."""
    if isinstance(body, CompletionRequest):
        return body.logprobs
    return (body.top_logprobs or 0) if body.logprobs else None


def check_together(served: ServedModel, body: ChatRequest | CompletionRequest) -> None:
    """Check the model's name, and fields that exclude one another."""
    if body.model is not None and body.model != served.name:
        message = f"the model {body.model!r} is not served here; {served.name!r} is"
        raise ApiError(404, message, param="model", code="model_not_found")
    if body.diffusing and not body.stream:
        raise ApiError(400, "diffusing sends every step, so it needs stream", param="diffusing")
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "stream_options needs stream", param="stream_options")
    if isinstance(body, ChatRequest) and body.top_logprobs and not body.logprobs:
        raise ApiError(400, "top_logprobs needs logprobs", param="top_logprobs")
    if body.step_map and body.stop:
        raise ApiError(400, "step_map needs the whole answer; leave out stop", param="step_map")
    if len(set(_lengths(body).values())) > 1:
        lengths = ", ".join(f"{name} {value}" for name, value in _lengths(body).items())
        raise ApiError(400, f"give one length, got {lengths}", param="length")
    if (choices := rows_of(body)) > served.limits.choices:
        message = f"{choices} choices; this server allows at most {served.limits.choices}"
        raise ApiError(400, message, param="n")
    if body.infill and getattr(body, "suffix", None):
        raise ApiError(
            400, "infill fills the masks of the prompt; leave out suffix", param="suffix"
        )
    if body.infill and _lengths(body):
        name = next(iter(_lengths(body)))
        message = f"infill fills the masks of the text, so it takes no {name}"
        raise ApiError(400, message, param=name)


def _field(
    error: UnmaskError, body: ChatRequest | CompletionRequest, tools: ToolUse | None
) -> str | None:
    """The field of a request that an error is about; None if that is not known."""
    if isinstance(error, LanguageError):
        return language_field(body, tools)
    if isinstance(error, OverLimit):
        return size_field(body) if error.part == "length" else _prompt_field(body)
    words = str(error).split()  # the first option that it names is the wrong one
    return next((name for name in words if name in REQUEST_OPTIONS and getattr(body, name)), None)


def size_field(body: ChatRequest | CompletionRequest) -> str:
    """The field that sets how many tokens a request writes; infill has its masks in the prompt."""
    return _prompt_field(body) if body.infill else next(iter(_lengths(body)), "length")


def _prompt_field(body: ChatRequest | CompletionRequest) -> str:
    return "messages" if isinstance(body, ChatRequest) else "prompt"


def _lengths(body: ChatRequest | CompletionRequest) -> dict[str, int | str]:
    return {name: value for name in LENGTHS if (value := getattr(body, name, None)) is not None}


def _options(
    served: ServedModel, body: ChatRequest | CompletionRequest, tools: ToolUse | None
) -> DecodingOptions:
    """The request's options over the server's defaults."""
    changes = {name: getattr(body, name) for name in REQUEST_OPTIONS}
    changes["length"] = next(iter(_lengths(body).values()), None)
    changes["template_args"] = _template_args(served, body)
    changes["language"] = language_of(body, tools)
    options = served.session.changed(changes)
    if options.length == "auto" and options.longest is None:
        options = replace(options, longest=served.limits.length)
    length, block = options.length, options.block
    fixed = served.session.spec.block or body.block
    if not fixed and isinstance(length, int) and isinstance(block, int) and length < block:
        options = replace(options, block="full")  # the server's own block is larger than the answer
    if body.rule is not None:
        try:
            check_rule(body.rule, options)
        except UnmaskError as error:
            raise wrong_request(error, "rule") from None
    return options


def _template_args(
    served: ServedModel, body: ChatRequest | CompletionRequest
) -> dict[str, Any] | None:
    """The request's arguments of the chat template over the server's own, as vLLM merges them."""
    field = "chat_template_kwargs"
    words = getattr(body, field, None)
    if words is None:
        return None
    try:
        return served.session.options.template_words | check_template_args(field, words)
    except UnmaskError as error:
        raise wrong_request(error, field) from None


def rows_of(body: ChatRequest | CompletionRequest) -> int:
    """The rows of a request: prompts times n."""
    prompt = None if isinstance(body, ChatRequest) else body.prompt
    return (len(prompt) if isinstance(prompt, list) else 1) * (body.n or 1)


def _prompts(served: ServedModel, body: ChatRequest | CompletionRequest) -> list[Prompt]:
    """The prompts of a request; raises if one is too long."""
    infill = bool(body.infill)
    if isinstance(body, ChatRequest):
        if served.session.tokenizer.template is None:
            message = f"{served.name} has no chat template; use /v1/completions"
            raise ApiError(400, message, param="messages")
        messages = tuple(message.plain() for message in body.messages)
        served.limits.check_bytes(sum(map(_message_bytes, messages)), infill)
        control = served.session.control_tokens
        return [Prompt(messages=messages, infill=infill, control=control)]
    texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    suffix = body.suffix or ""
    for text in texts:
        served.limits.check_bytes(_bytes(text) + _bytes(suffix), infill)
    return [Prompt(text, infill=infill, suffix=suffix) for text in texts]


def _message_bytes(message: dict[str, Any]) -> int:
    calls = message.get("tool_calls")
    return _bytes(message["content"]) + (_bytes(json.dumps(calls)) if calls else 0)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _request(
    served: ServedModel, rendered: RenderedPrompt, resolved: Resolved, messages: list[str]
) -> Request:
    """The canvas of one prompt; warnings go into `messages`."""
    session = served.session
    if rendered.infill:  # checked before the canvas is made
        served.limits.check_size(0, rendered.count_masks())
    request = rendered.request(session.tokenizer, session.spec, resolved)
    masks = int((request.canvas == session.spec.mask_id).sum())
    length = masks if request.length is None else request.length
    served.limits.check_size(len(request.canvas) - masks, length)
    messages += session.doubts(rendered, request)
    return request
