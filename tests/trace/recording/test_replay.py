"""A trace can be run again, and from any step on under another rule."""

from __future__ import annotations

import gzip
import json
import random
import re

import numpy as np
import pytest

from tests.helpers import READINGS, part_texts, random_lookup
from tests.trace.runs import anything, traced
from unmask import Rule, Settings, load, prompt_request
from unmask.cli import main
from unmask.kernels import backend, missing, use
from unmask.rules.spelling import for_file
from unmask.trace import Trace
from unmask.trace.recording.codec import TraceError
from unmask.trace.recording.replay import branch, difference, replay

PROMPT = "Ann has 12 pens. She buys 3, then loses 5. How many now?"
SWD = "confidence | swd(5) | eb(0.1)"


@pytest.mark.parametrize(("seed", "text"), [*enumerate([*part_texts(), *READINGS])])
def test_any_run_is_reproduced_bit_for_bit(seed, text):
    model, request = anything(text, seed)
    trace = Trace.of(traced(model, request)[0])
    again = Trace.of(replay(trace, model))
    assert difference(trace, again) is None
    for old, new in zip(trace.moments, again.moments, strict=True):
        for name, value in vars(old).items():
            np.testing.assert_equal(value, getattr(new, name), err_msg=name)


@pytest.mark.parametrize("text", part_texts())
def test_a_branch_under_the_same_rule_is_the_same_run(text):
    model, request = anything(text, 3)
    trace = Trace.of(traced(model, request)[0])
    count = len(trace.moments)
    for step in {1, count // 2}:
        assert difference(trace, Trace.of(branch(trace, model, step, trace.rule))) is None


def test_a_branch_keeps_the_first_steps_and_fills_every_mask():
    model, request = anything("margin | threshold(0.4) | revoke(0.2)", 8)
    trace = Trace.of(traced(model, request)[0])
    step = len(trace.moments) // 2
    for number, text in enumerate(part_texts()):
        if Rule.parse(text).window is not None:
            with pytest.raises(TraceError, match="decides where its blocks end"):
                branch(trace, model, step, Rule.parse(text))
            continue
        other = Trace.of(branch(trace, model, step, Rule.parse(text)))
        for old, new in zip(trace.moments[:step], other.moments[:step], strict=True):
            assert (old.writes, old.revoked) == (new.writes, new.revoked), text
        assert model.spec.mask_id not in other.canvas_after(-1), text
        if number % 3 == 0:  # and it can be replayed
            assert difference(other, Trace.of(replay(other, model))) is None, text


def test_a_branch_tells_the_tokens_that_were_written_not_those_it_would_have_written():
    for seed in range(10):
        model, request = anything("credit(3) | confidence | threshold(0.4)", seed)
        trace = Trace.of(traced(model, request)[0])
        step = len(trace.moments) - 1
        other = Trace.of(branch(trace, model, step, Rule.parse("confidence | top(1)")))
        old, new = trace.canvas_after(step), other.canvas_after(step)
        assert old.tolist() == new.tolist(), f"seed {seed}"
        for old, new in zip(trace.moments[:step], other.moments[:step], strict=True):
            assert old.writes == new.writes, f"seed {seed}"


def test_a_branch_at_the_start_is_a_run_of_the_other_rule():
    model, request = anything("confidence | top(1)", 8)
    trace = Trace.of(traced(model, request)[0])
    for text in (SWD, "credit | confidence | threshold(0.5)", "confidence | klass(0.5, kl=0.1)"):
        settings = Settings(
            Rule.parse(text), trace.settings.block, trace.settings.eos, trace.settings.sampling
        )
        changed = type(request)(request.canvas, settings, request.seed, request.length)
        fresh = Trace.of(traced(model, changed)[0])
        assert difference(fresh, Trace.of(branch(trace, model, 0, Rule.parse(text)))) is None


def test_a_difference_names_the_step_and_the_positions():
    model = random_lookup(2)
    runs = [
        Trace.of(traced(model, prompt_request(model.spec, [1], 8, Settings(Rule.parse(t))))[0])
        for t in ("confidence | top(1)", "confidence | top(2)")
    ]
    first = difference(*runs)
    assert first is not None
    assert (first.step, first.what) == (0, "decision")
    assert set(first.where) == set(runs[1].moments[0].writes) - set(runs[0].moments[0].writes)
    assert str(first) == f"step 1 writes other tokens: {first.where[0]}"


def test_other_numbers_with_the_same_decisions_are_told_apart():
    model, request = anything("confidence | top(1)", 6)
    old = Trace.of(traced(model, request)[0])
    moments = list(old.moments)
    moments[1] = type(moments[1])(**{**vars(moments[1]), "digest": "0" * 16})
    first = difference(old, type(old)(old.header, tuple(moments), old.words, old.end))
    assert first is not None
    assert str(first) == "from step 2 on the numbers differ in their last digits"


def test_a_model_of_another_vocabulary_is_refused():
    model, request = anything("confidence | top(1)", 6)
    trace = Trace.of(traced(model, request)[0])
    with pytest.raises(TraceError, match="give the same model"):
        replay(trace, load("embedded").model)


@pytest.mark.parametrize("seed", range(6))
def test_runs_of_a_trained_model_are_reproduced_bit_for_bit(seed, tmp_path, capsys):
    pick, file = random.Random(seed), tmp_path / "a.trace"
    options = {
        "--rule": pick.choice([SWD, "margin | swd(1) | threshold(0.8)", "entropy | top(2)",
                               "credit | confidence | swd(2) | eb(0.5)", "klass"]),
        "--block": pick.choice(["full", "8"]),
        "--eos": pick.choice(["keep", "suppress", "last", "stop", "block", "fill"]),
        "--temperature": pick.choice(["0", "0.7"]),
        "--cache": pick.choice(["none", "none", "prefix", "dual", "delayed"]),
        "--guidance": pick.choice(["0", "0.5"]),
        "--seed": str(seed),
    }  # fmt: skip
    flat = [word for pair in options.items() for word in pair]
    assert main(["run", PROMPT, "--length", "16", *flat, "--trace", str(file)]) == 0
    capsys.readouterr()
    assert main(["replay", str(file)]) == 0
    assert "identical to the last bit" in capsys.readouterr().out


@pytest.mark.parametrize("more", [(), ("--temperature", "1", "--block", "8")])
def test_a_run_in_a_language_is_repeated_branched_and_told(more, tmp_path, capsys):
    file, other = tmp_path / "a.trace", tmp_path / "b.trace"
    kept = ["--regex", "#### [0-9]{1,3}( fox)?", "--rule", SWD, "--length", "16", *more]
    assert main(["run", PROMPT, *kept, "--trace", str(file)]) == 0
    assert main(["replay", str(file)]) == 0
    assert "identical to the last bit" in capsys.readouterr().out
    branch = ["--branch", "1", "--rule", "margin | top(3)", "-o", str(other)]
    assert main(["replay", str(file), *branch]) == 0
    for trace in (Trace.read(file), Trace.read(other)):
        assert re.fullmatch("#### [0-9]{1,3}( fox)?", trace.end["text"])
    capsys.readouterr()
    hash_ = Trace.read(file).moments[0].positions[0]  # the language alone decides its token
    assert main(["explain", str(file), "--position", str(hash_)]) == 0
    told = capsys.readouterr().out
    assert "got '####' at step 1" in told
    assert "'####' (1.00)" in told
    assert "kept in 'regex:#### [0-9]{1,3}( fox)?'" in " ".join(told.split())


@pytest.fixture(scope="module")
def one_trace(tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "a.trace"
    options = ["--rule", SWD, "--length", "16", "--trace", str(file)]
    assert main(["run", PROMPT, *options]) == 0
    return file.read_bytes()


@pytest.fixture
def trace_file(one_trace, tmp_path, capsys):
    file = tmp_path / "a.trace"
    file.write_bytes(one_trace)
    capsys.readouterr()
    return file


def test_the_command_repeats_a_run(trace_file, capsys):
    assert main(["replay", str(trace_file)]) == 0
    text, verdict = capsys.readouterr().out.splitlines()
    assert text == Trace.read(trace_file).end["text"]
    assert verdict.endswith("steps: identical to the last bit")


def test_the_command_branches_and_keeps_the_new_trace(trace_file, capsys, tmp_path):
    other = tmp_path / "b.trace"
    rule = ["--rule", "confidence | top(1)"]
    assert main(["replay", str(trace_file), "--branch", "2", *rule, "-o", str(other)]) == 0
    assert "the first 2 repeated" in capsys.readouterr().out
    new = Trace.read(other)
    assert new.header["branch"] == {"of": "a.trace", "rule": for_file(SWD), "step": 2}
    assert main(["replay", str(other), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["identical"] is True


def test_a_run_that_was_cut_off_is_replayed_to_its_end(trace_file, capsys):
    data = trace_file.read_bytes()
    trace_file.write_bytes(data[: len(data) - 4])
    assert main(["replay", str(trace_file)]) == 0
    assert "the trace was cut off after" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--branch", "2"], "--branch T and --rule RULE go together"),
        (["--branch", "99", "--rule", SWD], "branch after 0 to"),
        (["--branch", "1", "--rule", "nonsense | top(1)"], "unknown"),
        (["--model", "/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_wrong_calls_are_one_line(trace_file, capsys, options, message):
    assert main(["replay", str(trace_file), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def changed_header(file, **changes):
    """Rewrite the header of a trace."""
    header, *steps = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    record = json.loads(header)
    record["settings"]["rule"] = changes.pop("rule", record["settings"]["rule"])
    record["model"] = {k: v for k, v in {**record["model"], **changes}.items() if v is not None}
    file.write_bytes(gzip.compress(b"".join([json.dumps(record).encode() + b"\n", *steps])))


def test_a_run_is_repeated_by_the_kernel_that_its_trace_names(tmp_path, capsys):
    if missing("native"):
        pytest.skip(f"the native kernel cannot be used here: {missing('native')}")
    for kernel in ("torch", "native"):
        file = tmp_path / f"{kernel}.trace"
        with use(kernel):
            assert main(["run", PROMPT, "--rule", SWD, "--length", "16", "--trace", str(file)]) == 0
        assert Trace.read(file).kernel == kernel
        assert main(["replay", str(file)]) == 0
        assert "identical to the last bit" in capsys.readouterr().out
    with use("torch"):  # the trace names another one
        assert main(["replay", str(file)]) == 0
    assert "identical to the last bit" in capsys.readouterr().out


def test_a_difference_names_both_kernels_and_what_to_do(trace_file, capsys):
    changed_header(trace_file, rule="confidence | top(2)", kernel="abacus")
    assert main(["replay", str(trace_file)]) == 1
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert "step 1 writes other tokens" in verdict
    assert "made with the kernel 'abacus', which cannot be used here" in verdict
    assert f"this run used {backend()!r}; replay the trace where 'abacus' can be used" in verdict


def test_a_difference_from_a_trace_without_a_kernel_says_so(trace_file, capsys):
    changed_header(trace_file, rule="confidence | top(2)", kernel=None)
    assert main(["replay", str(trace_file)]) == 1
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert verdict.endswith(f"does not name its kernel, and this run used {backend()!r}")


def test_the_trace_itself_is_not_overwritten(trace_file, capsys):
    assert main(["replay", str(trace_file), "-o", str(trace_file)]) == 2
    assert "is the trace itself" in capsys.readouterr().err
    assert Trace.read(trace_file).finished
