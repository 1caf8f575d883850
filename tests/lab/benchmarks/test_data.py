"""Records of benchmarks: what is checked, and what is said when something is wrong."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from tests.lab.invented import FILES, write, write_lines
from unmask.errors import UnmaskError
from unmask.lab.benchmarks import BENCHMARKS

SIZES = {"humaneval": 164, "mbpp": 500, "mbpp-sanitized": 257, "gsm8k": 1319, "math500": 500}
NAMES = {
    "humaneval": "humaneval.jsonl",
    "mbpp": "mbpp.jsonl",
    "gsm8k": "gsm8k_test.jsonl",
    "math500": "math500.jsonl",
}


@pytest.mark.parametrize("name", SIZES)
def test_all_examples_of_a_split_are_read_in_order(name, data):
    examples = BENCHMARKS[name].load(data)
    assert len(examples) == SIZES[name]
    assert [example.index for example in examples] == list(range(len(examples)))
    assert len({example.id for example in examples}) == len(examples)


def test_the_ids_are_those_of_the_files(data):
    first = {name: BENCHMARKS[name].load(data)[0].id for name in SIZES}
    assert first == {
        "humaneval": "HumanEval/0",
        "mbpp": 11,
        "mbpp-sanitized": 11,
        "gsm8k": 0,
        "math500": "test/cards/0.json",
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_says_where_to_get_it_and_which_option_to_use(name, tmp_path):
    with pytest.raises(UnmaskError) as error:
        BENCHMARKS[name].load(tmp_path)
    message = str(error.value)
    assert message.startswith(f"{tmp_path / NAMES[name]} is missing; get it from github ")
    assert message.endswith("--data")
    assert "\n" not in message


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(UnmaskError, match="is not a folder; give the folder of math500"):
        BENCHMARKS["math500"].load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_with_a_record_too_few_is_refused(name, tmp_path):
    records = FILES[NAMES[name]]
    write_lines(tmp_path / NAMES[name], records[:-1])
    with pytest.raises(UnmaskError, match=f"holds {len(records) - 1} records and should hold"):
        BENCHMARKS[name].load(tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("gsm8k", {"answer": "it is 5"}, "the answer ends in no whole number behind '####'"),
        ("gsm8k", {"answer": None}, "'answer' must be str, got NoneType"),
        ("math500", {"unique_id": "test/cards/0.json"}, "occurs at .*:1 already"),
        ("humaneval", {"entry_point": "other"}, "the prompt does not define 'other'"),
        ("humaneval", {"prompt": "def ("}, "the prompt does not define 'add_2'"),
        ("mbpp", {"test_list": []}, "'test_list' must hold asserts"),
        ("mbpp", {"test_list": ["assert True"]}, "the asserts call nothing that can be written"),
        ("mbpp", {"task_id": "3"}, "'task_id' must be int, got str"),
    ],
)
def test_a_broken_record_is_named_by_its_line(name, change, message, tmp_path):
    records = [dict(record) for record in FILES[NAMES[name]]]
    records[2].update(change)
    file = write_lines(tmp_path / NAMES[name], records)
    with pytest.raises(UnmaskError, match=f"^{file}:3: .*{message}"):
        BENCHMARKS[name].load(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"), [("{broken", "not JSON: "), ("[]", "must hold an object, got list")]
)
def test_a_line_that_is_no_record_is_named(line, message, tmp_path):
    lines = [json.dumps(record) for record in FILES["math500.jsonl"]]
    (tmp_path / "math500.jsonl").write_text("\n".join([*lines[:7], line, *lines[8:]]))
    with pytest.raises(UnmaskError, match=f":8: .*{message}"):
        BENCHMARKS["math500"].load(tmp_path)


def test_a_missing_field_is_named(tmp_path):
    records = [dict(record) for record in FILES["math500.jsonl"]]
    del records[4]["solution"]
    write_lines(tmp_path / "math500.jsonl", records)
    with pytest.raises(UnmaskError, match=":5: the field 'solution' is missing"):
        BENCHMARKS["math500"].load(tmp_path)


def test_mbpp_as_google_publishes_it_has_no_sanitized_set(tmp_path):
    records = [{k: v for k, v in r.items() if k != "sanitized"} for r in FILES["mbpp.jsonl"]]
    write_lines(tmp_path / "mbpp.jsonl", records)
    assert len(BENCHMARKS["mbpp"].load(tmp_path)) == 500
    with pytest.raises(UnmaskError, match="does not say which records are sanitized"):
        BENCHMARKS["mbpp-sanitized"].load(tmp_path)


def test_a_wrong_number_of_sanitized_records_is_refused(tmp_path):
    records = [{**r, "sanitized": r["task_id"] == 11} for r in FILES["mbpp.jsonl"]]
    write_lines(tmp_path / "mbpp.jsonl", records)
    with pytest.raises(UnmaskError, match="1 records of the test split are sanitized, and 257"):
        BENCHMARKS["mbpp-sanitized"].load(tmp_path)


def test_without_data_and_without_datasets_both_ways_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UnmaskError) as error:
        BENCHMARKS["gsm8k"].load()
    assert str(error.value) == (
        "no data: give --data DIR with gsm8k_test.jsonl (from github openai/grade-school-math: "
        "grade_school_math/data/test.jsonl), or install datasets to fetch openai/gsm8k from the hub"
    )


def test_without_a_folder_the_hub_is_asked(monkeypatch):
    asked = []

    def load_dataset(path, name, split):
        asked.append((path, name, split))
        rows = FILES["mbpp.jsonl"]
        if name == "sanitized":
            return [row for row in rows if row["sanitized"] and row["task_id"] < 511]
        bounds = {"prompt": (1, 11), "test": (11, 511), "validation": (511, 601)}
        first, end = bounds.get(split, (601, 975))
        return [row for row in rows if first <= row["task_id"] < end]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert len(BENCHMARKS["mbpp-sanitized"].load()) == 257
    assert [name for _, name, _ in asked] == ["full"] * 4 + ["sanitized"]


def test_a_hub_out_of_reach_is_one_line(monkeypatch):
    def load_dataset(*_, **__):
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(
        UnmaskError, match=r"openai/gsm8k cannot be fetched: no route; give --data$"
    ):
        BENCHMARKS["gsm8k"].load()


def test_embedded_and_synthetic_tasks_need_no_data(tmp_path):
    for name in ("words", "synthetic-copy"):
        assert BENCHMARKS[name].load() == BENCHMARKS[name].load(tmp_path)


def test_the_invented_files_are_those_that_are_read(tmp_path):
    assert {file.name for file in write(tmp_path).iterdir()} == set(NAMES.values())
