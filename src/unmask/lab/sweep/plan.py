"""From settings to trials: the task's preset fills in what was left open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

from unmask.decoding.options import Eos
from unmask.decoding.request import Request, prompt_request
from unmask.errors import LabError
from unmask.lab.benchmarks import Benchmark, Example, Preset, benchmark
from unmask.lab.sweep.grid import Setting
from unmask.lab.sweep.store import AskedExample
from unmask.lab.sweep.subject import Subject
from unmask.lab.sweep.trial import Trial
from unmask.models.describe import Description
from unmask.rules.plugins import sources_of
from unmask.rules.rule import Rule
from unmask.text.jsonl import sha_of

Wanted = dict[Setting, tuple[str, ...]]  # the names of the examples of every setting


@dataclass(frozen=True)
class Work:
    """A trial and the examples that it is to decode."""

    setting: Setting
    trial: Trial
    subject: Subject
    bench: Benchmark
    preset: Preset
    examples: tuple[Example, ...]

    @cached_property
    def by_name(self) -> dict[str, Example]:
        """Examples as the store names them."""
        return {str(example.id): example for example in self.examples}

    def only(self, names: Iterable[str]) -> Work:
        """The same trial on the examples of these names."""
        return replace(self, examples=tuple(self.by_name[name] for name in names))

    @cached_property
    def texts(self) -> dict[str, str]:
        """What the model sees of every example."""
        return {name: self._rendered(example) for name, example in self.by_name.items()}

    @cached_property
    def asks(self) -> list[AskedExample]:
        """Every example with a fingerprint of its text."""
        return [
            AskedExample(name, sha_of([text, *self.preset.decoding.stop]))
            for name, text in self.texts.items()
        ]

    def longest_first(self, asks: Iterable[AskedExample]) -> list[AskedExample]:
        """By their texts: neighbours are alike, so that a batch of them is little padded."""
        return sorted(asks, key=lambda ask: -len(self.texts[ask.example]))

    def request(self, ask: AskedExample) -> Request:
        """The canvas of an example; its seed depends on the trial's seed and its name alone."""
        tokenizer, spec = self.subject.tokenizer, self.subject.shape.spec
        seed = int(sha_of([self.trial.seed, ask.example])[:12], 16)
        ids = tokenizer.encode(self.texts[ask.example])
        return prompt_request(spec, ids, self.trial.length, self.trial.settings, seed)

    def _rendered(self, example: Example) -> str:
        prompt = self.preset.prompt(example)
        tokenizer = self.subject.tokenizer
        if not prompt.messages:
            return prompt.text + prompt.prefill
        return tokenizer.render(prompt.messages) + prompt.prefill


def plan(settings: Iterable[Setting], data: Path | None) -> list[Work]:
    """All trials, checked as far as is possible without weights; equal ones once."""
    subjects: dict[str, Subject] = {}
    examples: dict[str, list[Example]] = {}
    found: dict[str, Work] = {}
    for setting in settings:
        if setting.model not in subjects:
            subjects[setting.model] = Subject.of(setting.model)
        if setting.task not in examples:
            examples[setting.task] = benchmark(setting.task).load(data)
        subject = subjects[setting.model]
        subject.check(setting.cache)
        work = work_of(setting, subject, examples[setting.task])
        found.setdefault(work.trial.key, work)
    if not found:
        raise LabError("the sweep holds no setting")
    for work in found.values():
        work.request(work.asks[0])  # wrong settings fail here, before anything is loaded
    return list(found.values())


def wanted_of(works: Iterable[Work]) -> Wanted:
    """What another process has to be told to plan the same."""
    return {work.setting: tuple(work.by_name) for work in works}


def planned(wanted: Wanted, data: Path | None) -> list[Work]:
    """What `wanted_of` was made from."""
    return [work.only(wanted[work.setting]) for work in plan(wanted, data)]


def work_of(setting: Setting, subject: Subject, examples: list[Example]) -> Work:
    """One trial, its open values filled in by the preset."""
    bench = benchmark(setting.task)
    name = setting.preset or ("paper" if "paper" in bench.presets else next(iter(bench.presets)))
    preset = bench.preset(name, subject.family)
    usual = preset.decoding
    trial = Trial(
        model=setting.model,
        weights=subject.weights,
        dtype=subject.dtype(setting.dtype),
        task=bench.name,
        version=bench.version,
        preset=preset.name,
        rule=setting.rule,
        length=setting.length or usual.length,
        block=_block(setting, subject.shape, usual.block, setting.length or usual.length),
        eos=cast(Eos, setting.eos or usual.eos),
        cache=setting.cache,
        steps=setting.steps,
        temperature=usual.temperature if setting.temperature is None else setting.temperature,
        top_p=usual.top_p if setting.top_p is None else setting.top_p,
        seed=setting.seed,
        parts=sources_of(Rule.parse(setting.rule)),
    )
    return Work(setting, trial, subject, bench, preset, tuple(examples[: setting.limit]))


def _block(setting: Setting, shape: Description, usual: int | None, length: int) -> int | None:
    own = shape.arch.block
    if own is not None:
        if setting.block not in (None, own):
            raise LabError(
                f"{setting.model} attends in blocks of {own}; leave the block out, got "
                f"{setting.block!r}"
            )
        return own
    if setting.block is None:
        return None if usual is None or usual >= length else usual
    return None if setting.block == "full" else int(setting.block)
