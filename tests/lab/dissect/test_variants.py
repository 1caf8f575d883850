"""A rule taken apart into variants."""

import pytest

from unmask import LabError, Rule, UnknownName
from unmask.decoding.options import DecodingOptions
from unmask.lab.dissect.variants import modulator_of, take_apart, with_knob, without_recipe
from unmask.models.denoiser import ModelSpec

SPEC = ModelSpec(mask_id=0, vocab_size=9, eos_id=1, name="tiny")
MUTE = ModelSpec(mask_id=0, vocab_size=9, name="mute")


def apart(text, spec=SPEC, eos="keep"):
    rule = Rule.parse(text)
    return take_apart(rule, modulator_of(rule, None), spec, eos)


def rules(dissected):
    return {each.name: (str(each.rule), each.eos) for each in dissected.variants}


def test_swd_is_taken_apart_in_nine_ways():
    assert rules(apart("entropy | swd(5) | eb(0.1)")) == {
        "base": ("entropy | eb(0.1)", None),
        "whole": ("entropy | swd(5) | eb(0.1)", None),
        "ends": ("entropy | swd(5) | only(ends) | eb(0.1)", None),
        "others": ("entropy | swd(5) | only(others) | eb(0.1)", None),
        "first": ("entropy | swd(5) | only(first) | eb(0.1)", None),
        "mean": ("entropy | swd(5) | signal(mean) | eb(0.1)", None),
        "shuffled": ("entropy | swd(5) | signal(shuffled) | eb(0.1)", None),
        "eos=last": ("entropy | eb(0.1)", "last"),
        "eos=suppress": ("entropy | eb(0.1)", "suppress"),
    }


def test_a_policy_that_all_variants_have_is_no_variant():
    assert "eos=last" not in rules(apart("entropy | swd(5) | eb(0.1)", eos="last"))


def test_without_end_tokens_their_variants_are_left_out_with_the_reason():
    dissected = apart("entropy | swd(5) | eb(0.1)", MUTE)
    assert list(rules(dissected)) == ["base", "whole", "first", "mean", "shuffled"]
    reasons = dict(dissected.left_out)
    assert reasons["swd on end tokens only"] == "mute has no token that ends an answer"
    assert reasons["EOS policy last"] == "mute has no EOS token"


def test_a_modulator_that_reads_no_d_has_no_variants_of_the_signal():
    dissected = apart("confidence | certainty(10) | eb(0.1)")
    assert "mean" not in rules(dissected)
    reason = dict(dissected.left_out)["certainty with the row's mean D"]
    assert "does not read" in reason


def test_of_several_modulators_swd_or_the_named_one_is_taken_apart():
    rule = Rule.parse("confidence | certainty(10) | swd(5) | top(1)")
    assert modulator_of(rule, None) is rule.modulators[1]
    assert modulator_of(rule, "certainty") is rule.modulators[0]
    base = take_apart(rule, modulator_of(rule, "certainty"), SPEC, "keep").variants[0]
    assert str(base.rule) == "confidence | swd(5) | top(1)"
    with pytest.raises(UnknownName, match="unknown modulator of this rule 'pc'"):
        modulator_of(rule, "pc")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confidence | top(1)", "has no modulator to take apart"),
        ("confidence | swd(0) | top(1)", "there is nothing to take apart"),
        ("confidence | certainty(9) | pc(0.2) | top(1)", "several modulators; choose one"),
    ],
)
def test_a_rule_that_cannot_be_taken_apart_is_refused(text, message):
    with pytest.raises(LabError, match=message):
        modulator_of(Rule.parse(text), None)


def test_a_curve_changes_the_first_knob_of_the_selection():
    rule = Rule.parse("confidence | swd(5) | threshold(0.9, test=ge)")
    assert str(with_knob(rule, "0.5")) == "confidence | swd(5) | threshold(0.5, test=ge)"


def test_the_block_of_a_recipe_holds_where_none_is_given():
    options = without_recipe(DecodingOptions(rule="swd-block32"))
    assert (options.rule, options.block) == ("confidence | swd(1) | eb(0.1)", 32)
    assert without_recipe(DecodingOptions(rule="swd-block32", block=8)).block == 8
