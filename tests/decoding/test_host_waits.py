"""A step waits for its device once: everything else about it is known on the host.

There is no GPU here, so the model lies on torch's meta device: tensors with shapes and no numbers.
Whatever asks them for a number fails, as would a hidden wait. Only `Tensor.cpu` is answered, with
numbers made up by the test, and counted.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tests.helpers import part_texts
from unmask import Cached, Rule, Sampling, Settings, decode_steps, prompt_request
from unmask.models.architecture import Architecture
from unmask.models.denoiser import ModelSpec
from unmask.models.pretrained import Pretrained
from unmask.models.transformer import Transformer
from unmask.models.wrappers.guided import Guided
from unmask.trace import record

ARCH = Architecture(
    vocab_size=64, hidden=32, layers=2, heads=2, kv_heads=1, head_dim=16, mlp=64,
    norm_eps=1e-5, rope_theta=10000.0, rotary_dim=16,
)  # fmt: skip
SPEC = ModelSpec(63, 64, 62, name="far away")


class FarAway(TorchFunctionMode):
    """Answers for a device that has no numbers, and counts how often it is asked."""

    waits = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.cpu and args[0].is_meta:
            self.waits += 1
            return torch.rand(args[0].shape).to(args[0].dtype)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def device():
    with FarAway() as far:
        yield far


def model(**changes: Any) -> Pretrained:
    arch = Architecture(**{**vars(ARCH), **changes})
    with torch.device("meta"):
        module = Transformer(arch).requires_grad_(False)
    shadows = arch.block is None and not arch.shift
    spec = ModelSpec(63, 64, 62, name="far away", block=arch.block, shadows=shadows, newline_id=9)
    return Pretrained(module, spec)


def waits_per_step(device, model, rule, rows=3, **settings):
    """Of each step of rows of unequal length, two at once."""
    options = Settings(Rule.parse(rule), **settings)
    requests = [
        prompt_request(model.spec, [1] * (row + 2), rows + 2, options) for row in range(rows)
    ]
    counts = []
    for _ in decode_steps(model, requests, batch_size=2):
        counts.append(device.waits)
        device.waits = 0
    return counts


@pytest.mark.long
def test_a_step_waits_once_and_once_more_for_each_declared_extra_under_any_rule(device):
    far = model(layers=1)
    for number, rule in enumerate(part_texts()):
        waits = waits_per_step(device, far, rule, rows=2, block=(None, 3)[number % 2])
        parsed = Rule.parse(rule)
        needs, finishes = parsed.needs, "prophet" in rule
        extras = (parsed.logits, needs.top, needs.gaps, needs.support, needs.shadow, finishes)
        least = 1 + sum(map(bool, extras[:3]))  # the others have cells in some steps only
        assert least <= min(waits), rule
        assert max(waits) <= 1 + sum(map(bool, extras)), rule


@pytest.mark.parametrize("eos", ["keep", "suppress", "last", "stop", "block", "fill"])
def test_a_step_waits_once_whatever_the_end_token_means(device, eos):
    waits = waits_per_step(device, model(), "confidence | swd(5) | eb(0.1)", eos=eos)
    assert set(waits) == {1}


@pytest.mark.parametrize("sampling", [Sampling(0.7), Sampling(0.7, top_p=0.9, tempered=True)])
def test_a_step_waits_once_where_tokens_are_drawn(device, sampling):
    waits = waits_per_step(device, model(), "confidence | swd(5) | top(1)", sampling=sampling)
    assert set(waits) == {1}


@pytest.mark.parametrize("cache", ["prefix", "dual", "delayed"])
def test_a_step_waits_once_with_a_cache(device, cache):
    cached = Cached(model(), cache)
    assert set(waits_per_step(device, cached, "confidence | swd(5) | eb(0.1)", block=4)) == {1}


def test_a_step_waits_once_with_a_block_causal_model_and_its_cache(device):
    plain = model(block=4)
    for wrapped in (plain, Cached(plain, "block")):
        assert set(waits_per_step(device, wrapped, "confidence | swd(5) | eb(0.1)")) == {1}


def test_a_step_waits_once_with_guidance_and_with_a_shifted_model(device):
    guided = Guided(Cached(model(shift=True), "prefix"), 0.5)
    assert set(waits_per_step(device, guided, "confidence | swd(5) | eb(0.1)", block=4)) == {1}


def test_a_trace_waits_a_few_times_for_many_steps(device, monkeypatch):
    monkeypatch.setattr("unmask.trace.recording.tracer.SECONDS", 600)  # however slow the machine
    far = model()
    request = prompt_request(far.spec, [1, 2], 12, Settings(Rule.parse("confidence | top(1)")))
    result = record(far, request, BytesIO())
    assert result.nfe == 12
    assert device.waits == 12 + 3  # the steps, and tokens, probabilities and movement of them all
