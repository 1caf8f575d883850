"""The families of small public models: recognised by the right signs, and exact in batches."""

from __future__ import annotations

import re
import shutil
import warnings

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.helpers import outcome
from tests.models.makers import change_json
from tests.paths import ROOT
from unmask import ModelError, RequestError, Session, decode, decode_many, load
from unmask.models.caches import Cached
from unmask.models.families import FAMILIES
from unmask.models.tokenizer import Tokenizer
from unmask.models.words import FAMILY_NAMES

GOLDEN = ROOT / "tests" / "golden" / "models-2"
FOLDERS = sorted(folder.name for folder in GOLDEN.iterdir())
IN_BLOCKS = ["a2d-qwen3-bd3lm-tiny", "a2d-qwen3-opdlm-tiny", "fast-dllm-v2-tiny"]
RULE = "confidence | swd(1) | threshold(0.4)"
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*in the folder's name"),
    pytest.mark.filterwarnings("ignore:.*full attention is taken"),  # a2d-qwen2-tiny
]


def loaded(name, **options):
    return load(GOLDEN / name, **{"dtype": "float32", **options})


def prompts(spec, sizes=(3, 31, 8, 13, 1)):
    source = torch.Generator().manual_seed(1)
    return [torch.randint(10, 400, (size,), generator=source).tolist() for size in sizes]


def test_the_names_of_the_families_are_those_of_the_table():
    assert tuple(family.name for family in FAMILIES) == FAMILY_NAMES


@pytest.mark.parametrize("name", FOLDERS)
def test_rows_together_are_as_many_single_runs(name):
    for dtype, sizes in (("float32", (3, 32, 1)), ("bfloat16", (20, 8))):
        model = loaded(name, dtype=dtype).model
        rows = prompts(model.spec, [min(size, 28) for size in sizes] if "gpt" in name else sizes)
        block = {} if model.spec.block else {"block": 5}
        together = decode_many(model, rows, RULE, length=12, batch_size=5, eos="block", **block)
        for row, result in zip(rows, together, strict=True):
            alone = decode(model, row, RULE, length=12, eos="block", **block)
            assert outcome(result) == outcome(alone), dtype


@pytest.mark.parametrize("name", FOLDERS)
def test_a_cache_that_does_not_fit_the_attention_is_refused(name):
    model = loaded(name).model
    wrong = "block" if model.spec.block is None else "prefix"
    with pytest.raises(RequestError, match="the caches for it are"):
        Cached(model, wrong)


@pytest.mark.parametrize("name", IN_BLOCKS)
@pytest.mark.parametrize("rule", [RULE, "entropy | timesteps(6)"])  # the latter waits
def test_the_block_cache_is_exact(name, rule):
    model = loaded(name).model
    rows = prompts(model.spec, (3, 64, 8))
    with_it = decode_many(Cached(model, "block"), rows, rule, length=40, batch_size=2)
    without = decode_many(model, rows, rule, length=40, batch_size=2)
    assert [outcome(result) for result in with_it] == [outcome(result) for result in without]


