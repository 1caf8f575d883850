"""The figures of the protocol, on real generations; only where UNMASK_DATA names their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unmask.lab.benchmarks import BENCHMARKS
from unmask.lab.grading import Response, score
from unmask.lab.grading.generations import read_generations
from unmask.lab.grading.graded_texts import summarised
from unmask.lab.grading.scorer import spread

DATA = os.environ.get("UNMASK_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="UNMASK_DATA names no folder of benchmark data")
TABLE = {
    "gsm8k": {
        "unmask": 79.0, "daedal": 75.5, "d1": 76.5, "klass": 78.2, "lm-eval": 78.7,
        "opencompass": 78.0, "math-verify": 78.1, "strict": 0.0,
    },
    "math500": {
        "unmask": 40.0, "daedal": 36.4, "string": 36.4, "d1": 36.2, "klass": 37.6,
        "math-verify": 40.0, "math-verify-box": 39.6, "math-verify-bare": 32.6, "strict": 0.0,
    },
}  # fmt: skip


@pytest.mark.parametrize("task", TABLE)
def test_every_scorer_repeats_its_published_figure(task, tools):
    benchmark, folder = BENCHMARKS[task], Path(DATA)
    examples = benchmark.load(folder)
    texts = read_generations(folder / "llada_generations.jsonl", task, examples).texts
    scorers = benchmark.chosen(list(TABLE[task]))
    answers = [(each.example, Response(each.text)) for each in texts]
    marked = [(texts[number], marks) for number, marks in score(answers, scorers, tools)]
    [report] = summarised(marked, scorers, len(examples))
    measured = {each.scorer.name: 100 * each.right / each.graded for each in report.scores}
    assert measured == pytest.approx(TABLE[task], abs=0.1)


@pytest.mark.parametrize("task", TABLE)
def test_all_references_are_right_and_all_spoiled_ones_wrong(task, tools):
    benchmark = BENCHMARKS[task]
    examples = benchmark.load(Path(DATA))
    answers = [(example, Response(benchmark.gold(example))) for example in examples]
    answers += [(example, Response(benchmark.wrong(example))) for example in examples]
    grades = dict(benchmark.grades(answers, tools))
    assert [n for n, grade in grades.items() if grade.acc != (n < len(examples))] == []


@pytest.mark.parametrize("task", ["humaneval", "mbpp"])
def test_references_of_code_pass_through_extraction(task, tools):
    benchmark = BENCHMARKS[task]
    chosen = spread(benchmark, benchmark.load(Path(DATA)), 500)
    texts = [*map(benchmark.gold, chosen), *(example.reference for example in chosen)]
    answers = [(e, Response(t)) for e, t in zip(chosen * 2, texts, strict=True)]
    assert all(grade.acc for _, grade in benchmark.grades(answers, tools))
