"""`load`: special tokens, options, folders and hub ids, and memory."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.makers import (
    BOS,
    EOS,
    FAMILIES,
    MASK,
    TURN,
    VOCABULARY,
    change_json,
    config_of,
    make,
    tensor_shapes,
    write_json,
    write_tokenizer,
)
from unmask import Loaded, ModelError, UnmaskError, decode, load
from unmask.models.load import find_folder

IDS = torch.tensor([[5, 17, 200, MASK, 9, MASK, 33]])
MEGABYTE = 2**20


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path / "tiny", "llada")


def one_line(caught):
    message = str(caught.value)
    assert "\n" not in message
    return message


def logits(model):
    with torch.no_grad():
        return model.module.logits(model.module(IDS)).float()


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


def test_a_device_map_without_accelerate_is_one_line(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    for device_map in ("auto", {"": "cpu"}):
        with pytest.raises(ModelError) as caught:
            load(folder, device_map=device_map)
        assert "device_map needs the package accelerate" in one_line(caught)


class FakeAccelerate:
    """What `load` calls of accelerate, recorded."""

    def __init__(self, device_map):
        self.device_map, self.dispatched = device_map, None

    def infer_auto_device_map(self, module, no_split_module_classes):
        assert no_split_module_classes == ["Layer"]
        assert {p.device.type for p in module.parameters()} == {"meta"}
        return self.device_map

    def dispatch_model(self, module, device_map, force_hooks):
        assert force_hooks
        self.dispatched = device_map
        return module


@pytest.mark.parametrize("given", ["auto", {"embed": "cpu", "layers": "cpu", "": "cpu"}])
def test_a_device_map_is_handed_to_accelerate_module_by_module(folder, monkeypatch, given):
    fake = FakeAccelerate({"": "cpu"})
    monkeypatch.setitem(sys.modules, "accelerate", fake)
    model = load(folder, device_map=given).model
    assert set(fake.dispatched.values()) == {torch.device("cpu")}
    assert {"embed", "norm", "head", "layers.0", "layers.1"} == set(fake.dispatched)
    assert torch.equal(logits(model), logits(load(folder).model))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("balanced", "device_map must be 'auto' or a mapping, got 'balanced'"),
        ({"embed": "cpu"}, "device_map places no 'layers.0."),
    ],
)
def test_a_device_map_that_does_not_fit_is_one_line(folder, monkeypatch, given, message):
    monkeypatch.setitem(sys.modules, "accelerate", FakeAccelerate({}))
    with pytest.raises(ModelError) as caught:
        load(folder, device_map=given)
    assert message in one_line(caught)


def test_the_most_precise_name_in_a_device_map_counts(folder, monkeypatch):
    fake = FakeAccelerate({})
    monkeypatch.setitem(sys.modules, "accelerate", fake)
    load(folder, device_map={"": "cpu", "layers": "meta", "layers.1": "cpu"})
    assert {str(place) for name, place in fake.dispatched.items() if "layers.0" in name} == {"meta"}
    assert {str(place) for name, place in fake.dispatched.items() if "layers.1" in name} == {"cpu"}
    assert str(fake.dispatched["head"]) == "cpu"


class Moving(FakeAccelerate):
    """As accelerate does: a module's tensor arguments go to its device before it runs."""

    def dispatch_model(self, module, device_map, force_hooks):
        for name, place in device_map.items():
            module.get_submodule(name).register_forward_pre_hook(self.mover(place))
        return module

    @staticmethod
    def mover(place):
        def move(_, inputs):
            return tuple(x.to(place) if isinstance(x, torch.Tensor) else x for x in inputs)

        return move


ELSEWHERE = {"": "cpu", "layers.1": "meta", "norm": "meta", "head": "meta"}


