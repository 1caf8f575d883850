"""What a request may hold: OpenAI's fields, and ours for decoding."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from unmask.decoding.options import MOST, Eos

Text = Annotated[str, Field(max_length=2**18)]
Stop = Annotated[str, Field(min_length=1, max_length=256)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Zero = Annotated[float, Field(ge=0, le=0)]

UNSUPPORTED = (
    "logprobs", "top_logprobs", "logit_bias", "frequency_penalty", "presence_penalty", "tools",
    "tool_choice", "functions", "function_call", "response_format", "modalities", "audio",
    "prediction", "best_of", "echo", "suffix", "web_search_options",
)  # fmt: skip


class Strict(BaseModel):
    """Unknown fields and wrong types are errors; null is as good as leaving a field out."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class StreamOptions(Strict):
    include_usage: bool | None = Field(None, description="a last chunk with the usage")
    include_obfuscation: Literal[False] | None = None


class Common(Strict):
    """What every request may say; what it does not is as the server was started."""

    model: str | None = Field(None, max_length=1024, description="the served model's id")
    rule: str | None = Field(
        None,
        min_length=1,
        max_length=500,
        description="a decoding rule or a recipe's name",
        examples=["confidence | swd(5) | eb(0.1)", "swd-block32"],
    )
    length: Count | None = Field(None, description="tokens to write")
    max_tokens: Count | None = Field(None, description="the same as length")
    block: Count | Literal["full"] | None = Field(None, description="positions per block")
    eos: Eos | None = Field(None, description="what the end token means")
    steps: Count | None = Field(None, description="finish within so many forwards")
    seed: int | None = Field(None, ge=0, lt=2**62, description="of every random choice (0)")
    temperature: float | None = Field(None, ge=0, le=100, description="0 is greedy, the default")
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=0, le=MOST, description="0 keeps all tokens")
    tempered: bool | None = Field(None, description="score what temperature leaves")
    infill: bool | None = Field(
        None, description="fill [MASK], or [MASK*8], wherever the text has it"
    )
    n: int | None = Field(None, ge=1, le=128, description="choices, with seeds seed, seed + 1, ...")
    stop: Stop | Annotated[list[Stop], Field(max_length=16)] | None = Field(
        None, description="the text ends before the first of these"
    )
    stream: bool | None = Field(None, description="send the text as it becomes final")
    stream_options: StreamOptions | None = None
    diffusing: bool | None = Field(
        None, description="with stream: the whole canvas at each step; content replaces"
    )
    trace: bool | None = Field(None, description="keep every step for GET /v1/traces/{id}")

    # Taken and not used: they say who asks, not for what.
    user: str | None = Field(None, max_length=4096)
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = Field(None, max_length=64)
    safety_identifier: str | None = Field(None, max_length=4096)
    prompt_cache_key: str | None = Field(None, max_length=4096)
    parallel_tool_calls: bool | None = None

    # Not supported: only the values that ask for nothing are taken.
    logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = None
    frequency_penalty: Zero | None = None
    presence_penalty: Zero | None = None


class TextPart(Strict):
    type: Literal["text"]
    text: Text


class Message(Strict):
    """One turn of a chat; what an assistant's turn of OpenAI's holds besides must be empty."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[TextPart], Field(min_length=1, max_length=64)]
    name: str | None = Field(None, max_length=256)
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None
    tool_calls: Annotated[list[Any], Field(max_length=0)] | None = None

    def plain(self) -> dict[str, str]:
        """As chat templates know it."""
        role = "system" if self.role == "developer" else self.role
        if isinstance(self.content, str):
            return {"role": role, "content": self.content}
        return {"role": role, "content": "".join(part.text for part in self.content)}


class PlainFormat(Strict):
    type: Literal["text"]


class ChatRequest(Common):
    """A chat to be answered, or with `infill` one whose masks are filled."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=256)]
    max_completion_tokens: Count | None = Field(None, description="the same as length")
    reasoning_effort: str | None = Field(None, max_length=64)
    verbosity: str | None = Field(None, max_length=64)

    logprobs: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    functions: Annotated[list[Any], Field(max_length=0)] | None = None
    function_call: Literal["none", "auto"] | None = None
    response_format: PlainFormat | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1, max_length=1)] | None = None
    audio: None = None
    prediction: None = None
    web_search_options: None = None

    @property
    def asked_length(self) -> dict[str, int | None]:
        return {
            "length": self.length,
            "max_tokens": self.max_tokens,
            "max_completion_tokens": self.max_completion_tokens,
        }


class CompletionRequest(Common):
    """A text, or several, to be continued as they are, or with `infill` filled."""

    prompt: Text | Annotated[list[Text], Field(min_length=1, max_length=128)]

    logprobs: None = None
    best_of: Literal[1] | None = None
    echo: Literal[False] | None = None
    suffix: None = None

    @property
    def asked_length(self) -> dict[str, int | None]:
        return {"length": self.length, "max_tokens": self.max_tokens}
