"""The language that a request asks for, by any of the names that clients use."""

from __future__ import annotations

import json

from unmask.languages.notation import choice
from unmask.server.errors import ApiError
from unmask.server.schema import ChatRequest, CompletionRequest, SchemaFormat
from unmask.server.tools import ToolUse


def language_of(body: ChatRequest | CompletionRequest, tools: ToolUse | None) -> str | None:
    """The notation of the request's language, such as that of a forced call; None for any text."""
    given = _given(body, tools)
    if len(given) > 1:
        names = " and ".join(given)
        raise ApiError(400, f"give one of {names}, not both", param=list(given)[-1])
    return next(iter(given.values()), None)


def language_field(body: ChatRequest | CompletionRequest, tools: ToolUse | None) -> str | None:
    """The field of a request that names its language; None if it has none."""
    field = next(iter(_given(body, tools)), None)
    return "tools" if field == "tool_choice" else field


def _given(body: ChatRequest | CompletionRequest, tools: ToolUse | None) -> dict[str, str]:
    """The notations of a request, by their fields."""
    try:
        asked: dict[str, str | None] = {
            "response_format": _format(body),
            **{name: _regex(getattr(body, name)) for name in ("regex", "guided_regex")},
            **{name: _choice(getattr(body, name)) for name in ("choice", "guided_choice")},
            "guided_json": None if body.guided_json is None else _schema(body.guided_json),
            **_structured(body),
            "tool_choice": None if tools is None else tools.language(),
        }
    except RecursionError:
        raise ApiError(400, "a schema nests too deeply; use a flatter one") from None
    return {name: notation for name, notation in asked.items() if notation is not None}


def _format(body: ChatRequest | CompletionRequest) -> str | None:
    form = body.response_format
    if form is None or form.type == "text":
        return None
    return _schema(form.json_schema.schema_) if isinstance(form, SchemaFormat) else "json"


def _structured(body: ChatRequest | CompletionRequest) -> dict[str, str | None]:
    """The parts of vLLM's structured_outputs, by their names."""
    asked = body.structured_outputs
    if asked is None:
        return {}
    parts = {
        "json": None if asked.json_ is None else _schema(asked.json_),
        "regex": _regex(asked.regex),
        "choice": _choice(asked.choice),
        "json_object": "json" if asked.json_object else None,
    }
    if not any(parts.values()):
        message = f"structured_outputs is empty; give one of {', '.join(parts)}"
        raise ApiError(400, message, param="structured_outputs")
    return {f"structured_outputs.{name}": notation for name, notation in parts.items()}


def _schema(schema: object) -> str:
    return f"schema:{json.dumps(schema, ensure_ascii=False)}"


def _regex(expression: str | None) -> str | None:
    return None if expression is None else f"regex:{expression}"


def _choice(texts: list[str] | None) -> str | None:
    return None if texts is None else choice(texts)
