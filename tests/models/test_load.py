"""Loading: which tokens are special, and what the options do."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.common import IDS, logits, one_line
from tests.models.configs import (
    BOS,
    EOS,
    FAMILIES,
    MASK,
    TURN,
    VOCABULARY,
)
from tests.models.makers import change_json, make, write_json, write_tokenizer
from unmask import Loaded, ModelError, UnmaskError, decode, load
from unmask.models.describe import describe
from unmask.models.load import load_described
from unmask.models.load_options import LoadOptions

# Special tokens


@pytest.mark.parametrize("family", FAMILIES)
def test_a_loaded_model_knows_its_special_tokens(tmp_path, family):
    spec = load(make(tmp_path, family)).model.spec
    assert (spec.mask_id, spec.eos_id, spec.vocab_size) == (MASK, EOS, VOCABULARY)
    assert spec.stop_ids == (EOS, TURN)


def test_a_loaded_model_unpacks_into_model_and_tokenizer(folder):
    loaded = load(folder)
    assert isinstance(loaded, Loaded)
    model, tokenizer = loaded
    assert (model, tokenizer) == (loaded.model, loaded.tokenizer)
    assert (loaded.family.name, loaded.folder) == ("llada", folder)
    assert model.spec.name == "tiny"


def test_the_callers_mask_comes_before_the_configs(tmp_path):
    assert load(make(tmp_path, "dream"), mask_id=7).model.spec.mask_id == 7


def test_a_mask_id_of_zero_is_an_id(folder):
    assert load(folder, mask_id=0).model.spec.mask_id == 0
    change_json(folder / "config.json", mask_token_id=0)
    assert load(folder).model.spec.mask_id == 0


def test_the_configs_mask_comes_before_the_tokenizers(tmp_path):
    assert load(make(tmp_path, "dream", mask_token_id=11)).model.spec.mask_id == 11


@pytest.mark.parametrize("absent", [..., None])
def test_the_tokenizers_mask_comes_before_the_familys(tmp_path, absent):
    assert load(make(tmp_path, "dream", mask_token_id=absent)).model.spec.mask_id == MASK


@pytest.mark.parametrize(
    ("family", "number"),
    [
        ("llada", 126336),
        ("dream", 151666),
        ("llada-moe", 156895),
        ("llada2", 156895),
        ("sdar", 151669),
    ],
)
def test_the_familys_mask_is_the_last_resort(tmp_path, family, number):
    folder = make(tmp_path, family, mask_token_id=...)
    change_json(folder / "tokenizer_config.json", mask_token=...)
    with pytest.raises(ModelError, match=f"mask token {number} lies outside") as caught:
        load(folder)  # whose vocabulary is too small for it
    assert "give the right one as mask_id" in one_line(caught)
    assert str(folder) in one_line(caught)


def test_the_mask_in_the_generation_config_is_not_used(tmp_path):
    folder = make(tmp_path, "dream")
    write_json(folder / "generation_config.json", {"mask_token_id": 3, "eos_token_id": EOS})
    assert load(folder).model.spec.mask_id == MASK


@pytest.mark.parametrize("mask_id", [-1, VOCABULARY, 10**9])
def test_a_mask_outside_the_vocabulary_is_refused(folder, mask_id):
    with pytest.raises(ModelError, match=rf"mask token {mask_id} .* 0\.\.{VOCABULARY - 1}"):
        load(folder, mask_id=mask_id)


def test_a_mask_beyond_the_tokenizer_but_inside_the_embedding_is_allowed(folder):
    assert load(folder, mask_id=VOCABULARY - 1).model.spec.mask_id == VOCABULARY - 1


def test_a_list_of_end_tokens_begins_with_the_one_that_pads(tmp_path):
    spec = load(make(tmp_path, "sdar", eos_token_id=[BOS, EOS])).model.spec
    assert spec.eos_id == BOS
    assert spec.stop_ids == (BOS, EOS, TURN)


def test_end_tokens_of_all_files_stop_an_answer(tmp_path):
    folder = make(tmp_path, "sdar", eos_token_id=BOS)
    write_json(folder / "generation_config.json", {"eos_token_id": [9, BOS]})
    spec = load(folder).model.spec
    assert spec.eos_id == BOS
    assert spec.stop_ids == (BOS, 9, EOS, TURN)


def test_without_any_file_naming_it_the_tokenizer_names_the_end_token(tmp_path):
    folder = make(tmp_path, "llada", eos_token_id=None)
    assert load(folder).model.spec.eos_id == EOS


def test_no_end_token_anywhere_is_an_error(tmp_path):
    folder = make(tmp_path, "llada", eos_token_id=None)
    change_json(folder / "tokenizer_config.json", eos_token=...)
    with pytest.raises(ModelError) as caught:
        load(folder)
    assert one_line(caught).startswith(f"{folder / 'config.json'}: the key 'eos_token_id'")


def test_an_end_token_outside_the_vocabulary_is_refused_by_name(tmp_path):
    with pytest.raises(UnmaskError, match="4321 lies outside the vocabulary") as caught:
        load(make(tmp_path / "odd", "llada", eos_token_id=4321))
    assert "odd" in one_line(caught)


def test_a_tokenizer_without_the_turn_token_has_one_stop_fewer(tmp_path):
    folder = make(tmp_path, "llada")
    write_tokenizer(folder, "dream")  # which says <|im_end|>
    assert load(folder).model.spec.stop_ids == (EOS,)


# Options


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("dtype", "far"), [("bfloat16", 0.4), ("float16", 0.05), ("float32", 0)])
def test_a_dtype_changes_the_weights_and_little_else(tmp_path, family, dtype, far):
    folder = make(tmp_path, family)
    exact, model = load(folder).model, load(folder, dtype=dtype).model
    assert model.dtype == getattr(torch, dtype)
    distance = (logits(model) - logits(exact)).abs().mean()
    assert distance <= far


def test_a_dtype_may_be_torchs_own(folder):
    assert load(folder, dtype=torch.float16).model.dtype == torch.float16


@pytest.mark.parametrize("dtype", ["bf16", "int8", "auto", ""])
def test_an_unknown_dtype_lists_the_known_ones(folder, dtype):
    with pytest.raises(ModelError) as caught:
        load(folder, dtype=dtype)
    assert "float32, bfloat16, float16" in one_line(caught)
    assert repr(dtype) in one_line(caught)


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool])
def test_a_dtype_that_is_no_float_is_refused(folder, dtype):
    with pytest.raises(UnmaskError, match="dtype must be one of"):
        load(folder, dtype=dtype)


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_one_line(folder, device):
    with pytest.raises(UnmaskError, match=device) as caught:
        load(folder, device=device)
    one_line(caught)


def test_the_meta_device_is_refused(folder):
    with pytest.raises(ModelError, match="device 'meta' cannot be used: it holds no numbers"):
        load(folder, device="meta")


@pytest.mark.parametrize("name", ["pack", "exact", "compile"])
@pytest.mark.parametrize("value", ["no", "auto", "", 0, 1, []])
def test_a_switch_is_true_or_false(folder, name, value):
    with pytest.raises(ModelError) as caught:
        load(folder, **{name: value})
    assert one_line(caught) == f"{name} must be True or False, got {value!r}"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"pack": True, "quantize": "int8"}, "quantize and pack"),
        ({"compile": True, "quantize": "int8"}, "quantize and compile"),
        ({"device_map": "auto", "pack": True}, "pack and device_map"),
    ],
)
def test_options_that_exclude_each_other_are_refused_before_the_folder_is_sought(given, named):
    with pytest.raises(ModelError) as caught:
        load("no such folder", **given)
    assert one_line(caught) == f"{named} do not work together; give one of them"


def test_a_layout_that_is_turned_off_excludes_nothing():
    LoadOptions(quantize="int8", pack=False, compile=False)
    LoadOptions(pack=False, compile=True, device_map="auto")


@pytest.mark.parametrize("name", ["mask_id", "block"])
@pytest.mark.parametrize("value", [True, False, 1.0, "4"])
def test_an_id_and_a_width_are_whole_numbers(tmp_path, name, value):
    with pytest.raises(ModelError) as caught:
        load(make(tmp_path, "sdar"), **{name: value})
    assert one_line(caught) == f"{name} must be a whole number, got {value!r}"


def test_a_whole_number_of_numpy_is_a_whole_number(tmp_path):
    numpy = pytest.importorskip("numpy")
    spec = load(make(tmp_path, "sdar"), mask_id=numpy.int64(7), block=numpy.int32(8)).model.spec
    assert (spec.mask_id, spec.block) == (7, 8)
    assert type(spec.mask_id) is type(spec.block) is int


@pytest.mark.parametrize("source", [None, 3, b"x", True, ["folder"]])
def test_a_checkpoint_is_named_by_a_text_or_a_path(source):
    with pytest.raises(ModelError, match="must be a folder or a hub id") as caught:
        load(source)
    assert one_line(caught).endswith(f"got {source!r}")


@pytest.mark.parametrize("token", [EOS, TURN])
def test_a_token_that_ends_an_answer_is_no_mask(folder, token):
    with pytest.raises(ModelError, match=f"tiny: the mask token {token} also ends") as caught:
        load(folder, mask_id=token)
    assert "give the right one as mask_id" in one_line(caught)
    change_json(folder / "config.json", mask_token_id=token)
    with pytest.raises(ModelError, match="also ends an answer"):
        load(folder)
    assert load(folder, mask_id=MASK).model.spec.mask_id == MASK


def test_another_block_width_changes_attention_and_windows(tmp_path):
    folder = make(tmp_path, "sdar")
    wide = load(folder, block=8).model
    assert load(folder).model.spec.block == 4
    assert wide.spec.block == 8
    result = decode(wide, [1, 2, 3], "confidence | top(8)", length=5)
    assert len(result.canvas) == 8
    assert result.nfe == 1


@pytest.mark.parametrize("block", [0, -4])
def test_a_block_width_is_at_least_one(tmp_path, block):
    with pytest.raises(UnmaskError, match=rf"block.*{block}"):
        load(make(tmp_path, "sdar"), block=block)


def test_a_full_attention_model_has_no_block_width(folder):
    with pytest.raises(ModelError, match=r"give the block to decode\(\), not load\(\)") as caught:
        load(folder, block=8)
    one_line(caught)


def test_compiling_is_torchs_compiler_on_the_forward(folder, monkeypatch):
    compiled = []

    def compiler(function):
        def run(*args, **knobs):
            compiled.append(args[0].shape)
            return function(*args, **knobs)

        return run

    monkeypatch.setattr(torch, "compile", compiler)
    model = load(folder, compile=True).model
    plain = load(folder).model
    assert torch.equal(logits(model), logits(plain))
    assert compiled == [IDS.shape]
    decode(model, [1, 2], "confidence | top(2)", length=4)
    assert len(compiled) == 3


def test_a_head_beside_a_tied_embedding_is_not_read(tmp_path):
    folder = make(tmp_path, "dream", tie_word_embeddings=True)
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "lm_head.weight": torch.zeros(3, 3)}, file)
    with pytest.warns(UserWarning, match="'lm_head.weight' differs from it; the embedding is used"):
        assert load(folder).model.arch.tied


def test_a_described_folder_is_not_read_again(tmp_path, monkeypatch):
    description = describe(make(tmp_path, "sdar"), mask_id=7, block=8)
    monkeypatch.setattr(
        "unmask.models.packed.free_memory", lambda device: 0
    )  # it reads a file, too
    monkeypatch.setattr(Path, "read_text", None)  # neither config.json nor the tokenizer's files
    model, tokenizer = load_described(description, LoadOptions(dtype="bfloat16"))
    assert (model.spec, model.dtype) == (description.spec, torch.bfloat16)
    assert tokenizer is description.tokenizer


def test_the_words_for_dtypes_and_caches_import_no_torch():
    code = "import sys, unmask.models.words; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.long
def test_loading_a_model_imports_no_compiler():
    code = """
        import sys
        import unmask
        unmask.load()
        sys.exit(", ".join(n for n in ("torch._dynamo", "sympy", "triton") if n in sys.modules))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True
    )
    assert done.stderr.strip() == ""
