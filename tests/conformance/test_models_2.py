"""The golden checkpoints of small public models: logits, generations, tokenizers and chats."""

from __future__ import annotations

import json

import pytest

from tests.conformance.test_models import checked, thinned, with_status
from tests.paths import ROOT
from unmask.conformance.models import folders
from unmask.rules.registry import kinds

GOLDEN = ROOT / "tests" / "golden" / "models-2"
HAS_EVEN = "even" in [kind.name for kind in kinds("select")]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*in the folder's name"),
    pytest.mark.filterwarnings("ignore:.*full attention is taken"),  # a2d-qwen2-tiny
]
CARD = {"bd3lm_pad_in_answer", "card_block8", "card_eos_mid_block"}
ROUNDED = {  # cases whose counts are rounded half to even
    "mdlm_round_half_even", "mdlm_uneven", "mdlm_short_last_block", "mdlm_more_steps_than_tokens",
    "bd3lm_short_prompt", "bd3lm_round_half_even", "bd3lm_short_last_block",
}  # fmt: skip
EXPECTED = {  # how many cases there are, which are known to differ, and which are not offered
    "a2d-qwen2-tiny": (45, CARD, {"mdlm_infill"}),
    "a2d-qwen3-bd3lm-tiny": (36, CARD, set()),
    "a2d-qwen3-mdlm-tiny": (31, set(), {"mdlm_infill"}),
    "a2d-qwen3-mdlm-tiny-sharded": (31, set(), {"mdlm_infill"}),
    "a2d-qwen3-opdlm-tiny": (25, set(), set()),
    "diffugpt-tiny": (
        15,
        {
            "diffugpt_prefix_seeded",
            "diffugpt_prefix_near_greedy_seeded",
            "diffugpt_unconditional_seeded",
        },
        set(),
    ),
    "fast-dllm-v2-tiny": (
        26,
        set(),
        {"v2_block_cache", "v2_block_cache_long", "v2_stop_block_cache"},
    ),
    "modernbert-chat-tiny": (21, set(), set()),
    "open-dcoder-tiny": (28, set(), set()),
}

# The generations of a2d-qwen2-tiny and a2d-qwen3-mdlm-tiny with other weights.
TWICE = ("a2d-qwen3-bd3lm-tiny", "a2d-qwen3-mdlm-tiny-sharded")


def test_every_golden_folder_has_its_expectation():
    assert [folder.name for folder in folders(GOLDEN)] == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_golden_checkpoint_of_a_small_model_is_reproduced(name, tmp_path):
    count, differing, missing = EXPECTED[name]
    folder = GOLDEN / name
    if name in TWICE:
        count, folder = count - thinned(folder, tmp_path / name), tmp_path / name
    cases = {case["case"] for case in json.loads((folder / "golden_generate.json").read_text())}
    differing, missing = differing & cases, missing & cases
    if not HAS_EVEN:
        missing = missing | (ROUNDED & cases)
    report = checked(folder)
    assert [outcome for outcome in report.outcomes if outcome.status == "failed"] == []
    assert with_status(report, "known difference") == {f"{name}/generate/{c}" for c in differing}
    assert with_status(report, "not offered") == {f"{name}/generate/{c}" for c in missing}
    assert report.count("tie") == 0
    assert len(report.outcomes) == count


@pytest.mark.parametrize("name", ["a2d-qwen2-bd3lm", "a2d-qwen2-opdlm"])
def test_a_case_of_full_attention_is_run_so_whatever_the_folders_name_says(name, tmp_path):
    count = 45 - thinned(GOLDEN / "a2d-qwen2-tiny", tmp_path / name)
    report = checked(tmp_path / name)
    cases = {case.case.split("/")[-1] for case in report.outcomes if case.status == "passed"}
    assert [outcome for outcome in report.outcomes if outcome.status == "failed"] == []
    assert "mdlm_one_block" in cases
    assert len(report.outcomes) == count
