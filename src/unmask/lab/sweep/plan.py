"""From settings to trials: the task's preset fills in what was left open."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from unmask.decoding.options import LOADING, DecodingOptions
from unmask.decoding.request import Request, Settings, prompt_request
from unmask.decoding.resolve import Resolved
from unmask.errors import LabError
from unmask.lab.benchmarks import Benchmark, Example, Preset, benchmark
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.store import AskedExample
from unmask.lab.sweep.trial import Trial
from unmask.models.fingerprint import sha_of
from unmask.models.tokenizer import Tokenizer
from unmask.rules.fingerprint import origins_of, sources_of
from unmask.text.session import Session

Wanted = dict[Setting, tuple[str, ...]]  # the names of the examples of every setting


@dataclass(frozen=True)
class Work:
    """A trial and the examples that it is to decode."""

    setting: Setting
    trial: Trial
    session: Session
    bench: Benchmark
    preset: Preset
    examples: tuple[Example, ...]

    @cached_property
    def by_name(self) -> dict[str, Example]:
        """Examples as the store names them."""
        return {str(example.id): example for example in self.examples}

    @property
    def record(self) -> dict[str, Any]:
        """The task and preset for the store, and the files of the rule's own parts."""
        origins = origins_of(self.trial.settings.rule)
        return self.bench.record(self.preset.name) | ({"parts": origins} if origins else {})

    @property
    def recommended(self) -> str | None:
        """The rule that was taken for want of another, and why; None if one was asked for."""
        resolved = self.session.resolve(self.setting.options, defaults=self.preset.decoding)
        return None if resolved.recommended is None else resolved.recommended.words

    def only(self, names: Iterable[str]) -> Work:
        """The same trial on the examples of these names."""
        return replace(self, examples=tuple(self.by_name[name] for name in names))

    @cached_property
    def texts(self) -> dict[str, str]:
        """What the model sees of every example."""
        return {name: self._prompts.text(example) for name, example in self.by_name.items()}

    @cached_property
    def asks(self) -> list[AskedExample]:
        """Every example with a fingerprint of its text."""
        return [
            AskedExample(name, sha_of([text, *self.preset.stop]))
            for name, text in self.texts.items()
        ]

    @cached_property
    def settings(self) -> Settings:
        """The trial's, with its language over the tokens of the model."""
        settings, language = self.trial.settings, self.trial.language
        if language is None:
            return settings
        return replace(settings, language=self.session.language(language))

    def longest_first(self, asks: Iterable[AskedExample]) -> list[AskedExample]:
        """The examples with the longest texts first, so that a batch has little padding."""
        return sorted(asks, key=lambda ask: -len(self.texts[ask.example]))

    def request(self, ask: AskedExample) -> Request:
        """The canvas of an example; its seed depends on the trial's seed and its name alone."""
        spec, ids = self.session.spec, self._prompts.ids(self.by_name[ask.example])
        seed = int(sha_of([self.trial.seed, ask.example])[:12], 16)
        return prompt_request(spec, ids, self.trial.length, self.settings, seed)

    @cached_property
    def _prompts(self) -> Prompts:
        """Shared by all trials with this preset in a session."""
        arguments = self.setting.options.template_args
        shared = _PROMPTS.setdefault(self.session, {})
        key = (self.bench.name, self.preset.name, arguments)
        if key not in shared:
            words = self.setting.options.template_words
            shared[key] = Prompts(self.session.tokenizer, self.preset, words)
        return shared[key]


class Prompts:
    """What a model sees of a task's examples; each is rendered and encoded once."""

    def __init__(self, tokenizer: Tokenizer, preset: Preset, words: dict[str, Any]) -> None:
        self.tokenizer, self.preset, self.words = tokenizer, preset, words
        self._texts: dict[str, str] = {}
        self._ids: dict[str, list[int]] = {}

    def text(self, example: Example) -> str:
        """The rendered prompt."""
        name = str(example.id)
        if name not in self._texts:
            self._texts[name] = self._rendered(example)
        return self._texts[name]

    def ids(self, example: Example) -> list[int]:
        """The tokens of the rendered prompt."""
        name = str(example.id)
        if name not in self._ids:
            self._ids[name] = self.tokenizer.encode(self.text(example))
        return self._ids[name]

    def _rendered(self, example: Example) -> str:
        prompt = self.preset.prompt(example)
        if not prompt.messages:
            return prompt.text + prompt.prefill
        return self.tokenizer.render(prompt.messages, self.words) + prompt.prefill


_PROMPTS: WeakKeyDictionary[Session, dict[tuple[Any, ...], Prompts]] = WeakKeyDictionary()


