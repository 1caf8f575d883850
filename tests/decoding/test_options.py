"""DecodingOptions: one dataclass that every surface reads into, resolved against a model."""

import argparse
import pickle
from dataclasses import replace

import pytest

from unmask.cli import parser
from unmask.decoding.options import (
    CACHES,
    DTYPES,
    EOS_POLICIES,
    LOADING,
    OPTIONS,
    SAMPLING,
    DecodingOptions,
)
from unmask.decoding.request import Settings
from unmask.decoding.resolve import resolve
from unmask.errors import RequestError, UnknownName
from unmask.integrations import BLOCK_OPTIONS, GENERATE_OPTIONS
from unmask.lab.sweep.grid import KEYS
from unmask.models.caches import POLICIES
from unmask.models.denoiser import ModelSpec
from unmask.models.recommended import Recommendation
from unmask.rules.rule import Rule

SPEC = ModelSpec(mask_id=1, vocab_size=8, eos_id=0)
CAUSAL = ModelSpec(mask_id=1, vocab_size=8, eos_id=0, block=4)
ADVISED = replace(SPEC, recommended=Recommendation("margin | top(2)", "a paper", 16, "last"))
# A value of each option, as text and as read.
EXAMPLES = {
    "rule": ("confidence | top(1)", "confidence | top(1)"),
    "length": ("12", 12),
    "block": ("full", "full"),
    "eos": ("stop", "stop"),
    "steps": ("7", 7),
    "history": ("3", 3),
    "temperature": ("0.5", 0.5),
    "top_p": ("0.9", 0.9),
    "top_k": ("5", 5),
    "tempered": ("true", True),
    "seed": ("9", 9),
    "cache": ("dual", "dual"),
    "guidance": ("1.5", 1.5),
    "dtype": ("bfloat16", "bfloat16"),
    "mask_id": ("2", 2),
    "family": ("sdar", "sdar"),
    "sub_block": ("2", 2),
    "template_args": ("enable_thinking=false,n=2", '{"enable_thinking": false, "n": 2}'),
    "longest": ("99", 99),
    "language": ("regex:[0-9]+", "regex:[0-9]+"),
    "quantize": ("int8", "int8"),
    "pack": ("true", True),
}


def flags_of(command):
    """The options of a command, by name."""
    action = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    actions = action.choices[command]._actions
    return {flag.removeprefix("--").replace("-", "_") for a in actions for flag in a.option_strings}


def test_there_is_an_example_of_every_option():
    assert set(EXAMPLES) == set(OPTIONS)


@pytest.mark.parametrize("command", ["run", "serve", "eval", "sweep"])
def test_every_option_is_an_argument_of_the_command_line(command):
    assert set(OPTIONS) <= flags_of(command)


def test_tuning_takes_every_option_but_the_rule():
    assert set(OPTIONS) - {"rule"} <= flags_of("tune")


def test_every_option_is_a_key_of_a_sweep_file():
    assert set(OPTIONS) <= set(KEYS)


@pytest.mark.long
def test_lm_eval_reads_every_option_but_the_sampling_of_its_tasks():
    lm_eval = pytest.importorskip("unmask.integrations.lm_eval.options")
    for name in set(OPTIONS) - set(SAMPLING):
        text, value = EXAMPLES[name]
        assert getattr(lm_eval.ModelArguments.of({name: text}).decoding, name) == value


# What a host cannot be asked for, because it is the model's, the server's or the host's own.
SERVED_MODEL = {"cache", "guidance", *LOADING}
OTHER_FIELDS = {"template_args", "language"}  # chat_template_kwargs; regex, choice, ...
BLOCK_HOST = {"length", "longest", "block", "sub_block", "cache", "guidance", *LOADING}


@pytest.mark.long
def test_a_request_sets_every_option_but_those_of_the_served_model():
    schema = pytest.importorskip("unmask.server.schema")
    assert set(schema.REQUEST_OPTIONS) == set(OPTIONS) - SERVED_MODEL - OTHER_FIELDS


