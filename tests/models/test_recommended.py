"""Every family has a rule, nobody's is the full window with EOS kept."""

import pytest

from unmask.models.families import FAMILIES
from unmask.models.recommended import GENERAL, recommendation
from unmask.rules.rule import Rule

BLOCKWISE = ("llada2", "sdar", "a2d-qwen3-bd3lm", "a2d-qwen2-bd3lm", "opdlm", "fast-dllm-v2")
NAMES = ["embedded", "unknown", *(family.name for family in FAMILIES)]


@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_family_decodes_in_blocks_or_does_not_keep_eos(name, base):
    advice = recommendation(name, base)
    assert Rule.parse(advice.rule)
    assert advice.block is not None or advice.eos != "keep" or name in BLOCKWISE
    assert (name in BLOCKWISE) <= (advice.block is None)  # the model's own block is the block
    assert advice.source in advice.words


def test_a_family_that_nobody_wrote_about_gets_the_papers_blocks():
    assert recommendation("unknown") == GENERAL
    assert (GENERAL.rule, GENERAL.block) == ("confidence | swd(1) | eb(0.1)", 32)


def test_every_family_has_its_own_recommendation():
    assert [family.name for family in FAMILIES if recommendation(family.name) == GENERAL] == []


def test_base_models_say_that_the_setting_was_measured_on_another():
    assert "Instruct" in recommendation("llada", base=True).source
