"""A family of checkpoints as data: how its config is read and where its tensors are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from unmask.models.architecture import Architecture
from unmask.models.config import Config
from unmask.models.gpt2 import Gpt2
from unmask.models.modernbert import ModernBert
from unmask.models.transformer import Transformer

Network: TypeAlias = Transformer | ModernBert | Gpt2


@dataclass(frozen=True)
class TensorSource:
    """A tensor of a checkpoint file, or some of its rows."""

    name: str
    rows: tuple[int, int] | None = None
    height: int | None = None  # rows of the whole tensor, if only some are taken
    transposed: bool = False  # stored as [in, out], as GPT-2 does


@dataclass(frozen=True)
class Target:
    """A parameter of the network, or one slice of it."""

    name: str
    index: int | None = None


Tensors: TypeAlias = Iterator[tuple[Target, TensorSource]]


@dataclass(frozen=True)
class Family:
    """One family: its class names, config reader, tensor names, and defaults that no file holds."""

    name: str
    architectures: tuple[str, ...]
    model_types: tuple[str, ...]
    examples: str
    read: Callable[[Config], Architecture]
    tensors: Callable[[Architecture], Tensors]
    mask_id: int | None = None  # used if neither config nor tokenizer names one
    end_tokens: tuple[str, ...] = ()  # tokens that end a turn, besides EOS
    network: Callable[[Architecture], Network] = Transformer
    mask_tokens: tuple[str, ...] = ()  # spellings of a mask token that the tokenizer does not name
    named: str = ""  # this word in the folder's name tells it from others of the same class
    causal_class: bool = False  # ordinary causal models have this class too
    eos_of_tokenizer: bool = False  # the config's EOS is another token
    foreign: tuple[str, ...] = ()  # tensors of ordinary models of this class, under other names
