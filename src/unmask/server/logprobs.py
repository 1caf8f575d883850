"""Log-probabilities in OpenAI's two formats."""

from __future__ import annotations

from typing import Any

from unmask.models.spellings import token_bytes
from unmask.models.tokenizer import Tokenizer
from unmask.text.logprobs import TokenLogprob


def chat_logprobs(entries: list[TokenLogprob | None], tokenizer: Tokenizer) -> dict[str, Any]:
    """Of a chat's message; tokens that no decision committed are left out."""

    def entry(token: int, logprob: float | None) -> dict[str, Any]:
        spelled = list(token_bytes(tokenizer, token))
        return {"token": tokenizer.word(token), "logprob": logprob, "bytes": spelled}

    content = [
        {
            **entry(each.token, each.logprob),
            "top_logprobs": [entry(token, logprob) for token, logprob in each.top],
        }
        for each in entries
        if each is not None
    ]
    return {"content": content, "refusal": None}


def text_logprobs(entries: list[TokenLogprob | None], tokenizer: Tokenizer) -> dict[str, Any]:
    """Of a completion's text; tokens that no decision committed are left out."""
    known = [each for each in entries if each is not None]
    tokens = [tokenizer.word(each.token) for each in known]
    return {
        "tokens": tokens,
        "token_logprobs": [each.logprob for each in known],
        "top_logprobs": [{tokenizer.word(token): p for token, p in each.top} for each in known],
        "text_offset": [sum(map(len, tokens[:place])) for place in range(len(tokens))],
    }
