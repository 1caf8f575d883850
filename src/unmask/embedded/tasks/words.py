"""Word problems of a few steps, answered with the steps written out and `#### answer`.

A small share is answered directly. One step is easy and all of them at once are hard, so a decoder
that fixes the answer before the steps is likely to be wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from unmask.embedded.tasks.problem import Problem, Task
from unmask.embedded.tasks.vocabulary import BOXES, GOODS, MEN, WOMEN

DIRECT = 0.04  # answered with nothing but the number
LARGEST = 60  # numbers are single tokens up to here
STEP = 5  # at most this many come or go at once
_GAIN = ("buys", "finds", "gets", "wins")
_LOSE = ("loses", "sells", "drops", "gives away")
_ANSWER = re.compile(r"####\s*(-?\d+(?:[.,]\d+)*)")

Sums = list[tuple[str, int]]  # the left side as it is written, and what it comes to


@dataclass(frozen=True)
class Event:
    """One change of the count, and how it is told."""

    sign: str  # + - *
    amount: int
    verb: str

    def after(self, count: int) -> int:
        """The count after it."""
        if self.sign == "*":
            return count * self.amount
        return count + self.amount if self.sign == "+" else count - self.amount

    @property
    def told(self) -> str:
        return "doubles that" if self.sign == "*" else f"{self.verb} {self.amount}"


@dataclass(frozen=True)
class Story:
    """Who has how many of what, and what happens to them."""

    name: str
    pronoun: str
    goods: str
    opening: str  # how the prompt begins
    start: tuple[str, int] | None  # a sum that gives the first count, where it must be computed
    count: int
    events: tuple[Event, ...]

    @property
    def counts(self) -> list[int]:
        """The count at first and after each event."""
        counts = [self.count]
        for event in self.events:
            counts.append(event.after(counts[-1]))
        return counts


def draw(random: Random) -> Problem:
    """A chain of events, a number of boxes and then events, or two people together."""
    kind = random.random()
    if kind < 0.08:
        return _together(random)
    story = _boxes(random) if kind < 0.3 else _chain(random)
    sums: Sums = [] if story.start is None else [story.start]
    sums += [
        (f"{before} {event.sign} {event.amount}", after)
        for (before, after), event in zip(pairwise(story.counts), story.events, strict=True)
    ]
    changes = ",".join(f"{event.sign}{event.amount}" for event in story.events)
    content = f"words {story.start or story.count} {changes}"
    answer = _direct(sums) if random.random() < DIRECT else _worked(random, story, sums)
    return Problem("words", _told(random, story), answer, content, sums[-1][1])


def solved(problem: Problem, text: str) -> bool:
    """Whether the last number behind #### is the right one."""
    found = _ANSWER.findall(text)
    return bool(found) and found[-1] == str(problem.facts)


def _someone(random: Random) -> tuple[str, str]:
    if random.random() < 0.5:
        return random.choice(WOMEN), "she"
    return random.choice(MEN), "he"


def _chain(random: Random) -> Story:
    name, pronoun = _someone(random)
    goods, count = random.choice(GOODS), random.randint(5, 30)
    opening = random.choice(("{} has {} {}.", "{} starts with {} {}.", "At first {} has {} {}."))
    events = _events(random, count, random.choice((3, 3, 3, 2)))
    return Story(
        name,
        pronoun,
        goods,
        opening.format(name, count, goods),
        None,
        count,
        events,
    )


def _boxes(random: Random) -> Story:
    name, pronoun = _someone(random)
    goods, boxes = random.choice(GOODS), random.choice(BOXES)
    number, size = random.randint(2, 6), random.randint(2, 6)
    opening = f"{name} has {number} {boxes} of {size} {goods}."
    product = f"{number} * {size}"
    return Story(
        name,
        pronoun,
        goods,
        opening,
        (product, number * size),
        number * size,
        _events(random, number * size, 2),
    )