def test_hosts_leave_us_every_option_that_is_not_their_own():
    texts = {"template_args", "language"}  # these need our tokenizer
    assert set(BLOCK_OPTIONS) == set(OPTIONS) - BLOCK_HOST - texts
    own = {*SAMPLING, *LOADING, "cache"} - {"tempered", "mask_id"}
    assert set(GENERATE_OPTIONS) == set(OPTIONS) - own - texts


@pytest.mark.parametrize("name", OPTIONS)
def test_a_text_is_read_as_the_value_it_stands_for(name):
    text, value = EXAMPLES[name]
    assert OPTIONS[name].parse(name, text) == value
    assert getattr(DecodingOptions.read({name: value}), name) == value


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"rule"}))
def test_a_wrong_value_names_the_option_and_what_is_allowed(name):
    for wrong in ("", "no such word", [1], float("nan"), -1):
        with pytest.raises(RequestError, match=f"^{name} must be ") as error:
            DecodingOptions.read({name: wrong})
        assert OPTIONS[name].allowed in str(error.value)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(UnknownName, match="did you mean 'temperature'"):
        DecodingOptions.read({"temprature": 1})


def test_a_value_of_none_changes_nothing():
    options = DecodingOptions(length=5)
    assert options.changed({"length": None, "seed": 3}) == DecodingOptions(length=5, seed=3)


def test_words_are_those_of_the_tables_they_name():
    assert ("none", *POLICIES) == CACHES
    assert len(set(EOS_POLICIES)) == 6
    assert set(DTYPES) == {"float32", "bfloat16", "float16"}


def test_options_with_a_parsed_rule_can_be_pickled():
    options = DecodingOptions("confidence | top(1)")
    assert isinstance(options.parsed_rule, Rule)
    assert options.parsed_rule is options.parsed_rule  # parsed once
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("options", "spec", "infill", "block"),
    [
        (DecodingOptions("swd-block32"), SPEC, False, 32),  # the recipe's
        (DecodingOptions("swd-block32", length=32), SPEC, False, None),  # it does not fit
        (DecodingOptions("swd-block32"), SPEC, True, None),
        (DecodingOptions("swd-block32", block="full"), SPEC, False, None),
        (DecodingOptions("swd-block32", block=8), SPEC, False, 8),
        (DecodingOptions("swd-block32"), CAUSAL, False, 4),  # the model's
        (DecodingOptions(block=8), CAUSAL, False, 8),
        (DecodingOptions("swd"), SPEC, False, None),
        (DecodingOptions(), SPEC, False, 32),  # that of the rule for a model that nobody knows
        (DecodingOptions(), ADVISED, False, 16),
        (DecodingOptions(length=16), ADVISED, False, None),
        (DecodingOptions(), ADVISED, True, None),
        (DecodingOptions(block="full"), ADVISED, False, None),
        (DecodingOptions(), replace(ADVISED, block=4), False, 4),
    ],
)
def test_the_block_is_what_was_asked_else_the_models_else_the_recipes(options, spec, infill, block):
    assert resolve(options, spec, infill=infill).block == block


def test_defaults_fill_in_what_was_left_open_and_nothing_else():
    usual = DecodingOptions(length=64, block=16, eos="last", temperature=0.5, top_p=0.9)
    resolved = resolve(DecodingOptions("swd", temperature=0.0, top_p=1.0), SPEC, usual)
    assert (resolved.length, resolved.block, resolved.settings.eos) == (64, 16, "last")
    assert (resolved.settings.sampling.temperature, resolved.settings.sampling.top_p) == (0.0, 1.0)


