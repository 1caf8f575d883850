"""A problem with an exact checker, and the split that keeps held-out content out of training."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from random import Random
from typing import Any, Literal, get_args

from unmask.errors import UnknownName, UnmaskError

Split = Literal["train", "calibration", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
_PATIENCE = 5_000  # problems in a row without a new one; then there are no more


@dataclass(frozen=True)
class Problem:
    """A prompt, one right answer, and the facts for the check.

    `content` identifies the problem without its wording: problems with equal content are always in
    the same split.
    """

    task: str
    prompt: str
    answer: str
    content: str
    facts: Any = None


@dataclass(frozen=True)
class Task:
    """A source of random problems, and the check of their answers."""

    name: str
    about: str
    draw: Callable[[Random], Problem]
    solved: Callable[[Problem, str], bool]

    def problems(self, split: Split, seed: int = 0) -> Iterator[Problem]:
        """An endless stream of the problems of a split; the same seed gives the same stream."""
        if split not in SPLITS:
            raise UnknownName("split", str(split), SPLITS)
        drawn = map(self.draw, repeat(Random(f"{self.name}/{split}/{seed}")))
        return (problem for problem in drawn if split_of(problem.content) == split)

    def sample(self, split: Split, count: int, seed: int = 0) -> list[Problem]:
        """The first `count` problems of a split, all with different content."""
        chosen: dict[str, Problem] = {}
        problems = self.problems(split, seed)
        while len(chosen) < count:
            some = islice(problems, _PATIENCE)
            new = next((problem for problem in some if problem.content not in chosen), None)
            if new is None:
                raise UnmaskError(
                    f"{self.name} has about {len(chosen)} different {split} problems, not {count}; "
                    "ask for fewer"
                )
            chosen[new.content] = new
        return list(chosen.values())


def split_of(content: str) -> Split:
    """The split of a content: one in twenty is test, one in forty calibration, the rest train."""
    bucket = int.from_bytes(hashlib.sha256(content.encode()).digest()[:4], "big") % 40
    return "test" if bucket < 2 else "calibration" if bucket == 2 else "train"
