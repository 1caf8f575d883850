"""The tokenizer of a checkpoint folder: text to token ids and back, and chats to text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine
from tokenizers.models import BPE

from unmask.errors import ModelError, RequestError
from unmask.models.checkpoint import read_optional
from unmask.models.quoting import Quotes
from unmask.models.template_args import check_template_args
from unmask.models.untrusted import read_text

if TYPE_CHECKING:
    from unmask.models.chat_template import ChatTemplate

Message = Mapping[str, Any]

# How Qwen2 and Dream split text before merging: contractions, words, single digits, the rest.
_QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_ROLES = tuple(f"{role}_token" for role in ("bos", "eos", "mask", "pad", "unk", "cls", "sep"))


@dataclass(frozen=True)
class Tokenizer:
    """A byte-pair tokenizer with the special tokens and the chat template of its model."""

    engine: Engine
    roles: dict[str, str]  # bos_token -> "<|startoftext|>" and so on
    template: str | None = None
    skipped: frozenset[int] | None = None  # ids that skip_special drops; None: all special tokens
    folder: str = ""

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Read tokenizer.json, or vocab.json and merges.txt."""
        file = folder / "tokenizer_config.json"
        # Old savers name the special tokens in a file of their own alone.
        named = {key: value for key, value in read_optional(file).items() if value is not None}
        config = read_optional(folder / "special_tokens_map.json") | named
        try:
            roles = {role: _content(config[role]) for role in _ROLES if config.get(role)}
            template = _template(folder, config)
            engine = _engine(folder, config)
            skipped = _skipped(folder, config, roles, engine)
        except ModelError:
            raise
        except Exception as error:  # a field of another kind than it should have
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise ModelError(
                f"{file} or a file beside it is not a tokenizer's ({reason})"
            ) from None
        return cls(engine, roles, template, skipped, str(folder))

    @classmethod
    def of_transformers(cls, tokenizer: Any) -> Tokenizer:
        """A fast tokenizer of transformers, with its special tokens and its chat template."""
        engine = getattr(tokenizer, "backend_tokenizer", None)
        if engine is None:
            raise ModelError(
                f"{type(tokenizer).__name__} is not a fast tokenizer of transformers; load it with "
                "AutoTokenizer.from_pretrained(..., use_fast=True)"
            )
        roles = {role: str(text) for role in _ROLES if (text := getattr(tokenizer, role, None))}
        return cls(engine, roles, tokenizer.chat_template, folder=tokenizer.name_or_path)

    @property
    def size(self) -> int:
        """The largest id plus one."""
        return max(self.engine.get_vocab(with_added_tokens=True).values()) + 1

    def token_id(self, name: str) -> int | None:
        """The id of a token, or of a role such as `mask_token`."""
        token: int | None = self.engine.token_to_id(self.roles.get(name, name))
        return token

    @property
    def newline_id(self) -> int | None:
        """The token of a line break; None if it is not a token of its own."""
        ids = self.encode("\n")
        return ids[0] if len(ids) == 1 and self.decode(ids) == "\n" else None

    def encode(self, text: str) -> list[int]:
        """Text to token ids; special tokens in the text are recognised, and none are added."""
        ids: list[int] = self.engine.encode(text, add_special_tokens=False).ids
        return ids

    @cached_property
    def control_ids(self) -> frozenset[int]:
        """Special tokens, and other added tokens that are written like a marker, `<think>`."""
        added = self.engine.get_added_tokens_decoder()
        return frozenset(number for number, token in added.items() if _is_control(token))

    def control_tokens(self, text: str) -> list[tuple[int, int, int]]:
        """The control tokens in a text: their ids, and where each begins and ends."""
        encoding = self.engine.encode(text, add_special_tokens=False)
        spans = zip(encoding.ids, encoding.offsets, strict=True)
        unknown = self.token_id("unk_token")  # also stands for words that nobody knows
        return [
            (token, *span)
            for token, span in spans
            if token in self.control_ids
            and (token != unknown or text[slice(*span)] == self.roles["unk_token"])
        ]

    def encode_plain(self, text: str) -> list[int]:
        """Text to token ids; control tokens in the text are encoded as any other text."""
        ids: list[int] = self._plain_engine.encode(text, add_special_tokens=False).ids
        return ids

    @cached_property
    def _plain_engine(self) -> Engine:
        engine = Engine.from_str(self.engine.to_str())
        for token in engine.get_added_tokens_decoder().values():
            if _is_control(token) and not token.special:  # only special tokens can be left alone
                token.special = True
                engine.add_special_tokens([token])
        engine.encode_special_tokens = True
        return engine

    def decode(self, ids: Sequence[int], skip_special: bool = False) -> str:
        """Token ids to text; ids without a token (padding rows of the embedding) are left out."""
        known = [number for number in ids if self.engine.id_to_token(number) is not None]
        if skip_special and self.skipped is not None:
            known = [number for number in known if number not in self.skipped]
            skip_special = False
        text: str = self.engine.decode(known, skip_special_tokens=skip_special)
        return text

    def word(self, number: int) -> str:
        """One token as readable text; a part of a character as the vocabulary spells it."""
        known = self._words
        if number not in known:
            text = self.decode([number])
            whole = bool(text) and "\ufffd" not in text
            known[number] = text if whole else self.engine.id_to_token(number) or f"#{number}"
        return known[number]

    @cached_property
    def _words(self) -> dict[int, str]:
        """Results of `word`, by token id."""
        return {}

    def unknown(self, text: str) -> list[str]:
        """The words without a token in this vocabulary; none if the tokenizer is byte-level."""
        unknown = self.token_id("unk_token")
        if unknown is None:
            return []
        encoding = self.engine.encode(text, add_special_tokens=False)
        spans = zip(encoding.ids, encoding.offsets, strict=True)
        pieces = (text[slice(*span)] for token, span in spans if token == unknown)
        words = dict.fromkeys(piece.strip() or piece for piece in pieces)
        return [word for word in words if word != self.roles["unk_token"]]

    def render(
        self,
        messages: Sequence[Message],
        template_args: Mapping[str, Any] | None = None,
        add_generation_prompt: bool = True,
    ) -> str:
        """A chat as text, by the model's chat template; `template_args` are its other words."""
        if self.template is None:
            raise RequestError(
                f"{self.folder or 'this tokenizer'} has no chat template; give the prompt as "
                "plain text (--raw)"
            )
        for message in messages:
            if not {"role", "content"} <= set(message):
                raise RequestError(f"a message needs 'role' and 'content', got {dict(message)}")
        words = {"messages": list(messages), "add_generation_prompt": add_generation_prompt}
        given = check_template_args("template_args", template_args or {})
        if taken := [name for name in given if name in _ROLES]:
            raise RequestError(f"template_args: {taken[0]!r} is the tokenizer's own; leave it out")
        return self._compiled.render({**self.roles, **given, **words})

    def has_template(self) -> bool:
        """Whether the model has a chat template; raises ModelError if it is broken."""
        return self.template is not None and self._compiled is not None

    def unread_args(self, template_args: Mapping[str, Any]) -> list[str]:
        """The names of arguments that the chat template does not use."""
        if not template_args:
            return []
        return [name for name in template_args if name not in self._compiled.names]

    def encode_chat(
        self,
        messages: Sequence[Message],
        template_args: Mapping[str, Any] | None = None,
        control_tokens: bool = False,
    ) -> list[int]:
        """A chat as token ids, up to the point where the answer begins.

        Control tokens in the messages, such as `<|eot_id|>`, are text, unless `control_tokens`
        lets them be tokens. Those of the chat template are always tokens.
        """
        quotes = Quotes()
        chat = messages if control_tokens else quotes.hide(self, messages)
        return quotes.encode(self, self.render(chat, template_args))

    @cached_property
    def _compiled(self) -> ChatTemplate:
        from unmask.models.chat_template import ChatTemplate

        return ChatTemplate(self.template or "", self.folder)


