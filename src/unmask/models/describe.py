"""Reads everything in a checkpoint folder except the weights."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from unmask import embedded
from unmask.errors import ModelError, shown
from unmask.models.architecture import Architecture
from unmask.models.checkpoint import (
    KEPT_IN_FLOAT32,
    STORED,
    open_file,
    read_json,
    read_optional,
)
from unmask.models.config import Config
from unmask.models.denoiser import MOST_BLOCK, ModelSpec
from unmask.models.families import family_of, in_blocks, is_ambiguous, is_guessed
from unmask.models.family import Family
from unmask.models.memory import weight_bytes
from unmask.models.quantized import refuse_quantized
from unmask.models.recommended import recommendation
from unmask.models.stored import StoredModel
from unmask.models.tokenizer import Tokenizer

MOST_EXPERTS = 1 << 16


@dataclass(frozen=True)
class Description:
    """The config, tokenizer and special tokens of a checkpoint folder."""

    folder: Path
    config: Config
    family: Family
    arch: Architecture
    tokenizer: Tokenizer
    spec: ModelSpec
    mask_from: str  # where mask_id comes from: user, config, tokenizer, spelling or family

    @property
    def context(self) -> int | None:
        """The longest sequence that the config allows; None if it does not say."""
        for key in ("max_sequence_length", "max_position_embeddings", "n_positions"):
            if self.config.get(key):
                return self.config.whole(key)
        return None

    @property
    def unsaid_family(self) -> str | None:
        """The family's name if the config alone does not tell it."""
        return self.family.name if is_ambiguous(self.family) else None


@dataclass(frozen=True)
class Weights:
    """Sizes and dtypes of the weights, from the headers of their files."""

    parameters: int
    active: int  # parameters that one token uses; fewer if there are experts
    dtypes: tuple[str, ...]  # as stored, the most common first
    files: tuple[Path, ...]
    size: int  # of the files, in bytes
    in_float32: int  # parameters that stay in float32 in every dtype
    inner: int  # parameters of the layers, which `quantize` makes smaller

    def memory(self, precision: str) -> int:
        """The bytes of the weights in float32, bfloat16, int8 or int4."""
        outer = self.parameters - self.inner - self.in_float32
        return weight_bytes(self.inner, outer, precision) + self.in_float32 * 4


def describe(
    folder: Path, mask_id: int | None = None, block: int | None = None, family: str | None = None
) -> Description:
    """Read the config and the tokenizer of a folder; raises the errors that `load` raises."""
    config = Config(read_json(folder / "config.json"), str(folder / "config.json"), family)
    family_of(config, family, masked=True)  # an unknown class is said before a broken tokenizer
    refuse_quantized(config, folder)
    tokenizer = Tokenizer.load(folder)
    chosen = _family(folder, config, tokenizer, mask_id, family)
    if family is None and block is not None:
        chosen = in_blocks(chosen)
    arch = chosen.read(config)
    if arch.experts is not None and arch.layers * arch.experts.count > MOST_EXPERTS:
        raise ModelError(
            f"{config.file}: {arch.layers} layers of {arch.experts.count} experts; all layers may "
            f"have at most {MOST_EXPERTS} together"
        )
    if block is not None and (not isinstance(block, int) or not 1 <= block <= MOST_BLOCK):
        raise ModelError(f"block must be a whole number from 1 to {MOST_BLOCK}, got {shown(block)}")
    if block is not None and arch.block is None:
        raise ModelError(
            f"{chosen.name} attends to everything at once; give the block to decode(), not load()"
        )
    mask, mask_from = _mask(config, chosen, tokenizer, mask_id)
    if not isinstance(mask, int) or not 0 <= mask < arch.vocab_size:
        raise ModelError(
            f"{folder}: mask token {shown(mask)} lies outside the vocabulary "
            f"0..{arch.vocab_size - 1}; give the right one as mask_id"
        )
    ends = _ends(folder, config, chosen, tokenizer, arch.vocab_size)
    name = embedded.NAME if folder == embedded.FOLDER else folder.resolve().name
    width, newline = block or arch.block, tokenizer.newline_id
    known = embedded.NAME if name == embedded.NAME else chosen.name
    spec = ModelSpec(
        mask,
        arch.vocab_size,
        ends[0],
        tuple(ends),
        name,
        width,
        from_prompt_end=arch.from_prompt_end,
        lead=arch.shift and width is not None,
        shadows=width is None and not arch.shift,
        newline_id=newline if newline is None or newline < arch.vocab_size else None,
        recommended=recommendation(known, base="base" in _released_name(folder).lower()),
    )
    if family is None and block is None:
        _warn_of_guess(folder, config, chosen)
    return Description(folder, config, chosen, arch, tokenizer, spec, mask_from)


def _family(
    folder: Path,
    config: Config,
    tokenizer: Tokenizer,
    mask_id: int | None,
    name: str | None,
) -> Family:
    """The family by name, by the config, or by the folder's name."""
    first = family_of(config, name, masked=True)
    masked = _mask(config, first, tokenizer, mask_id)[1] != "family"
    return family_of(config, name, _released_name(folder), masked)


