"""Word problems: every sum is right, and the answer follows from the prompt alone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import islice
from operator import add, mul, sub

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.embedded.tasks.problem import Problem
from unmask.embedded.tasks.vocabulary import MEN, WOMEN
from unmask.embedded.tasks.words import DIRECT, LARGEST, WORDS

PROBLEMS = list(islice(WORDS.problems("train", seed=1), 3000))
SUM = re.compile(r"(\d+) ([-+*]) (\d+) = (\d+)")
SIGNS = {"+": add, "-": sub, "*": mul}
EVENT = re.compile(
    r"(?P<more>buys|finds|gets|wins) (\d+)|(?:loses|sells|drops|gives away) (\d+)|doubles that"
)
TWELVE = Problem("words", "", "", "", 12)


def solution(prompt):
    """The answer, read from the prompt."""
    together = re.search(r"has (\d+) \w+\. \w+ has (\d+) (more|fewer)\.", prompt)
    if together:
        count, other, told = together.groups()
        return 2 * int(count) + (int(other) if told == "more" else -int(other))
    boxes = re.search(r"has (\d+) (?:bags|boxes|packs) of (\d+) ", prompt)
    count = int(boxes[1]) * int(boxes[2]) if boxes else int(re.search(r"\d+", prompt)[0])
    for event in EVENT.finditer(prompt):
        if event["more"]:
            count += int(event[2])
        else:
            count = count - int(event[3]) if event[3] else count * 2
    return count


def test_the_answer_follows_from_the_prompt():
    for problem in PROBLEMS:
        assert problem.answer.endswith(f"#### {solution(problem.prompt)}"), problem


def test_every_sum_of_a_worked_answer_is_right():
    for problem in PROBLEMS:
        for left, sign, right, result in SUM.findall(problem.answer):
            assert SIGNS[sign](int(left), int(right)) == int(result), problem


def test_the_steps_end_with_the_answer():
    for problem in PROBLEMS:
        steps = re.findall(r"\d+", problem.answer.split("####")[0])
        assert not steps or int(steps[-1]) == problem.facts, problem


def test_every_number_is_a_single_token():
    for problem in PROBLEMS:
        numbers = re.findall(r"\d+", problem.prompt + problem.answer)
        assert all(0 <= int(number) <= LARGEST for number in numbers), problem
        assert "-" not in re.sub(r"\d - \d", "", problem.answer)  # none is negative


def test_a_few_problems_are_answered_directly():
    direct = [re.fullmatch(r"#### \d+", problem.answer) is not None for problem in PROBLEMS]
    assert sum(direct) / len(direct) == pytest.approx(DIRECT, abs=0.012)


@pytest.mark.parametrize(
    "form",
    [
        r"First \d+\.",
        r"At first \d+ \* \d+ = \d+\.",
        r"\w+ has \d+\.",
        r"Now \d+\.",
        r"Then \d+\.",
        r"Plus \d+ is \d+\.",
        r"Minus \d+ is \d+\.",
        r"Times 2 is \d+\.",
        r"\. \d+ . \d+ = \d+\.",
        r"So \d+ . \d+ = \d+\.",
        r"In all \d+\. ####",
        r"So \w+ has \d+\. ####",
        r"\w+ has \d+ . \d+ = \d+ \w+\. (Together|In all) there are \d+ . \d+ = \d+\. ####",
    ],
)
def test_the_parts_of_worked_answers_come_in_several_forms(form):
    share = sum(re.search(form, problem.answer) is not None for problem in PROBLEMS)
    assert share > 0.02 * len(PROBLEMS)


def test_worked_answers_to_three_events_have_almost_any_length():
    worked = [p.answer.split() for p in PROBLEMS if p.content.count(",") == 2]
    lengths = Counter(len(words) for words in worked if len(words) > 2)
    assert all(lengths[length] for length in range(10, 24))
    assert max(lengths.values()) < 0.15 * sum(lengths.values())


def test_people_are_spoken_of_as_she_or_he_by_their_names():
    for problem in PROBLEMS:
        name = next(word for word in re.findall(r"\w+", problem.prompt) if word in WOMEN + MEN)
        other = r"\b[Hh]e\b" if name in WOMEN else r"\b[Ss]he\b"
        assert not re.search(other, problem.prompt + problem.answer), problem


def test_equal_sums_in_other_words_are_one_content():
    wordings, answers = defaultdict(set), defaultdict(set)
    for problem in PROBLEMS:
        wordings[problem.content].add(problem.prompt)
        answers[problem.content].add(problem.facts)
    assert max(map(len, wordings.values())) > 5
    assert max(map(len, answers.values())) == 1


@given(number=st.integers())
def test_only_the_right_number_solves(number):
    assert WORDS.solved(TWELVE, f"5 + 7 = 12. #### {number}") == (number == 12)


@pytest.mark.parametrize(
    "text", ["#### 12", "####12", "####\n12", "#### 12.", "#### 12 apples", "#### 7 #### 12"]
)
def test_the_last_number_behind_the_mark_counts(text):
    assert WORDS.solved(TWELVE, text)


@pytest.mark.parametrize(
    "text",
    [
        "12",
        "### 12",
        "#### x 12",
        "#### 12 #### 7",
        "#### -12",
        "#### 12.5",
        "#### 12,000",
        "#### 1 2",
    ],
)
def test_anything_else_behind_the_mark_is_wrong(text):
    assert not WORDS.solved(TWELVE, text)


def test_a_number_too_long_for_python_is_merely_wrong():
    assert not WORDS.solved(TWELVE, "#### " + "9" * 10_000)
