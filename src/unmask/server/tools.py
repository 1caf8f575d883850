"""Tools: the functions that an answer may call, as OpenAI's API has them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from unmask.models.tokenizer import Tokenizer
from unmask.server.errors import ApiError
from unmask.server.schema import ChatRequest, CompletionRequest, FunctionSpec, NamedTool

NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)  # as most templates write it


@dataclass(frozen=True)
class ToolUse:
    """The functions that an answer may call. A language keeps a forced call."""

    functions: tuple[FunctionSpec, ...]
    forced: bool

    @classmethod
    def of(cls, body: ChatRequest | CompletionRequest) -> ToolUse | None:
        """The functions that a request allows; None if it allows none."""
        if not isinstance(body, ChatRequest):
            return None
        functions, choice = [tool.function for tool in body.tools or []], body.tool_choice
        names, forced = [each.name for each in functions], choice not in (None, "none", "auto")
        if len({*names}) < len(names):
            raise ApiError(400, "two tools have the same name", param="tools")
        if forced and not functions:
            raise ApiError(400, "tool_choice needs tools", param="tool_choice")
        if isinstance(choice, NamedTool):
            functions = [each for each in functions if each.name == choice.function.name]
            if not functions:
                message = f"no tool is named {choice.function.name!a}; known: {', '.join(names)}"
                raise ApiError(400, message, param="tool_choice")
        return cls(tuple(functions), forced) if functions and choice != "none" else None

    def language(self) -> str | None:
        """The notation of all calls as JSON with a name and arguments; None if none is forced."""
        if not self.forced:
            return None
        calls, parameters = [], {}
        for place, each in enumerate(self.functions):
            there = f"#/$defs/{place}"
            parameters[str(place)] = _moved(
                NOTHING if each.parameters is None else each.parameters, there
            )
            arguments = {"type": "object", "$ref": there}
            call = {"name": {"const": each.name}, "arguments": arguments}
            fixed = {"required": [*call], "additionalProperties": False}
            calls.append({"type": "object", "properties": call, **fixed})
        return f"schema:{json.dumps({'anyOf': calls, '$defs': parameters}, ensure_ascii=False)}"

    def message(self, text: str) -> dict[str, Any]:
        """The assistant's message: the calls in a text, and what else it says."""
        calls, content = self._calls(text)
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        return {**message, "tool_calls": calls} if calls else message

    def _calls(self, text: str) -> tuple[list[dict[str, Any]], str | None]:
        """The calls in a text and the text around them; none if one of them cannot be read."""
        marked = _CALL.findall(text)
        calls = [self._call(each) for each in marked or [text]]
        known = [call for call in calls if call is not None]
        if len(known) < len(calls):
            return [], text
        return known, _CALL.sub("", text).strip() or None if marked else None

    def _call(self, text: str) -> dict[str, Any] | None:
        """One call from its JSON; None if it names none of the functions."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(given, dict) or given.get("name") not in {f.name for f in self.functions}:
            return None
        arguments = given.get("arguments", given.get("parameters"))
        if not isinstance(arguments, dict):
            return None
        function = {"name": given["name"], "arguments": json.dumps(arguments, ensure_ascii=False)}
        return {"id": f"call_{uuid4().hex[:24]}", "type": "function", "function": function}


def knows_tools(tokenizer: Tokenizer) -> bool:
    """Whether the chat template tells the model of tools."""
    return not tokenizer.unread_args({"tools": []})


def tool_words(
    tools: ToolUse | None, body: ChatRequest | CompletionRequest, tokenizer: Tokenizer
) -> dict[str, Any]:
    """The tools of a request for the chat template; refused if it does not know them."""
    if not isinstance(body, ChatRequest):
        return {}
    known = knows_tools(tokenizer)
    if not known and any(each.role == "tool" or each.tool_calls for each in body.messages):
        message = "the chat template knows no tools; leave out tool messages and tool_calls"
        raise ApiError(400, message, param="messages")
    if tools is None:
        return {}
    if body.diffusing:
        message = "diffusing sends a canvas of text, not calls; leave out diffusing or tools"
        raise ApiError(400, message, param="diffusing")
    if not known and not tools.forced:
        message = (
            "the chat template knows no tools; force a call with tool_choice, or leave them out"
        )
        raise ApiError(400, message, param="tools")
    listed = [tool.model_dump(exclude_none=True) for tool in body.tools or []]
    return {"tools": listed} if known else {}


def _moved(schema: Any, root: str) -> Any:
    """A schema that stands at `root` of a larger document: its references point there."""
    if isinstance(schema, list):
        return [_moved(each, root) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: root + value.removeprefix("#")
        if name == "$ref" and isinstance(value, str) and value.startswith("#")
        else _moved(value, root)
        for name, value in schema.items()
    }
