"""A wrong call fails before the first forward, with one line."""

from __future__ import annotations

import pytest
import torch

from tests.helpers import EOS, MASK, SPEC, VOCABULARY, outcome, random_lookup
from unmask import (
    ModelError,
    ModelSpec,
    RequestError,
    Rule,
    Settings,
    UnmaskError,
    decode,
    decode_many,
    infill,
    infill_request,
    prompt_request,
)


class Untouchable:
    """A model that must not be run."""

    def __init__(self, spec=SPEC):
        self.spec, self.device = spec, torch.device("cpu")

    def trunk(self, canvas):
        raise AssertionError("a forward was made")

    def head(self, hidden, rows, positions):
        raise AssertionError("the head was run")


RULE = "confidence | top(1)"
WRONG_DECODES = {
    "mask id in the prompt": (
        {"prompt": [1, MASK, 2]},
        f"the prompt already holds mask id {MASK} at position 1",
    ),
    "empty prompt": ({"prompt": []}, "the prompt is empty"),
    "length 0": ({"length": 0}, "length must be a whole number >= 1 or 'auto', got 0"),
    "negative length": ({"length": -3}, "length must be a whole number >= 1 or 'auto', got -3"),
    "length that is no whole number": ({"length": 2.5}, "length must be"),
    "block larger than the answer": ({"block": 9}, "block 9 is larger than the answer of 8"),
    "block 0": ({"block": 0}, "block must be a whole number >= 1 or 'full', got 0"),
    "block that is no whole number": ({"block": 2.5}, "block must be"),
    "id too large": (
        {"prompt": [1, 99]},
        f"unknown token id 99 at position 1.*0..{VOCABULARY - 1}",
    ),
    "negative id": ({"prompt": [-1]}, "unknown token id -1 at position 0"),
    "floats": ({"prompt": [1.0, 2.0]}, "flat list of whole numbers"),
    "two dimensions": ({"prompt": torch.ones(1, 3, dtype=torch.int64)}, r"shape \(1, 3\)"),
    "a single number": ({"prompt": torch.tensor(3)}, "flat list of whole numbers"),
    "words": ({"prompt": ["a", "b"]}, "flat list of whole numbers"),
    "a text": ({"prompt": "abc"}, r"got a text; give tokenizer\.encode\(text\), or use unmask\.Se"),
    "nothing": ({"prompt": None}, "flat list of whole numbers"),
    "ragged lists": ({"prompt": [[1], [1, 2]]}, "flat list of whole numbers"),
    "a number beyond 64 bits": ({"prompt": [2**70]}, "token id"),
    "steps 0": ({"steps": 0}, "steps must be a whole number >= 1, got 0"),
    "steps too few for the blocks": (
        {"steps": 3, "block": 2},
        "steps 3 is too few for 4 blocks",
    ),
    "an unknown EOS policy": (
        {"eos": "stopp"},
        "eos must be one of keep, .*, fill, got 'stopp'; did you mean 'stop'",
    ),
    "an unknown part": ({"rule": "confidense | top(1)"}, "did you mean 'confidence'"),
}


@pytest.mark.parametrize("case", WRONG_DECODES)
def test_a_wrong_call_fails_in_one_line_before_the_first_forward(case):
    changes, message = WRONG_DECODES[case]
    call = {"prompt": [1, 2], "rule": RULE, "length": 8, **changes}
    with pytest.raises(UnmaskError, match=message) as error:
        decode(Untouchable(), **call)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("case", WRONG_DECODES)
def test_a_wrong_call_among_many_fails_alike(case):
    changes, message = WRONG_DECODES[case]
    call = {"rule": RULE, "length": 8, **changes}
    prompts = [[1, 2], call.pop("prompt", [1])]
    with pytest.raises(UnmaskError, match=message):
        decode_many(Untouchable(), prompts, **call)


