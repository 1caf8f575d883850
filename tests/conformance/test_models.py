"""The golden checkpoints: logits, generations, tokenizers and chats of the originals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from tests.paths import ROOT
from unmask.conformance import Report, run
from unmask.conformance.generation_plans import plan_of_generation
from unmask.conformance.models import folders, run_model
from unmask.conformance.plan import KnownDifference

GOLDEN = ROOT / "tests" / "golden" / "models"
SEEDED = {
    "generate/sdar_low_confidence_static_seeded",
    "generate/sdar_low_confidence_dynamic_seeded",
}
EXPECTED = {  # how many cases pass, and which are known to differ
    "dream-tiny": (32, set()),
    "dream-tiny-sharded": (32, set()),
    "llada-moe-tiny": (14, set()),
    "llada-tiny": (33, set()),
    "llada-tiny-gqa-sharded": (33, set()),
    "llada2-tiny": (17, set()),
    "sdar-tiny": (14, SEEDED),
}


def checked(folder):
    report = Report()
    run_model(folder, report)
    return report


def with_status(report, status):
    return {outcome.case for outcome in report.outcomes if outcome.status == status}


@pytest.fixture
def spoiled(tmp_path):
    """The failures and their reasons after one file of a golden folder was changed."""

    def make(name, file, change):
        kept = {"golden_meta.json", file}
        if not file.startswith("golden") or file == "golden_hidden.npz":
            kept.add("golden_forward.npz")
        others = {golden.name for golden in GOLDEN.glob("*/golden_*")} - kept
        ignored = shutil.ignore_patterns(*others)
        folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name, ignore=ignored))
        change(folder / file)
        outcomes = checked(folder).outcomes
        return {o.case: o.reason for o in outcomes if o.status == "failed"}

    return make


def edited(change):
    """Change the content of a JSON file."""

    def apply(file):
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content))

    return apply


def test_every_golden_folder_has_its_expectation():
    assert [folder.name for folder in folders(GOLDEN)] == sorted(EXPECTED)


def thinned(folder, target):
    """The folder with every fourth of its generations, and how many were left out."""
    cases = json.loads((folder / "golden_generate.json").read_text())
    target.mkdir()
    for file in folder.iterdir():
        if file.name != "golden_generate.json":
            (target / file.name).symlink_to(file)
    (target / "golden_generate.json").write_text(json.dumps(cases[::4]))
    return len(cases) - len(cases[::4])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_golden_checkpoint_is_reproduced(name, tmp_path):
    passed, differing = EXPECTED[name]
    folder = GOLDEN / name
    if name.endswith("-sharded"):  # another checkpoint has the same generations
        passed, folder = passed - thinned(folder, tmp_path / name), tmp_path / name
    report = checked(folder)
    assert all(outcome.reason for outcome in report.outcomes if outcome.status != "passed")
    assert [outcome for outcome in report.outcomes if outcome.status == "failed"] == []
    assert with_status(report, "known difference") == {f"{name}/{case}" for case in differing}
    assert with_status(report, "not offered") == set()
    assert report.count("passed") == passed


@pytest.mark.parametrize("name", EXPECTED)
def test_every_golden_case_is_counted(name):
    """Every case in the files has an outcome."""
    folder = GOLDEN / name
    text = json.loads((folder / "golden_text.json").read_text())
    with np.load(folder / "golden_forward.npz") as stored:
        forwards = len({key.split("_")[0] for key in stored.files})
    generations = len(json.loads((folder / "golden_generate.json").read_text()))
    hidden = (folder / "golden_hidden.npz").is_file()
    cases = 1 + forwards + hidden + generations + len(text["tokenize"]) + len(text["chat"])
    passed, differing = EXPECTED[name]
    assert cases == passed + len(differing)


def with_params(tmp_path, name, **params):
    """The outcome of a folder's first golden generation with other parameters."""
    (case, *_) = json.loads((GOLDEN / name / "golden_generate.json").read_text())
    case["params"] |= params
    ignored = shutil.ignore_patterns("golden_*")
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / str(params), ignore=ignored))
    (folder / "golden_generate.json").write_text(json.dumps([case]))
    return checked(folder).outcomes[-1]


def test_sdars_confidence_is_1_where_only_one_token_may_be_drawn(tmp_path):
    # All candidates then have equal scores, and the lowest position is the next in sequence.
    greedy = with_params(tmp_path, "sdar-tiny", remasking_strategy="low_confidence_static")
    assert greedy.status == "passed"
    drawn = with_params(tmp_path, "sdar-tiny", remasking_strategy="sequential", top_k=20)
    assert drawn.status == "known difference"


