"""The fields of a request: OpenAI's, and those for decoding."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from unmask.decoding.options import MOST, OPTIONS, Eos

Text = Annotated[str, Field(max_length=2**18)]
Stop = Annotated[str, Field(min_length=1, max_length=256)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Zero = Annotated[float, Field(ge=0, le=0)]

UNSUPPORTED = (
    "logit_bias", "frequency_penalty", "presence_penalty", "functions",
    "function_call", "modalities", "audio", "prediction", "best_of",
    "echo", "web_search_options",
)  # fmt: skip


def _option(name: str, **limits: Any) -> Any:
    """The field of a decoding option, described in the same words as on the command line."""
    return Field(None, description=OPTIONS[name].help, **limits)


class StrictModel(BaseModel):
    """Unknown fields and wrong types are errors; null is the same as leaving a field out."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class PlainFormat(StrictModel):
    type: Literal["text", "json_object"]


class NamedSchema(StrictModel):
    name: str = Field(max_length=256)
    description: str | None = Field(None, max_length=2**16)
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class SchemaFormat(StrictModel):
    type: Literal["json_schema"]
    json_schema: NamedSchema


Expression = Annotated[str, Field(min_length=1, max_length=4096)]
Choices = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(min_length=1, max_length=256)
]


class StructuredOutputs(StrictModel):
    """vLLM's field of this name, as far as a language keeps it."""

    json_: dict[str, Any] | None = Field(None, alias="json")
    regex: Expression | None = None
    choice: Choices | None = None
    json_object: bool | None = None


class FunctionSpec(StrictModel):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]
    description: str | None = Field(None, max_length=2**16)
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(StrictModel):
    type: Literal["function"]
    function: FunctionSpec


class FunctionName(StrictModel):
    name: str = Field(max_length=64)


class NamedTool(StrictModel):
    type: Literal["function"]
    function: FunctionName


class CalledFunction(StrictModel):
    name: str = Field(max_length=64)
    arguments: Text


class ToolCall(StrictModel):
    id: str = Field(max_length=256)
    type: Literal["function"]
    function: CalledFunction

    def plain(self) -> dict[str, Any]:
        """The call as chat templates read it, its arguments as JSON values."""
        try:
            arguments = json.loads(self.function.arguments or "{}")
        except (ValueError, RecursionError):
            arguments = self.function.arguments
        function = {"name": self.function.name, "arguments": arguments}
        return {"id": self.id, "type": self.type, "function": function}


class StreamOptions(StrictModel):
    include_usage: bool | None = Field(None, description="send the usage in a last chunk")
    include_obfuscation: Literal[False] | None = None


class CommonFields(StrictModel):
    """The fields of every request; the server's own options are the defaults."""

    model: str | None = Field(None, max_length=1024, description="id of the served model")
    rule: str | None = _option(
        "rule",
        min_length=1,
        max_length=500,
        examples=["confidence | swd(5) | eb(0.1)", "swd-block32"],
    )
    length: Count | Literal["auto"] | None = _option("length")
    longest: Count | None = _option("longest")
    max_tokens: Count | None = Field(None, description="same as `length`")
    block: Count | Literal["full"] | None = _option("block")
    eos: Eos | None = _option("eos")
    sub_block: Count | None = _option("sub_block")
    steps: Count | None = _option("steps")
    history: Count | None = _option("history")
    seed: int | None = _option("seed", ge=0, lt=2**62)  # leaves room for seed + n
    temperature: float | None = _option("temperature", ge=0, le=100)
    top_p: float | None = _option("top_p", gt=0, le=1)
    top_k: int | None = _option("top_k", ge=0, le=MOST)
    tempered: bool | None = _option("tempered")
    infill: bool | None = Field(
        None, description="fill [MASK] and [MASK*8] in the text instead of continuing it"
    )
    n: int | None = Field(
        None, ge=1, le=128, description="number of choices; they use the seeds seed, seed + 1, ..."
    )
    stop: Stop | Annotated[list[Stop], Field(max_length=16)] | None = Field(
        None, description="end the text before the first of these strings"
    )
    stream: bool | None = Field(None, description="send the text while it settles")
    stream_options: StreamOptions | None = None
    diffusing: bool | None = Field(
        None, description="with stream: send the whole canvas after each step"
    )
    response_format: PlainFormat | SchemaFormat | None = Field(
        None,
        discriminator="type",
        description="JSON of any kind, or JSON that is valid under a JSON Schema",
    )
    regex: Expression | None = Field(None, description="the answer matches this expression")
    choice: Choices | None = Field(None, description="the answer is one of these texts")
    guided_regex: Expression | None = Field(None, description="same as `regex`")
    guided_choice: Choices | None = Field(None, description="same as `choice`")
    guided_json: dict[str, Any] | None = Field(None, description="the answer fits this JSON Schema")
    structured_outputs: StructuredOutputs | None = Field(
        None, description="one of json, regex, choice and json_object"
    )
    step_map: bool | None = Field(None, description="the forward pass that fixed each token")
    trace: bool | None = Field(None, description="record every step for GET /v1/traces/{id}")

    # Accepted and ignored.
    user: str | None = Field(None, max_length=4096)
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = Field(None, max_length=64)
    safety_identifier: str | None = Field(None, max_length=4096)
    prompt_cache_key: str | None = Field(None, max_length=4096)
    parallel_tool_calls: bool | None = None

    # Not supported: only values without an effect are accepted.
    logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = None
    frequency_penalty: Zero | None = None
    presence_penalty: Zero | None = None


