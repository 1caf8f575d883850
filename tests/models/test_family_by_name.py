"""`family=`: where no file says it, and never against what config.json says."""

from __future__ import annotations

import shutil
import warnings

import pytest

from tests.models.common import one_line
from tests.models.makers import change_json, make
from tests.paths import ROOT
from unmask import ModelError, load
from unmask.models.config import Config
from unmask.models.describe import describe
from unmask.models.families import FAMILIES, family_of

SMALL = ROOT / "tests" / "golden" / "models-2"


def named(family, **values):
    return family_of(Config(values, "somewhere/config.json", family), family).name


def copied(tmp_path, name, new_name):
    ignored = shutil.ignore_patterns("golden_*")
    return shutil.copytree(SMALL / name, tmp_path / new_name, ignore=ignored)


def test_every_family_may_be_named_for_its_own_classes_and_types():
    for family in FAMILIES:
        for architecture in family.architectures:
            assert named(family.name, architectures=[architecture]) == family.name
        for kind in family.model_types:
            assert named(family.name, model_type=kind) == family.name


def test_no_family_may_be_named_for_the_class_of_others():
    for family in FAMILIES:
        for other in FAMILIES:
            if {*family.architectures} & {*other.architectures}:
                continue
            with pytest.raises(ModelError) as caught:
                named(family.name, architectures=list(other.architectures))
            message = one_line(caught)
            assert repr(family.name) in message
            assert repr(other.name) in message
            assert other.architectures[0] in message


@pytest.mark.parametrize(
    ("folder", "family", "said"),
    [
        ("dream", "a2d-qwen2", "says DreamModel, which is family 'dream', not 'a2d-qwen2'"),
        ("sdar", "a2d-qwen3", "says SDARForCausalLM, which is family 'sdar', not 'a2d-qwen3'"),
        ("llada", "sdar", "says LLaDAModelLM, which is family 'llada', not 'sdar'"),
    ],
)
def test_a_folder_is_not_loaded_as_another_family(tmp_path, folder, family, said):
    folder = make(tmp_path, folder)
    for read in (load, lambda folder, family: describe(folder, family=family)):
        with pytest.raises(ModelError) as caught:
            read(folder, family=family)
        message = one_line(caught)
        assert message.startswith(f"{folder / 'config.json'}: architectures {said}; leave the")


def test_without_a_known_class_the_type_counts():
    for architectures in (None, ["MyModel"]):
        values = {"architectures": architectures, "model_type": "Dream"}
        with pytest.raises(ModelError, match="model_type says Dream, which is family 'dream', not"):
            named("a2d-qwen2", **values)
        assert named("dream", **values) == "dream"


def test_the_type_llada_is_one_of_two_families():
    with pytest.raises(ModelError, match="model_type says llada, which is family 'llada-moe'"):
        named("llada", model_type="llada", num_experts=8)


def test_a_config_that_names_nothing_known_takes_any_family():
    assert named("sdar", architectures=["MyModel"], model_type="mine") == "sdar"
    assert named("sdar") == "sdar"


def test_a_missing_key_is_asked_for_in_the_name_of_the_given_family(tmp_path):
    folder = make(tmp_path, "sdar")
    change_json(folder / "config.json", architectures=["Mine"], model_type="mine")
    assert load(folder, family="sdar").model.spec.block == 4
    change_json(folder / "config.json", hidden_size=...)
    with pytest.raises(ModelError, match=r"the key 'hidden_size' is missing; sdar needs it"):
        load(folder, family="sdar")


# Models of one class that attend to everything or in blocks.

QUIET = [
    ("a2d-qwen2-tiny", "plain", {"family": "a2d-qwen2"}, None),
    ("a2d-qwen2-tiny", "plain", {"family": "a2d-qwen2-bd3lm"}, 32),
    ("a2d-qwen2-tiny", "plain", {"block": 7}, 7),
    ("a2d-qwen2-tiny", "some-MDLM", {}, None),
    ("a2d-qwen3-mdlm-tiny", "my-bd3lm", {"block": 7}, 7),
    ("a2d-qwen3-mdlm-tiny", "OPDLM", {"block": 7}, 7),
    ("a2d-qwen3-mdlm-tiny", "my-bd3lm", {"family": "a2d-qwen3"}, None),
    ("fast-dllm-v2-tiny", "plain", {}, 32),
    ("open-dcoder-tiny", "plain", {}, None),
]


@pytest.mark.parametrize(("source", "name", "options", "block"), QUIET)
def test_what_the_caller_or_the_name_says_is_no_guess(tmp_path, source, name, options, block):
    folder = copied(tmp_path, source, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(folder, **options).model.spec.block == block


@pytest.mark.parametrize("size", [2, 3])
def test_a_folder_that_says_nothing_gets_full_attention_and_a_warning(tmp_path, size):
    source = {2: "a2d-qwen2-tiny", 3: "a2d-qwen3-mdlm-tiny"}[size]
    folder = copied(tmp_path, source, "plain")
    with pytest.warns(UserWarning, match="full attention is taken") as caught:
        assert load(folder).model.spec.block is None
    (message,) = (str(each.message) for each in caught)
    assert f"give family a2d-qwen{size} to say so yourself" in message
    assert f"a2d-qwen{size}-bd3lm for blocks" in message
    assert "\n" not in message


def test_a_folder_that_cannot_be_read_gets_the_error_alone(tmp_path):
    folder = copied(tmp_path, "a2d-qwen2-tiny", "plain")
    change_json(folder / "config.json", eos_token_id=99999)
    with pytest.raises(ModelError, match="eos_token_id"):  # a warning would be raised instead
        describe(folder)


# Messages of keys and options.


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_an_end_token_outside_the_vocabulary_is_told_with_file_and_key(tmp_path, file):
    folder = make(tmp_path, "llada2" if file.startswith("gen") else "llada")
    change_json(folder / file, eos_token_id=99999)
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = one_line(caught)
    assert (
        f"{folder / file}: eos_token_id 99999 lies outside the vocabulary 0..279; set it" in message
    )


def test_a_block_that_is_too_wide_is_told_with_its_key(tmp_path):
    folder = make(tmp_path, "sdar")
    with pytest.raises(ModelError, match="block must be a whole number from 1 to 4096, got 5000"):
        load(folder, block=5000)
    change_json(folder / "config.json", block_size=5000)
    with pytest.raises(ModelError, match=r"config\.json: block_size must be at most 4096, got"):
        load(folder)