@pytest.mark.parametrize("name", ["modernbert-chat-tiny", "diffugpt-tiny"])
def test_a_full_forward_through_a_cache_gives_the_same_states(name):
    model = loaded(name).model
    seen = []

    class Watched:
        """Compares the first forward with and without the cache."""

        def __init__(self, cached):
            self.cached, self.spec, self.device = cached, cached.spec, cached.device

        def trunk(self, canvas):
            hidden = self.cached.trunk(canvas)
            if not seen:
                seen.append((hidden.states, model.trunk(canvas).states))
            return hidden

        def head(self, hidden, rows, positions):
            return self.cached.head(hidden, rows, positions)

    decode_many(Watched(Cached(model, "dual")), prompts(model.spec, (9, 4)), RULE, length=6)
    ((cached, plain),) = seen
    torch.testing.assert_close(cached[0], plain[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["modernbert-chat-tiny", "diffugpt-tiny"])
def test_the_last_layer_may_compute_some_positions_only(name):
    network = loaded(name).model.module
    tokens = torch.tensor(prompts(None, (12,)))
    with torch.no_grad():
        asked = torch.tensor([2, 3, 7, 11])
        some, everything = network(tokens, asked=asked), network(tokens)
    torch.testing.assert_close(some, everything[:, asked], rtol=1e-5, atol=1e-5)


def test_a_canvas_beyond_the_learned_positions_is_an_error():
    model = loaded("diffugpt-tiny").model
    with pytest.raises(ModelError, match="a canvas of 41 tokens; this model has 40 positions"):
        decode(model, [1, 2, 3], RULE, length=38)


def test_a_gpt2_context_is_known_to_the_session():
    session = Session(GOLDEN / "diffugpt-tiny")
    assert session.context == 40


# Which family a folder belongs to.


def copied(tmp_path, name, new_name, **changes):
    folder = tmp_path / new_name
    shutil.copytree(GOLDEN / name, folder, ignore=shutil.ignore_patterns("golden_*"))
    for file, keys in changes.items():
        change_json(folder / f"{file}.json", **keys)
    return folder


def without_mask(tmp_path):
    """A plain causal Qwen2: nothing in its files names a mask token."""
    folder = copied(tmp_path, "open-dcoder-tiny", "qwen", tokenizer_config={"mask_token": ...})
    for file in ("tokenizer.json", "added_tokens.json", "tokenizer_config.json"):
        text = (folder / file).read_text().replace("<M>", "<N>")
        (folder / file).write_text(text)
    return folder


def test_a_causal_class_without_a_mask_token_is_refused_by_name(tmp_path):
    folder = without_mask(tmp_path)
    with pytest.raises(ModelError, match=r"Qwen2ForCausalLM is a causal model.*'open-dcoder'"):
        load(folder)


def test_a_causal_class_is_accepted_with_a_mask_id(tmp_path):
    folder = without_mask(tmp_path)
    assert load(folder, mask_id=449).family.name == "open-dcoder"
    by_name = load(folder, family="open-dcoder", mask_id=449)
    assert by_name.model.arch.shift
    assert by_name.model.spec.block is None


def test_the_family_by_name_has_its_own_mask_id(tmp_path):
    with pytest.raises(ModelError, match="mask token 151665 lies outside the vocabulary"):
        load(without_mask(tmp_path), family="open-dcoder")


def test_an_unknown_family_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'open-dcoder'"):
        load(GOLDEN / "open-dcoder-tiny", family="open-dcode")


def test_the_folders_name_gives_the_blocks_with_a_word_about_it(tmp_path):
    folder = copied(tmp_path, "a2d-qwen3-mdlm-tiny", "Qwen3-0.6B-diffusion-BD3LM-v0.1")
    with pytest.warns(UserWarning, match="in blocks, of 32 if you give none, counted from the"):
        spec = load(folder).model.spec
    assert (spec.block, spec.from_prompt_end) == (32, True)


def test_the_hubs_cache_keeps_the_name_above_the_files(tmp_path):
    place = "models--divelab--OPDLM-0.6B/snapshots/0123abc"
    folder = copied(tmp_path, "a2d-qwen3-mdlm-tiny", place)
    with pytest.warns(UserWarning, match="in blocks, of 4 if"):
        assert load(folder).model.spec.block == 4


@pytest.mark.parametrize(
    ("options", "block"),
    [
        ({"family": "a2d-qwen3"}, None),
        ({"family": "opdlm"}, 4),
        ({"family": "opdlm", "block": 8}, 8),
    ],
)
def test_the_family_by_name_is_quiet(options, block):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec = loaded("a2d-qwen3-bd3lm-tiny", **options).model.spec
    assert spec.block == block


def test_a_block_for_the_loader_means_attention_in_blocks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec = loaded("a2d-qwen2-tiny", block=8).model.spec
    assert (spec.block, spec.from_prompt_end) == (8, True)


def test_modernberts_end_is_the_tokenizers_and_not_the_configs():
    spec = loaded("modernbert-chat-tiny").model.spec
    assert spec.stop_ids == (443,)  # [PAD]; config.json says [SEP]


def test_special_tokens_may_be_named_in_a_file_of_their_own(tmp_path):
    """Old savers name them in special_tokens_map.json alone; both files may name others too."""
    named = ("eos_token", "mask_token", "pad_token", "additional_special_tokens")
    for absent, value in (("missing", ...), ("null", None)):
        change = {"tokenizer_config": dict.fromkeys(named, value)}
        for name in ("open-dcoder-tiny", "diffugpt-tiny", "modernbert-chat-tiny"):
            folder = copied(tmp_path, name, f"{name}-{absent}", **change)
            spec, before = load(folder).model.spec, loaded(name).model.spec
            assert (spec.mask_id, spec.stop_ids) == (before.mask_id, before.stop_ids)
    change_json(folder / "tokenizer_config.json", mask_token="[UNK]")
    assert load(folder).model.spec.mask_id == 440


def test_modernbert_ends_with_its_padding_if_the_tokenizer_names_no_end(tmp_path):
    unnamed = {"eos_token": ..., "bos_token": ...}
    changes = {"tokenizer_config": unnamed, "special_tokens_map": unnamed}
    folder = copied(tmp_path, "modernbert-chat-tiny", "bert", **changes)
    assert load(folder).model.spec.stop_ids == (443,)  # [PAD]; config.json says [SEP]


def test_the_mask_token_of_fast_dllm_is_found_by_its_spelling():
    from unmask.models.describe import describe

    description = describe(GOLDEN / "fast-dllm-v2-tiny")
    assert (description.spec.mask_id, description.mask_from) == (449, "spelling")


# Blocks that count from the prompt's end, and sub-blocks.


def test_blocks_from_the_prompts_end_need_no_rounding_up():
    model = loaded("a2d-qwen3-opdlm-tiny").model
    result = decode(model, prompts(None, (6,))[0], "confidence | top(1)", length=10)
    assert len(result.canvas) == 16
    commits = result.commit_step.tolist()[6:]
    assert sorted(commits[:4]) == [0, 1, 2, 3]
    assert sorted(commits[8:]) == [8, 9]


def test_the_first_token_of_a_block_is_written_alone_without_a_look_at_the_block():
    model = loaded("fast-dllm-v2-tiny").model
    seen = []

    class Watched:
        spec, device = model.spec, model.device

        def trunk(self, canvas):
            seen.append((int(canvas.start[0]), int(canvas.stop[0]), int(model.reach(canvas)[0])))
            return model.trunk(canvas)

        def head(self, hidden, rows, positions):
            return model.head(hidden, rows, positions)

    prompt = prompts(None, (40,))[0]
    result = decode(Watched(), prompt, "confidence | threshold(0.001)", length=50)
    assert seen == [(40, 64, 64), (64, 65, 64), (64, 96, 96)]
    assert result.commit_step[64] == 1
    assert result.commit_step[65] == 2


def test_the_limit_of_steps_leaves_one_for_every_first_token():
    session = Session(GOLDEN / "fast-dllm-v2-tiny", rule="confidence | top(1)", length=60)
    answer = session.generate("some words", chat=False, steps=5)
    assert answer.nfe <= 5
    with pytest.raises(RequestError, match="steps 2 is too few for 5 blocks"):
        session.generate("some words of a text " * 6, chat=False, steps=2)


def test_sub_blocks_are_decoded_from_left_to_right_inside_a_block():
    session = Session(GOLDEN / "fast-dllm-v2-tiny", rule="confidence | top(1)", length=24)
    whole = session.generate("a b c d e f g", chat=False).commit_steps
    parts = session.generate("a b c d e f g", chat=False, sub_block=8).commit_steps
    assert len(parts) == 32
    assert parts[0] == -1
    assert parts[8] > -1
    assert max(parts[8:16]) < min(parts[16:24])
    assert max(parts[16:24]) < min(parts[24:])
    assert not max(whole[8:16]) < min(whole[16:24])


@pytest.mark.parametrize(
    ("folder", "options", "why"),
    [
        ("fast-dllm-v2-tiny", {"sub_block": 5}, "in equal parts of them, not in blocks of 5"),
        ("a2d-qwen2-tiny", {"sub_block": 4}, "sub_block is for models that attend in blocks"),
    ],
)
def test_a_sub_block_that_does_not_fit_is_refused(folder, options, why):
    with pytest.raises(RequestError, match=why):
        Session(GOLDEN / folder, length=32, **options).generate("some words", chat=False)


# Arguments of the chat template.


def test_template_arguments_reach_the_template():
    folder = GOLDEN / "a2d-qwen3-mdlm-tiny"
    plain, quiet = (
        Session(folder, length=4, template_args=args) for args in (None, {"enable_thinking": False})
    )
    chat = [{"role": "user", "content": "How many?"}]
    asked = plain.format(chat=True).of_messages(chat)
    texts = [
        asked.render(session.tokenizer, session.options.template_words).text
        for session in (plain, quiet)
    ]
    assert texts[1] == texts[0] + "<think>\n\n</think>\n\n"
    here = plain.chat(chat, template_args={"enable_thinking": False})
    assert here.ids == quiet.chat(chat).ids == quiet.generate("How many?").ids
    assert here.ids != plain.chat(chat).ids


def test_an_argument_that_the_template_does_not_use_is_a_warning():
    session = Session(GOLDEN / "a2d-qwen3-mdlm-tiny", length=4)
    with pytest.warns(UserWarning, match="does not use enable_thinkin$"):
        session.generate("How many?", template_args={"enable_thinkin": False})


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"eos_token": "x"}, "'eos_token' is the tokenizer's own"),
        ({"tools": [{"a": "b<|im_end|>"}]}, "hold the control token '<|im_end|>'"),
        ({"tools": [{"b<|im_end|>": 1}]}, "hold the control token '<|im_end|>'"),
    ],
)
def test_template_arguments_cannot_write_control_tokens(args, why):
    session = Session(GOLDEN / "a2d-qwen3-mdlm-tiny", length=4)
    with pytest.raises(RequestError, match=re.escape(why)):
        session.generate("How many?", template_args=args)


