"""What is read of a golden generation: by its source and params, not by its name."""

from types import SimpleNamespace

import pytest

from unmask.conformance.generation_plans import plan_of_generation
from unmask.conformance.plan import KnownDifference, NotOffered

LLADA = {"steps": 8, "gen_length": 16, "block_length": 8, "temperature": 0.0}
BLOCKS = {"steps": 8, "max_new_tokens": 8, "block_size": 4, "temperature": 0.0}


def plan(params, source="ML-GSAI/LLaDA:generate.py::generate", family="llada", **case):
    loaded = SimpleNamespace(family=SimpleNamespace(name=family))
    return plan_of_generation(loaded, {"case": "x", "source": source, "params": params, **case})


def test_the_cache_of_a_case_is_that_of_the_function_that_made_it():
    source = "NVlabs/Fast-dLLM:llada/generate.py::generate_with_{}_cache"
    assert [plan(LLADA, source.format(kind)).cache for kind in ("prefix", "dual")] == [
        "prefix",
        "dual",
    ]


def test_a_parameter_that_is_not_known_is_named():
    assert plan({**LLADA, "remasking": "low_confidence"}).unread == ()
    assert plan({**LLADA, "factor": 2, "top_p": None}).unread == ("factor",)
    with pytest.raises(NotOffered, match="remasking 'random' is not one of low_confidence"):
        plan({**LLADA, "remasking": "random"})
    with pytest.raises(NotOffered, match="no 'steps'"):
        plan({name: value for name, value in LLADA.items() if name != "steps"})


def test_padding_inside_a_text_is_a_known_difference_of_dllms_blocks():
    source, ids = "dllm/core/samplers/bd3lm.py::BD3LMSampler", {"eos_id": 7, "pad_id": 5}
    ids["prompt_ids"] = [[1, 2]]
    for answer in ([1, 2, 3, 4, 7, 5], [1, 2, 3, 4]):  # none, or after the end
        assert plan(BLOCKS, source, generated_ids=[answer], **ids).cache == "block"
    with pytest.raises(KnownDifference, match="as padding"):
        plan(BLOCKS, source, generated_ids=[[1, 5, 2, 3, 4, 7]], **ids)
    with pytest.raises(KnownDifference, match="as padding"):
        plan(BLOCKS, source, generated_ids=[[1, 2]], **{**ids, "prompt_ids": [[1, 5, 2]]})
    padded = {"prompt_ids": [[5, 5, 1, 2]], "attention_mask": [[0, 0, 1, 1]]}
    assert plan(BLOCKS, source, generated_ids=[[1, 2]], **{**ids, **padded}).cache == "block"
