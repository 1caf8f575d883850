"""The settled part of an answer, as tokens and as text; the text only grows at its end."""

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
from unmask.decoding.loop import decode_steps
from unmask.decoding.request import Settings, infill_request, prompt_request
from unmask.models.denoiser import ModelSpec
from unmask.models.describe import describe
from unmask.rules.rule import Rule
from unmask.text.settled import RowCanvas, Span, TextReader, first_stop_in, grows_at_its_end

GOLDEN = ROOT / "tests" / "golden" / "models"
FOLDERS = sorted(file.parent for file in GOLDEN.glob("*/config.json"))
MASK, END = 9, 8
SPEC = ModelSpec(MASK, 10, END)


def span_of(rule, length=4):
    settings = Settings(Rule.parse(rule))
    return Span.of(SPEC, prompt_request(SPEC, [1, 2], length, settings))


@pytest.mark.parametrize(
    ("canvas", "final", "ended"),
    [
        ([1, 2, MASK, 4, 5, 6], [], False),
        ([1, 2, 3, 4, MASK, 6], [3, 4], False),
        ([1, 2, 3, END, MASK, 6], [3], True),
        ([1, 2, 3, MASK, END, 6], [3], False),
        ([1, 2, 3, 4, 5, 6], [3, 4, 5, 6], True),
    ],
)
def test_an_answer_is_final_up_to_its_first_mask_or_end(canvas, final, ended):
    assert span_of("confidence | top(1)").settled(canvas, 2) == (final, ended)


def test_under_a_rule_that_revokes_only_closed_windows_are_final():
    span = span_of("confidence | top(1) | revoke(1)")
    assert span.settled([1, 2, 3, 4, 5, MASK], 2) == ([], False)
    assert span.settled([1, 2, 3, 4, 5, MASK], 4) == ([3, 4], False)


def test_what_fills_up_the_last_block_is_no_part_of_the_answer():
    spec = ModelSpec(MASK, 10, END, block=4)
    request = prompt_request(spec, [1, 2], 4, Settings(Rule.parse("confidence | top(1)")))
    assert len(request.canvas) == 8
    assert Span.of(spec, request).settled([1, 2, 3, 4, 5, 6, MASK, MASK], 4) == ([3, 4, 5, 6], True)


def test_in_a_canvas_that_is_filled_no_token_is_an_end():
    settings = Settings(Rule.parse("confidence | top(1)"))
    span = Span.of(SPEC, infill_request(SPEC, torch.tensor([1, MASK, END, 3]), settings))
    assert span.settled([1, 2, END, 3], 1) == ([1, 2, END, 3], True)
    assert span.settled([1, MASK, END, 3], 1) == ([1], False)


# As text


@pytest.fixture(scope="module")
def byte_model(tmp_path_factory):
    folder = make_llada(tmp_path_factory.mktemp("bytes") / "tiny")
    return unmask.load(folder).model, describe(folder)


def reader_of(shape, length=12, stops=(), rule="confidence | top(1)"):
    request = prompt_request(shape.spec, [5], length, Settings(Rule.parse(rule)))
    return TextReader(shape.tokenizer, shape.spec, request, stops)


def canvases_of(model, request):
    return [RowCanvas.of(step, 0) for step in decode_steps(model, [request])]


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
    assert reader.settled(RowCanvas([5, mask, b, c, a], 1, 1)).text == ""
    assert reader.settled(RowCanvas([5, a, mask, c, mask], 1, 2)).text == "a"
    reading = reader.settled(RowCanvas([5, a, b, mask, c], 1, 3))
    assert (reading.text, reading.tokens, reading.ended) == ("ab", 2, False)
    reading = reader.settled(RowCanvas([5, a, b, shape.spec.eos_id, mask], 1, 4))
    assert (reading.text, reading.ended) == ("ab", True)


def test_a_rule_that_takes_back_makes_a_block_final_when_it_is_closed(byte_model):
    _, shape = byte_model
    reader = reader_of(shape, length=4, rule="confidence | eb(1) | revoke(1)")
    ids = [5, *shape.tokenizer.encode("abcd")]
    assert reader.settled(RowCanvas(ids, 1, 3)).text == ""
    assert reader.settled(RowCanvas(ids, 3, 4)).text == "ab"


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
def test_no_rule_and_no_end_token_policy_takes_back_what_was_read(byte_model, rule, eos):
    model, shape = byte_model
    retracted = 0
    for seed, block in enumerate((None, 5)):
        settings = Settings(Rule.parse(rule), block, eos)
        ends = (65, 97, 120)  # letters, so that an end turns up in random texts
        spec = replace(shape.spec, eos_id=65, stop_ids=ends)
        inner = replace(model, spec=spec)
        request = prompt_request(spec, [72, 105, seed], 14, settings, seed)
        reader = TextReader(shape.tokenizer, spec, request)
        steps = list(decode_steps(inner, [request]))
        canvases = [RowCanvas.of(step, 0) for step in steps]
        (result,) = steps[-1].finished
        final = shape.tokenizer.decode(result.ids, skip_special=True)
        for canvas in canvases:
            assert final.startswith(reader.settled(canvas).text)
        masks = [canvas.ids.count(spec.mask_id) for canvas in canvases]
        retracted += any(b > a for a, b in pairwise(masks))
    if "times" in rule and eos == "keep":
        assert retracted  # or this test shows nothing


def test_the_rest_of_a_canvas_is_read_with_its_masks_filled(byte_model):
    model, shape = byte_model
    mask = shape.spec.mask_id
    canvas = [*shape.tokenizer.encode("A "), mask, mask, *shape.tokenizer.encode(" and "), mask]
    request = infill_request(shape.spec, canvas, Settings(Rule.parse("confidence | top(1)")))
    reader = TextReader(shape.tokenizer, shape.spec, request)
    texts = [reader.settled(canvas).text for canvas in canvases_of(model, request)]
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
        assert bool(reader.settled(RowCanvas(ids, 1, 1)).text) is grows
    finally:
        shape.tokenizer.engine.decoder = before
