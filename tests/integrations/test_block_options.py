"""A rule and its settings as a flat mapping, such as a YAML file."""

from __future__ import annotations

import pytest

from unmask import Rule
from unmask.decoding.options import DecodingOptions
from unmask.decoding.request import Settings
from unmask.decoding.sampling import Sampling
from unmask.errors import RequestError, UnmaskError
from unmask.integrations.block_options import BlockOptions
from unmask.models.denoiser import ModelSpec

SWD = "confidence | swd(5) | eb(0.1)"


def test_everything_that_can_be_said_is_said():
    options = BlockOptions.read(
        {
            "rule": SWD,
            "eos": "stop",
            "eos_id": 3,
            "stop_ids": [3, 4],
            "steps": 8,
            "temperature": 1,
            "top_p": 0.9,
            "top_k": 5,
            "tempered": True,
            "seed": 9,
            "allow_mask": True,
            "block_size": 16,
        },
        others=("block_size",),
    )
    sampling = Sampling(1, 0.9, 5, tempered=True)
    settings = Settings(Rule.parse(SWD), None, "stop", sampling, 8, allow_mask=True)
    assert options.settings == settings
    assert options.decoding.seed == 9
    assert options.spec(10, 20) == ModelSpec(10, 20, 3, (3, 4))


def test_a_recipe_is_a_rule():
    assert BlockOptions.read({"rule": "swd"}).settings.rule == Rule.parse(SWD)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "rule is missing; give for example"),
        ({"rule": ["confidence"]}, "rule must be a Rule or its notation"),
        ({"rule": "confidence"}, "the rule has no selection"),
        ({"rule": SWD, "seeds": 1}, "unknown option 'seeds'; did you mean 'seed'"),
        ({"rule": SWD, "seed": -1}, "seed must be a whole number >= 0, got"),
        ({"rule": SWD, "seed": True}, "seed must be a whole number >= 0, got"),
        ({"rule": SWD, "top_k": 2.5}, "top_k must be a whole number >= 0, got 2.5"),
        ({"rule": SWD, "tempered": "yes"}, "tempered must be true or false, got 'yes'"),
        ({"rule": SWD, "stop_ids": 3}, "stop_ids must be a list of whole numbers, got 3"),
        ({"rule": SWD, "steps": 0}, "steps must be a whole number >= 1, got 0"),
        ({"rule": SWD, "temperature": -1}, "temperature must be a number >= 0, got -1"),
        ({"rule": SWD, "eos": "fill"}, "needs the id of the end token; give eos_id"),
        ({"rule": SWD, "eos": "never", "eos_id": 1}, "eos must be one of keep, suppress"),
    ],
)
def test_a_mistake_is_one_line(given, said):
    with pytest.raises(UnmaskError) as caught:
        BlockOptions.read(given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "rule", ["slowfast", "joint-threshold", "saber", "confidence | p2(4) | p2_back(4)", "wino"]
)
def test_a_rule_that_needs_forwards_of_its_own_is_refused(rule):
    options = BlockOptions(DecodingOptions(rule))
    with pytest.raises(RequestError, match="needs forwards of its own"):
        _ = options.settings