WRONG_INFILLS = {
    "no mask": ({"canvas": [1, 2, 3]}, f"the canvas holds no mask \\(id {MASK}\\)"),
    "an empty canvas": ({"canvas": []}, "holds no mask"),
    "block larger than the holes": (
        {"canvas": [1, MASK, 2, MASK, 3], "block": 4},
        "block 4 is larger than the answer of 3",
    ),
    "unknown id": ({"canvas": [MASK, 40]}, "unknown token id 40 at position 1"),
    "steps too few": (
        {"canvas": [MASK, 1, 1, 1, MASK], "block": 2, "steps": 1},
        "steps 1 is too few for 2 blocks",
    ),
}


@pytest.mark.parametrize("case", WRONG_INFILLS)
def test_a_wrong_infill_fails_in_one_line_before_the_first_forward(case):
    changes, message = WRONG_INFILLS[case]
    with pytest.raises(RequestError, match=message) as error:
        infill(Untouchable(), **{"rule": RULE, **changes})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("eos", ["suppress", "last", "stop", "block", "fill"])
def test_an_eos_policy_needs_an_eos_token(eos):
    spec = ModelSpec(MASK, VOCABULARY, name="endless")
    with pytest.raises(RequestError, match=f"eos='{eos}' needs an EOS token, and endless has none"):
        decode(Untouchable(spec), [1], RULE, length=4, eos=eos)


def test_a_batch_size_of_zero_is_refused_before_the_first_forward():
    with pytest.raises(
        RequestError, match="batch_size must be a whole number from 1 to 1048576, got 0"
    ):
        decode_many(Untouchable(), [[1]], RULE, length=4, batch_size=0)


SETTINGS = Settings(Rule.parse(RULE))


def test_a_prompt_is_followed_by_masks():
    request = prompt_request(SPEC, [1, 2], 3, SETTINGS, seed=5)
    assert request.canvas.tolist() == [1, 2, MASK, MASK, MASK]
    assert request.seed == 5


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_ids_may_be_a_tensor_of_any_whole_numbers(dtype):
    request = prompt_request(SPEC, torch.tensor([1, 2], dtype=dtype), 1, SETTINGS)
    assert request.canvas.tolist() == [1, 2, MASK]
    assert request.canvas.dtype == torch.int64


def test_a_request_keeps_its_own_copy_of_the_canvas():
    canvas = torch.tensor([1, MASK])
    request = infill_request(SPEC, canvas, SETTINGS)
    canvas[0] = 5
    assert request.canvas.tolist() == [1, MASK]


def test_an_eos_in_the_prompt_is_fine():
    assert prompt_request(SPEC, [EOS, 1], 1, SETTINGS).canvas.tolist() == [EOS, 1, MASK]


def test_as_many_steps_as_blocks_are_enough():
    prompt_request(SPEC, [1], 8, Settings(Rule.parse(RULE), block=2, steps=4))


def test_blocks_without_masks_take_no_step():
    canvas = [MASK, 1, 1, 1, 1, MASK]
    infill_request(SPEC, canvas, Settings(Rule.parse(RULE), block=2, steps=2))


def test_equal_settings_are_one_group():
    same = Settings(Rule.parse("confidence | swd(5) | eb(0.1)"))
    other = Settings(Rule.parse("confidence|swd(lam=5.0)|eb(1e-1)"))
    assert same == other
    assert hash(same) == hash(other)


def test_a_recipe_brings_its_block_where_it_fits():
    model = random_lookup(0, length=80)
    rule = "confidence | swd(1) | eb(0.1)"
    named = decode(model, [1], "swd-block32", length=64)
    assert outcome(named) == outcome(decode(model, [1], rule, length=64, block=32))
    short = decode(model, [1], "swd-block32", length=8)
    assert outcome(short) == outcome(decode(model, [1], rule, length=8))


def test_the_pair_that_load_gives_is_no_model():
    with pytest.raises(
        ModelError, match=r"is not a denoiser; write model, tokenizer = unmask.load"
    ):
        decode((random_lookup(0), None), [1], length=4)
