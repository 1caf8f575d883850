"""`unmask score` as a person meets it: a table, JSON, a file of verdicts, and one-line errors."""

import json
import sys
from types import SimpleNamespace

import pytest

from tests.lab.invented import judge, write, write_lines
from unmask.cli import main


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data"))


@pytest.fixture
def call(data, tmp_path, capsys):
    def run(rows, *arguments, task="gsm8k"):
        file = write_lines(tmp_path / "texts.jsonl", rows)
        asked = ["score", "--task", task, "--generations", str(file), "--data", str(data)]
        code = main([*asked, *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


ROWS = [
    {"id": 1, "text": "\\boxed{1001}", "gen_length": 256},
    {"id": 2, "text": "\\boxed{33.00} or 1002", "gen_length": 256},
    {"id": 3, "text": "It is 1,003.", "gen_length": 128},
    {"id": 9999, "text": "7", "gen_length": 128},
]


def test_the_table_tells_accuracy_interval_and_what_is_missing_by_length(call):
    code, out, err = call(ROWS)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "gsm8k (version 1), length 128: 1 graded, 1318 missing, 1 unknown",
        "  unmask            100.00 %  [20.7, 100.0]  1/1  v1: last boxed number, else after "
        '"answer is", else the last number',
        "  daedal              0.00 %  [0.0, 79.3]  0/1  v1: last box of all the text, as a string "
        "(DAEDAL)",
        "",
        "gsm8k (version 1), length 256: 2 graded, 1317 missing, 1 unknown",
        '  unmask             50.00 %  [9.5, 90.5]  1/2  v1: last boxed number, else after "answer '
        'is", else the last number',
        "  daedal             50.00 %  [9.5, 90.5]  1/2  v1: last box of all the text, as a string "
        "(DAEDAL)",
    ]


def test_json_has_every_scorer_that_was_asked_for(call):
    asked = ("--json", "--scorer", "d1", "--scorer", "lm-eval", "--length", "256")
    code, out, _ = call(ROWS, *asked)
    report = json.loads(out)
    assert code == 0
    assert (report["task"], report["unknown"], report["skipped"]) == ("gsm8k", 0, 2)
    [length] = report["lengths"]
    assert {score["scorer"]: score["right"] for score in length["scores"]} == {
        "d1": 1,
        "lm-eval": 2,
    }


def test_all_scorers_are_shown_on_request(call):
    from unmask.lab.benchmarks import BENCHMARKS

    _, out, _ = call(ROWS, "--scorer", "all")
    for name in BENCHMARKS["gsm8k"].scorers:
        assert f"  {name} " in out


def test_verdicts_go_to_a_file_in_the_order_of_the_benchmark(call, tmp_path):
    call(list(reversed(ROWS)), "--output", str(tmp_path / "out.jsonl"))
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["length"], row["id"], row["right"]["unmask"]) for row in rows] == [
        (128, 3, True),
        (256, 1, True),
        (256, 2, False),
    ]
    assert rows[2]["detail"]["unmask"] == {"answer": "33", "rule": "box"}


def test_programs_run_in_the_sandbox(call, monkeypatch):
    made = SimpleNamespace(judge_many=judge)
    sandbox = SimpleNamespace(Sandbox=lambda allow_unsandboxed: made)
    monkeypatch.setitem(sys.modules, "unmask.lab.sandbox", sandbox)
    rows = [{"task_id": "HumanEval/2", "text": "    return x + 2\n```\nDone."}]
    code, out, _ = call(rows, "--preset", "lm-eval", "--json", task="humaneval")
    scores = json.loads(out)["lengths"][0]["scores"]
    assert code == 0
    assert [score["right"] for score in scores] == [1, 1]


@pytest.mark.long
def test_a_preset_brings_its_prefill_to_the_text(call):
    rows = [{"id": "test/cards/1.json", "text": "so $12$. Problem: \\boxed{13}"}]
    right = [
        json.loads(call(rows, "--json", *more, task="math500")[1])["lengths"][0]["scores"][0][
            "right"
        ]
        for more in ((), ("--preset", "lm-eval"))
    ]
    assert right == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scorer", "klas"), "unknown scorer of gsm8k 'klas'; did you mean 'klass'?"),
        (("--length", "64"), "holds no text for gsm8k (of length 64; "),
        (("--preset", "papr"), "unknown preset of gsm8k 'papr'; did you mean 'paper'?"),
        (("--limit", "0"), "the limit per answer must be > 0 seconds, got 0"),
        (
            ("--data", "nowhere"),
            "nowhere is not a folder; give the folder of gsm8k_test.jsonl as --data",
        ),
        (("--task", "gsm"), "unknown task 'gsm'; did you mean 'gsm8k'?"),
        (("--output", "/nowhere/out.jsonl"), "/nowhere/out.jsonl cannot be written: "),
    ],
)
def test_a_wrong_call_is_one_line_on_stderr_and_exit_2(call, arguments, message):
    code, out, err = call(ROWS, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_missing_file_of_texts_is_one_line(call, tmp_path):
    code, _, err = call(ROWS, "--generations", str(tmp_path / "none.jsonl"))
    assert code == 2
    assert "none.jsonl cannot be read: No such file" in err
