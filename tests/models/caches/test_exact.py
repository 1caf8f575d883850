"""In half precision a row of a batch has the same bits as alone, with every cache."""

from __future__ import annotations

import pytest
import torch

from tests.models.makers import make
from unmask import Cached, decode, decode_many, load
from unmask.models.denoiser import read_at

SIZES = (3, 17, 9, 40, 26)  # tokens of the prompts
RULES = ("confidence | top(1)", "confidence | swd(5) | eb(0.1)", "klass")
CASES = [
    *((family, cache) for family in ("llada", "dream") for cache in ("prefix", "dual", "delayed")),
    *(("llada-moe", "delayed"), ("sdar", "block"), ("llada2", "block")),
]


class Recorded:
    """A cached model that keeps the states which each prompt's forwards computed."""

    def __init__(self, model, cache):
        self.cached = Cached(model, cache)
        self.spec, self.device = self.cached.spec, self.cached.device
        self.shift, self.states = model.arch.shift, {}

    def trunk(self, canvas):
        hidden = self.cached.trunk(canvas)
        for row, fresh in enumerate(hidden.fresh):
            prompt = tuple(canvas.tokens[row, : min(SIZES)].tolist())
            places = read_at(fresh[: canvas.lengths[row]].nonzero()[:, 0], self.shift)
            self.states.setdefault(prompt, []).append(hidden.states[row, places])
        return hidden

    def head(self, hidden, rows, positions):
        return self.cached.head(hidden, rows, positions)


@pytest.fixture(scope="module")
def half_model(tmp_path_factory):
    """A model of a family in bfloat16 or float16; equal requests share one."""
    made = {}

    def get(family, dtype="bfloat16"):
        if (family, dtype) not in made:
            folder = make(tmp_path_factory.mktemp("model"), family, seed=1)
            model = load(folder, dtype=dtype).model
            made[family, dtype] = model.with_block(4) if model.spec.block else model
        return made[family, dtype]

    return get


def prompts_of(seed, sizes=SIZES):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(5, 200, (size,), generator=generator).tolist() for size in sizes]


def check_batch(model, cache, rule, prompts):
    """Fail unless each prompt has in a batch the bits and forwards of its own run."""
    knobs = {"length": 8, "block": None if model.spec.block else 4}
    batch = Recorded(model, cache)
    together = decode_many(batch, prompts, rule, batch_size=len(prompts), **knobs)
    single = Recorded(model, cache)
    for prompt, row in zip(prompts, together, strict=True):
        alone = decode(single, prompt, rule, **knobs)
        assert torch.equal(row.canvas, alone.canvas)
        assert row.nfe == alone.nfe
    assert batch.states.keys() == single.states.keys()
    for prompt, forwards in single.states.items():
        assert len(forwards) == len(batch.states[prompt])
        assert all(map(torch.equal, forwards, batch.states[prompt]))


@pytest.mark.parametrize(("family", "cache"), CASES)
def test_a_batch_equals_single_runs_in_bfloat16(half_model, family, cache):
    for seed, rule in enumerate(RULES):
        check_batch(half_model(family), cache, rule, prompts_of(seed))


@pytest.mark.parametrize("family", ["llada", "llada-moe"])
def test_a_batch_equals_single_runs_in_float16(half_model, family):
    check_batch(half_model(family, "float16"), "delayed", RULES[1], prompts_of(3))


@pytest.mark.parametrize("cache", ["dual", "delayed"])
def test_prompts_of_one_length_share_forwards_without_a_change_of_bits(half_model, cache):
    model, prompts, calls = half_model("llada"), prompts_of(4, sizes=(9,) * 5), []
    check_batch(model, cache, RULES[1], prompts)
    hook = model.module.register_forward_pre_hook(lambda _, given: calls.append(len(given[0])))
    decode_many(Cached(model, "dual"), prompts, RULES[0], batch_size=5, length=8, block=4)
    hook.remove()
    assert calls == [5] * 8


def test_an_exact_model_in_float32_has_the_bits_of_single_runs_for_prompts_of_one_length():
    model = load(dtype="float32", exact=True).model
    check_batch(model, "dual", RULES[1], prompts_of(4, sizes=(9,) * 5))


def test_a_padded_model_computes_all_rows_in_one_forward(tmp_path):
    model, calls = load(make(tmp_path, "llada")).model, []
    model.module.register_forward_pre_hook(lambda _, given: calls.append(len(given[0])))
    decode_many(Cached(model, "dual"), prompts_of(5), RULES[0], batch_size=5, length=8, block=4)
    assert calls == [5] * 8
