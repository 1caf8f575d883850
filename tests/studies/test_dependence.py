"""The dependence study, on an oracle whose dependence is known, and as a command."""

import itertools
import json
import math

import pytest
import torch

from unmask import RequestError, Rule
from unmask.cli import main
from unmask.decoding.request import Request, Settings
from unmask.models.denoiser import ModelSpec
from unmask.models.toys.oracle import TableOracle
from unmask.studies import correlation
from unmask.studies.dependence import RunMoment, StudySize, measure, moments_of, study


@pytest.fixture(autouse=True)
def few_samples(monkeypatch):
    """An interval of few resamplings: its width is not asked for here."""
    monkeypatch.setattr(correlation, "SAMPLES", 50)


MASK, LENGTH = 2, 8
SPEC = ModelSpec(mask_id=MASK, vocab_size=3, name="bits")
# Positions 0 and 1 are the same bit; the six others are free, and each has another bias.
BIAS = [0.6, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]


def oracle():
    bits = [x for x in itertools.product((0, 1), repeat=LENGTH) if x[0] == x[1]]
    weights = [
        math.prod(b if x else 1 - b for x, b in zip(x[1:], BIAS[1:], strict=True)) for x in bits
    ]
    return TableOracle(bits, weights, SPEC)


def request():
    settings = Settings(Rule.parse("confidence | top(1)"))
    return Request(torch.full((LENGTH,), MASK), settings)


def moment(known=()):
    canvas = torch.full((LENGTH,), MASK)
    now = canvas.clone()
    for place, token in known:
        now[place] = token
    positions = (now == MASK).nonzero()[:, 0]
    return RunMoment(0, canvas, now, torch.zeros(LENGTH, dtype=torch.bool), positions)


def test_only_the_copied_bits_depend_on_another_mask():
    found = measure(oracle(), moment(), [MASK], StudySize())
    copied, free = found.dependence[:2], found.dependence[2:]
    assert copied == pytest.approx(-math.log(0.6) / (LENGTH - 1))  # one of seven masks tells all
    assert free == pytest.approx(0, abs=1e-6)
    wanted = [-b * math.log(b) - (1 - b) * math.log(1 - b) for b in BIAS]
    assert found.entropy == pytest.approx(wanted, rel=1e-5)


def test_d_counts_what_was_learned_and_nothing_is_left():
    found = measure(oracle(), moment([(0, 1)]), [MASK], StudySize())
    assert found.moved_back[0] == pytest.approx(-math.log(0.6), rel=1e-5)  # position 1, now known
    assert found.moved_back[1:] == pytest.approx(0, abs=1e-6)
    assert found.dependence == pytest.approx(0, abs=1e-6)


def test_moments_have_a_history_and_are_spread_over_the_run():
    model, asked = oracle(), request()
    result = study_result(model, asked)
    moments = list(moments_of(model, asked, result, 2))
    assert [len(each.positions) for each in moments] == [7, 5]  # of 7, 6 and 5
    for each in moments:
        assert (each.before == MASK).sum() == len(each.positions) + 1
        assert (each.now == MASK).sum() == len(each.positions)


def study_result(model, asked):
    from unmask.decoding.loop import decode_steps

    (result,) = (result for step in decode_steps(model, [asked]) for result in step.finished)
    return result


def test_the_cost_is_within_the_bound():
    size = StudySize(canvases=3, fixed=4, batch_size=2)
    found = study(oracle(), [request()] * 2, size)
    assert found.canvases == 6
    assert found.forwards <= size.most_forwards([LENGTH] * 2)
    assert found.positions == found.groups["all positions"].positions == 2 * (7 + 6 + 5)


def test_a_run_without_a_moment_to_study_is_refused():
    settings = Settings(Rule.parse("confidence | top(8)"))
    with pytest.raises(RequestError, match="no run has a forward with a history"):
        study(oracle(), [Request(torch.full((LENGTH,), MASK), settings)], StudySize())


def test_the_command_studies_the_embedded_model(capsys):
    arguments = ["theory", "--model", "embedded", "--task", "words", "--length", "16"]
    small = ["--block", "full", "--limit", "2", "--canvases", "2", "--fixed", "3"]
    assert main([*arguments, *small, "--dry-run"]) == 0
    assert "at most 52 forward passes" in capsys.readouterr().out
    assert main([*arguments, *small, "--json"]) == 0
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    assert record["canvases"] == 4
    assert -1 <= record["groups"]["all positions"]["entropy"]["within"]["value"] <= 1
    assert "at most 52 forward passes" in captured.err
    smallest = ["--block", "full", "--limit", "1", "--canvases", "1", "--fixed", "1"]
    assert main([*arguments, *smallest]) == 0
    assert "D given H" in capsys.readouterr().out


def test_the_study_of_a_model_needs_a_task(capsys):
    assert main(["theory", "--model", "embedded"]) == 2
    assert "give --task" in capsys.readouterr().err
