"""Session: a model with its tokenizer, for text in and text out."""

from __future__ import annotations

import os
import secrets
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO, overload

import torch

from unmask import embedded
from unmask.decoding.options import LOADING, DecodingOptions
from unmask.decoding.request import Request, longest_first
from unmask.decoding.resolve import Resolved, resolve
from unmask.decoding.results import Step
from unmask.errors import RequestError, shown
from unmask.kernels import backend
from unmask.models.caches import POLICIES, Cached, check_cache
from unmask.models.denoiser import Denoiser
from unmask.models.describe import Description, describe
from unmask.models.fingerprint import fingerprint
from unmask.models.languages import Languages
from unmask.models.load import default_dtype, find_folder, load_described, usable_device
from unmask.models.load_options import LoadOptions
from unmask.models.recommended import Recommendation
from unmask.models.source import ModelSource
from unmask.models.tokenizer import Message
from unmask.models.wrappers.guided import Guided, check_scale
from unmask.rules.registry import is_current
from unmask.text.answers import Answer, decode_requests
from unmask.text.clock import clocked_steps, timed_steps
from unmask.text.doubts import doubts
from unmask.text.in_memory import in_memory
from unmask.text.lengths import context_of, sized, too_long, way_out
from unmask.text.prompts import MESSAGES, Prompt, PromptFormat, RenderedPrompt, several, texts_of
from unmask.text.settings import settings_record
from unmask.text.stream import Snapshot, snapshots
from unmask.trace.recording.files import KeptBytes, Traces
from unmask.trace.recording.tracer import Tracer


