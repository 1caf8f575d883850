"""Errors as OpenAI's clients know them: {"error": {"message", "type", "param", "code"}}."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from unmask.errors import RequestError, RuleError
from unmask.server.schema import UNSUPPORTED, ChatRequest, CompletionRequest

_KNOWN = {*ChatRequest.model_fields, *CompletionRequest.model_fields}
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """What every refusal and failure looks like; in a stream it is the last event."""

    error: ErrorDetail


class ApiError(Exception):
    """Something to be told to the client, with the status that fits."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(retry_after)

    @property
    def body(self) -> dict[str, Any]:
        server = self.status >= 500
        kind = "server_error" if server else _TYPES.get(self.status, "invalid_request_error")
        detail = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return {"error": detail}

    def response(self) -> Response:
        """In plain ASCII: a message may quote what no encoding can write."""
        content = json.dumps(self.body)
        return Response(content, self.status, self.headers, media_type="application/json")


def wrong_request(error: Exception, param: str | None = None) -> ApiError:
    """A rule or a setting that cannot be."""
    return ApiError(400, str(error), param=param, code="invalid_value")


def failed_row(error: Exception) -> ApiError:
    """What a client is told of a row that failed as it was decoded."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RuleError):
        return ApiError(400, str(error), param="rule", code="rule_failed")
    if isinstance(error, RequestError):
        return wrong_request(error)
    return ApiError(500, f"decoding failed: {type(error).__name__}", code="decoding_failed")


def of_http(error: HTTPException) -> ApiError:
    """Starlette's own: unknown routes, wrong methods, bodies that are no JSON."""
    return ApiError(error.status_code, str(error.detail), headers=dict(error.headers or {}))


def of_validation(error: RequestValidationError) -> ApiError:
    """The first field that is wrong, by its name."""
    errors = error.errors()
    place = [part for part in errors[0]["loc"] if part != "body"]
    if errors[0]["type"] == "json_invalid":
        return ApiError(400, "the body is no JSON", code="invalid_json")
    if not place:
        unreadable = errors[0]["type"] == "string_unicode"
        message = "a field's name holds half a character" if unreadable else "no JSON object"
        return ApiError(400, f"the body: {message}", code="invalid_json")
    field = str(place[0])
    if errors[0]["type"] == "extra_forbidden" and len(place) == 1:
        near = get_close_matches(field, _KNOWN, n=1, cutoff=0.6)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        name = ascii(field[:100])
        return ApiError(400, f"unknown field {name}{hint}", param=name[1:-1], code="unknown_field")
    if field in UNSUPPORTED:
        message = f"{field} is not supported here; leave it out"
        return ApiError(400, message, param=field, code="unsupported_parameter")
    same = [e["msg"] for e in errors if [p for p in e["loc"] if p != "body"][:1] == place[:1]]
    reason = " or ".join(dict.fromkeys(message[:1].lower() + message[1:] for message in same))
    return ApiError(400, f"{field}: {reason}", param=field, code="invalid_value")