def test_with_one_step_per_block_fast_dllm_leaves_masks_on_dream(tmp_path):
    one = {"block_length": 4, "dual_cache": True, "steps": 4}
    outcome = with_params(tmp_path, "dream-tiny", **one)
    assert outcome.status == "known difference"
    assert "with one step per block upstream leaves" in outcome.reason


def test_steps_that_do_not_divide_a_block_are_not_offered(tmp_path):
    for name, steps in (("sdar-tiny", {"denoising_steps": 3}), ("llada2-tiny", {"steps": 3})):
        outcome = with_params(tmp_path, name, **steps)
        assert outcome.status == "not offered"
        assert "an uneven share of a block" in outcome.reason
    outcome = with_params(tmp_path, "sdar-tiny", remasking_strategy="entropy_bounded")
    assert outcome.status == "not offered"


def test_llada2s_minimal_topk_limits_the_steps(tmp_path):
    # 24 // 12 = 2 steps of 4 positions each would need other tokens than the golden run's.
    assert with_params(tmp_path, "llada2-tiny", minimal_topk=12).status == "failed"
    assert with_params(tmp_path, "llada2-tiny", minimal_topk=3).status == "passed"


@pytest.mark.long
def test_one_folder_may_be_run_alone():
    report = run(GOLDEN / "llada-moe-tiny")
    assert {outcome.family for outcome in report.outcomes} == {"llada-moe-tiny"}
    assert list(report.lines())[-1] == "14 passed, 0 failed"


