"""The HTTP routes, and the playground: a page that uses them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from time import perf_counter
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.types import ASGIApp

from unmask import __version__, embedded, page
from unmask.decoding.options import EOS_POLICIES
from unmask.rules.recipes import RECIPES
from unmask.server.choices import endings_of
from unmask.server.engine import LOG
from unmask.server.errors import ApiError, ErrorBody, of_http, of_validation
from unmask.server.guard import Guard, client_of
from unmask.server.metrics import RequestMeter, route_of
from unmask.server.prepare import ServedModel
from unmask.server.replies import ChatCompletion, ModelCard, ModelList, Reply, TextCompletion
from unmask.server.schema import ChatRequest, CompletionRequest
from unmask.server.service import Service
from unmask.server.stream import EventStream, events, unless_gone
from unmask.server.traces import MEDIA_TYPE, SUFFIX
from unmask.trace.recording.records import without_swd

STATIC = Path(__file__).parent / "static"  # the playground
PARTS = {file.name: file for kind in ("*.js", "*.css") for file in page.FOLDER.glob(kind)}
POLICY = (  # the Content-Security-Policy of the playground
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "A field is wrong; `param` names it"},
    401: {"model": ErrorBody, "description": "The API key is missing or wrong"},
    404: {"model": ErrorBody, "description": "The model is not served here"},
    408: {"model": ErrorBody, "description": "The body arrived too slowly"},
    413: {"model": ErrorBody, "description": "The body is too large"},
    421: {"model": ErrorBody, "description": "The Host header does not name this server"},
    429: {"model": ErrorBody, "description": "The queue is full; see Retry-After"},
    500: {"model": ErrorBody, "description": "Decoding failed"},
    503: {"model": ErrorBody, "description": "The server is shutting down, or its engine is stuck"},
    "4XX": {"model": ErrorBody, "description": "The request cannot be answered"},
}
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
    **ERRORS,
}


def create_app(
    service: Service, key: str | None = None, hosts: Collection[str] | None = None
) -> ASGIApp:
    """The routes of a started service, behind the guard and the request meter."""
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
    _add_monitoring(app, service)
    _add_traces(app, service)
    _add_playground(app)
    return RequestMeter(Guard(app, service.served.limits, key, hosts), service.metrics)


def _add_errors(app: FastAPI) -> None:
    async def respond(request: Request, error: Exception) -> Response:
        if isinstance(error, ApiError):
            return error.response()
        if isinstance(error, RequestValidationError):
            return of_validation(error, request.headers.get("content-type", "")).response()
        if isinstance(error, HTTPException):
            return of_http(error, request).response()
        LOG.error("a request failed", exc_info=error)
        return ApiError(500, "the server failed", code="server_failed").response()

    for kind in (ApiError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, respond)


def _add_completions(app: FastAPI, service: Service) -> None:
    @app.post("/v1/chat/completions", response_model=ChatCompletion, responses=STREAMED)
    async def chat(body: ChatRequest, request: Request) -> Response:
        """Answer a chat."""
        return await answer(service, body, request)

    @app.post("/v1/completions", response_model=TextCompletion, responses=STREAMED)
    async def completions(body: CompletionRequest, request: Request) -> Response:
        """Continue a text, or fill its masks."""
        return await answer(service, body, request)


async def answer(
    service: Service, body: ChatRequest | CompletionRequest, request: Request
) -> Response:
    """Decode a request; answer with one response or with a stream of events."""
    begin, route = perf_counter(), route_of(request.url.path)
    prepared, choices = await service.submit(body, client_of(request.scope))
    prompt_tokens = sum(choice.reader.prompt_tokens for choice in choices[:: body.n or 1])
    served, chat = service.served, isinstance(body, ChatRequest)
    tokenizer = served.session.tokenizer
    reply = Reply(chat, served.name, prepared.record(), prompt_tokens, tokenizer, prepared.tools)

    def first_text() -> None:
        service.metrics.first_text.labels(route).observe(perf_counter() - begin)

    if body.stream:
        options = body.stream_options
        usage = bool(options is not None and options.include_usage)
        stream = events(choices, reply, bool(body.diffusing), usage, first_text)
        return EventStream(stream, lambda: service.cancel(choices))
    try:
        endings = await unless_gone(request.scope, request.receive, endings_of(choices))
    finally:
        service.cancel(choices)
    return Response(status_code=499) if endings is None else JSONResponse(reply.whole(endings))


def _add_models(app: FastAPI, service: Service) -> None:
    session, limits = service.served.session, service.served.limits
    facts = {
        "family": session.checkpoint.family.name if session.checkpoint else None,
        "context": session.context,
        "chat": session.tokenizer.template is not None,
        **_defaults(service.served),
        "max_length": limits.length,
        "max_prompt": limits.prompt,
        "max_choices": limits.choices,
    }
    card = ModelCard(id=service.served.name, created=service.created, unmask=facts)

    @app.get("/v1/models", response_model=ModelList, responses=ERRORS)
    async def models() -> ModelList:
        """The served model, in a list of one."""
        return ModelList(data=[card])

    @app.get("/v1/models/{name:path}", response_model=ModelCard, responses=ERRORS)
    async def one_model(name: str) -> ModelCard:
        """The served model, by its name."""
        if name != card.id:
            message = f"the model {name[:200]!a} is not served here; {card.id!r} is"
            raise ApiError(404, message, param="model", code="model_not_found")
        return card


def _add_monitoring(app: FastAPI, service: Service) -> None:
    @app.get(
        "/health",
        responses={503: {"description": "It is shutting down, it is stuck, or it failed"}},
    )
    async def health() -> JSONResponse:
        """Whether the server takes requests and makes progress; the rows that decode and wait."""
        report = service.health()
        return JSONResponse(report, 200 if report["status"] == "ok" else 503)

    text: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}, **ERRORS}

    @app.get("/metrics", response_class=Response, responses=text)
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        return Response(service.metrics.text(), media_type=service.metrics.content_type)


def _add_traces(app: FastAPI, service: Service) -> None:
    @app.get("/v1/traces/{name}", response_class=Response, responses=ERRORS)
    async def trace(name: str) -> Response:
        """Every step of a request that asked for its trace; a running one is sent as it grows."""
        buffer = service.traces.get(name)
        stream = await service.trace_elsewhere(name) if buffer is None else buffer.follow()
        if stream is None:
            raise ApiError(
                404,
                "no trace has this id; it was dropped or never recorded",
                code="trace_not_found",
            )
        head = {"Content-Disposition": f'attachment; filename="{name}{SUFFIX}"'}
        if buffer is not None and buffer.whole:
            return Response(buffer.getvalue(), media_type=MEDIA_TYPE, headers=head)
        return StreamingResponse(stream, media_type=MEDIA_TYPE, headers=head)


def _add_playground(app: FastAPI) -> None:
    """Serve a page at the root that uses this API and the parts of `unmask page`."""

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return FileResponse(STATIC / "index.html", headers={"Content-Security-Policy": POLICY})

    @app.get("/static/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in PARTS:
            raise ApiError(404, "this file does not exist")
        return FileResponse(PARTS[name])

    app.mount("/static", StaticFiles(directory=STATIC))


def _defaults(served: ServedModel) -> dict[str, Any]:
    """The defaults of a request and the recipes it may name, for the model's card."""
    resolved, is_embedded = served.session.resolve(), served.session.name == embedded.NAME
    rule = resolved.settings.rule
    plain = without_swd(rule)
    return {
        "rule": str(rule),
        "rule_without_swd": None if plain is None else str(plain),
        "length": resolved.length,
        "block": resolved.block,
        "eos": resolved.settings.eos,
        "eos_policies": EOS_POLICIES,
        "recipes": {r.name: r.rule for r in RECIPES.values() if "{" not in r.rule},
        "examples": embedded.PROMPTS if is_embedded else (),
    }
