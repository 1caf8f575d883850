"""DecodingOptions: how to decode, as a user asks for it on any surface.

The command line, a request, a sweep file, lm_eval, transformers and SGLang all read into this one
dataclass, and `resolve` turns it into settings for a model. This module does not import torch, so
that `unmask --help` answers quickly.
"""

# ruff: noqa: RUF009  (`_option` is `dataclasses.field` with our metadata)
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from unmask.errors import RequestError, UnknownName, did_you_mean, shown
from unmask.models.recommended import GENERAL, RECOMMENDED
from unmask.models.template_args import (
    ALLOWED,
    SWITCH_WORDS,
    parse_template_args,
    spelled_template_args,
)
from unmask.models.words import CACHES, DTYPES, FAMILY_NAMES, QUANTIZED
from unmask.rules.recipes import DEFAULT_RULE, RECIPES

if TYPE_CHECKING:
    from unmask.rules.rule import Rule

MOST = 2**20  # positions, steps or tokens: far beyond the context of any model

Eos = Literal["keep", "suppress", "last", "stop", "block", "fill"]
EOS_POLICIES: tuple[str, ...] = get_args(Eos)
EOS_WORDS = {policy: f"EOS {policy}" for policy in EOS_POLICIES}  # for tables and pictures
EOS_WORDS |= {"keep": "EOS kept", "suppress": "EOS suppressed"}

Kind = Literal["text", "whole", "number", "switch", "word", "arguments"]


@dataclass(frozen=True)
class Option:
    """The values that one option takes, and what it does, in words."""

    kind: Kind
    help: str
    default: str  # in words, for help texts
    least: int = 0
    most: float = MOST
    words: tuple[str, ...] = ()  # of kind "word"; of a whole number, words that it takes besides
    metavar: str = "N"
    begins: tuple[str, ...] = ()  # of kind "text": it begins with one of these

    @property
    def allowed(self) -> str:
        """The allowed values, for messages."""
        if self.kind == "switch":
            return "true or false"
        if self.kind == "text":
            return f"a text that begins with {', '.join(self.begins)}" if self.begins else "a text"
        if self.kind == "arguments":
            return ALLOWED
        if self.kind == "word":
            return f"one of {', '.join(self.words)}"
        number = "a whole number" if self.kind == "whole" else "a number"
        limit = f"from {self.least} to {self.most:g}" if self.most < MOST else f">= {self.least}"
        return " or ".join([f"{number} {limit}", *map(repr, self.words)])

    def check(self, name: str, value: Any) -> Any:
        """The value, if the option takes it."""
        if self.kind == "arguments":
            return spelled_template_args(name, value)
        value = _plain(value)
        if not self._takes(value):
            hint = did_you_mean(value[:100], self.words) if isinstance(value, str) else ""
            raise RequestError(f"{name} must be {self._limit(value)}, got {shown(value)}{hint}")
        return value

    def _limit(self, value: Any) -> str:
        """What a wrong value should be; for a number that is too large, the upper limit alone."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return f"at most {self.most}" if number and value > self.most else self.allowed

    def parse(self, name: str, text: str) -> Any:
        """The value that a text stands for, as on a command line."""
        if self.kind == "arguments":
            return spelled_template_args(name, parse_template_args(name, text))
        value: Any = text if self.kind == "text" else text.strip()
        try:
            if self.kind == "whole" and value not in self.words:
                value = int(value)
            elif self.kind == "number":
                value = float(value)
            elif self.kind == "switch":
                value = SWITCH_WORDS[value.lower()]
        except (ValueError, KeyError):
            pass
        return self.check(name, value)

    def _takes(self, value: Any) -> bool:
        if self.kind == "switch":
            return isinstance(value, bool)
        if self.kind == "text":
            return isinstance(value, str) and bool(value) and value.startswith(self.begins or "")
        if isinstance(value, str):
            return value in self.words
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind == "whole" and not isinstance(value, int):
            return False
        return isfinite(value) and self.least <= value <= self.most


def _plain(value: Any) -> Any:
    """A number of another library, such as numpy's int64, as Python's own; else the value."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _option(kind: Kind, help: str, default: str, value: Any = None, **more: Any) -> Any:
    return field(default=value, metadata={"option": Option(kind, help, default, **more)})


