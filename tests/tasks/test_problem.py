"""What holds for every task: right answers, fixed streams, and splits that share nothing."""

from __future__ import annotations

import hashlib
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask import UnknownName, UnmaskError
from unmask.tasks import SPLITS, TASKS, Problem, Task, split_of

# A model was trained on these problems: another digest is another task, and needs another model.
DIGESTS = {
    "words": "ce493bb20ea41a59299f799d97817e7831e0f2369968927ae824b95777a6ec7d",
    "code": "2fd1c4d26a7b57906591de6a5c98c628cb983f8937fe964546cea9553026989c",
    "copy": "7b45e0ce911f0986a82814da6fc041f28e042f53cdfc9e10e2ad669773759462",
    "reverse": "b0aa5636374a5939ec9ab7b1b60e0e990d1e72347c174ea2c971bc8ff4cdb12b",
    "sort": "79d9d89ed4085fd6e1ec2d55d145c9d216fede30c61027aadb5c34dd980cdb55",
    "insert": "38dfb73916f47551eea9749bf8c631cf7a5360e6a803f02c17713414971f46e2",
    "remove": "021d399fb16c2dc20d40d80bcf23bf8b0a13dbc38c6dee8b60fa934e2ff124f9",
    "replace": "1292d07494cf4ba6c75f5fc1bf2c5d04428e997674d45af3f6341696ec8dab9f",
    "insert-random": "154798700570ab75bedc5c6f3d6083736506e2a0fd18b2fcab75654e9f7ec466",
    "remove-random": "68d67755d13ec337538b2900fbcbf576b84c0c7f44bab738e4c31c73cba47608",
    "replace-random": "a748e3d04473f5caf0ff9cdb243e598d7d127ead7f61183cb2ea73ed651813df",
    "shuffle": "8d314ddc2fa4a7e7f792c43015adaf65ecf21296a196df66d6b89c76896da69b",
    "latin": "6184042b5da51da66d0f1f373d464a1e80505fa7235f83b90724f7e476380292",
    "sudoku": "2ad069a467a143f1388b019451888d6549cfb0fcaaacbcc29c92565eb8fb60f8",
}
PIECES = (
    "def f(x):", "\n", "    ", "return", " x", " xs", "f = lambda x:", " +", " [", "]", " (", ")",
    " for", " in", " if", " else", " 7", " 12", " ####", ",", ".", " fox", " owl", "\\", "'", "\0",
)  # fmt: skip
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def first(task, count, split="train", seed=0):
    return list(islice(task.problems(split, seed), count))


@every_task
def test_a_pinned_digest_notices_any_change_of_the_problems(task):
    digest = hashlib.sha256()
    for problem in first(task, 200):
        digest.update(repr((problem.prompt, problem.answer, problem.content)).encode())
    assert digest.hexdigest() == DIGESTS[task.name]


@every_task
@pytest.mark.parametrize("split", SPLITS)
def test_every_reference_answer_solves_its_problem(task, split):
    for problem in first(task, 500 if split == "train" else 50, split):
        assert problem.task == task.name
        assert task.solved(problem, problem.answer), problem


@every_task
def test_a_reference_answer_may_stand_between_blank_lines(task):
    for problem in first(task, 50):
        assert task.solved(problem, f"\n{problem.answer} \n\n")


@every_task
def test_no_text_is_no_answer(task):
    problem = first(task, 1)[0]
    assert not any(task.solved(problem, text) for text in ("", " ", "\n\n", ".", ",", "####"))


@every_task
@given(text=st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_a_checker_judges_any_text_and_never_raises(task, text):
    problem = first(task, 1)[0]
    assert task.solved(problem, text) in (True, False)
    assert task.solved(problem, problem.answer + text) in (True, False)


@every_task
def test_the_same_seed_gives_the_same_problems(task):
    assert first(task, 30, seed=3) == first(task, 30, seed=3)
    assert first(task, 30, seed=3) != first(task, 30, seed=4)


@every_task
def test_the_splits_share_no_content(task):
    contents = {split: {problem.content for problem in first(task, 60, split)} for split in SPLITS}
    for split, found in contents.items():
        assert {split_of(content) for content in found} == {split}
    assert len(set.union(*contents.values())) == sum(map(len, contents.values()))


@every_task
def test_a_problem_in_twenty_is_held_out_for_tests_and_one_in_forty_for_calibration(task):
    random = Random(0)
    splits = [split_of(task.draw(random).content) for _ in range(3000)]
    assert 0.03 < splits.count("test") / 3000 < 0.07
    assert 0.01 < splits.count("calibration") / 3000 < 0.04


def test_contents_fall_into_the_splits_by_their_shares():
    splits = [split_of(f"content {i}") for i in range(20_000)]
    assert splits.count("test") / 20_000 == pytest.approx(1 / 20, abs=0.005)
    assert splits.count("calibration") / 20_000 == pytest.approx(1 / 40, abs=0.005)


def test_the_split_of_a_content_never_changes():
    assert [split_of(f"content {i}") for i in (0, 21, 102)] == ["train", "test", "calibration"]


@every_task
def test_a_sample_holds_no_content_twice_and_a_larger_one_begins_with_it(task):
    sample = task.sample("train", 40)
    assert len({problem.content for problem in sample}) == 40
    assert task.sample("train", 10) == sample[:10]


def coin(random):
    side = random.randrange(200)
    return Problem("coin", "Toss.", str(side), f"coin {side}")


def test_a_sample_of_more_than_there_are_is_an_error_and_no_endless_search():
    task = Task("coin", "a coin of many sides", coin, lambda problem, text: True)
    sides = [side for side in range(200) if split_of(f"coin {side}") == "test"]
    assert len(task.sample("test", len(sides))) == len(sides)
    with pytest.raises(UnmaskError, match=rf"about {len(sides)} different test problems"):
        task.sample("test", len(sides) + 1)


def test_an_unknown_split_is_an_error_at_once():
    with pytest.raises(UnknownName, match="did you mean 'train'"):
        TASKS["copy"].problems("trian")


def test_every_task_has_a_name_of_its_own():
    assert all(name == task.name for name, task in TASKS.items())
    assert len(TASKS) == 14
