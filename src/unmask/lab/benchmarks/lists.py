"""Ten operations on a list of names, for chat models; the idea is ParallelBench's, the texts ours.

Where one answer is right, positions do not depend on each other; where many are, tokens that are
written at once must agree on one of them.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

Items = list[str]

FIRST = (
    "Abel", "Britta", "Cyril", "Dora", "Edgar", "Flora", "Gustav", "Hilda", "Ivan", "Jonna",
    "Klaus", "Lydia", "Marek", "Nadia", "Oskar", "Petra", "Quentin", "Rosa", "Stefan", "Thea",
)  # fmt: skip
LAST = (
    "Acker", "Birch", "Crane", "Dahl", "Ekman", "Frost", "Grove", "Hale", "Isak", "Juhl",
    "Kern", "Lund", "Moor", "Nyberg", "Oak", "Park", "Quist", "Reed", "Stone", "Thorn",
)  # fmt: skip
FORM = (
    "Reply with the new list and nothing else, in the same form as the list that is given: square "
    "brackets, every name in double quotes, commas between them."
)
_LIST = re.compile(r"\[[^\[\]]*\]")


@dataclass(frozen=True)
class Case:
    """A list, a name that is not in it, and a place counted from 1."""

    items: Items
    word: str
    place: int


@dataclass(frozen=True)
class ListOperation:
    """A request, one right answer, and a check of answers."""

    name: str
    about: str
    request: str  # with {word} and {place}
    answer: Callable[[Random, Case], Items]
    right: Callable[[Items, Case], bool]

    def draw(self, random: Random, length: int) -> tuple[str, str, Case]:
        """A request, an answer to it, and the case."""
        names = [f"{first} {last}" for first in FIRST for last in LAST]
        word, *items = random.sample(names, length + 1)
        case = Case(items, word, random.randint(1, length))
        asked = self.request.format(word=word, place=case.place)
        request = f"{asked} {FORM}\n\n{written(items)}"
        return request, written(self.answer(random, case)), case

    def solved(self, case: Case, text: str) -> bool:
        """Whether the last list of a text is right."""
        items = read(text)
        return items is not None and self.right(items, case)


def written(items: Items) -> str:
    """A list in the format that the prompt asks for."""
    return json.dumps(items, ensure_ascii=False)


def read(text: str) -> Items | None:
    """The last list of a text, if it is one of strings."""
    lists = _LIST.findall(text)
    for parse in (json.loads, ast.literal_eval) if lists else ():
        try:
            value = parse(lists[-1])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return [item.strip() for item in value]
    return None


def _inserted(case: Case, place: int) -> Items:
    return [*case.items[: place - 1], case.word, *case.items[place - 1 :]]


def _removed(case: Case, place: int) -> Items:
    return case.items[: place - 1] + case.items[place:]


def _replaced(case: Case, place: int) -> Items:
    return [*case.items[: place - 1], case.word, *case.items[place:]]


def _shuffled(random: Random, case: Case) -> Items:
    while (answer := random.sample(case.items, len(case.items))) == case.items:
        pass
    return answer


def _fixed(name: str, about: str, request: str, change: Callable[[Case], Items]) -> ListOperation:
    """One right answer."""
    return ListOperation(
        name,
        about,
        request,
        lambda _, case: change(case),
        lambda items, case: items == change(case),
    )


def _free(
    name: str, about: str, request: str, change: Callable[[Case, int], Items], more: int = 0
) -> ListOperation:
    """One right answer for every place; with `more` = 1 also for the place after the last."""
    return ListOperation(
        name,
        about,
        request,
        lambda random, case: change(case, random.randint(1, len(case.items) + more)),
        lambda items, case: any(
            items == change(case, place) for place in range(1, len(case.items) + more + 1)
        ),
    )


OPERATIONS = (
    _fixed("copy", "the same list", "Write this list once more.", lambda case: case.items),
    _fixed(
        "reverse", "the list backwards", "Turn this list around: the last name comes first.",
        lambda case: case.items[::-1],
    ),
    _fixed(
        "sort", "the list in alphabetical order",
        "Put the names of this list in alphabetical order.", lambda case: sorted(case.items),
    ),
    _fixed(
        "insert", "a name put in at a given place",
        'Put "{word}" into this list, so that it stands at place {place}, counted from 1.',
        lambda case: _inserted(case, case.place),
    ),
    _fixed(
        "remove", "the name at a given place taken out",
        "Take the name at place {place}, counted from 1, out of this list.",
        lambda case: _removed(case, case.place),
    ),
    _fixed(
        "replace", "the name at a given place replaced",
        'Replace the name at place {place} of this list, counted from 1, by "{word}".',
        lambda case: _replaced(case, case.place),
    ),
    _free(
        "insert-random", "a name put in anywhere",
        'Put "{word}" into this list at any place you like; leave the rest as it is.',
        _inserted, more=1,
    ),
    _free(
        "remove-random", "any one name taken out",
        "Take one name of your choice out of this list; leave the rest as it is.", _removed,
    ),
    _free(
        "replace-random", "any one name replaced",
        'Replace one name of your choice in this list by "{word}"; leave the rest as it is.',
        _replaced,
    ),
    ListOperation(
        "shuffle", "the list in any other order",
        "Put the names of this list in some other order than they have now.",
        _shuffled,
        lambda items, case: items != case.items and Counter(items) == Counter(case.items),
    ),
)  # fmt: skip