def plan(settings: Iterable[Setting], data: Path | None, timing: str = "") -> list[Work]:
    """All trials, checked as far as is possible without weights; equal ones once.

    Warns of arguments that the chat template does not use.

    Args:
        settings: the points of the grid.
        data: folder of the benchmarks' JSON lines.
        timing: the conditions of timed settings, from `timing_of`.
    """
    works = _works(settings, data, timing)
    for doubt in dict.fromkeys(filter(None, map(_unread_args, works))):
        warnings.warn(doubt, stacklevel=2)
    return works


def _unread_args(work: Work) -> str:
    """Says which arguments the chat template does not use; empty if it uses all."""
    session, words = work.session, work.setting.options.template_words
    unread = ", ".join(session.tokenizer.unread_args(words))
    return f"the chat template of {session.spec.name} does not use {unread}" if unread else ""


def _works(settings: Iterable[Setting], data: Path | None, timing: str = "") -> list[Work]:
    """All trials, in the order of their settings."""
    sessions = Sessions()
    examples: dict[str, list[Example]] = {}
    works: dict[str, Work] = {}
    for setting in settings:
        if setting.task not in examples:
            examples[setting.task] = benchmark(setting.task).load(data)
        work = work_of(setting, sessions.of(setting), examples[setting.task], timing)
        works.setdefault(work.trial.key, work)
    if not works:
        raise LabError("the sweep has no settings")
    for work in works.values():
        work.request(work.asks[0])  # wrong settings fail here, before anything is loaded
    return list(works.values())


class Sessions:
    """A session for every model that is loaded in its own way; each folder is read once."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[Any, ...], Session] = {}

    def of(self, setting: Setting) -> Session:
        """The session of a setting, made when it is first needed."""
        options = setting.options
        key = (setting.model, *(getattr(options, name) for name in LOADING))
        session = self._made(key, setting, block=None)
        if session.spec.block is not None and options.block not in (None, session.spec.block):
            session = self._made((*key, options.block), setting, block=options.block)
        session.changed({"cache": options.cache, "guidance": options.guidance})
        return session

    def _made(self, key: tuple[Any, ...], setting: Setting, **block: Any) -> Session:
        if key not in self._sessions:
            loading = {name: getattr(setting.options, name) for name in LOADING}
            self._sessions[key] = Session(setting.model, device="cpu", **loading, **block)
        return self._sessions[key]


def wanted_of(works: Iterable[Work]) -> Wanted:
    """What another process needs in order to plan the same."""
    return {work.setting: tuple(work.by_name) for work in works}


def planned(wanted: Wanted, data: Path | None) -> list[Work]:
    """What `wanted_of` was made from."""
    return [work.only(wanted[work.setting]) for work in _works(wanted, data)]


def work_of(setting: Setting, session: Session, examples: list[Example], timing: str = "") -> Work:
    """One trial; the task's preset fills in what was left open."""
    if setting.timed and not timing:
        raise LabError("a timed setting needs the conditions of its run; see timing_of")
    bench, preset = benchmark(setting.task), preset_of(setting, _family(session))
    _check_length(setting.options, session, preset)
    resolved = session.resolve(setting.options, defaults=preset.decoding)
    trial = trial_of(
        setting, preset, resolved, session.weights, session.dtype, timing if setting.timed else ""
    )
    return Work(setting, trial, session, bench, preset, tuple(examples[: setting.limit]))


def preset_of(setting: Setting, family: str = "") -> Preset:
    """The preset that was asked for, else the paper's, else the first of the task."""
    bench = benchmark(setting.task)
    name = setting.preset or ("paper" if "paper" in bench.presets else next(iter(bench.presets)))
    return bench.preset(name, family)


def trial_of(
    setting: Setting,
    preset: Preset,
    resolved: Resolved,
    weights: str,
    dtype: str = "stored",
    timing: str = "",
) -> Trial:
    """The trial of a setting, with the fingerprint of its weights."""
    options, bench = setting.options, benchmark(setting.task)
    decoding = {**options.given(), **resolved.record(), "dtype": dtype}
    decoding["rule"] = str(resolved.settings.rule)
    decoding["tempered"] = decoding["tempered"] or None  # keys leave out what is not set
    return Trial(
        model=setting.model,
        weights=weights,
        task=bench.name,
        version=bench.version,
        preset=preset.name,
        **decoding,
        parts=sources_of(resolved.settings.rule),
        timing=timing,
    )


def _check_length(options: DecodingOptions, session: Session, preset: Preset) -> None:
    """Raise if the length of a recipe is more than the model has positions for."""
    length, context = options.defaults.length, session.context
    if options.length is not None or not isinstance(length, int) or context is None:
        return
    if length >= context:
        raise LabError(
            f"the recipe {options.rule} writes {length} tokens, and {session.name} has {context} "
            f"positions for prompt and answer; give a length, such as {preset.decoding.length}"
        )


def _family(session: Session) -> str:
    """The model family as presets name it; some have their own wording for a family."""
    checkpoint = session.checkpoint
    return "dream" if checkpoint and "dream" in checkpoint.family.name.lower() else ""
