"""Lists of words to copy, reverse, sort or change; some tasks have many right answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from unmask.embedded.tasks.problem import Problem, Task
from unmask.embedded.tasks.vocabulary import ITEMS

Items = list[str]
Drawn = tuple[str, Items, object]  # the request, an answer, and the facts for the check
_SHORTEST, _LONGEST = 3, 5


def read_list(text: str) -> Items:
    """The words of a list; if the text has several lines, the last one counts."""
    lines = text.strip().splitlines()
    last = lines[-1].strip().removesuffix(".") if lines else ""
    return [word.strip() for word in last.split(",")]


def _named(
    name: str,
    about: str,
    make: Callable[[Random, Items], Drawn],
    right: Callable[[Items, Items, Any], bool],
) -> Task:
    """A task over a list: `make` returns request, answer and facts; `right` checks an answer."""

    def draw(random: Random) -> Problem:
        items = random.sample(ITEMS, random.randint(_SHORTEST, _LONGEST))
        request, answer, facts = make(random, items)
        prompt = f"{request}: {', '.join(items)}."
        content = f"lists {' '.join(items)}"
        return Problem(name, prompt, ", ".join(answer), content, (items, facts))

    def solved(problem: Problem, text: str) -> bool:
        items, facts = problem.facts
        return right(read_list(text), items, facts)

    return Task(name, about, draw, solved)


def _exact(answer: Items, _: Items, wanted: Items) -> bool:
    return answer == wanted


def _with(items: Items, place: int, word: str) -> Items:
    return [*items[:place], word, *items[place:]]


def _without(items: Items, place: int) -> Items:
    return items[:place] + items[place + 1 :]


def _swapped(items: Items, place: int, word: str) -> Items:
    return _with(_without(items, place), place, word)


def _copy(random: Random, items: Items) -> Drawn:
    return random.choice(("Copy", "Repeat")), items, items


def _reverse(random: Random, items: Items) -> Drawn:
    answer = items[::-1]
    return random.choice(("Reverse", "Write backwards")), answer, answer


def _sort(random: Random, items: Items) -> Drawn:
    answer = sorted(items)
    return random.choice(("Sort", "Put in order")), answer, answer


def _other(random: Random, items: Items) -> str:
    return random.choice([word for word in ITEMS if word not in items])


def _insert_at(random: Random, items: Items) -> Drawn:
    place, word = random.randint(1, len(items) + 1), _other(random, items)
    answer = _with(items, place - 1, word)
    return f"Insert {word} at {place}", answer, answer


def _remove_at(random: Random, items: Items) -> Drawn:
    place = random.randint(1, len(items))
    answer = _without(items, place - 1)
    return f"Remove at {place}", answer, answer


def _replace_at(random: Random, items: Items) -> Drawn:
    place, word = random.randint(1, len(items)), _other(random, items)
    answer = _swapped(items, place - 1, word)
    return f"Replace at {place} by {word}", answer, answer


def _insert_random(random: Random, items: Items) -> Drawn:
    place, word = random.randint(0, len(items)), _other(random, items)
    return f"Insert {word} anywhere", _with(items, place, word), word


def _inserted(answer: Items, items: Items, word: str) -> bool:
    return any(answer == _with(items, place, word) for place in range(len(items) + 1))


def _remove_random(random: Random, items: Items) -> Drawn:
    place = random.randrange(len(items))
    return "Remove any one", _without(items, place), None


def _removed(answer: Items, items: Items, _: None) -> bool:
    return any(answer == _without(items, place) for place in range(len(items)))


def _replace_random(random: Random, items: Items) -> Drawn:
    place, word = random.randrange(len(items)), _other(random, items)
    return f"Replace any one by {word}", _swapped(items, place, word), word


def _replaced(answer: Items, items: Items, word: str) -> bool:
    return any(answer == _swapped(items, place, word) for place in range(len(items)))


def _shuffle(random: Random, items: Items) -> Drawn:
    answer = items
    while answer == items:
        answer = random.sample(items, len(items))
    return "Shuffle", answer, None


def _shuffled(answer: Items, items: Items, _: None) -> bool:
    return answer != items and Counter(answer) == Counter(items)


LISTS = (
    _named("copy", "the same list", _copy, _exact),
    _named("reverse", "the list backwards", _reverse, _exact),
    _named("sort", "the list in alphabetical order", _sort, _exact),
    _named("insert", "a word inserted at a given place", _insert_at, _exact),
    _named("remove", "the word at a given place removed", _remove_at, _exact),
    _named("replace", "the word at a given place replaced", _replace_at, _exact),
    _named("insert-random", "a word inserted anywhere", _insert_random, _inserted),
    _named("remove-random", "any one word removed", _remove_random, _removed),
    _named("replace-random", "any one word replaced", _replace_random, _replaced),
    _named("shuffle", "the list in any other order", _shuffle, _shuffled),
)
