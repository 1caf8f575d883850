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
_PATIENCE = 5_000  # problems without a new one among them: there are no more


@dataclass(frozen=True)
class Problem:
    """A prompt, one right answer, and what a grader must know.

    `content` says what is asked apart from its wording: problems with equal content are always in
    the same split.
    """

    task: str
    prompt: str
    answer: str
    content: str
    facts: Any = None


@dataclass(frozen=True)
class Task:
    """Problems drawn from a random source, and the rule that says which texts solve them."""

    name: str
    about: str
    draw: Callable[[Random], Problem]
    solved: Callable[[Problem, str], bool]

    def problems(self, split: Split, seed: int = 0) -> Iterator[Problem]:
        """An endless stream of a split's problems, the same for the same seed."""
        if split not in SPLITS:
            raise UnknownName("split", str(split), SPLITS)
        drawn = map(self.draw, repeat(Random(f"{self.name}/{split}/{seed}")))
        return (problem for problem in drawn if split_of(problem.content) == split)

    def sample(self, split: Split, count: int, seed: int = 0) -> list[Problem]:
        """The first `count` problems of a split, no content twice."""
        found: dict[str, Problem] = {}
        problems = self.problems(split, seed)
        while len(found) < count:
            some = islice(problems, _PATIENCE)
            new = next((problem for problem in some if problem.content not in found), None)
            if new is None:
                raise UnmaskError(
                    f"{self.name} has about {len(found)} different {split} problems, got {count}; "
                    "ask for fewer"
                )
            found[new.content] = new
        return list(found.values())


def split_of(content: str) -> Split:
    """One content in twenty is for tests, one in forty for calibration, the rest for training."""
    bucket = int.from_bytes(hashlib.sha256(content.encode()).digest()[:4], "big") % 40
    return "test" if bucket < 2 else "calibration" if bucket == 2 else "train"
