"""The bytes that each token of a tokenizer stands for."""

from __future__ import annotations

import json
from functools import cache

from unmask.errors import LanguageError
from unmask.models.tokenizer import Tokenizer


def spellings(tokenizer: Tokenizer, size: int) -> list[bytes | None]:
    """The bytes of the tokens 0 ... size - 1; None for control tokens and for unused numbers."""
    engine, words = tokenizer.engine, list[bytes | None]([None] * size)
    letters = _byte_letters() if _decoder(tokenizer) == "ByteLevel" else None
    added = engine.get_added_tokens_decoder()
    left_out = tokenizer.control_ids | (tokenizer.skipped or frozenset())
    for text, number in engine.get_vocab(with_added_tokens=True).items():
        if number >= size or number in left_out:
            continue
        if number in added or letters is None:
            words[number] = text.encode("utf-8", "surrogatepass")
        elif all(letter in letters for letter in text):
            words[number] = bytes(letters[letter] for letter in text)
    return words


def token_bytes(tokenizer: Tokenizer, number: int) -> bytes:
    """The bytes of one token, which may be a part of a character."""
    word, letters = tokenizer.word(number), _byte_letters()
    if "\ufffd" in tokenizer.decode([number]) and all(letter in letters for letter in word):
        return bytes(letters[letter] for letter in word)
    return word.encode()


def _decoder(tokenizer: Tokenizer) -> str:
    """The kind of the decoder: ByteLevel, or Fuse for texts that are joined as they are."""
    decoder = json.loads(tokenizer.engine.to_str()).get("decoder") or {}
    parts = decoder.get("decoders", [decoder])
    kinds = [part.get("type") for part in parts]
    if kinds not in (["ByteLevel"], ["Fuse"]):
        raise LanguageError(
            f"a language needs a byte-level tokenizer, and this one decodes by {kinds}"
        )
    return str(kinds[0])


@cache
def _byte_letters() -> dict[str, int]:
    """The letter that stands for each byte in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {chr(byte): byte for byte in plain}
    return letters | {chr(256 + place): byte for place, byte in enumerate(others)}