REQUEST_OPTIONS = tuple(name for name in OPTIONS if name in CommonFields.model_fields)
LENGTHS = ("length", "max_tokens", "max_completion_tokens")  # three names of one option


class TextPart(StrictModel):
    type: Literal["text"]
    text: Text


class ChatMessage(StrictModel):
    """One message of a chat; OpenAI's other fields of a message must be empty."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | Annotated[list[TextPart], Field(min_length=1, max_length=64)] | None = None
    name: str | None = Field(None, max_length=256)
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=128)] | None = None
    tool_call_id: str | None = Field(None, max_length=256)

    @model_validator(mode="after")
    def _has_content(self) -> ChatMessage:
        if self.content is None and not self.tool_calls:
            raise ValueError("a message needs content")
        return self

    def plain(self) -> dict[str, Any]:
        """The message as chat templates read it."""
        parts = self.content if isinstance(self.content, list) else []
        content = "".join(part.text for part in parts) if parts else self.content or ""
        role = "system" if self.role == "developer" else self.role
        message: dict[str, Any] = {"role": role, "content": content}
        if self.tool_calls:
            message["tool_calls"] = [call.plain() for call in self.tool_calls]
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        return message


class ChatRequest(CommonFields):
    """A chat to answer, or with `infill` a chat whose masks are filled."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=256)]
    max_completion_tokens: Count | None = Field(None, description="same as `length`")
    chat_template_kwargs: dict[str, Any] | None = Field(
        None, description=OPTIONS["template_args"].help, examples=[{"enable_thinking": False}]
    )
    reasoning_effort: str | None = Field(None, max_length=64)
    verbosity: str | None = Field(None, max_length=64)

    logprobs: bool | None = Field(None, description="log-probabilities of tokens at their commit")
    top_logprobs: int | None = Field(None, ge=0, le=20, description="alternatives for each token")
    tools: Annotated[list[Tool], Field(max_length=128)] | None = Field(
        None, description="functions that the answer may call"
    )
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = Field(
        None, description="whether the answer calls a function, and which"
    )
    functions: Annotated[list[Any], Field(max_length=0)] | None = None
    function_call: Literal["none", "auto"] | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1, max_length=1)] | None = None
    audio: None = None
    prediction: None = None
    web_search_options: None = None


class CompletionRequest(CommonFields):
    """Texts to continue, or with `infill` texts whose masks are filled."""

    prompt: Text | Annotated[list[Text], Field(min_length=1, max_length=128)]

    logprobs: int | None = Field(
        None, ge=0, le=20, description="log-probabilities at commit, with so many alternatives"
    )
    best_of: Literal[1] | None = None
    echo: Literal[False] | None = None
    suffix: Text | None = Field(None, description="the text behind the answer, which fills between")
