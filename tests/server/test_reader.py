"""What is final of a text, and that it only ever grows at its end."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders

import unmask
from tests.checkpoints import make_llada
from tests.paths import ROOT
from unmask import Rule, Settings, infill_request, prompt_request
from unmask.decoding.loop import decode_steps
from unmask.models.describe import describe
from unmask.server.reader import Frame, Reader, first_stop_in, grows_at_its_end
from unmask.server.snapshots import Snapshots

GOLDEN = ROOT / "tests" / "golden" / "models"
FOLDERS = sorted(file.parent for file in GOLDEN.glob("*/config.json"))


@pytest.fixture(scope="module")
def byte_model(tmp_path_factory):
    folder = make_llada(tmp_path_factory.mktemp("bytes") / "tiny")
    return unmask.load(folder).model, describe(folder)


def reader_of(shape, length=12, stops=(), rule="confidence | top(1)"):
    request = prompt_request(shape.spec, [5], length, Settings(Rule.parse(rule)))
    return Reader(shape.tokenizer, shape.spec, request, stops)


def frames_of(model, request):
    return [Frame.of(step, 0) for step in decode_steps(model, [request])]


@pytest.mark.parametrize("folder", [*FOLDERS, unmask.embedded.FOLDER], ids=lambda f: f.name)
@given(st.data())
def test_the_text_of_more_tokens_begins_with_what_was_final_of_fewer(folder, data):
    shape = describe(folder)
    known = shape.tokenizer.size
    ids = data.draw(st.lists(st.integers(0, known - 1), min_size=12, max_size=12))
    reader = reader_of(shape)
    whole = shape.tokenizer.decode(ids, skip_special=True)
    seen = [reader.read(ids[:count], ended=False).text for count in range(len(ids) + 1)]
    for shorter, longer in zip(seen, [*seen[1:], whole], strict=True):
        assert longer.startswith(shorter)
    assert len(whole) - len(seen[-1]) == len(whole) - len(whole.rstrip("\ufffd"))


def test_a_half_character_waits_for_its_other_half(byte_model):
    _, shape = byte_model
    ids = shape.tokenizer.encode("Grüße, 你好")
    reader = reader_of(shape, length=len(ids))
    texts = [reader.read(ids[:count], ended=False).text for count in range(len(ids) + 1)]
    assert texts[-1] == "Grüße, 你好"
    assert "\ufffd" not in "".join(texts)
    assert reader.read(ids[:-1], ended=True).text == "Grüße, 你\ufffd"


def test_a_position_is_final_when_all_before_it_are_committed(byte_model):
    _, shape = byte_model
    reader, mask = reader_of(shape, length=4), shape.spec.mask_id
    a, b, c = shape.tokenizer.encode("abc")
    assert reader.final(Frame([5, mask, b, c, a], 1, 1)).text == ""
    assert reader.final(Frame([5, a, mask, c, mask], 1, 2)).text == "a"
    reading = reader.final(Frame([5, a, b, mask, c], 1, 3))
    assert (reading.text, reading.tokens, reading.ended) == ("ab", 2, False)
    reading = reader.final(Frame([5, a, b, shape.spec.eos_id, mask], 1, 4))
    assert (reading.text, reading.ended) == ("ab", True)


def test_a_rule_that_takes_back_makes_a_block_final_when_it_is_closed(byte_model):
    _, shape = byte_model
    reader = reader_of(shape, length=4, rule="confidence | eb(1) | revoke(1)")
    ids = [5, *shape.tokenizer.encode("abcd")]
    assert reader.final(Frame(ids, 1, 3)).text == ""
    assert reader.final(Frame(ids, 3, 4)).text == "ab"


@pytest.mark.parametrize(
    "rule",
    [
        "confidence | top(1)",
        "random | top(3)",
        "confidence | eb(3) | revoke(0.001, times=3)",
        "random | top(4) | revoke(0.0001, times=2)",
    ],
)
@pytest.mark.parametrize("eos", ["keep", "stop", "block", "fill", "last"])
@pytest.mark.parametrize("block", [None, 5])
def test_no_rule_and_no_end_token_policy_takes_back_what_was_read(byte_model, rule, eos, block):
    model, shape = byte_model
    retracted = 0
    for seed in range(3):
        settings = Settings(Rule.parse(rule), block, eos)
        ends = (65, 97, 120)  # letters, so that an end turns up in random texts
        spec = replace(shape.spec, eos_id=65, stop_ids=ends)
        inner = replace(model, spec=spec)
        request = prompt_request(spec, [72, 105, seed], 20, settings, seed)
        reader = Reader(shape.tokenizer, spec, request)
        frames = frames_of(inner, request)
        (result,) = (r for step in decode_steps(inner, [request]) for r in step.finished)
        final = shape.tokenizer.decode(result.ids, skip_special=True)
        for frame in frames:
            assert final.startswith(reader.final(frame).text)
        masks = [frame.ids.count(spec.mask_id) for frame in frames]
        retracted += any(b > a for a, b in pairwise(masks))
    if "times" in rule and eos == "keep":
        assert retracted  # or this test shows nothing


def test_the_rest_of_a_canvas_is_read_with_its_masks_filled(byte_model):
    model, shape = byte_model
    mask = shape.spec.mask_id
    canvas = [*shape.tokenizer.encode("A "), mask, mask, *shape.tokenizer.encode(" and "), mask]
    request = infill_request(shape.spec, canvas, Settings(Rule.parse("confidence | top(1)")))
    reader = Reader(shape.tokenizer, shape.spec, request)
    texts = [reader.final(frame).text for frame in frames_of(model, request)]
    assert texts[0].startswith("A ")
    assert all(b.startswith(a) for a, b in pairwise(texts))
    assert " and " in texts[-1]


def test_the_stop_string_that_is_complete_first_counts():
    assert first_stop_in("a long text", ["text", "long"]) == (2, 6)
    assert first_stop_in("abcde", ["abcd", "bc"]) == (1, 3)
    assert first_stop_in("abc", ["x"]) is None
    assert first_stop_in("abc", []) is None


def test_what_may_begin_a_stop_string_waits(byte_model):
    _, shape = byte_model
    reader, ids = reader_of(shape, stops=["###", "#!"]), shape.tokenizer.encode("ab##c#!d")
    texts = [reader.read(ids[:count], ended=False) for count in range(len(ids) + 1)]
    assert [r.text for r in texts] == ["", "a", "ab", "ab", "ab", "ab##c", "ab##c"] + ["ab##c"] * 2
    assert [r.stopped for r in texts] == [False] * 7 + [True] * 2
    assert texts[-1].tokens == 7
    assert reader.read(ids[:4], ended=True).text == "ab##"


@pytest.mark.parametrize(
    ("decoder", "grows"),
    [
        (decoders.ByteLevel(), True),
        (decoders.Sequence([decoders.Metaspace(), decoders.Fuse()]), True),
        (decoders.WordPiece(), False),
        (decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()]), False),
    ],
)
def test_a_decoder_that_may_change_its_mind_gives_nothing_before_the_end(
    byte_model, decoder, grows
):
    _, shape = byte_model
    shape.tokenizer.engine.decoder, before = decoder, shape.tokenizer.engine.decoder
    try:
        assert grows_at_its_end(shape.tokenizer) is grows
        reader = reader_of(shape, length=2)
        ids = [5, *shape.tokenizer.encode("a"), shape.spec.mask_id]
        assert bool(reader.final(Frame(ids, 1, 1)).text) is grows
    finally:
        shape.tokenizer.engine.decoder = before


def test_a_snapshot_shows_every_position(byte_model):
    _, shape = byte_model
    mask, end = shape.spec.mask_id, shape.spec.eos_id
    request = prompt_request(shape.spec, [5], 6, Settings(Rule.parse("confidence | top(1)")))
    shots = Snapshots(Reader(shape.tokenizer, shape.spec, request), request.canvas.tolist())
    first, second = shape.tokenizer.encode("ü")
    (a,) = shape.tokenizer.encode("a")
    frame = Frame([5, a, first, second, mask, end, mask], 1, 3)
    assert shots.text(frame) == "aü·"
    assert shots.progress(frame) == round(4 / 6, 4)
    cells = shots.cells(frame)
    assert [cell["text"] for cell in cells] == ["a", "ü", "", "", "", ""]
    states = ["new", "new", "new", "masked", "end", "masked"]
    assert [cell["state"] for cell in cells] == states
    later = shots.cells(Frame([5, a, first, mask, a, end, mask], 1, 4))
    assert [cell["state"] for cell in later][:4] == ["committed", "committed", "masked", "new"]
    assert later[1]["text"] == "\ufffd"
    assert torch.equal(request.canvas, torch.tensor([5] + [mask] * 6))
