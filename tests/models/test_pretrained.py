"""A loaded model as a denoiser: padding, and batches in half precision."""

from dataclasses import replace

import pytest
import torch

import unmask
from tests.paths import ROOT
from unmask.models.denoiser import Canvas, Hidden

GOLDEN = ROOT / "tests" / "golden" / "models"
PROMPTS = [[5, 6, 7], [20] * 12, [30, 31]]


@pytest.mark.long
@pytest.mark.parametrize("name", ["llada-tiny", "dream-tiny", "llada-moe-tiny", "sdar-tiny"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_batch_of_unequal_prompts_is_as_single_runs_in_every_dtype(name, dtype):
    model = unmask.load(GOLDEN / name, dtype=dtype).model
    for rule in ("confidence | swd(5) | eb(0.5)", "entropy | eb(2)"):
        many = unmask.decode_many(model, PROMPTS, rule, length=8, batch_size=2)
        for prompt, result in zip(PROMPTS, many, strict=True):
            alone = unmask.decode(model, prompt, rule, length=8)
            assert result.canvas.tolist() == alone.canvas.tolist()
            assert result.nfe == alone.nfe


@pytest.mark.parametrize(("dtype", "exact"), [("float32", False), ("bfloat16", True)])
def test_only_half_precision_on_the_cpu_is_never_padded_by_itself(dtype, exact):
    assert unmask.load(GOLDEN / "llada-tiny", dtype=dtype).model.exact is exact


def test_exactness_can_be_asked_for_and_declined():
    assert unmask.load(GOLDEN / "llada-tiny", exact=True).model.exact
    assert not unmask.load(GOLDEN / "llada-tiny", dtype="bfloat16", exact=False).model.exact


def test_padded_and_exact_forwards_say_the_same_in_float32():
    padded, exact = (unmask.load(GOLDEN / "llada-tiny", exact=e).model for e in (False, True))
    torch.manual_seed(0)
    for a, b in zip(
        unmask.decode_many(padded, PROMPTS, "confidence | top(2)", length=8),
        unmask.decode_many(exact, PROMPTS, "confidence | top(2)", length=8),
        strict=True,
    ):
        assert a.canvas.tolist() == b.canvas.tolist()


@pytest.mark.parametrize("name", ["llada-tiny", "sdar-tiny"])
def test_a_large_batch_of_a_small_model_is_taken_in_parts_of_like_length(name, monkeypatch):
    model = unmask.load(GOLDEN / name, dtype="float32").model
    prompts = [[5 + i] * (1 + 3 * i) for i in range(6)]
    rule = "confidence | swd(5) | top(2)"
    whole = unmask.decode_many(model, prompts, rule, length=8, batch_size=6)
    shapes = []
    forward = model.module.forward

    def watched(tokens, *more, **named):
        shapes.append(tuple(tokens.shape))
        return forward(tokens, *more, **named)

    monkeypatch.setattr("unmask.models.pretrained.CACHED_PLACES", 40)
    monkeypatch.setattr(model.module, "forward", watched)
    parts = unmask.decode_many(model, prompts, rule, length=8, batch_size=6)
    assert max(rows * width for rows, width in shapes if rows > 1) <= 40
    assert len(shapes) > 2 * whole[0].nfe
    for one, other in zip(parts, whole, strict=True):
        assert one.canvas.tolist() == other.canvas.tolist()
        assert one.nfe == other.nfe


def test_a_model_that_fits_no_cache_is_never_taken_in_parts(monkeypatch):
    monkeypatch.setattr("unmask.models.pretrained.CACHED_BYTES", 1000)
    assert not unmask.load(GOLDEN / "llada-tiny").model._in_cache


@pytest.mark.parametrize("name", ["llada-tiny", "dream-tiny", "sdar-tiny", "llada2-tiny"])
@pytest.mark.parametrize("exact", [False, True])
def test_the_last_layer_computes_only_what_the_loop_reads(name, exact):
    model = unmask.load(ROOT / "tests/golden/models" / name, dtype="float32", exact=exact).model
    lengths, start = torch.tensor([48, 40]), torch.tensor([24, 20])
    tokens = torch.arange(96).view(2, 48) % 40 + 5
    there = torch.arange(48) < lengths[:, None]
    masked = there & (torch.arange(48) >= start[:, None])
    stop = start + 8
    canvas = Canvas(tokens, lengths, masked, ~masked, start, stop, (0, 1))
    rows, places = torch.tensor([0, 0, 1, 1]), torch.tensor([24, 31, 20, 27])
    read = masked & (torch.arange(48) < stop[:, None])
    whole, cut = model.trunk(canvas), model.trunk(replace(canvas, read=read))
    torch.testing.assert_close(
        model.head(cut, rows, places), model.head(whole, rows, places), rtol=0, atol=0
    )
    assert cut.states[:, :10].isnan().all()  # nobody can read it unnoticed
    seen = 48 if model.spec.block is None else 32
    left_out = int(cut.states[0].isnan().any(-1).sum())
    assert left_out == seen - 16  # 12 are asked, and a product takes 16 at once
    assert not whole.states.isnan().any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_cell_has_the_same_logits_alone_and_among_others(dtype):
    model = unmask.load(dtype=dtype).model
    hidden = Hidden(torch.randn(1, 20, model.arch.hidden).to(model.dtype))
    rows, places = torch.zeros(20, dtype=torch.long), torch.arange(20)
    with torch.inference_mode():
        whole = model.head(hidden, rows, places)
        for count in (1, 2, 3, 4, 8, 12, 13):
            few = slice(7, 7 + count)
            assert torch.equal(model.head(hidden, rows[few], places[few]), whole[few]), count
