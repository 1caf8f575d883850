"""Responses in OpenAI's format, whole and in chunks, with the cost of decoding added."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, Field

from unmask.models.tokenizer import Tokenizer
from unmask.server.choices import Ending
from unmask.server.logprobs import chat_logprobs, text_logprobs
from unmask.server.schema import ToolCall
from unmask.server.tools import ToolUse

Reason = Literal["stop", "length", "tool_calls"]


class Usage(BaseModel):
    """Tokens and forwards, summed over the choices."""

    prompt_tokens: int
    completion_tokens: int = Field(description="tokens before the first end token")
    total_tokens: int
    nfe: int = Field(description="forward passes over the full window")
    nfe_eos: int = Field(
        description="forward passes until everything before the end token was committed"
    )
    written: int = Field(description="all committed tokens, also after the end token")


class ChoiceCost(BaseModel):
    """The cost of one choice."""

    nfe: int
    nfe_eos: int
    tokens: int
    written: int
    trace: str | None = Field(
        None, description="id for GET /v1/traces/{id}, if the request set `trace`"
    )
    ids: list[int] | None = Field(None, description="the tokens, if the request set `step_map`")
    step_map: list[int] | None = Field(None, description="the forward that fixed each token")


class AssistantMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    tool_calls: list[ToolCall] | None = None


class ChatChoice(BaseModel):
    index: int
    message: AssistantMessage
    finish_reason: Reason
    logprobs: dict[str, Any] | None = None
    unmask: ChoiceCost


class TextChoice(BaseModel):
    index: int
    text: str
    finish_reason: Reason
    logprobs: dict[str, Any] | None = None
    unmask: ChoiceCost


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    unmask: dict[str, Any] = Field(description="the settings that were used, and warnings")


class TextCompletion(BaseModel):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage
    unmask: dict[str, Any] = Field(description="the settings that were used, and warnings")


class ModelCard(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "unmask"
    unmask: dict[str, Any] = Field(
        description="facts about the model, defaults and limits of requests"
    )


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelCard]


@dataclass
class Reply:
    """One response: its id and the fields that all of its chunks share."""

    chat: bool
    model: str
    settings: dict[str, Any]
    prompt_tokens: int
    tokenizer: Tokenizer
    tools: ToolUse | None = None
    id: str = field(init=False)
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        self.id = f"{'chatcmpl' if self.chat else 'cmpl'}-{uuid4().hex}"

    def usage(self, endings: Sequence[Ending]) -> dict[str, int]:
        completion = sum(ending.tokens for ending in endings)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
            "nfe": sum(ending.nfe for ending in endings),
            "nfe_eos": sum(ending.nfe_eos for ending in endings),
            "written": sum(ending.written for ending in endings),
        }

    def whole(self, endings: Sequence[Ending]) -> dict[str, Any]:
        """The body of a response that is not streamed."""
        choices = [self._choice(index, ending) for index, ending in enumerate(endings)]
        head = self._head("chat.completion" if self.chat else "text_completion")
        usage = self.usage(endings)
        return {**head, "choices": choices, "usage": usage, "unmask": self.settings}

    def chunk(
        self, index: int, content: str | None, ending: Ending | None = None, **more: Any
    ) -> dict[str, Any]:
        """A piece of one choice; the last piece has the ending."""
        choice: dict[str, Any] = {"index": index}
        if self.chat:
            choice["delta"] = {} if content is None else {"content": content}
        else:
            choice["text"] = content or ""
        logprobs = None if ending is None else self._logprobs(ending)
        choice |= {"finish_reason": ending.reason if ending else None, "logprobs": logprobs}
        if ending is not None:
            choice["unmask"] = ending.record()
        return {**self._head(self._chunk_kind), "choices": [choice], **more}

    def opening(self, index: int, trace: str | None = None) -> dict[str, Any]:
        """The first chunk of a choice: the role, the settings and the id of the trace."""
        chunk = self.chunk(index, "", unmask=self.settings)
        if trace is not None:
            chunk["choices"][0]["unmask"] = {"trace": trace}
        if self.chat:
            chunk["choices"][0]["delta"]["role"] = "assistant"
        return chunk

    def closing(self, endings: Sequence[Ending]) -> dict[str, Any]:
        """The chunk with the usage, after all choices."""
        return {**self._head(self._chunk_kind), "choices": [], "usage": self.usage(endings)}

    @property
    def _chunk_kind(self) -> str:
        return "chat.completion.chunk" if self.chat else "text_completion"

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _choice(self, index: int, ending: Ending) -> dict[str, Any]:
        content: dict[str, Any] = {"text": ending.text}
        reason = ending.reason
        if self.chat:
            content = {"message": self.message(ending)}
            reason = "tool_calls" if "tool_calls" in content["message"] else reason
        rest = {"finish_reason": reason, "logprobs": self._logprobs(ending)}
        return {"index": index, **content, **rest, "unmask": ending.record()}

    def message(self, ending: Ending) -> dict[str, Any]:
        """The assistant's message; calls of tools are read from the text."""
        if self.tools is not None:
            return self.tools.message(ending.text)
        return {"role": "assistant", "content": ending.text, "refusal": None}

    def _logprobs(self, ending: Ending) -> dict[str, Any] | None:
        """The log-probabilities of a choice, if they were asked for; in a stream at its end."""
        if ending.logprobs is None:
            return None
        form = chat_logprobs if self.chat else text_logprobs
        return form(ending.logprobs, self.tokenizer)
