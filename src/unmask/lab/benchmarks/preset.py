"""Presets: versioned prompt formats, and the prompts they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from unmask.decoding.options import DecodingOptions
from unmask.errors import UnmaskError
from unmask.lab.benchmarks.example import Example, Slots

Exact = Literal["letter", "reconstructed", "own"]
Turn = tuple[str, str]  # role, and a template with {{slots}}

_SLOT = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class TaskPrompt:
    """The input of a model: chat messages or a plain text, then the prefill."""

    messages: tuple[dict[str, str], ...]
    text: str
    prefill: str  # the answer begins with this
    stop: tuple[str, ...]  # the answer ends before the first of these


@dataclass(frozen=True)
class Preset:
    """A prompt format with a name and a version, and where it comes from.

    Args:
        turns: the chat, last the user's question; without any, `text` is a plain prompt.
        shot: the turns of a solved example, put before `turns` for each of an example's shots.
        exact: whether its wording is its source's to the letter.
        decoding: how to decode where the user does not say it.
        stop: the answer ends before the first of these texts.
    """

    name: str
    source: str
    exact: Exact
    decoding: DecodingOptions
    turns: tuple[Turn, ...] = ()
    text: str = ""
    prefill: str = ""
    shot: tuple[Turn, ...] = ()
    shots: int = 0
    stop: tuple[str, ...] = ()
    version: int = 1

    def prompt(self, example: Example) -> TaskPrompt:
        """The prompt of an example."""
        if len(example.shots) < self.shots:
            raise UnmaskError(
                f"the preset {self.name!r} shows {self.shots} solved examples, and {example.id!r} "
                f"has {len(example.shots)}"
            )
        turns = [
            (role, filled(template, slots))
            for slots in example.shots[: self.shots]
            for role, template in self.shot
        ]
        turns += [(role, filled(template, example.slots)) for role, template in self.turns]
        messages = tuple({"role": role, "content": content} for role, content in turns)
        prefill = filled(self.prefill, example.slots)
        return TaskPrompt(messages, filled(self.text, example.slots), prefill, self.stop)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        decoding = self.decoding.given()
        del decoding["rule"]  # a preset leaves it to the user
        return {**asdict(self), "decoding": decoding}


def filled(template: str, slots: Slots) -> str:
    """A template with its `{{slots}}` filled in, once: inserted texts are not filled again."""
    return _SLOT.sub(lambda match: slots[match[1]], template)


def table(*presets: Preset) -> Mapping[str, Preset]:
    """Presets by name."""
    return {preset.name: preset for preset in presets}
