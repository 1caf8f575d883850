"""The routes."""

from __future__ import annotations

from collections.abc import Collection
from time import perf_counter
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp

from unmask import __version__
from unmask.server.engine import LOG
from unmask.server.errors import ApiError, ErrorBody, of_http, of_validation
from unmask.server.guard import Guard
from unmask.server.metrics import Measured, Metrics, route_of
from unmask.server.playground import add_playground, habits
from unmask.server.replies import ChatCompletion, Model, Models, Reply, TextCompletion
from unmask.server.schema import ChatRequest, CompletionRequest
from unmask.server.service import Service, endings_of, unless
from unmask.server.stream import GONE, EventStream, events, gone
from unmask.server.traces import MEDIA_TYPE, SUFFIX

REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "A field that is wrong; `param` names it"},
    401: {"model": ErrorBody, "description": "No key, or a wrong one"},
    404: {"model": ErrorBody, "description": "No such model"},
    408: {"model": ErrorBody, "description": "The body came too slowly"},
    413: {"model": ErrorBody, "description": "The body is too large"},
    421: {"model": ErrorBody, "description": "A name that is not this server's"},
    429: {"model": ErrorBody, "description": "All places are taken; see Retry-After"},
    500: {"model": ErrorBody, "description": "Decoding failed"},
    503: {"model": ErrorBody, "description": "The server is going down; see Retry-After"},
    "4XX": {"model": ErrorBody, "description": "Not a request that can be answered"},
}
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
    **REFUSED,
}


def create_app(
    service: Service, key: str | None = None, hosts: Collection[str] | None = None
) -> ASGIApp:
    """The server of a started service: routes, guarded and measured."""
    app = FastAPI(
        title="unmask",
        version=__version__,
        summary="Masked diffusion language models behind OpenAI's API.",
        docs_url=None,
        redoc_url=None,
    )
    _add_errors(app)
    _add_completions(app, service)
    _add_models(app, service)
    _add_watching(app, service)
    add_playground(app)
    return Measured(Guard(app, service.served.limits, key, hosts), service.metrics)


def _add_errors(app: FastAPI) -> None:
    async def told(_: Request, error: Exception) -> Response:
        if isinstance(error, ApiError):
            return error.response()
        if isinstance(error, RequestValidationError):
            return of_validation(error).response()
        if isinstance(error, HTTPException):
            return of_http(error).response()
        LOG.error("a request has failed", exc_info=error)
        return ApiError(500, "the server has failed", code="server_failed").response()

    for kind in (ApiError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, told)


def _add_completions(app: FastAPI, service: Service) -> None:
    @app.post("/v1/chat/completions", response_model=ChatCompletion, responses=STREAMED)
    async def chat(body: ChatRequest, request: Request) -> Response:
        """Answer a chat."""
        return await answer(service, body, request)

    @app.post("/v1/completions", response_model=TextCompletion, responses=STREAMED)
    async def completions(body: CompletionRequest, request: Request) -> Response:
        """Continue a text as it is, or fill its masks."""
        return await answer(service, body, request)


async def answer(
    service: Service, body: ChatRequest | CompletionRequest, request: Request
) -> Response:
    """Decode what a body asks for; whole, or as a stream."""
    begin, route = perf_counter(), route_of(request.url.path)
    prepared = await service.prepare(body)
    choices = service.submit(prepared, bool(body.stream), bool(body.trace))
    prompt_tokens = sum(choice.reader.prompt_tokens for choice in choices[:: body.n or 1])
    reply = Reply(
        isinstance(body, ChatRequest), service.served.name, prepared.record(), prompt_tokens
    )
    if body.stream:
        options = body.stream_options
        usage = bool(options is not None and options.include_usage)
        first = _Once(service.metrics, route, begin)
        stream = events(choices, reply, bool(body.diffusing), usage, first)
        return EventStream(stream, lambda: service.cancel(choices))
    try:
        endings = await unless(gone(request.receive), endings_of(choices))
    finally:
        service.cancel(choices)
    if endings is None:
        request.scope[GONE] = True
        return Response(status_code=499)
    return JSONResponse(reply.whole(endings))


class _Once:
    """Notes the time of the first text, and no later ones."""

    def __init__(self, metrics: Metrics, route: str, begin: float) -> None:
        self.metrics, self.route, self.begin = metrics, route, begin
        self.noted = False

    def __call__(self) -> None:
        if not self.noted:
            self.noted = True
            seconds = perf_counter() - self.begin
            self.metrics.first_text.labels(self.route).observe(seconds)


def _add_models(app: FastAPI, service: Service) -> None:
    shape, limits = service.served.shape, service.served.limits
    known = {
        "family": shape.family.name,
        "context": shape.context,
        "block": shape.spec.block,
        "chat": shape.tokenizer.template is not None,
        **habits(service.served),
        "max_length": limits.length,
        "max_prompt": limits.prompt,
        "max_choices": limits.choices,
    }
    model = Model(id=service.served.name, created=service.created, unmask=known)

    @app.get("/v1/models", response_model=Models, responses=REFUSED)
    async def models() -> Models:
        """The model that is served."""
        return Models(data=[model])

    @app.get("/v1/models/{name:path}", response_model=Model, responses=REFUSED)
    async def one_model(name: str) -> Model:
        """The same by its name."""
        if name != model.id:
            message = f"the model {name[:200]!a} is not served here; {model.id!r} is"
            raise ApiError(404, message, param="model", code="model_not_found")
        return model


def _add_watching(app: FastAPI, service: Service) -> None:
    @app.get("/health", responses={503: {"description": "It goes down, or it has failed"}})
    async def health() -> JSONResponse:
        """Whether requests are taken, and how many rows decode and wait."""
        found = service.health()
        return JSONResponse(found, 200 if found["status"] == "ok" else 503)

    text: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}, **REFUSED}

    @app.get("/metrics", response_class=Response, responses=text)
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(service.metrics.text(), media_type=service.metrics.content_type)

    @app.get("/v1/traces/{name}", response_class=Response, responses=REFUSED)
    async def trace(name: str) -> Response:
        """Every step of a request that asked for its trace; while it runs, as it goes on."""
        sheet = service.traces.get(name)
        found = await service.trace_elsewhere(name) if sheet is None else sheet.follow()
        if found is None:
            raise ApiError(404, "no such trace is kept", code="trace_not_found")
        head = {"Content-Disposition": f'attachment; filename="{name}{SUFFIX}"'}
        if sheet is not None and sheet.whole:
            return Response(sheet.getvalue(), media_type=MEDIA_TYPE, headers=head)
        return StreamingResponse(found, media_type=MEDIA_TYPE, headers=head)