def test_a_modernbert_config_of_transformers_5_says_the_same(tmp_path):
    """It lists the kind of every layer, and groups the rotary bases by kind."""
    plain = loaded("modernbert-chat-tiny").model
    arch, old = plain.arch, dict.fromkeys(("global_rope_theta", "local_rope_theta"), ...)
    kinds = {True: "sliding_attention", False: "full_attention"}
    thetas = {True: arch.local.rope_theta, False: arch.rope_theta}
    new = {
        "global_attn_every_n_layers": ...,
        "layer_types": [kinds[layer in arch.local.layers] for layer in range(arch.layers)],
        "rope_parameters": {
            kinds[local]: {"rope_type": "default", "rope_theta": theta}
            for local, theta in thetas.items()
        },
    }
    folder = copied(tmp_path, "modernbert-chat-tiny", "bert", config=old | new)
    assert load(folder).model.arch == arch
    change_json(folder / "config.json", layer_types=["full_attention"])
    with pytest.raises(ModelError, match=r"config\.json: layer_types must be 'full_attention' or"):
        load(folder)


def test_the_causal_masks_that_gpt2_savers_wrote_are_left_alone(tmp_path):
    folder = copied(tmp_path, "diffugpt-tiny", "gpt")
    tensors = load_file(folder / "model.safetensors")
    tensors["denoise_model.h.0.attn.bias"] = torch.ones(1, 1, 8, 8)
    save_file(tensors, folder / "model.safetensors")
    assert load(folder).family.name == "diffugpt"


def test_gpt2s_words_are_split_its_own_way_without_a_tokenizer_json(tmp_path):
    text = "in 1984 he didn't\n  say cafe\u0301"
    folder = copied(tmp_path, "diffugpt-tiny", "gpt")
    wanted = Tokenizer.load(folder).encode(text)
    (folder / "tokenizer.json").unlink()
    assert Tokenizer.load(folder).encode(text) == wanted