def _events(random: Random, count: int, number: int) -> tuple[Event, ...]:
    events: list[Event] = []
    while len(events) < number:
        sign = random.choice("++++----*")
        amount = 2 if sign == "*" else random.randint(1, STEP)
        verb = random.choice(_GAIN if sign == "+" else _LOSE)
        event = Event(sign, amount, verb)
        if 0 < event.after(count) <= LARGEST:
            events.append(event)
            count = event.after(count)
    return tuple(events)


def _told(random: Random, story: Story) -> str:
    """The prompt: an opening, the events in one sentence or in several, a question."""
    told = [event.told for event in story.events]
    subject = story.pronoun.capitalize()
    if random.random() < 0.5:
        *most, last = told
        events = f" {subject} {', '.join([*most, f'then {last}'] if most else [last])}."
    else:
        events = f" {subject} {told[0]}." + "".join(
            f" {random.choice(('Then', 'Next', 'Later'))} {story.pronoun} {each}."
            for each in told[1:]
        )
    question = random.choice(
        (
            " How many now?",
            f" How many {story.goods} now?",
            f" How many {story.goods} does {story.name} have now?",
        )
    )
    return story.opening + events + question


def _direct(sums: Sums) -> str:
    return f"#### {sums[-1][1]}"


def _equations(sums: Sums) -> list[str]:
    return [f"{left} = {right}" for left, right in sums]


def _bare(sums: Sums) -> str:
    return f"So {'. '.join(_equations(sums))}. {_direct(sums)}"


def _worked(random: Random, story: Story, sums: Sums) -> str:
    """Each part in a form of its own, so that an answer may have almost any length."""
    parts = []
    if story.start is not None or random.random() < 0.4:
        parts.append(_opening(random, story))
    for place, event in enumerate(story.events):
        before, after = story.counts[place : place + 2]
        parts.append(_step(random, event, before, after))
    if random.random() < 0.25:
        last = story.counts[-1]
        parts.append(random.choice((f"In all {last}.", f"So {story.name} has {last}.")))
    return f"{' '.join(parts)} {_direct(sums)}"


def _opening(random: Random, story: Story) -> str:
    count = f"{story.count}" if story.start is None else f"{story.start[0]} = {story.start[1]}"
    return random.choice((f"First {count}.", f"At first {count}.", f"{story.name} has {count}."))


def _step(random: Random, event: Event, before: int, after: int) -> str:
    equation = f"{before} {event.sign} {event.amount} = {after}."
    changed = {"+": "Plus", "-": "Minus", "*": "Times"}[event.sign]
    return random.choice(
        (
            f"Now {after}.",
            f"Then {after}.",
            f"{changed} {event.amount} is {after}.",
            equation,
            equation,
            f"So {equation}",
        )
    )


def _together(random: Random) -> Problem:
    """How many two people have, when one is told in terms of the other."""
    (name, _), (other, _) = _someone(random), _someone(random)
    while other == name:
        other, _ = _someone(random)
    goods, count, more = random.choice(GOODS), random.randint(2, 15), random.randint(1, STEP)
    sign = "+" if more >= count or random.random() < 0.5 else "-"
    theirs = count + more if sign == "+" else count - more
    total = count + theirs
    told = "more" if sign == "+" else "fewer"
    ask = random.choice(("together", "in all"))
    prompt = f"{name} has {count} {goods}. {other} has {more} {told}. How many {ask}?"
    sums: Sums = [(f"{count} {sign} {more}", theirs), (f"{count} + {theirs}", total)]
    first, second = _equations(sums)
    style = random.random()
    if style < DIRECT:
        answer = _direct(sums)
    elif style < 0.5:
        answer = _bare(sums)
    else:
        steps = f"{other} has {first} {goods}. {ask.capitalize()} there are {second}."
        answer = f"{steps} {_direct(sums)}"
    return Problem("words", prompt, answer, f"words together {count} {sign}{more}", total)


WORDS = Task("words", "word problems of two to three steps, ended by #### answer", draw, solved)
