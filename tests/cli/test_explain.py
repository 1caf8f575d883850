"""`unmask explain` and `unmask figure` as they are called."""

import json
from pathlib import Path

import pytest

from unmask.cli import main

PROMPT = "Ann has 12 pens. She buys 3, then loses 5. How many now?"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    file = tmp_path_factory.mktemp("explain") / "a.trace"
    rule = "confidence | swd(5) | eb(0.1)"
    assert main(["run", PROMPT, "--rule", rule, "--length", "24", "--trace", str(file)]) == 0
    return str(file)


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_a_run_is_told_step_by_step_in_80_columns(trace, capsys):
    assert main(["explain", trace]) == 0
    out = capsys.readouterr().out
    assert out.startswith("confidence | swd(5) | eb(0.1): 24 positions in ")
    assert "Positions worth a closer look, with --position:" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_a_position_is_told(trace, capsys):
    assert main(["explain", trace, "--position", "19"]) == 0
    assert capsys.readouterr().out.startswith("Position 19 got '12' at step ")


def test_a_word_is_looked_up_and_other_places_are_named(trace, capsys):
    assert main(["explain", trace, "--token", "10"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("Position 29 got ' 10'")
    several = "'10' is the token of positions 29, 32; this is 29, use --position for another\n"
    assert told.err == several


def test_a_step_is_told_alone_or_for_a_position(trace, capsys):
    assert main(["explain", trace, "--step", "2"]) == 0
    assert capsys.readouterr().out.startswith("Step 2 of ")
    assert main(["explain", trace, "--step", "2", "--position", "19"]) == 0
    assert capsys.readouterr().out.startswith("Position 19 at step 2 of ")


@pytest.mark.parametrize("more", [[], ["--position", "19"], ["--step", "3"]])
def test_json_is_one_object_with_the_sentences(trace, capsys, more):
    assert main(["explain", trace, "--json", *more]) == 0
    assert json.loads(capsys.readouterr().out)["told"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--position", "99"], "position 99 is outside the canvas (0-42); decoding"),
        (
            ["--position", "4"],
            "position 4 is part of the prompt (' pens'); decoding wrote",
        ),
        (["--token", "dragon"], "no position has the final token 'dragon'"),
        (["--token", "pens"], "'pens' is only in the prompt, at 4; decoding wrote 19-42"),
        (["--step", "99"], "step 99 is not in a.trace; it has steps 1-"),
    ],
)
def test_a_wrong_question_is_one_line(trace, capsys, more, message):
    assert main(["explain", trace, *more]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"unmask explain: {message}")
    assert told.err.count("\n") == 1
    assert not told.out


def test_what_is_no_trace_is_one_line(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("hello")
    for command in (["explain"], ["figure", "--position", "3"]):
        assert main([*command, str(tmp_path / "a.txt")]) == 2
        assert "is not a trace; make one with" in capsys.readouterr().err
        assert main([*command, str(tmp_path / "missing")]) == 2
        assert "cannot be read" in capsys.readouterr().err


def test_a_trace_that_was_cut_off_tells_what_is_known(trace, tmp_path, capsys):
    from unmask.trace import Trace

    data = Path(trace).read_bytes()
    file = tmp_path / "cut.trace"
    file.write_bytes(data[: len(data) * 3 // 4])
    kept = len(Trace.read(file).moments)
    assert main(["explain", str(file)]) == 0
    assert f"the trace stops after {kept} step" in " ".join(capsys.readouterr().out.split())


def test_a_figure_is_written_beside_its_trace(trace, capsys):
    assert main(["figure", trace, "--position", "19"]) == 0
    out = capsys.readouterr().out.strip()
    assert out.endswith("a-19.svg")
    assert "<svg" in Path(out).read_text()


def test_a_figure_goes_where_it_is_told_to(trace, tmp_path, capsys):
    file = tmp_path / "b.png"
    assert main(["figure", trace, trace, "--token", "12", "-o", str(file)]) == 0
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_figure_without_a_position_draws_the_one_that_swd_held_back_longest(trace, capsys):
    assert main(["explain", trace]) == 0
    told = " ".join(capsys.readouterr().out.split())
    held = told.split(": SWD held it back longest")[0].split("- ")[-1].split()[0]
    assert main(["figure", trace]) == 0
    assert capsys.readouterr().out.strip().endswith(f"a-{held}.svg")


def test_a_pipeline_is_written_beside_its_trace(trace, capsys):
    assert main(["figure", trace, "--pipeline", "--step", "3"]) == 0
    out = capsys.readouterr().out.strip()
    assert out.endswith("a-step3.svg")
    assert "step 3 of" in Path(out).read_text()


def test_a_pipeline_without_a_step_chooses_one_that_swd_changes(trace, tmp_path, capsys):
    file = tmp_path / "b.pdf"
    assert main(["figure", trace, "--pipeline", "-o", str(file)]) == 0
    assert file.read_bytes().startswith(b"%PDF")
    assert not capsys.readouterr().err


def test_a_pipeline_of_a_run_that_swd_did_not_change_says_so_in_one_line(tmp_path, capsys):
    file = str(tmp_path / "a.trace")
    run = ["run", PROMPT, "--rule", "confidence | swd(1e-9, start=skip) | top(12)"]
    assert main([*run, "--length", "24", "--trace", file]) == 0
    capsys.readouterr()
    assert main(["figure", file, "--pipeline"]) == 0
    same = "lam = 0 would have committed the same in every step"
    assert capsys.readouterr().err == f"SWD changed nothing: {same}; this is step 2\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["TRACE", "--pipeline"], "--pipeline draws a step of one trace, got two: "),
        (["--position", "19", "--step", "3"], "--step is for --pipeline; a position is drawn over"),
        (["--pipeline", "--step", "99"], "step 99 is not in a.trace; it has steps 1-"),
        (["--pipeline", "-o", "a.gif"], "a figure must end in .svg, .png, .pdf, got 'a.gif'"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_one_line(trace, capsys, more, message):
    assert main(["figure", trace, *(trace if word == "TRACE" else word for word in more)]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"unmask figure: {message}")
    assert told.err.count("\n") == 1
    assert not told.out
