"""Every task has right answers, fixed streams, and disjoint splits."""

from __future__ import annotations

import hashlib
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask import UnknownName, UnmaskError
from unmask.embedded.tasks import SPLITS, TASKS, Problem, Task, split_of

# A model was trained on these problems: another digest is another task, and needs another model.
DIGESTS = {
    "words": "8968bda4c5f4453972c849ae22431653d920d074a47c667b47c1820e34077a80",
    "code": "2fd1c4d26a7b57906591de6a5c98c628cb983f8937fe964546cea9553026989c",
    "copy": "7882a43c0b9655ab1f4ba6839e8d9caa787f960653b60a64c9cf20d1a0fae257",
    "reverse": "f0341bd48be4e4b9d73a10aa63ba7cca2aad9e7e37dfce8080796aafa5540ce8",
    "sort": "1825bdeb1a33c73cedd9c10e2b9ebc96334a4711274d87978b1ae41db07e3d4f",
    "insert": "3ad3f509b892e9d020fa0cb63fd16fa463f597e373df9de6eba43d961faceafd",
    "remove": "1eb639cc80106cb20717ea8c3404ba99dc2ebad9e9966895a2b0c2643e6e12b4",
    "replace": "ca175f58b40e1b095a4954f59aded656bcc959f80a291283d9bd26c461405b2d",
    "insert-random": "0251a1b760a50c306012150a372ba8fd3c991fedcbad1c71ea8516a74f5e89de",
    "remove-random": "d6fac87fd28c18843b24535871d9187b0b708d8384ddcd05f11ab02703d378b9",
    "replace-random": "373d463eb510fb36b852a6cc1c20973298b9379ed79ef6fce383ea8cd5b137f1",
    "shuffle": "057a6af2ff122a60a4e3d1d7a40ccbd6983a210e32f6d5b109cf9abfbbb64b4b",
    "latin": "2dede3c28776d86c131c76c7203fadfe12dad964f673dc8d8eda5806fbd5b399",
    "sudoku": "2ad069a467a143f1388b019451888d6549cfb0fcaaacbcc29c92565eb8fb60f8",
    "sums": "d8992e70ab0a854acf105d3746f553f19070a4257812e8df280c3c81c86edd10",
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
    for split, actual in contents.items():
        assert {split_of(content) for content in actual} == {split}
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
    assert len(TASKS) == 15
