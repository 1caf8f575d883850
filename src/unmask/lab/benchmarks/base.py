"""Benchmark: problems, prompts and graders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unmask.errors import UnknownName
from unmask.lab.benchmarks.example import Example
from unmask.lab.benchmarks.preset import Preset, TaskPrompt
from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Answers, Grade, Scorer, score
from unmask.lab.grading.tools import Tools


@dataclass(frozen=True)
class Benchmark:
    """One benchmark, as the table `BENCHMARKS` has it by name.

    Args:
        read: all examples, from a folder of JSON lines or, without one, from the hub.
        scorers: the first gives `acc`; `daedal`, where there is one, gives `acc_compat`.
        gold: a right response, made from the reference, for the self-test.
        wrong: a similar response that is wrong.
        awkward: examples that cannot be graded fairly, and why.
        runs_code: whether its scorers need a judge that runs programs.
    """

    name: str
    about: str
    presets: Mapping[str, Preset]
    read: Callable[[Path | None], list[Example]]
    scorers: Mapping[str, Scorer]
    gold: Callable[[Example], str]
    wrong: Callable[[Example], str]
    awkward: Mapping[int | str, str] = field(default_factory=dict)
    runs_code: bool = False
    version: int = 1

    def load(self, data: Path | None = None) -> list[Example]:
        """All examples, checked."""
        return self.read(data)

    def preset(self, name: str, family: str = "") -> Preset:
        """A preset by name; `name-family` takes precedence if there is one."""
        own = f"{name}-{family}"
        if own in self.presets:
            return self.presets[own]
        if name not in self.presets:
            raise UnknownName(f"preset of {self.name}", name, self.presets)
        return self.presets[name]

    def prompt(self, example: Example, preset: str, family: str = "") -> TaskPrompt:
        """The prompt of an example."""
        return self.preset(preset, family).prompt(example)

    def record(self, preset: str, family: str = "") -> dict[str, Any]:
        """The task, the preset and the scorers of a result, for JSON."""
        versions = {scorer.name: scorer.version for scorer in self.graders}
        echo = self.preset(preset, family).record()
        return {"task": self.name, "version": self.version, "scorers": versions, "preset": echo}

    def response(self, example: Example, text: str, preset: str, family: str = "") -> Response:
        """A generated text as the answer to a preset's prompt."""
        prompt = self.prompt(example, preset, family)
        return Response(text, prompt.prefill, prompt.stop)

    def chosen(self, names: Sequence[str]) -> list[Scorer]:
        """Scorers by name; `all` stands for all of them."""
        wanted = list(self.scorers) if "all" in names else list(dict.fromkeys(names))
        for name in wanted:
            if name not in self.scorers:
                raise UnknownName(f"scorer of {self.name}", name, [*self.scorers, "all"])
        return [self.scorers[name] for name in wanted]

    @property
    def graders(self) -> list[Scorer]:
        """The scorers of a grade: ours, and DAEDAL's if there is one."""
        ours = next(iter(self.scorers))
        return self.chosen([ours, "daedal"] if "daedal" in self.scorers else [ours])

    def grade(self, example: Example, response: Response, tools: Tools) -> Grade:
        """Grade one answer."""
        _, grade = next(self.grades([(example, response)], tools))
        return grade

    def grades(self, answers: Answers, tools: Tools) -> Iterator[tuple[int, Grade]]:
        """Grade many answers; yields each with its number as soon as it is known."""
        for number, marks in score(answers, self.graders, tools):
            right = [mark.right for mark in marks.values()]
            detail = {name: mark.detail for name, mark in marks.items() if mark.detail}
            yield number, Grade(right[0], right[-1], detail)
