"""Word problems of a few steps; the answer has the steps and then `#### answer`.

A small share is answered directly. One step is easy, but all at once are hard. So a decoder that
commits the answer before the steps is probably wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from unmask.embedded.tasks.problem import Problem, Task
from unmask.embedded.tasks.vocabulary import BOXES, GOODS, MEN, WOMEN

DIRECT = 0.04  # share of problems that are answered with the number alone
LARGEST = 60  # the largest number that is a single token
STEP = 5  # the largest change in one step
_GAIN = ("buys", "finds", "gets", "wins")
_LOSE = ("loses", "sells", "drops", "gives away")
_ANSWER = re.compile(r"####\s*(-?\d+(?:[.,]\d+)*)")

Sums = list[tuple[str, int]]  # the left side as text, and the result


@dataclass(frozen=True)
class CountChange:
    """One change of the count, and its verb."""

    sign: str  # + - *
    amount: int
    verb: str

    def after(self, count: int) -> int:
        """The count after this change."""
        if self.sign == "*":
            return count * self.amount
        return count + self.amount if self.sign == "+" else count - self.amount

    @property
    def words(self) -> str:
        return "doubles that" if self.sign == "*" else f"{self.verb} {self.amount}"


@dataclass(frozen=True)
class CountStory:
    """A person with a number of goods, and the changes of that number."""

    name: str
    pronoun: str
    goods: str
    opening: str  # the first sentence of the prompt
    start: tuple[str, int] | None  # the sum that gives the first count, if it must be computed
    count: int
    events: tuple[CountChange, ...]

    @property
    def counts(self) -> list[int]:
        """The first count, and the count after each event."""
        counts = [self.count]
        for event in self.events:
            counts.append(event.after(counts[-1]))
        return counts


def draw(random: Random) -> Problem:
    """Draw a chain of events, some boxes and then events, or two people together."""
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
    return Problem("words", _prompt(random, story), answer, content, sums[-1][1])


def solved(problem: Problem, text: str) -> bool:
    """Whether the last number after #### is the right one."""
    return _ANSWER.findall(text)[-1:] == [str(problem.facts)]


def _someone(random: Random) -> tuple[str, str]:
    if random.random() < 0.5:
        return random.choice(WOMEN), "she"
    return random.choice(MEN), "he"


def _chain(random: Random) -> CountStory:
    name, pronoun = _someone(random)
    goods, count = random.choice(GOODS), random.randint(5, 30)
    opening = random.choice(("{} has {} {}.", "{} starts with {} {}.", "At first {} has {} {}."))
    events = _events(random, count, random.choice((3, 3, 3, 2)))
    opening = opening.format(name, count, goods)
    return CountStory(name, pronoun, goods, opening, None, count, events)


def _boxes(random: Random) -> CountStory:
    name, pronoun = _someone(random)
    goods, boxes = random.choice(GOODS), random.choice(BOXES)
    number, size = random.randint(2, 6), random.randint(2, 6)
    opening = f"{name} has {number} {boxes} of {size} {goods}."
    count = number * size
    start, events = (f"{number} * {size}", count), _events(random, count, 2)
    return CountStory(name, pronoun, goods, opening, start, count, events)


def _events(random: Random, count: int, number: int) -> tuple[CountChange, ...]:
    events: list[CountChange] = []
    while len(events) < number:
        sign = random.choice("++++----*")
        amount = 2 if sign == "*" else random.randint(1, STEP)
        verb = random.choice(_GAIN if sign == "+" else _LOSE)
        event = CountChange(sign, amount, verb)
        if 0 < event.after(count) <= LARGEST:
            events.append(event)
            count = event.after(count)
    return tuple(events)


def _prompt(random: Random, story: CountStory) -> str:
    """The prompt: an opening, the events in one or several sentences, and a question."""
    phrases = [event.words for event in story.events]
    subject = story.pronoun.capitalize()
    if random.random() < 0.5:
        *most, last = phrases
        events = f" {subject} {', '.join([*most, f'then {last}'] if most else [last])}."
    else:
        events = f" {subject} {phrases[0]}." + "".join(
            f" {random.choice(('Then', 'Next', 'Later'))} {story.pronoun} {each}."
            for each in phrases[1:]
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


def _worked(random: Random, story: CountStory, sums: Sums) -> str:
    """Every part in a random form, so that answers have many different lengths."""
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


def _opening(random: Random, story: CountStory) -> str:
    count = f"{story.count}" if story.start is None else f"{story.start[0]} = {story.start[1]}"
    return random.choice((f"First {count}.", f"At first {count}.", f"{story.name} has {count}."))


def _step(random: Random, event: CountChange, before: int, after: int) -> str:
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
    """The sum of two people's goods, where one number is given relative to the other."""
    (name, _), (other, _) = _someone(random), _someone(random)
    while other == name:
        other, _ = _someone(random)
    goods, count, more = random.choice(GOODS), random.randint(2, 15), random.randint(1, STEP)
    sign = "+" if more >= count or random.random() < 0.5 else "-"
    theirs = count + more if sign == "+" else count - more
    total = count + theirs
    relation = "more" if sign == "+" else "fewer"
    ask = random.choice(("together", "in all"))
    prompt = f"{name} has {count} {goods}. {other} has {more} {relation}. How many {ask}?"
    sums: Sums = [(f"{count} {sign} {more}", theirs), (f"{count} + {theirs}", total)]
    first, second = (f"{left} = {right}" for left, right in sums)
    style = random.random()
    if style < DIRECT:
        answer = _direct(sums)
    elif style < 0.5:
        answer = f"So {first}. {second}. {_direct(sums)}"
    else:
        steps = f"{other} has {first} {goods}. {ask.capitalize()} there are {second}."
        answer = f"{steps} {_direct(sums)}"
    return Problem("words", prompt, answer, f"words together {count} {sign}{more}", total)


WORDS = Task("words", "word problems of two to three steps, ended by #### answer", draw, solved)
