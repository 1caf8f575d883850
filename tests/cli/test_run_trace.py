"""`unmask run --trace`: one prompt, many, interrupted, or where nothing may be written."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import answers
from unmask.cli import main
from unmask.decoding import loop
from unmask.trace import Trace

PROMPT = "Ann has 12 pens. She buys 3, then loses 5. How many now?"


def test_a_run_writes_a_trace_of_the_answer_it_prints(tmp_path, capsys):
    file = tmp_path / "a.trace"
    main(["run", PROMPT, "--length", "12", "--trace", str(file), "--json"])
    answer = json.loads(capsys.readouterr().out)
    trace = Trace.read(file)
    assert trace.end == {"nfe": answer["nfe"], "nfe_eos": answer["nfe_eos"], "text": answer["text"]}
    assert len(trace.moments) == answer["nfe"]
    assert trace.header["model"]["path"] == "embedded"


def test_tracing_changes_nothing_of_the_answer(tmp_path, capsys):
    command = ["run", PROMPT, "--length", "12", "--json", "--temperature", "0.7", "--seed", "4"]
    main(command)
    plain = json.loads(capsys.readouterr().out)
    main([*command, "--trace", str(tmp_path / "a.trace")])
    assert json.loads(capsys.readouterr().out)["ids"] == plain["ids"]


def test_an_infilled_canvas_has_a_trace_too(tmp_path, capsys):
    file = tmp_path / "a.trace"
    main(["run", "Ann has[MASK] pens.[MASK*4]", "--infill", "--trace", str(file)])
    assert Trace.read(file).end["text"] == capsys.readouterr().out.strip()


def test_many_prompts_make_a_folder_of_traces(tmp_path, capsys):
    lines = tmp_path / "in.jsonl"
    lines.write_text("".join(json.dumps({"prompt": PROMPT, "seed": s}) + "\n" for s in range(3)))
    folder = tmp_path / "traces"
    options = ["--length", "8", "--temperature", "0.9", "--batch-size", "2"]
    main(["run", "--input", str(lines), *options, "--trace", str(folder)])
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(file.name for file in folder.iterdir()) == ["1.trace", "2.trace", "3.trace"]
    texts = {Trace.read(folder / f"{n}.trace").end["text"] for n in (1, 2, 3)}
    assert texts == {answer["text"] for answer in answers}


def test_a_file_that_is_no_trace_is_not_overwritten(tmp_path, capsys):
    file = tmp_path / "thesis.txt"
    file.write_text("years of work")
    assert main(["run", PROMPT, "--trace", str(file)]) == 2
    assert "exists and is not a trace" in capsys.readouterr().err
    assert file.read_text() == "years of work"


@pytest.mark.parametrize("many", [False, True])
def test_a_place_that_cannot_be_written_is_named_before_anything_runs(tmp_path, capsys, many):
    blocked, lines = tmp_path / "file", tmp_path / "in.jsonl"
    blocked.write_text("")
    lines.write_text('{"prompt": "Ann has 12 pens."}\n')
    asked = ["--input", str(lines)] if many else [PROMPT]
    assert main(["run", *asked, "--trace", str(blocked / "a.trace")]) == 2
    error = capsys.readouterr().err
    assert "cannot be" in error
    assert error.count("\n") == 1


def test_an_interrupted_run_leaves_the_steps_it_made(tmp_path, capsys, monkeypatch):
    file, steps = tmp_path / "a.trace", loop.Batch.step
    seen = []

    def interrupted(batch):
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(1)
        return steps(batch)

    monkeypatch.setattr(loop.Batch, "step", interrupted)
    assert main(["run", PROMPT, "--rule", "confidence | top(1)", "--trace", str(file)]) == 130
    trace = Trace.read(file)
    assert len(trace.moments) == 3
    assert not trace.finished


def test_an_evaluation_leaves_a_trace_of_every_example(tmp_path, capsys):
    store, folder = tmp_path / "lab.sqlite", tmp_path / "traces"
    options = ["--limit", "2", "--length", "8", "--store", str(store), "--trace", str(folder)]
    assert main(["eval", "--task", "words", "--rule", "confidence | top(2)", *options]) == 0
    capsys.readouterr()
    (trial,) = folder.iterdir()
    files = sorted(trial.iterdir())
    assert len(files) == 2
    assert main(["replay", str(files[0])]) == 0
    trace = Trace.read(files[0])
    assert trace.header["model"]["example"] == files[0].stem.replace("-", "/")
    assert len(trace.moments) == 4


def test_a_trace_or_output_in_a_missing_folder_makes_the_folder(run, in_file, tmp_path):
    trace, output = tmp_path / "a" / "b" / "x.trace", tmp_path / "c" / "d" / "out.jsonl"
    assert run("Hello", "--trace", str(trace))[0] == 0
    assert Trace.read(trace).finished
    assert run("--input", in_file({"prompt": "Hello"}), "--output", str(output))[0] == 0
    assert len(answers(output)) == 1
