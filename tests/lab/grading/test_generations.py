"""Files of generated texts, in the forms that people have them."""

from __future__ import annotations

import json

import pytest

from unmask.errors import UnmaskError
from unmask.lab.benchmarks import BENCHMARKS
from unmask.lab.grading.generations import read_generations


@pytest.fixture
def read(tmp_path, data):
    def call(*rows, task="gsm8k", length=None):
        file = tmp_path / "texts.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return read_generations(file, task, BENCHMARKS[task].load(data), length)

    return call


@pytest.mark.parametrize(
    ("task", "row", "index"),
    [
        ("gsm8k", {"id": 7, "text": "x"}, 7),
        ("gsm8k", {"id": "7", "generation": "x"}, 7),
        ("gsm8k", {"doc_id": 7, "resps": [["x"]]}, 7),
        ("gsm8k", {"index": 7, "generations": "x", "dataset": "openai/GSM8K"}, 7),
        ("math500", {"id": "test/cards/3.json", "response": "x", "task": "MATH-500"}, 3),
        ("math500", {"unique_id": "test/cards/3.json", "output": "x"}, 3),
        ("humaneval", {"task_id": "HumanEval/9", "completion": "x"}, 9),
        ("humaneval", {"id": 9, "generated_text": "x"}, 9),
        ("mbpp", {"task_id": 11, "text": "x"}, 0),
        ("mbpp", {"idx": 11, "prediction": "x"}, 11),
        ("mbpp-sanitized", {"id": 12, "text": "x"}, 1),
    ],
)
def test_ids_indices_and_texts_are_found_under_their_usual_names(read, task, row, index):
    generations = read(row, task=task)
    assert [(each.example.index, each.text) for each in generations.texts] == [(index, "x")]


def test_rows_of_other_tasks_and_lengths_are_skipped_and_counted(read):
    rows = [
        {"task": "gsm8k", "id": 1, "gen_length": 128, "text": "a"},
        {"task": "gsm8k", "id": 1, "gen_length": 256, "text": "b"},
        {"task": "math500", "id": "x", "gen_length": 256, "text": "c"},
    ]
    both, one = read(*rows), read(*rows, length=256)
    assert (sorted(each.length for each in both.texts), both.other) == ([128, 256], 1)
    assert ([each.text for each in one.texts], one.other) == (["b"], 2)


def test_unknown_ids_are_kept_apart(read):
    generations = read({"id": 1, "text": "a"}, {"id": 5000, "text": "b"}, {"id": "x", "text": "c"})
    assert len(generations.texts) == 1
    assert [place.rpartition(":")[2] for place in generations.unknown] == ["2", "3"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"text": "a"}], ":1: no id; a row needs one of id, task_id, "),
        ([{"id": 1}], ":1: no text; a row needs one of text, "),
        ([{"id": 1, "text": 5}], ":1: 'text' must be one text, got int"),
        ([{"id": 1, "resps": [["a", "b"]]}], ":1: 'resps' must be one text, got list"),
        ([{"id": 1, "text": "a", "gen_length": "256"}], "'gen_length' must be a whole number"),
        ([{"id": 1, "text": "a"}, {"id": 1, "text": "b"}], ":2: a second text for 1, which .*:1"),
        ([{"id": 5000, "text": "a"}], r"holds no text for gsm8k \(1 unknown ids, first at .*:1\)"),
        ([], "holds no text for gsm8k$"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(read, rows, message):
    with pytest.raises(UnmaskError, match=message):
        read(*rows)


def test_a_length_that_no_row_has_is_told(read):
    with pytest.raises(UnmaskError, match="of length 64; 1 rows of other tasks or lengths"):
        read({"id": 1, "text": "a", "gen_length": 256}, length=64)
