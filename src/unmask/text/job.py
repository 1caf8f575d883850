"""One call of `unmask run`: the options as settings, and the model they ask for."""

from __future__ import annotations

import warnings
from argparse import Namespace
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Literal

import torch

from unmask import __version__
from unmask.decoding.asked import Asked, doubts, recipe_of
from unmask.decoding.request import Request, Settings
from unmask.decoding.results import Result
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError
from unmask.models.caches import POLICIES, check_cache
from unmask.models.denoiser import Denoiser
from unmask.models.describe import Description, describe
from unmask.models.fingerprint import fingerprint
from unmask.models.load import default_dtype, find_folder, usable_device
from unmask.models.source import ModelSource
from unmask.models.wrappers.guided import check_scale
from unmask.rules.plugins import sources_of
from unmask.rules.rule import Rule
from unmask.text.answers import Answer, Format, Prompt, holds_masks
from unmask.text.jsonl import sha_of
from unmask.trace import Tracer
from unmask.trace.recording.record import text_of


@dataclass(frozen=True)
class Job:
    """Everything that is known before the weights are loaded; wrong options fail here."""

    options: Namespace
    asked: Asked
    shape: Description
    device: torch.device
    settings: Settings
    length: int
    texts: Format

    @classmethod
    def of(cls, options: Namespace) -> Job:
        """Read the rule, then the checkpoint's folder."""
        asked = Asked(
            Rule.parse(options.rule),
            recipe_of(options.rule),
            Sampling(options.temperature, options.top_p, options.top_k, options.tempered),
            options.length,
            block_named(options.block),
            options.eos,
            options.steps,
            options.history,
        )
        device = device_named(options.device)
        shape = describe(find_folder(options.model), options.mask_id)
        decoding = asked.decoding(shape, options.infill)
        shape = replace(shape, spec=decoding.spec)
        has_template = shape.tokenizer.template is not None
        texts = Format(options.chat, has_template, options.infill, options.system)
        if texts.system is not None and not texts.in_chat(texts.infill):
            raise RequestError("--system goes into a chat, and here the prompt is taken as it is")
        if options.cache != "none":
            check_cache(shape.spec, POLICIES[options.cache]())
        if options.guidance is not None:
            check_scale(options.guidance)
        return cls(options, asked, shape, device, decoding.settings, decoding.length, texts)

    def request(self, prompt: Prompt) -> Request:
        """A prompt as a canvas, checked."""
        shape = self.shape
        request = prompt.request(shape.tokenizer, shape.spec, self.settings, self.length)
        for doubt in doubts(shape, prompt, request):
            warnings.warn(doubt, stacklevel=2)
        if not prompt.infill and holds_masks(prompt.rendered(shape.tokenizer)):
            warnings.warn("[MASK] in a prompt is plain text; --infill fills it", stacklevel=2)
        return request

    def load(self) -> Denoiser:
        """The model with its cache and guidance."""
        return self.source.load(self.shape)

    @property
    def source(self) -> ModelSource:
        """How to load the model, now or for a replay."""
        return ModelSource(
            self.model_name,
            str(self.device),
            self.options.dtype,
            self.options.mask_id,
            self.shape.spec.block if self.shape.arch.block is not None else None,
            self.options.cache,
            self.options.guidance,
        )

    @cached_property
    def weights(self) -> str:
        """A fingerprint of the checkpoint."""
        return fingerprint(self.shape.folder)

    def tracer(self, stream: BinaryIO, request: Request) -> Tracer:
        """Writes the steps of a request, with all that a replay needs."""
        model = {**asdict(self.source), "weights": self.weights}
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
            "history": settings.history,
            **vars(settings.sampling),
            "seed": options.seed,
            "chat": self.texts.in_chat(self.texts.infill),
            "system": self.texts.system,
            "infill": self.texts.infill,
        }
        if parts := sources_of(settings.rule):
            record["parts"] = parts
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


def block_named(given: str | None) -> int | Literal["full"] | None:
    if given is None:
        return None
    if given == "full":
        return "full"
    if not given.isdecimal() or int(given) < 1:
        raise RequestError(f"--block must be a number >= 1, or 'full', got {given!r}")
    return int(given)


def device_named(name: str | None) -> torch.device:
    """The device of that name; without one, the GPU if there is any."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return usable_device(name)
