"""One call of `unmask run`: the options as settings, and the model they ask for."""

from __future__ import annotations

import warnings
from argparse import Namespace
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import torch

from unmask import __version__, embedded
from unmask.caches import POLICIES, check_cache
from unmask.errors import RequestError
from unmask.generate import Answer, Format, Prompt
from unmask.jsonl import sha_of
from unmask.models.base import Denoiser
from unmask.models.describe import Description, describe
from unmask.models.fingerprint import fingerprint
from unmask.models.guided import check_scale
from unmask.models.load import default_dtype, find_folder, usable_device
from unmask.recipes import RECIPES, Recipe
from unmask.request import Eos, Request, Settings
from unmask.results import Result
from unmask.rules import Rule
from unmask.sampling import Sampling
from unmask.source import Source
from unmask.trace import Tracer
from unmask.trace.recording import text_of


@dataclass(frozen=True)
class Job:
    """Everything that is known before the weights are loaded; wrong options fail here."""

    options: Namespace
    shape: Description
    device: torch.device
    settings: Settings
    length: int
    texts: Format

    @classmethod
    def of(cls, options: Namespace) -> Job:
        """Read the rule, then the checkpoint's folder."""
        rule = Rule.parse(options.rule)
        recipe = RECIPES.get(options.rule.strip(), Recipe("", str(rule)))
        sampling = Sampling(options.temperature, options.top_p, options.top_k, options.tempered)
        device = _device(options.device)
        shape = describe(find_folder(options.model), options.mask_id)
        own = shape.arch.block
        block = _block(options.block, own, recipe)
        if own is not None:  # such a model decodes in the blocks that it attends in
            shape, block = replace(shape, spec=replace(shape.spec, block=block)), None
        eos = cast(Eos, options.eos or recipe.eos)
        settings = Settings(rule, block, eos, sampling, options.steps)
        has_template = shape.tokenizer.template is not None
        texts = Format(options.chat, has_template, options.infill, options.system)
        if texts.system is not None and not texts.in_chat(texts.infill):
            raise RequestError("--system goes into a chat, and here the prompt is taken as it is")
        usual = embedded.LENGTH if shape.folder == embedded.FOLDER else recipe.length
        length = usual if options.length is None else options.length
        if options.block is None and block is not None and (options.infill or block > length):
            settings = replace(settings, block=None)  # a recipe's block is no more than a habit
        if options.cache != "none":
            check_cache(shape.spec, POLICIES[options.cache]())
        if options.guidance is not None:
            check_scale(options.guidance)
        return cls(options, shape, device, settings, length, texts)

    def request(self, prompt: Prompt) -> Request:
        """A prompt as a canvas, checked."""
        shape = self.shape
        request = prompt.request(shape.tokenizer, shape.spec, self.settings, self.length)
        size, most = len(request.canvas), shape.context
        if most is not None and size > most:
            warnings.warn(
                f"{size} positions are more than the {most} that {shape.spec.name} was made for",
                stacklevel=2,
            )
        unknown = prompt.unknown(shape.tokenizer)
        if unknown:
            warnings.warn(
                f"{shape.spec.name} does not know {', '.join(map(repr, unknown))}", stacklevel=2
            )
        return request

    def load(self) -> Denoiser:
        """The model with its cache and guidance."""
        return self.source.load()

    @property
    def source(self) -> Source:
        """How to load the model, now or for a replay."""
        return Source(
            self.model_name,
            str(self.device),
            self.options.dtype,
            self.options.mask_id,
            self.shape.spec.block if self.shape.arch.block is not None else None,
            self.options.cache,
            self.options.guidance,
        )

    def tracer(self, stream: BinaryIO, request: Request) -> Tracer:
        """Writes the steps of a request, with all that a replay needs."""
        model = {**asdict(self.source), "weights": fingerprint(self.shape.folder)}
        return Tracer(stream, self.shape.spec, request, self.shape.tokenizer, model)

    def text_of(self, result: Result, request: Request) -> str:
        """What a result says."""
        return text_of(result, request, self.shape.tokenizer) or ""

    @property
    def model_name(self) -> str:
        """The folder or hub id as it was given."""
        return str(Path(self.options.model))

    @property
    def settings_record(self) -> dict[str, Any]:
        """All that the text depends on, for JSON, and its fingerprint `sha`."""
        options, settings = self.options, self.settings
        record = {
            "model": self.model_name,
            "mask_id": self.shape.spec.mask_id,
            "dtype": options.dtype or default_dtype(self.shape.folder) or "stored",
            "cache": options.cache,
            "guidance": options.guidance,
            "rule": str(settings.rule),
            "length": self.length,
            "block": self.shape.spec.block or settings.block,
            "eos": settings.eos,
            "steps": settings.steps,
            **vars(settings.sampling),
            "seed": options.seed,
            "chat": self.texts.in_chat(self.texts.infill),
            "system": self.texts.system,
            "infill": self.texts.infill,
        }
        return {**record, "sha": sha_of(record)}

    def record(self, answer: Answer, seed: int) -> dict[str, Any]:
        """An answer with all that it came from, for JSON."""
        return {
            **answer.record(),
            "seed": seed,
            "model": self.model_name,
            "device": str(self.device),
            "settings": self.settings_record,
            "version": __version__,
        }


def _block(given: str | None, own: int | None, recipe: Recipe) -> int | None:
    """The block as asked for, else the block-causal model's own, else the recipe's."""
    if given is None:
        return own or recipe.block
    if given == "full":
        if own is not None:
            raise RequestError(f"the model attends in blocks of {own}; it has no full window")
        return None
    if not given.isdecimal() or int(given) < 1:
        raise RequestError(f"--block must be a number >= 1, or 'full', got {given!r}")
    return int(given)


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return usable_device(name)
