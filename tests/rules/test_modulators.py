"""Modulators that know positions and tokens."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.helpers import SPEC, Counting, bits, hand_view, random_lookup, table
from unmask import Rule, RuleError, Scores, decode
from unmask.rules.modulators import Certainty, PositionCalibration
from unmask.rules.scores import confidence
from unmask.rules.stability import Stability


def test_position_calibration_without_a_table_weighs_the_place_alone():
    view = hand_view([0.9, 0.9, 0.9])
    scores = PositionCalibration(0.25)(view, confidence(view))
    wanted = [0.9, 0.9 * math.exp(-0.25), 0.9 * math.exp(-0.5)]
    assert scores.value[0].tolist() == pytest.approx(wanted)


@pytest.mark.parametrize("kind", ["list", "object", "npy"])
def test_position_calibration_prefers_rare_tokens(tmp_path, kind):
    frequencies = [0.5, 0.25, 0.25]
    if kind == "npy":
        file = tmp_path / "frequencies.npy"
        np.save(file, np.array(frequencies))
    else:
        file = tmp_path / "frequencies.json"
        named = {"frequencies": frequencies, "from": "a test"}
        file.write_text(json.dumps(frequencies if kind == "list" else named))
    view = hand_view([0.9, 0.9], token=torch.tensor([[0, 2]]))
    scores = PositionCalibration(0.0, background=str(file))(view, confidence(view))
    wanted = [-0.9 * math.log(0.5), -0.9 * math.log(0.25)]
    assert scores.value[0].tolist() == pytest.approx(wanted, rel=1e-6)


def test_position_calibration_is_clipped_at_alpha(tmp_path):
    file = tmp_path / "frequencies.json"
    file.write_text("[0.0, 1.0]")
    view = hand_view([0.9, 0.9], token=torch.tensor([[0, 1]]))
    scores = PositionCalibration(0.0, 2.0, str(file))(view, confidence(view))
    assert scores.value[0, 0] == 2.0
    assert scores.value[0, 1] == pytest.approx(0.0, abs=1e-8)


def test_position_calibration_commutes_with_stability_where_values_underflow():
    view = hand_view([0.9, 0.9], kl_prev_cur=table([50.0, 49.0]))
    pc, swd = PositionCalibration(0.25), Stability(30)
    first = pc(view, swd(view, confidence(view))).key
    second = swd(view, pc(view, confidence(view))).key
    torch.testing.assert_close(first, second)


def test_position_calibration_refuses_the_entropy_before_any_forward():
    model = Counting(random_lookup(0))
    with pytest.raises(RuleError, match="pc needs a score in"):
        decode(model, [1], "entropy | pc | top(1)", length=4)
    assert model.forwards == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[0.5, -0.1]", "one frequency >= 0 per token id"),
        ("[[0.5], [0.5]]", "one frequency >= 0 per token id"),
        ('{"a": [1], "b": [2]}', "must hold one list"),
        ("not json", "frequencies"),
    ],
)
def test_a_broken_table_of_frequencies_is_named(tmp_path, content, message):
    file = tmp_path / "frequencies.json"
    file.write_text(content)
    with pytest.raises(RuleError, match=message):
        PositionCalibration(background=str(file))


def test_a_missing_table_of_frequencies_is_named():
    with pytest.raises(RuleError, match=r"'nowhere.json' does not exist"):
        Rule.parse("confidence | pc(background=nowhere.json) | top(1)")


def test_a_table_shorter_than_the_vocabulary_is_refused_in_one_line(tmp_path):
    file = tmp_path / "frequencies.json"
    file.write_text("[1.0]")
    model = random_lookup(0)
    with pytest.raises(RuleError) as error:
        decode(model, [1], f"confidence | pc(background={file}) | top(1)", length=4)
    assert str(SPEC.vocab_size) in str(error.value)


@pytest.mark.parametrize("name", ["a,b.json", "a|b.json", "a=b.json", "a(b).json", "a b.json"])
def test_a_path_reads_back_as_it_prints_or_is_refused(tmp_path, name):
    file = tmp_path / name
    file.write_text("[0.5, 0.5]")
    try:
        part = PositionCalibration(background=str(file))
    except RuleError:
        return
    rule = Rule.of([confidence, part, Rule.parse("confidence | top(1)").select])
    assert Rule.parse(str(rule)) == rule


def _placed(known, masked, offset=0):
    view = hand_view([0.5] * len(masked), masked=bits(masked))
    progress = replace(
        view.progress,
        known=bits(known),
        offset=torch.tensor([offset]),
        answer_length=torch.tensor([len(known)]),
    )
    return replace(view, progress=progress)


def _by_hand(fixed, here, length, sigma):
    """Share of the Gaussian at `here` on fixed places, of the weight at -3A .. 3A - 1."""
    weight = sum(math.exp(-((here - j) ** 2) / (2 * sigma**2)) for j in fixed)
    whole = sum(math.exp(-(j**2) / (2 * sigma**2)) for j in range(-3 * length, 3 * length))
    return weight / whole


def test_certainty_is_the_share_of_a_gaussian_on_fixed_tokens():
    view = _placed([1, 0, 0, 0], [0, 1, 1, 1])
    density = Certainty(2.0).density(view)[0].tolist()
    fixed = [-4, -3, -2, -1, 0]  # the answer's own length to the left, and the first token
    assert density == pytest.approx([_by_hand(fixed, i, 4, 2.0) for i in range(4)])


def test_certainty_surrounds_the_answer_once_its_last_token_is_fixed():
    view = _placed([1, 0, 0, 1], [0, 1, 1, 0])
    density = Certainty(2.0).density(view)[0].tolist()
    fixed = [-4, -3, -2, -1, 0, 3, 4, 5, 6, 7]
    assert density == pytest.approx([_by_hand(fixed, i, 4, 2.0) for i in range(4)])


def test_certainty_counts_a_block_from_its_place_in_the_answer():
    view = _placed([1, 1, 0, 0], [1, 1], offset=2)
    density = Certainty(2.0).density(view)[0].tolist()
    fixed = [-4, -3, -2, -1, 0, 1]
    assert density == pytest.approx([_by_hand(fixed, i, 4, 2.0) for i in (2, 3)])


def test_certainty_multiplies_the_score():
    view = _placed([1, 0, 0, 0], [0, 1, 1, 1])
    scores = Certainty(2.0)(view, confidence(view))
    torch.testing.assert_close(scores.value, 0.5 * Certainty(2.0).density(view))


def test_certainty_lowers_the_negative_entropy_by_the_logarithm():
    view = _placed([1, 0, 0, 0], [0, 1, 1, 1])
    scores = Certainty(2.0)(view, Scores.log_utility(table([-1.0] * 4)))
    torch.testing.assert_close(scores.key, -1 + Certainty(2.0).density(view).log())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PositionCalibration(-1), "pc: lam must be >= 0 and finite, got -1"),
        (lambda: PositionCalibration(alpha=0), "pc: alpha must be > 0 and finite, got 0"),
        (lambda: Certainty(0), "certainty: sigma must be from 0.01 to 1e6, got 0"),
    ],
)
def test_a_weight_checks_its_knobs(make, message):
    with pytest.raises(RuleError, match=message):
        make()


@pytest.mark.parametrize("text", ["pc(inf)", "certainty(1e-200)", "certainty(inf)"])
def test_extreme_knobs_are_refused_or_give_numbers(text):
    try:
        modulate = Rule.parse(f"confidence | {text} | top(1)").modulators[0]
    except RuleError:
        return
    view = _placed([1, 0, 0, 0], [0, 1, 1, 1])
    assert not modulate(view, confidence(view)).key.isnan().any()


def test_a_background_file_that_is_deep_or_claims_to_be_huge_is_one_line(tmp_path):
    deep, huge, empty = tmp_path / "a.json", tmp_path / "b.npy", tmp_path / "c.npy"
    deep.write_text("[" * 100_000)
    np.save(huge, np.zeros(4))
    huge.write_bytes(huge.read_bytes().replace(b"(4,), }           ", b"(999999999999,), }"))
    empty.write_bytes(b"")
    for file in (deep, huge, empty):
        with pytest.raises(RuleError, match="must hold a list of frequencies") as caught:
            Rule.parse(f"confidence | pc(background={file}) | top(1)")
        assert "\n" not in str(caught.value)