def with_array(key, by):
    """Change the middle of an array."""

    def apply(file):
        with np.load(file) as stored:
            arrays = {name: stored[name].copy() for name in stored.files}
        arrays[key].flat[arrays[key].size // 2] += by
        np.savez(file, **arrays)

    return apply


def test_a_changed_logit_fails(spoiled):
    failed = spoiled("llada-tiny", "golden_forward.npz", with_array("c1_logits", 1e-3))
    assert set(failed) == {"llada-tiny/forward/c1"}
    assert "logits differ by 1.0e-03" in failed["llada-tiny/forward/c1"]


def test_a_rounding_error_does_not_fail(spoiled):
    assert spoiled("llada-tiny", "golden_forward.npz", with_array("c1_logits", 1e-5)) == {}


def test_a_changed_hidden_state_fails(spoiled):
    failed = spoiled("llada2-tiny", "golden_hidden.npz", with_array("h1", 1e-2))
    assert set(failed) == {"llada2-tiny/hidden"}
    assert failed["llada2-tiny/hidden"].startswith("h1 differ by")


def test_a_logit_that_is_not_a_number_fails(spoiled):
    failed = spoiled("llada-tiny", "golden_forward.npz", with_array("c0_logits", float("nan")))
    assert "llada-tiny/forward/c0" in failed


def _change_last_output(cases):
    del cases[2:]
    key = "generated_ids" if "generated_ids" in cases[0] else "output_ids"
    cases[0][key][0][-1] ^= 1


@pytest.mark.parametrize("name", ["llada-tiny", "dream-tiny", "llada2-tiny", "sdar-tiny"])
def test_a_changed_output_id_fails(spoiled, name):
    failed = spoiled(name, "golden_generate.json", edited(_change_last_output))
    first = json.loads((GOLDEN / name / "golden_generate.json").read_text())[0]["case"]
    assert set(failed) == {f"{name}/generate/{first}"}
    assert "answer position" in failed[f"{name}/generate/{first}"]


def test_another_number_of_forwards_fails(spoiled):
    def repeat_first_forward(cases):
        del cases[2:]
        cases[0]["forward_inputs"].insert(0, cases[0]["forward_inputs"][0])

    (reason,) = spoiled("llada-tiny", "golden_generate.json", edited(repeat_first_forward)).values()
    assert "forwards, got" in reason


@pytest.mark.parametrize("key", ["ids", "decoded", "decoded_skip_special"])
def test_a_changed_tokenization_fails(spoiled, key):
    def change(text):
        case = text["tokenize"][0]
        case[key] = [*case[key], 5] if key == "ids" else f"{case[key]}!"

    failed = spoiled("dream-tiny", "golden_text.json", edited(change))
    assert set(failed) == {"dream-tiny/tokenize/0"}
    assert "expected" in failed["dream-tiny/tokenize/0"]


@pytest.mark.parametrize("key", ["rendered", "ids"])
def test_a_changed_chat_fails(spoiled, key):
    def change(text):
        case = text["chat"][0]
        case[key] = [5, *case[key]] if key == "ids" else f"{case[key]} "

    failed = spoiled("llada-moe-tiny", "golden_text.json", edited(change))
    assert set(failed) == {"llada-moe-tiny/chat/0"}
    assert failed["llada-moe-tiny/chat/0"].startswith(key)


def test_a_changed_answer_of_a_chat_fails(spoiled):
    def change(text):
        text["chat"][0]["output_ids"][0] ^= 1

    failed = spoiled("llada-tiny", "golden_text.json", edited(change))
    assert set(failed) == {"llada-tiny/chat/0"}


@pytest.mark.parametrize(("key", "words"), [("mask_id", "mask id"), ("eos_id", "EOS id")])
def test_another_special_token_fails(spoiled, key, words):
    failed = spoiled("llada2-tiny", "golden_meta.json", edited(lambda meta: meta.update({key: 3})))
    assert set(failed) == {"llada2-tiny/load"}
    assert failed["llada2-tiny/load"].startswith(words)


def test_a_changed_weight_fails(spoiled):
    def change(file):
        tensors = load_file(file)
        tensors["model.transformer.ln_f.weight"][0] += 0.01
        save_file(tensors, file)

    failed = spoiled("llada-tiny", "model.safetensors", change)
    assert "llada-tiny/forward/c0" in failed


def test_a_folder_that_cannot_be_loaded_fails_with_the_reason(spoiled):
    failed = spoiled("llada-tiny", "config.json", lambda file: file.write_text("{"))
    assert set(failed) == {"llada-tiny/load"}
    assert "config.json is not JSON" in failed["llada-tiny/load"]


def test_a_chat_of_a_sampler_that_is_not_known_is_named_and_the_others_run(tmp_path):
    ignored = shutil.ignore_patterns("golden_forward*", "golden_hidden*", "golden_generate*")
    folder = Path(shutil.copytree(GOLDEN / "llada-tiny", tmp_path / "llada-tiny", ignore=ignored))
    file = folder / "golden_text.json"
    edited(lambda text: text["chat"][0].update(sampler="newest"))(file)
    edited(lambda text: text["tokenize"][0].pop("text"))(file)
    report = checked(folder)
    assert with_status(report, "not offered") == {"llada-tiny/chat/0"}
    assert with_status(report, "failed") == {"llada-tiny/tokenize/0"}
    assert report.count("passed") > 2


def plan_for(source, **case):
    """The plan of a case of the small models, without their weights."""
    case = {"case": "new", "source": source, "eos_id": 1, "pad_id": 2, "mask_id": 3, **case}
    return plan_of_generation(None, {"prompt_ids": [[5]], "generated_ids": [[6] * 8], **case})


BD3LM, CARD = "dllm/core/samplers/bd3lm.py::BD3LMSampler.sample", "hub card of dllm-hub/x"
SIZES = {"max_new_tokens": 8, "block_size": 4, "steps": 8}


def test_no_steps_per_block_is_the_same_as_none_given():
    assert plan_for(BD3LM, params=SIZES | {"steps_per_block": None}) == plan_for(
        BD3LM, params=SIZES
    )


def test_padding_matters_before_the_last_block_of_an_answer_only():
    plan_for(BD3LM, params=SIZES, generated_ids=[[6] * 7 + [2]])
    with pytest.raises(KnownDifference, match="as padding"):
        plan_for(BD3LM, params=SIZES, generated_ids=[[6] * 3 + [2] + [6] * 4])


def test_masks_that_the_cards_sampler_leaves_are_a_known_difference():
    with pytest.raises(KnownDifference, match="leaves masks"):
        plan_for(CARD, params=SIZES, prompt_ids=[[5] * 4], generated_ids=[[6, 1, 3, 3]])


def test_forwards_of_llada_with_nothing_to_write_do_not_count(spoiled):
    """With more steps than masks, upstream runs idle forwards at the end of a block."""

    def idle(cases):
        cases[:] = [case for case in cases if case["case"] == "llada_semi_ar"]
        cases[0]["params"]["steps"] = 40  # 10 for the 8 masks of a block
        inputs = cases[0]["forward_inputs"]
        inputs[8:8] = [inputs[8]] * 2

    assert not spoiled("llada-tiny", "golden_generate.json", edited(idle))


def test_fast_dllm_fills_what_is_behind_eos_until_all_before_it_is_filled():
    loaded = SimpleNamespace(family=SimpleNamespace(name="fast-dllm-v2"))
    params = {"max_new_tokens": 64, "block_size": 32, "small_block_size": 8, "threshold": 0.3}
    case = {"case": "new", "source": "x", "prompt_ids": [[5]], "params": params, "stop_token": 7}
    plan = plan_of_generation(loaded, case)
    assert (plan.eos, plan.early, plan.stop_id) == ("block", True, 7)