def _warn_of_guess(folder: Path, config: Config, family: Family) -> None:
    """Warn if only the folder's name, or not even it, says whether attention goes in blocks."""
    if family.named:
        full = family_of(config, masked=True).name
        warnings.warn(
            f"{family.named!r} in the folder's name is taken for attention in blocks, of "
            f"{family.read(config).block} if you give none, counted from the prompt's end; no file "
            f"says so; give family {family.name} (or {full} for full attention) to say so yourself",
            stacklevel=4,
        )
    elif is_guessed(family, _released_name(folder)):
        warnings.warn(
            f"{folder}: no file says whether this {config.declared} attends to everything or in "
            f"blocks; full attention is taken; give family {family.name} to say so yourself, or "
            f"{in_blocks(family).name} for blocks",
            stacklevel=4,
        )


def _released_name(folder: Path) -> str:
    """The name of a checkpoint; the hub's cache keeps it two folders above the files."""
    folder = folder.resolve()
    return folder.parent.parent.name if folder.parent.name == "snapshots" else folder.name


def _mask(
    config: Config, family: Family, tokenizer: Tokenizer, mask_id: int | None
) -> tuple[int, str]:
    """The mask token and where it comes from; `spelling` is one that the family writes."""
    candidates = {
        "user": mask_id,
        "config": next(iter(config.token_ids("mask_token_id")), None),
        "tokenizer": tokenizer.token_id("mask_token"),
        "spelling": _spelled_mask(family, tokenizer),
        "family": family.mask_id,
    }
    return next((token, name) for name, token in candidates.items() if token is not None)


def _spelled_mask(family: Family, tokenizer: Tokenizer) -> int | None:
    """The family's first mask token in the vocabulary; the tokenizer may not call it a mask."""
    tokens = map(tokenizer.token_id, family.mask_tokens)
    return next((token for token in tokens if token is not None), None)


def _ends(
    folder: Path, config: Config, family: Family, tokenizer: Tokenizer, vocab_size: int
) -> list[int]:
    """Every token that ends an answer; the first one is the padding."""
    file = folder / "generation_config.json"
    generation = Config(read_optional(file), str(file))
    own = tokenizer.token_id("eos_token")
    if own is None and family.eos_of_tokenizer:
        own = tokenizer.token_id("pad_token")  # as dllm, which trained these models
    listed = [] if own is None else [own]
    if own is None or not family.eos_of_tokenizer:
        named = [_tokens_within(each, "eos_token_id", vocab_size) for each in (config, generation)]
        listed = [*named[0], *named[1], *listed]
    if not listed:
        raise ModelError(
            f"{config.file}: the key 'eos_token_id' is missing, and no file beside it names an "
            "end token"
        )
    turns = [tokenizer.token_id(name) for name in family.end_tokens]
    ends = list(dict.fromkeys([*listed, *(turn for turn in turns if turn is not None)]))
    for token in ends:
        if token >= vocab_size:
            raise ModelError(
                f"{folder}: the end token {tokenizer.engine.id_to_token(token)!r} of the tokenizer "
                f"has the id {token}, and the model has {vocab_size} tokens; take the tokenizer "
                "that belongs to the model"
            )
    return ends


def _tokens_within(config: Config, key: str, vocab_size: int) -> list[int]:
    """The token ids under a key; raises if the model has no such token."""
    tokens = config.token_ids(key)
    for token in tokens:
        if not 0 <= token < vocab_size:
            raise ModelError(
                f"{config.file}: {key} {token} lies outside the vocabulary 0..{vocab_size - 1}; "
                "set it to the model's end token"
            )
    return tokens


def weights(description: Description) -> Weights:
    """Count the parameters; raises if the files do not hold every tensor in its shape."""
    arch = description.arch
    tensors = StoredModel.open(description.folder, description.family, arch)
    with torch.device("meta"):
        module = description.family.network(arch)
    tensors.check(module)
    sizes = {name: parameter.numel() for name, parameter in module.named_parameters()}
    files = tuple(sorted(set(tensors.checkpoint.files.values())))
    stored = Counter(_stored_dtypes(files))
    total = sum(sizes.values())
    return Weights(
        parameters=total,
        active=total - sum(_idle(name, size, arch) for name, size in sizes.items()),
        dtypes=tuple(STORED.get(name, name) for name, _ in stored.most_common()),
        files=files,
        size=sum(file.stat().st_size for file in files),
        in_float32=sum(size for name, size in sizes.items() if name.endswith(KEPT_IN_FLOAT32)),
        inner=sum(
            size
            for name, size in sizes.items()
            if name.startswith("layers.") and not name.endswith(KEPT_IN_FLOAT32)
        ),
    )


def require_folder(path: str) -> Path:
    """The folder of a local checkpoint or of the embedded model; downloads nothing."""
    if path == embedded.NAME:
        return embedded.FOLDER
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise ModelError(f"{path!r} is not a folder; give the folder of a checkpoint")
    return folder


def _stored_dtypes(files: tuple[Path, ...]) -> Iterator[str]:
    for file in files:
        with open_file(file) as tensors:
            for name in tensors.keys():  # noqa: SIM118
                yield tensors.get_slice(name).get_dtype()


def _idle(name: str, size: int, arch: Architecture) -> int:
    """The parameters of experts that a token does not visit."""
    _, _, leaf = name.rpartition(".mlp.")
    if arch.experts is None or leaf not in ("gate", "up", "down"):
        return 0
    return size // arch.experts.count * (arch.experts.count - arch.experts.top_k)