def test_without_a_rule_the_recommended_one_decodes_with_what_belongs_to_it():
    preset = DecodingOptions(length=64, block=8, eos="suppress")
    for defaults in (DecodingOptions(length=64), preset):
        resolved = resolve(DecodingOptions(), ADVISED, defaults)
        assert resolved.recommended == ADVISED.recommended
        assert resolved.settings == Settings(Rule.parse("margin | top(2)"), 16, "last")
    asked = resolve(DecodingOptions(eos="stop", block=4), ADVISED)
    assert (asked.settings.eos, asked.block) == ("stop", 4)
    assert resolve(DecodingOptions(" recommended "), ADVISED).recommended is not None


def test_a_rule_that_was_asked_for_takes_nothing_from_the_recommended_one():
    resolved = resolve(DecodingOptions("confidence | top(1)"), ADVISED)
    assert resolved.recommended is None
    assert resolved.settings == Settings(Rule.parse("confidence | top(1)"), None, "keep")


def test_a_model_without_an_end_token_gets_no_eos_policy():
    endless = ModelSpec(mask_id=1, vocab_size=8, recommended=ADVISED.recommended)
    assert resolve(DecodingOptions(), endless).settings.eos == "keep"


def test_a_recommended_part_of_a_block_holds_where_it_divides_the_block():
    advice = Recommendation("margin | top(2)", "a card", eos="stop", sub_block=2)
    spec = replace(CAUSAL, recommended=advice)
    assert resolve(DecodingOptions(), spec).sub_block == 2
    assert resolve(DecodingOptions(sub_block=1), spec).sub_block == 1
    assert resolve(DecodingOptions(block=3), spec).sub_block is None
    assert resolve(DecodingOptions("swd"), spec).sub_block is None


def test_masks_inside_a_text_get_the_recommended_rule_alone():
    resolved = resolve(DecodingOptions(), ADVISED, infill=True)
    assert resolved.settings == Settings(Rule.parse("margin | top(2)"), None, "keep")
    assert resolved.recommended.words == "margin | top(2) (a paper)"


def test_a_recommendation_is_told_as_it_is_used():
    asked = resolve(DecodingOptions(block=8, eos="keep"), ADVISED).recommended
    assert asked.words == "margin | top(2) in blocks of 8 (a paper)"


def test_a_recipes_block_and_length_come_before_the_presets():
    preset = DecodingOptions(length=512, block=64)
    for rule, block, length in (
        ("swd-block32", 32, 512),  # it has no length of its own
        ("dream", 64, 256),  # it has no block of its own
        ("llada", 32, 256),
        ("swd", 64, 512),
    ):
        resolved = resolve(DecodingOptions(rule), SPEC, preset)
        assert (resolved.block, resolved.length) == (block, length)
        asked = resolve(DecodingOptions(rule, length=128, block=8), SPEC, preset)
        assert (asked.block, asked.length) == (8, 128)


def test_a_loaded_block_causal_model_keeps_its_blocks():
    assert resolve(DecodingOptions(), CAUSAL, loaded=True).block == 4
    with pytest.raises(RequestError, match="load it with another block"):
        resolve(DecodingOptions(block=8), CAUSAL, loaded=True)
    with pytest.raises(RequestError, match="no full window"):
        resolve(DecodingOptions(block="full"), CAUSAL)


def test_a_record_of_resolved_options_names_each_of_them_once():
    options = DecodingOptions("swd-block32", length=64, steps=20, history=8, seed=3)
    record = resolve(options, SPEC).record()
    loading = {"cache", "guidance", "template_args", *LOADING}
    assert set(record) == set(OPTIONS) - loading - {"longest", "sub_block", "language"}
    assert resolve(DecodingOptions(sub_block=2), CAUSAL).record()["sub_block"] == 2
    assert (record["length"], record["block"], record["steps"]) == (64, 32, 20)
    assert (record["history"], record["seed"], record["eos"]) == (8, 3, "keep")
    assert record["rule"] == "confidence | swd(1, start=uniform) | eb(0.1)"