@dataclass(frozen=True)
class DecodingOptions:
    """How to decode. None leaves a value to the recipe, to the task's preset or to the model."""

    rule: Rule | str = _option(
        "text",
        "rule or recipe; 'unmask rules' lists them, 'unmask models PATH' shows the recommended one",
        "recommended, the one for this model",
        value=DEFAULT_RULE,
        metavar="RULE",
    )
    length: int | Literal["auto"] | None = _option(
        "whole",
        "number of tokens to write, or auto: the canvas grows until the model is sure of its end",
        "256; 48 for the embedded model",
        least=1,
        words=("auto",),
    )
    block: int | Literal["full"] | None = _option(
        "whole",
        "positions per block, decoded left to right, or full for one window; for a block-causal "
        "model, also the width of its attention",
        "the model's, else the recipe's, else full; with the recommended rule, what belongs to it",
        least=1,
        words=("full",),
    )
    eos: Eos | None = _option(
        "word",
        "how to treat end tokens; keep: as other tokens; suppress: never write them; last: commit "
        "them last; stop: end when all before the first one is fixed; block: end with the block of "
        "the first one; fill: write end tokens behind the first one",
        "keep; with the recommended rule, what belongs to it",
        words=EOS_POLICIES,
        metavar="POLICY",
    )
    steps: int | None = _option("whole", "finish within N forward passes", "no limit", least=1)
    history: int | None = _option(
        "whole",
        "keep the K likeliest tokens of the last forward pass instead of all its logits",
        "all",
        least=1,
        metavar="K",
    )
    temperature: float | None = _option(
        "number", "sampling temperature; 0 is greedy", "0", metavar="T"
    )
    top_p: float | None = _option(
        "number", "sample from the likeliest tokens with this total probability", "1", most=1,
        metavar="P",
    )  # fmt: skip
    top_k: int | None = _option(
        "whole", "sample from the K likeliest tokens; 0 takes all", "0", metavar="K"
    )
    tempered: bool | None = _option(
        "switch", "score the distribution after temperature, top-p and top-k", "off", metavar="BOOL"
    )
    seed: int | None = _option("whole", "seed of every random choice", "0", most=2**63 - 1)
    cache: str | None = _option(
        "word", "cache of keys and values", "none", words=CACHES, metavar="NAME"
    )
    guidance: float | None = _option(
        "number",
        "scale of classifier-free guidance; doubles the work of a step",
        "off",
        metavar="SCALE",
    )
    dtype: str | None = _option(
        "word", "number format of the weights", "as stored", words=DTYPES, metavar="NAME"
    )
    quantize: str | None = _option(
        "word",
        "keep the weights of the layers in 8 or 4 bits, to need less memory",
        "off",
        words=QUANTIZED,
        metavar="NAME",
    )
    pack: bool | None = _option(
        "switch",
        "lay out the weights once for the products of the CPU; in float32 results move by rounding",
        "on only where no bit changes",
        metavar="BOOL",
    )
    mask_id: int | None = _option(
        "whole",
        "id of the mask token, if the checkpoint names a wrong one or none",
        "config.json's, else the tokenizer's, else the family's",
        metavar="ID",
    )
    family: str | None = _option(
        "word",
        "family of the checkpoint, where config.json does not say it; 'unmask models --families' "
        "lists them",
        "by config.json and the folder's name",
        words=FAMILY_NAMES,
        metavar="NAME",
    )
    sub_block: int | None = _option(
        "whole",
        "positions per part of a block, decoded left to right, for a block-causal model; it must "
        "divide the block",
        "the whole block",
        least=1,
    )
    template_args: str | None = _option(
        "arguments",
        "arguments of the chat template, as JSON or key=value: enable_thinking=false",
        "none",
        metavar="ARGS",
    )
    longest: int | None = _option(
        "whole", "with --length auto, the most tokens to write", "8 times the usual length", least=1
    )
    language: str | None = _option(
        "text",
        "what the answer must be in: regex:TEXT, choice:a,b,c, schema:JSON, or json",
        "any text",
        metavar="LANGUAGE",
        begins=("regex:", "choice:", "schema:", "json"),
    )

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if value is not None and not (name == "rule" and not isinstance(value, str)):
                object.__setattr__(self, name, option.check(name, value))
        if not isinstance(self.rule, str):
            from unmask.rules.rule import Rule

            if not isinstance(self.rule, Rule):
                raise RequestError(f"rule must be a Rule or its notation, got {shown(self.rule)}")

    def __getstate__(self) -> dict[str, Any]:
        """The fields only: a parsed rule may hold functions that do not pickle."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def read(
        cls, given: Mapping[str, Any], known: Iterable[str] | None = None, what: str = "option"
    ) -> DecodingOptions:
        """Options from names and values; a name outside `known` is an error."""
        return cls().changed(given, known, what)

    def changed(
        self, given: Mapping[str, Any], known: Iterable[str] | None = None, what: str = "option"
    ) -> DecodingOptions:
        """The same options with those of `given` that are not None."""
        names = list(OPTIONS if known is None else known)
        for name in given:
            if name not in names:
                raise UnknownName(what, name, names, OTHER_NAMES.get(name))
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def given(self) -> dict[str, Any]:
        """The options that are not None, by name; the rule as text."""
        values = {name: getattr(self, name) for name in OPTIONS}
        values["rule"] = str(self.rule)
        return {name: value for name, value in values.items() if value is not None}

    @cached_property
    def parsed_rule(self) -> Rule:
        """The rule itself; of `recommended`, the one for a model of which nothing is known."""
        from unmask.rules.rule import Rule

        if not isinstance(self.rule, str):
            return self.rule
        return Rule.parse(GENERAL.rule if self.asks_for_the_recommended else self.rule)

    @property
    def asks_for_the_recommended(self) -> bool:
        """Whether the rule is the one that is recommended for the model."""
        return isinstance(self.rule, str) and self.rule.strip() == RECOMMENDED

    @property
    def template_words(self) -> dict[str, Any]:
        """The arguments of the chat template, by name."""
        return parse_template_args("template_args", self.template_args or "{}")

    @property
    def defaults(self) -> DecodingOptions:
        """The block and length of the recipe whose name the rule is, as far as it has them."""
        recipe = RECIPES.get(self.rule.strip()) if isinstance(self.rule, str) else None
        if recipe is None:
            return DecodingOptions()
        return DecodingOptions(length=recipe.length, block=recipe.block)


OPTIONS: dict[str, Option] = {f.name: f.metadata["option"] for f in fields(DecodingOptions)}
# What other programs call our options, for messages.
OTHER_NAMES = {
    **dict.fromkeys(("max_tokens", "max_new_tokens", "max_gen_toks", "gen_length"), "length"),
    "block_length": "block",
    "block_size": "block",
    "cfg_scale": "guidance",
    **dict.fromkeys(("remasking", "alg", "algorithm", "recipe"), "rule"),
    "chat_template_kwargs": "template_args",
}
SAMPLING = ("temperature", "top_p", "top_k", "tempered")
LOADING = ("dtype", "quantize", "pack", "mask_id", "family")  # what a model is loaded with