class Session:
    """A model with its tokenizer: text in, text out.

    The weights of a checkpoint are loaded when they are first needed; options are checked before.

    Args:
        model: a checkpoint folder, a hub id, a model in memory (what `unmask.load` returns, a
            denoiser, or a transformers model), or None for the small model inside the package.
        tokenizer: the tokenizer of a model in memory, ours or transformers'.
        options: how to decode; single options may be given by name instead, as in
            `Session("folder", rule="swd-block32", length=128)`.
        device: where a checkpoint is loaded (default: cuda if there is one, else cpu).
        context: most positions of prompt and answer (default: the checkpoint's own limit).
        control_tokens: let control tokens in the messages of a chat, such as `<|eot_id|>`, be
            tokens (default: they are text).
    """

    def __init__(
        self,
        model: Any = None,
        tokenizer: Any = None,
        options: DecodingOptions | None = None,
        *,
        device: str | torch.device | None = None,
        context: int | None = None,
        control_tokens: bool = False,
        **changes: Any,
    ) -> None:
        if not isinstance(options, DecodingOptions | None):
            raise RequestError(f"options must be a DecodingOptions, got {shown(options)}")
        self.options = (options or DecodingOptions()).changed(changes)
        self.control_tokens = control_tokens
        self.checkpoint: Description | None = None
        self._own: dict[tuple[DecodingOptions, bool], Resolved] = {}  # the session's own options
        if model is None or isinstance(model, str | os.PathLike):
            if tokenizer is not None:
                raise RequestError("a checkpoint has its own tokenizer; leave the tokenizer out")
            self._describe(embedded.NAME if model is None else os.fspath(model), device)
        else:
            if device is not None:
                raise RequestError(
                    "device is for loading a checkpoint; this model is in memory, so leave it out"
                )
            held, self.tokenizer, self._described = in_memory(model, tokenizer, self.options)
            self._in_memory, self.spec = held, held.spec
            self.name, self.device = held.spec.name, held.device
        self.context = context_of(self._described, context)
        self.language = Languages(self.tokenizer, self.spec.vocab_size)
        self._check(self.options)

    def _describe(self, source: str, device: str | torch.device | None) -> None:
        """Read all of a checkpoint but its weights."""
        self.name, self.device = str(Path(source)), usable_device(device)
        self._load_options()  # raises before anything is read
        known = describe(find_folder(source), self.options.mask_id, family=self.options.family)
        free = replace(self.options, language=None)
        resolved = resolve(sized(free, known), known.spec)
        self.spec = resolved.spec
        if self.options.language is None:
            self._own[self.options, False] = resolved
        self.checkpoint = self._described = replace(known, spec=self.spec)
        self.tokenizer = known.tokenizer

    def __repr__(self) -> str:
        given = {"device": str(self.device), **self.options.given()}
        words = "".join(f", {name}={value!r}" for name, value in given.items())
        return f"Session({self.name!r}{words})"

    # Text in, text out.

    @overload
    def generate(self, prompts: str, **more: Any) -> Answer: ...
    @overload
    def generate(self, prompts: Iterable[str], **more: Any) -> list[Answer]: ...
    def generate(
        self,
        prompts: str | Iterable[str],
        *,
        chat: bool | None = None,
        system: str | None = None,
        batch_size: int = 8,
        trace: bool | None = None,
        **changes: Any,
    ) -> Answer | list[Answer]:
        """Continue prompts. One prompt gives one answer, several give a list in their order.

        Args:
            prompts: a text, or several.
            chat: put a prompt into the model's chat template (default: if it has one).
            system: system message of the chat.
            batch_size: rows that decode at once; every row gets the answer it would get alone.
            trace: keep every step in `Answer.trace` (default: for a single prompt). A canvas
                that grows has no trace.
            changes: decoding options that differ from the session's, such as `rule` or `length`.
                Prompt i uses the seed `seed + i`.
        """
        one, form = isinstance(prompts, str), self.format(chat, system)
        asked = [form.of_text(text) for text in texts_of(prompts)]
        answers = self._answers(asked, batch_size, one if trace is None else trace, changes)
        return answers[0] if one else answers

    @overload
    def chat(self, messages: Sequence[Message], **more: Any) -> Answer: ...
    @overload
    def chat(self, messages: Sequence[Sequence[Message]], **more: Any) -> list[Answer]: ...
    def chat(
        self, messages: Any, *, batch_size: int = 8, trace: bool | None = None, **changes: Any
    ) -> Answer | list[Answer]:
        """Answer a chat, or several: lists of messages, each with a role and a content."""
        chats, form = several(messages, MESSAGES), self.format(chat=True)
        one = bool(chats) and isinstance(chats[0], str | Mapping)
        turns = [chats] if one else [several(each, MESSAGES) for each in chats]
        asked = [form.of_messages(each) for each in turns]
        answers = self._answers(asked, batch_size, one if trace is None else trace, changes)
        return answers[0] if one else answers

    @overload
    def infill(self, texts: str, **more: Any) -> Answer: ...
    @overload
    def infill(self, texts: Iterable[str], **more: Any) -> list[Answer]: ...
    def infill(
        self,
        texts: str | Iterable[str],
        *,
        batch_size: int = 8,
        trace: bool | None = None,
        **changes: Any,
    ) -> Answer | list[Answer]:
        """Fill the masks of texts: `[MASK]` is one mask, `[MASK*8]` is eight."""
        if changes.get("length") is not None:
            raise RequestError("infill writes where the masks are, so it takes no length")
        one, form = isinstance(texts, str), self.format(chat=False, infill=True)
        asked = [form.of_text(text) for text in texts_of(texts)]
        answers = self._answers(asked, batch_size, one if trace is None else trace, changes)
        return answers[0] if one else answers

    def stream(
        self,
        prompt: str | Sequence[Message],
        *,
        chat: bool | None = None,
        infill: bool = False,
        **changes: Any,
    ) -> Iterator[Snapshot]:
        """Answer one prompt or chat, yielding the canvas after every forward pass."""
        options, form = self.changed(changes), self.format(chat, infill=infill)
        if isinstance(prompt, str):
            asked = form.of_text(prompt)
        else:
            asked = form.of_messages(several(prompt, MESSAGES))
        request = self.request(replace(asked, seed=options.seed or 0), options)
        return snapshots(self.model(options), self.tokenizer, request)

    def _answers(
        self, prompts: list[Prompt], batch_size: int, trace: bool, changes: Mapping[str, Any]
    ) -> list[Answer]:
        options = self.changed(changes)
        resolved = self.resolve(options, any(prompt.infill for prompt in prompts))
        requests = [
            self.request(replace(prompt, seed=(options.seed or 0) + number), options, resolved)
            for number, prompt in enumerate(prompts)
        ]
        order = longest_first([len(request.canvas) for request in requests])
        chosen = [requests[number] for number in order]
        streams = defaultdict[int, KeptBytes](KeptBytes)
        traces = Traces(
            streams.__getitem__, lambda key, stream: self.tracer(stream, chosen[key], options)
        )
        answers: dict[int, Answer] = {}
        trace = trace and not any(request.settings.growth for request in chosen)
        watch = traces if trace else None
        for key, answer in self.decode(chosen, options, batch_size, watch, trace):
            answers[order[key]] = replace(answer, trace=streams[key].value if trace else None)
        return [answers[number] for number in range(len(requests))]

    # The steps in between, for the command line, the lab, the server and lm_eval.

    def changed(self, changes: Mapping[str, Any]) -> DecodingOptions:
        """The session's options with some changed; checked."""
        for name in LOADING:
            if changes.get(name) is not None:
                raise RequestError(f"{name} is fixed when a session is made; make another session")
        options = self.options.changed(changes)
        self._check(options)
        return options

    def _check(self, options: DecodingOptions) -> None:
        """Raise if the model cannot use the cache or the guidance."""
        if options.cache not in (None, "none"):
            check_cache(self.spec, POLICIES[options.cache]())
        if options.guidance is not None:
            check_scale(options.guidance)

    def format(
        self, chat: bool | None = None, system: str | None = None, infill: bool = False
    ) -> PromptFormat:
        """How texts become prompts of this model."""
        has_template = self.tokenizer.template is not None
        return PromptFormat(chat, has_template, infill, system, self.control_tokens)

    def resolve(
        self,
        options: DecodingOptions | None = None,
        infill: bool = False,
        defaults: DecodingOptions | None = None,
    ) -> Resolved:
        """Settings and length for this model; `defaults` are those of a task's preset."""
        options = options or self.options
        known = self._own.get((options, infill)) if defaults is None else None
        if known is not None and all(map(is_current, known.settings.rule.parts)):
            return known
        language = None if options.language is None else self.language(options.language)
        complete = partial(resolve, infill=infill, loaded=True, language=language)
        if defaults is not None:
            return complete(options, self.spec, defaults)
        resolved = complete(sized(options, self._described), self.spec)
        if options is self.options:
            self._own[options, infill] = resolved
        return resolved

    @property
    def recommended(self) -> Recommendation | None:
        """The rule that the model's makers or measurements recommend; None if one was asked for."""
        return self.resolve().recommended

    def request(
        self,
        prompt: Prompt,
        options: DecodingOptions | None = None,
        resolved: Resolved | None = None,
    ) -> Request:
        """The canvas of a prompt, checked; warns of what the model was not made for.

        `resolved` is what `resolve` made of the options, where several prompts share them.
        """
        rendered = prompt.render(self.tokenizer, (options or self.options).template_words)
        resolved = resolved or self.resolve(options, prompt.infill)
        request = rendered.request(self.tokenizer, self.spec, resolved)
        if long := too_long(request, self.context, self.spec):
            raise RequestError(f"{long}; {way_out(request, self._described)}")
        for doubt in self.doubts(rendered, request):
            warnings.warn(doubt, stacklevel=2)
        return request

    def doubts(self, prompt: RenderedPrompt, request: Request) -> Iterator[str]:
        """What the model was not made for, though it can be asked, and forwards that are wasted."""
        if long := too_long(request, self.context, self.spec):
            yield long
        yield from doubts(prompt, request, self.tokenizer, self.spec)

    def model(self, options: DecodingOptions | None = None) -> Denoiser:
        """The model with the cache and the guidance of the options; loads it if necessary."""
        options = options or self.options
        model: Denoiser = self._base
        if options.cache not in (None, "none"):
            model = Cached(self._base, options.cache)
        return model if options.guidance is None else Guided(model, options.guidance)

    @cached_property
    def _base(self) -> Any:
        if self.checkpoint is None:
            return self._in_memory
        return load_described(self.checkpoint, self._load_options()).model

    def _load_options(self) -> LoadOptions:
        """How the weights are loaded; raises if the options do not work together."""
        ours = self.options
        return LoadOptions(self.device, ours.dtype, ours.quantize, ours.pack)

    def load_on(self, device: str | torch.device) -> None:
        """Load the model there when it is next needed; free it if it is elsewhere now."""
        if self.checkpoint is not None and usable_device(device) != self.device:
            self.unload()
            self.device = usable_device(device)

    def unload(self) -> None:
        """Free the weights; they are loaded again when they are next needed."""
        self.__dict__.pop("_base", None)

    def decode(
        self,
        requests: Iterable[Request],
        options: DecodingOptions | None = None,
        batch_size: int = 1,
        on_step: Callable[[Step], None] | None = None,
        keep_logits: bool = False,
        timed: bool = False,
    ) -> Iterator[tuple[int, Answer]]:
        """Answers with their requests' numbers, each as soon as it is finished.

        `on_step` is called with every step; with `keep_logits` a step carries its logits. `timed`
        measures the seconds of model, decision and KL, which makes a run slower.
        """
        clock = partial(timed_steps if timed else clocked_steps, keep_logits=keep_logits)
        model = self.model(options)
        return decode_requests(model, self.tokenizer, requests, batch_size, on_step, clock)

    def source(self, options: DecodingOptions | None = None) -> ModelSource:
        """How to load the model again, for a replay."""
        options = options or self.options
        return ModelSource(
            self.name,
            str(self.device),
            options.dtype,
            options.mask_id,
            self.spec.block,
            options.cache or "none",
            options.guidance,
            self.checkpoint.unsaid_family if self.checkpoint else None,
            options.quantize,
            options.pack,
        )

    @cached_property
    def weights(self) -> str:
        """A fingerprint of the checkpoint; a model in memory gets a random one."""
        if self.checkpoint is None:
            return f"memory-{secrets.token_hex(8)}"
        return fingerprint(self.checkpoint.folder)

    @property
    def dtype(self) -> str:
        """The number format that the model computes in."""
        if self.checkpoint is None:
            return "stored"
        return self.options.dtype or default_dtype(self.checkpoint.folder) or "stored"

    def tracer(
        self, stream: BinaryIO, request: Request, options: DecodingOptions | None = None
    ) -> Tracer:
        """Writes the steps of a request, with all that a replay needs."""
        source = {**asdict(self.source(options)), "weights": self.weights}
        source["kernel"] = backend(torch.device(self.device).type)
        return Tracer(stream, self.spec, request, self.tokenizer, source)

    def settings_record(self, form: PromptFormat) -> dict[str, Any]:
        """Everything that an answer depends on, for JSON, and its fingerprint `sha`."""
        model = {"model": self.name, "mask_id": self.spec.mask_id, "dtype": self.dtype}
        return settings_record(model, self.options, self.resolve(infill=form.infill), form)
