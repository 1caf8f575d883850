"""Errors in OpenAI's format: {"error": {"message", "type", "param", "code"}}."""

from __future__ import annotations

import json
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from unmask.errors import PartError, RequestError, RuleError, did_you_mean
from unmask.server.limits import OverLimit
from unmask.server.schema import UNSUPPORTED, ChatRequest, CompletionRequest

_KNOWN = {*ChatRequest.model_fields, *CompletionRequest.model_fields}
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """The body of every error response; in a stream, the last event."""

    error: ErrorDetail


class ApiError(Exception):
    """An error for the client, with its HTTP status."""

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
        """The HTTP response, in ASCII: a message may quote characters that UTF-8 cannot encode."""
        content = json.dumps(self.body)
        return Response(content, self.status, self.headers, media_type="application/json")


def wrong_request(error: Exception, param: str | None = None) -> ApiError:
    """The error for an invalid rule or setting."""
    return ApiError(400, str(error), param=param, code="invalid_value")


def failed_row(error: BaseException) -> ApiError:
    """The error for a row that failed while decoding."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, PartError) and error.__cause__:  # the server's own fault: only its kind
        error = error.__cause__
    if isinstance(error, RuleError):
        return ApiError(400, str(error), param="rule", code="rule_failed")
    if isinstance(error, RequestError):
        return wrong_request(error, error.part if isinstance(error, OverLimit) else None)
    return ApiError(500, f"decoding failed: {type(error).__name__}", code="decoding_failed")


def of_http(error: HTTPException, request: Request) -> ApiError:
    """The error for unknown routes and wrong methods, which Starlette raises."""
    message, asked = str(error.detail), f"{request.method} {request.url.path[:100]!a}"
    if error.status_code == 404:
        routes = [each for each in request.app.routes if getattr(each, "include_in_schema", False)]
        known = ", ".join(f"{'/'.join(sorted(each.methods))} {each.path_format}" for each in routes)
        message = f"this server has no {asked}; it has {known}"
    if error.status_code == 405:
        message = f"this server has no {asked}; use {(error.headers or {}).get('Allow', 'GET')}"
    return ApiError(error.status_code, message, headers=dict(error.headers or {}))


def of_validation(error: RequestValidationError, content_type: str) -> ApiError:
    """The error for the first wrong field; it names the field."""
    errors = error.errors()
    place = [part for part in errors[0]["loc"] if part != "body"]
    if errors[0]["type"] == "json_invalid":
        return ApiError(400, "the body is not JSON", code="invalid_json")
    if not place and "json" not in content_type.lower():
        given = f"is {content_type[:100]!a}" if content_type else "is missing"
        message = f"the header Content-Type {given}; send 'Content-Type: application/json'"
        return ApiError(415, message, code="invalid_content_type")
    if not place:
        unreadable = errors[0]["type"] == "string_unicode"
        problem = "has a field name with half a character" if unreadable else "is not a JSON object"
        return ApiError(400, f"the body {problem}", code="invalid_json")
    field = str(place[0])
    if errors[0]["type"] == "extra_forbidden" and len(place) == 1:
        hint = did_you_mean(field, _KNOWN, cutoff=0.6)
        if field in _KNOWN:
            hint = (
                f"; only {'chats' if field in ChatRequest.model_fields else 'completions'} have it"
            )
        name = ascii(field[:100])
        return ApiError(400, f"unknown field {name}{hint}", param=name[1:-1], code="unknown_field")
    if field in UNSUPPORTED:
        message = f"{field} is not supported here; leave it out"
        return ApiError(400, message, param=field, code="unsupported_parameter")
    same = [_reason(e) for e in errors if [p for p in e["loc"] if p != "body"][:1] == place[:1]]
    reason = " or ".join(dict.fromkeys(message[:1].lower() + message[1:] for message in same))
    return ApiError(400, f"{field}: {reason}", param=field, code="invalid_value")


def _reason(error: Any) -> str:
    """What is wrong inside a field; an unknown part of it is named."""
    if error["type"] == "extra_forbidden":
        return f"unknown field {str(error['loc'][-1])[:100]!a}"
    return str(error["msg"])