def _engine(folder: Path, config: dict[str, Any]) -> Engine:
    file = folder / "tokenizer.json"
    if not file.is_file():
        return _byte_level_bpe(folder, config)
    try:
        return Engine.from_file(str(file))
    except Exception as error:  # the library raises a bare Exception
        raise ModelError(f"{file}: {error}") from None


def _skipped(
    folder: Path, config: dict[str, Any], roles: dict[str, str], engine: Engine
) -> frozenset[int] | None:
    """The ids that `skip_special` drops; transformers' slow tokenizers drop named tokens only."""
    remote = (config.get("auto_map") or {}).get("AutoTokenizer") or [None, True]
    if remote[-1] is not None and (folder / "tokenizer.json").is_file():
        return None
    named = {*roles.values(), *map(_content, config.get("additional_special_tokens") or [])}
    numbers = (engine.token_to_id(name) for name in named)
    return frozenset(number for number in numbers if number is not None)


def _byte_level_bpe(folder: Path, config: dict[str, Any]) -> Engine:
    """The tokenizer of Qwen2 and Dream (NFC, split, byte-level BPE), or GPT-2's if it says so."""
    vocabulary, merges = folder / "vocab.json", folder / "merges.txt"
    for file in (vocabulary, merges):
        if not file.is_file():
            raise ModelError(f"{folder} has neither tokenizer.json nor {file.name}")
    try:
        engine = Engine(BPE.from_file(str(vocabulary), str(merges)))
    except Exception as error:  # the library raises a bare Exception
        raise ModelError(f"{folder}: {error}") from None
    if str(config.get("tokenizer_class")).startswith("GPT2"):
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        engine.normalizer = normalizers.NFC()
        engine.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_QWEN_SPLIT), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    engine.decoder = decoders.ByteLevel()
    added = sorted((int(number), token) for number, token in _added(folder, config).items())
    for number, token in added:
        engine.add_special_tokens([token])
        if engine.token_to_id(token.content) != number:
            raise ModelError(
                f"{folder}: the added token {token.content!r} has id {number} in its files, but "
                f"would get {engine.token_to_id(token.content)}"
            )
    return engine


def _added(folder: Path, config: dict[str, Any]) -> dict[str, AddedToken]:
    listed = config.get("added_tokens_decoder")
    if listed:
        flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
        return {
            number: AddedToken(token["content"], **{k: token[k] for k in flags if k in token})
            for number, token in listed.items()
        }
    file = folder / "added_tokens.json"
    plain = read_optional(file)
    return {str(number): AddedToken(name, special=True) for name, number in plain.items()}


def _template(folder: Path, config: dict[str, Any]) -> str | None:
    file = folder / "chat_template.jinja"
    if os.path.lexists(file):
        return read_text(file, 1 << 20, ModelError)
    template = config.get("chat_template")
    if isinstance(template, list):  # several, each with a name
        template = next((t["template"] for t in template if t.get("name") == "default"), None)
    if template is not None and not isinstance(template, str):
        raise ModelError(f"{folder}: chat_template must be a text, got {type(template).__name__}")
    return template


def _is_control(token: AddedToken) -> bool:
    text: str = token.content.strip()
    return bool(text) and (token.special or not (text[0].isalnum() or text[-1].isalnum()))


def _content(token: Any) -> str:
    return str(token["content"] if isinstance(token, dict) else token)