def test_a_layer_on_another_device_finds_everything_there(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", Moving({}))
    model = load(folder, device_map=ELSEWHERE).model
    with torch.no_grad():
        assert model.module(IDS, mask=torch.ones(1, 1, 1, IDS.shape[-1]).bool()).is_meta


def test_a_head_on_another_device_is_given_its_hidden_states_there(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", Moving({}))
    module = load(folder, device_map=ELSEWHERE).model.module
    with torch.no_grad():
        assert module.logits(torch.zeros(3, 32)).is_meta


# Folders and hub ids


@pytest.fixture
def hub(monkeypatch):
    """A hub that records how it was asked, and answers with a folder or an error."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    asked = {}

    def answer(result):
        def snapshot_download(name, **knobs):
            asked.update(knobs, name=name)
            if isinstance(result, Exception):
                raise result
            return str(result)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
        return asked

    return answer


def test_a_folder_may_be_a_string_or_a_path(folder):
    assert load(str(folder)).folder == load(folder).folder == folder


def test_a_folder_below_the_home_folder_may_begin_with_a_tilde(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert find_folder("~/tiny") == folder


def test_a_folder_is_never_looked_up_on_the_hub(folder, hub):
    asked = hub(AssertionError("the hub was asked"))
    load(folder)
    assert asked == {}


def test_a_relative_folder_that_looks_like_a_hub_id_is_the_folder(tmp_path, hub, monkeypatch):
    make(tmp_path / "some" / "model", "llada")
    asked = hub(AssertionError("the hub was asked"))
    monkeypatch.chdir(tmp_path)
    assert load("some/model").family.name == "llada"
    assert asked == {}


def test_a_hub_id_is_fetched_with_its_revision_and_token(folder, hub):
    asked = hub(folder)
    loaded = load("GSAI-ML/LLaDA-8B-Instruct", revision="abc123", token="secret")
    assert loaded.folder == folder
    assert asked["name"] == "GSAI-ML/LLaDA-8B-Instruct"
    assert (asked["revision"], asked["token"]) == ("abc123", "secret")


def test_only_weights_configs_and_tokenizers_are_fetched(folder, hub):
    from fnmatch import fnmatch

    asked = hub(folder)
    load("GSAI-ML/LLaDA-8B-Instruct")
    wanted = [
        *(file.name for file in folder.iterdir()),
        "model-00001-of-00002.safetensors",
        "model.safetensors.index.json",
        "merges.txt",
        "chat_template.jinja",
    ]
    patterns = asked["allow_patterns"]
    assert all(any(fnmatch(name, pattern) for pattern in patterns) for name in wanted)
    for other in ("modeling_llada.py", "pytorch_model.bin", "assets/figure.png", "model.gguf"):
        assert not any(fnmatch(other, pattern) for pattern in patterns)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("no route to the hub"),
        OSError("no route to the hub\nsecond line\nthird line"),
        RuntimeError("\n  no route to the hub\n"),
    ],
)
def test_a_hub_that_cannot_be_reached_says_what_to_do(hub, error):
    hub(error)
    with pytest.raises(ModelError) as caught:
        load("GSAI-ML/LLaDA-8B-Instruct")
    message = one_line(caught)
    assert "'GSAI-ML/LLaDA-8B-Instruct' is no folder here" in message
    assert "no route to the hub" in message
    assert "check the name and the network, or download it elsewhere" in message


def test_an_error_without_words_is_named_by_its_kind(hub):
    hub(TimeoutError())
    with pytest.raises(ModelError, match="TimeoutError"):
        load("some/model")


def test_a_token_is_never_part_of_a_message(hub):
    hub(OSError("refused"))
    with pytest.raises(ModelError) as caught:
        load("some/model", token="hf_secret")
    assert "hf_secret" not in one_line(caught)


def test_a_hub_id_without_the_hub_library_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError) as caught:
        load("some/model")
    assert "'huggingface_hub' must be installed" in one_line(caught)


@pytest.mark.parametrize("name", ["llada", "/no/such/folder", "./some/model", "a/b/c", "../x"])
def test_what_is_neither_a_folder_nor_a_hub_id_never_reaches_the_hub(hub, name):
    asked = hub(AssertionError("the hub was asked"))
    with pytest.raises(ModelError) as caught:
        load(name)
    assert repr(name) in one_line(caught)
    assert "hub id like" in one_line(caught)
    assert asked == {}


@pytest.mark.parametrize("gone", ["tokenizer.json", "vocab.json", "merges.txt"])
def test_missing_tokenizer_files_are_named(tmp_path, gone):
    folder = make(tmp_path, "dream", slow_tokenizer=gone != "tokenizer.json")
    (folder / gone).unlink()
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = one_line(caught)
    assert str(folder) in message
    assert "tokenizer.json" in message
    assert gone in message


# What it takes


def run(code, *arguments):
    """Run a small program of its own; returns its JSON output."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_of_transformers_is_needed_to_load_and_decode(folder):
    code = """
        import json, sys

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("transformers", "accelerate", "huggingface_hub"):
                    raise ImportError(name)

        sys.meta_path.insert(0, Absent())
        import unmask

        model, tokenizer = unmask.load(sys.argv[1])
        prompt = tokenizer.encode_chat([{"role": "user", "content": "hello"}])
        result = unmask.decode(model, prompt, "confidence | swd(5) | top(2)", length=6)
        named = {name.split(".")[0] for name in sys.modules}
        print(json.dumps([result.answer.tolist(), sorted(named & {"transformers"})]))
    """
    answer, imported = run(code, folder)
    model, tokenizer = load(folder)
    prompt = tokenizer.encode_chat([{"role": "user", "content": "hello"}])
    here = decode(model, prompt, "confidence | swd(5) | top(2)", length=6)
    assert answer == here.answer.tolist()
    assert imported == []


def write_zeros(file, shapes):
    """A file of bfloat16 zeros that takes no room on the disk; returns its size."""
    header, place = {}, 0
    for name, shape in shapes.items():
        end = place + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.truncate(out.tell() + place)
    return place


@pytest.fixture
def large(tmp_path):
    """A LLaDA of a gigabyte in bfloat16, of four files; gone after the test."""
    config = config_of("llada", d_model=2048, mlp_hidden_size=8192, n_layers=8)
    write_json(tmp_path / "config.json", config)
    write_tokenizer(tmp_path, "llada")
    shapes = tensor_shapes("llada", config)
    where, sizes = {}, []
    for number in range(4):
        part = {name: shape for name, shape in shapes.items() if _shard(name) == number}
        file = tmp_path / f"model-{number + 1:05d}-of-00004.safetensors"
        sizes.append(write_zeros(file, part))
        where.update(dict.fromkeys(part, file.name))
    write_json(tmp_path / "model.safetensors.index.json", {"weight_map": where})
    yield tmp_path, sum(sizes), max(sizes)
    for file in tmp_path.iterdir():
        file.unlink()


def _shard(name):
    """Two layers to a file; what belongs to no layer goes to the first."""
    return int(name.split(".")[3]) // 2 if ".blocks." in name else 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("dtype", [None, "float16"])
def test_loading_takes_the_weights_one_file_and_little_more(large, dtype):
    folder, weights, shard = large
    assert weights >= 1000 * MEGABYTE
    code = """
        import json, sys
        import torch
        from unmask import load

        def memory(field):
            found = open("/proc/self/status").read().split(field)[1].split()
            return int(found[0]) * 1024

        torch.set_num_threads(1)
        before = memory("VmRSS:")  # torch itself
        model = load(sys.argv[1], dtype=None if sys.argv[2] == "None" else sys.argv[2]).model
        for parameter in model.module.parameters():  # a mapped page counts once it is touched
            parameter.view(torch.int16).flatten()[::1024].sum()
        print(json.dumps([memory("VmHWM:") - before, str(model.dtype)]))
    """
    taken, found = run(code, folder, dtype)
    assert found == f"torch.{dtype or 'bfloat16'}"
    assert taken >= 0.9 * weights  # otherwise nothing was measured
    assert taken <= weights + shard + 100 * MEGABYTE


def test_a_head_beside_a_tied_embedding_is_not_read(tmp_path):
    folder = make(tmp_path, "dream", tie_word_embeddings=True)
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "lm_head.weight": torch.zeros(3, 3)}, file)
    assert load(folder).model.arch.tied
